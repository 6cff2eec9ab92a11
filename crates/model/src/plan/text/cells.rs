//! Cells: what is compared. Listed in the plan, or every variant under every load, or derived from factors or from a sweep.

use super::factors::{self, DesignText, FactorText};
use super::source::Source;
use super::sweep::{self, SweepText};
use super::{PlanError, names};
use crate::plan::{Cell, Contrast, Design, LoadSpec, Role, Sweep, Variant};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::ops::Range;
use toml::Spanned;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CellText {
    name: Option<Spanned<String>>,
    variant: Spanned<String>,
    pub(super) load: Spanned<String>,
}

/// Something with its place in the text.
pub(super) type Placed<T> = (T, Range<usize>);

/// What the plan says of its cells.
pub(super) struct Wanted<'a> {
    pub(super) cells: &'a [CellText],
    pub(super) factors: BTreeMap<String, Spanned<FactorText>>,
    pub(super) design: Option<Spanned<DesignText>>,
    pub(super) sweep: Option<Spanned<SweepText>>,
    /// How the server is told the value of a setting.
    pub(super) setting: fn(&str, u64) -> String,
}

/// The cells, what they are made of, and what is asked of them.
pub(super) struct Made {
    pub(super) variants: Vec<Variant>,
    pub(super) loads: Vec<LoadSpec>,
    pub(super) cells: Vec<Placed<Cell>>,
    pub(super) contrasts: Vec<Contrast>,
    pub(super) design: Option<Design>,
    pub(super) sweep: Option<Sweep>,
}

/// Makes the cells that are wanted.
pub(super) fn made(
    source: &Source<'_>,
    wanted: Wanted<'_>,
    variants: Vec<Placed<Variant>>,
    loads: Vec<LoadSpec>,
    margin: f64,
) -> Result<Made, PlanError> {
    let Wanted { cells, factors, design, sweep, setting } = wanted;
    let first_factor = factors.values().map(|factor| factor.span()).min_by_key(|span| span.start);
    let derived = first_factor.as_ref().map(|place| (place, "factors")).or(sweep.as_ref().map(|_| (&(0..0), "sweep")));
    if let (Some((_, by)), Some(cell)) = (derived, cells.first()) {
        let what = format!("[{by}] makes the cells; remove the [[cell]] tables");
        return Err(source.at(cell.variant.span(), "cell", &what));
    }
    match (first_factor, design, sweep) {
        (Some(_), _, Some(sweep)) => {
            Err(source.at(sweep.span(), "sweep", "there are [factors] too; a plan has one or the other"))
        }
        (Some(_), design, None) => factors::made(source, factors, design, &variants, &loads, margin),
        (None, Some(design), _) => {
            Err(source.at(design.span(), "design", "it says how factors are combined, and there are no [factors]"))
        }
        (None, None, Some(sweep)) => sweep::made(source, &sweep, setting, &variants, &loads),
        (None, None, None) => {
            let cells = if cells.is_empty() {
                all_pairs(&variants, &loads)
            } else {
                written_pairs(source, cells, &variants, &loads)?
            };
            let variants = variants.into_iter().map(|(variant, _)| variant).collect();
            Ok(Made { variants, loads, cells, contrasts: vec![], design: None, sweep: None })
        }
    }
}

impl Made {
    /// The cells, one of them the baseline, with its second copy if `aa`.
    pub(super) fn with_roles(
        &mut self,
        source: &Source<'_>,
        baseline: Option<&Spanned<String>>,
        aa: bool,
    ) -> Result<Vec<Cell>, PlanError> {
        let mut cells = std::mem::take(&mut self.cells);
        let index = match baseline {
            None => 0,
            Some(name) => cells.iter().position(|(cell, _)| cell.name == *name.get_ref()).ok_or_else(|| {
                let known = names(cells.iter().map(|(cell, _)| &cell.name));
                source.at(name.span(), "baseline", &format!("no cell `{}`; there is {known}", name.get_ref()))
            })?,
        };
        cells[index].0.role = Role::Baseline;
        if aa {
            let (first, place) = cells[index].clone();
            let again = Cell { name: format!("{} (A/A)", first.name), role: Role::Again, ..first };
            cells.insert(index + 1, (again, place));
        }
        for (i, (cell, place)) in cells.iter().enumerate() {
            if let Some((other, other_place)) = cells[..i].iter().find(|(other, _)| other.name == cell.name) {
                // The name of the second copy is not the user's: the other one is to blame.
                let place = if cell.role == Role::Again { other_place } else { place };
                let aa = [cell, other].iter().any(|cell| cell.role == Role::Again);
                let why = if aa { ", one of them the baseline's second copy" } else { "" };
                let what = format!("two cells would be called `{}`{why}; choose another name", cell.name);
                return Err(source.at(place.clone(), "cell.name", &what));
            }
        }
        Ok(cells.into_iter().map(|(cell, _)| cell).collect())
    }
}

/// The cells that the plan lists, each with its place in the text.
fn written_pairs(
    source: &Source<'_>,
    written: &[CellText],
    variants: &[Placed<Variant>],
    loads: &[LoadSpec],
) -> Result<Vec<Placed<Cell>>, PlanError> {
    let pair = |text: &CellText| {
        let (variant, load) = (text.variant.get_ref(), text.load.get_ref());
        if !variants.iter().any(|(v, _)| v.name == *variant) {
            let known = names(variants.iter().map(|(v, _)| &v.name));
            return Err(source.at(
                text.variant.span(),
                "cell.variant",
                &format!("no variant `{variant}`; there is {known}"),
            ));
        }
        if !loads.iter().any(|l| l.name == *load) {
            let known = names(loads.iter().map(|l| &l.name));
            return Err(source.at(text.load.span(), "cell.load", &format!("no load `{load}`; there is {known}")));
        }
        let (name, place) = match &text.name {
            Some(name) => (name.get_ref().clone(), name.span()),
            None => (cell_name(variant, load, variants.len(), loads.len()), text.variant.span()),
        };
        let (variant, load) = (variant.clone(), load.clone());
        Ok((Cell { name, variant, load, role: Role::Candidate }, place))
    };
    written.iter().map(pair).collect()
}

/// Every variant under every load, each with its variant's place in the text.
fn all_pairs(variants: &[Placed<Variant>], loads: &[LoadSpec]) -> Vec<Placed<Cell>> {
    let pair = |(variant, place): &Placed<Variant>, load: &LoadSpec| {
        let name = cell_name(&variant.name, &load.name, variants.len(), loads.len());
        let (variant, load) = (variant.name.clone(), load.name.clone());
        (Cell { name, variant, load, role: Role::Candidate }, place.clone())
    };
    variants.iter().flat_map(|variant| loads.iter().map(move |load| pair(variant, load))).collect()
}

/// A cell's name among so many variants and loads: what tells it from the others.
fn cell_name(variant: &str, load: &str, variants: usize, loads: usize) -> String {
    match (variants, loads) {
        (_, 1) => variant.to_owned(),
        (1, _) => load.to_owned(),
        _ => format!("{variant}, {load}"),
    }
}

#[cfg(test)]
mod tests;
