//! A private instance with the machine's own configuration: same modules, virtual hosts and documents; ports, sockets, logs and caches of
//! its own. nginx only ever reads the copy.

mod original;
mod places;
mod rewrite;

use super::check::judge;
use super::crew::{Crew, Muster};
use super::launch::{complaints, in_use, launch};
use super::machine::servers::{Server, answering, doors, servers};
use super::machine::{MAIN_FILES, Machine, warnings, without_place};
use super::meant::{Made, Meant, in_force};
use super::status::{StubStatus, telling};
use crate::control::Starting;
use crate::own::{Door, Watch, usual};
use crate::port::with_free_ports;
use crate::program::{ask, asking, if_denied};
use crate::running::processes;
use crate::site::{folder, write_for_us};
use crate::status::WebSource;
use crate::{Control, OwnNginx, Place, PlanKey, Running, ServerError};
use model::plan::{Existing, Nginx, Variant};
use model::trial::EffectiveSettings;
use original::Original;
use rewrite::{Rewritten, Wanted, objection, rewrite};
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Controls private instances derived from the machine's configuration.
#[derive(Debug)]
pub(crate) struct DerivedControl {
    meant: Meant,
    /// The configuration that the first of them was derived from: all others are to be of the same.
    watch: Mutex<Option<Watch>>,
}

/// Everything that does not change with the ports.
struct Prepared<'a> {
    meant: &'a Meant,
    variant: &'a Variant,
    original: Original,
    doors: Vec<Door>,
    /// Which of them the load goes to.
    door: usize,
    is_root: bool,
    dir: PathBuf,
}

/// A configuration that nginx accepts.
struct Configured {
    file: PathBuf,
    made: Made,
    /// Where it tells that it has begun, and the path of that.
    telling: (SocketAddr, String),
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
    pub(crate) fn new(spec: &Nginx, existing: &Existing, plan: &Path) -> DerivedControl {
        let (spec, existing, plan) = (spec.clone(), existing.clone(), plan.to_owned());
        DerivedControl { meant: Meant { spec, existing, plan, by: "from" }, watch: Mutex::new(None) }
    }

    /// An error when the machine's configuration is no longer that of the instances before.
    fn unchanged(&self, original: &Original) -> Result<(), ServerError> {
        let mut watch = self.watch.lock().unwrap_or_else(PoisonError::into_inner);
        match watch.as_ref() {
            Some(watch) => watch.check(),
            None => {
                *watch = Some(Watch::begin(original.clone(), None)?);
                Ok(())
            }
        }
    }

    fn prepare<'a>(&'a self, dir: &Path, variant: &'a Variant) -> Result<Prepared<'a>, ServerError> {
        let Meant { spec, existing, .. } = &self.meant;
        let original = Original::read(spec.program.as_deref(), existing, &self.meant.key("from"))?;
        self.unchanged(&original)?;
        let (doors, door) = self.meant.doors(&original.main, &original.own.tree)?;
        folder(dir, 0o711)?;
        let dir = dir.canonicalize().map_err(ServerError::io("resolve", dir))?;
        for name in ["conf", "run", "logs"] {
            folder(&dir.join(name), 0o711)?;
        }
        folder(&dir.join(places::BY_NAME), 0o777)?;
        beside(&original.main, &dir.join("conf"))?;
        let is_root = rustix::process::geteuid().is_root();
        Ok(Prepared { meant: &self.meant, variant, original, doors, door, is_root, dir })
    }
}

