//! The machine's own Apache: which configuration it has, as Apache itself reads it. Nothing is changed here.

pub(crate) mod environment;
pub(crate) mod ports;
pub(crate) mod tree;

use super::check::warnings;
use super::install::{Install, Module, compiled_in};
use crate::lossy::read_lossy;
use crate::own::{Reads, usual};
use crate::program::{ask, asking, if_denied};
use crate::running::{flags, processes};
use crate::{OwnApache, PlanKey, ServerError};
use environment::{deciding, environment, pairs};
use host::{Service, Style};
use model::plan::{Existing, Mpm};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use tree::{Line, words};

/// Where main files are, by distribution.
const MAIN_FILES: [&str; 4] = [
    "/etc/apache2/apache2.conf",
    "/etc/httpd/conf/httpd.conf",
    "/usr/local/apache2/conf/httpd.conf",
    "/etc/apache2/httpd.conf",
];

/// A configuration and what reads it.
#[derive(Debug, Clone)]
pub(crate) struct Machine {
    pub(crate) install: Install,
    /// The main file.
    pub(crate) main: PathBuf,
    /// What the server is started with.
    pub(crate) environment: Vec<(OsString, OsString)>,
    /// Words of the running server's that decide what the configuration says: `-D NAME` and lines behind `-C` and `-c`.
    further: Vec<OsString>,
    /// `-d` and its folder, where Debian's control script gives them.
    folder: Option<PathBuf>,
    pub(crate) server_root: PathBuf,
    pub(crate) pid_file: PathBuf,
    pub(crate) error_log: PathBuf,
    /// All files that are read, the main one first.
    pub(crate) files: Vec<PathBuf>,
    /// Files of code and modules to load, in order.
    pub(crate) load_files: Vec<PathBuf>,
    pub(crate) modules: Vec<Module>,
    /// Names of all modules there are, built in or loaded.
    pub(crate) has: BTreeSet<String>,
    pub(crate) mpm: Mpm,
    pub(crate) lines: Vec<Line>,
    /// What Apache warns about in it.
    pub(crate) warnings: Vec<String>,
}

impl Machine {
    /// Has Apache read the configuration.
    pub(crate) fn read(program: Option<&Path>, existing: &Existing, at: &PlanKey) -> Result<Machine, ServerError> {
        let unfit = |why: String| ServerError::Machine { at: at.clone(), why };
        let install = Install::find(program, &std::env::var_os("PATH").unwrap_or_default())?;
        let main = found(program, existing).map_err(unfit)?;
        let above = main.parent().unwrap_or(Path::new("/")).to_owned();
        let environment = environment(&above)?;
        let mut machine = Machine {
            // Debian's script passes it whenever the folder is not the usual one, and then it is what is built in.
            folder: above.join("envvars").exists().then_some(above),
            further: Vec::new(),
            install,
            main,
            environment,
            server_root: PathBuf::new(),
            pid_file: PathBuf::new(),
            error_log: PathBuf::new(),
            files: Vec::new(),
            load_files: Vec::new(),
            modules: Vec::new(),
            has: BTreeSet::new(),
            mpm: Mpm::Event,
            lines: Vec::new(),
            warnings: Vec::new(),
        };
        let unfit = |why| ServerError::Machine { at: at.clone(), why };
        machine.as_running();
        machine.ask(&unfit)?;
        Ok(machine)
    }

    /// Takes over what the running server was started with, if one runs: conditions may ask for it.
    fn as_running(&mut self) {
        let Some((pid, words)) = self.running() else { return };
        self.further = deciding(&words);
        let has_file = self.main.parent().is_some_and(|folder| folder.join("envvars").exists());
        let own = pairs(&std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default());
        // Where no file says it, as with services of systemd's, the server itself knows.
        if !has_file && !own.is_empty() {
            let of_systemd = ["NOTIFY_SOCKET", "WATCHDOG_PID", "WATCHDOG_USEC", "LISTEN_PID", "LISTEN_FDS"];
            self.environment = own.into_iter().filter(|(name, _)| !of_systemd.iter().any(|it| name == it)).collect();
        }
    }

