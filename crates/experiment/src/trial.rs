//! One trial from a calm host to a stopped server. A server that does not start or dies makes the trial invalid; only the
//! store and the environment, a load that cannot be started included, end the run.

use crate::ExperimentError;
use crate::accounts::{self, Crew, Keeper, Observed};
use crate::beside::Lane;
use crate::changes::{self, Changer};
use crate::door;
use crate::ending;
use crate::event::{Event, Phase};
use crate::gate::cool_down;
use crate::logged::{Log, answered};
use crate::memory;
use crate::others::{Calm, Sent, others};
use crate::placement::Placement;
use crate::post::{Post, READING_PERIOD_NS, ROOM, cut_off, tell_reading, warm_up};
use crate::schedule::Slot;
use crate::services::{Services, Started, died, killing, of_service, pretended, told};
use crate::single::{empty, local_port};
use crate::taken::server_not_taken;
use crate::{status, workers};
use host::{Group, Host};
use load::{Address, Target};
use model::check::Door;
use model::load::{LoadInterval, LoadResult};
use model::plan::{Cell, End, LoadSpec, Mention, Plan, ServerSpec, TlsSpec, Variant, Verify};
use model::reading::Reading;
use model::status::{Around, ServerStatus};
use model::trial::{Beside, Logged, Outcome, Stop, Trial};
use model::workers::WorkersHeld;
use monitor::{GroupDirs, Sampler, Watch};
use remote::Remote;
use server::{Bounds, Census, Control, Ended, Forced, Place, Running, ServerError, bounds};
use std::cell::RefCell;
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
/// The same for a service, and for what a command starts: a database reads its files first, a JVM its classes.
pub(crate) const PATIENT_TIMEOUT: Duration = Duration::from_secs(60);

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
    /// Services that stand beside the server of every trial.
    pub(crate) kept: RefCell<Services>,
}

/// A started server in its group, if it has one.
pub(crate) struct Stage {
    pub(crate) running: Running,
    pub(crate) group: Option<Group>,
    /// What the groups around it leave it, where it has none of ours.
    bounds: Option<Bounds>,
    services: Services,
}

/// What came of a measured window, and what was seen beside it.
struct Measured {
    load: LoadResult,
    beside: Vec<Beside>,
    stop: Option<Stop>,
    around: Option<Around>,
    door: Option<Door>,
    /// Of the warm-up: answers, and requests that the server may have logged beside them.
    warmed: (u64, u64),
    /// The processes of before a restart that was begun meanwhile.
    before: Option<Vec<u32>>,
    notes: Vec<String>,
    workers: Option<WorkersHeld>,
    window: Sent,
    observed: Option<Observed>,
}

