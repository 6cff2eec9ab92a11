//! What has been seen of a load so far: added to event by event, in bounded memory however long the load goes on.

use model::latency::Latency;
use model::load::{Counts, LoadInterval};
use model::plan::{Arrivals, LoadSpec, Pace, Timetable};
use model::reading::{Reading, Span};
use model::search::Step;
use model::threshold::Threshold;
use model::trial::Preflight;
use model::{Nanos, SECOND};
use std::collections::VecDeque;

/// Seconds that are remembered one by one: more than any terminal has columns.
const SECONDS: usize = 1024;
/// Steps of a search that are remembered; it rarely takes twenty.
const STEPS: usize = 64;
/// Remarks that are remembered.
const REMARKS: usize = 16;
/// Readings that are remembered: rates are over the time between the first and the last of them.
const READINGS: usize = 3;
/// A shorter interval, as the last one may be, says nothing about a second.
const SHORTEST_NS: Nanos = SECOND / 2;

/// What a load is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doing {
    /// Nothing is sent yet.
    Beginning,
    /// Sending the first requests one at a time.
    Preflight,
    /// Sending what does not count.
    WarmUp,
    /// Measuring.
    Measuring,
    /// Somebody wants it to end.
    Ending,
}

/// What has been seen.
#[derive(Debug, Clone)]
pub struct Seen {
    pub(super) target: String,
    /// Whether the server is on this machine, so that readings say something of it.
    pub(super) here: bool,
    /// What the user asked for.
    pub(super) asked: LoadSpec,
    /// What is sent now, which of a search is a step.
    pub(super) sending: LoadSpec,
    pub(super) doing: Doing,
    pub(super) began_ns: Nanos,
    pub(super) preflight: Option<Preflight>,
    pub(super) load: Counted,
    /// What a visitor does, and what came of it.
    pub(super) visits: Option<(LoadSpec, Counted)>,
    /// What a search asks for, if it is one.
    pub(super) goals: Option<String>,
    pub(super) steps: VecDeque<Step>,
    pub(super) remarks: VecDeque<String>,
    pub(super) generator: Option<f64>,
    readings: VecDeque<Reading>,
    // This process's CPU time, and when it was looked at.
    cpu: Option<(Nanos, Nanos)>,
}

/// What came of requests.
#[derive(Debug, Clone, Default)]
pub(super) struct Counted {
    pub(super) counts: Counts,
    pub(super) latency: Latency,
    pub(super) length_ns: Nanos,
    pub(super) last: Option<Second>,
    pub(super) last_latency: Latency,
    pub(super) history: VecDeque<Second>,
    start_ns: Option<Nanos>,
}

/// About one second, per second.
#[derive(Debug, Clone, Copy)]
pub(super) struct Second {
    pub(super) good: f64,
    pub(super) failed: f64,
    /// Requests that the timetable had, in a load with one.
    pub(super) asked: Option<f64>,
}

impl Seen {
    /// Nothing yet of a load on `target`; `here` when that is on this machine.
    #[must_use]
    pub fn new(target: &str, asked: &LoadSpec, here: bool, now: Nanos) -> Seen {
        Seen {
            target: target.to_owned(),
            here,
            asked: asked.clone(),
            sending: asked.clone(),
            doing: Doing::Beginning,
            began_ns: now,
            preflight: None,
            load: Counted::default(),
            visits: None,
            goals: None,
            steps: VecDeque::new(),
            remarks: VecDeque::new(),
            generator: None,
            readings: VecDeque::new(),
            cpu: None,
        }
    }

    /// It does something else from now on. What is measured next is counted anew.
    pub fn begin(&mut self, doing: Doing, now: Nanos) {
        // An end stays one, and its time goes on from where the load began.
        match (self.doing, doing) {
            (Doing::Ending, _) => return,
            (_, Doing::Ending) => {}
            _ => self.began_ns = now,
        }
        self.doing = doing;
        if doing == Doing::Measuring {
            (self.load, self.visits) = (Counted::default(), None);
        }
    }

    /// What is sent from now on.
    pub fn sending(&mut self, spec: &LoadSpec) {
        self.sending = spec.clone();
    }

    /// What the first requests showed.
    pub fn preflight(&mut self, found: &Preflight) {
        self.preflight = Some(found.clone());
    }

