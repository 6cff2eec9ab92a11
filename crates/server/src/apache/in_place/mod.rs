//! The machine's own running server, with a variant's directives in a drop-in of ours. Between variants only the drop-in changes; at the end,
//! however it comes, the journal of the host has everything as it was.

mod dropin;

use super::SERVER;
use super::check::{Test, check};
use super::crew::Muster;
use super::instance::no_settings;
use super::keeping::worth_keeping;
use super::machine::Machine;
use super::machine::ports::{answers, doors};
use super::machine::tree::{parse, virtual_hosts};
use super::overridden::{accept, different, overridden, overridden_later};
use super::pages::telling;
use super::refuse::unseen;
use super::render::Rendered;
use super::settings::Told;
use crate::control::{Hold, Logs, blame};
use crate::own::{Door, Reads, Wait, Watch, free_port, pick};
use crate::{Control, Place, PlanKey, Running, ServerError};
use dropin::{DropIn, needs_full, text};
use host::{Host, HostError, Restart, Service};
use model::plan::{Apache, Directive, Existing, Variant};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Controls the machine's own Apache.
#[derive(Debug)]
pub(crate) struct InPlaceControl {
    spec: Apache,
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
    drop_in: DropIn,
    /// There as long as we work on it.
    marker: PathBuf,
    /// Where it tells what is in force.
    port: u16,
    watch: Arc<Watch>,
    /// The plan's directives that it runs with.
    planned: Vec<Directive>,
    /// Whether it was told to read a drop-in that says something.
    told: bool,
}

impl Control for InPlaceControl {
    fn check(&self, dir: &Path, variant: &Variant) -> Result<(), ServerError> {
        let machine = self.machine()?;
        self.door(&machine)?;
        let service = self.service(&machine)?;
        // Beside the configuration and not in it: nothing is changed.
        let (main, file) = (dir.join("main.conf"), dir.join("variant.conf"));
        let (control, _) = telling(&machine, 1, "check")?;
        let rendered = self.rendered(&control, Path::new("/"), variant);
        fs::write(&file, &rendered.text).map_err(ServerError::io("write", &file))?;
        let both = format!("Include \"{}\"\nInclude \"{}\"\n", machine.main.display(), file.display());
        fs::write(&main, both).map_err(ServerError::io("write", &main))?;
        self.test(machine.command_of(&main), dir, &file, &rendered, (&machine, &service), variant)
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
            let _ = self.back(held, place.host);
        }
        running
    }
}

impl InPlaceControl {
    pub(crate) fn new(spec: &Apache, existing: &Existing, plan: &Path) -> InPlaceControl {
        let (spec, existing) = (spec.clone(), existing.clone());
        InPlaceControl { spec, existing, plan: plan.to_owned(), held: Mutex::new(None) }
    }