impl Bench<'_> {
    /// Asks the server what it thinks of every variant without starting it.
    pub(crate) fn check(&self) -> Result<(), ExperimentError> {
        changes::check(self.plan)?;
        Log::of(self.plan, &self.plan.server, &self.directory)?;
        for (number, cell) in self.one_cell_per_variant().enumerate() {
            let variant = self.plan.variant(cell);
            for service in self.plan.services_of(variant) {
                let seen = of_service(variant, variant.servers.changes.get(&service.name));
                let checked = self.check_one(&format!("check{number}-{}", service.name), &service.server, &seen)?;
                checked.map_err(|error| error.of_service(&service.name))?;
            }
            let name = format!("check{number}");
            match self.plan.services.is_empty() {
                true => self.checked(&name, self.control, variant)??,
                false => self.check_one(&name, self.plan.server_of(variant), variant)??,
            }
        }
        Ok(())
    }

    /// What a server thinks of a variant that may mention services.
    fn check_one(
        &self,
        name: &str,
        server: &ServerSpec,
        variant: &Variant,
    ) -> Result<Result<(), ServerError>, ExperimentError> {
        let (control, variant) = told(self, server, variant, &pretended(&self.directory));
        self.checked(name, control.as_ref(), &variant)
    }

    fn checked(
        &self,
        name: &str,
        control: &dyn Control,
        variant: &Variant,
    ) -> Result<Result<(), ServerError>, ExperimentError> {
        let checked = control.check(&self.folder(name)?, variant);
        self.with_room()?;
        self.clean(name);
        Ok(checked)
    }

    /// Carries out one trial.
    pub(crate) fn trial(&self, slot: &Slot, on_event: &mut dyn FnMut(Event<'_>)) -> Result<Trial, ExperimentError> {
        let cell = self.plan.cell(&slot.cell).expect("the schedule is made of the plan's cells");
        on_event(Event::Trial { slot, phase: Phase::CoolDown });
        let began = Census::take();
        let mut trial = empty(slot);
        trial.notes.extend(memory::before_the_server(self.plan, self.host)?);
        trial.notes.extend(cool_down(Path::new("/proc"), self.plan.cooldown_ns, self.interrupted));
        if self.plan.server.url().is_none() {
            on_event(Event::Trial { slot, phase: Phase::Start });
        }
        let name = folder_of(slot);
        let mut stage = match self.start(&name, cell)? {
            Ok(stage) => stage,
            Err(error) if error.ends_the_run() => return Err(error.into()),
            // Nobody waited for it any more.
            Err(_) if self.interrupted.load(Ordering::Relaxed) => {
                trial.outcome = Outcome::EndedEarly(Stop::Interrupted);
                return Ok(trial);
            }
            Err(error) => {
                trial.outcome = Outcome::Invalid(error.to_string());
                return Ok(trial);
            }
        };
        trial.settings = stage.running.settings.clone();
        trial.share = stage.bounds.as_ref().map(|bounds| bounds.share);
        let limits = stage.group.iter().flat_map(|group| group.limits());
        trial.settings.values.extend(limits.map(|(file, held)| (format!("group {file}"), held.clone())));
        trial.settings.values.extend(stage.services.settings());
        trial.notes.extend(stage.running.notes.iter().cloned().chain(stage.services.notes()));
        trial.notes.extend(self.changer.iter().flat_map(Changer::notes));
        let variant = self.plan.variant(cell);
        let kept = self.kept.borrow().ports_of(self.plan, variant);
        // Those that are to be killed are among them until they are taken out.
        let ports_behind = [kept, stage.services.ports_of(self.plan, variant)].concat();
        let watch = Watch { ports_behind, apart: !self.placement.load.is_empty(), ..stage.watch() };
        let mut doomed = stage.services.take_doomed();
        let calm = Calm::since(began);
        let sampler = Sampler::start(self.exe, &watch)?;
        let work = || self.warm_up_and_measure(slot, cell, (&stage, &mut doomed), &sampler, on_event);
        let (mut measured, told) = status::beside(&stage.running.status, work);
        stage.services.take_back(doomed);
        trial.status = told;
        trial.readings = sampler.finish()?;
        trial.log_tail = stage.running.log_tail();
        let roots = stage.running.roots();
        let dead = self.dead(&mut stage, "during the trial");
        // Its logs among other things: without them it does less than it would.
        let room = self.with_room();
        let before = measured.as_mut().ok().and_then(|measured| measured.before.take());
        let ended = self.end(&name, cell, stage, before);
        // Whole now that the server has ended.
        let logs = accounts::Logs::read(&self.directory.join(&name));
        self.clean(&name);
        room?;
        // The server is stopped even when the load could not be started, which ends the run.
        let (mut measured, (logged, notes)) = (measured?, ended?);
        trial.notes.extend(notes);
        trial.logged = logged.map(|logged| measured.owes(logged));
        trial.others = Some(others(&[&calm], &measured.window, &roots));
        trial.accounts = measured
            .observed
            .take()
            .map(|observed| observed.with_turned_away(&trial.readings).accounts(&logs, self.crew(cell)));
        trial.notes.extend(trial.accounts.iter().flat_map(accounts::doubts));
        trial.load = Some(measured.load);
        trial.beside = measured.beside;
        trial.around = measured.around;
        trial.door = measured.door;
        trial.workers = measured.workers;
        trial.notes.extend(measured.notes);
        trial.outcome = match (dead, measured.stop) {
            (Some(died), _) => Outcome::Invalid(died),
            (None, Some(stop)) => Outcome::EndedEarly(stop),
            (None, None) => Outcome::Complete,
        };
        if !self.host.is_guarded() {
            trial.notes.push(UNGUARDED.to_owned());
        }
        Ok(trial)
    }

    /// Ends a server as the plan says, counts its log if that is wanted, and says what is worth knowing of it.
    fn end(
        &self,
        name: &str,
        cell: &Cell,
        stage: Stage,
        before: Option<Vec<u32>>,
    ) -> Result<(Option<Logged>, Vec<String>), ExperimentError> {
        // Nobody waits for what a trial that does not count still writes.
        let stop = |stage: Stage| stage.stop().map(|forced| (None, forced.iter().map(Forced::note).collect()));
        if self.interrupted.load(Ordering::Relaxed) {
            return stop(stage);
        }
        let (end, server) = (self.plan.end(cell), self.plan.server_of(self.plan.variant(cell)));
        let Some(log) = Log::of(self.plan, server, &self.directory.join(name))? else {
            if end == End::default() {
                return stop(stage);
            }
            return Ok((None, stage.end(server, end, before, self.interrupted)?.notes));
        };
        let (mut early, mut logged) = (Logged::default(), Logged::default());
        log.count(&mut early)?;
        let Ended { by_itself, mut notes } = stage.end(server, end, before, self.interrupted)?;
        if !by_itself {
            notes.push(
                "its access log is not counted: lines may be missing because webdyno ended the server".to_owned(),
            );
            return Ok((None, notes));
        }
        log.count(&mut logged)?;
        Ok((Some(Logged { early: early.lines, ..logged }), notes))
    }

    /// The outer error is the environment's, the inner one the server's.
    pub(crate) fn start(&self, name: &str, cell: &Cell) -> Result<Result<Stage, ServerError>, ExperimentError> {
        // One that began meanwhile ends this run: each would measure the other.
        server_not_taken(&self.plan.server, self.host)?;
        let group = self.plan.confine.as_ref().map(|confine| self.host.group(name, confine)).transpose()?;
        let directory = self.folder(name)?;
        let variant = self.plan.variant(cell);
        if let Some(changer) = &self.changer {
            changer.apply(self.plan, variant)?;
        }
        let ready_timeout = match self.plan.server_of(variant) {
            ServerSpec::Command(_) => PATIENT_TIMEOUT,
            _ => READY_TIMEOUT,
        };
        let place = Place { group: group.as_ref(), dir: &directory, ..self.place(ready_timeout) };
        let started = match Services::start(self, name, variant)? {
            Err(error) => Err(error),
            Ok(services) => self.start_beside(&place, variant, &services)?.map(|running| (running, services)),
        };
        Ok(match started {
            Ok((running, services)) => {
                let bounds = running.pid.filter(|_| group.is_none()).map(bounds);
                Ok(Stage { running, group, bounds, services })
            }
            Err(error) => {
                if let Some(group) = group {
                    group.remove()?;
                }
                self.with_room()?;
                Err(error)
            }
        })
    }

    /// Starts the server of a variant, told where its services are.
    fn start_beside(
        &self,
        place: &Place<'_>,
        variant: &Variant,
        services: &Services,
    ) -> Result<Result<Running, ServerError>, ExperimentError> {
        if self.plan.services.is_empty() {
            return Ok(self.control.start(place, variant));
        }
        let of = |mention: Mention<'_>| services.tell(mention).or_else(|| self.kept.borrow().tell(mention));
        let (control, variant) = told(self, self.plan.server_of(variant), variant, &of);
        Ok(control.start(place, &variant))
    }

    /// Where every server of the run is started, but for its own folder and limits.
    pub(crate) fn place(&self, ready_timeout: Duration) -> Place<'_> {
        Place {
            host: self.host,
            group: None,
            dir: &self.directory,
            listen: self.listen,
            cpus: &self.placement.server,
            exe: self.exe,
            ready_timeout,
            interrupted: self.interrupted,
        }
    }

    /// What has died of a server and of what stands beside it, in a sentence.
    pub(crate) fn dead(&self, stage: &mut Stage, when: &str) -> Option<String> {
        if !stage.running.is_alive() {
            if let Some(url) = self.plan.server.url() {
                return Some(format!("the server at {} ended, or was started anew, {when}", url.url));
            }
            return Some(died("the server", when, &stage.running.log_tail()));
        }
        stage.services.dead(when).or_else(|| self.kept.borrow_mut().dead(when))
    }

    /// An error when the disk of the run's folder is full.
    fn with_room(&self) -> Result<(), ExperimentError> {
        if host::has_room(&self.directory) { Ok(()) } else { Err(ExperimentError::NoRoom(self.directory.clone())) }
    }

    /// An empty folder that the server's own account may walk through, whatever the umask.
    pub(crate) fn folder(&self, name: &str) -> Result<PathBuf, ExperimentError> {
        let folder = self.directory.join(name);
        std::fs::create_dir(&folder)
            .and_then(|()| std::fs::set_permissions(&folder, Permissions::from_mode(0o711)))
            .map_err(|error| ExperimentError::Missing(format!("cannot make {}: {error}", folder.display())))?;
        Ok(folder)
    }

    /// A server's folder goes with it, so that its logs do not pile up. What cannot be removed now is removed with the run's folder.
    pub(crate) fn clean(&self, name: &str) {
        let _ = std::fs::remove_dir_all(self.directory.join(name));
    }

    fn warm_up_and_measure(
        &self,
        slot: &Slot,
        cell: &Cell,
        (stage, doomed): (&Stage, &mut Vec<Started>),
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
        let (mut left, mut warmed, mut cut) = (0, (0, 0), None);
        if let Some(warmup) = warm_up(spec, self.plan.warmup) {
            on_event(Event::Trial { slot, phase: Phase::WarmUp });
            on_event(Event::Sending(&warmup));
            let (load, _) = post.load(&warmup, &mut |_, reading| tell_reading(reading, on_event))?;
            cut = cut_off(&load);
            left = load.sent().saturating_sub(load.counts.good) + u64::from(load.connections);
            warmed = answered(&load);
        }
        memory::before_the_window(self.plan, cell)?;
        on_event(Event::Trial { slot, phase: Phase::Measure });
        on_event(Event::Sending(spec));
        let source = &stage.running.status;
        let seen = (!source.is_empty()).then(|| source.look());
        let port = self.port_to_watch(stage, seen.as_ref());
        let lane = Lane { target: &target, cpus: &self.placement.load, interrupted: self.interrupted };
        let others: Vec<LoadSpec> = self.plan.beside.iter().map(|load| stage.spoken(load)).collect();
        // What no limit of memory holds takes no place in it.
        let roots = if stage.group.is_some() { stage.running.held_roots() } else { stage.running.roots() };
        let accountant = self.plan.latency_budget.then(|| accounts::open(&stage.running)).transpose()?;
        let send = |progress: &mut workers::Progress| {
            let mut on_second = |interval: &LoadInterval, reading: Option<&Reading>| {
                progress.saw(interval);
                tell_reading(reading, on_event);
                on_event(Event::Interval { slot, interval });
            };
            match &accountant {
                // Nobody sees requests where nobody asked: that has a cost.
                None => post.load(spec, &mut on_second).map(|(load, stop)| (load, stop, Vec::new())),
                Some(_) => post.witnessed(spec, &Keeper::default, &mut on_second),
            }
        };
        let (mut workers, mut door, mut notes) = (None, None, Vec::new());
        let (mut beside, mut before) = (Ok(Vec::new()), Ok(None));
        // What watches, or acts, while the load is sent: each around the one before.
        let send = || put(&mut workers, workers::beside(&roots, spec, send));
        let send = || put(&mut beside, lane.beside(&others, send));
        let send = || put(&mut before, ending::meanwhile(self.plan, cell, &stage.running, send));
        let send = || put(&mut door, door::beside(port, door::Pace::SPARING, &mut || {}, send));
        let send = || put(&mut notes, killing(doomed, send));
        let (sent, window) = Sent::around(send);
        let folder = self.directory.join(folder_of(slot));
        let books = accountant.map(|accountant| (accountant.finish(), self.crew(cell).threads(&folder)));
        let around = seen.map(|before| Around { before, after: source.look(), left });
        let (load, stop, kept) = sent?;
        let observed = books.map(|(books, threads)| Observed::new(&load, kept, books, threads));
        let (beside, before) = (beside?, before?);
        notes.extend(cut);
        Ok(Measured { load, beside, stop, around, door, warmed, before, notes, workers, window, observed })
    }

    /// Who works on requests of that cell.
    fn crew(&self, cell: &Cell) -> Crew {
        Crew::of(self.plan.server_of(self.plan.variant(cell)))
    }

    /// Where a server tells nobody how many requests it served, those who come to its port are looked at instead. From another
    /// machine, ours could not be told from others'.
    fn port_to_watch(&self, stage: &Stage, told: Option<&ServerStatus>) -> Option<u16> {
        let counts = told.and_then(|told| told.web.as_ref()?.served()).is_some();
        if counts || self.remote.is_some() { None } else { stage.port() }
    }
}

