//! A server that runs already, looked at, climbed and measured within a given time: what `webdyno check` does.
//!
//! It is a run like any other in the store: a cell for each number of connections, and one that the answer rests on. Nothing is
//! started, changed or put back; nothing is judged but how far to go.

mod climb;
mod crew;
mod pace;
mod preflight;

use crate::ExperimentError;
use crate::door;
use crate::post::{Post, one_at_a_time};
use crate::resources;
use crate::schedule::Slot;
use crate::single::{Loaded, empty, keep, local_port, no_answer};
use climb::{Climb, Next, Step};
use load::{Address, Control, Target, monotonic_ns};
use model::Nanos;
use model::check::{Check, Kind, Page, PoolWork, Running, Summit, WorkerMemory};
use model::load::{Failure, LoadResult};
use model::plan::{Cell, LoadSpec, Plan, Role};
use model::reading::{Column, Reading, Readings};
use model::run::{Run, RunEnd, RunHead};
use model::trial::{EffectiveSettings, Outcome, Preflight, Stop, Trial};
use monitor::{GroupDirs, Sampler, Watch};
use pace::{HOLDS, LEAST_HOLDS, Lengths};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use store::Store;

/// The cell that the answer rests on.
pub const HOLD: &str = "hold";
/// The cell of the most connections that were answered, once more.
pub const TOP: &str = "top";
/// Requests sent one after the other before everything else.
const LOOKS: u64 = 5;
/// The longest that a request may take.
const PATIENCE: Nanos = 10 * model::SECOND;
/// Part of the memory that a climb leaves alone.
const SPARE: f64 = 0.1;
/// Idle processes that prefork keeps by default.
const SPARE_SERVERS: u64 = 10;

/// A check to be carried out.
#[derive(Debug)]
pub struct CheckOrders<'a> {
    /// The run's head: a plan with one load, of which only the connections and the length will differ.
    pub head: RunHead,
    /// Whom to load.
    pub target: &'a Target,
    /// The time all of it may take.
    pub budget_ns: Nanos,
    /// This program, for the sampler it starts.
    pub exe: &'a Path,
    /// Set when the user wants to end.
    pub interrupted: &'a AtomicBool,
}

