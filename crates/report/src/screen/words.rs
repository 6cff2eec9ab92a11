//! What has been seen of a load, in words.

use super::machine::machine;
use super::seen::{Counted, Doing, Second, Seen};
use super::{BarsView, ListView, LiveView, MarkView, RateView, TimesView};
use crate::escape::plain;
use crate::language::{Catalogue, Language};
use crate::load::{BarView, times};
use crate::view::table::NOTHING;
use crate::view::{cells, sent};
use model::latency::Latency;
use model::search::{Held, Step};
use model::statistic::Statistic;
use model::{Nanos, SECOND};
use std::collections::BTreeMap;

/// What is shown of latencies.
const STATISTICS: [Statistic; 5] = [
    Statistic::Percentile(50.0),
    Statistic::Percentile(90.0),
    Statistic::Percentile(99.0),
    Statistic::Percentile(99.9),
    Statistic::Max,
];

/// Words what has been seen, in one language.
pub struct Painter {
    words: Catalogue,
}

impl Painter {
    /// Of that language.
    #[must_use]
    pub fn new(language: Language) -> Painter {
        Painter { words: Catalogue::of(language) }
    }

    /// What is to be shown at that instant.
    #[must_use]
    pub fn view(&self, seen: &Seen, now: Nanos) -> LiveView {
        let say = Teller { seen, words: &self.words };
        let (clock, done) = say.clock(now);
        let ending = seen.doing == Doing::Ending;
        LiveView {
            target: plain(&seen.target),
            asked: say.asked(),
            doing: say.doing(),
            clock,
            done,
            keys: self.words.word(if ending { "screen-keys-again" } else { "screen-keys" }),
            rate: say.rate(),
            times: say.times(),
            failures: say.list("screen-failures", say.failures()),
            steps: say.steps(),
            histogram: say.histogram(),
            machine: machine(seen, &self.words),
            visitor: say.list("section-probe", say.visitor()),
            notes: say.list("screen-notes", seen.remarks().map(plain).collect()),
        }
    }
}

struct Teller<'a> {
    seen: &'a Seen,
    words: &'a Catalogue,
}

