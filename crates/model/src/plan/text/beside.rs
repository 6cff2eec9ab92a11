//! Loads that run beside every cell's own: what a plan may say of them, and where they are no answer.

use super::cells::{CellText, Placed};
use super::load::LoadText;
use super::source::Source;
use super::{PlanError, names};
use crate::plan::{Cell, LoadSpec};
use toml::Spanned;

/// Whether the load is one, and said as one is: by a rate of its own, and without an end of its own.
pub(super) fn is_meant(
    source: &Source<'_>,
    name: &str,
    load: &Spanned<LoadText>,
    from_away: bool,
) -> Result<bool, PlanError> {
    let text = load.get_ref();
    if !text.beside {
        return Ok(false);
    }
    let at = |span, key: &str, what: &str| Err(source.at(span, &format!("load.{name}.{key}"), what));
    let ends = [
        (text.requests.as_ref().map(Spanned::span), "requests"),
        (text.duration.as_ref().map(Spanned::span), "duration"),
        (text.stages.as_ref().map(Spanned::span), "stages"),
    ];
    if let Some((span, key)) = ends.into_iter().find_map(|(span, key)| Some((span?, key))) {
        return at(span, key, "a load beside lasts as long as the cell's own; leave it out");
    }
    if text.rate.is_none() {
        let what = "a load beside comes at a rate of its own, whatever the server does; give `rate`";
        return at(load.span(), "beside", what);
    }
    if from_away {
        let what = "another machine sends one load at a time; leave [load] from out";
        return at(load.span(), "beside", what);
    }
    Ok(true)
}

/// What to say where no load is a cell's own.
pub(super) fn no_load(beside: &[LoadSpec]) -> &'static str {
    match beside {
        [] => "give at least one [load.NAME]",
        _ => "every load is beside, and none is the cells' own; give one without `beside`",
    }
}

/// A load beside runs in every trial, so it is no cell's own.
pub(super) fn refuse_as_own(
    source: &Source<'_>,
    beside: &[LoadSpec],
    loads: &[LoadSpec],
    cells: &[CellText],
) -> Result<(), PlanError> {
    let Some(load) = cells.iter().map(|cell| &cell.load).find(|load| has(beside, load)) else { return Ok(()) };
    let known = names(loads.iter().map(|load| &load.name));
    let what = format!("`{}` runs beside the loads of all cells; choose {known}", load.get_ref());
    Err(source.at(load.span(), "cell.load", &what))
}

/// Nor is it a cell that others could be compared with.
pub(super) fn refuse_as_baseline(
    source: &Source<'_>,
    beside: &[LoadSpec],
    cells: &[Placed<Cell>],
    baseline: Option<&Spanned<String>>,
) -> Result<(), PlanError> {
    let is_cell = |name: &Spanned<String>| cells.iter().any(|(cell, _)| cell.name == *name.get_ref());
    let Some(name) = baseline.filter(|name| has(beside, name) && !is_cell(name)) else { return Ok(()) };
    let what = format!("`{}` is a load beside, and no cell; it is compared between the same cells", name.get_ref());
    Err(source.at(name.span(), "baseline", &what))
}

fn has(beside: &[LoadSpec], name: &Spanned<String>) -> bool {
    beside.iter().any(|load| load.name == *name.get_ref())
}

#[cfg(test)]
mod tests {
    use crate::plan::{Options, Pace, Plan, PlanError, parse};
    use std::path::Path;

    const CELLS: &str =
        "[server]\nkind = \"embedded\"\n[load.cgi]\npath = \"/cpu/1ms\"\nconnections = 4\nrequests = 9\n";
    const STATIC: &str = "[load.static]\nbeside = true\npath = \"/\"\nconnections = 8\nrate = \"20/s\"\n";

    fn read(text: &str) -> Result<Plan, PlanError> {
        parse(text, Path::new("plans/t.toml"), &Options::default()).map(|(plan, _)| plan)
    }

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(read(text).unwrap_err().to_string(), format!("plans/t.toml:{expected}"));
    }

    #[test]
    fn it_is_beside_every_cell_and_none_of_them() {
        let plan = read(&format!("{CELLS}{STATIC}[variant.a]\n[variant.b]\n")).unwrap();
        let names: Vec<&str> = plan.cells.iter().map(|cell| cell.name.as_str()).collect();
        assert_eq!(names, ["a", "a (A/A)", "b"]);
        assert_eq!((plan.loads.len(), plan.beside.len()), (1, 1));
        let load = &plan.beside[0];
        assert_eq!((load.name.as_str(), load.length_ns()), ("static", None));
        assert!(matches!(&load.pace, Pace::Timetable(table) if table.stages[0].from == 20.0));
        // What a plan of before says nothing of is not there.
        let mut stored = serde_json::to_value(&plan).unwrap();
        stored.as_object_mut().unwrap().remove("beside");
        assert!(serde_json::from_value::<Plan>(stored).unwrap().beside.is_empty());
    }

    #[test]
    fn what_cannot_be_beside_is_one_line() {
        let with = |line: &str| format!("{CELLS}{STATIC}{line}\n");
        let end = "a load beside lasts as long as the cell's own; leave it out";
        check(&with("duration = \"1s\""), &format!("12: load.static.duration: {end}"));
        check(&with("requests = 4"), &format!("12: load.static.requests: {end}"));
        check(&with("").replace("rate = \"20/s\"", "stages = \"1s:5/s\""), &format!("11: load.static.stages: {end}"));
        check(
            &with("").replace("rate = \"20/s\"", ""),
            "7: load.static.beside: a load beside comes at a rate of its own, whatever the server does; give `rate`",
        );
        check(
            &with("").replace("[load.cgi]", "[load]\nfrom = \"ssh:a\"\n[load.cgi]"),
            "9: load.static.beside: another machine sends one load at a time; leave [load] from out",
        );
        check(
            &format!("[server]\nkind = \"embedded\"\n{STATIC}"),
            "3: load: every load is beside, and none is the cells' own; give one without `beside`",
        );
    }

    #[test]
    fn it_is_no_cell_and_no_baseline() {
        check(
            &format!("baseline = \"static\"\n{CELLS}{STATIC}"),
            "1: baseline: `static` is a load beside, and no cell; it is compared between the same cells",
        );
        check(
            &format!("{CELLS}{STATIC}[[cell]]\nvariant = \"as-is\"\nload = \"static\"\n"),
            "14: cell.load: `static` runs beside the loads of all cells; choose `cgi`",
        );
        check(
            &format!("{CELLS}{STATIC}[factors.w]\na = \"Workers 4\"\nb = {{ load = \"static\" }}\n"),
            "14: factors.w.b.load: no load `static`; there is `cgi`",
        );
        check(&format!("{CELLS}{STATIC}{STATIC}"), "12: load.static: duplicate key");
    }
}
