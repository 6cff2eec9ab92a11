//! A server that runs already, looked at, climbed and measured within a given time: what `webdyno check` does.
//!
//! It is a run like any other in the store: a cell for each number of connections, and one that the answer rests on. Nothing is
//! started, changed or put back; nothing is judged but how far to go.

mod climb;
mod crew;
mod pace;
mod preflight;
mod room;
mod whole;

use crate::ExperimentError;
use crate::door;
use crate::guard::Watchdog;
use crate::others::{Calm, LONG_REST, Sent, others, roots};
use crate::post::{Post, one_at_a_time};
use crate::resources;
use crate::schedule::Slot;
use crate::single::{Loaded, empty, keep, local_port, no_answer};
use crate::taken::address_not_taken;
use climb::{Climb, Next, ROUNDS, ROUNDS_HELD, Step};
use load::{Address, Control, Target, monotonic_ns};
use model::Nanos;
use model::check::{Page, Running, Summit};
use model::load::{Failure, LoadResult};
use model::plan::{Guards, LoadSpec};
use model::reading::{Column, Reading, Readings};
use model::run::RunHead;
use model::trial::{Outcome, Stop, Trial};
use monitor::{Awaited, GroupDirs, Sampler, Watch};
use pace::{HOLDS, Lengths, end_of};
use room::Memory;
use server::Census;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use store::Store;
use whole::Facts;

/// The cell that the answer rests on.
pub const HOLD: &str = "hold";
/// The cell of the most connections that were answered, once more.
pub const TOP: &str = "top";
/// Requests sent one after the other before everything else.
const LOOKS: u64 = 5;
/// The longest that a request may take.
const PATIENCE: Nanos = 10 * model::SECOND;

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
    address_not_taken(&orders.target.address)?;
    let template = orders.head.plan.loads[0].clone();
    let spec = LoadSpec { timeout_ns: PATIENCE.min(orders.budget_ns / 4), ..template };
    let proc = Path::new("/proc");
    let (ceiling, few_files) = resources::fitting(climb::CEILING, &spec, proc);
    let mut notes = resources::prepare(&LoadSpec { connections: ceiling, ..spec.clone() }, None, orders.target, proc)?;
    notes.extend(few_files);
    let port = local_port(&orders.target.address);
    let began = Census::take();
    let before = port.and_then(door::before);
    let calm = Calm::lasting(began, LONG_REST);
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
        return Err(no_answer(orders.target, &summary, None));
    }
    // Who keeps it from answering is there now.
    let before = if page.is_none() { port.and_then(door::before) } else { before };
    let page_ns = page.as_ref().map_or(0, |page| page.time_us * 1000);
    // A page that opens a session for whoever brings none would leave one behind for each request.
    let spec = LoadSpec { cookies: page.as_ref().is_some_and(|page| page.sets_cookie), ..spec };
    let mut checker = Checker {
        orders,
        ends_ns: began_ns + orders.budget_ns - end_of(orders.budget_ns),
        lengths: Lengths::of(orders.budget_ns, page_ns),
        spec,
        port,
        running: &running,
        climb: Climb::up_to(ceiling),
        trials: Vec::new(),
        crews: crew::Crews::new(),
        queues: if page.is_none() { crew::waiting(&running) } else { crew::Waiting::new() },
        // The budget is the limit of time here.
        dog: Watchdog::new(Guards { time_ns: orders.budget_ns, ..orders.head.plan.guards }, began_ns),
        memory: Memory::default(),
    };
    let (measured, window) = Sent::around(|| match &page {
        None => Ok((Summit::NoAnswer, Readings::default())),
        // A wrong address is told now, and not after a minute of it.
        Some(page) if page.is_refused() => Ok((Summit::Refused, Readings::default())),
        Some(_) => checker.measure(tell),
    });
    let (summit, readings) = measured?;
    // Whoever began meanwhile is at work when nothing is sent any more, and the server is done.
    checker.settle(0);
    let calm = [&calm, &Calm::lasting(Census::take(), LONG_REST)];
    let others = (!checker.trials.is_empty()).then(|| others(&calm, &window, &roots(&running)));
    let took_ns = monotonic_ns() - began_ns;
    let facts = Facts { took_ns, others, summit, page, before, preflight: summary, readings, notes };
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
    queues: crew::Waiting,
    /// One for all windows: each alone is too short for most of what it watches for.
    dog: Watchdog,
    memory: Memory,
}