/// One piece of progress.
#[derive(Debug)]
pub enum CheckEvent<'a> {
    /// Who answers is known.
    Found(&'a Running),
    /// What single requests showed.
    Page(&'a Page),
    /// A window was measured, with so many connections.
    Window {
        /// Which cell it belongs to.
        cell: &'a str,
        /// How many connections there were.
        connections: u32,
        /// What came of it.
        load: &'a LoadResult,
    },
}

/// Carries out a check. What was measured is in the store, if there is one, however this ends.
///
/// # Errors
/// When nobody listens there, the load cannot be started, or the host not be watched.
pub fn check(
    orders: &CheckOrders<'_>,
    store: Option<&mut Store>,
    tell: &mut dyn FnMut(&CheckEvent<'_>),
) -> Result<Loaded, ExperimentError> {
    let began_ns = monotonic_ns();
    let template = orders.head.plan.loads[0].clone();
    let spec = LoadSpec { timeout_ns: PATIENCE.min(orders.budget_ns / 4), ..template };
    let notes = resources::prepare(
        &LoadSpec { connections: climb::CEILING, ..spec.clone() },
        None,
        orders.target,
        Path::new("/proc"),
    )?;
    let port = local_port(&orders.target.address);
    let before = port.and_then(door::before);
    let looked = look(orders, &spec)?;
    let running = found(orders, looked.software().as_deref());
    tell(&CheckEvent::Found(&running));
    let page = looked.page();
    if let Some(page) = &page {
        tell(&CheckEvent::Page(page));
    }
    let summary = looked.summary();
    // A server whose workers all are held does not answer, and that can be told; one that is not there cannot.
    if page.is_none() && !summary.failed.contains_key(&Failure::Timeout) && !is_set(orders.interrupted) {
        return Err(no_answer(orders.target, &summary));
    }
    // Who keeps it from answering is there now.
    let before = if page.is_none() { port.and_then(door::before) } else { before };
    let page_ns = page.as_ref().map_or(0, |page| page.time_us * 1000);
    // A page that opens a session for whoever brings none would leave one behind for each request.
    let spec = LoadSpec { cookies: page.as_ref().is_some_and(|page| page.sets_cookie), ..spec };
    let mut checker = Checker {
        orders,
        ends_ns: began_ns + orders.budget_ns,
        lengths: Lengths::of(orders.budget_ns, page_ns),
        spec,
        port,
        running: &running,
        climb: Climb::default(),
        trials: Vec::new(),
        crews: crew::Crews::new(),
    };
    let (summit, readings) =
        if page.is_some() { checker.measure(tell)? } else { (Summit::NoAnswer, Readings::default()) };
    let facts = Facts { summit, page, before, preflight: summary, readings, notes };
    let run = checker.run(facts);
    let kept = store.map_or(Ok(()), |store| keep(store, &run));
    Ok(Loaded { run, kept })
}

fn is_set(flag: &AtomicBool) -> bool {
    flag.load(Ordering::Relaxed)
}

/// A few requests, one at a time.
fn look(orders: &CheckOrders<'_>, spec: &LoadSpec) -> Result<preflight::Looked, ExperimentError> {
    let one = one_at_a_time(spec, LOOKS);
    let mut control = Control { stop: orders.interrupted, on_interval: &mut |_| {} };
    // A slow page is not asked for five times.
    let enough_ns = orders.budget_ns / 20;
    let witness = || preflight::Looked::until(enough_ns);
    let cpus = &orders.head.load_cpus;
    let (_, looks) = load::run_witnessed(&one, orders.target, cpus, &mut control, orders.interrupted, &witness)?;
    Ok(preflight::together(looks))
}

fn found(orders: &CheckOrders<'_>, says: Option<&str>) -> Running {
    match &orders.target.address {
        Address::Tcp(address) => server::look(*address, says),
        _ => Running { server: says.map(str::to_owned), ..Running::default() },
    }
}

/// A check under way.
struct Checker<'a, 'b> {
    orders: &'a CheckOrders<'b>,
    ends_ns: Nanos,
    lengths: Lengths,
    spec: LoadSpec,
    port: Option<u16>,
    running: &'a Running,
    climb: Climb,
    trials: Vec<(Trial, u32)>,
    crews: crew::Crews,
}

/// What is known when all is measured.
struct Facts {
    summit: Summit,
    page: Option<Page>,
    before: Option<model::check::Door>,
    preflight: Preflight,
    readings: Readings,
    notes: Vec<String>,
}

impl Checker<'_, '_> {
    /// The climb, and the windows after it.
    fn measure(&mut self, tell: &mut dyn FnMut(&CheckEvent<'_>)) -> Result<(Summit, Readings), ExperimentError> {
        let sampler = Sampler::start(self.orders.exe, &self.watch())?;
        let measured = self.windows(&sampler, tell);
        let readings = sampler.finish()?;
        Ok((measured?, readings))
    }

    fn windows(&mut self, sampler: &Sampler, tell: &mut dyn FnMut(&CheckEvent<'_>)) -> Result<Summit, ExperimentError> {
        let summit = loop {
            let connections = match self.climb.ask() {
                Next::Done(summit) => break summit,
                Next::Try(connections) => connections,
            };
            if is_set(self.orders.interrupted) {
                break Summit::Interrupted;
            }
            // The first step is made in any case.
            if connections > 1 && monotonic_ns() + self.lengths.climb + self.lengths.after() > self.ends_ns {
                break Summit::Time;
            }
            if !self.fits(connections, sampler.latest().as_ref()) {
                break Summit::Memory;
            }
            let stop = self.window(&format!("c{connections}"), connections, self.lengths.climb, sampler, tell)?;
            match stop {
                Some(Stop::Interrupted) => break Summit::Interrupted,
                Some(_) => break Summit::Guard,
                None => {}
            }
        };
        if matches!(summit, Summit::Interrupted | Summit::Guard) {
            return Ok(summit);
        }
        let Some(enough) = self.climb.enough() else { return Ok(summit) };
        let top = self.climb.highest().filter(|&top| top > enough);
        let windows = (0..HOLDS).map(|_| (HOLD, enough)).chain(top.map(|top| (TOP, top)));
        for (cell, connections) in windows {
            // However long a page takes, two windows are needed for an interval, and no promise is broken for a third.
            let held = self.trials.iter().filter(|(trial, _)| trial.cell == HOLD).count() as u64;
            if is_set(self.orders.interrupted)
                || (held >= u64::from(LEAST_HOLDS) && monotonic_ns() + self.lengths.hold > self.ends_ns)
            {
                break;
            }
            if self.window(cell, connections, self.lengths.hold, sampler, tell)?.is_some() {
                break;
            }
        }
        Ok(if is_set(self.orders.interrupted) { Summit::Interrupted } else { summit })
    }

    /// One window; why a guard stopped it, if one did.
    fn window(
        &mut self,
        cell: &str,
        connections: u32,
        length_ns: Nanos,
        sampler: &Sampler,
        tell: &mut dyn FnMut(&CheckEvent<'_>),
    ) -> Result<Option<Stop>, ExperimentError> {
        self.settle();
        let slot = self.slot(cell);
        let spec = LoadSpec { connections, requests: None, duration_ns: Some(length_ns), ..self.spec.clone() };
        let post = Post {
            remote: None,
            target: self.orders.target,
            cpus: &self.orders.head.load_cpus,
            guards: self.orders.head.plan.guards,
            sampler,
            interrupted: self.orders.interrupted,
        };
        let mut trial = empty(&slot);
        let (measured, beside) = crew::beside(self.port, self.running, || post.load(&spec, &mut |_, _| {}));
        let (load, stop) = measured?;
        sampler.collect();
        tell(&CheckEvent::Window { cell, connections, load: &load });
        if cell != HOLD && cell != TOP {
            let ended = load.counts.good + load.counts.failures();
            let failed = if ended == 0 { 0.0 } else { load.counts.failures() as f64 / ended as f64 };
            let starting = is_starting(&sampler.rows_after(load.started_ns));
            self.climb.tell(Step { connections, goodput: load.goodput(), failed, starting });
        }
        trial.door = beside.door;
        crew::grow(&mut self.crews, beside.crews);
        trial.load = Some(load);
        trial.outcome = stop.map_or(Outcome::Complete, Outcome::EndedEarly);
        self.trials.push((trial, connections));
        Ok(stop)
    }

    /// One request, answered or not: what the last window left in the server's queues is not the next one's affair.
    fn settle(&self) {
        if !self.trials.is_empty() {
            let timeout_ns = self.spec.timeout_ns.min(self.orders.budget_ns / 8);
            let one = LoadSpec { timeout_ns, ..one_at_a_time(&self.spec, 1) };
            // Whether it was answered the window itself will tell.
            let _ = load::records(&one, self.orders.target, &self.orders.head.load_cpus, self.orders.interrupted);
        }
    }

    fn slot(&self, cell: &str) -> Slot {
        let block = self.trials.iter().filter(|(trial, _)| trial.cell == cell).count();
        let block = u32::try_from(block).unwrap_or(u32::MAX);
        Slot { number: self.trials.len(), block, position: 0, cell: cell.to_owned() }
    }

    /// Whether memory holds what so many connections could bring about, with some to spare; yes when nothing is known.
    fn fits(&self, connections: u32, latest: Option<&Reading>) -> bool {
        let Some((free, whole)) = latest.and_then(|reading| room(self.running, reading)) else { return true };
        let more: u64 = self.held().iter().map(|(pool, held)| self.more(pool, held, connections)).sum();
        more as f64 <= free - whole * SPARE
    }

    /// What workers hold now, and the most that one of them held at work.
    fn held(&self) -> Vec<(String, WorkerMemory)> {
        let mut held = server::memory_of(self.running);
        for (pool, held) in &mut held {
            held.largest = held.largest.max(self.crews.get(pool).map_or(0, |crew| crew.largest));
        }
        held
    }

    /// Bytes that workers could take beyond what they have when so many connections are served.
    fn more(&self, pool: &str, held: &WorkerMemory, connections: u32) -> u64 {
        let cpus = u64::from(self.orders.head.host.cpus);
        let of_pool = self.running.pools.iter().find(|known| known.name == pool && !pool.is_empty());
        let limit = match of_pool {
            Some(pool) => pool.limit(),
            None => self.running.limit(cpus),
        };
        let limit = limit.map_or(u64::MAX, |limit| limit.value);
        let workers = match (of_pool, self.running.kind) {
            (Some(_), _) => u64::from(connections).min(limit),
            (None, Kind::ApachePrefork) => (u64::from(connections) + SPARE_SERVERS).min(limit),
            (None, Kind::ApacheEvent | Kind::ApacheWorker) => {
                u64::from(connections).min(limit).div_ceil(self.running.threads_per_child()) + 1
            }
            // Their number is fixed.
            (None, Kind::Apache | Kind::Nginx | Kind::Other) => held.workers,
        };
        (workers * held.largest).saturating_sub(held.total)
    }

    fn watch(&self) -> Watch {
        let group = self.running.group.as_ref().map_or_else(GroupDirs::default, |group| {
            let directory = Some(group.directory.clone());
            let v2 = |directory: &Option<_>| directory.clone().filter(|_| group.v2);
            GroupDirs { cpuacct: None, cpu: v2(&directory), unified: v2(&directory), memory: directory }
        });
        let readings = self.orders.budget_ns / self.lengths.reading * 2 + 100;
        Watch {
            period_ns: self.lengths.reading,
            capacity: usize::try_from(readings).unwrap_or(usize::MAX).min(6000),
            group,
            root_pid: self.running.root,
            port: self.port,
            ..Watch::default()
        }
    }

    /// All of it as a run.
    fn run(self, facts: Facts) -> Run {
        let Facts { summit, page, before, preflight, readings, notes } = facts;
        let cpus = u64::from(self.orders.head.host.cpus);
        let settings = EffectiveSettings {
            server: self.running.server.clone().unwrap_or_default(),
            values: self.running.settings.iter().map(|setting| (setting.name.clone(), setting.value.clone())).collect(),
            worker_limit: self.running.limit(cpus).filter(|_| self.running.kind.is_apache()).map(|limit| limit.value),
        };
        let climb = steps(&self.trials);
        let after = self.held();
        let of_pools = self.crews.iter().filter(|(pool, _)| !pool.is_empty());
        let work =
            of_pools.map(|(pool, crew)| (pool.clone(), PoolWork { most: crew.most, ticks: crew.ticks })).collect();
        let plan = plan(&self.orders.head.plan, &self.spec, &self.trials);
        let mut trials: Vec<Trial> = self.trials.into_iter().map(|(trial, _)| trial).collect();
        if trials.is_empty() {
            let slot = Slot { number: 0, block: 0, position: 0, cell: HOLD.to_owned() };
            trials.push(empty(&slot));
        }
        for trial in &mut trials {
            trial.settings = settings.clone();
            trial.readings = around(&readings, trial.load.as_ref());
        }
        trials[0].preflight = Some(preflight);
        trials[0].notes = notes;
        let check = Check {
            budget_ns: self.orders.budget_ns,
            running: self.running.clone(),
            page,
            before,
            after,
            work,
            summit,
            climb,
        };
        let end = if summit == Summit::Interrupted { RunEnd::Interrupted } else { RunEnd::Complete };
        Run { head: RunHead { plan, end, check: Some(Box::new(check)), ..self.orders.head.clone() }, trials }
    }
}

/// The cells of the climb with their connections, each once.
fn steps(trials: &[(Trial, u32)]) -> Vec<(String, u32)> {
    let mut steps: Vec<(String, u32)> = Vec::new();
    for (trial, connections) in trials.iter().filter(|(trial, _)| trial.cell != HOLD && trial.cell != TOP) {
        if !steps.iter().any(|(name, _)| *name == trial.cell) {
            steps.push((trial.cell.clone(), *connections));
        }
    }
    steps
}

/// A cell for each that was measured; the one that the answer rests on is there in any case.
fn plan(planned: &Plan, spec: &LoadSpec, trials: &[(Trial, u32)]) -> Plan {
    let mut cells: Vec<(&str, u32)> = vec![(HOLD, 1)];
    for (trial, connections) in trials {
        match cells.iter_mut().find(|(name, _)| *name == trial.cell) {
            Some((_, known)) => *known = *connections,
            None => cells.push((&trial.cell, *connections)),
        }
    }
    let variant = planned.variants[0].name.clone();
    let load = |&(name, connections): &(&str, u32)| LoadSpec { name: name.to_owned(), connections, ..spec.clone() };
    let cell = |&(name, _): &(&str, u32)| Cell {
        name: name.to_owned(),
        variant: variant.clone(),
        load: name.to_owned(),
        role: if name == HOLD { Role::Baseline } else { Role::Candidate },
    };
    Plan { loads: cells.iter().map(load).collect(), cells: cells.iter().map(cell).collect(), ..planned.clone() }
}

/// The readings of a window, and a few around it.
fn around(all: &Readings, load: Option<&LoadResult>) -> Readings {
    let Some(load) = load else { return Readings { rows: Vec::new(), notes: all.notes.clone() } };
    let first = all.rows.partition_point(|row| row.at_ns < load.started_ns).saturating_sub(2);
    let last = all.rows.partition_point(|row| row.at_ns <= load.ended_ns) + 1;
    let rows = all.rows[first..last.min(all.rows.len())].to_vec();
    Readings { rows, notes: all.notes.clone() }
}

/// Whether workers were started while connections waited.
fn is_starting(rows: &[Reading]) -> bool {
    let workers = |row: Option<&Reading>| row.and_then(|row| row.get(Column::TreeWorkers));
    let grew = workers(rows.last()) > workers(rows.first());
    let queues = rows.iter().filter_map(|row| row.get(Column::AcceptQueue));
    grew && queues.max().is_some_and(|most| most > 0)
}

/// Bytes that are left, and of how many: the group's, else the host's.
fn room(running: &Running, reading: &Reading) -> Option<(f64, f64)> {
    if let Some(group) = &running.group {
        let used = reading.get(Column::GroupAnon).or(group.used)?;
        return Some((group.limit.saturating_sub(used) as f64, group.limit as f64));
    }
    let kib = |column| Some(reading.get(column)? as f64 * 1024.0);
    Some((kib(Column::MemAvailable)?, kib(Column::MemTotal)?))
}
