//! What a setting changes beside what decided for it: what it brings, and what it costs.

use super::Teller;
use crate::view::{CellView, LoggedView, beside};
use stats::{Comparison, Verdict};
use verdicts::{Choice, Metric, Reason, Setting};

/// Failed requests, of all that ended, that are told of a setting that is to be taken.
const FAILED: f64 = 0.01;

impl Teller<'_> {
    /// What else is decided of a setting: for better and for worse.
    pub(super) fn changes(&self, choice: &Choice, taken: &Setting, reason: Reason) -> (Vec<String>, Vec<String>) {
        let (mut gains, mut costs) = (Vec::new(), Vec::new());
        let mut sort = |compared: &Comparison, told: String| match compared.verdict {
            Verdict::Better => gains.push(told),
            Verdict::Worse => costs.push(told),
            Verdict::Equivalent | Verdict::Inconclusive { .. } => {}
        };
        for (metric, compared) in &taken.compared {
            if reason != Reason::Metric(*metric) {
                sort(compared, self.changed(*metric, None, compared));
            }
        }
        for (load, seen) in self.beside {
            let same = seen.iter().filter(|seen| seen.stays.cells == choice.stays.cells);
            let same = same.flat_map(|seen| &seen.others).find(|other| other.cells == taken.cells);
            for (metric, compared) in same.into_iter().flat_map(|other| &other.compared) {
                sort(compared, self.changed(*metric, Some(load), compared));
            }
        }
        let both = self.single(taken).zip(self.single(&choice.stays));
        costs.extend(both.into_iter().flat_map(|(taken, stays)| self.lost(taken, stays)));
        (gains, costs)
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

    /// What a cell's clients and its log went without, where those of the one that stays had more.
    fn lost(&self, cell: &CellView, stays: &CellView) -> Vec<String> {
        let failed = |cell: &CellView| {
            let failed = cell.failed();
            (failed, cell.good + failed)
        };
        let share = |(part, all): (u64, u64)| if all == 0 { 0.0 } else { part as f64 / all as f64 };
        let (ours, theirs) = (failed(cell), failed(stays));
        let failed = (share(ours) > share(theirs).max(FAILED))
            .then(|| self.words.say("recommend-failed", &[("failed", ours.0.into()), ("all", ours.1.into())]));
        let log = cell.logged.as_ref().zip(stays.logged.as_ref()).filter(|(_, theirs)| theirs.writes);
        let log = log.and_then(|(ours, theirs)| {
            let lost = |logged: &LoggedView| share((logged.lost_most, logged.answers));
            let arguments = [("lost", ours.lost_most.into()), ("answers", ours.answers.into())];
            match ours.writes {
                false => Some(self.words.say("recommend-no-log", &[])),
                true => (lost(ours) > lost(theirs)).then(|| self.words.say("recommend-lost", &arguments)),
            }
        });
        failed.into_iter().chain(log).map(|sentence| sentence.text).collect()
    }
}