impl Teller<'_> {
    fn list(&self, title: &str, lines: Vec<String>) -> ListView {
        ListView { title: self.words.word(title), lines }
    }

    /// Of a search it is what a step asks for.
    fn asked(&self) -> String {
        let spec = if self.seen.goals.is_some() { &self.seen.sending } else { &self.seen.asked };
        plain(&sent::sentence(spec, self.words).text)
    }

    fn doing(&self) -> String {
        if self.seen.doing == Doing::Measuring && self.seen.goals.is_some() {
            let number = self.seen.steps.len() + 1;
            return match self.seen.sending.is_open() {
                true => self.words.say("screen-searching", &[("number", number.to_string().into())]).text,
                false => self.words.word("screen-closed-first"),
            };
        }
        let id = match self.seen.doing {
            Doing::Beginning => "screen-beginning",
            Doing::Preflight => "screen-preflight",
            Doing::WarmUp => "screen-warm-up",
            Doing::Measuring => "screen-measuring",
            Doing::Ending => "screen-ending",
        };
        self.words.word(id)
    }

    /// Time gone and time left, as far as it is known, and which share of all is done.
    fn clock(&self, now: Nanos) -> (String, Option<f64>) {
        let gone = now.saturating_sub(self.seen.began_ns);
        let elapsed = ("elapsed", clock(gone).into());
        let ended = self.seen.load.ended();
        let by_time = self.seen.sending.length_ns().map(|whole| (gone as f64 / whole.max(1) as f64, whole));
        let by_count = self.seen.sending.requests.map(|n| (ended as f64 / n.max(1) as f64, n));
        let timed = matches!(self.seen.doing, Doing::WarmUp | Doing::Measuring);
        match (by_time, by_count) {
            _ if !timed => (self.words.say("screen-clock", &[elapsed]).text, None),
            (Some((done, whole)), count) if count.is_none_or(|(share, _)| share <= done) => {
                // What has begun is not over.
                let left = clock(whole.saturating_sub(gone).next_multiple_of(SECOND));
                let arguments = [elapsed, ("whole", clock(whole).into()), ("left", left.into())];
                (self.words.say("screen-clock-left", &arguments).text, Some(done.min(1.0)))
            }
            (_, Some((done, n))) => {
                let arguments = [elapsed, ("ended", ended.to_string().into()), ("requests", n.into())];
                (self.words.say("screen-clock-requests", &arguments).text, Some(done.min(1.0)))
            }
            _ => (self.words.say("screen-clock", &[elapsed]).text, None),
        }
    }

    fn rate(&self) -> RateView {
        let load = &self.seen.load;
        let mark = |second: &Second| MarkView { good: second.good, failed: second.failed > 0.0 };
        RateView {
            title: self.words.word("screen-rate"),
            lines: vec![self.rates(load), self.counts(load)],
            history: load.history.iter().map(mark).collect(),
        }
    }

    fn rates(&self, load: &Counted) -> String {
        let printed = |rate: Option<f64>| rate.map_or_else(|| NOTHING.to_owned(), number);
        let last = load.last;
        let now = ("now", printed(last.map(|second| second.good)).into());
        let mean = ("mean", printed(load.mean()).into());
        match last.and_then(|second| second.asked) {
            None => self.words.say("screen-rates", &[now, mean]),
            Some(asked) => self.words.say("screen-rates-asked", &[now, mean, ("asked", number(asked).into())]),
        }
        .text
    }

    fn counts(&self, load: &Counted) -> String {
        let (good, failed) = (load.counts.good, load.counts.failures());
        let arguments = [("good", good.to_string().into()), ("failed", failed.to_string().into())];
        let mut told = self.words.say("screen-counts", &arguments).text;
        if let Some(waiting) = load.waiting(&self.seen.sending) {
            told.push_str(&self.words.word("list-separator"));
            told.push_str(&self.words.say("screen-waiting", &[("n", waiting.to_string().into())]).text);
        }
        told
    }

    fn times(&self) -> TimesView {
        let load = &self.seen.load;
        let both = [&load.latency, &load.last_latency];
        let typical = load.latency.percentile_us(50.0).map_or(1e6, |us| us as f64 * 1e3);
        // A sum of microseconds has no digits below them.
        let scale = units::duration_scale(typical.max(1e3));
        let row = |statistic: &Statistic| {
            let figure = |latency: &Latency| found(latency, *statistic).map(|us| scale.print(us as f64 * 1e3));
            let figures = both.map(|latency| figure(latency).unwrap_or_else(|| NOTHING.to_owned()));
            (times::label(*statistic, self.words), figures)
        };
        let title = match (self.seen.sending.is_open(), &self.seen.sending.session) {
            (true, None) => "screen-latency-due",
            _ => "screen-latency-sent",
        };
        TimesView {
            title: self.words.say(title, &[("unit", scale.unit.into())]).text,
            heads: ["screen-so-far", "screen-last-second"].map(|id| self.words.word(id)),
            rows: STATISTICS.iter().map(row).collect(),
        }
    }

    fn failures(&self) -> Vec<String> {
        let mut failures = cells::failures(&self.seen.load.counts, &BTreeMap::new(), self.words);
        failures.sort_by_key(|failure| std::cmp::Reverse(failure.count));
        failures.iter().map(|failure| format!("{} × {}", failure.count, failure.cause.text)).collect()
    }

    /// The newest first, below what they ask for.
    fn steps(&self) -> ListView {
        let title = self.words.word("section-steps");
        let title = self.seen.goals.iter().fold(title, |title, goals| format!("{title}: {goals}"));
        ListView { title, lines: self.seen.steps.iter().rev().map(|step| self.step(step)).collect() }
    }

    fn step(&self, step: &Step) -> String {
        let outcome = match step.held {
            Held::Yes => "search-held",
            Held::No => "search-not-held",
            Held::Generator => "search-not-held-generator",
        };
        let arguments = [
            ("asked", number(step.rate).into()),
            ("good", number(step.good).into()),
            ("outcome", self.words.word(outcome).into()),
        ];
        self.words.say("screen-step", &arguments).text
    }

    fn histogram(&self) -> BarsView {
        let counted = times::bars(&self.seen.load.latency);
        let all: u64 = counted.iter().map(|(_, count)| count).sum();
        let bar = |(label, count): (String, u64)| BarView { label, count, share: count as f64 / all.max(1) as f64 };
        BarsView { title: self.words.word("section-histogram"), bars: counted.into_iter().map(bar).collect() }
    }

    fn visitor(&self) -> Vec<String> {
        let Some((visitor, visits)) = &self.seen.visits else { return Vec::new() };
        let waiting = visits.waiting(visitor).unwrap_or(0);
        let arguments = [
            ("n", (visits.ended() + waiting).into()),
            ("failed", visits.counts.failures().to_string().into()),
            ("waiting", waiting.to_string().into()),
        ];
        let mut told = vec![self.words.say("screen-visits", &arguments).text];
        if let (Some(median), Some((_, most))) = (visits.latency.percentile_us(50.0), visits.latency.range_us()) {
            let arguments = [("median", micros(median).into()), ("most", micros(most).into())];
            told.push(self.words.say("screen-visit-times", &arguments).text);
        }
        told
    }
}

/// A statistic, where there are enough values for it.
fn found(latency: &Latency, statistic: Statistic) -> Option<u64> {
    if latency.len() < statistic.needs() {
        return None;
    }
    match statistic {
        Statistic::Percentile(percent) => latency.percentile_us(percent),
        _ => latency.range_us().map(|(_, most)| most),
    }
}

/// Hours, minutes and seconds: 0:07, 12:30, 1:00:00.
fn clock(ns: Nanos) -> String {
    let seconds = ns / SECOND;
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    if hours > 0 { format!("{hours}:{minutes:02}:{seconds:02}") } else { format!("{minutes}:{seconds:02}") }
}

fn number(value: f64) -> String {
    units::si(value).print(value)
}

fn micros(us: u64) -> String {
    units::short_duration(us as f64 * 1e3)
}
