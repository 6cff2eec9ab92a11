//! How many connections to try next, so that a running server shows what it takes and is not harmed.
//!
//! A pure value that is asked and told: 1, 2, 4 ... until more at once brings no more answers, or far fewer, or failures, or the
//! next step could use up the memory.

use model::check::Summit;
use model::load::LoadResult;
use model::{Nanos, SECOND};

/// As many connections as a check opens at most.
pub(super) const CEILING: u32 = 512;
/// A step that brings less than this part more brought nothing.
const GAIN: f64 = 0.05;
/// So many steps without a gain are enough.
const WITHOUT_GAIN: usize = 2;
/// With fewer connections no climb ends for want of a gain: chance decides too much, and short queues do not fill.
const LEAST: u32 = 16;
/// A step below this part of the best so far is a cliff.
const CLIFF: f64 = 0.6;
/// So many times in a row a step must be one: with few connections chance decides more.
const CLIFFS: usize = 2;
/// With fewer connections than [`LEAST`] only a deep fall is one.
const CLIFF_OF_FEW: f64 = 0.25;
const CLIFFS_OF_FEW: usize = 3;
/// Failed requests, of all, from which a step is the last.
const FAILED: f64 = 0.05;
/// The same step is tried again so often while the server is still starting workers.
const AGAIN: usize = 4;

/// So many answers each connection must have time for in a window.
pub(super) const ROUNDS: u32 = 2;
/// The same of those that the answer rests on: the last round may be cut off.
pub(super) const ROUNDS_HELD: u32 = 4;

/// What one step showed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Step {
    pub(super) connections: u32,
    /// Good answers per second.
    pub(super) goodput: f64,
    /// The same with what was done of the requests that the end cut off.
    pub(super) with_cut_off: f64,
    /// Failed requests, of all that ended.
    pub(super) failed: f64,
    /// Whether connections waited while the server was starting workers: what it could do it did not show yet.
    pub(super) starting: bool,
}

impl Step {
    /// What a window showed.
    pub(super) fn of(load: &LoadResult, starting: bool) -> Step {
        let ended = load.counts.good + load.counts.failures();
        let failed = if ended == 0 { 0.0 } else { load.counts.failures() as f64 / ended as f64 };
        let cut_off = if load.seconds() > 0.0 { under_way(load) / load.seconds() } else { 0.0 };
        let goodput = load.goodput();
        Step { connections: load.connections, goodput, with_cut_off: goodput + cut_off, failed, starting }
    }
}

/// What of the requests that the end of a window cut off was done, in answers: requests that begin together on as many CPUs as there are
/// end together as well, and a window that ends just before that would show none of them.
fn under_way(load: &LoadResult) -> f64 {
    let Some(whole) = load.total.mean_us().filter(|&us| us > 0.0) else { return 0.0 };
    load.unanswered.latency.buckets().map(|(us, count)| (us as f64 / whole).min(1.0) * count as f64).sum()
}

/// What may follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    Try(u32),
    Done(Summit),
}

/// A climb under way.
#[derive(Debug, Clone)]
pub(super) struct Climb {
    ceiling: u32,
    steps: Vec<Step>,
}

impl Climb {
    /// One of which no step has more connections than these.
    pub(super) fn up_to(ceiling: u32) -> Climb {
        Climb { ceiling, steps: Vec::new() }
    }

    /// What became of a step.
    pub(super) fn tell(&mut self, step: Step) {
        self.steps.push(step);
    }

