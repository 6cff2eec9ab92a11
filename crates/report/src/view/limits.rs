//! What limited each cell, as a report in lines tells it: cell by cell, and where there are many of them those of which the same was
//! found together, with the range of their numbers.

use crate::language::{Catalogue, Sentence};
use crate::view::cells::{limited, printed};
use crate::view::{CellView, DiagnosisView, EvidenceView, FindingView};
use std::collections::BTreeSet;

/// Cells that are told of one by one, at most; of more a reader wants to know where they differ.
const FEW: usize = 8;

/// What is said of a cell, or of several at once.
#[derive(Debug, Clone)]
pub struct LimitView {
    /// The name of the cell, or of all of them.
    pub who: String,
    /// What limited it, in a few words.
    pub headline: String,
    /// What was found, unless it was told of another cell.
    pub diagnosis: Option<DiagnosisView>,
    /// What is known beside it.
    pub beside: Vec<String>,
    /// What speaks against the numbers.
    pub doubts: Vec<String>,
}

pub(crate) fn views(cells: &[CellView], words: &Catalogue) -> Vec<LimitView> {
    let mut groups: Vec<Vec<&CellView>> = Vec::new();
    for cell in cells {
        let is_alike = |group: &&mut Vec<&CellView>| cells.len() > FEW && said(group[0]) == said(cell);
        match groups.iter_mut().find(is_alike) {
            Some(group) => group.push(cell),
            None => groups.push(vec![cell]),
        }
    }
    let who = |group: &[&CellView]| {
        let names: Vec<&str> = group.iter().map(|cell| cell.name.as_str()).collect();
        let is_all = names.len() == cells.len() && names.len() > 1;
        if is_all { words.say("all-cells", &[("n", cells.len().into())]).text } else { names.join("; ") }
    };
    groups.iter().map(|group| LimitView { who: who(group), ..view(group, words) }).collect()
}

/// What cells that are told of together have in common: all that is said of their limit but the numbers and what it was not.
fn said(cell: &CellView) -> Vec<&Sentence> {
    match (&cell.same_as_baseline, &cell.diagnosis) {
        (Some(same), _) => vec![same],
        (None, Some(diagnosis)) => {
            let found = std::iter::once(&diagnosis.primary).chain(&diagnosis.contributing);
            let told = found.flat_map(|finding| std::iter::once(&finding.told).chain(&finding.advice));
            std::iter::once(&diagnosis.headline).chain(told).chain(diagnosis.primary.how_sure()).collect()
        }
        (None, None) => Vec::new(),
    }
}

fn view(group: &[&CellView], words: &Catalogue) -> LimitView {
    let first = group[0];
    let headline = match (&first.same_as_baseline, &first.diagnosis) {
        (Some(same), _) => same.text.clone(),
        (None, Some(diagnosis)) => diagnosis.headline.text.clone(),
        (None, None) => words.word("no-diagnosis"),
    };
    let diagnosis = first.diagnosis.as_ref().filter(|_| first.same_as_baseline.is_none());
    LimitView {
        who: String::new(),
        headline,
        diagnosis: diagnosis.map(|diagnosis| together(diagnosis, group, words)),
        beside: beside(group, words),
        doubts: each(group, |cell| cell.doubts.iter().collect()),
    }
}

