//! The machine's own nginx: which configuration it has, by the files that nginx itself names. Nothing is changed here.

pub(crate) mod servers;
pub(crate) mod tree;

use super::SERVER;
use super::program::{Built, find};
use crate::own::{Reads, usual};
use crate::program::{ask, asking, if_denied};
use crate::running::expand;
use crate::{PlanKey, ServerError};
use host::{Service, Style};
use model::plan::Existing;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tree::{Statement, everywhere, level};

/// Where main files are, by distribution.
pub(super) const MAIN_FILES: [&str; 3] =
    ["/etc/nginx/nginx.conf", "/usr/local/nginx/conf/nginx.conf", "/opt/nginx/conf/nginx.conf"];
/// What stands before each file in what `nginx -T` prints.
const FILE: &str = "# configuration file ";

/// A configuration and what reads it.
#[derive(Debug, Clone)]
pub(crate) struct Machine {
    pub(crate) program: PathBuf,
    pub(crate) built: Built,
    /// The main file.
    pub(crate) main: PathBuf,
    pub(crate) pid_file: PathBuf,
    pub(crate) error_log: PathBuf,
    /// What it warns about in it.
    pub(crate) warnings: Vec<String>,
    /// Arguments of the running server beyond its main file: `-p`, `-g` and their values.
    further: Vec<OsString>,
    /// The running server's limit of open files, which its own warnings are about.
    files: Option<String>,
}

/// What nginx says to a configuration.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) accepted: bool,
    /// What it complains about.
    pub(crate) said: String,
    /// The files that it has read, in order.
    pub(crate) files: Vec<PathBuf>,
}

/// A configuration as it was read.
#[derive(Debug, Clone)]
pub(crate) struct Configuration {
    pub(crate) texts: BTreeMap<PathBuf, String>,
    pub(crate) tree: Vec<Statement>,
}

impl Machine {
    /// Has nginx read the configuration.
    pub(crate) fn read(program: Option<&Path>, existing: &Existing, at: &PlanKey) -> Result<Machine, ServerError> {
        let unfit = |why: String| ServerError::Machine { at: at.clone(), why };
        let program = find(program, &std::env::var_os("PATH").unwrap_or_default())?;
        let main = found(existing).map_err(unfit)?;
        let built = Built::of(&program)?;
        let mut machine = Machine {
            program,
            main,
            pid_file: built.pid_file.clone(),
            error_log: built.error_log.clone(),
            built,
            warnings: Vec::new(),
            further: Vec::new(),
            files: None,
        };
        let mut tree = machine.configuration().map_err(|error| error.of_machine(at))?.tree;
        machine.places(&tree);
        if let Some(running) = Master::of(&machine.pid_file) {
            (machine.further, machine.files) = (running.further, running.files);
            tree = machine.configuration().map_err(|error| error.of_machine(at))?.tree;
            machine.places(&tree);
        }
        machine.warnings = warnings(&machine.ask(&machine.main)?.said);
        Ok(machine)
    }

    /// What the running server's configuration says now.
    pub(crate) fn configuration(&self) -> Result<Configuration, Unread> {
        let answer = self.ask(&self.main)?;
        if !answer.accepted {
            let hint = if_denied(&answer.said);
            let said: Vec<&str> = answer.said.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
            return Err(Unread::Why(format!("nginx refuses {}: {}{hint}", self.main.display(), said.join(" "))));
        }
        Configuration::of(&self.main, &answer.files)
    }

    /// Has nginx test a main file, with the running server's arguments and limits.
    pub(crate) fn ask(&self, main: &Path) -> Result<Answer, ServerError> {
        let output = ask(&mut self.command(main))?;
        let told = String::from_utf8_lossy(&output.stdout);
        let named = told.lines().filter_map(|line| Some(line.strip_prefix(FILE)?.strip_suffix(':')?.into()));
        let mut files: Vec<PathBuf> = Vec::new();
        for file in named {
            if !files.contains(&file) {
                files.push(file);
            }
        }
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        Ok(Answer { accepted: output.status.success(), said, files })
    }

    fn command(&self, main: &Path) -> Command {
        let mut command = match &self.files {
            None => asking(&self.program),
            Some(files) => {
                let mut shell = asking(Path::new("/bin/sh"));
                let script = "ulimit -n \"$1\" 2>/dev/null; shift; exec \"$@\"";
                shell.args(["-c", script, "sh", files]).arg(&self.program);
                shell
            }
        };
        command.args(["-T", "-q"]).args(self.arguments_for(main));
        command
    }