    /// What to try next.
    pub(super) fn ask(&self) -> Next {
        let Some(last) = self.steps.last() else { return Next::Try(1) };
        if last.failed > FAILED {
            return Next::Done(Summit::Failures);
        }
        let same = self.steps.iter().filter(|step| step.connections == last.connections).count();
        if last.starting && same <= AGAIN {
            return Next::Try(last.connections);
        }
        let best = self.best_before(last.connections);
        let few = last.connections < LEAST;
        let (cliff, needed) = if few { (CLIFF_OF_FEW, CLIFFS_OF_FEW) } else { (CLIFF, CLIFFS) };
        if self.with_cut_off(last.connections) < best * cliff {
            // Once is bad luck.
            return if same < needed { Next::Try(last.connections) } else { Next::Done(Summit::Cliff) };
        }
        if self.without_gain() >= WITHOUT_GAIN && last.connections >= LEAST {
            return Next::Done(Summit::Plateau);
        }
        match last.connections {
            CEILING.. => Next::Done(Summit::Ceiling),
            last if last >= self.ceiling => Next::Done(Summit::Files),
            last => Next::Try(last * 2),
        }
    }

    /// How long a window must be for each of so many connections to be answered so many times, at the best rate so far.
    pub(super) fn time_for(&self, connections: u32, times: u32) -> Nanos {
        let best = self.steps.iter().map(|step| step.goodput).fold(0.0, f64::max);
        let answers = f64::from(connections) * f64::from(times);
        if best > 0.0 { (answers / best * SECOND as f64) as Nanos } else { 0 }
    }

    /// The most that fewer connections brought.
    fn best_before(&self, connections: u32) -> f64 {
        let before = self.steps.iter().filter(|step| step.connections < connections);
        before.map(|step| step.goodput).fold(0.0, f64::max)
    }

    /// What a number of connections brought: where it was tried again, the most.
    fn of(&self, connections: u32) -> f64 {
        let same = self.steps.iter().filter(|step| step.connections == connections);
        same.map(|step| step.goodput).fold(0.0, f64::max)
    }

    /// The most that it can have been.
    fn with_cut_off(&self, connections: u32) -> f64 {
        let same = self.steps.iter().filter(|step| step.connections == connections);
        same.map(|step| step.with_cut_off).fold(0.0, f64::max)
    }

    /// How many steps at the end brought nothing.
    fn without_gain(&self) -> usize {
        let mut tried: Vec<u32> = self.steps.iter().map(|step| step.connections).collect();
        tried.dedup();
        let gained = |&&connections: &&u32| self.of(connections) < self.best_before(connections) * (1.0 + GAIN);
        tried.iter().rev().take_while(gained).count()
    }

    /// The fewest connections that bring nearly as much as any.
    pub(super) fn enough(&self) -> Option<u32> {
        let good = |step: &&Step| step.goodput > 0.0 && step.failed <= FAILED;
        let best = self.steps.iter().filter(good).map(|step| step.goodput).fold(0.0, f64::max);
        let fits = |step: &&Step| good(step) && step.goodput * (1.0 + GAIN) >= best;
        self.steps.iter().filter(fits).map(|step| step.connections).min()
    }

