//! A private instance with the machine's own configuration: same modules, virtual hosts and documents; ports, logs and locks of its own.

mod rewrite;

use super::SERVER;
use super::check::{Test, check, complaint_of};
use super::crew::Muster;
use super::instance::{complaints, no_settings, port_in_use};
use super::keeping::worth_keeping;
use super::machine::Machine;
use super::machine::ports::{answers, doors};
use super::machine::tree::virtual_hosts;
use super::overridden::{accept, different, overridden};
use super::pages::telling;
use super::render::Rendered;
use super::settings::{Pages, Told};
use crate::control::{Logs, Starting};
use crate::own::{Door, Watch, pick};
use crate::port::with_free_ports;
use crate::program::{ask, asking, if_denied};
use crate::site::{folder, write_for_us};
use crate::{Control, Place, PlanKey, Running, ServerError};
use host::Launch;
use model::plan::{Apache, Existing, Variant};
use rewrite::{Rewritten, Wanted, rewrite};
use std::ffi::OsString;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// What part of the environment names places of the machine's own server.
const PLACES: [(&str, &str); 4] = [
    ("APACHE_LOCK_DIR", "run"),
    ("APACHE_LOG_DIR", "logs"),
    ("APACHE_PID_FILE", "run/httpd.pid"),
    ("APACHE_RUN_DIR", "run"),
];

/// Controls private instances derived from the machine's configuration.
#[derive(Debug)]
pub(crate) struct DerivedControl {
    spec: Apache,
    existing: Existing,
    plan: PathBuf,
    /// The configuration that the first of them was derived from: all others are to be of the same.
    watch: Mutex<Option<Watch>>,
}

/// Everything that does not change with the ports.
struct Prepared<'a> {
    control: &'a DerivedControl,
    variant: &'a Variant,
    machine: Machine,
    doors: Vec<Door>,
    /// Which of them the load goes to.
    door: usize,
    dir: PathBuf,
}

/// A configuration that Apache accepts.
struct Configured {
    file: PathBuf,
    rendered: Rendered,
    pages: Pages,
    address: SocketAddr,
    notes: Vec<String>,
}

impl Control for DerivedControl {
    fn check(&self, dir: &Path, variant: &Variant) -> Result<(), ServerError> {
        let prepared = self.prepare(dir, variant)?;
        with_free_ports(prepared.ports(), |ports| prepared.configure(ports)).map(|_| ())
    }

    fn start(&self, place: &Place<'_>, variant: &Variant) -> Result<Running, ServerError> {
        let prepared = self.prepare(place.dir, variant)?;
        with_free_ports(prepared.ports(), |ports| prepared.start(place, ports))
    }
}

impl DerivedControl {
    pub(crate) fn new(spec: &Apache, existing: &Existing, plan: &Path) -> DerivedControl {
        let (spec, existing) = (spec.clone(), existing.clone());
        DerivedControl { spec, existing, plan: plan.to_owned(), watch: Mutex::new(None) }
    }

    /// An error when the machine's configuration is no longer that of the instances before.
    fn unchanged(&self, machine: &Machine) -> Result<(), ServerError> {
        let mut watch = self.watch.lock().unwrap_or_else(PoisonError::into_inner);
        match watch.as_ref() {
            Some(watch) => watch.check(),
            None => {
                *watch = Some(Watch::begin(machine.clone(), None)?);
                Ok(())
            }
        }
    }

    fn prepare<'a>(&'a self, dir: &Path, variant: &'a Variant) -> Result<Prepared<'a>, ServerError> {
        let machine = Machine::read(self.spec.program.as_deref(), &self.existing, &self.key("from"))?;
        self.unchanged(&machine)?;
        let doors = doors(&machine.lines);
        let door = pick(&doors, self.existing.port, &machine.main, self.key("port"))?;
        folder(dir, 0o711)?;
        let dir = dir.canonicalize().map_err(ServerError::io("resolve", dir))?;
        for name in ["conf", "run", "logs"] {
            folder(&dir.join(name), 0o711)?;
        }
        Ok(Prepared { control: self, variant, machine, doors, door, dir })
    }

    fn key(&self, key: &'static str) -> PlanKey {
        PlanKey { plan: self.plan.clone().into(), service: None, line: self.spec.line(key), key }
    }
}

