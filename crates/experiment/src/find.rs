//! A search for the highest rate that a server sustains, carried out: a short closed loop to learn where to begin, then one
//! trial per step. Every trial is in the store before the next begins, and however the search ends.

use crate::ExperimentError;
use crate::event::Event;
use crate::post::one_at_a_time;
use crate::schedule::{Slot, schedule};
use crate::search::Search;
use crate::single::{LoadOrders, Loaded, empty, measure, preflight, spec};
use model::plan::{LoadSpec, Pace};
use model::run::{Run, RunEnd, RunHead};
use model::search::RateSearch;
use model::trial::{Outcome, Preflight, Stop, Trial};
use model::{Nanos, SECOND};
use std::sync::atomic::Ordering;
use store::{Store, StoreError};

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
    // The first refusal of the store, which is not asked again.
    kept: Result<(), StoreError>,
}

/// Carries out the search that the plan asks for.
pub(crate) fn find(
    orders: &LoadOrders<'_>,
    search: &RateSearch,
    mut store: Option<&mut Store>,
    on_event: &mut dyn FnMut(Event<'_>),
) -> Result<Loaded, ExperimentError> {
    let slot = schedule(&orders.head.plan, orders.head.seed).swap_remove(0);
    let preflight = preflight(orders, &slot, on_event)?;
    if let Some(store) = store.as_deref_mut() {
        store.begin(&orders.head)?;
    }
    on_event(Event::Searching { head: &orders.head });
    let mut finder =
        Finder { orders, search, store: store.as_deref_mut(), slot, preflight, trials: Vec::new(), kept: Ok(()) };
    let ended = finder.steps(on_event);
    let Finder { trials, mut kept, .. } = finder;
    let end = match &ended {
        Ok(()) if orders.interrupted.load(Ordering::Relaxed) => RunEnd::Interrupted,
        Ok(()) => RunEnd::Complete,
        Err(error) => RunEnd::Failed(error.to_string()),
    };
    if let Some(store) = store {
        kept = kept.and(store.finish(&orders.head.id, &end));
    }
    ended.map(|()| Loaded { run: Run { head: RunHead { end, ..orders.head.clone() }, trials }, kept })
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
            let Some(step) = goals.judge(trial, &load) else { break };
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
        if let (Some(store), Ok(())) = (self.store.as_deref_mut(), &self.kept) {
            self.kept = store.save_trial(&self.orders.head.id, &trial);
        }
        self.trials.push(trial);
        Ok(&self.trials[number])
    }

    /// One request, answered or not: what the last step left in the server's queues is not this one's affair.
    fn settle(&self) {
        if !self.trials.is_empty() {
            let one = one_at_a_time(spec(self.orders), 1);
            // Whether it was answered the step itself will tell.
            let LoadOrders { target, interrupted, head, remote, .. } = self.orders;
            match remote {
                Some(remote) => drop(remote.look(&one, target, &head.load_cpus, interrupted)),
                None => drop(load::records(&one, target, &head.load_cpus, interrupted)),
            }
        }
    }

    fn is_interrupted(&self) -> bool {
        self.orders.interrupted.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use load::{Control, Target};
    use model::plan::Arrivals;
    use model::search::{Held, Step};
    use std::sync::Mutex;
    use std::sync::atomic::AtomicBool;
    use std::time::Duration;
    use testkit::scripted::{self, Scripted, answer};

    /// A step of half a second at such a rate, at a server that takes 10 ms for each request and has one worker.
    fn check(rate: f64) -> Step {
        let worker = Mutex::new(());
        let server = Scripted::start(move |_| {
            let _busy = worker.lock().unwrap();
            std::thread::sleep(Duration::from_millis(10));
            vec![scripted::Step::Send(answer(200, "abc"))]
        });
        let goals = vec!["failed < 1%".to_owned().try_into().unwrap()];
        let search = RateSearch { goals, precision: 0.05, start: None, arrivals: Arrivals::Even };
        let all = LoadSpec { connections: 200, duration_ns: Some(SECOND / 2), ..LoadSpec::of("l", "/") };
        let target = Target::new(server.address(), "h");
        let mut control = Control { stop: &AtomicBool::new(false), on_interval: &mut |_| {} };
        let load = load::run(&search.spec(&all, rate), &target, &[], &mut control).unwrap();
        let slot = Slot { number: 0, block: 0, position: 0, cell: "c".to_owned() };
        search.judge(&Trial { rate: Some(rate), load: Some(load), ..empty(&slot) }, &all).unwrap()
    }

    #[test]
    fn a_rate_that_only_the_wait_for_the_last_answers_reaches_is_not_held() {
        let step = check(300.0);
        assert!(step.held != Held::Yes && step.good <= 102.0, "{step:?}");
        // The second of two is due a quarter of a second before the end.
        let step = check(4.0);
        assert_eq!((step.held, step.misses), (Held::Yes, vec![]));
    }
}
