//! The whole experiment: build, check the environment, rehearse, then trial after trial into the store.

use crate::ExperimentError;
use crate::build::{build, check_packages};
use crate::changes::Changer;
use crate::event::Event;
use crate::memory;
use crate::placement::Placement;
use crate::resources::enough_for;
use crate::schedule::blocks;
use crate::sender::Sender;
use crate::services::Services;
use crate::taken::server_not_taken;
use crate::trial::Bench;
use host::{Host, HostError};
use model::Nanos;
use model::plan::{Confinement, Plan};
use model::run::{Anchor, Run, RunEnd, RunHead};
use model::trial::{Outcome, Trial};
use server::Control;
use stats::{LOOKS, PILOT, next_look};
use std::cell::RefCell;
use std::ffi::OsStr;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use store::Store;
use verdicts::{Standing, Verdicts};

/// A cell with so many invalid trials ends the run: it will not get better by itself.
const INVALID_LIMIT: usize = 3;

/// What to run.
#[derive(Debug, Clone)]
pub struct Orders {
    /// Identifier of the run.
    pub id: String,
    /// What was meant.
    pub plan: Plan,
    /// What was written.
    pub text: String,
    /// Seed of the order.
    pub seed: u64,
    /// When it began, on both clocks.
    pub anchor: Anchor,
    /// Version of webdyno.
    pub version: String,
    /// Bytes of a temporary swap file to make, when told.
    pub make_swap: Option<u64>,
    /// What the run did before it was interrupted, when it is resumed; else nothing.
    pub earlier: Vec<Trial>,
}

/// Where to run it.
#[derive(Debug, Clone, Copy)]
pub struct World<'a> {
    /// This program, for the processes it starts of itself.
    pub exe: &'a Path,
    /// The command that goes to other machines, as a shell reads it.
    pub ssh: &'a OsStr,
    /// Where journals live.
    pub state_dir: &'a Path,
    /// Set when the user wants to end.
    pub interrupted: &'a AtomicBool,
}

/// How a run went, and whether the machine could be put back.
#[derive(Debug)]
pub struct Ended<T> {
    /// What it was for.
    pub result: Result<T, ExperimentError>,
    /// What could not be put back, if anything; the guardian goes on trying, and `webdyno restore` does it later.
    pub left: Option<HostError>,
}

