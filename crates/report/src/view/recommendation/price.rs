//! What a setting changes beside what decided for it: what it brings, and what it costs.

use super::Teller;
use crate::language::Sentence;
use crate::view::{CellView, beside};
use stats::{Comparison, Verdict};
use verdicts::{Choice, Metric, Reason, Setting};

/// Failed requests, of all that ended, that are told of a setting that is to be taken.
const FAILED: f64 = 0.01;

impl Teller<'_> {
    /// What is decided of a setting, beside its reason if it is taken: for better and for worse.
    pub(super) fn changes(&self, choice: &Choice, of: &Setting, reason: Option<Reason>) -> (Vec<String>, Vec<String>) {
        let (mut gains, mut costs) = (Vec::new(), Vec::new());
        let mut sort = |compared: &Comparison, told: String| match compared.verdict {
            Verdict::Better => gains.push(told),
            Verdict::Worse => costs.push(told),
            Verdict::Equivalent | Verdict::Inconclusive { .. } => {}
        };
        for (metric, compared) in &of.compared {
            if reason != Some(Reason::Metric(*metric)) {
                sort(compared, self.changed(*metric, None, compared));
            }
        }
        for (load, seen) in self.beside {
            let same = seen.iter().filter(|seen| seen.stays.cells == choice.stays.cells);
            let same = same.flat_map(|seen| &seen.others).find(|other| other.cells == of.cells);
            for (metric, compared) in same.into_iter().flat_map(|other| &other.compared) {
                sort(compared, self.changed(*metric, Some(load), compared));
            }
        }
        (gains, costs)
    }

    /// What the clients of a setting went without, and that it keeps no log.
    pub(super) fn losses(&self, choice: &Choice, taken: &Setting) -> Vec<String> {
        let both = self.single(taken).zip(self.single(&choice.stays));
        both.map(|(taken, stays)| self.lost(taken, stays)).unwrap_or_default()
    }

    /// By what it was shown to be no worse, where it was not shown to be the same.
    pub(super) fn no_worse(&self, taken: &Setting, reason: Reason) -> Vec<String> {
        let Reason::Metric(metric) = reason else { return Vec::new() };
        let compared = taken.no_worse_before(metric).filter_map(|metric| Some((metric, taken.by(metric)?)));
        compared.map(|(metric, compared)| self.changed(metric, None, compared)).collect()
    }

    /// What is decided of a setting that is open.
    pub(super) fn known(&self, choice: &Choice, open: &Setting) -> Vec<Sentence> {
        let setting = self.words.quoted(&self.name(open));
        let (gains, costs) = self.changes(choice, open, None);
        let told = [("recommend-gains-of", gains), ("recommend-costs-of", costs)].into_iter();
        let told = told.filter(|(_, list)| !list.is_empty()).map(|(id, list)| {
            self.words.say(id, &[("setting", setting.as_str().into()), ("list", self.list(list).into())])
        });
        told.collect()
    }

    /// With which settings most requests fail.
    pub(super) fn failing(&self, choice: &Choice) -> Option<Sentence> {
        let of = |setting: &Setting| {
            let cells = self.cells.iter().filter(|cell| setting.cells.contains(&cell.name));
            let (failed, good) = cells.fold((0, 0), |(failed, good), cell| (failed + cell.failed(), good + cell.good));
            self.part_of(&self.name(setting), failed, failed + good)
        };
        let list = self.list(choice.others.iter().filter(|other| choice.is_failing(other)).map(of));
        (!list.is_empty()).then(|| self.words.say("recommend-fails", &[("list", list.into())]))
    }

    /// Which cells lose lines of the access log: no metric compares that, and it may be what one chooses by. What may have had no line to
    /// lose is not among them.
    pub(super) fn losing(&self) -> Option<Sentence> {
        let logs = self.cells.iter().filter_map(|cell| Some((cell, cell.logged.as_ref()?)));
        let losing = logs.filter(|(_, logged)| logged.writes && logged.lost_least > 0);
        let list = self.list(losing.map(|(cell, logged)| self.part_of(&cell.name, logged.lost_least, logged.answers)));
        (!list.is_empty()).then(|| self.words.say("recommend-loses", &[("list", list.into())]))
    }

    fn part_of(&self, setting: &str, part: u64, all: u64) -> String {
        let setting = self.words.quoted(setting);
        self.words
            .say("recommend-part-of", &[("setting", setting.into()), ("part", part.into()), ("all", all.into())])
            .text
    }

    fn changed(&self, metric: Metric, load: Option<&str>, compared: &Comparison) -> String {
        let id = match metric {
            Metric::Goodput => "recommend-goodput".to_owned(),
            _ => format!("ratio-{}", metric.name()),
        };
        let what = self.words.word(&id);
        let what = match load {
            Some(load) => beside::of_load(&what, load, self.words),
            None => what,
        };
        self.words.say("recommend-changed", &[("metric", what.into()), ("ratio", self.short(compared).into())]).text
    }

    /// What a cell's clients went without, where those of the one that stays had more, and its log, if it has none.
    fn lost(&self, cell: &CellView, stays: &CellView) -> Vec<String> {
        let failed = |cell: &CellView| {
            let failed = cell.failed();
            (failed, cell.good + failed)
        };
        let share = |(part, all): (u64, u64)| if all == 0 { 0.0 } else { part as f64 / all as f64 };
        let (ours, theirs) = (failed(cell), failed(stays));
        let failed = (share(ours) > share(theirs).max(FAILED))
            .then(|| self.words.say("recommend-failed", &[("failed", ours.0.into()), ("all", ours.1.into())]));
        let logs = cell.logged.as_ref().zip(stays.logged.as_ref());
        let no_log = logs.filter(|(ours, theirs)| theirs.writes && !ours.writes);
        let no_log = no_log.map(|_| self.words.say("recommend-no-log", &[]));
        failed.into_iter().chain(no_log).map(|sentence| sentence.text).collect()
    }
}