impl Prepared<'_> {
    /// How many ports are needed: one for each door, and one to tell that it has begun.
    fn ports(&self) -> usize {
        self.doors.len() + 1
    }

    /// Writes the configuration for these ports and lets nginx test it, first without the plan's directives: what it says then is about
    /// the machine's configuration.
    fn configure(&self, ports: &[u16]) -> Result<Configured, ServerError> {
        let (port, token) = (ports[self.doors.len()], host::secret()?);
        let telling_lines = telling(&self.original.built, port, &token);
        let file = self.dir.join("conf/nginx.conf");
        let as_is = Variant { directives: Vec::new(), ..self.variant.clone() };
        let bare = Meant { spec: Nginx { directives: Vec::new(), ..self.meant.spec.clone() }, ..self.meant.clone() };
        let (own, _) = self.written(&bare, &as_is, (ports, &telling_lines), &file)?;
        let (accepted, said) = self.test(&file, &own, ports)?;
        let known = self.warnings_of_the_machine(accepted, &said)?;
        let (copy, made) = self.written(self.meant, self.variant, (ports, &telling_lines), &file)?;
        let (accepted, said) = self.test(&file, &copy, ports)?;
        let allowed: Vec<String> = self.variant.allow_warnings.iter().chain(&known).cloned().collect();
        let at = |file: &Path, line: usize| made.edited.planned_at(file, line);
        judge(&said, accepted, &allowed, (self.variant, &self.meant.plan), &at)?;
        let known = known.iter().map(|warning| format!("nginx warns of the machine's configuration: {warning}"));
        let notes = known.chain(copy.notes).collect();
        let telling = (SocketAddr::from((Ipv4Addr::LOCALHOST, port)), format!("/webdyno-{token}"));
        Ok(Configured { file, made, telling, notes })
    }

    /// The copy with a variant's directives, as a file.
    fn written(
        &self,
        meant: &Meant,
        variant: &Variant,
        (ports, telling): (&[u16], &str),
        file: &Path,
    ) -> Result<(Rewritten, Made), ServerError> {
        let Original { main, own, prefix, built, .. } = &self.original;
        let servers = servers(&own.tree);
        let server = self.answering(&servers).map(|server| server.block);
        let made = meant.made((main, own), server, variant, &|text| objection(text, self.is_root), "")?;
        let (doors, dir, is_root) = (&self.doors, &self.dir, self.is_root);
        let copy =
            rewrite(&made.tree, &made.texts, &Wanted { main, prefix, built, doors, ports, dir, is_root, telling });
        write_for_us(file, &copy.flat.text)?;
        Ok((copy, made))
    }

    /// The server that answers what comes to the door. Each door has a port of its own here, also those that others are part of.
    fn answering<'a, 'b>(&self, servers: &'b [Server<'a>]) -> Option<&'b Server<'a>> {
        let host = self.meant.existing.host.as_deref().unwrap_or("127.0.0.1");
        answering(servers, &self.doors[self.door], Ipv4Addr::UNSPECIFIED.into(), Some(host))
    }

    /// Whether nginx accepts the copy, and what it says, with the places in the machine's own files.
    fn test(&self, file: &Path, copy: &Rewritten, ports: &[u16]) -> Result<(bool, String), ServerError> {
        self.without_sockets()?;
        let mut test = asking(&self.original.program);
        test.args(["-t", "-q", "-p"]).arg(&self.original.prefix).arg("-c").arg(file);
        let output = ask(test.arg("-e").arg(self.dir.join("logs/error.log")).current_dir(&self.dir))?;
        let said = String::from_utf8_lossy(&output.stderr);
        if in_use(&said) {
            return Err(ServerError::PortInUse((Ipv4Addr::LOCALHOST, ports[self.door]).into()));
        }
        let placed = |line: &str| {
            let message = without_place(line);
            let number = line[message.len()..].rsplit_once(':').and_then(|(_, number)| number.parse().ok());
            match number.and_then(|number| copy.flat.origin(number)) {
                Some((file, line)) => format!("{message} in {}:{line}\n", file.display()),
                None => format!("{line}\n"),
            }
        };
        Ok((output.status.success(), said.lines().map(placed).collect()))
    }

    /// Left by a test, or by a try with other ports that was ended by force.
    fn without_sockets(&self) -> Result<(), ServerError> {
        let run = self.dir.join("run");
        for entry in fs::read_dir(&run).map_err(ServerError::io("read", &run))?.flatten() {
            if entry.path().extension().is_some_and(|ending| ending == places::SOCKET) {
                let _ = fs::remove_file(entry.path());
            }
        }
        Ok(())
    }

    fn warnings_of_the_machine(&self, accepted: bool, said: &str) -> Result<Vec<String>, ServerError> {
        if accepted {
            return Ok(warnings(said));
        }
        let Some(why) = super::check::complaint(said, false, &[]) else { return Ok(Vec::new()) };
        let why = format!("{why}{}", if_denied(&why));
        Err(ServerError::Machine { at: self.meant.key("from"), why })
    }

    fn start(&self, place: &Place<'_>, ports: &[u16]) -> Result<Running, ServerError> {
        let Configured { file, made, telling, mut notes } = self.configure(ports)?;
        self.without_sockets()?;
        let Original { program, prefix, built, .. } = &self.original;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, ports[self.door]));
        let mut starting = launch(place, (program, prefix, &file), &self.dir, address)?;
        let tls = self.doors[self.door].tls;
        self.wait(&mut starting, &telling, tls)
            .map_err(|error| if in_use(&starting.logs.tail()) { ServerError::PortInUse(address) } else { error })?;
        let servers = servers(&made.tree);
        let (values, found) = in_force(&made.tree, self.answering(&servers), &made.planned);
        let crew = self.muster(&mut starting, values.get("worker_processes").map(String::as_str))?;
        let found = found.into_iter().chain(crew.differs(&made.planned));
        self.meant.accept(found, self.variant, &mut notes)?;
        notes.extend(complaints(&starting.logs.tail()));
        let settings = EffectiveSettings { server: built.version.clone(), values, worker_limit: None };
        let status = StubStatus::Port(telling.0, format!("{}/status", telling.1));
        let mut running = starting.running(crew.counted(settings), notes);
        running.tls = tls;
        Ok(running.with_status(built.has_status.then_some(WebSource::Nginx(status))).with_pool_behind())
    }

    /// Until it has begun, and answers what the plan asks for; behind TLS nothing is asked for before it is measured.
    fn wait(&self, starting: &mut Starting<'_>, telling: &(SocketAddr, String), tls: bool) -> Result<(), ServerError> {
        let asked = std::mem::replace(&mut starting.address, telling.0);
        let begun = starting.wait_until_ready(&telling.1, None);
        starting.address = asked;
        begun?;
        starting.host.clone_from(&self.meant.existing.host);
        if tls {
            return Ok(());
        }
        starting.wait_until_ready(&self.meant.spec.ready, Some(&self.meant.key("ready")))
    }

    fn muster(&self, starting: &mut Starting<'_>, worker_processes: Option<&str>) -> Result<Crew, ServerError> {
        let (pid, since, timeout, logs) = (starting.child.pid, starting.since, starting.timeout, starting.logs.clone());
        let children = || {
            let all = processes::all(Path::new("/proc"));
            all.into_iter().filter(|process| process.parent == pid).map(|process| process.pid).collect()
        };
        let still_awaited = &mut || starting.still_awaited();
        Crew::wait(&mut Muster { workers: &children, still_awaited, since, timeout, logs: &logs }, worker_processes)
    }
}