/// Carries out the orders. What was measured is in the store however this ends; see [`ExperimentError`] for why it may not
/// end well. An interrupt is not an error but a [`RunEnd`].
pub fn run(
    orders: &Orders,
    world: &World<'_>,
    store: &mut Store,
    on_event: &mut dyn FnMut(Event<'_>),
) -> Ended<RunEnd> {
    let interrupted = world.interrupted;
    let or_stopped = |error| or_stopped(error, interrupted);
    let ended = with_host(orders, world, |host| {
        // Before a build step has taken its time.
        if let Some(reason) = refused_later(orders)? {
            return Err(reason.into());
        }
        enough_for(&orders.plan, Path::new("/proc"))?;
        check_packages(&orders.plan, orders.plan.cells.iter())?;
        provide_swap(orders, host)?;
        if orders.plan.latency_budget {
            crate::accounts::available()?;
        }
        let sender = Sender::ready(&orders.plan, world)?;
        let stage = Built::new(orders, world, host, on_event)?;
        let mut bench = stage.bench(world, host);
        bench.remote = sender.remote.as_ref();
        bench.listen = sender.listen;
        bench.changer = Some(Changer::take(&stage.plan, host)?);
        bench.kept = Services::keep(&bench)?.into();
        bench.rehearse()?;
        if interrupted.load(Ordering::Relaxed) {
            return Ok(RunEnd::Interrupted);
        }
        let head = head(orders, &stage.placement);
        if orders.earlier.is_empty() {
            store.begin(&head)?;
        } else {
            store.finish(&head.id, &RunEnd::Unfinished)?;
        }
        let result = trials(orders, &bench, store, &head, on_event).or_else(or_stopped);
        let end = match &result {
            Ok(end) => end.clone(),
            Err(error) => RunEnd::Failed(error.to_string()),
        };
        store.finish(&head.id, &end)?;
        let forced = bench.kept.take().stop()?;
        forced.iter().for_each(|forced| on_event(Event::Remark(&forced.note())));
        result
    });
    Ended { result: ended.result.or_else(or_stopped), ..ended }
}

/// Whatever failed while the user was ending it failed because of that.
pub(crate) fn or_stopped(error: ExperimentError, interrupted: &AtomicBool) -> Result<RunEnd, ExperimentError> {
    let stopped = interrupted.load(Ordering::Relaxed) && !matches!(error, ExperimentError::Store(_));
    if stopped { Ok(RunEnd::Interrupted) } else { Err(error) }
}

/// Makes the swap that is asked for; an error when what there is then is too little for the plan.
pub(crate) fn provide_swap(orders: &Orders, host: &Host) -> Result<(), ExperimentError> {
    if let Some(bytes) = orders.make_swap {
        host.make_swap(bytes)?;
    }
    orders.plan.confine.as_ref().map_or(Ok(()), |confine| enough_swap(confine, 0))
}

/// What the run will be refused for, though its plan can be checked without: what this user may not do and root may, or else a swap
/// file for which no disk has room. The first such thing.
///
/// # Errors
/// When the machine can do to nobody what the plan asks for.
pub fn refused_later(orders: &Orders) -> Result<Option<HostError>, HostError> {
    let confined = orders.plan.confine.as_ref().map_or(Ok(()), |confine| host::reach()?.hierarchies().allow(confine));
    let swap = || orders.make_swap.map_or(Ok(()), |_| host::may_make_swap());
    match confined.and_then(|()| swap()).and_then(|()| memory::allowed(&orders.plan)) {
        Err(error @ (HostError::NotRoot(_) | HostError::NotDelegated { .. })) => Ok(Some(error)),
        result => result.map(|()| orders.make_swap.and_then(|bytes| host::room_for_swap(bytes).err())),
    }
}

/// Builds what the plan needs and asks the server about every variant, without starting a server or sending anything. Everything
/// it makes lies in the run's own folder and is gone when it returns. What only root may do it does not
/// need; ask [`refused_later`] first.
pub fn check(orders: &Orders, world: &World<'_>, on_event: &mut dyn FnMut(Event<'_>)) -> Ended<()> {
    with_host(orders, world, |host| {
        if let Some(confine) = &orders.plan.confine {
            enough_swap(confine, orders.make_swap.unwrap_or(0))?;
        }
        enough_for(&orders.plan, Path::new("/proc"))?;
        check_packages(&orders.plan, orders.plan.cells.iter())?;
        Built::new(orders, world, host, on_event)?.bench(world, host).check()
    })
}

/// Whatever happens inside, the machine is put back before anything is reported.
pub(crate) fn with_host<T>(
    orders: &Orders,
    world: &World<'_>,
    inside: impl FnOnce(&Host) -> Result<T, ExperimentError>,
) -> Ended<T> {
    match Host::open(world.exe, world.state_dir, &orders.id) {
        Ok(host) => {
            let result = inside(&host);
            Ended { result, left: host.close().err() }
        }
        Err(error) => Ended { result: Err(error.into()), left: None },
    }
}

/// A plan with its folder made and its build steps done.
pub(crate) struct Built {
    pub(crate) plan: Plan,
    pub(crate) folder: PathBuf,
    placement: Placement,
    control: Box<dyn Control>,
}

