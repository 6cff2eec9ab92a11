//! A private instance from a plan and a folder: prepared, tested by Apache itself, started, and read back.

use super::SERVER;
use super::check::{Test, check};
use super::crew::Muster;
use super::install::{Install, Module};
use super::render::{Parts, Rendered, render};
use super::settings::{Pages, Told};
use crate::account::{Account, OF_APACHE};
use crate::control::{Logs, Starting, blame};
use crate::php;
use crate::port::with_free_port;
use crate::program::asking;
use crate::site::Grounds;
use crate::{Control, Place, PlanKey, Running, ServerError};
use host::Launch;
use model::plan::{Apache, Mpm, PhpWay, Variant};
use std::fs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// A socket's path may have 107 bytes; ours is the folder's and this, with the daemon's process id.
const SOCKET_ROOM: usize = 107 - "/run/cgisock.4194304".len();
/// Apache's messages for a CGI daemon that did not start. It goes on without one, and CGI requests hang.
const NO_CGI_DAEMON: [&str; 2] = ["AH01238", "AH01243"];
/// mod_mime insists on a file of types; this one is for systems without /etc/mime.types.
const TYPES: &str = "text/html html htm\ntext/css css\ntext/javascript js\ntext/plain txt\nimage/png png\nimage/jpeg jpg jpeg\nimage/svg+xml svg\napplication/json json\n";

/// Controls a private instance of the system's Apache.
#[derive(Debug, Clone)]
pub(crate) struct ApacheControl {
    pub(crate) spec: Apache,
    pub(crate) plan: PathBuf,
}

/// Everything that does not change with the port.
struct Prepared<'a> {
    control: &'a ApacheControl,
    variant: &'a Variant,
    listen: IpAddr,
    install: Install,
    account: Option<Account>,
    modules: Vec<Module>,
    dir: PathBuf,
    types: PathBuf,
    document_root: PathBuf,
    scripts: Option<PathBuf>,
    php: Option<php::Prepared>,
}

impl Control for ApacheControl {
    fn check(&self, dir: &Path, variant: &Variant) -> Result<(), ServerError> {
        let prepared = self.prepare(dir, variant)?;
        with_free_port(|port| prepared.configure(port)).map(|_| ())
    }

    fn start(&self, place: &Place<'_>, variant: &Variant) -> Result<Running, ServerError> {
        let prepared = self.prepare(place.dir, variant)?;
        let prepared = Prepared { listen: place.listen, ..prepared };
        let master = prepared.php.as_ref().map_or(Ok(None), |php| php.start(place))?;
        Ok(with_free_port(|port| prepared.start(place, port))?.with_php(master))
    }
}

impl ApacheControl {
    /// Looks at the machine and makes the folders; everything that can be wrong before Apache is asked.
    fn prepare<'a>(&'a self, dir: &Path, variant: &'a Variant) -> Result<Prepared<'a>, ServerError> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let install = Install::find(self.spec.program.as_deref(), &path)?;
        let php = self.spec.php.as_ref();
        let module = php.filter(|php| php.way == PhpWay::Module);
        let module = module.map(|_| php::module(&install.modules, self.key("php"))).transpose()?;
        let modules = install.load(&self.spec, module.as_deref())?;
        let grounds = Grounds::prepare(dir, &["conf", "run", "logs"], SERVER, &OF_APACHE)?;
        let document_root = grounds.document_root(self.key("document_root"), self.spec.document_root.as_deref())?;
        let scripts =
            self.spec.scripts.as_ref().map(|folder| grounds.served(self.key("scripts"), folder)).transpose()?;
        grounds.check()?;
        let Grounds { dir, account, .. } = grounds;
        if scripts.is_some() && self.spec.mpm != Mpm::Prefork && dir.as_os_str().as_bytes().len() > SOCKET_ROOM {
            return Err(ServerError::LongPath { folder: dir, most: SOCKET_ROOM });
        }
        let mut types = PathBuf::from("/etc/mime.types");
        if !types.exists() {
            types = dir.join("conf/mime.types");
            fs::write(&types, TYPES).map_err(ServerError::io("write", &types))?;
        }
        let php =
            php.map(|php| php::Prepared::new(php, &dir, account.as_ref(), variant, self.key("php"))).transpose()?;
        Ok(Prepared {
            control: self,
            variant,
            install,
            account,
            modules,
            dir,
            types,
            document_root,
            scripts,
            php,
            listen: Ipv4Addr::LOCALHOST.into(),
        })
    }

    fn key(&self, key: &'static str) -> PlanKey {
        PlanKey { plan: self.plan.clone().into(), service: None, line: self.spec.line(key), key }
    }
}

