//! What the access logs of the cells hold, against what their clients were answered: lines lost, as they were counted.

use crate::language::Catalogue;
use crate::view::table::{NOTHING, Row, RowKind, Table, heads};
use crate::view::{CellView, LoggedTrialView, LoggedView};
use model::plan::Cell;
use model::run::Run;
use model::trial::Logged;

/// The counts of a cell; `None` where no log was counted.
pub(crate) fn of_cell(run: &Run, cell: &Cell) -> Option<LoggedView> {
    let trials: Vec<(u32, &Logged)> =
        run.measured(&cell.name).filter_map(|(trial, _)| Some((trial.block + 1, trial.logged.as_ref()?))).collect();
    let sum = |of: fn(&Logged) -> u64| trials.iter().map(|(_, logged)| of(logged)).sum();
    let of_trial = |&(block, logged): &(u32, &Logged)| {
        let (lost_least, lost_most) = logged.lost();
        let unwritten = logged.answered.saturating_sub(logged.early);
        LoggedTrialView { block, answers: logged.answered, lines: logged.lines, unwritten, lost_least, lost_most }
    };
    (!trials.is_empty()).then(|| LoggedView {
        ending: run.head.plan.end(cell).how.name(),
        writes: trials.iter().any(|(_, logged)| logged.files > 0),
        answers: sum(|logged| logged.answered),
        lines: sum(|logged| logged.lines),
        lost_least: sum(|logged| logged.lost().0),
        lost_most: sum(|logged| logged.lost().1),
        unread: sum(|logged| logged.unread),
        trials: trials.iter().map(of_trial).collect(),
    })
}

/// The counts side by side; empty when no log was counted.
pub(crate) fn table(cells: &[CellView], words: &Catalogue) -> Table {
    if cells.iter().all(|cell| cell.logged.is_none()) {
        return Table::default();
    }
    let row = |kind, id: &str, figure: &dyn Fn(&LoggedView) -> String| Row {
        kind,
        label: words.word(id),
        figures: cells.iter().map(|cell| cell.logged.as_ref().map_or_else(|| NOTHING.to_owned(), figure)).collect(),
    };
    let of_a_log = |view: &LoggedView, figure: String| if view.writes { figure } else { NOTHING.to_owned() };
    let over = |view: &LoggedView, of: fn(&LoggedTrialView) -> (u64, u64)| {
        let least = view.trials.iter().map(|trial| of(trial).0).min().unwrap_or(0);
        let most = view.trials.iter().map(|trial| of(trial).1).max().unwrap_or(0);
        of_a_log(view, between(least, most))
    };
    let mut rows = vec![
        row(RowKind::Uncounted, "row-logged-ending", &|view| words.word(&format!("ending-{}", view.ending))),
        row(RowKind::Uncounted, "row-logged-answers", &|view| view.answers.to_string()),
        row(RowKind::Uncounted, "row-logged-lines", &|view| of_a_log(view, view.lines.to_string())),
        row(RowKind::Failed, "row-logged-lost", &|view| of_a_log(view, between(view.lost_least, view.lost_most))),
        row(RowKind::Failed, "row-logged-range", &|view| over(view, |trial| (trial.lost_least, trial.lost_most))),
        row(RowKind::Uncounted, "row-logged-unwritten", &|view| over(view, |trial| (trial.unwritten, trial.unwritten))),
    ];
    let any = |of: fn(&LoggedView) -> bool| cells.iter().filter_map(|cell| cell.logged.as_ref()).any(of);
    let mut notes = vec![words.say("logged-note", &[])];
    if any(|view| view.unread > 0) {
        rows.push(row(RowKind::Uncounted, "row-logged-unread", &|view| of_a_log(view, view.unread.to_string())));
        notes.push(words.say("logged-unread-note", &[]));
    }
    if any(|view| view.lost_least < view.lost_most) {
        notes.push(words.say("logged-unsure-note", &[]));
    }
    if any(|view| !view.writes) {
        notes.push(words.say("logged-none-note", &[]));
    }
    Table { heads: heads(cells), rows, notes }
}

/// A number, or two with a dash.
fn between(least: u64, most: u64) -> String {
    if least == most { least.to_string() } else { format!("{least}–{most}") }
}
