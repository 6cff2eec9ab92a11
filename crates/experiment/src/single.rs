//! One load against a server that is there already: what `webdyno load` does.
//!
//! It is a run of one cell and one trial, stored like any other, but nothing is started, changed or put back.

use crate::ExperimentError;
use crate::event::{Event, Phase};
use crate::find;
use crate::others::{Calm, Sent, others, roots};
use crate::post::{Post, READING_PERIOD_NS, ROOM, cut_off, one_at_a_time, tell_reading, warm_up};
use crate::probe;
use crate::resources;
use crate::schedule::{Slot, schedule};
use crate::taken::address_not_taken;
use load::{Address, FetchError, Target, Witness, monotonic_ns};
use model::Nanos;
use model::load::Failure;
use model::plan::LoadSpec;
use model::reading::Readings;
use model::run::{Run, RunEnd, RunHead};
use model::trial::{EffectiveSettings, Outcome, Preflight, Stop, Trial};
use monitor::{Sampler, Watch};
use remote::Remote;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use store::{Store, StoreError};

/// A load to be carried out.
#[derive(Debug)]
pub struct LoadOrders<'a> {
    /// The run's head: a plan with one cell, of a server that is only a URL.
    pub head: RunHead,
    /// Whom to load.
    pub target: &'a Target,
    /// Requests sent one at a time before everything else.
    pub preflight: u64,
    /// How often an independent visitor comes by while it is measured, if one does.
    pub probe: Option<Nanos>,
    /// The machine that sends it, if it is another one. A visitor comes from this machine all the same.
    pub remote: Option<&'a Remote>,
    /// This program, for the sampler it starts.
    pub exe: &'a Path,
    /// Set when the user wants to end.
    pub interrupted: &'a AtomicBool,
}

/// A load that was carried out.
#[derive(Debug)]
pub struct Loaded {
    /// What was measured.
    pub run: Run,
    /// Whether all of it is in the store, if there is one: what was measured is worth telling whether it can be kept or not.
    pub kept: Result<(), StoreError>,
}