    fn held(&self) -> MutexGuard<'_, Option<Held>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn key(&self, key: &'static str) -> PlanKey {
        PlanKey { plan: self.plan.clone().into(), service: None, line: self.spec.line(key), key }
    }

    fn machine(&self) -> Result<Machine, ServerError> {
        let named = if self.existing.main.is_some() { "from" } else { "in_place" };
        Machine::read(self.spec.program.as_deref(), &self.existing, &self.key(named))
    }

    fn service(&self, machine: &Machine) -> Result<Service, ServerError> {
        host::may_change(&machine.pid_file)?;
        let wrong = |why: String| ServerError::Machine { at: self.key("in_place"), why };
        let service = machine.service().map_err(wrong)?;
        // A graceful restart ends it, too, when a log cannot be opened or a certificate cannot be read: no test sees that.
        let hint = "a variant that ends it would leave it down; measure a copy instead: from without in_place";
        service.can_start().map_err(|why| wrong(format!("{why}; {hint}")))?;
        Ok(service)
    }

    fn door(&self, machine: &Machine) -> Result<Door, ServerError> {
        let mut doors = doors(&machine.lines);
        let index = pick(&doors, self.existing.port, &machine.main, self.key("port"))?;
        Ok(doors.swap_remove(index))
    }

    /// Keeps other runs from the server and journals what will be changed; changes nothing that the server reads.
    fn take(&self, host: &Host) -> Result<Held, ServerError> {
        let machine = self.machine()?;
        // First: a server that another run just restarts does not run.
        let marker = host.claim(&machine.main)?;
        Door::claim_all(&doors(&machine.lines), &machine.main, host)?;
        let service = self.service(&machine)?;
        let door = self.door(&machine)?;
        let drop_in = DropIn::place(&machine, &service, host)?;
        let watch = Arc::new(Watch::begin(machine.clone(), Some(drop_in.own()))?);
        let port = free_port()?;
        Ok(Held { machine, service, door, drop_in, marker, port, watch, planned: Vec::new(), told: false })
    }

    /// The drop-in of a variant.
    fn rendered(&self, control: &str, marker: &Path, variant: &Variant) -> Rendered {
        text(control, marker, &self.spec.directives, &variant.directives)
    }

    fn test(
        &self,
        command: std::process::Command,
        dir: &Path,
        file: &Path,
        rendered: &Rendered,
        (machine, service): (&Machine, &Service),
        variant: &Variant,
    ) -> Result<(), ServerError> {
        let mut command = command;
        command.arg("-t");
        let allowed: Vec<String> = variant.allow_warnings.iter().chain(&machine.warnings).cloned().collect();
        let dir = dir.canonicalize().map_err(ServerError::io("resolve", dir))?;
        // The run's own folder, in which every instance has its own.
        let run = dir.parent().unwrap_or(&dir);
        if let Some((directive, why)) = service.pid().and_then(|pid| unseen(&rendered.planned, run, pid)) {
            return Err(blame(&self.plan, directive, why, SERVER));
        }
        let test = Test { command, dir: run, in_place: true, file, rendered };
        check(test, &variant.name, &allowed, &self.plan)
    }

    fn apply(&self, held: &mut Held, place: &Place<'_>, variant: &Variant) -> Result<Running, ServerError> {
        let (control, pages) = telling(&held.machine, held.port, &host::secret()?)?;
        let rendered = self.rendered(&control, &held.marker, variant);
        // Somebody may have it read what lies there before it is told to.
        let due = place.host.will_restart(&held.service, Restart::Graceful)?;
        if let Err(error) = held.drop_in.put(&rendered.text) {
            place.host.will_not_restart(due)?;
            return Err(error);
        }
        let file = held.drop_in.own().to_owned();
        self.test(held.machine.command(), place.dir, &file, &rendered, (&held.machine, &held.service), variant)?;
        held.is_read()?;
        let (planned, before) = (rendered.planned.clone(), std::mem::take(&mut held.planned));
        let how = if needs_full(&before, &planned).is_some() { Restart::Full } else { Restart::Graceful };
        (held.planned, held.told) = (planned, true);
        let (workers, since) = (held.service.workers(), Instant::now());
        place.host.restart(&held.service, how)?;
        let (timeout, logs) = (place.ready_timeout, Logs(vec![held.machine.error_log.clone()]));
        let wait =
            Wait { service: &held.service, server: SERVER, since, timeout, logs, interrupted: place.interrupted };
        wait.until_answered(pages.address, None, &format!("{}?auto", pages.status), None)?;
        let address = held.door.here(&held.machine.main, SERVER)?;
        let host = self.existing.host.clone();
        if !held.door.tls {
            wait.until_answered(address, host.as_deref(), &self.spec.ready, Some(&self.key("ready")))?;
        }
        let told = pages.ask(timeout, &mut || wait.still_awaited().is_ok());
        let told = told.map_err(|why| wait.or_ended(no_settings(why)))?;
        let mut notes = Vec::new();
        self.compare(held, &told, &rendered, variant, &mut notes)?;
        let mpm = held.machine.mpm;
        let muster = Muster { pages: &pages, mpm, since, timeout, logs: &wait.logs };
        let processes = muster.wait(&told, &mut || wait.still_awaited(), &mut notes)?;
        wait.until_gone(&workers, &mut notes);
        let pid = held.service.pid().ok_or_else(|| wait.died())?;
        let hold =
            Hold::Service { service: Box::new(held.service.clone()), watch: Arc::clone(&held.watch), told: None };
        let running = Running::held(
            hold,
            (address, host, held.door.tls),
            pid,
            worth_keeping(told.settings(processes), &rendered.planned),
            notes,
        );
        Ok(running.with_scoreboard().with_pool_behind())
    }

    /// The server without the plan's directives: a drop-in that says nothing.
    fn back(&self, held: &mut Held, host: &Host) -> Result<(), ServerError> {
        held.drop_in.put("")?;
        let planned = std::mem::take(&mut held.planned);
        let how = if needs_full(&planned, &[]).is_some() { Restart::Full } else { Restart::Graceful };
        if std::mem::take(&mut held.told) {
            // As it is now: somebody may be in the middle of a change of it.
            held.service.test().map_err(HostError::Service)?;
            host.restart(&held.service, how)?;
        }
        Ok(())
    }

    /// A directive of the plan's that runs with another value, or that something else has the last word on, is an error, or a note when
    /// the variant allows this very difference; one of the machine's own is a note.
    fn compare(
        &self,
        held: &Held,
        told: &Told,
        rendered: &Rendered,
        variant: &Variant,
        notes: &mut Vec<String>,
    ) -> Result<(), ServerError> {
        let lines = parse(&held.machine.dump()?);
        let hosts = virtual_hosts(&lines);
        let own = held.drop_in.own();
        let answering = answers(&hosts, &held.door, self.existing.host.as_deref());
        let mut found: Vec<_> = overridden(&rendered.planned, answering).collect();
        found.extend(overridden_later(&rendered.planned, &lines, own));
        found.extend(different(told, rendered, own, notes));
        accept(found, variant, &self.plan, notes)
    }
}

impl Held {
    /// An error when the server's configuration does not come to the drop-in.
    fn is_read(&self) -> Result<(), ServerError> {
        let own = self.drop_in.own();
        if self.machine.includes()?.iter().any(|file| file == own) {
            return Ok(());
        }
        let why = format!(
            "{} does not include {}; is the line that includes its folder in a condition that does not hold (<IfDefine>, <IfModule>)?",
            self.machine.main.display(),
            own.display()
        );
        Err(ServerError::NoSettings { server: SERVER, why })
    }
}
