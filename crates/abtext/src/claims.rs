//! Percentages that an author puts beside reports, held against the rates that stand there.
//!
//! A text says "5-6 % better" behind two rates. Which two it means is for people to read; here a percentage is doubted only when
//! no two neighbouring rates before it, and none with the last one, differ by as much.

use crate::document::Document;
use crate::field::Field;
use crate::number::{Number, Range};
use crate::slip::{Slip, What};

/// Words of somebody who speaks of a difference in speed. Percentages beside others (CPU, memory) are none of ours.
const WORDS: &[&str] = &[
    "性能",
    "効果",
    "低下",
    "向上",
    "改善",
    "速く",
    "遅く",
    "高速",
    "スループット",
    "Requests per second",
    "req/s",
    "r/s",
    "faster",
    "slower",
    "throughput",
    "performance",
    "speed",
    "improve",
];

/// A rate that stands for a setting.
#[derive(Debug, Clone, Copy)]
struct Rate {
    line: usize,
    value: f64,
}

/// One percentage, or two with a dash between them.
#[derive(Debug, Clone, PartialEq)]
struct Percentage {
    written: String,
    range: Range,
}

/// How many rates before a percentage it may be about; who compares more has a table.
const RECENT: usize = 32;

/// The claims that no rates give.
pub(crate) fn of(document: &Document, prose: &[(usize, String)]) -> Vec<Slip> {
    let all = all_rates(document);
    let mut slips = Vec::new();
    for (line, text) in prose {
        let claims = percentages(text);
        if claims.is_empty() || !WORDS.iter().any(|word| text.contains(word)) {
            continue;
        }
        let before = &all[..all.partition_point(|(rate, _)| rate.line < *line)];
        let differences = differences(&settings(&before[before.len().saturating_sub(RECENT)..]));
        let doubts = claims.iter().filter_map(|claim| doubt(claim, &differences));
        slips.extend(doubts.map(|what| Slip { line: *line, what }));
    }
    slips
}

/// Rates and times of one table that belong to no number of connections among these.
pub(crate) fn rates_and_times(rates: &[Number], times: &[Number], connections: &[f64]) -> Vec<What> {
    let differs = |(rate, time): (&Number, &Number)| {
        let per_second = time.range().positive()?.under(1000.0);
        let fits = connections.iter().any(|connections| per_second.times(*connections).meets(rate.range()));
        (!fits).then_some(What::TableDiffers { rate: rate.value, time: time.value, gives: 1000.0 / time.value })
    };
    let pairs = rates.iter().zip(times).filter(|_| rates.len() == times.len());
    pairs.filter_map(differs).collect()
}

/// Every rate in order, those of reports and those that the author states.
fn all_rates(document: &Document) -> Vec<(Rate, Option<Number>)> {
    let reports = document.reports.iter().filter_map(|report| {
        let figure = report.figure(Field::Rate)?;
        Some((Rate { line: figure.line, value: figure.number?.value }, None))
    });
    let stated = document.stated.iter().map(|s| (Rate { line: s.line, value: s.rate.value }, Some(s.rate)));
    let mut all: Vec<_> = reports.chain(stated).collect();
    all.sort_by_key(|(rate, _)| rate.line);
    all
}

/// One rate for each setting: where the author states the mean of reports, it stands for them.
fn settings(all: &[(Rate, Option<Number>)]) -> Vec<Rate> {
    let (mut rates, mut since): (Vec<Rate>, usize) = (Vec::new(), 0);
    for (rate, stated) in all {
        if let Some(stated) = stated {
            let reports = &rates[since..];
            let mean = reports.iter().map(|rate| rate.value).sum::<f64>() / reports.len() as f64;
            // The printed rates are rounded themselves, by no more than their mean is.
            let close = Number { decimals: stated.decimals.min(2), ..*stated }.range();
            if !reports.is_empty() && close.meets(Range::exactly(mean)) {
                rates.truncate(since);
            }
        }
        rates.push(*rate);
        since = if stated.is_some() { rates.len() } else { since };
    }
    rates
}

/// Differences in percent, with the line of the rate and that of its base.
fn differences(rates: &[Rate]) -> Vec<(f64, usize, usize)> {
    let mut found = Vec::new();
    let mut pair = |base: &Rate, other: &Rate| {
        for (base, other) in [(base, other), (other, base)] {
            if base.value > 0.0 {
                found.push(((other.value / base.value - 1.0) * 100.0, other.line, base.line));
            }
        }
    };
    for two in rates.windows(2) {
        pair(&two[0], &two[1]);
    }
    if let Some((last, [rest @ .., _])) = rates.split_last() {
        rest.iter().for_each(|rate| pair(rate, last));
    }
    found
}

fn doubt(claim: &Percentage, differences: &[(f64, usize, usize)]) -> Option<What> {
    let holds = |&(difference, ..): &(f64, usize, usize)| claim.range.meets(Range::exactly(difference.abs()));
    if differences.iter().any(holds) {
        return None;
    }
    // Far is what is many times as large or as small: 3 % may have been taken for 1 %, hardly 0.1 %.
    let far = |&(difference, ..): &(f64, usize, usize)| (difference.abs() / claim.range.middle()).ln().abs();
    // Whoever compares two rates compares the later with the earlier.
    let nearest = differences.iter().filter(|(_, line, base)| line >= base).min_by(|a, b| far(a).total_cmp(&far(b)))?;
    Some(What::Claim { written: claim.written.clone(), nearest: nearest.0, line: nearest.1, base: nearest.2 })
}

/// The percentages in a text: `4.5%`, `5-6 %`.
fn percentages(text: &str) -> Vec<Percentage> {
    text.match_indices('%').filter_map(|(at, _)| percentage(text[..at].trim_end())).collect()
}

fn percentage(before: &str) -> Option<Percentage> {
    let is_part = |c: char| c.is_ascii_digit() || c == '.' || c == '-' || c == '~' || c == '〜';
    let start = before.char_indices().rev().take_while(|(_, c)| is_part(*c)).last()?.0;
    let written = before[start..].trim_start_matches(['-', '~', '〜']);
    let ends: Option<Vec<Range>> =
        written.split(['-', '~', '〜']).map(|part| Number::parse(part).map(Number::range)).collect();
    let range = match ends?.as_slice() {
        [one] => *one,
        [low, high] => Range { low: low.low, high: high.high },
        _ => return None,
    };
    Some(Percentage { written: written.to_owned(), range })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[(&str, f64, f64)]) {
        let found = percentages(text);
        let seen: Vec<_> = found.iter().map(|p| (p.written.as_str(), p.range.low, p.range.high)).collect();
        assert_eq!(seen, expected, "{text}");
    }

    #[test]
    fn percentages_of_authors() {
        check("Requests per secondは約4.5%低下する。", &[("4.5", 4.45, 4.55)]);
        check("やはり5-6%はあきらかに", &[("5-6", 4.5, 6.5)]);
        check("30%~60%程度", &[("30", 29.5, 30.5), ("60", 59.5, 60.5)]);
        check("about 3 %, -2%", &[("3", 2.5, 3.5), ("2", 1.5, 2.5)]);
        check("% and %", &[]);
    }
}