/// Carries out a load: preflight, warm-up, then the load with the host watched beside it. What was measured is in the store, if
/// there is one, however this ends.
///
/// # Errors
/// When nothing answers in the preflight, the load cannot be started, or the host not be watched; of a search also when the store
/// refuses before it begins.
pub fn load(
    orders: &LoadOrders<'_>,
    store: Option<&mut Store>,
    on_event: &mut dyn FnMut(Event<'_>),
) -> Result<Loaded, ExperimentError> {
    if let Some(search) = &orders.head.plan.search {
        prepare(orders, on_event)?;
        return find::find(orders, search, store, on_event);
    }
    load_witnessed(orders, store, &|| (), on_event).map(|(loaded, _)| loaded)
}

/// As [`load()`] for a load that is no search, with a witness beside each of its workers, who comes back at the end; there is none
/// if it was over before it began.
///
/// # Errors
/// As [`load()`].
pub fn load_witnessed<W: Witness>(
    orders: &LoadOrders<'_>,
    store: Option<&mut Store>,
    witness: &(dyn Fn() -> W + Sync),
    on_event: &mut dyn FnMut(Event<'_>),
) -> Result<(Loaded, Vec<W>), ExperimentError> {
    let notes = prepare(orders, on_event)?;
    let slot = schedule(&orders.head.plan, orders.head.seed).swap_remove(0);
    // Whoever wants nothing beforehand gets nothing.
    let calm = (orders.preflight > 0).then(Calm::now);
    let mut trial = Trial { preflight: preflight(orders, &slot, on_event)?, notes, ..empty(&slot) };
    let mut witnesses = Vec::new();
    if orders.interrupted.load(Ordering::Relaxed) {
        trial.outcome = Outcome::EndedEarly(Stop::Interrupted);
    } else {
        on_event(Event::Started { head: &orders.head, trials: 1 });
        let (measured, window) = Sent::around(|| measure(orders, spec(orders), &slot, &mut trial, witness, on_event));
        witnesses = measured?;
        trial.others = calm.map(|calm| others(&[&calm], &window, &roots_at(&orders.target.address)));
    }
    on_event(Event::Ended { slot: &slot, trial: &trial });
    let end = match trial.outcome {
        Outcome::EndedEarly(Stop::Interrupted) => RunEnd::Interrupted,
        _ => RunEnd::Complete,
    };
    let run = Run { head: RunHead { end, ..orders.head.clone() }, trials: vec![trial] };
    let kept = store.map_or(Ok(()), |store| keep(store, &run));
    Ok((Loaded { run, kept }, witnesses))
}

/// The first processes of the server that answers there, as far as they are this machine's and may be seen.
fn roots_at(address: &Address) -> Vec<u32> {
    match address {
        Address::Tcp(at) if address.is_here() || load::is_ours(address) => roots(&server::look(*at, None)),
        _ => Vec::new(),
    }
}

/// Looks whether this machine has what the load needs; gives what is worth noting about it.
fn prepare(orders: &LoadOrders<'_>, on_event: &mut dyn FnMut(Event<'_>)) -> Result<Vec<String>, ExperimentError> {
    address_not_taken(&orders.target.address)?;
    let notes = match orders.remote {
        Some(remote) => remote.prepare(spec(orders), orders.target, &orders.head.load_cpus, orders.interrupted)?,
        None => resources::prepare(spec(orders), orders.probe, orders.target, Path::new("/proc"))?,
    };
    notes.iter().for_each(|note| on_event(Event::Remark(note)));
    Ok(notes)
}

/// A trial of which nothing is known yet.
pub(crate) fn empty(slot: &Slot) -> Trial {
    Trial {
        block: slot.block,
        position: slot.position,
        cell: slot.cell.clone(),
        rate: None,
        outcome: Outcome::Complete,
        began_ns: monotonic_ns(),
        settings: EffectiveSettings::default(),
        share: None,
        preflight: None,
        load: None,
        probe: None,
        beside: Vec::new(),
        door: None,
        workers: None,
        others: None,
        readings: Readings::default(),
        notes: Vec::new(),
        status: Vec::new(),
        around: None,
        accounts: None,
        log_tail: String::new(),
        logged: None,
    }
}

/// Warms up, and measures `spec` with the host watched and a visitor beside it.
pub(crate) fn measure<W: Witness>(
    orders: &LoadOrders<'_>,
    spec: &LoadSpec,
    slot: &Slot,
    trial: &mut Trial,
    witness: &(dyn Fn() -> W + Sync),
    on_event: &mut dyn FnMut(Event<'_>),
) -> Result<Vec<W>, ExperimentError> {
    let plan = &orders.head.plan;
    let watch = Watch {
        period_ns: READING_PERIOD_NS,
        capacity: ROOM,
        port: local_port(&orders.target.address),
        waiting: true,
        ..Watch::default()
    };
    let sampler = Sampler::start(orders.exe, &watch)?;
    let post = Post {
        target: orders.target,
        remote: orders.remote,
        cpus: &orders.head.load_cpus,
        guards: plan.guards,
        sampler: &sampler,
        interrupted: orders.interrupted,
    };
    let measured = (|| -> Result<_, ExperimentError> {
        if let Some(warmup) = warm_up(spec, plan.warmup) {
            on_event(Event::Trial { slot, phase: Phase::WarmUp });
            on_event(Event::Sending(&warmup));
            let (load, stop) = post.load(&warmup, &mut |_, reading| tell_reading(reading, on_event))?;
            // What a guard stopped in the warm-up it will stop again, and then there is something to show.
            if stop == Some(Stop::Interrupted) {
                return Ok((None, stop, Vec::new()));
            }
            trial.notes.extend(cut_off(&load));
        }
        on_event(Event::Trial { slot, phase: Phase::Measure });
        on_event(Event::Sending(spec));
        let visitor = orders.probe.map(|every| probe::spec(spec, every));
        // Visits are told from the load's own thread, as everything else.
        let (visits, visited) = mpsc::channel();
        let (load, seen) = probe::beside(visitor.as_ref(), orders.target, visits, || {
            post.witnessed(spec, witness, &mut |interval, reading| {
                if let Some(visitor) = &visitor {
                    visited.try_iter().for_each(|interval| on_event(Event::Visits { visitor, interval: &interval }));
                }
                tell_reading(reading, on_event);
                on_event(Event::Interval { slot, interval });
            })
        });
        match seen {
            Some(Ok(seen)) => trial.probe = Some(seen),
            Some(Err(error)) => trial.notes.push(format!("no visitor came by: {error}")),
            None => {}
        }
        load.map(|(load, stop, witnesses)| (Some(load), stop, witnesses))
    })();
    trial.readings = sampler.finish()?;
    let (load, stop, witnesses): (_, Option<Stop>, _) = measured?;
    trial.load = load;
    trial.outcome = stop.map_or(Outcome::Complete, Outcome::EndedEarly);
    Ok(witnesses)
}

/// Sends the first requests one at a time and says what came back.
pub(crate) fn preflight(
    orders: &LoadOrders<'_>,
    slot: &Slot,
    on_event: &mut dyn FnMut(Event<'_>),
) -> Result<Option<Preflight>, ExperimentError> {
    if orders.preflight == 0 {
        return Ok(None);
    }
    on_event(Event::Trial { slot, phase: Phase::Preflight });
    let mut spec = one_at_a_time(spec(orders), orders.preflight);
    // Each server behind the name is looked at.
    spec.keep_alive &= !matches!(orders.target.address, Address::InTurn(_));
    let found = match orders.remote {
        Some(remote) => remote.look(&spec, orders.target, &orders.head.load_cpus, orders.interrupted)?,
        None => load::look(&spec, orders.target, &orders.head.load_cpus, orders.interrupted)?,
    };
    if found.statuses.is_empty() && !orders.interrupted.load(Ordering::Relaxed) {
        return Err(nobody_answers(orders, &found));
    }
    on_event(Event::Preflight(&found));
    remarks(orders, &found).iter().for_each(|remark| on_event(Event::Remark(remark)));
    Ok(Some(found))
}

/// What is odd about the first answers. The load goes on: it may be meant so.
fn remarks(orders: &LoadOrders<'_>, found: &Preflight) -> Vec<String> {
    let spec = spec(orders);
    let mut remarks = Vec::new();
    let odd: Vec<String> =
        found.statuses.keys().filter(|status| !(200..300).contains(*status)).map(u16::to_string).collect();
    // Checks may ask for such a status.
    if !odd.is_empty() && spec.checks.is_empty() {
        // Asked from here, another machine's server may say something else.
        let redirect = orders.remote.is_none() && found.statuses.keys().any(|status| (300..400).contains(status));
        let location =
            redirect.then(|| load::location(spec, orders.target, orders.interrupted).ok().flatten()).flatten();
        let whither = location.map_or_else(String::new, |url| format!("; it points to {url}, which is not followed"));
        remarks.push(format!("the answer has status {}, which counts as failed{whither}", odd.join(" and ")));
    }
    if let Some((least, most)) = found.bytes.filter(|(least, most)| least != most) {
        remarks.push(format!("answers differ in size: {least} to {most} bytes"));
    }
    remarks
}

fn nobody_answers(orders: &LoadOrders<'_>, found: &Preflight) -> ExperimentError {
    let cause = found.failed.iter().max_by_key(|(_, count)| **count).map(|(cause, _)| *cause);
    let why = (orders.remote.is_none() && cause == Some(Failure::Proxy)).then(|| what_the_proxy_said(orders)).flatten();
    ExperimentError::NoAnswer { address: orders.target.address.to_string(), requests: found.requests, cause, why }
}

/// Nobody answers; `why` is what more is known than the cause.
pub(crate) fn no_answer(target: &Target, found: &Preflight, why: Option<String>) -> ExperimentError {
    let cause = found.failed.iter().max_by_key(|(_, count)| **count).map(|(cause, _)| *cause);
    ExperimentError::NoAnswer { address: target.address.to_string(), requests: found.requests, cause, why }
}

/// Asked once more, for its status.
fn what_the_proxy_said(orders: &LoadOrders<'_>) -> Option<String> {
    match load::fetch(spec(orders), orders.target, orders.interrupted) {
        Err(FetchError::Failed(why)) => Some(why),
        _ => None,
    }
}

/// Puts a run into the store.
///
/// # Errors
/// When the store refuses.
pub fn keep(store: &mut Store, run: &Run) -> Result<(), StoreError> {
    store.begin(&run.head)?;
    for trial in &run.trials {
        store.save_trial(&run.head.id, trial)?;
    }
    store.finish(&run.head.id, &run.head.end)
}

pub(crate) fn spec<'a>(orders: &'a LoadOrders<'_>) -> &'a LoadSpec {
    let plan = &orders.head.plan;
    plan.load(plan.baseline())
}

/// The port whose accept queue can be watched: only this host's own, and only one.
pub(crate) fn local_port(address: &Address) -> Option<u16> {
    let first = address.all().first()?.port();
    let one = address.all().iter().all(|address| address.port() == first);
    (one && (address.is_here() || load::is_ours(address))).then_some(first)
}