/// The machine's own, as far as it can be read; `None` where there is none. nginx tests only for root what only root may open, such as its pid
/// file; others can have a copy of it all the same.
pub(crate) fn own() -> Result<Option<OwnNginx>, ServerError> {
    let Ok(main) = usual(&MAIN_FILES) else { return Ok(None) };
    let (existing, at) = (Existing::default(), PlanKey { plan: main.into(), service: None, line: 1, key: "from" });
    // There is no plan to blame.
    let told = |error: ServerError| match error {
        ServerError::Machine { why, .. } => ServerError::Unread(why),
        other => other,
    };
    let (tree, is_running, main) = if rustix::process::geteuid().is_root() {
        let machine = Machine::read(None, &existing, &at).map_err(told)?;
        let tree = machine.configuration().map_err(|error| told(error.of_machine(&at)))?.tree;
        (tree, machine.service().is_ok(), machine.main)
    } else {
        let original = Original::read(None, &existing, &at).map_err(told)?;
        (original.own.tree, original.is_running, original.main)
    };
    let mut ports: Vec<u16> = doors(&servers(&tree)).iter().map(|door| door.port).collect();
    ports.sort_unstable();
    ports.dedup();
    Ok(Some(OwnNginx { is_running, ports, main }))
}

/// What a copy of the plan's configuration would be without, one sentence each.
pub(crate) fn left_out(spec: &Nginx, existing: &Existing, plan: &Path) -> Result<Vec<String>, ServerError> {
    let key = PlanKey { plan: plan.into(), service: None, line: spec.line("from"), key: "from" };
    let Original { main, prefix, built, own, .. } = &Original::read(spec.program.as_deref(), existing, &key)?;
    let (doors, dir) = (doors(&servers(&own.tree)), Path::new("/"));
    let ports = vec![0; doors.len()];
    let wanted = Wanted { main, prefix, built, doors: &doors, ports: &ports, dir, is_root: true, telling: "" };
    Ok(rewrite(&own.tree, &own.texts, &wanted).notes)
}

/// Gives a folder what lies beside the main file, by links: directives that are not known here may name it.
fn beside(main: &Path, own: &Path) -> Result<(), ServerError> {
    let theirs = main.parent().unwrap_or(Path::new("/"));
    for entry in fs::read_dir(theirs).map_err(ServerError::io("read", theirs))?.flatten() {
        let link = own.join(entry.file_name());
        if entry.file_name() != "nginx.conf" && !link.is_symlink() {
            symlink(entry.path(), &link).map_err(ServerError::io("make", &link))?;
        }
    }
    Ok(())
}
