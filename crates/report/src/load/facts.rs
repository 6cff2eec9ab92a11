//! What was counted in a load, as labelled lines in words.

use super::FactView;
use super::held::percent;
use crate::language::Catalogue;
use fluent_bundle::FluentValue;
use model::load::LoadResult;
use model::plan::LoadSpec;

pub(super) fn facts(load: &LoadResult, spec: &LoadSpec, words: &Catalogue) -> Vec<FactView> {
    let say = Teller { load, spec, words };
    [
        say.users(),
        say.impatience(),
        Some(say.good()),
        say.late(),
        say.due(),
        Some(say.failed()),
        say.statuses(),
        say.unsent(),
        say.in_flight(),
        say.retries(),
        Some(say.concurrency()),
        Some(say.bytes()),
        Some(say.connections()),
        Some(say.generator()),
        say.away(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

struct Teller<'a> {
    load: &'a LoadResult,
    spec: &'a LoadSpec,
    words: &'a Catalogue,
}

impl Teller<'_> {
    fn fact(&self, label: &str, id: &str, arguments: &[(&'static str, FluentValue<'_>)]) -> FactView {
        FactView { label: self.words.word(label), text: self.words.say(id, arguments).text }
    }

    fn users(&self) -> Option<FactView> {
        let sessions = self.load.sessions.as_ref()?;
        let arguments = [
            ("users", sessions.users.into()),
            ("pages", sessions.pages.into()),
            ("incomplete", sessions.incomplete.into()),
            ("returned", sessions.returned.into()),
            ("away", sessions.turned_away.into()),
        ];
        Some(self.fact("fact-users", "fact-users-text", &arguments))
    }

    fn impatience(&self) -> Option<FactView> {
        let sessions = self.load.sessions.as_ref().filter(|sessions| sessions.abandoned > 0)?;
        let arguments = [
            ("gave_up", sessions.gave_up.into()),
            ("reloads", sessions.reloads.into()),
            ("abandoned", sessions.abandoned.into()),
        ];
        Some(self.fact("fact-impatience", "fact-impatience-text", &arguments))
    }

    fn good(&self) -> FactView {
        let (good, rate) = (self.load.good_in_time(), number(self.load.goodput()));
        let window = units::short_duration(self.load.seconds() * 1e9);
        let arguments = [("good", good.into()), ("rate", rate.into()), ("window", window.into())];
        self.fact("fact-good", "fact-good-text", &arguments)
    }

    fn late(&self) -> Option<FactView> {
        let n = self.load.late.good;
        (n > 0).then(|| self.fact("fact-late", "fact-late-text", &[("n", n.into())]))
    }

    fn due(&self) -> Option<FactView> {
        let (open, asked) = (self.load.open.as_ref()?, self.load.asked_rate(self.spec)?);
        let sent = number(self.load.sent_rate());
        let arguments = [("arrived", open.arrived.into()), ("asked", number(asked).into()), ("sent", sent.into())];
        Some(self.fact("fact-due", "fact-due-text", &arguments))
    }

    fn failed(&self) -> FactView {
        let (failed, good) = (self.load.counts.failures(), self.load.counts.good);
        if failed == 0 {
            return self.fact("fact-failed", "fact-failed-none", &[]);
        }
        let share = percent(failed as f64 * 100.0 / (failed + good) as f64);
        self.fact("fact-failed", "fact-failed-text", &[("failed", failed.into()), ("share", share.into())])
    }

    fn statuses(&self) -> Option<FactView> {
        let told = self.load.counts.statuses.iter().map(|(status, n)| format!("{status}: {n}"));
        let text = self.words.list(&told.collect::<Vec<_>>());
        (!text.is_empty()).then(|| FactView { label: self.words.word("fact-statuses"), text })
    }

    fn unsent(&self) -> Option<FactView> {
        let open = self.load.open.as_ref().filter(|open| open.unsent > 0)?;
        let share = percent(open.unsent as f64 * 100.0 / open.arrived.max(1) as f64);
        let arguments = [("unsent", open.unsent.into()), ("share", share.into())];
        Some(self.fact("fact-unsent", "fact-unsent-text", &arguments))
    }

    fn in_flight(&self) -> Option<FactView> {
        let n = self.load.in_flight;
        (n > 0).then(|| self.fact("fact-in-flight", "fact-in-flight-text", &[("n", n.into())]))
    }

    fn retries(&self) -> Option<FactView> {
        let n = self.load.counts.retries;
        (n > 0).then(|| self.fact("fact-retries", "fact-retries-text", &[("n", n.into())]))
    }

    fn concurrency(&self) -> FactView {
        let achieved = number(self.load.concurrency());
        if self.load.open.is_some() || self.load.sessions.is_some() {
            return self.fact("fact-concurrency", "fact-concurrency-open", &[("achieved", achieved.into())]);
        }
        let asked = u64::from(self.load.connections) * u64::from(self.spec.pipeline);
        let arguments = [("achieved", achieved.into()), ("asked", asked.into())];
        self.fact("fact-concurrency", "fact-concurrency-closed", &arguments)
    }

    fn bytes(&self) -> FactView {
        let (counts, rate) = (&self.load.counts, self.load.bytes_in_rate());
        let bytes = units::short_bytes;
        let arguments = [
            ("received", bytes(counts.bytes_in).into()),
            ("rate", bytes(rate.round() as u64).into()),
            ("sent", bytes(counts.bytes_out).into()),
        ];
        self.fact("fact-bytes", "fact-bytes-text", &arguments)
    }

    fn connections(&self) -> FactView {
        let opened = self.load.counts.connects;
        self.fact("fact-connections", "fact-connections-text", &[("opened", opened.into())])
    }

    fn away(&self) -> Option<FactView> {
        let away = self.load.generator.away.as_ref()?;
        let duration = |ns: u64| units::short_duration(ns as f64);
        let arguments = [
            ("from", away.from.as_str().into()),
            ("name", away.host.name.as_str().into()),
            ("cpus", away.host.cpus.into()),
            ("uncertainty", duration(away.uncertainty_ns).into()),
            ("trip", duration(away.round_trip_ns).into()),
        ];
        Some(self.fact("fact-away", "fact-away-text", &arguments))
    }

    fn generator(&self) -> FactView {
        let threads = self.load.generator.threads;
        let share = percent(self.load.generator_share() * 100.0);
        let mut arguments = vec![("threads", threads.into()), ("share", share.into())];
        match self.load.late_percentile() {
            None => self.fact("fact-generator", "fact-generator-text", &arguments),
            Some((percent, us)) => {
                let late = units::short_duration(us as f64 * 1e3);
                arguments.extend([("percent", percent.into()), ("late", late.into())]);
                self.fact("fact-generator", "fact-generator-late", &arguments)
            }
        }
    }
}

fn number(value: f64) -> String {
    units::si(value).print(value)
}
