//! The machine's own running nginx, with a variant's directives in the place of its own.
//!
//! Its files have other content only while nginx reads them; then each is the very file again that it was, while the server goes on with
//! what it has read. So a crash of the machine finds its own configuration, and whoever looks at a file sees it as it is. At the end,
//! however it comes, the server reads its own configuration once more.

mod rules;

use super::SERVER;
use super::check::judge;
use super::crew::{Crew, Muster};
use super::flat::{Becomes, flatten};
use super::machine::servers::{answering, servers};
use super::machine::tree::{Statement, level};
use super::machine::{Configuration, Machine};
use super::meant::{Made, Meant, in_force};
use super::status::{StubStatus, telling};
use crate::control::{Hold, Logs, blame};
use crate::own::{Door, Wait, Watch, free_port};
use crate::status::WebSource;
use crate::{Control, Place, Running, ServerError};
use host::{Borrowed, Host, HostError, Restart, Service};
use model::plan::{Directive, Existing, Nginx, Variant};
use model::trial::EffectiveSettings;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Controls the machine's own nginx.
#[derive(Debug)]
pub(crate) struct InPlaceControl {
    meant: Meant,
    /// Made when the first variant is applied.
    held: Mutex<Option<Held>>,
}

/// The server, in our hands.
#[derive(Debug)]
struct Held {
    machine: Machine,
    service: Service,
    door: Door,
    /// As its files say.
    own: Configuration,
    /// Part of the path that tells one version from another.
    name: String,
    /// Where it tells that it has read one.
    port: u16,
    watch: Arc<Watch>,
    /// Files that have other content now.
    lent: Vec<Borrowed>,
    /// How often something was applied.
    applied: u32,
    /// What it runs with, where that is not what its files say.
    running: Option<Vec<Statement>>,
}

impl Control for InPlaceControl {
    fn check(&self, dir: &Path, variant: &Variant) -> Result<(), ServerError> {
        let machine = self.machine()?;
        let own = machine.configuration().map_err(|error| error.of_machine(&self.meant.key("in_place")))?;
        let door = self.door(&machine, &own)?;
        let service = self.service(&machine)?;
        // nginx binds it to test it, which below 1024 not everybody may.
        let made = self.made(&machine, &own, &door, variant, &telling(&machine.built, free_port()?, "check"))?;
        self.possible(&service, &own.tree, &made, variant)?;
        // A copy beside the configuration: nothing is changed.
        let flat = flatten(&machine.main, &made.tree, &made.texts, "", &mut |_, _| Becomes::Same);
        let file = dir.join("nginx.conf");
        crate::site::write_for_us(&file, &flat.text)?;
        let answer = machine.ask(&file)?;
        let at = |of: &Path, line: usize| {
            let (file, line) = (of == file).then(|| flat.origin(line)).flatten()?;
            made.edited.planned_at(file, *line)
        };
        self.judge(&machine, &answer.said, answer.accepted, variant, &at)
    }

    fn start(&self, place: &Place<'_>, variant: &Variant) -> Result<Running, ServerError> {
        let mut held = self.held();
        if held.is_none() {
            *held = Some(self.take(place.host)?);
        }
        let held = held.as_mut().expect("taken above");
        held.watch.check()?;
        let running = self.apply(held, place, variant);
        if running.is_err() {
            // Visitors are not kept waiting for what comes next. What cannot be done now the journal does.
            let _ = held.back(place.host);
        }
        running
    }
}

impl InPlaceControl {
    pub(crate) fn new(spec: &Nginx, existing: &Existing, plan: &Path) -> InPlaceControl {
        let (spec, existing, plan) = (spec.clone(), existing.clone(), plan.to_owned());
        InPlaceControl { meant: Meant { spec, existing, plan, by: "in_place" }, held: Mutex::new(None) }
    }

