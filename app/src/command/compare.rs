//! `webdyno compare`: two stored runs, or loads, or several of each; how the second compares with the first.

use super::report::{language, look, store_path};
use crate::exit::{self, Exit};
use crate::flags::CompareFlags;
use crate::say::print;
use anyhow::{Context, bail, ensure};
use model::run::Run;
use report::Language;
use report::between::{self, BetweenView};
use std::slice;
use store::{Kept, Store};

pub(crate) fn run(flags: &CompareFlags) -> anyhow::Result<Exit> {
    let store = Store::open_existing(&store_path(&flags.store)?)?;
    let (first, second) = (side(&store, &flags.first, flags.anyway)?, side(&store, &flags.second, flags.anyway)?);
    if let Some(twice) = first.iter().find(|run| second.iter().any(|other| other.head.id == run.head.id)) {
        bail!("run {} stands on both sides; give two different runs", twice.head.id);
    }
    comparable(&first, &second, flags.anyway)?;
    let view = BetweenView::of(&first, &second, language(&flags.lang))?;
    print(&if flags.json { between::json::render(&view) } else { between::text::render(&view, look()) });
    Ok(exit::of_verdicts(view.cells.iter().map(|cell| cell.judged)))
}

/// The runs of one side, by their identifiers or unique beginnings of them, with commas between.
fn side(store: &Store, ids: &str, anyway: bool) -> anyhow::Result<Vec<Run>> {
    let mut runs: Vec<Run> = Vec::new();
    for id in ids.split(',') {
        super::report::exactly_one(store, id)?;
        let run = match store.kept(id)? {
            Kept::Run(run) => *run,
            Kept::Import(_) => bail!("{id} was imported from ab; `webdyno import` compares what ab printed"),
        };
        ensure!(
            run.head.plan.search.is_none(),
            "{} is a search for a rate, whose trials are of different loads",
            run.head.id
        );
        let same = runs.first().is_none_or(|first| first.head.plan.cells == run.head.plan.cells);
        ensure!(same, "{} has other cells than {}; the runs of one side must be of one plan", run.head.id, ids);
        ensure!(runs.iter().all(|other| other.head.id != run.head.id), "run {} is named twice", run.head.id);
        if let Some(first) = runs.first() {
            // Its trials would be taken for some of the first one's.
            comparable(slice::from_ref(first), slice::from_ref(&run), anyway)
                .with_context(|| format!("{} and {} cannot be one side", first.head.id, run.head.id))?;
        }
        runs.push(run);
    }
    Ok(runs)
}

/// Refuses what no interval can say anything about, unless that is what is wanted.
fn comparable(first: &[Run], second: &[Run], anyway: bool) -> anyhow::Result<()> {
    // What is refused is said in English, as all errors are.
    let view = BetweenView::of(first, second, Language::English)?;
    if view.cells.is_empty() {
        let alone = view.alone.join(", ");
        bail!("the two have no cell in common: {alone}; give two runs of one plan, or two loads");
    }
    if let Some(difference) = view.forbidding.first().filter(|_| !anyway) {
        bail!("{} --anyway compares them all the same", difference.text);
    }
    Ok(())
}
