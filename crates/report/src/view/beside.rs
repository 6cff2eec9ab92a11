//! What the loads beside the cells' own saw: the same blocks, compared in the same way, each load by itself.

use crate::language::{Catalogue, Sentence};
use crate::view::judged::Judged;
use crate::view::metrics::{self, Others};
use crate::view::table::{self, Table};
use crate::view::{CellView, ContrastView, cells, contrasts, sent};
use model::plan::LoadSpec;
use model::run::Run;
use serde::Serialize;

/// A run as a load saw it that ran in every trial beside the cell's own, judged by itself.
pub(crate) struct Seen<'a> {
    pub(crate) load: &'a LoadSpec,
    pub(crate) run: Run,
    pub(crate) judged: Judged,
    pub(crate) others: Others,
}

/// A load that ran in every trial beside the cell's own.
#[derive(Debug, Clone, Serialize)]
pub struct BesideView {
    /// Its name.
    pub name: String,
    /// What is sent, and that it is beside the others.
    pub load: Sentence,
    /// What came of it in each cell. Of what limited a cell the cell's own view tells.
    pub cells: Vec<CellView>,
    /// The plan's questions, answered for this load.
    pub contrasts: Vec<ContrastView>,
    /// The cells as a table, printed.
    #[serde(skip)]
    pub table: Table,
    /// Its latencies, compared, printed.
    #[serde(skip)]
    pub metrics: Table,
    /// The contrasts as a table, printed.
    #[serde(skip)]
    pub answers: Table,
}

/// The run as each load beside saw it.
pub(crate) fn seen(run: &Run) -> Vec<Seen<'_>> {
    let of_load = |load| {
        let run = run.beside(load);
        Seen { load, judged: Judged::undiagnosed(&run), others: Others::of(&run), run }
    };
    run.head.plan.beside.iter().map(of_load).collect()
}

pub(crate) fn views(seen: &[Seen<'_>], words: &Catalogue) -> Vec<BesideView> {
    seen.iter().map(|seen| view(seen, words)).collect()
}

/// Something of a load that is not the one in question.
pub(crate) fn of_load(what: &str, load: &str, words: &Catalogue) -> String {
    words.say("recommend-beside", &[("metric", what.into()), ("load", words.quoted(load).into())]).text
}

fn view(Seen { load, run, judged, others }: &Seen<'_>, words: &Catalogue) -> BesideView {
    let cells = cells::views(run, judged, others, words);
    let contrasts = contrasts::views(run, judged, others, words);
    let (compared, confidence) = (contrasts.is_empty(), run.head.plan.confidence);
    let sentence = sent::sentence(load, words);
    BesideView {
        name: load.name.clone(),
        load: words.say("beside-load", &[("load", load.name.as_str().into()), ("sent", sentence.text.into())]),
        table: table::of(&cells, compared, confidence, words),
        metrics: metrics::table(run, &cells, compared, words),
        answers: contrasts::table(&contrasts, confidence, words),
        cells,
        contrasts,
    }
}

impl BesideView {
    /// Its tables, each with the cells that are its columns, if they are: what came of it, how its latencies compare, and what the plan
    /// asks of it.
    pub fn tables(&self) -> impl Iterator<Item = (&Table, &[CellView])> {
        let cells = self.cells.as_slice();
        let tables = [(&self.table, cells), (&self.metrics, cells), (&self.answers, &[])];
        tables.into_iter().filter(|(table, _)| !table.rows.is_empty())
    }

    /// What is doubtful about it, by cell.
    pub fn doubts(&self) -> impl Iterator<Item = (&str, &Sentence)> {
        self.cells.iter().flat_map(|cell| cell.doubts.iter().map(|doubt| (cell.name.as_str(), doubt)))
    }
}
