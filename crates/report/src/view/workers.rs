//! What the workers of a cell held while they were loaded, and how many like them memory has room for.

use crate::language::{Catalogue, Sentence};
use fluent_bundle::FluentValue;
use model::plan::{Cell, ServerSpec};
use model::reading::Column;
use model::run::Run;
use model::trial::Trial;
use model::workers::{Crew, Held, Room, WorkersHeld};
use serde::Serialize;

/// Workers of one program of the server.
#[derive(Debug, Clone, Serialize)]
pub struct WorkersView {
    /// What the kernel calls them.
    pub name: String,
    /// How many there were when they were looked at: median over trials.
    pub workers: f64,
    /// Trials in which they were looked at.
    pub looks: usize,
    /// Those of them in which that was only after the load.
    pub looks_after: usize,
    /// How long a look took, median; one processor's time.
    pub look_ns: f64,
    /// Resident memory of one (RSS), over the workers of all trials.
    pub resident: SpreadView,
    /// Its share of it (PSS).
    pub proportional: SpreadView,
    /// What it alone has (USS), swapped memory included.
    pub own: SpreadView,
    /// What the server takes whatever the number of these workers: median over trials.
    pub shared_bytes: f64,
    /// How many fit; `None` where a worker serves more than one request at a time, or nothing is known of the memory.
    pub fit: Option<FitView>,
    /// The same in words.
    pub sentences: Vec<Sentence>,
}

/// The middle and the largest of some sizes.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct SpreadView {
    /// The median.
    pub median_bytes: f64,
    /// The largest.
    pub largest_bytes: f64,
}

/// How many workers memory has room for.
#[derive(Debug, Clone, Serialize)]
pub struct FitView {
    /// What the server may have.
    pub memory_bytes: f64,
    /// Whether the plan says so; else it is what was available to it at that moment, what it had included: median over trials.
    pub planned: bool,
    /// As many as the largest of these: (memory - shared) / own.
    pub workers: u64,
    /// What division by the largest resident size would say.
    pub workers_by_resident: u64,
    /// PHP's memory_limit, where the server says it.
    pub limit_bytes: Option<u64>,
    /// How many fit if each page took all of it.
    pub workers_by_limit: Option<u64>,
}

/// One view for each program that has workers; none where nobody looked.
pub(crate) fn of_cell(run: &Run, cell: &Cell, words: &Catalogue) -> Vec<WorkersView> {
    let seen: Vec<(&Trial, &WorkersHeld)> =
        run.measured(&cell.name).filter_map(|(trial, _)| Some((trial, trial.workers.as_ref()?))).collect();
    let mut names: Vec<(usize, &str)> = Vec::new();
    for (number, crew) in seen.iter().flat_map(|(_, held)| held.crews.iter().enumerate()) {
        if !names.iter().any(|(_, known)| *known == crew.name) {
            names.push((number, &crew.name));
        }
    }
    // webdyno's own server is one process.
    let ours = matches!(run.head.plan.server, ServerSpec::Embedded(_));
    names.into_iter().filter(|_| !ours).filter_map(|(number, name)| view(run, &seen, number, name, words)).collect()
}

fn view(
    run: &Run,
    seen: &[(&Trial, &WorkersHeld)],
    number: usize,
    name: &str,
    words: &Catalogue,
) -> Option<WorkersView> {
    let of_name = |held: &'_ &WorkersHeld| held.crews.iter().any(|crew| crew.name == name);
    let looks: Vec<(&Trial, &WorkersHeld)> = seen.iter().filter(|(_, held)| of_name(held)).copied().collect();
    let crews = || looks.iter().filter_map(|(_, held)| held.crews.iter().find(|crew| crew.name == name));
    let spread = |of: fn(Held) -> u64| {
        let sizes: Vec<f64> = crews().flat_map(|crew| &crew.workers).map(|held| of(*held) as f64).collect();
        let largest_bytes = sizes.iter().copied().fold(0.0, f64::max);
        Some(SpreadView { median_bytes: median(sizes.into_iter())?, largest_bytes })
    };
    let after = |trial: &Trial, held: &WorkersHeld| trial.load.as_ref().is_some_and(|load| held.at_ns > load.ended_ns);
    let mut view = WorkersView {
        name: name.to_owned(),
        workers: median(crews().map(|crew| crew.workers.len() as f64))?,
        looks: looks.len(),
        looks_after: looks.iter().filter(|(trial, held)| after(trial, held)).count(),
        look_ns: median(looks.iter().map(|(_, held)| held.took_ns as f64))?,
        resident: spread(|held| held.resident)?,
        proportional: spread(|held| held.proportional)?,
        own: spread(Held::alone)?,
        shared_bytes: median(looks.iter().zip(crews()).map(|((_, held), crew)| held.without(crew) as f64))?,
        fit: None,
        sentences: Vec::new(),
    };
    if crews().all(|crew| is_one_at_a_time(run, number, crew)) {
        view.fit = fit(run, &looks, &view);
    }
    view.sentences = sentences(&view, words);
    Some(view)
}

