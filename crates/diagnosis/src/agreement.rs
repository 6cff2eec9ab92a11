//! Several trials of a cell together: the cause most of them have, with the median of its numbers.

use crate::cause::Cause;
use crate::doubts;
use crate::number::{Numbers, Quantity};
use crate::{Agreement, Diagnosis, Finding, not_measured};
use std::collections::BTreeMap;

/// The diagnosis of a cell: the primary cause most of its measured trials have (of equals, the one that takes precedence), the other
/// findings that at least half of those trials share, each number the median over the trials that have it.
#[must_use]
pub fn over_trials(trials: &[Diagnosis]) -> Diagnosis {
    let measured: Vec<&Diagnosis> = trials.iter().filter(|one| one.primary.cause != Cause::NotMeasured).collect();
    let mut votes: BTreeMap<Cause, u32> = BTreeMap::new();
    for one in &measured {
        *votes.entry(one.primary.cause).or_default() += 1;
    }
    let Some((&cause, &agree)) = votes.iter().max_by_key(|&(&cause, &votes)| (votes, std::cmp::Reverse(cause))) else {
        return not_measured();
    };
    let agreeing: Vec<&Diagnosis> = measured.iter().copied().filter(|one| one.primary.cause == cause).collect();
    let primary: Vec<&Finding> = agreeing.iter().map(|one| &one.primary).collect();
    let mut primary = together(&primary);
    if agreeing.len() < measured.len() {
        primary.doubts.push(doubts::TRIALS_DISAGREE);
    }
    Diagnosis {
        primary,
        contributing: shared(&agreeing, |one| &one.contributing),
        ruled_out: shared(&agreeing, |one| &one.ruled_out),
        readings: agreeing.iter().map(|one| one.readings).min().unwrap_or(0),
        agreement: Agreement { agree, of: u32::try_from(measured.len()).unwrap_or(u32::MAX) },
    }
}

/// The findings of one list that at least half of the trials have, in the order of the first trial that has them.
fn shared(trials: &[&Diagnosis], list: fn(&Diagnosis) -> &Vec<Finding>) -> Vec<Finding> {
    let mut by_id: Vec<(&'static str, Vec<&Finding>)> = Vec::new();
    for finding in trials.iter().flat_map(|one| list(one)) {
        match by_id.iter_mut().find(|(id, _)| *id == finding.id) {
            Some((_, same)) => same.push(finding),
            None => by_id.push((finding.id, vec![finding])),
        }
    }
    let common = by_id.into_iter().filter(|(_, same)| 2 * same.len() >= trials.len());
    common.map(|(_, same)| together(&same)).collect()
}

/// One finding for several of the same id; there is at least one.
fn together(same: &[&Finding]) -> Finding {
    let mut values: BTreeMap<Quantity, Vec<f64>> = BTreeMap::new();
    for (quantity, value) in same.iter().flat_map(|finding| finding.numbers.values()) {
        values.entry(quantity).or_default().push(value);
    }
    let typical = |(quantity, all)| match quantity {
        // Half a worker does not fit.
        Quantity::WorkersThatFit => (quantity, median(all).floor()),
        _ => (quantity, median(all)),
    };
    let numbers: Numbers = values.into_iter().map(typical).collect();
    let mut doubts: BTreeMap<&'static str, usize> = BTreeMap::new();
    for doubt in same.iter().flat_map(|finding| &finding.doubts) {
        *doubts.entry(doubt).or_default() += 1;
    }
    doubts.retain(|_, n| 2 * *n >= same.len());
    Finding { numbers, doubts: doubts.into_keys().collect(), ..same[0].clone() }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    f64::midpoint(values[(values.len() - 1) / 2], values[values.len() / 2])
}