impl Built {
    pub(crate) fn new(
        orders: &Orders,
        world: &World<'_>,
        host: &Host,
        on_event: &mut dyn FnMut(Event<'_>),
    ) -> Result<Built, ExperimentError> {
        // Before a build step has taken its time, or anything was changed.
        server_not_taken(&orders.plan.server, host)?;
        let folder = host.temporary_dir()?;
        let plan = orders.plan.in_folder(&folder);
        build(&plan, host, &folder, world.interrupted, on_event)?;
        // A generator, or a server, that is away takes no CPU of this machine's.
        let both_here = plan.origin.is_none() && plan.server.is_here();
        let mut placement = if plan.split && both_here { Placement::split() } else { Placement::default() };
        if plan.in_place().is_some() || plan.server.url().is_some() {
            // Where a server runs that was there before is not ours to say.
            placement.server = Vec::new();
        }
        let control = server::control(&plan.server, &plan.file);
        Ok(Built { plan, folder, placement, control })
    }

    pub(crate) fn bench<'a>(&'a self, world: &World<'a>, host: &'a Host) -> Bench<'a> {
        Bench {
            plan: &self.plan,
            control: self.control.as_ref(),
            host,
            exe: world.exe,
            directory: self.folder.clone(),
            placement: &self.placement,
            remote: None,
            listen: Ipv4Addr::LOCALHOST.into(),
            interrupted: world.interrupted,
            changer: None,
            kept: RefCell::default(),
        }
    }
}

