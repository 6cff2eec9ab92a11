//! One trial from a calm host to a stopped server. A server that does not start or dies makes the trial invalid; only the
//! store and the environment, a load that cannot be started included, end the run.

use crate::ExperimentError;
use crate::beside::Lane;
use crate::changes::{self, Changer};
use crate::door;
use crate::event::{Event, Phase};
use crate::gate::cool_down;
use crate::memory;
use crate::placement::Placement;
use crate::post::{Post, READING_PERIOD_NS, ROOM, tell_reading, warm_up};
use crate::schedule::Slot;
use crate::single::empty;
use crate::status;
use host::{Group, Host};
use load::Target;
use model::check::Door;
use model::load::LoadResult;
use model::plan::{Cell, LoadSpec, Plan, TlsSpec, Verify};
use model::status::{Around, ServerStatus};
use model::trial::{Beside, Outcome, Stop, Trial};
use monitor::{GroupDirs, Sampler, Watch};
use remote::Remote;
use server::{Control, Place, Running, ServerError};
use std::fs::Permissions;
use std::net::IpAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// What every trial of a run says from then on.
const UNGUARDED: &str = "the guardian was killed; if this run is killed too, `webdyno restore` puts the machine back";
/// How long a server may take to answer its first request.
const READY_TIMEOUT: Duration = Duration::from_secs(20);

/// What all trials of a run share.
pub(crate) struct Bench<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) control: &'a dyn Control,
    pub(crate) host: &'a Host,
    pub(crate) exe: &'a Path,
    pub(crate) directory: PathBuf,
    pub(crate) placement: &'a Placement,
    /// The machine that sends the loads, if it is another one.
    pub(crate) remote: Option<&'a Remote>,
    /// Where the server listens.
    pub(crate) listen: IpAddr,
    pub(crate) interrupted: &'a AtomicBool,
    /// Files and settings of the machine; `None` when nothing is to be changed.
    pub(crate) changer: Option<Changer<'a>>,
}

/// A started server in its group, if it has one.
pub(crate) struct Stage {
    pub(crate) running: Running,
    pub(crate) group: Option<Group>,
}

/// What came of a measured window, and what was seen beside it.
struct Measured {
    load: LoadResult,
    beside: Vec<Beside>,
    stop: Option<Stop>,
    around: Option<Around>,
    door: Option<Door>,
}