    /// The one main process of the program with this configuration, by its words.
    fn running(&self) -> Option<(u32, Vec<String>)> {
        let proc_root = Path::new("/proc");
        let program = self.install.program.canonicalize().ok()?;
        let everybody = processes::all(proc_root);
        let is_it = |pid: u32| std::fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|exe| exe == program);
        let named = everybody.iter().map(|process| process.pid).filter(|pid| is_it(*pid)).collect();
        let masters =
            processes::roots(&everybody, &named).into_iter().map(|pid| (pid, processes::words(proc_root, pid)));
        let mut fitting = masters.filter(|(_, words)| self.is_of(words));
        let found = fitting.next();
        found.filter(|_| fitting.next().is_none())
    }

    /// Whether a server with these words reads this configuration.
    fn is_of(&self, words: &[String]) -> bool {
        let said = flags(words);
        let after = |flag: char| said.iter().find(|(said, _)| *said == flag).map(|(_, value)| PathBuf::from(value));
        let compiled = compiled_in(&self.install.program);
        let main = match (after('d'), after('f')) {
            (Some(root), Some(file)) => Some(root.join(file)),
            (None, Some(file)) => Some(compiled.map_or(file.clone(), |compiled| compiled.root.join(file))),
            (Some(root), None) => {
                let name = compiled.and_then(|it| it.main.strip_prefix(&it.root).ok().map(Path::to_owned));
                name.map(|name| root.join(name))
            }
            (None, None) => compiled.map(|compiled| compiled.main),
        };
        main.and_then(|main| main.canonicalize().ok()).as_ref() == Some(&self.main)
    }

    /// `-D NAME` of the running server.
    pub(crate) fn defines(&self) -> Vec<OsString> {
        let pairs = self.further.chunks(2).filter(|pair| pair[0] == "-D");
        pairs.flatten().cloned().collect()
    }

    /// A call of the program with the machine's own environment and configuration.
    pub(crate) fn command(&self) -> Command {
        self.command_of(&self.main)
    }

    /// The same with another main file.
    pub(crate) fn command_of(&self, main: &Path) -> Command {
        let mut command = asking(&self.install.program);
        command.env_clear().envs(self.environment.iter().map(|(name, value)| (name, value))).env("LC_ALL", "C");
        command.args(self.arguments_for(main));
        command
    }

    /// The server that runs with it, or why there is none.
    pub(crate) fn service(&self) -> Result<Service, String> {
        let (name, program) = (self.main.display().to_string(), &self.install.program);
        let (args, env) = (self.arguments_for(&self.main), self.environment.clone());
        Service::of_running(Style::Apache, &name, program, args, env, &self.pid_file)
    }

    fn arguments_for(&self, main: &Path) -> Vec<OsString> {
        let folder = self.folder.iter().flat_map(|folder| ["-d".into(), folder.into()]);
        folder.chain(["-f".into(), main.into()]).chain(self.further.iter().cloned()).collect()
    }

    /// The configuration as it is read now, as [`tree::parse`] takes it.
    pub(crate) fn dump(&self) -> Result<String, ServerError> {
        let info = self.install.module("info")?;
        let mut dump = self.command();
        if !self.has.contains("info_module") {
            dump.arg("-C").arg(format!("LoadModule info_module \"{}\"", info.file.display()));
        }
        let output = ask(dump.args(["-t", "-D", "DUMP_CONFIG"]))?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    fn ask(&mut self, unfit: &dyn Fn(String) -> ServerError) -> Result<(), ServerError> {
        let run = ask(self.command().args(["-t", "-D", "DUMP_RUN_CFG", "-D", "DUMP_MODULES", "-D", "DUMP_INCLUDES"]))?;
        let said = String::from_utf8_lossy(&run.stderr).into_owned();
        if !run.status.success() {
            let hint = if_denied(&said);
            let said: Vec<&str> = said.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
            return Err(unfit(format!("Apache refuses {}: {}{hint}", self.main.display(), said.join(" "))));
        }
        self.warnings = warnings(&said);
        let told = String::from_utf8_lossy(&run.stdout);
        let quoted = |label: &str| {
            let value = told.lines().find_map(|line| line.strip_prefix(label))?;
            Some(PathBuf::from(value.trim().trim_matches('"')))
        };
        let missing = |what: &str| unfit(format!("Apache does not tell its {what}"));
        self.server_root = quoted("ServerRoot: ").ok_or_else(|| missing("ServerRoot"))?;
        self.pid_file = quoted("PidFile: ").ok_or_else(|| missing("PidFile"))?;
        // One that goes to a program or to the system is no file to look into.
        self.error_log = quoted("Main ErrorLog: ").unwrap_or_default();
        self.files = included(&told);
        if self.files.is_empty() {
            self.files.push(self.main.clone());
        }
        self.loaded(&told, unfit)?;
        self.lines = tree::parse(&self.dump()?);
        if self.lines.is_empty() {
            return Err(unfit(
                "Apache does not print its configuration (-D DUMP_CONFIG); is mod_info complete?".to_owned(),
            ));
        }
        Ok(())
    }

    /// The modules, their files as the configuration names them.
    fn loaded(&mut self, told: &str, unfit: &dyn Fn(String) -> ServerError) -> Result<(), ServerError> {
        let (mut known, mut load_files): (Vec<Module>, Vec<PathBuf>) = (Vec::new(), Vec::new());
        for file in &self.files {
            let text = match read_lossy(file) {
                // Since Apache named it: another run's is taken away again.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                text => text.map_err(ServerError::io("read", file))?,
            };
            for line in text.lines().map(words) {
                let path = |word: &String| self.server_root.join(self.filled(word));
                match line.as_slice() {
                    [name, symbol, file] if name.eq_ignore_ascii_case("LoadModule") => {
                        known.push(Module { symbol: symbol.clone(), file: path(file) });
                    }
                    [name, files @ ..] if name.eq_ignore_ascii_case("LoadFile") => {
                        load_files.extend(files.iter().map(path));
                    }
                    _ => {}
                }
            }
        }
        self.load_files = load_files;
        for line in told.lines() {
            let Some((symbol, how)) = line.trim().split_once(' ').filter(|(symbol, _)| symbol.ends_with("_module"))
            else {
                continue;
            };
            self.has.insert(symbol.to_owned());
            if how == "(shared)" {
                let module = known.iter().rfind(|module| module.symbol == symbol).cloned();
                self.modules.push(module.ok_or_else(|| unfit(format!("it is not clear which file {symbol} is in")))?);
            }
        }
        let mpms = [
            ("mpm_prefork_module", Mpm::Prefork),
            ("mpm_worker_module", Mpm::Worker),
            ("mpm_event_module", Mpm::Event),
        ];
        let mpm = mpms.into_iter().find(|(symbol, _)| self.has.contains(*symbol));
        self.mpm =
            mpm.ok_or_else(|| unfit("it has none of the processing modules prefork, worker and event".to_owned()))?.1;
        Ok(())
    }

    /// With the environment's variables filled in.
    fn filled(&self, word: &str) -> String {
        self.environment.iter().fold(word.to_owned(), |word, (name, value)| {
            word.replace(&format!("${{{}}}", name.to_string_lossy()), &value.to_string_lossy())
        })
    }
}

