//! The reports side by side, printed.

use super::{GroupView, ReportView, number};
use crate::language::Catalogue;
use crate::view::table::NOTHING;
use crate::view::{Row, RowKind, Table};
use abtext::{Field, Row as Times, Stat};

pub(super) fn of(groups: &[GroupView], words: &Catalogue) -> Table {
    let reports: Vec<&ReportView> = groups.iter().flat_map(|group| &group.reports).collect();
    let row = |kind, label: String, figure: &dyn Fn(&ReportView) -> Option<String>| Row {
        kind,
        label,
        figures: reports.iter().map(|report| figure(report).unwrap_or_else(|| NOTHING.to_owned())).collect(),
    };
    let field = |field| move |view: &ReportView| Some(number(view.report.value(field)?, 3));
    let ms = |id| words.say(id, &[("unit", "ms".into())]).text;
    let time = |stat| field(Field::Times(Times::Total, stat));
    let seconds = |view: &ReportView| Some(format!("{:.3}", view.report.seconds()?.range.middle()));
    let rate = |view: &ReportView| Some(format!("{:.2}", view.report.good_per_second()?));
    let failed = |view: &ReportView| Some(number(view.report.value(Field::Complete)? - view.report.good()?, 0));
    let rows = [
        row(RowKind::Trials, words.word("import-row-line"), &|view| Some(view.report.first_line().to_string())),
        row(RowKind::Trials, words.word("import-row-requests"), &field(Field::Complete)),
        row(RowKind::Trials, words.word("import-row-connections"), &field(Field::Concurrency)),
        row(RowKind::Time, words.word("row-time"), &seconds),
        row(RowKind::Rate, words.word("row-rate"), &rate),
        row(RowKind::Failed, words.word("row-failed"), &failed),
        row(RowKind::Latency, ms("row-mean"), &time(Stat::Mean)),
        row(RowKind::Latency, ms("row-median"), &time(Stat::Median)),
        row(RowKind::Latency, ms("row-p99"), &field(Field::Percentile(99))),
        row(RowKind::Latency, ms("row-max"), &time(Stat::Max)),
    ];
    let told = |row: &Row| row.figures.iter().any(|figure| figure != NOTHING);
    Table {
        heads: reports.iter().map(|view| view.name.clone()).collect(),
        rows: rows.into_iter().filter(told).collect(),
        notes: vec![words.say("import-note", &[])],
    }
}