/// Whether a worker has one request at a time, and works on it itself: then their number is the number of requests, and what they hold is
/// what requests cost. A program that is started for each request has its memory to itself; of that the diagnosis tells.
fn is_one_at_a_time(run: &Run, number: usize, crew: &Crew) -> bool {
    let by_others = match &run.head.plan.server {
        ServerSpec::Nginx(_) => true,
        ServerSpec::Apache(apache) => apache.scripts.is_some(),
        // How it works is not known.
        ServerSpec::Url(_) => return false,
        ServerSpec::Command(_) | ServerSpec::Embedded(_) => false,
    };
    crew.threads == 1 && !crew.others.is_empty() && !(number == 0 && by_others)
}

fn fit(run: &Run, looks: &[(&Trial, &WorkersHeld)], view: &WorkersView) -> Option<FitView> {
    let planned = run.head.plan.confine.as_ref().and_then(|confine| confine.memory);
    let memory_bytes = match planned {
        Some(bytes) => bytes as f64,
        None => median(looks.iter().filter_map(|(trial, held)| available(trial, held)))?,
    };
    let room = Room { memory: memory_bytes, shared: view.shared_bytes, each: view.own.largest_bytes };
    let limit = looks.iter().find_map(|(trial, _)| trial.settings.values.get("memory_limit"));
    let limit_bytes = limit.and_then(|limit| units::bytes(limit).ok()).filter(|bytes| *bytes > 0);
    Some(FitView {
        memory_bytes,
        planned: planned.is_some(),
        workers: room.workers(room.each)?,
        workers_by_resident: Room { shared: 0.0, ..room }.workers(view.resident.largest_bytes)?,
        limit_bytes,
        workers_by_limit: limit_bytes.and_then(|bytes| room.workers(bytes as f64)),
    })
}

/// What the server could have had at the moment of a look: what was available, and what it had; no more than a limit around it leaves it.
fn available(trial: &Trial, held: &WorkersHeld) -> Option<f64> {
    let latest = trial.readings.rows.iter().rfind(|row| row.at_ns <= held.at_ns);
    let kib = latest.or(trial.readings.rows.first())?.get(Column::MemAvailable)?;
    // Without what is swapped out: that is in nobody's memory.
    let everybody = held.crews.iter().flat_map(|crew| crew.workers.iter().chain(&crew.others));
    let resident: u64 = everybody.map(|one| one.proportional).sum();
    let limit = trial.share.and_then(|share| share.memory).map_or(f64::INFINITY, |bytes| bytes as f64);
    Some((kib as f64 * 1024.0 + resident as f64).min(limit))
}

fn sentences(view: &WorkersView, words: &Catalogue) -> Vec<Sentence> {
    let bytes = |value: f64| -> FluentValue<'_> { units::short_bytes(value.round() as u64).into() };
    let mut held = vec![
        ("name", view.name.as_str().into()),
        ("n", view.workers.into()),
        ("shared", bytes(view.shared_bytes)),
        ("looks", view.looks.into()),
        ("after", view.looks_after.into()),
        ("took", units::short_duration(view.look_ns).into()),
    ];
    for (median, largest, spread) in [
        ("resident", "resident_most", view.resident),
        ("proportional", "proportional_most", view.proportional),
        ("own", "own_most", view.own),
    ] {
        held.extend([(median, bytes(spread.median_bytes)), (largest, bytes(spread.largest_bytes))]);
    }
    let mut told = vec![words.say("workers-held", &held)];
    let Some(fit) = &view.fit else { return told };
    let arguments = [
        ("memory", bytes(fit.memory_bytes)),
        ("shared", bytes(view.shared_bytes)),
        ("own", bytes(view.own.largest_bytes)),
        ("fit", fit.workers.into()),
        ("resident", bytes(view.resident.largest_bytes)),
        ("naive", fit.workers_by_resident.into()),
    ];
    told.push(words.say(if fit.planned { "workers-fit-planned" } else { "workers-fit-available" }, &arguments));
    if let Some((limit, workers)) = fit.limit_bytes.zip(fit.workers_by_limit) {
        told.push(words.say("workers-fit-limit", &[("limit", bytes(limit as f64)), ("fit", workers.into())]));
    }
    told
}

fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    stats::summarize(&values.collect::<Vec<f64>>()).ok().map(|summary| summary.median)
}