impl Reads for Machine {
    fn includes(&self) -> Result<Vec<PathBuf>, ServerError> {
        let output = ask(self.command().args(["-t", "-D", "DUMP_INCLUDES"]))?;
        let files = included(&String::from_utf8_lossy(&output.stdout));
        Ok(if files.is_empty() { vec![self.main.clone()] } else { files })
    }
}

/// The main file of a configuration that a plan means, canonical.
pub(crate) fn main_file(program: Option<&Path>, existing: &Existing) -> Result<PathBuf, ServerError> {
    found(program, existing).map_err(ServerError::Unread)
}

/// The machine's own, as far as it can be read; `None` where there is none.
pub(crate) fn own() -> Result<Option<OwnApache>, ServerError> {
    if usual(&MAIN_FILES).is_err() {
        return Ok(None);
    }
    let existing = Existing::default();
    let main = main_file(None, &existing)?;
    let at = PlanKey { plan: main.into(), service: None, line: 1, key: "from" };
    let machine = Machine::read(None, &existing, &at).map_err(|error| match error {
        // There is no plan to blame.
        ServerError::Machine { why, .. } => ServerError::Unread(why),
        other => other,
    })?;
    let mut ports: Vec<u16> = ports::doors(&machine.lines).iter().map(|door| door.port).collect();
    ports.sort_unstable();
    ports.dedup();
    let running = machine.service().ok();
    let held = running.as_ref().and_then(|service| service.can_start().err());
    Ok(Some(OwnApache { is_running: running.is_some(), held, ports, main: machine.main }))
}

fn found(program: Option<&Path>, existing: &Existing) -> Result<PathBuf, String> {
    let main = match (&existing.main, program.and_then(compiled_in)) {
        (Some(main), _) => main.clone(),
        (None, Some(compiled)) => compiled.main,
        (None, None) => usual(&MAIN_FILES)?,
    };
    main.canonicalize().map_err(|error| format!("cannot read {}: {error}", main.display()))
}

/// The files of `DUMP_INCLUDES`: `  (*) /main`, `    (146) /other`.
fn included(told: &str) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = Vec::new();
    for line in told.lines().map(str::trim_start).filter(|line| line.starts_with('(')) {
        if let Some((_, path)) = line.split_once(") /") {
            let path = PathBuf::from(format!("/{path}"));
            if !files.contains(&path) {
                files.push(path);
            }
        }
    }
    files
}