/// The name of a trial's folder in the run's.
fn folder_of(slot: &Slot) -> String {
    format!("trial{}", slot.number)
}

/// Puts down what was seen while something was done, and goes on with what came of that.
fn put<T, S>(place: &mut S, (done, seen): (T, S)) -> T {
    *place = seen;
    done
}

impl Measured {
    /// The same log with what it should hold.
    fn owes(&self, logged: Logged) -> Logged {
        let all = std::iter::once(&self.load).chain(self.beside.iter().map(|beside| &beside.load));
        let (answered, unsure) = all.map(answered).fold(self.warmed, |sum, it| (sum.0 + it.0, sum.1 + it.1));
        Logged { answered, unsure, ..logged }
    }
}

impl Stage {
    fn watch(&self) -> Watch {
        let group = match (&self.group, &self.bounds) {
            (Some(group), _) => {
                let paths = group.paths().clone();
                GroupDirs { memory: paths.memory, cpuacct: paths.cpuacct, cpu: paths.cpu, unified: paths.unified }
            }
            (None, Some(Bounds { memory, cpu, unified, .. })) => {
                GroupDirs { memory: memory.clone(), cpu: cpu.clone(), unified: unified.clone(), ..GroupDirs::default() }
            }
            (None, None) => GroupDirs::default(),
        };
        Watch {
            period_ns: READING_PERIOD_NS,
            capacity: ROOM,
            group,
            root_pid: self.running.pid,
            beside_pids: self.running.beside(),
            behind_pids: self.running.behind().to_vec(),
            port: self.port(),
            waiting: true,
            listeners: true,
            ..Watch::default()
        }
    }