    /// The most connections that were answered without failures.
    pub(super) fn highest(&self) -> Option<u32> {
        let good = |step: &&Step| step.goodput > 0.0 && step.failed <= FAILED;
        self.steps.iter().filter(good).map(|step| step.connections).max()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Climbs on a synthetic server; what was tried, why it ended, and how many are enough.
    fn check(server: impl Fn(usize, u32) -> (f64, f64, bool), expected: (&[u32], Summit, Option<u32>)) {
        let (mut climb, mut tried) = (Climb::up_to(CEILING), Vec::new());
        let summit = loop {
            match climb.ask() {
                Next::Done(summit) => break summit,
                Next::Try(connections) => {
                    let (goodput, failed, starting) = server(tried.len(), connections);
                    tried.push(connections);
                    climb.tell(Step { connections, goodput, with_cut_off: goodput, failed, starting });
                    assert!(tried.len() < 60);
                }
            }
        };
        assert_eq!((tried.as_slice(), summit, climb.enough()), expected);
    }

    #[test]
    fn two_steps_without_a_gain_are_enough() {
        let limited = |limit: u32| move |_, c: u32| (f64::from(c.min(limit)) * 100.0, 0.0, false);
        check(limited(4), (&[1, 2, 4, 8, 16], Summit::Plateau, Some(4)));
        check(limited(6), (&[1, 2, 4, 8, 16, 32], Summit::Plateau, Some(8)));
        check(limited(1000), (&[1, 2, 4, 8, 16, 32, 64, 128, 256, 512], Summit::Ceiling, Some(512)));
    }

    #[test]
    fn few_open_files_end_it_below_the_ceiling() {
        let mut climb = Climb::up_to(4);
        for connections in [1, 2, 4] {
            assert_eq!(climb.ask(), Next::Try(connections));
            let goodput = f64::from(connections) * 100.0;
            climb.tell(Step { connections, goodput, with_cut_off: goodput, failed: 0.0, starting: false });
        }
        assert_eq!(climb.ask(), Next::Done(Summit::Files));
    }

    #[test]
    fn a_cliff_and_failures_end_it_at_once() {
        check(
            |_, c| (if c > 8 { 50.0 } else { f64::from(c) * 100.0 }, 0.0, false),
            (&[1, 2, 4, 8, 16, 16], Summit::Cliff, Some(8)),
        );
        check(
            |_, c| (f64::from(c) * 9.0, if c > 2 { 0.3 } else { 0.0 }, false),
            (&[1, 2, 4], Summit::Failures, Some(2)),
        );
        check(|_, _| (0.0, 1.0, false), (&[1], Summit::Failures, None));
    }

    #[test]
    fn a_server_that_starts_workers_gets_its_time() {
        let slow = |n: usize, c: u32| (f64::from(c.min(if n > 3 { 4 } else { 2 })) * 10.0, 0.0, c == 4 && n <= 3);
        check(slow, (&[1, 2, 4, 4, 4, 8, 16], Summit::Plateau, Some(4)));
        check(|_, c| (10.0, 0.0, c == 2), (&[1, 2, 2, 2, 2, 2, 4, 8, 16], Summit::Plateau, Some(1)));
    }

    #[test]
    fn a_cliff_below_a_few_connections_is_one_as_well() {
        check(|_, c| (if c > 2 { 20.0 } else { 100.0 }, 0.0, false), (&[1, 2, 4, 4, 4], Summit::Cliff, Some(1)));
    }

    /// A page of so many microseconds of CPU time on two CPUs that all requests share: all that began together end together.
    fn shared(connections: u32, page_us: u64, length_us: u64) -> LoadResult {
        let each = page_us * u64::from(connections.max(2)) / 2;
        let mut load = LoadResult { connections, ended_ns: length_us * 1000, ..LoadResult::empty() };
        let whole = length_us / each;
        load.counts.good = whole * u64::from(connections);
        (0..load.counts.good).for_each(|_| load.total.record(each));
        (0..connections).for_each(|_| load.unanswered.latency.record(length_us - whole * each));
        load
    }

    #[test]
    fn slow_pages_are_no_cliff() {
        for page_us in [100_000, 350_000, 900_000, 1_300_000] {
            let mut climb = Climb::up_to(CEILING);
            let summit = loop {
                match climb.ask() {
                    Next::Done(summit) => break summit,
                    Next::Try(connections) => {
                        let length_ns = (5 * SECOND / 2).max(climb.time_for(connections, ROUNDS));
                        climb.tell(Step::of(&shared(connections, page_us, length_ns / 1000), false));
                    }
                }
            };
            assert_eq!(summit, Summit::Plateau, "{page_us} us");
        }
        // A window as long as it was before shows no answer at all, and takes that for a cliff.
        let none = Step::of(&shared(16, 350_000, 2_500_000), false);
        assert_eq!((none.goodput, none.with_cut_off), (0.0, 0.0));
        let cut = Step::of(&shared(16, 350_000, 5_500_000), false);
        assert!(cut.goodput < 3.0 && cut.with_cut_off > 5.0, "{cut:?}");
    }
}
