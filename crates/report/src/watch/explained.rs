//! What limits a machine that is watched, in a few lines.

use crate::escape::plain;
use crate::language::{Catalogue, Language};
use crate::text::layout::wrap;
use crate::view::cells::diagnosis_view;
use diagnosis::{Cause, Diagnosis};

/// Lines below a row begin with this.
const LEAD: &str = "  ";

/// A verdict on a stretch of readings, in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explained {
    /// What limits it, in one sentence.
    pub headline: String,
    /// The numbers, why it is not surer, what to do, what would confirm it, what else was found.
    details: Vec<String>,
}

impl Explained {
    /// Words a verdict on readings of which no load is known.
    #[must_use]
    pub fn of(diagnosis: &Diagnosis, language: Language) -> Explained {
        let words = Catalogue::of(language);
        if diagnosis.primary.cause == Cause::Unexplained {
            let limit = words.word("explain-room");
            let headline = words.say("explain-free", &[("limit", limit.into())]).text;
            return Explained { headline, details: Vec::new() };
        }
        let view = diagnosis_view(diagnosis, &words);
        let level = words.word(diagnosis.primary.confidence().id());
        let arguments = [("limit", view.headline.text.into()), ("confidence", level.into())];
        let separator = words.word("list-separator");
        let primary = &view.primary;
        let numbers: Vec<String> = primary.evidence.iter().map(|one| format!("{} {}", one.label, one.text)).collect();
        let numbers = Some(numbers.join(&separator)).filter(|numbers| !numbers.is_empty());
        let unsure = (!diagnosis.primary.doubts.is_empty()).then(|| primary.confidence.sentence.text.clone());
        let further = [&primary.advice, &primary.confirm].into_iter().flatten().map(|sentence| sentence.text.clone());
        let others = view.contributing.iter().map(|finding| format!("+ {}", finding.told.text));
        let cleared = view.ruled_out.iter().map(|finding| format!("- {}", finding.told.text));
        let details = numbers.into_iter().chain(unsure).chain(further).chain(others).chain(cleared).collect();
        Explained { headline: words.say("explain-now", &arguments).text, details }
    }

    /// In so many columns.
    #[must_use]
    pub fn lines(&self, columns: usize) -> Vec<String> {
        let room = columns.saturating_sub(2 * LEAD.len()).max(20);
        let headline = wrap(&plain(&self.headline), room).into_iter().map(|line| format!("{LEAD}{line}"));
        let details = self.details.iter().flat_map(|text| wrap(&plain(text), room));
        headline.chain(details.map(|line| format!("{LEAD}{LEAD}{line}"))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use diagnosis::Evidence;
    use diagnosis::evidence::Machine;
    use expect_test::{Expect, expect};
    use model::SECOND;
    use model::reading::Column::{CpuIdle, CpuSystem, CpuUser, PsiMemFull, PsiMemSome, RefaultAnon, RefaultFile};
    use model::reading::{Column, Reading, Readings};

    fn check(counters: &[(Column, u64)], language: Language, expected: &Expect) {
        let row = |second: u64| {
            let mut row = Reading::empty(second * SECOND);
            counters.iter().for_each(|&(column, rate)| row.set(column, rate * second));
            row
        };
        let readings = Readings { rows: (0..=15).map(row).collect(), notes: vec![] };
        let machine = Machine { host_cpus: 2.0, server_cpus: 2.0, memory: None, grouped: false, group_memory: None };
        let diagnosis = diagnosis::judge(&Evidence::watched(&machine, &readings));
        expected.assert_eq(&Explained::of(&diagnosis, language).lines(80).join("\n"));
    }

    #[test]
    fn a_machine_with_room_one_that_computes_and_one_that_swaps() {
        check(&[(CpuUser, 10), (CpuSystem, 10), (CpuIdle, 180)], Language::English, &expect![[""]]);
        check(&[(CpuUser, 188), (CpuSystem, 10), (CpuIdle, 2)], Language::English, &expect![[""]]);
        let swaps = [
            (CpuUser, 10),
            (CpuSystem, 40),
            (CpuIdle, 150),
            (PsiMemSome, 600_000),
            (PsiMemFull, 400_000),
            (RefaultAnon, 9000),
            (RefaultFile, 10),
        ];
        check(&swaps, Language::English, &expect![[""]]);
        check(&swaps, Language::Japanese, &expect![[""]]);
    }
}