    fn arguments_for(&self, main: &Path) -> Vec<OsString> {
        ["-c".into(), main.into()].into_iter().chain(self.further.iter().cloned()).collect()
    }

    /// The server that runs with it, or why there is none.
    pub(crate) fn service(&self) -> Result<Service, String> {
        let (name, args) = (self.main.display().to_string(), self.arguments_for(&self.main));
        let service = Service::of_running(Style::Nginx, &name, &self.program, args, vec![], &self.pid_file)?;
        let other = Master::of(&self.pid_file).and_then(|master| master.main);
        let is_same = |file: &PathBuf| file.canonicalize().ok() == self.main.canonicalize().ok();
        match other.filter(|file| !is_same(file)) {
            Some(file) => Err(format!("the server of {} was started with another file: {}", name, file.display())),
            None => Ok(service),
        }
    }

    /// Where it writes its pid and its errors.
    fn places(&mut self, tree: &[Statement]) {
        let prefix = prefix_of(&self.further).unwrap_or(&self.built.prefix).to_owned();
        self.pid_file = said(tree, "pid").map_or(self.built.pid_file.clone(), |path| prefix.join(path));
        self.error_log = said(tree, "error_log").map_or(self.built.error_log.clone(), |path| prefix.join(path));
    }
}

/// What the last directive of a name outside every block says first.
pub(super) fn said(tree: &[Statement], name: &str) -> Option<String> {
    level(tree).into_iter().rfind(|it| it.is(name)).and_then(|it| it.args.first().cloned())
}

/// The folder behind `-p`.
pub(super) fn prefix_of(further: &[OsString]) -> Option<&Path> {
    further.iter().skip_while(|word| *word != "-p").nth(1).map(Path::new)
}

impl Reads for Machine {
    fn includes(&self) -> Result<Vec<PathBuf>, ServerError> {
        let files = self.ask(&self.main)?.files;
        Ok(if files.is_empty() { vec![self.main.clone()] } else { files })
    }
}

impl Configuration {
    /// Follows the includes from the main file on, without nginx; `before` stands before its first line.
    pub(crate) fn read(main: &Path, before: &str) -> Result<Configuration, Unread> {
        let mut texts = BTreeMap::from([(main.to_owned(), format!("{before}{}", text(main)?))]);
        loop {
            let tree = tree::parse(main, &texts).map_err(Unread::Why)?;
            let mut further = BTreeMap::new();
            for include in everywhere(&tree).into_iter().filter(|it| it.is("include")) {
                for file in included(main, include)?.into_iter().filter(|file| !texts.contains_key(file)) {
                    let text = text(&file)?;
                    further.insert(file, text);
                }
            }
            if further.is_empty() {
                return Ok(Configuration { texts, tree });
            }
            texts.extend(further);
        }
    }

    /// Reads these files.
    pub(crate) fn of(main: &Path, files: &[PathBuf]) -> Result<Configuration, Unread> {
        let texts = files.iter().map(|file| Ok((file.clone(), text(file)?))).collect::<Result<_, Unread>>()?;
        let tree = tree::parse(main, &texts).map_err(Unread::Why)?;
        Ok(Configuration { texts, tree })
    }
}

/// The text of a file.
fn text(file: &Path) -> Result<String, Unread> {
    let bytes = fs::read(file).map_err(|error| unreadable(file, &error))?;
    String::from_utf8(bytes)
        .map_err(|_| Unread::Why(format!("{} is not UTF-8, and would not be the same again", file.display())))
}

fn unreadable(file: &Path, error: &std::io::Error) -> Unread {
    Unread::Why(format!("cannot read {}: {error}{}", file.display(), if_denied(&error.to_string())))
}

/// The files that an `include` names. One without wildcards has to be there; a folder that may not be looked into may have any.
fn included(main: &Path, include: &Statement) -> Result<Vec<PathBuf>, Unread> {
    let mut files = Vec::new();
    for name in &include.args {
        let pattern = main.parent().unwrap_or(Path::new("/")).join(name);
        let is_wild = |part: &Path| part.to_string_lossy().contains(['*', '?', '[']);
        if let Some(folder) = pattern.ancestors().find(|part| !is_wild(part)).filter(|folder| *folder != pattern)
            && let Err(error) = fs::read_dir(folder)
            && error.kind() != std::io::ErrorKind::NotFound
        {
            return Err(unreadable(folder, &error));
        }
        files.extend(expand(&pattern, false));
    }
    Ok(files)
}

