//! A search for the highest rate that a server sustains, carried out: a short closed loop to learn where to begin, then one
//! trial per step. Every trial is in the store before the next begins, and however the search ends.

use crate::ExperimentError;
use crate::event::Event;
use crate::post::one_at_a_time;
use crate::schedule::{Slot, schedule};
use crate::search::Search;
use crate::single::{LoadOrders, empty, measure, preflight, spec};
use model::plan::{LoadSpec, Pace};
use model::run::{Run, RunEnd, RunHead};
use model::search::RateSearch;
use model::trial::{Outcome, Preflight, Stop, Trial};
use model::{Nanos, SECOND};
use std::sync::atomic::Ordering;
use store::Store;

/// The closed loop takes no longer.
const CLOSED_NS: Nanos = 3 * SECOND;

/// A search under way.
struct Finder<'a, 'b> {
    orders: &'a LoadOrders<'b>,
    search: &'a RateSearch,
    store: Option<&'a mut Store>,
    slot: Slot,
    preflight: Option<Preflight>,
    trials: Vec<Trial>,
}

/// Carries out the search that the plan asks for.
pub(crate) fn find(
    orders: &LoadOrders<'_>,
    search: &RateSearch,
    mut store: Option<&mut Store>,
    on_event: &mut dyn FnMut(Event<'_>),
) -> Result<Run, ExperimentError> {
    let slot = schedule(&orders.head.plan, orders.head.seed).swap_remove(0);
    let preflight = preflight(orders, &slot, on_event)?;
    if let Some(store) = store.as_deref_mut() {
        store.begin(&orders.head)?;
    }
    on_event(Event::Searching { head: &orders.head });
    let mut finder = Finder { orders, search, store: store.as_deref_mut(), slot, preflight, trials: Vec::new() };
    let ended = finder.steps(on_event);
    let trials = finder.trials;
    let end = match &ended {
        Ok(()) if orders.interrupted.load(Ordering::Relaxed) => RunEnd::Interrupted,
        Ok(()) => RunEnd::Complete,
        Err(error) => RunEnd::Failed(error.to_string()),
    };
    if let Some(store) = store {
        store.finish(&orders.head.id, &end)?;
    }
    ended.map(|()| Run { head: RunHead { end, ..orders.head.clone() }, trials })
}

impl Finder<'_, '_> {
    fn steps(&mut self, on_event: &mut dyn FnMut(Event<'_>)) -> Result<(), ExperimentError> {
        let length_ns = RateSearch::step_ns(spec(self.orders));
        let start = match self.search.start {
            Some(start) => start,
            None => self.closed_loop(length_ns, on_event)?,
        };
        let mut search = Search::new(start, self.search.floor(length_ns), self.search.precision);
        let goals = self.search;
        while let Some(rate) = search.ask() {
            if self.is_interrupted() {
                break;
            }
            self.settle();
            let load =
                LoadSpec { requests: None, duration_ns: Some(length_ns), ..self.search.spec(spec(self.orders), rate) };
            let trial = self.trial(&load, Some(rate), on_event)?;
            let Some(step) = goals.judge(trial) else { break };
            on_event(Event::Step(&step));
            search.tell(rate, step.held);
        }
        Ok(())
    }

    /// Good answers per second when every connection sends as soon as it is answered: about the most there can be.
    fn closed_loop(&mut self, length_ns: Nanos, on_event: &mut dyn FnMut(Event<'_>)) -> Result<f64, ExperimentError> {
        let duration_ns = Some(length_ns.min(CLOSED_NS));
        let load = LoadSpec { pace: Pace::WhenFree, requests: None, duration_ns, ..spec(self.orders).clone() };
        let trial = self.trial(&load, None, on_event)?;
        Ok(trial.load.as_ref().map_or(0.0, model::load::LoadResult::goodput))
    }

    fn trial(
        &mut self,
        load: &LoadSpec,
        rate: Option<f64>,
        on_event: &mut dyn FnMut(Event<'_>),
    ) -> Result<&Trial, ExperimentError> {
        let number = self.trials.len();
        // The closed loop is block 0, be there one or not, and the steps follow.
        let block = number + usize::from(self.search.start.is_some());
        self.slot = Slot { number, block: u32::try_from(block).unwrap_or(u32::MAX), ..self.slot.clone() };
        let mut trial = Trial { rate, preflight: self.preflight.take(), ..empty(&self.slot) };
        if self.is_interrupted() {
            trial.outcome = Outcome::EndedEarly(Stop::Interrupted);
        } else {
            measure(self.orders, load, &self.slot, &mut trial, &|| (), on_event)?;
        }
        if let Some(store) = self.store.as_deref_mut() {
            store.save_trial(&self.orders.head.id, &trial)?;
        }
        self.trials.push(trial);
        Ok(&self.trials[number])
    }

    /// One request, answered or not: what the last step left in the server's queues is not this one's affair.
    fn settle(&self) {
        if !self.trials.is_empty() {
            let one = one_at_a_time(spec(self.orders), 1);
            // Whether it was answered the step itself will tell.
            let _ = load::records(&one, self.orders.target, &self.orders.head.load_cpus, self.orders.interrupted);
        }
    }

    fn is_interrupted(&self) -> bool {
        self.orders.interrupted.load(Ordering::Relaxed)
    }
}