    /// Its port, where that is one of this machine's.
    fn port(&self) -> Option<u16> {
        local_port(&Address::Tcp(self.running.address))
    }

    /// Where the load goes, and whom it asks for. From another machine nobody reaches this one's loopback: the machine's own server
    /// is asked for by the address that is given.
    pub(crate) fn target(&self, from_away: Option<IpAddr>) -> Target {
        let mut address = self.running.address;
        if let Some(ours) = from_away.filter(|_| address.ip().is_loopback()) {
            address.set_ip(ours);
        }
        Target::new(address, self.running.host.as_ref().unwrap_or(&address.to_string()))
    }

    /// The load as the server wants it spoken: through TLS where it does so. Nobody's certificate is doubted on loopback; a load to a URL
    /// says itself what is doubted.
    pub(crate) fn spoken(&self, spec: &LoadSpec) -> LoadSpec {
        let server_name = || self.running.host.clone().unwrap_or_else(|| "localhost".to_owned());
        let tls = self.running.tls.then(|| TlsSpec {
            server_name: server_name(),
            verify: Verify::Nothing,
            version: None,
            suites: Vec::new(),
            client: None,
            resume: true,
        });
        LoadSpec { tls: spec.tls.clone().or(tls), ..spec.clone() }
    }

    fn end(
        self,
        server: &ServerSpec,
        end: End,
        before: Option<Vec<u32>>,
        interrupted: &AtomicBool,
    ) -> Result<Ended, ExperimentError> {
        let mut ended = self.running.end(server, end, before, interrupted)?;
        ended.notes.extend(self.services.stop()?.iter().map(Forced::note));
        self.group.map_or(Ok(()), Group::remove)?;
        Ok(ended)
    }

    /// Stops it and what stands beside it; tells of what had to be ended by force although the plan says how it ends.
    pub(crate) fn stop(self) -> Result<Vec<Forced>, ExperimentError> {
        let mut forced: Vec<Forced> = self.running.stop()?.into_iter().collect();
        forced.extend(self.services.stop()?);
        if let Some(group) = self.group {
            group.remove()?;
        }
        Ok(forced)
    }
}
