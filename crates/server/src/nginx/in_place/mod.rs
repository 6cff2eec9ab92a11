//! The machine's own running nginx, with a variant's directives in the place of its own.
//!
//! Its files have other content only while nginx reads them; then each is the very file again that it was, while the server goes on with
//! what it has read. So a crash of the machine finds its own configuration, and whoever looks at a file sees it as it is. At the end,
//! however it comes, the server reads its own configuration once more.

mod crew;
mod edit;
mod flat;
mod rules;

use super::SERVER;
use super::check::judge;
use super::lines::{Context, Planned, planned};
use super::machine::servers::{answering, doors, servers};
use super::machine::tree::{Statement, level};
use super::machine::{Configuration, Machine, tree};
use super::status::StubStatus;
use crate::control::{Hold, Logs, blame};
use crate::own::{Door, Wait, Watch, free_port, pick};
use crate::status::WebSource;
use crate::{Control, Place, PlanKey, Running, ServerError};
use crew::Crew;
use edit::{Edited, edit};
use flat::flatten;
use host::{Borrowed, Host, HostError, Restart, Service};
use model::plan::{Directive, Existing, Nginx, Variant};
use model::trial::EffectiveSettings;
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Settings that decide how requests are worked on, kept with a run.
const KEPT: [&str; 22] = [
    "accept_mutex",
    "access_log",
    "aio",
    "gzip",
    "keepalive_requests",
    "keepalive_timeout",
    "limit_conn",
    "limit_conn_zone",
    "limit_req",
    "limit_req_zone",
    "listen",
    "multi_accept",
    "open_file_cache",
    "sendfile",
    "sendfile_max_chunk",
    "tcp_nodelay",
    "tcp_nopush",
    "thread_pool",
    "worker_connections",
    "worker_cpu_affinity",
    "worker_processes",
    "worker_rlimit_nofile",
];

/// Controls the machine's own nginx.
#[derive(Debug)]
pub(crate) struct InPlaceControl {
    spec: Nginx,
    existing: Existing,
    plan: PathBuf,
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

/// A directive of the plan's without effect, and why.
type Without<'a> = (&'a Directive, String);

/// A variant, ready to be read.
struct Made {
    edited: Edited,
    planned: Vec<Planned>,
    /// All files as they become, taken apart.
    tree: Vec<Statement>,
    texts: BTreeMap<PathBuf, String>,
}

impl Control for InPlaceControl {
    fn check(&self, dir: &Path, variant: &Variant) -> Result<(), ServerError> {
        let machine = self.machine()?;
        let own = machine.configuration().map_err(|error| error.of_machine(&self.key("in_place")))?;
        let door = self.door(&machine, &own)?;
        let service = self.service(&machine)?;
        // nginx binds it to test it, which below 1024 not everybody may.
        let made = self.made(&machine, &own, &door, variant, &telling(&machine, free_port()?, "check"))?;
        self.possible(&service, &own.tree, &made, variant)?;
        // A copy beside the configuration: nothing is changed.
        let flat = flatten(&machine.main, &made.tree, &made.texts);
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
        let (spec, existing) = (spec.clone(), existing.clone());
        InPlaceControl { spec, existing, plan: plan.to_owned(), held: Mutex::new(None) }
    }

