//! One trial from a calm host to a stopped server. A server that does not start or dies makes the trial invalid; only the
//! store and the environment, a load that cannot be started included, end the run.

use crate::ExperimentError;
use crate::event::{Event, Phase};
use crate::gate::cool_down;
use crate::guard::Watchdog;
use crate::placement::Placement;
use crate::schedule::Slot;
use host::{Group, Host};
use load::{LoadError, Target, monotonic_ns};
use model::load::LoadResult;
use model::plan::{Cell, LoadSpec, Plan, Warmup};
use model::reading::Readings;
use model::trial::{EffectiveSettings, Outcome, Stop, Trial};
use model::{Nanos, SECOND};
use monitor::{GroupDirs, Sampler, Watch};
use server::{Control, Place, Running, ServerError};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A reading every 200 ms: windows of a second or two need more than the two readings that one a second would give.
const READING_PERIOD_NS: Nanos = SECOND / 5;
/// Readings that are kept at most, of about 700 bytes of locked memory each: 11 hours.
const MOST_READINGS: u64 = 200_000;
/// Readings go on for no longer than this before and after the loads: while they start and end.
const READING_SLACK_NS: Nanos = 60 * SECOND;
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
    pub(crate) interrupted: &'a AtomicBool,
}

/// A started server in its group, if it has one.
struct Stage {
    running: Running,
    group: Option<Group>,
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
        for (number, cell) in one_cell_per_variant(self.plan).enumerate() {
            let name = format!("check{number}");
            self.control.check(&self.folder(&name)?, self.plan.variant(cell))?;
            self.clean(&name);
        }
        Ok(())
    }

    /// Carries out one trial.
    pub(crate) fn trial(&self, slot: &Slot, on_event: &mut dyn FnMut(Event<'_>)) -> Result<Trial, ExperimentError> {
        let cell = self.plan.cell(&slot.cell).expect("the schedule is made of the plan's cells");
        on_event(Event::Trial { slot, phase: Phase::CoolDown });
        let mut trial = Trial {
            block: slot.block,
            position: slot.position,
            cell: cell.name.clone(),
            outcome: Outcome::Complete,
            began_ns: monotonic_ns(),
            settings: EffectiveSettings::default(),
            load: None,
            readings: Readings::default(),
            notes: Vec::new(),
            log_tail: String::new(),
        };
        trial.notes.extend(cool_down(Path::new("/proc"), self.plan.cooldown_ns, self.interrupted));
        on_event(Event::Trial { slot, phase: Phase::Start });
        let name = format!("trial{}", slot.number);
        let mut stage = match self.start(&name, cell)? {
            Ok(stage) => stage,
            Err(error) => {
                trial.outcome = Outcome::Invalid(error.to_string());
                return Ok(trial);
            }
        };
        trial.settings = stage.running.settings.clone();
        trial.notes.extend(stage.running.notes.iter().cloned());
        let watch = stage.watch(room(self.plan, self.plan.load(cell)));
        let sampler = Sampler::start(self.exe, &watch)?;
        let measured = self.warm_up_and_measure(slot, cell, &stage, &sampler, on_event);
        trial.readings = sampler.finish()?;
        trial.log_tail = stage.running.log_tail();
        let alive = stage.running.is_alive();
        stage.stop()?;
        self.clean(&name);
        // The server is stopped even when the load could not be started, which ends the run.
        let (load, stop) = measured?;
        trial.load = Some(load);
        trial.outcome = match stop {
            _ if !alive => Outcome::Invalid(died(&trial.log_tail)),
            Some(stop) => Outcome::EndedEarly(stop),
            None => Outcome::Complete,
        };
        if !self.host.is_guarded() {
            trial.notes.push(UNGUARDED.to_owned());
        }
        Ok(trial)
    }

    /// The outer error is the environment's, the inner one the server's.
    fn start(&self, name: &str, cell: &Cell) -> Result<Result<Stage, ServerError>, ExperimentError> {
        let group = self.plan.confine.as_ref().map(|confine| self.host.group(name, confine)).transpose()?;
        let directory = self.folder(name)?;
        let place = Place {
            host: self.host,
            group: group.as_ref(),
            dir: &directory,
            cpus: &self.placement.server,
            exe: self.exe,
            ready_timeout: READY_TIMEOUT,
        };
        Ok(match self.control.start(&place, self.plan.variant(cell)) {
            Ok(running) => Ok(Stage { running, group }),
            Err(error) => {
                if let Some(group) = group {
                    group.remove()?;
                }
                Err(error)
            }
        })
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
    ) -> Result<(LoadResult, Option<Stop>), LoadError> {
        let address = stage.running.address;
        let target = Target { address: address.into(), host: address.to_string() };
        let spec = self.plan.load(cell);
        if let Some(warmup) = warm_up(spec, self.plan.warmup) {
            on_event(Event::Trial { slot, phase: Phase::WarmUp });
            self.load(&warmup, &target, sampler, &mut |_| {})?;
        }
        on_event(Event::Trial { slot, phase: Phase::Measure });
        self.load(spec, &target, sampler, &mut |interval| on_event(Event::Interval { slot, interval }))
    }

    /// One load under the guards.
    fn load(
        &self,
        spec: &LoadSpec,
        target: &Target,
        sampler: &Sampler,
        on_interval: &mut dyn FnMut(&model::load::LoadInterval),
    ) -> Result<(LoadResult, Option<Stop>), LoadError> {
        let stop = AtomicBool::new(false);
        let mut why = None;
        let mut dog = Watchdog::new(self.plan.guards, monotonic_ns());
        let mut watch = |interval: &model::load::LoadInterval| {
            let tripped = if self.interrupted.load(Ordering::Relaxed) {
                Some(Stop::Interrupted)
            } else {
                let reading = sampler.latest();
                dog.check(monotonic_ns(), &interval.counts, interval.length_ns, reading.as_ref())
            };
            if why.is_none() && tripped.is_some() {
                why = tripped;
                stop.store(true, Ordering::Relaxed);
            }
            on_interval(interval);
        };
        let mut control = load::Control { stop: &stop, on_interval: &mut watch };
        let result = load::run(spec, target, &self.placement.load, &mut control)?;
        // A guard that tripped on the very last interval stopped nothing.
        let why = why.filter(|_| result.end == model::load::LoadEnd::Stopped);
        Ok((result, why))
    }
}