impl Prepared<'_> {
    /// Writes the configuration for a port and lets Apache test it.
    fn configure(&self, port: u16) -> Result<(PathBuf, Rendered), ServerError> {
        let rendered = render(&Parts {
            root: &self.dir,
            address: SocketAddr::new(self.listen, port),
            account: self.account.as_ref(),
            mpm: self.control.spec.mpm,
            modules: &self.modules,
            types: &self.types,
            document_root: &self.document_root,
            scripts: self.scripts.as_deref(),
            php: self.php.as_ref(),
            common: &self.control.spec.directives,
            variant: &self.variant.directives,
        });
        let file = self.dir.join("conf/httpd.conf");
        fs::write(&file, &rendered.text).map_err(ServerError::io("write", &file))?;
        let mut command = asking(&self.install.program);
        command.args(["-t", "-f"]).arg(&file).envs(self.php.iter().flat_map(php::Prepared::env));
        let Variant { name, allow_warnings, .. } = self.variant;
        let test = Test { command, dir: &self.dir, in_place: false, file: &file, rendered: &rendered };
        check(test, name, allow_warnings, &self.control.plan)?;
        Ok((file, rendered))
    }

    fn start(&self, place: &Place<'_>, port: u16) -> Result<Running, ServerError> {
        let (file, rendered) = self.configure(port)?;
        let mut starting = self.launch(place, port, &file)?;
        starting
            .wait_until_ready(&self.control.spec.ready, Some(&self.control.key("ready")))
            .map_err(|error| port_in_use(&starting.logs).unwrap_or(error))?;
        let pages = Pages::usual(starting.address);
        let timeout = starting.timeout;
        let told = pages.ask(timeout, &mut || starting.still_awaited().is_ok());
        let told = told.map_err(|why| starting.or_ended(no_settings(why)))?;
        if !told.is_of(&file) {
            return Err(ServerError::PortInUse(starting.address));
        }
        let mut notes = Vec::new();
        self.compare(&told, &file, &rendered, &mut notes)?;
        let (since, logs, mpm) = (starting.since, starting.logs.clone(), self.control.spec.mpm);
        let processes = Muster { pages: &pages, mpm, since, timeout, logs: &logs }.wait(
            &told,
            &mut || starting.still_awaited(),
            &mut notes,
        )?;
        notes.extend(complaints(&starting.logs.tail())?);
        let mut settings = told.settings(processes);
        if let Some(php) = &self.php {
            let address = starting.address;
            let told = php.in_force(address, timeout, &mut || starting.still_awaited().is_ok());
            settings.values.extend(told.map_err(|error| starting.or_ended(error))?);
        }
        Ok(starting.running(settings, notes).with_scoreboard())
    }

    fn launch<'a>(&self, place: &Place<'a>, port: u16, file: &Path) -> Result<Starting<'a>, ServerError> {
        let (stderr, log) = (self.dir.join("logs/stderr"), self.dir.join("logs/error.log"));
        for old in [&stderr, &log] {
            // Left by a try with another port.
            let _ = fs::remove_file(old);
        }
        let launch = Launch {
            program: self.install.program.clone(),
            args: [
                "-d".as_ref(),
                self.dir.as_os_str(),
                "-f".as_ref(),
                file.as_os_str(),
                "-D".as_ref(),
                "FOREGROUND".as_ref(),
            ]
            .map(std::ffi::OsStr::to_owned)
            .to_vec(),
            env: [("LC_ALL".into(), "C".into())]
                .into_iter()
                .chain(self.php.iter().flat_map(php::Prepared::env))
                .collect(),
            dir: self.dir.clone(),
            cpus: place.cpus.to_vec(),
            stdout: self.dir.join("logs/stdout"),
            stderr: stderr.clone(),
        };
        let since = Instant::now();
        let child = place.host.spawn(&launch, place.group)?;
        let address = SocketAddr::new(self.listen, port);
        Ok(Starting {
            child,
            address,
            host: None,
            logs: Logs(vec![stderr, log]),
            server: SERVER,
            since,
            timeout: place.ready_timeout,
            interrupted: place.interrupted,
        })
    }

    /// A directive that runs with another value is an error, or a note when the variant allows this very difference.
    fn compare(
        &self,
        told: &Told,
        file: &Path,
        rendered: &Rendered,
        notes: &mut Vec<String>,
    ) -> Result<(), ServerError> {
        for difference in told.differences() {
            let asked = difference.asked;
            let sentence = format!("{} {} is in force instead", asked.name, difference.effective);
            let note = format!("{} {} was asked for, {sentence}", asked.name, asked.value);
            if self.variant.allow_warnings.iter().any(|allowed| note.contains(allowed.as_str())) {
                notes.push(note);
                continue;
            }
            let planned = if asked.file == file { rendered.planned_at(asked.line) } else { None };
            return Err(match planned {
                Some(directive) => blame(&self.control.plan, directive, sentence, SERVER),
                None => ServerError::Configuration {
                    plan: self.control.plan.clone(),
                    variant: self.variant.name.clone(),
                    message: format!("{} {} of {}: {sentence}", asked.name, asked.value, asked.file.display()),
                    server: SERVER,
                },
            });
        }
        Ok(())
    }
}