    fn held(&self) -> MutexGuard<'_, Option<Held>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn key(&self, key: &'static str) -> PlanKey {
        PlanKey { plan: self.plan.clone(), line: self.spec.line(key), key }
    }

    fn machine(&self) -> Result<Machine, ServerError> {
        Machine::read(self.spec.program.as_deref(), &self.existing, &self.key("in_place"))
    }

    fn service(&self, machine: &Machine) -> Result<Service, ServerError> {
        host::may_change(&machine.pid_file)?;
        machine.service().map_err(|why| ServerError::Machine { at: self.key("in_place"), why })
    }

    fn door(&self, machine: &Machine, own: &Configuration) -> Result<Door, ServerError> {
        let mut doors = doors(&servers(&own.tree));
        let index = pick(&doors, self.existing.port, &machine.main, self.key("port"))?;
        Ok(doors.swap_remove(index))
    }

    /// Keeps other runs from the server; changes nothing.
    fn take(&self, host: &Host) -> Result<Held, ServerError> {
        // First: a server that another run just restarts does not run, and between two renames its configuration may be none.
        host.claim(&super::machine::main_file(&self.existing)?)?;
        let machine = self.machine()?;
        let service = self.service(&machine)?;
        let own = machine.configuration().map_err(|error| error.of_machine(&self.key("in_place")))?;
        let door = self.door(&machine, &own)?;
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
        let blamed = |(directive, why): (Directive, String)| blame(&self.plan, &directive, why, SERVER);
        let objection = |text: &str| rules::objection(text, &known);
        let planned = planned(&self.spec.directives, &variant.directives, &objection).map_err(blamed)?;
        let servers = servers(&own.tree);
        let ip = door.here(&machine.main, SERVER)?.ip();
        let server = answering(&servers, door, ip, self.existing.host.as_deref()).map(|server| server.block);
        let edited = edit(own, &machine.main, &planned, server, telling).map_err(|(line, why)| match line {
            Some(line) => blamed((line, why)),
            None => ServerError::Machine { at: self.key("in_place"), why },
        })?;
        let texts = edited.all(own);
        let tree = tree::parse(&machine.main, &texts).map_err(|message| {
            let (plan, variant) = (self.plan.clone(), variant.name.clone());
            ServerError::Configuration { plan, variant, message, server: SERVER }
        })?;
        Ok(Made { edited, planned, tree, texts })
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
        judge(said, accepted, &allowed, (variant, &self.plan), at)
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
                Err(blame(&self.plan, line, format!("takes effect only when the server starts; {why}"), SERVER))
            }
            (Some(message), None) => {
                let (plan, variant) = (self.plan.clone(), variant.name.clone());
                Err(ServerError::Configuration { plan, variant, message, server: SERVER })
            }
        }
    }

    fn apply(&self, held: &mut Held, place: &Place<'_>, variant: &Variant) -> Result<Running, ServerError> {
        held.applied += 1;
        let token = format!("{}-{}", held.name, held.applied);
        let made =
            self.made(&held.machine, &held.own, &held.door, variant, &telling(&held.machine, held.port, &token))?;
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
        let wait = Wait { service: &held.service, server: SERVER, since, timeout, logs };
        let told = SocketAddr::from((Ipv4Addr::LOCALHOST, held.port));
        let page = format!("/webdyno-{token}");
        wait.until_answered(told, None, &page, None)?;
        // It has read them.
        held.lent.drain(..).rev().try_for_each(Borrowed::give_back)?;
        let address = held.door.here(&held.machine.main, SERVER)?;
        let host = self.existing.host.clone();
        if !held.door.tls {
            wait.until_answered(address, host.as_deref(), &self.spec.ready, Some(&self.key("ready")))?;
        }
        let mut notes = Vec::new();
        let (values, found) = self.in_force(held, &read, &made, address)?;
        let crew = Crew::wait(&wait, &before, values.get("worker_processes").map(String::as_str))?;
        let settings = EffectiveSettings { server: held.machine.version.clone(), values, worker_limit: None };
        let found = found.into_iter().chain(crew.differs(&made.planned));
        self.accept(found, variant, &mut notes)?;
        wait.until_gone(&before, &mut notes);
        let pid = held.service.pid().ok_or_else(|| wait.died())?;
        let (service, watch) = (Box::new(held.service.clone()), Arc::clone(&held.watch));
        let hold = Hold::Service { service, watch, told: Some((told, page)) };
        let running = Running::held(hold, (address, host, held.door.tls), pid, crew.counted(settings), notes);
        let status = StubStatus::Port(told, format!("/webdyno-{token}/status"));
        Ok(running.with_status(held.machine.has_status.then_some(WebSource::Nginx(status))))
    }

    /// What holds for the server that answers, as nginx has read it, and directives of the plan that it has the last word on.
    fn in_force<'a>(
        &self,
        held: &Held,
        read: &Configuration,
        made: &'a Made,
        address: SocketAddr,
    ) -> Result<(BTreeMap<String, String>, Vec<Without<'a>>), ServerError> {
        let top = level(&read.tree);
        let inside = |name: &str| -> Vec<&Statement> {
            top.iter().filter(|it| it.is(name)).flat_map(|it| level(&it.inside)).collect()
        };
        let servers = servers(&read.tree);
        let server = answering(&servers, &held.door, address.ip(), self.existing.host.as_deref());
        let own = server.map(|server| level(&server.block.inside)).unwrap_or_default();
        let mut values = BTreeMap::new();
        let is_planned = |name: &str| made.planned.iter().any(|it| it.name == name);
        for lines in [&top, &inside("events"), &inside("http"), &own] {
            let mut of_level: BTreeMap<String, Vec<String>> = BTreeMap::new();
            let wanted =
                |it: &&&Statement| it.end.is_none() && (KEPT.contains(&it.name.as_str()) || is_planned(&it.name));
            for it in lines.iter().filter(wanted) {
                of_level.entry(it.name.clone()).or_default().push(it.value());
            }
            // The inner block has the last word, on all of a name.
            values.extend(of_level.into_iter().map(|(name, said)| (name, said.join("; "))));
        }
        let mut found = Vec::new();
        for planned in made.planned.iter().filter(|it| it.context == Context::Http) {
            let Some(line) = planned.lines.first() else { continue };
            let adds = ["log_format", "map", "upstream"].contains(&planned.name.as_str());
            let Some(by) = own.iter().find(|it| it.name == planned.name && !adds) else { continue };
            let why = format!(
                "the server that answers has its own at {}: {} {}; change it there, or write `server {{`, the line and `}}`",
                by.place(),
                by.name,
                by.value()
            );
            found.push((line, why));
        }
        Ok((values, found))
    }

    /// The first is an error, unless the variant allows this very difference; then it is a note.
    fn accept<'a>(
        &self,
        found: impl Iterator<Item = Without<'a>>,
        variant: &Variant,
        notes: &mut Vec<String>,
    ) -> Result<(), ServerError> {
        for (directive, sentence) in found {
            let note = format!("{}: {sentence}", directive.text.trim());
            if !variant.allow_warnings.iter().any(|allowed| note.contains(allowed.as_str())) {
                return Err(blame(&self.plan, directive, sentence, SERVER));
            }
            notes.push(note);
        }
        Ok(())
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

/// A server on a port of its own, whose answer says which version of the configuration is in force. What limits requests or asks for
/// passwords comes after `return`.
fn telling(machine: &Machine, port: u16, token: &str) -> String {
    let status = if machine.has_status {
        format!("location = /webdyno-{token}/status {{\nstub_status;\n}}\n")
    } else {
        String::new()
    };
    format!(
        "server {{\nlisten 127.0.0.1:{port};\nserver_name webdyno.invalid;\naccess_log off;\nlocation = /webdyno-{token} {{\nreturn 204;\n}}\n{status}}}"
    )
}