impl Stage {
    fn watch(&self, capacity: usize) -> Watch {
        let paths = self.group.as_ref().map(Group::paths).cloned().unwrap_or_default();
        Watch {
            period_ns: READING_PERIOD_NS,
            capacity,
            group: GroupDirs { memory: paths.memory, cpuacct: paths.cpuacct, cpu: paths.cpu, unified: paths.unified },
            root_pid: Some(self.running.pid),
            port: Some(self.running.address.port()),
            ..Watch::default()
        }
    }

    fn stop(self) -> Result<(), ExperimentError> {
        self.running.stop()?;
        if let Some(group) = self.group {
            group.remove()?;
        }
        Ok(())
    }
}

/// How many readings a trial takes at most: both of its loads end by themselves or by the guard of time.
fn room(plan: &Plan, spec: &LoadSpec) -> usize {
    let guard = plan.guards.time_ns;
    let longest = |load: &LoadSpec| load.duration_ns.map_or(guard, |duration| duration.min(guard));
    let warm_up = warm_up(spec, plan.warmup).as_ref().map_or(0, longest);
    let whole = longest(spec).saturating_add(warm_up).saturating_add(READING_SLACK_NS);
    whole.div_ceil(READING_PERIOD_NS).min(MOST_READINGS) as usize
}

/// The first cell of every variant that is used.
fn one_cell_per_variant(plan: &Plan) -> impl Iterator<Item = &Cell> {
    plan.variants.iter().filter_map(|variant| plan.cells.iter().find(|cell| cell.variant == variant.name))
}

fn warm_up(spec: &LoadSpec, warmup: Warmup) -> Option<LoadSpec> {
    match warmup {
        Warmup::None => None,
        Warmup::Requests(n) => {
            Some(LoadSpec { connections: 1, threads: Some(1), requests: Some(n), duration_ns: None, ..spec.clone() })
        }
        Warmup::Duration(length) => Some(LoadSpec { requests: None, duration_ns: Some(length), ..spec.clone() }),
    }
}

fn died(log: &str) -> String {
    match log.lines().rev().find(|line| !line.trim().is_empty()) {
        Some(line) => format!("the server died during the trial; its log ends with: {}", line.trim()),
        None => "the server died during the trial and logged nothing".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::plan::{Options, parse};

    /// Seconds that the readings of a trial have room for, under a load, a warm-up and a guard of time.
    fn check(load: &str, warm_up: &str, guard: &str, expected: u64) {
        let text = format!(
            "[server]\nkind = \"embedded\"\n[warmup]\n{warm_up}\n[guards]\ntime = \"{guard}\"\n\
             [load.l]\npath = \"/\"\nconnections = 1\n{load}\n"
        );
        let plan = parse(&text, Path::new("t.toml"), &Options::default()).unwrap().0;
        let rows = room(&plan, &plan.loads[0]) as u64;
        assert_eq!(rows * READING_PERIOD_NS, (expected + if rows < MOST_READINGS { 60 } else { 0 }) * SECOND);
    }

    #[test]
    fn there_is_room_for_the_readings_of_the_longest_trial() {
        check("duration = \"10s\"", "", "600s", 10);
        check("duration = \"10s\"", "duration = \"3s\"", "600s", 13);
        // Requests may take as long as the guard lets them.
        check("requests = 5", "requests = 1", "600s", 1200);
        check("requests = 5\nduration = \"900s\"", "duration = \"900s\"", "100s", 200);
        check("requests = 5", "", "120min", 7200);
        check("requests = 5", "", "1000min", 40_000);
    }
}
