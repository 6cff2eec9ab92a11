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
        let primary = &view.primary;
        let numbers: Vec<String> = primary.evidence.iter().map(|one| format!("{} {}", one.label, one.text)).collect();
        let numbers = Some(words.list(&numbers)).filter(|numbers| !numbers.is_empty());
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
        let diagnosis = diagnosis::judge(&Evidence::watched(&Machine::watched(2.0, false), &readings));
        // A first line that is not indented, or all indentation would be taken for that of the source.
        expected.assert_eq(&format!("now:\n{}", Explained::of(&diagnosis, language).lines(80).join("\n")));
    }

    #[test]
    fn a_machine_with_room_one_that_computes_and_one_that_swaps() {
        check(
            &[(CpuUser, 10), (CpuSystem, 10), (CpuIdle, 180)],
            Language::English,
            &expect![[r#"
                now:
                  What limits it now: nothing is used up: there is room."#]],
        );
        check(
            &[(CpuUser, 188), (CpuSystem, 10), (CpuIdle, 2)],
            Language::English,
            &expect![[r#"
                now:
                  What limits it now: CPU-bound: the CPUs the server may use are busy with
                  work (likely).
                    CPU user 94.0 %, CPU system 5.00 %, CPU idle 1.00 %, CPU iowait 0 %, CPU
                    steal 0 %, CPU use (user + system) 99.0 %, use of the server's CPUs 99.0 %
                    (limit: 90.0 % or more), CPUs of the server 2
                    How sure: likely, because the thresholds were crossed by little.
                    Use less CPU per request (cache, opcode cache, fewer modules), or get more
                    CPUs. No limit needs to be raised.
                    To confirm: A page that computes less is answered at a rate that is higher
                    by as much."#]],
        );
        let swaps = [
            (CpuUser, 10),
            (CpuSystem, 40),
            (CpuIdle, 150),
            (PsiMemSome, 600_000),
            (PsiMemFull, 400_000),
            (RefaultAnon, 9000),
            (RefaultFile, 10),
        ];
        check(
            &swaps,
            Language::English,
            &expect![[r#"
                now:
                  What limits it now: memory thrash: the server swaps instead of working
                  (sure).
                    host's memory pressure (some) 60.0 %, host's memory pressure (full) 40.0 %
                    (limit: 10.0 % or more)
                    More CPUs or a faster disk would not help; using less memory at a time
                    would.
                    To confirm: With half as many requests at once the rate rises, and pswpin in
                    /proc/vmstat stands still.
                    - Not a shortage of CPU: CPU use is user plus system, and the rest of the
                    time was spent waiting even where idle is 0."#]],
        );
        check(
            &swaps,
            Language::Japanese,
            &expect![[r#"
                now:
                  現在の限界: スラッシング: メモリー不足でスワップに追われ、処理が進まない（確
                  実）。
                    ホストのメモリー待ち（some） 60.0 %、ホストのメモリー待ち（full） 40.0 %（し
                    きい値 10.0 % 以上）
                    CPU を増やしても、ディスクを速くしても効果はありません。同時に使うメモリーを
                    減らす必要があります。
                    確かめるには: 同時のリクエストを半分にすると毎秒の数が上がり、/proc/vmstat
                    の pswpin が増えなくなる。
                    - CPU 不足ではない。idle が 0 でも、CPU 使用率は user と system を足した値で
                    あり、残りは待ち時間である。"#]],
        );
    }
}