fn trials(
    orders: &Orders,
    bench: &Bench<'_>,
    store: &mut Store,
    head: &RunHead,
    on_event: &mut dyn FnMut(Event<'_>),
) -> Result<RunEnd, ExperimentError> {
    let mut run = Run { head: head.clone(), trials: orders.earlier.clone() };
    let done = run.whole_blocks();
    // A block that was interrupted is not filled up: its cells would be hours apart. What of it was measured together still counts.
    let begun = run.trials.iter().map(|trial| trial.block + 1).max().unwrap_or(0);
    let most = orders.plan.blocks;
    let missing = most.saturating_sub(done) as usize;
    on_event(Event::Started { head, trials: missing * orders.plan.cells.len() });
    let mut pace = Pace::new(orders.plan.budget_ns);
    for (made, block) in (done + 1..).zip(blocks(&orders.plan, orders.seed).skip(begun as usize).take(missing)) {
        if pace.is_spent() {
            on_event(Event::BudgetSpent { blocks: made - 1, longer: pace.longer() });
            break;
        }
        for slot in &block {
            if bench.interrupted.load(Ordering::Relaxed) {
                return Ok(RunEnd::Interrupted);
            }
            let trial = bench.trial(slot, on_event)?;
            store.save_trial(&head.id, &trial)?;
            on_event(Event::Ended { slot, trial: &trial });
            run.trials.push(trial);
            // What failed before the run was resumed may have been put right.
            if let Some(why) = hopeless(&run.trials[orders.earlier.len()..], &slot.cell) {
                return Ok(RunEnd::Failed(why));
            }
        }
        pace.block_ended();
        if is_over(&run, made, on_event) {
            break;
        }
    }
    let interrupted = bench.interrupted.load(Ordering::Relaxed);
    Ok(if interrupted { RunEnd::Interrupted } else { RunEnd::Complete })
}

/// Whether a run that ended could go on: blocks are missing, and it was not to end before.
#[must_use]
pub fn is_unfinished(run: &Run) -> bool {
    let plan = &run.head.plan;
    let done = run.whole_blocks();
    let settled = || LOOKS.contains(&(done as usize)) && verdicts::standing(run).settled;
    done < plan.blocks && !(plan.until_decided && settled())
}

/// A cell that failed so often that it will not get better by itself.
fn hopeless(trials: &[Trial], cell: &str) -> Option<String> {
    let invalid = |trial: &&Trial| trial.cell == cell && matches!(trial.outcome, Outcome::Invalid(_));
    let failed = trials.iter().filter(invalid);
    let Outcome::Invalid(last) = &failed.clone().nth(INVALID_LIMIT - 1)?.outcome else { return None };
    Some(format!("cell `{cell}` failed {INVALID_LIMIT} times, last: {last}"))
}

/// Looks at a run that may end when it is decided, if so many blocks are a time to look; whether it is over: every question has an answer,
/// or can have none.
fn is_over(run: &Run, blocks: u32, on_event: &mut dyn FnMut(Event<'_>)) -> bool {
    let plan = &run.head.plan;
    if !plan.until_decided {
        return false;
    }
    let most = plan.blocks as usize;
    if blocks as usize == PILOT {
        let metric = verdicts::decisive(run);
        let resolvable = Verdicts::resolvable(run, metric, most);
        on_event(Event::Pilot { blocks, most: plan.blocks, metric: metric.name(), resolvable });
    }
    if !LOOKS.contains(&(blocks as usize)) {
        return false;
    }
    let Standing { decided, settled } = verdicts::standing(run);
    let next = next_look(blocks as usize).map(|look| look.min(most) as u32).filter(|look| !settled && *look > blocks);
    on_event(Event::Looked { blocks, decided, settled, next });
    settled
}

/// How long blocks take, against the time there is.
struct Pace {
    budget: Option<Duration>,
    began: Instant,
    /// When the last block ended.
    ended: Duration,
    longest: Duration,
    blocks: u32,
}

impl Pace {
    fn new(budget_ns: Option<Nanos>) -> Pace {
        let (ended, longest) = (Duration::ZERO, Duration::ZERO);
        Pace { budget: budget_ns.map(Duration::from_nanos), began: Instant::now(), ended, longest, blocks: 0 }
    }

    fn block_ended(&mut self) {
        self.block_ended_at(self.began.elapsed());
    }

    fn block_ended_at(&mut self, elapsed: Duration) {
        self.longest = self.longest.max(elapsed - self.ended);
        self.ended = elapsed;
        self.blocks += 1;
    }

    /// Another block, a twentieth longer than the longest before, would end too late. The first one is always made.
    fn is_spent(&self) -> bool {
        self.is_spent_at(self.began.elapsed())
    }

    fn is_spent_at(&self, elapsed: Duration) -> bool {
        let end = elapsed + self.longest.mul_f64(1.05);
        self.blocks > 0 && self.budget.is_some_and(|budget| end > budget)
    }

    /// How long a block takes, when that is longer than all the time there was.
    fn longer(&self) -> Option<Duration> {
        let mean = self.ended.checked_div(self.blocks)?;
        self.budget.is_some_and(|budget| mean > budget).then_some(mean)
    }
}

fn head(orders: &Orders, placement: &Placement) -> RunHead {
    RunHead {
        id: orders.id.clone(),
        plan: orders.plan.clone(),
        plan_text: orders.text.clone(),
        seed: orders.seed,
        anchor: orders.anchor,
        host: host::facts(),
        version: orders.version.clone(),
        end: RunEnd::Unfinished,
        server_cpus: placement.server.clone(),
        load_cpus: placement.load.clone(),
        check: None,
    }
}

/// The plan's server must be able to swap; without that it would be killed or answer errors, and nothing would be slow.
/// `promised` is what a temporary file would add.
fn enough_swap(confine: &Confinement, promised: u64) -> Result<(), ExperimentError> {
    let free = host::swap_free() + promised;
    if free >= confine.swap {
        return Ok(());
    }
    let mib = |bytes: u64| bytes.div_ceil(1 << 20);
    Err(ExperimentError::Missing(format!(
        "this plan shows a server that swaps, and the host has {} MiB of free swap where {} MiB are needed; \
         add swap, or let webdyno make a temporary file: --make-swap {}M (as root)",
        mib(free),
        mib(confine.swap),
        mib(confine.swap)
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_block_ends_in_time() {
        // How many blocks of these lengths are made in 120 s.
        let check = |lengths: &[u64], expected: u32| {
            let mut pace = Pace::new(Some(120_000_000_000));
            let mut elapsed = Duration::ZERO;
            for length in lengths {
                if pace.is_spent_at(elapsed) {
                    break;
                }
                elapsed += Duration::from_secs(*length);
                pace.block_ended_at(elapsed);
            }
            assert_eq!(pace.blocks, expected, "{lengths:?}");
        };
        check(&[130, 1], 1);
        check(&[38, 38, 38, 38], 3);
        // The third would end in 120 s, or a little later.
        check(&[40, 40, 40], 2);
        check(&[30, 45, 30, 30], 2);
    }
}
