//! The machine's own nginx: which configuration it has, by the files that nginx itself names. Nothing is changed here.

pub(crate) mod servers;
pub(crate) mod tree;

use super::SERVER;
use super::instance::find;
use crate::own::{Reads, usual};
use crate::program::asking;
use crate::{OwnNginx, PlanKey, ServerError};
use host::{Service, Style};
use model::plan::Existing;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tree::{Statement, level};

/// Where main files are, by distribution.
const MAIN_FILES: [&str; 3] =
    ["/etc/nginx/nginx.conf", "/usr/local/nginx/conf/nginx.conf", "/opt/nginx/conf/nginx.conf"];
/// What stands before each file in what `nginx -T` prints.
const FILE: &str = "# configuration file ";

/// A configuration and what reads it.
#[derive(Debug, Clone)]
pub(crate) struct Machine {
    pub(crate) program: PathBuf,
    /// The main file.
    pub(crate) main: PathBuf,
    pub(crate) pid_file: PathBuf,
    pub(crate) error_log: PathBuf,
    /// What nginx calls itself.
    pub(crate) version: String,
    /// Whether it can tell counters.
    pub(crate) has_status: bool,
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
            version: built.version,
            has_status: built.has_status,
            warnings: Vec::new(),
            further: Vec::new(),
            files: None,
        };
        let mut tree = machine.configuration().map_err(|error| error.of_machine(at))?.tree;
        machine.places(&tree, &built.prefix, (&built.pid_file, &built.error_log));
        if let Some(running) = Master::of(&machine.pid_file) {
            (machine.further, machine.files) = (running.further, running.files);
            tree = machine.configuration().map_err(|error| error.of_machine(at))?.tree;
            machine.places(&tree, &built.prefix, (&built.pid_file, &built.error_log));
        }
        machine.warnings = warnings(&machine.ask(&machine.main)?.said);
        Ok(machine)
    }

    /// What the running server's configuration says now.
    pub(crate) fn configuration(&self) -> Result<Configuration, Unread> {
        let answer = self.ask(&self.main)?;
        if !answer.accepted {
            let hint =
                if answer.said.contains("ermission denied") { "; run webdyno as root, who may read it" } else { "" };
            let said: Vec<&str> = answer.said.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
            return Err(Unread::Why(format!("nginx refuses {}: {}{hint}", self.main.display(), said.join(" "))));
        }
        Configuration::of(&self.main, &answer.files)
    }

    /// Has nginx test a main file, with the running server's arguments and limits.
    pub(crate) fn ask(&self, main: &Path) -> Result<Answer, ServerError> {
        let output = self.command(main).output().map_err(ServerError::io("run", &self.program))?;
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
    fn places(&mut self, tree: &[Statement], prefix: &Path, built: (&Path, &Path)) {
        let said = |name: &str| level(tree).into_iter().rfind(|it| it.is(name)).and_then(|it| it.args.first().cloned());
        let prefix = self.further.iter().skip_while(|word| *word != "-p").nth(1).map_or(prefix, Path::new);
        let place = |name: &str, otherwise: &Path| said(name).map_or(otherwise.to_owned(), |path| prefix.join(path));
        (self.pid_file, self.error_log) = (place("pid", built.0), place("error_log", built.1));
    }
}

impl Reads for Machine {
    fn includes(&self) -> Result<Vec<PathBuf>, ServerError> {
        let files = self.ask(&self.main)?.files;
        Ok(if files.is_empty() { vec![self.main.clone()] } else { files })
    }
}

impl Configuration {
    /// Reads these files.
    pub(crate) fn of(main: &Path, files: &[PathBuf]) -> Result<Configuration, Unread> {
        let text = |file: &PathBuf| match fs::read(file) {
            Ok(bytes) => String::from_utf8(bytes)
                .map(|text| (file.clone(), text))
                .map_err(|_| Unread::Why(format!("{} is not UTF-8, and would not be the same again", file.display()))),
            Err(error) => Err(ServerError::io("read", file)(error).into()),
        };
        let texts = files.iter().map(text).collect::<Result<_, _>>()?;
        let tree = tree::parse(main, &texts).map_err(Unread::Why)?;
        Ok(Configuration { texts, tree })
    }
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
fn warnings(said: &str) -> Vec<String> {
    let warnings = said.lines().filter(|line| line.contains("[warn]"));
    warnings.map(|line| without_place(&super::check::message(line.trim())).to_owned()).collect()
}

/// Without ` in FILE:LINE` at its end.
fn without_place(said: &str) -> &str {
    let is_place = |place: &str| place.rsplit_once(':').is_some_and(|(_, line)| line.parse::<usize>().is_ok());
    said.rsplit_once(" in ").filter(|(_, place)| is_place(place)).map_or(said, |(message, _)| message)
}

/// What was built into the program.
struct Built {
    version: String,
    has_status: bool,
    prefix: PathBuf,
    pid_file: PathBuf,
    error_log: PathBuf,
}

impl Built {
    fn of(program: &Path) -> Result<Built, ServerError> {
        let output = asking(program).arg("-V").output().map_err(ServerError::io("run", program))?;
        let said = String::from_utf8_lossy(&output.stderr);
        let value = |name: &str| said.split_ascii_whitespace().find_map(|word| word.strip_prefix(name));
        let prefix = PathBuf::from(value("--prefix=").unwrap_or("/usr/local/nginx"));
        let place = |name: &str, otherwise: &str| prefix.join(value(name).unwrap_or(otherwise));
        Ok(Built {
            version: super::version(program)?,
            has_status: said.contains("http_stub_status_module"),
            pid_file: place("--pid-path=", "logs/nginx.pid"),
            error_log: place("--error-log-path=", "logs/error.log"),
            prefix,
        })
    }
}

/// A running master.
struct Master {
    main: Option<PathBuf>,
    further: Vec<OsString>,
    files: Option<String>,
}

impl Master {
    /// The one whose pid the file has.
    fn of(pid_file: &Path) -> Option<Master> {
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
    let main = found(existing).map_err(ServerError::NoNginx)?;
    main.canonicalize().map_err(ServerError::io("find", &main))
}

/// The machine's own, as far as it can be read; `None` where there is none.
pub(crate) fn own() -> Result<Option<OwnNginx>, ServerError> {
    if usual(&MAIN_FILES).is_err() {
        return Ok(None);
    }
    let existing = Existing::default();
    let at = PlanKey { plan: main_file(&existing)?, line: 1, key: "in_place" };
    // There is no plan to blame.
    let told = |error: ServerError| match error {
        ServerError::Machine { why, .. } => ServerError::NoNginx(why),
        other => other,
    };
    let machine = Machine::read(None, &existing, &at).map_err(told)?;
    let tree = machine.configuration().map_err(|error| told(error.of_machine(&at)))?.tree;
    let mut ports: Vec<u16> = servers::doors(&servers::servers(&tree)).iter().map(|door| door.port).collect();
    ports.sort_unstable();
    ports.dedup();
    Ok(Some(OwnNginx { is_running: machine.service().is_ok(), ports, main: machine.main }))
}

/// Not canonical: names in it are relative to the folder that it is called by.
fn found(existing: &Existing) -> Result<PathBuf, String> {
    let main = match &existing.main {
        Some(main) => std::path::absolute(main).map_err(|error| format!("cannot find {}: {error}", main.display()))?,
        None => usual(&MAIN_FILES)?,
    };
    match fs::metadata(&main) {
        Ok(_) => Ok(main),
        Err(error) => Err(format!("cannot read {}: {error}", main.display())),
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