/// The diagnosis of the first with the numbers of all.
fn together(first: &DiagnosisView, group: &[&CellView], words: &Catalogue) -> DiagnosisView {
    if group.len() == 1 {
        return first.clone();
    }
    let found = |of: fn(&DiagnosisView) -> &[FindingView]| -> Vec<FindingView> {
        let all: Vec<&[FindingView]> = group.iter().filter_map(|cell| cell.diagnosis.as_ref()).map(of).collect();
        // What was ruled out in some of them only is not said of all.
        let same = |finding: &FindingView| -> Option<Vec<&FindingView>> {
            all.iter().map(|others| others.iter().find(|other| other.title == finding.title)).collect()
        };
        of(first).iter().filter_map(|finding| Some(ranging(finding, &same(finding)?, words))).collect()
    };
    let primary = found(|diagnosis| std::slice::from_ref(&diagnosis.primary)).pop();
    let mut together = DiagnosisView {
        primary: primary.unwrap_or_else(|| first.primary.clone()),
        contributing: found(|diagnosis| &diagnosis.contributing),
        ruled_out: found(|diagnosis| &diagnosis.ruled_out),
        ..first.clone()
    };
    let mut said = BTreeSet::new();
    let (contributing, ruled_out) = (together.contributing.iter_mut(), together.ruled_out.iter_mut());
    for finding in std::iter::once(&mut together.primary).chain(contributing).chain(ruled_out) {
        finding.evidence.iter_mut().for_each(|number| number.repeated = !said.insert(number.name));
    }
    together
}

/// A finding with the range of those of its numbers that all have who found the same.
fn ranging(finding: &FindingView, all: &[&FindingView], words: &Catalogue) -> FindingView {
    let has = |other: &FindingView, name: &str| other.evidence.iter().any(|number| number.name == name);
    let shared = finding.evidence.iter().filter(|number| all.iter().all(|other| has(other, number.name)));
    let number = |number: &EvidenceView| {
        let others = || all.iter().flat_map(|other| &other.evidence).filter(|other| other.name == number.name);
        let low = others().map(|other| other.value).fold(number.value, f64::min);
        let high = others().map(|other| other.value).fold(number.value, f64::max);
        let (from, to) = (printed(low, number.unit), printed(high, number.unit));
        let range = words.say("number-range", &[("from", from.clone().into()), ("to", to.clone().into())]).text;
        let limit = number.limit.filter(|limit| others().all(|other| other.limit == Some(*limit)));
        let text = limited(if from == to { from } else { range }, limit, number.unit, words);
        EvidenceView { text, ..number.clone() }
    };
    FindingView { evidence: shared.map(number).collect(), ..finding.clone() }
}

/// Of the workers' memory, that of the cell in which one of them held most is told.
fn beside(group: &[&CellView], words: &Catalogue) -> Vec<String> {
    if let [cell] = group {
        return cell.beside_limit().map(|sentence| sentence.text.clone()).collect();
    }
    let mut told =
        each(group, |cell| cell.expected.iter().map(|expected| &expected.sentence).chain(&cell.told).collect());
    let programs: BTreeSet<&str> = group.iter().flat_map(|cell| &cell.workers).map(|held| held.name.as_str()).collect();
    for program in programs {
        let held = group.iter().flat_map(|cell| cell.workers.iter().map(|held| (&cell.name, held)));
        let of_it = held.filter(|(_, held)| held.name == program);
        let most = of_it.max_by(|(_, one), (_, other)| one.own.largest_bytes.total_cmp(&other.own.largest_bytes));
        let Some((cell, held)) = most else { continue };
        told.push(words.say("workers-most-in", &[("cell", words.quoted(cell).into())]).text);
        told.extend(held.sentences.iter().map(|sentence| sentence.text.clone()));
    }
    told
}

/// Sentences of several cells, each once: with the names of those of which it is said, where that is not all of them.
fn each<'a>(group: &[&'a CellView], of: impl Fn(&'a CellView) -> Vec<&'a Sentence>) -> Vec<String> {
    let mut told: Vec<(&str, Vec<&str>)> = Vec::new();
    for &cell in group {
        for sentence in of(cell) {
            match told.iter_mut().find(|(text, _)| *text == sentence.text) {
                Some((_, cells)) => cells.push(&cell.name),
                None => told.push((&sentence.text, vec![&cell.name])),
            }
        }
    }
    let with_names = |(text, cells): (&str, Vec<&str>)| match cells.len() == group.len() {
        true => text.to_owned(),
        false => format!("{}: {text}", cells.join("; ")),
    };
    told.into_iter().map(with_names).collect()
}