/// Why a configuration could not be read.
#[derive(Debug)]
pub(crate) enum Unread {
    /// Something about it, in one sentence.
    Why(String),
    /// Something else.
    Other(ServerError),
}

impl From<ServerError> for Unread {
    fn from(error: ServerError) -> Unread {
        Unread::Other(error)
    }
}

impl Unread {
    /// About the machine, by the key of the plan that means it.
    pub(crate) fn of_machine(self, at: &PlanKey) -> ServerError {
        match self {
            Unread::Why(why) => ServerError::Machine { at: at.clone(), why },
            Unread::Other(error) => error,
        }
    }

    /// About a server that runs.
    pub(crate) fn of_running(self) -> ServerError {
        match self {
            Unread::Why(why) => ServerError::NoSettings { server: SERVER, why },
            Unread::Other(error) => error,
        }
    }
}

/// The warnings in what nginx says, without their places: a variant's lines move others, and a copy has another name.
pub(super) fn warnings(said: &str) -> Vec<String> {
    let warnings = said.lines().filter(|line| line.contains("[warn]"));
    warnings.map(|line| without_place(&super::check::message(line.trim())).to_owned()).collect()
}

/// Without ` in FILE:LINE` at its end.
pub(super) fn without_place(said: &str) -> &str {
    let is_place = |place: &str| place.rsplit_once(':').is_some_and(|(_, line)| line.parse::<usize>().is_ok());
    said.rsplit_once(" in ").filter(|(_, place)| is_place(place)).map_or(said, |(message, _)| message)
}

/// A running master.
pub(super) struct Master {
    pub(super) main: Option<PathBuf>,
    /// `-p`, `-g` and their values.
    pub(super) further: Vec<OsString>,
    files: Option<String>,
}

impl Master {
    /// The one whose pid the file has.
    pub(super) fn of(pid_file: &Path) -> Option<Master> {
        let pid: u32 = fs::read_to_string(pid_file).ok()?.trim().parse().ok()?;
        let words = host::words_of_nginx(pid)?;
        let cwd = fs::read_link(format!("/proc/{pid}/cwd")).unwrap_or_default();
        let (mut main, mut further) = (None, Vec::new());
        let mut words = words.into_iter().skip(1);
        while let Some(word) = words.next() {
            match word.to_str() {
                Some("-c") => main = words.next().map(|file| cwd.join(file)),
                Some("-p" | "-g") => further.extend([Some(word), words.next()].into_iter().flatten()),
                _ => {}
            }
        }
        let limits = fs::read_to_string(format!("/proc/{pid}/limits")).unwrap_or_default();
        let files = limits.lines().find_map(|line| line.strip_prefix("Max open files")?.split_whitespace().next());
        Some(Master { main, further, files: files.map(str::to_owned) })
    }
}

/// The main file of a configuration that a plan means, canonical.
pub(crate) fn main_file(existing: &Existing) -> Result<PathBuf, ServerError> {
    let main = found(existing).map_err(ServerError::Unread)?;
    main.canonicalize().map_err(ServerError::io("find", &main))
}

/// Not canonical: names in it are relative to the folder that it is called by.
pub(super) fn found(existing: &Existing) -> Result<PathBuf, String> {
    let main = match &existing.main {
        Some(main) => std::path::absolute(main).map_err(|error| format!("cannot find {}: {error}", main.display()))?,
        None => usual(&MAIN_FILES)?,
    };
    match fs::metadata(&main) {
        Ok(_) => Ok(main),
        Err(error) => Err(format!("cannot read {}: {error}{}", main.display(), if_denied(&error.to_string()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warning_is_known_wherever_it_stands() {
        let said = "nginx: [warn] duplicate MIME type \"text/html\" in /etc/nginx/nginx.conf:52\n\
                    nginx: [warn] conflicting server name \"in x\" on 0.0.0.0:80, ignored\n\
                    nginx: configuration file /etc/nginx/nginx.conf test is successful\n";
        let expected = ["duplicate MIME type \"text/html\"", "conflicting server name \"in x\" on 0.0.0.0:80, ignored"];
        assert_eq!(warnings(said), expected);
    }
}