/// What a server that answers nevertheless complains about in its log.
pub(crate) fn complaints(log: &str) -> Result<Vec<String>, ServerError> {
    if let Some(line) = log.lines().find(|line| NO_CGI_DAEMON.iter().any(|tag| line.contains(tag))) {
        return Err(ServerError::CgiDaemon(line.to_owned()));
    }
    let bad = |line: &&str| [":error]", ":crit]", ":alert]", ":emerg]"].iter().any(|level| line.contains(level));
    // An idle prefork says so when MaxRequestWorkers is below MinSpareServers: no sign of load.
    let expected = |line: &&str| line.contains("AH00161");
    Ok(log.lines().filter(bad).filter(|line| !expected(line)).map(|line| format!("Apache's log: {line}")).collect())
}

/// The address that Apache could not listen on, if that is why it ended.
pub(crate) fn port_in_use(logs: &Logs) -> Option<ServerError> {
    let tail = logs.tail();
    let line = tail.lines().find(|line| line.contains("AH00072") && line.contains("in use"))?;
    line.rsplit(' ').next()?.parse().ok().map(ServerError::PortInUse)
}

pub(crate) fn no_settings(why: String) -> ServerError {
    ServerError::NoSettings { server: SERVER, why }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_is_read() {
        let check = |log: &str, expected: Result<&[&str], &str>| {
            let got = complaints(log).map_err(|error| error.to_string());
            let expected = expected.map(|notes| notes.iter().map(ToString::to_string).collect());
            assert_eq!(got, expected.map_err(str::to_owned));
        };
        check("", Ok(&[]));
        check("[mpm_prefork:notice] [pid 1] AH00163: resuming\n", Ok(&[]));
        check("[mpm_prefork:error] [pid 1] AH00161: server reached MaxRequestWorkers setting\n", Ok(&[]));
        check("[cgi:error] [pid 1] oops\n", Ok(&["Apache's log: [cgi:error] [pid 1] oops"]));
        let line = "[cgid:error] [pid 1] (2)No such file: AH01243: Couldn't bind unix domain socket /run/s";
        check(
            &format!("[cgi:error] [pid 1] oops\n{line}\n"),
            Err(&ServerError::CgiDaemon(line.to_owned()).to_string()),
        );
    }
}