    /// Something to know.
    pub fn remark(&mut self, what: &str) {
        push(&mut self.remarks, what.to_owned(), REMARKS);
    }

    /// What was remarked, in order.
    pub fn remarks(&self) -> impl Iterator<Item = &str> {
        self.remarks.iter().map(String::as_str)
    }

    /// A second of the load.
    pub fn interval(&mut self, interval: &LoadInterval) {
        self.load.add(interval, table(&self.sending));
    }

    /// A second of what a visitor saw who does this.
    pub fn visits(&mut self, visitor: &LoadSpec, interval: &LoadInterval) {
        let (_, visits) = self.visits.get_or_insert_with(|| (visitor.clone(), Counted::default()));
        visits.add(interval, None);
    }

    /// It is a search for the highest rate at which these hold.
    pub fn searching(&mut self, goals: &[Threshold]) {
        let goals: Vec<&str> = goals.iter().map(|goal| goal.text.as_str()).collect();
        self.goals = Some(goals.join(", "));
    }

    /// A step of a search that is over.
    pub fn step(&mut self, step: &Step) {
        push(&mut self.steps, step.clone(), STEPS);
    }

    /// Counters of this machine.
    pub fn reading(&mut self, reading: &Reading) {
        // The same one again is no news: the sampler may be late.
        if self.readings.back().is_none_or(|last| last.at_ns < reading.at_ns) {
            push(&mut self.readings, reading.clone(), READINGS);
        }
    }

    /// CPU time that this process has used until now.
    pub fn cpu(&mut self, used: Nanos, now: Nanos) {
        if let Some((before, at)) = self.cpu.filter(|(_, at)| now > *at) {
            self.generator = Some(used.saturating_sub(before) as f64 / (now - at) as f64);
        }
        self.cpu = Some((used, now));
    }

    /// The machine over the last seconds.
    pub(super) fn span(&self) -> Option<Span<'_>> {
        let (from, to) = (self.readings.front()?, self.readings.back()?);
        (self.here && from.at_ns < to.at_ns).then_some(Span { from, to })
    }
}

impl Counted {
    fn add(&mut self, interval: &LoadInterval, table: Option<&Timetable>) {
        let latency = interval.total.unpack();
        self.counts.merge(&interval.counts);
        self.latency.merge(&latency);
        self.length_ns += interval.length_ns;
        let origin = *self.start_ns.get_or_insert(interval.start_ns);
        if interval.length_ns < SHORTEST_NS {
            return;
        }
        let seconds = interval.length_ns as f64 / SECOND as f64;
        let start = interval.start_ns.saturating_sub(origin);
        let asked = table.map(|table| (table.expected(start + interval.length_ns) - table.expected(start)) / seconds);
        let (good, failed) = (interval.counts.good as f64 / seconds, interval.counts.failures() as f64 / seconds);
        let second = Second { good, failed, asked };
        self.last = Some(second);
        self.last_latency = latency;
        push(&mut self.history, second, SECONDS);
    }

    /// Requests of that load that became due and have no answer yet; only where its timetable says exactly when each is due.
    pub(super) fn waiting(&self, spec: &LoadSpec) -> Option<u64> {
        let exact = |table: &&Timetable| table.arrivals != Arrivals::Poisson;
        let due = table(spec).filter(exact)?.expected(self.length_ns).min(spec.requests.unwrap_or(u64::MAX) as f64);
        Some((due as u64).saturating_sub(self.ended()))
    }

    /// Requests that are over, well or not.
    pub(super) fn ended(&self) -> u64 {
        self.counts.good + self.counts.failures()
    }

    /// Good answers per second since it began.
    pub(super) fn mean(&self) -> Option<f64> {
        (self.length_ns > 0).then(|| self.counts.good as f64 * SECOND as f64 / self.length_ns as f64)
    }
}

/// When its requests are due, if it says so; a timetable of users says nothing of requests.
fn table(spec: &LoadSpec) -> Option<&Timetable> {
    match &spec.pace {
        Pace::Timetable(table) if spec.session.is_none() => Some(table),
        Pace::Timetable(_) | Pace::WhenFree | Pace::Logged => None,
    }
}

/// Adds to the end, at the cost of the beginning.
fn push<T>(list: &mut VecDeque<T>, item: T, most: usize) {
    if list.len() >= most {
        list.pop_front();
    }
    list.push_back(item);
}
