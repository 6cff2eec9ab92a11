//! The whole experiment: build, check the environment, rehearse, then trial after trial into the store.

use crate::ExperimentError;
use crate::build::build;
use crate::event::Event;
use crate::placement::Placement;
use crate::schedule::schedule;
use crate::trial::Bench;
use host::{Host, HostError};
use model::plan::{Confinement, Plan};
use model::run::{Anchor, RunEnd, RunHead};
use model::trial::Outcome;
use server::Control;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use store::Store;

/// A cell with so many invalid trials ends the run: it will not get better by itself.
const INVALID_LIMIT: u32 = 3;

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
}

/// Where to run it.
#[derive(Debug, Clone, Copy)]
pub struct World<'a> {
    /// This program, for the processes it starts of itself.
    pub exe: &'a Path,
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
    let ended = with_host(orders, world, |host| {
        // Before a build step has taken its time.
        if let Some(reserved) = reserved_for_root(orders)? {
            return Err(reserved.into());
        }
        if let Some(bytes) = orders.make_swap {
            host.make_swap(bytes)?;
        }
        if let Some(confine) = &orders.plan.confine {
            enough_swap(confine, 0)?;
        }
        let stage = Built::new(orders, world, host, on_event)?;
        let bench = stage.bench(world, host);
        bench.rehearse()?;
        if interrupted.load(Ordering::Relaxed) {
            return Ok(RunEnd::Interrupted);
        }
        let head = head(orders, &stage.placement);
        store.begin(&head)?;
        let result = trials(orders, &bench, store, &head, on_event);
        let end = match &result {
            Ok(end) => end.clone(),
            Err(error) => RunEnd::Failed(error.to_string()),
        };
        store.finish(&head.id, &end)?;
        result
    });
    // Whatever failed while the user was ending it failed because of that.
    let result = ended.result.or_else(|error| {
        let stopped = interrupted.load(Ordering::Relaxed) && !matches!(error, ExperimentError::Store(_));
        if stopped { Ok(RunEnd::Interrupted) } else { Err(error) }
    });
    Ended { result, ..ended }
}

/// What the orders ask for and this user may not do, though root may: the first such thing.
///
/// # Errors
/// When the machine refuses it to everybody.
pub fn reserved_for_root(orders: &Orders) -> Result<Option<HostError>, HostError> {
    let confined = orders.plan.confine.as_ref().map_or(Ok(()), |_| host::hierarchies().map(|_| ()));
    let swap = || orders.make_swap.map_or(Ok(()), |_| host::may_make_swap());
    match confined.and_then(|()| swap()) {
        Err(error @ HostError::NotRoot(_)) => Ok(Some(error)),
        result => result.map(|()| None),
    }
}

/// Builds what the plan needs and asks the server about every variant, without starting a server or sending anything. Everything
/// it makes lies in the run's own folder and is gone when it returns. What only root may do it does not
/// need; ask [`reserved_for_root`] first.
pub fn check(orders: &Orders, world: &World<'_>, on_event: &mut dyn FnMut(Event<'_>)) -> Ended<()> {
    with_host(orders, world, |host| {
        if let Some(confine) = &orders.plan.confine {
            enough_swap(confine, orders.make_swap.unwrap_or(0))?;
        }
        Built::new(orders, world, host, on_event)?.bench(world, host).check()
    })
}

/// Whatever happens inside, the machine is put back before anything is reported.
fn with_host<T>(
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
struct Built {
    plan: Plan,
    folder: PathBuf,
    placement: Placement,
    control: Box<dyn Control>,
}

impl Built {
    fn new(
        orders: &Orders,
        world: &World<'_>,
        host: &Host,
        on_event: &mut dyn FnMut(Event<'_>),
    ) -> Result<Built, ExperimentError> {
        let folder = host.temporary_dir()?;
        let plan = orders.plan.in_folder(&folder);
        build(&plan, host, &folder, world.interrupted, on_event)?;
        let placement = if plan.split { Placement::split() } else { Placement::default() };
        let control = server::control(&plan.server, &plan.file)
            .ok_or_else(|| ExperimentError::Missing("a server that is not ours cannot be started".to_owned()))?;
        Ok(Built { plan, folder, placement, control })
    }

    fn bench<'a>(&'a self, world: &World<'a>, host: &'a Host) -> Bench<'a> {
        Bench {
            plan: &self.plan,
            control: self.control.as_ref(),
            host,
            exe: world.exe,
            directory: self.folder.clone(),
            placement: &self.placement,
            interrupted: world.interrupted,
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
    let slots = schedule(&orders.plan, orders.seed);
    on_event(Event::Started { head, trials: slots.len() });
    let mut invalid: BTreeMap<&str, u32> = BTreeMap::new();
    for slot in &slots {
        if bench.interrupted.load(Ordering::Relaxed) {
            return Ok(RunEnd::Interrupted);
        }
        let trial = bench.trial(slot, on_event)?;
        store.save_trial(&head.id, &trial)?;
        on_event(Event::Ended { slot, trial: &trial });
        if let Outcome::Invalid(why) = &trial.outcome {
            let count = invalid.entry(&slot.cell).or_default();
            *count += 1;
            if *count == INVALID_LIMIT {
                return Ok(RunEnd::Failed(format!("cell `{}` failed {INVALID_LIMIT} times, last: {why}", slot.cell)));
            }
        }
    }
    let interrupted = bench.interrupted.load(Ordering::Relaxed);
    Ok(if interrupted { RunEnd::Interrupted } else { RunEnd::Complete })
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