    fn held(&self) -> MutexGuard<'_, Option<Held>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn machine(&self) -> Result<Machine, ServerError> {
        let Meant { spec, existing, .. } = &self.meant;
        let named = if existing.main.is_some() { "from" } else { "in_place" };
        Machine::read(spec.program.as_deref(), existing, &self.meant.key(named))
    }

    fn service(&self, machine: &Machine) -> Result<Service, ServerError> {
        host::may_change(&machine.pid_file)?;
        machine.service().map_err(|why| ServerError::Machine { at: self.meant.key("in_place"), why })
    }

    fn door(&self, machine: &Machine, own: &Configuration) -> Result<Door, ServerError> {
        let (mut doors, index) = self.meant.doors(&machine.main, &own.tree)?;
        Ok(doors.swap_remove(index))
    }

    /// Keeps other runs from the server; changes nothing.
    fn take(&self, host: &Host) -> Result<Held, ServerError> {
        // First: a server that another run just restarts does not run, and between two renames its configuration may be none.
        let main = super::machine::main_file(&self.meant.existing)?;
        host.claim(&main)?;
        let machine = self.machine()?;
        let service = self.service(&machine)?;
        let own = machine.configuration().map_err(|error| error.of_machine(&self.meant.key("in_place")))?;
        let (mut doors, index) = self.meant.doors(&machine.main, &own.tree)?;
        Door::claim_all(&doors, &main, host)?;
        let door = doors.swap_remove(index);
        let watch = Arc::new(Watch::begin(machine.clone(), None)?);
        let (name, port) = (host.own_name(), free_port()?);
        Ok(Held { machine, service, door, own, name, port, watch, lent: Vec::new(), applied: 0, running: None })
    }

    /// The configuration with the variant's directives.
    fn made(
        &self,
        machine: &Machine,
        own: &Configuration,
        door: &Door,
        variant: &Variant,
        telling: &str,
    ) -> Result<Made, ServerError> {
        let known = rules::written(&own.tree);
        let servers = servers(&own.tree);
        let ip = door.here(&machine.main, SERVER)?.ip();
        let server = answering(&servers, door, ip, self.meant.existing.host.as_deref()).map(|server| server.block);
        self.meant.made((&machine.main, own), server, variant, &|text| rules::objection(text, &known), telling)
    }

    fn judge<'a>(
        &self,
        machine: &Machine,
        said: &str,
        accepted: bool,
        variant: &Variant,
        at: &dyn Fn(&Path, usize) -> Option<&'a Directive>,
    ) -> Result<(), ServerError> {
        let allowed: Vec<String> = variant.allow_warnings.iter().chain(&machine.warnings).cloned().collect();
        judge(said, accepted, &allowed, (variant, &self.meant.plan), at)
    }

    /// How it comes into force, if it can.
    fn possible(
        &self,
        service: &Service,
        before: &[Statement],
        made: &Made,
        variant: &Variant,
    ) -> Result<Restart, ServerError> {
        let Some(name) = rules::needs_full(before, &made.tree) else { return Ok(Restart::Graceful) };
        let stays = level(&made.tree).into_iter().any(|it| it.is("daemon") && it.value() == "off");
        let foreground = || {
            let name = &service.name;
            format!("the server of {name} runs in the foreground of whoever started it, who alone can start it again")
        };
        let refused = service.can_start().err().or_else(|| stays.then(foreground));
        let lines: Vec<Directive> = made.planned.iter().flat_map(|it| it.lines.clone()).collect();
        match (refused, rules::line_of(&name, &lines)) {
            (None, _) => Ok(Restart::Full),
            (Some(why), Some(line)) => {
                Err(blame(&self.meant.plan, line, format!("takes effect only when the server starts; {why}"), SERVER))
            }
            (Some(message), None) => {
                let (plan, variant) = (self.meant.plan.clone(), variant.name.clone());
                Err(ServerError::Configuration { plan, variant, message, server: SERVER })
            }
        }
    }

    fn apply(&self, held: &mut Held, place: &Place<'_>, variant: &Variant) -> Result<Running, ServerError> {
        held.applied += 1;
        let token = format!("{}-{}", held.name, held.applied);
        let made =
            self.made(&held.machine, &held.own, &held.door, variant, &telling(&held.machine.built, held.port, &token))?;
        let before = held.running.as_ref().unwrap_or(&held.own.tree);
        let how = self.possible(&held.service, before, &made, variant)?;
        // Somebody may have it read what lies there before it is told to.
        let mut due = place.host.will_restart(&held.service, Restart::Graceful)?;
        for (file, text) in made.edited.texts() {
            let content = text.as_bytes().to_vec();
            let put = place.host.borrow_file(file, Some(std::slice::from_ref(&content))).and_then(|file| {
                let put = file.put(Some(&content));
                held.lent.push(file);
                put
            });
            if let Err(error) = put {
                place.host.will_not_restart(due)?;
                return Err(error.into());
            }
            // From here on somebody may have it read what was put.
            due = None;
        }
        let answer = held.machine.ask(&held.machine.main)?;
        let at = |file: &Path, line: usize| made.edited.planned_at(file, line);
        self.judge(&held.machine, &answer.said, answer.accepted, variant, &at)?;
        let read = Configuration::of(&held.machine.main, &answer.files).map_err(super::machine::Unread::of_running)?;
        let (before, since) = (held.service.workers(), Instant::now());
        held.running = Some(made.tree.clone());
        place.host.restart(&held.service, how)?;
        let (timeout, logs) = (place.ready_timeout, Logs(vec![held.machine.error_log.clone()]));
        let wait =
            Wait { service: &held.service, server: SERVER, since, timeout, logs, interrupted: place.interrupted };
        let told = SocketAddr::from((Ipv4Addr::LOCALHOST, held.port));
        let page = format!("/webdyno-{token}");
        wait.until_answered(told, None, &page, None)?;
        // It has read them.
        held.lent.drain(..).rev().try_for_each(Borrowed::give_back)?;
        let address = held.door.here(&held.machine.main, SERVER)?;
        let host = self.meant.existing.host.clone();
        if !held.door.tls {
            wait.until_answered(address, host.as_deref(), &self.meant.spec.ready, Some(&self.meant.key("ready")))?;
        }
        let mut notes = Vec::new();
        let servers = servers(&read.tree);
        let server = answering(&servers, &held.door, address.ip(), host.as_deref());
        let (values, found) = in_force(&read.tree, server, &made.planned);
        let mut muster = Muster {
            workers: &|| held.service.workers().into_iter().filter(|pid| !before.contains(pid)).collect(),
            still_awaited: &mut || wait.still_awaited(),
            since,
            timeout,
            logs: &wait.logs,
        };
        let crew = Crew::wait(&mut muster, values.get("worker_processes").map(String::as_str))?;
        let settings = EffectiveSettings { server: held.machine.built.version.clone(), values, worker_limit: None };
        let found = found.into_iter().chain(crew.differs(&made.planned));
        self.meant.accept(found, variant, &mut notes)?;
        wait.until_gone(&before, &mut notes);
        let pid = held.service.pid().ok_or_else(|| wait.died())?;
        let (service, watch) = (Box::new(held.service.clone()), Arc::clone(&held.watch));
        let hold = Hold::Service { service, watch, told: Some((told, page)) };
        let running = Running::held(hold, (address, host, held.door.tls), pid, crew.counted(settings), notes);
        let status = StubStatus::Port(told, format!("/webdyno-{token}/status"));
        let running = running.with_status(held.machine.built.has_status.then_some(WebSource::Nginx(status)));
        Ok(running.with_pool_behind())
    }
}

impl Held {
    /// The server with what its files say.
    fn back(&mut self, host: &Host) -> Result<(), ServerError> {
        self.lent.drain(..).rev().try_for_each(Borrowed::give_back)?;
        let Some(running) = self.running.take() else { return Ok(()) };
        let full = rules::needs_full(&running, &self.own.tree).is_some();
        // As it is now: somebody may be in the middle of a change of it.
        self.service.test().map_err(HostError::Service)?;
        Ok(host.restart(&self.service, if full { Restart::Full } else { Restart::Graceful })?)
    }
}