impl Bench<'_> {
    /// Starts and stops every variant once, before anything is measured: a directive that the server refuses is found now.
    pub(crate) fn rehearse(&self) -> Result<(), ExperimentError> {
        for (number, cell) in one_cell_per_variant(self.plan).enumerate() {
            if self.interrupted.load(Ordering::Relaxed) {
                break;
            }
            let name = format!("rehearsal{number}");
            self.start(&name, cell)??.stop()?;
            self.clean(&name);
        }
        Ok(())
    }

    /// Asks the server what it thinks of every variant without starting it.
    pub(crate) fn check(&self) -> Result<(), ExperimentError> {
        changes::check(self.plan)?;
        for (number, cell) in one_cell_per_variant(self.plan).enumerate() {
            let name = format!("check{number}");
            let checked = self.control.check(&self.folder(&name)?, self.plan.variant(cell));
            self.with_room()?;
            checked?;
            self.clean(&name);
        }
        Ok(())
    }

    /// Carries out one trial.
    pub(crate) fn trial(&self, slot: &Slot, on_event: &mut dyn FnMut(Event<'_>)) -> Result<Trial, ExperimentError> {
        let cell = self.plan.cell(&slot.cell).expect("the schedule is made of the plan's cells");
        on_event(Event::Trial { slot, phase: Phase::CoolDown });
        let mut trial = empty(slot);
        trial.notes.extend(memory::before_the_server(self.plan, self.host)?);
        trial.notes.extend(cool_down(Path::new("/proc"), self.plan.cooldown_ns, self.interrupted));
        on_event(Event::Trial { slot, phase: Phase::Start });
        let name = format!("trial{}", slot.number);
        let mut stage = match self.start(&name, cell)? {
            Ok(stage) => stage,
            Err(error) if error.ends_the_run() => return Err(error.into()),
            Err(error) => {
                trial.outcome = Outcome::Invalid(error.to_string());
                return Ok(trial);
            }
        };
        trial.settings = stage.running.settings.clone();
        let limits = stage.group.iter().flat_map(|group| group.limits());
        trial.settings.values.extend(limits.map(|(file, held)| (format!("group {file}"), held.clone())));
        trial.notes.extend(stage.running.notes.iter().cloned());
        let watch = stage.watch();
        let sampler = Sampler::start(self.exe, &watch)?;
        let work = || self.warm_up_and_measure(slot, cell, &stage, &sampler, on_event);
        let (measured, told) = status::beside(&stage.running.status, work);
        trial.status = told;
        trial.readings = sampler.finish()?;
        trial.log_tail = stage.running.log_tail();
        let alive = stage.running.is_alive();
        // Its logs among other things: without them it does less than it would.
        let room = self.with_room();
        stage.stop()?;
        self.clean(&name);
        room?;
        // The server is stopped even when the load could not be started, which ends the run.
        let measured = measured?;
        trial.load = Some(measured.load);
        trial.beside = measured.beside;
        trial.around = measured.around;
        trial.door = measured.door;
        trial.outcome = match measured.stop {
            _ if !alive => Outcome::Invalid(died("during the trial", &trial.log_tail)),
            Some(stop) => Outcome::EndedEarly(stop),
            None => Outcome::Complete,
        };
        if !self.host.is_guarded() {
            trial.notes.push(UNGUARDED.to_owned());
        }
        Ok(trial)
    }

    /// The outer error is the environment's, the inner one the server's.
    pub(crate) fn start(&self, name: &str, cell: &Cell) -> Result<Result<Stage, ServerError>, ExperimentError> {
        let group = self.plan.confine.as_ref().map(|confine| self.host.group(name, confine)).transpose()?;
        let directory = self.folder(name)?;
        let variant = self.plan.variant(cell);
        if let Some(changer) = &self.changer {
            changer.apply(self.plan, variant)?;
        }
        let place = Place {
            host: self.host,
            group: group.as_ref(),
            dir: &directory,
            listen: self.listen,
            cpus: &self.placement.server,
            exe: self.exe,
            ready_timeout: READY_TIMEOUT,
        };
        Ok(match self.control.start(&place, variant) {
            Ok(running) => Ok(Stage { running, group }),
            Err(error) => {
                if let Some(group) = group {
                    group.remove()?;
                }
                self.with_room()?;
                Err(error)
            }
        })
    }

    /// An error when the disk of the run's folder is full.
    fn with_room(&self) -> Result<(), ExperimentError> {
        if host::has_room(&self.directory) { Ok(()) } else { Err(ExperimentError::NoRoom(self.directory.clone())) }
    }

    /// An empty folder that the server's own account may walk through, whatever the umask.
    fn folder(&self, name: &str) -> Result<PathBuf, ExperimentError> {
        let folder = self.directory.join(name);
        std::fs::create_dir(&folder)
            .and_then(|()| std::fs::set_permissions(&folder, Permissions::from_mode(0o711)))
            .map_err(|error| ExperimentError::Missing(format!("cannot make {}: {error}", folder.display())))?;
        Ok(folder)
    }

    /// A server's folder goes with it, so that its logs do not pile up. What cannot be removed now is removed with the run's folder.
    fn clean(&self, name: &str) {
        let _ = std::fs::remove_dir_all(self.directory.join(name));
    }

    fn warm_up_and_measure(
        &self,
        slot: &Slot,
        cell: &Cell,
        stage: &Stage,
        sampler: &Sampler,
        on_event: &mut dyn FnMut(Event<'_>),
    ) -> Result<Measured, ExperimentError> {
        let target = stage.target(self.remote.map(|_| self.listen));
        let spec = &stage.spoken(self.plan.load(cell));
        let post = Post {
            target: &target,
            remote: self.remote,
            cpus: &self.placement.load,
            guards: self.plan.guards,
            sampler,
            interrupted: self.interrupted,
        };
        let mut left = 0;
        if let Some(warmup) = warm_up(spec, self.plan.warmup) {
            on_event(Event::Trial { slot, phase: Phase::WarmUp });
            on_event(Event::Sending(&warmup));
            let (warmed, _) = post.load(&warmup, &mut |_, reading| tell_reading(reading, on_event))?;
            left = warmed.sent().saturating_sub(warmed.counts.good) + u64::from(warmed.connections);
        }
        memory::before_the_window(self.plan)?;
        on_event(Event::Trial { slot, phase: Phase::Measure });
        on_event(Event::Sending(spec));
        let source = &stage.running.status;
        let before = (!source.is_empty()).then(|| source.look());
        let port = self.port_to_watch(stage, before.as_ref());
        let lane = Lane { target: &target, cpus: &self.placement.load, interrupted: self.interrupted };
        let others: Vec<LoadSpec> = self.plan.beside.iter().map(|load| stage.spoken(load)).collect();
        let ((sent, beside), door) = door::beside(port, door::Pace::SPARING, &mut || {}, || {
            lane.beside(&others, || {
                post.load(spec, &mut |interval, reading| {
                    tell_reading(reading, on_event);
                    on_event(Event::Interval { slot, interval });
                })
            })
        });
        let around = before.map(|before| Around { before, after: source.look(), left });
        let (load, stop) = sent?;
        Ok(Measured { load, beside: beside?, stop, around, door })
    }

    /// Where a server tells nobody how many requests it served, those who come to its port are looked at instead. From another
    /// machine, ours could not be told from others'.
    fn port_to_watch(&self, stage: &Stage, told: Option<&ServerStatus>) -> Option<u16> {
        let counts = told.and_then(|told| told.web.as_ref()?.served()).is_some();
        (!counts && self.remote.is_none()).then_some(stage.running.address.port())
    }
}

impl Stage {
    fn watch(&self) -> Watch {
        let paths = self.group.as_ref().map(Group::paths).cloned().unwrap_or_default();
        Watch {
            period_ns: READING_PERIOD_NS,
            capacity: ROOM,
            group: GroupDirs { memory: paths.memory, cpuacct: paths.cpuacct, cpu: paths.cpu, unified: paths.unified },
            root_pid: Some(self.running.pid),
            beside_pids: self.running.beside(),
            port: Some(self.running.address.port()),
            sending: true,
            listeners: true,
            ..Watch::default()
        }
    }

    /// Where the load goes, and whom it asks for. From another machine nobody reaches this one's loopback: the machine's own server
    /// is asked for by the address that is given.
    fn target(&self, from_away: Option<IpAddr>) -> Target {
        let mut address = self.running.address;
        if let Some(ours) = from_away.filter(|_| address.ip().is_loopback()) {
            address.set_ip(ours);
        }
        Target::new(address, self.running.host.as_ref().unwrap_or(&address.to_string()))
    }

    /// The load as the server wants it spoken: through TLS where it does so. Nobody's certificate is doubted on loopback.
    fn spoken(&self, spec: &LoadSpec) -> LoadSpec {
        let server_name = || self.running.host.clone().unwrap_or_else(|| "localhost".to_owned());
        let tls = self.running.tls.then(|| TlsSpec {
            server_name: server_name(),
            verify: Verify::Nothing,
            version: None,
            suites: Vec::new(),
            client: None,
            resume: true,
        });
        LoadSpec { tls: tls.or_else(|| spec.tls.clone()), ..spec.clone() }
    }

    pub(crate) fn stop(self) -> Result<(), ExperimentError> {
        self.running.stop()?;
        if let Some(group) = self.group {
            group.remove()?;
        }
        Ok(())
    }
}

/// The first cell of every variant that is used.
fn one_cell_per_variant(plan: &Plan) -> impl Iterator<Item = &Cell> {
    plan.variants.iter().filter_map(|variant| plan.cells.iter().find(|cell| cell.variant == variant.name))
}

/// That the server died at some time, and what its log says of it.
pub(crate) fn died(when: &str, log: &str) -> String {
    match log.lines().rev().find(|line| !line.trim().is_empty()) {
        Some(line) => format!("the server died {when}; its log ends with: {}", line.trim()),
        None => format!("the server died {when} and logged nothing"),
    }
}