impl Prepared<'_> {
    /// How many ports are needed: one for each door, and one for the pages.
    fn ports(&self) -> usize {
        self.doors.len() + 1
    }

    /// Writes the configuration for these ports and lets Apache test it, first without the plan's directives: what it says then is
    /// about the machine's configuration.
    fn configure(&self, ports: &[u16]) -> Result<Configured, ServerError> {
        let (control, pages) = telling(&self.machine, ports[self.doors.len()], &host::secret()?)?;
        let is_root = rustix::process::geteuid().is_root();
        let (machine, doors, dir) = (&self.machine, &self.doors, &self.dir);
        let made = rewrite(&Wanted { machine, doors, ports, dir, is_root, control: &control });
        for shared in &made.folders {
            folder(shared, 0o777)?;
        }
        let file = self.dir.join("conf/httpd.conf");
        write_for_us(&file, &made.text)?;
        let known = self.warnings_of_the_machine(&file, &made)?;
        let rendered = Rendered::of(made.text, &self.control.spec.directives, &self.variant.directives);
        write_for_us(&file, &rendered.text)?;
        let allowed: Vec<String> = self.variant.allow_warnings.iter().chain(&known).cloned().collect();
        let test =
            Test { command: self.test(&file), dir: &self.dir, in_place: false, file: &file, rendered: &rendered };
        check(test, &self.variant.name, &allowed, &self.control.plan)?;
        let mut notes: Vec<String> =
            known.iter().map(|warning| format!("Apache warns of the machine's configuration: {warning}")).collect();
        match made.piped {
            0 => {}
            piped => notes.push(format!("logs that the machine's server pipes to a program ({piped}) are files here")),
        }
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, ports[self.door]));
        Ok(Configured { file, rendered, pages, address, notes })
    }

    fn test(&self, file: &Path) -> std::process::Command {
        let mut test = asking(&self.machine.install.program);
        test.env_clear().envs(self.environment()).arg("-t").arg("-f").arg(file).args(self.machine.defines());
        test
    }

    fn warnings_of_the_machine(&self, file: &Path, made: &Rewritten) -> Result<Vec<String>, ServerError> {
        let output = ask(&mut self.test(file))?;
        let said = String::from_utf8_lossy(&output.stderr);
        let Some((line, message)) = complaint_of(&said, output.status.success()) else {
            return Ok(super::check::warnings(&said));
        };
        let place = line.and_then(|line| made.place(line)).map(|place| format!("{place}: ")).unwrap_or_default();
        let why = format!("{place}{message}{}", if_denied(&message));
        Err(ServerError::Machine { at: self.control.key("from"), why })
    }

    /// The machine's, with our own places.
    fn environment(&self) -> Vec<(OsString, OsString)> {
        let ours = |(name, value): &(OsString, OsString)| {
            let own =
                PLACES.iter().find(|(place, _)| name == place).map(|(_, own)| self.dir.join(own).into_os_string());
            (name.clone(), own.unwrap_or_else(|| value.clone()))
        };
        let environment = self.machine.environment.iter().map(ours);
        environment.filter(|(name, _)| name != "LC_ALL").chain([("LC_ALL".into(), "C".into())]).collect()
    }

    fn start(&self, place: &Place<'_>, ports: &[u16]) -> Result<Running, ServerError> {
        let configured = self.configure(ports)?;
        let Configured { file, rendered, pages, .. } = &configured;
        let mut starting = self.launch(place, &configured)?;
        let tls = self.doors[self.door].tls;
        let ready = if tls {
            self.wait_for_pages(&mut starting, pages)
        } else {
            starting.wait_until_ready(&self.control.spec.ready, Some(&self.control.key("ready")))
        };
        ready.map_err(|error| port_in_use(&starting.logs).unwrap_or(error))?;
        let told = pages
            .ask(starting.timeout, &mut || starting.still_awaited().is_ok())
            .map_err(|why| port_in_use(&starting.logs).unwrap_or_else(|| starting.or_ended(no_settings(why))))?;
        if !told.is_of(file) {
            return Err(ServerError::PortInUse(pages.address));
        }
        let mut notes = configured.notes.clone();
        self.compare(&told, file, rendered, &mut notes)?;
        let (since, timeout, logs) = (starting.since, starting.timeout, starting.logs.clone());
        let muster = Muster { pages, mpm: self.machine.mpm, since, timeout, logs: &logs };
        let processes = muster.wait(&told, &mut || starting.still_awaited(), &mut notes)?;
        notes.extend(complaints(&starting.logs.tail())?);
        let mut running =
            starting.running(worth_keeping(told.settings(processes), &rendered.planned), notes).with_scoreboard();
        running.tls = tls;
        Ok(running.with_pool_behind())
    }

    /// Behind TLS nothing is asked for before it is measured; the server has begun when its pages are there.
    fn wait_for_pages(&self, starting: &mut Starting<'_>, pages: &Pages) -> Result<(), ServerError> {
        let asked = std::mem::replace(&mut starting.address, pages.address);
        let host = starting.host.take();
        let ready = starting.wait_until_ready(&format!("{}?auto", pages.status), None);
        (starting.address, starting.host) = (asked, host);
        ready
    }

    fn launch<'a>(&self, place: &Place<'a>, configured: &Configured) -> Result<Starting<'a>, ServerError> {
        let (stderr, log) = (self.dir.join("logs/stderr"), self.dir.join("logs/error.log"));
        for old in [&stderr, &log] {
            // Left by a try with other ports.
            let _ = fs::remove_file(old);
        }
        let launch = Launch {
            program: self.machine.install.program.clone(),
            args: ["-f".into(), configured.file.clone().into(), "-D".into(), "FOREGROUND".into()]
                .into_iter()
                .chain(self.machine.defines())
                .collect(),
            env: self.environment(),
            dir: self.dir.clone(),
            cpus: place.cpus.to_vec(),
            stdout: self.dir.join("logs/stdout"),
            stderr: stderr.clone(),
        };
        let since = Instant::now();
        let child = place.host.spawn(&launch, place.group)?;
        let (address, logs, timeout) = (configured.address, Logs(vec![stderr, log]), place.ready_timeout);
        let host = self.control.existing.host.clone();
        let interrupted = place.interrupted;
        Ok(Starting { child, address, host, logs, server: SERVER, since, timeout, interrupted })
    }

    /// A directive of the plan's that runs with another value is an error, or a note when the variant allows this very difference; one of
    /// the machine's own is a note.
    fn compare(
        &self,
        told: &Told,
        file: &Path,
        rendered: &Rendered,
        notes: &mut Vec<String>,
    ) -> Result<(), ServerError> {
        let hosts = virtual_hosts(&self.machine.lines);
        let answering = answers(&hosts, &self.doors[self.door], self.control.existing.host.as_deref());
        let mut found: Vec<_> = overridden(&rendered.planned, answering).collect();
        found.extend(different(told, rendered, file, notes));
        accept(found, self.variant, &self.control.plan, notes)
    }
}