/// What is measured next.
struct Window<'w> {
    cell: &'w str,
    connections: u32,
    length_ns: Nanos,
    /// Time that must be left when it is over.
    then_ns: Nanos,
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
        self.memory.begin(self.running, self.before_all(sampler).as_ref());
        let summit = loop {
            let connections = match self.climb.ask() {
                Next::Done(summit) => break summit,
                Next::Try(connections) => connections,
            };
            if is_set(self.orders.interrupted) {
                break Summit::Interrupted;
            }
            // Long enough for each to be answered, however many have to share the server.
            let length_ns = self.lengths.climb.max(self.climb.time_for(connections, ROUNDS));
            // The first step is made in any case.
            if connections > 1 && monotonic_ns() + length_ns + self.lengths.after() > self.ends_ns {
                break Summit::Time;
            }
            if !self.fits(connections, sampler.latest().as_ref()) {
                break Summit::Memory;
            }
            let window =
                Window { cell: &format!("c{connections}"), connections, length_ns, then_ns: self.lengths.after() };
            let stop = self.window(&window, sampler, tell)?;
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
        // What the climb ran from nobody goes back to.
        let calm = matches!(summit, Summit::Plateau | Summit::Ceiling | Summit::Files | Summit::Time);
        let top = self.climb.highest().filter(|&top| calm && top > enough);
        let each_ns = self.ends_ns.saturating_sub(monotonic_ns()) / u64::from(HOLDS + 1);
        for (cell, connections) in (0..HOLDS).map(|_| (HOLD, enough)).chain(top.map(|top| (TOP, top))) {
            let length_ns = self.climb.time_for(connections, ROUNDS_HELD).min(each_ns).max(self.lengths.hold);
            // However long a page takes, there is an answer; no promise is broken for more.
            let held = self.trials.iter().any(|(trial, _)| trial.cell == HOLD);
            if is_set(self.orders.interrupted) || (held && monotonic_ns() + length_ns > self.ends_ns) {
                break;
            }
            match self.window(&Window { cell, connections, length_ns, then_ns: 0 }, sampler, tell)? {
                Some(Stop::Interrupted) => break,
                Some(_) => return Ok(Summit::Guard),
                None => {}
            }
        }
        Ok(if is_set(self.orders.interrupted) { Summit::Interrupted } else { summit })
    }

    /// What is there before anything is sent, which all that follows is compared with: a reading in which no program works on a request that
    /// was given up, if one comes soon.
    fn before_all(&self, sampler: &Sampler) -> Option<Reading> {
        let patience = Duration::from_nanos(self.orders.budget_ns / 20);
        let began = Instant::now();
        // Of processes the first reading may not tell yet.
        let mut next = 1;
        loop {
            let awaited = sampler.wait(next, patience.saturating_sub(began.elapsed()));
            let latest = sampler.latest();
            let programs = latest.as_ref().and_then(|row| row.get(Column::TreeProgramLargest));
            if awaited != Awaited::Look || programs == Some(0) || self.running.root.is_none() {
                return latest;
            }
            next += 1;
        }
    }

    /// One window; why a guard stopped it, if one did.
    fn window(
        &mut self,
        &Window { cell, connections, length_ns, then_ns }: &Window<'_>,
        sampler: &Sampler,
        tell: &mut dyn FnMut(&CheckEvent<'_>),
    ) -> Result<Option<Stop>, ExperimentError> {
        self.settle(length_ns + then_ns);
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
        let dog = &mut self.dog;
        let (measured, beside) =
            crew::beside(self.port, self.running, || post.guarded(dog, &spec, &|| (), &mut |_, _| {}));
        let (load, stop, _) = measured?;
        // A guard that tripped when the window ended anyway has the last word as well: the next one would be worse.
        let stop = stop.or_else(|| self.dog.tripped());
        sampler.collect();
        tell(&CheckEvent::Window { cell, connections, load: &load });
        let rows = sampler.rows_after(load.started_ns);
        self.memory.saw(connections, self.running, &rows);
        if cell != HOLD && cell != TOP {
            self.climb.tell(Step::of(&load, is_starting(&rows)));
        }
        trial.door = beside.door;
        crew::grow(&mut self.crews, beside.crews);
        crew::fuller(&mut self.queues, beside.queues);
        trial.load = Some(load);
        trial.outcome = stop.map_or(Outcome::Complete, Outcome::EndedEarly);
        self.trials.push((trial, connections));
        Ok(stop)
    }

    /// One request, answered or not: what the last window left in the server's queues is not the next one's affair. It takes no time that
    /// what follows needs.
    fn settle(&self, following_ns: Nanos) {
        let left_ns = self.ends_ns.saturating_sub(monotonic_ns() + following_ns);
        let timeout_ns = self.spec.timeout_ns.min(self.orders.budget_ns / 8).min(left_ns);
        if !self.trials.is_empty() && timeout_ns > 0 {
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
            waiting: true,
            ..Watch::default()
        }
    }
}

/// Whether workers were started while connections waited.
fn is_starting(rows: &[Reading]) -> bool {
    let workers = |row: Option<&Reading>| row.and_then(|row| row.get(Column::TreeWorkers));
    let grew = workers(rows.last()) > workers(rows.first());
    let queues = rows.iter().filter_map(|row| row.get(Column::AcceptQueue));
    grew && queues.max().is_some_and(|most| most > 0)
}
