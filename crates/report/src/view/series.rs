//! The trials one by one, and what happened in each over time.

use crate::language::{Catalogue, Sentence};
use crate::view::cells::title;
use crate::view::judged::Judged;
use crate::view::trouble::notes;
use crate::view::{PanelView, SeriesView, TrialView};
use model::load::LoadResult;
use model::reading::{Column, CpuShares, Span};
use model::run::{HostFacts, Run};
use model::status::{ServerStatus, WebStatus};
use model::trial::{Outcome, Stop, Trial};

/// The most points a line keeps; neighbours are averaged beyond it, so that a page of an hour's run stays light.
const MOST_POINTS: usize = 240;

const MEBIBYTE: f64 = 1_048_576.0;

/// Bytes of what the kernel swaps at a time.
const PAGE: f64 = 4096.0;

pub(crate) fn trials(run: &Run, judged: &Judged, words: &Catalogue) -> Vec<TrialView> {
    run.trials
        .iter()
        .enumerate()
        .map(|(index, trial)| TrialView {
            block: trial.block + 1,
            position: trial.position + 1,
            cell: trial.cell.clone(),
            outcome: outcome(trial, words),
            complete: trial.outcome == Outcome::Complete,
            used: trial.measured().is_some(),
            typical: typical(run, &trial.cell).is_some_and(|one| std::ptr::eq(one, trial)),
            window_s: trial.load.as_ref().map(LoadResult::seconds),
            good_per_s: trial.load.as_ref().map(LoadResult::goodput),
            median_us: trial.load.as_ref().and_then(|load| load.total.percentile_us(50.0)),
            limit: judged.trial(index).map(|diagnosis| title(&diagnosis.primary, words)),
            notes: notes(trial, words).map(|note| note.text).collect(),
            log_tail: (trial.outcome != Outcome::Complete && !trial.log_tail.trim().is_empty())
                .then(|| trial.log_tail.clone()),
            panels: panels(trial, &run.head.host, words),
        })
        .collect()
}

pub(crate) fn outcome(trial: &Trial, words: &Catalogue) -> Sentence {
    match &trial.outcome {
        Outcome::Complete => words.say("outcome-complete", &[]),
        Outcome::Invalid(why) => words.say("outcome-invalid", &[("why", why.as_str().into())]),
        Outcome::EndedEarly(stop) => {
            let id = match stop {
                Stop::Thrash => "stop-thrash",
                Stop::Failures => "stop-failures",
                Stop::HostSwapIn => "stop-host-swap-in",
                Stop::HostMemory => "stop-host-memory",
                Stop::TimeLimit => "stop-time-limit",
                Stop::Unwatched => "stop-unwatched",
                Stop::Interrupted => "stop-interrupted",
            };
            words.say(id, &[])
        }
    }
}

/// The same for a load that is no trial among others: what was measured is shown, whoever ended it.
pub(crate) fn load_outcome(trial: &Trial, words: &Catalogue) -> Sentence {
    match trial.outcome {
        Outcome::EndedEarly(Stop::Interrupted) => words.say("load-interrupted", &[]),
        _ => outcome(trial, words),
    }
}

/// The trial of a cell whose throughput is the median; the lower one of two.
fn typical<'a>(run: &'a Run, cell: &'a str) -> Option<&'a Trial> {
    let mut used: Vec<_> = run.measured(cell).collect();
    used.sort_by(|(_, a), (_, b)| a.goodput().total_cmp(&b.goodput()));
    used.get(used.len().saturating_sub(1) / 2).map(|(trial, _)| *trial)
}

fn panels(trial: &Trial, host: &HostFacts, words: &Catalogue) -> Vec<PanelView> {
    let Some(load) = &trial.load else { return Vec::new() };
    let time = Time { trial, start_ns: load.started_ns };
    let panels = [
        ("panel-requests", "1/s", requests(load)),
        ("panel-cpu", "%", cpu(&time, host)),
        ("panel-memory", "MiB", memory(&time)),
        ("panel-swap", "MiB/s", swap(&time)),
        ("panel-pressure", "%", pressure(&time)),
        ("panel-workers", "", workers(&time)),
    ];
    let shown = |(id, points): (&str, Points)| {
        let something = points.iter().any(|(_, value)| value.is_some());
        something.then(|| SeriesView { label: words.say(id, &[]), points: thin(points) })
    };
    panels
        .into_iter()
        .map(|(id, unit, series)| PanelView {
            title: words.say(id, &[]),
            unit,
            series: series.into_iter().filter_map(shown).collect(),
        })
        .filter(|panel| !panel.series.is_empty())
        .collect()
}

type Points = Vec<(f64, Option<f64>)>;

/// A trial's readings on the axis of its load.
struct Time<'a> {
    trial: &'a Trial,
    start_ns: u64,
}

impl Time<'_> {
    fn seconds(&self, at_ns: u64) -> f64 {
        (at_ns as f64 - self.start_ns as f64) / 1e9
    }

    /// A level at every reading.
    fn level(&self, value: impl Fn(&dyn Fn(Column) -> Option<f64>) -> Option<f64>) -> Points {
        let rows = self.trial.readings.rows.iter();
        rows.map(|row| (self.seconds(row.at_ns), value(&|column| row.get(column).map(|v| v as f64)))).collect()
    }

    /// Something derived from each two neighbouring readings, at the later one.
    fn derived(&self, value: impl Fn(&Span<'_>) -> Option<f64>) -> Points {
        let pairs = self.trial.readings.rows.windows(2);
        pairs.map(|pair| (self.seconds(pair[1].at_ns), value(&Span { from: &pair[0], to: &pair[1] }))).collect()
    }

    /// Whether any reading has this column: the group's own is preferred to the host's.
    fn has(&self, column: Column) -> bool {
        self.trial.readings.rows.iter().any(|row| row.get(column).is_some())
    }
}

fn requests(load: &LoadResult) -> Vec<(&'static str, Points)> {
    let rate = |count: fn(&model::load::Counts) -> u64| -> Points {
        let intervals = load.intervals.iter().filter(|interval| interval.length_ns > 0);
        intervals
            .map(|interval| {
                let middle = interval.start_ns as f64 + interval.length_ns as f64 / 2.0 - load.started_ns as f64;
                (middle / 1e9, Some(count(&interval.counts) as f64 * 1e9 / interval.length_ns as f64))
            })
            .collect()
    };
    let mut series = vec![("series-good", rate(|counts| counts.good))];
    if load.counts.failures() > 0 {
        series.push(("series-failed", rate(model::load::Counts::failures)));
    }
    series
}

fn cpu(time: &Time<'_>, host: &HostFacts) -> Vec<(&'static str, Points)> {
    let share = |part: fn(&CpuShares) -> f64| time.derived(|span| span.cpu().map(|cpu| part(&cpu) * 100.0));
    let cpus = f64::from(host.cpus.max(1));
    vec![
        ("series-cpu-busy", share(CpuShares::busy)),
        ("series-cpu-iowait", share(|cpu| cpu.iowait)),
        ("series-cpu-group", time.derived(|span| span.rate(Column::GroupCpuNs).map(|ns| ns / 1e7 / cpus))),
    ]
}

fn memory(time: &Time<'_>) -> Vec<(&'static str, Points)> {
    if time.has(Column::GroupUsage) {
        let bytes = |column| time.level(|get| get(column).map(|bytes| bytes / MEBIBYTE));
        return vec![
            ("series-group-memory", bytes(Column::GroupUsage)),
            ("series-group-swap", bytes(Column::GroupSwap)),
            ("series-group-limit", bytes(Column::GroupLimit)),
        ];
    }
    let difference = |whole, rest| time.level(|get| Some((get(whole)? - get(rest)?) / 1024.0));
    vec![
        ("series-host-memory", difference(Column::MemTotal, Column::MemAvailable)),
        ("series-host-swap", difference(Column::SwapTotal, Column::SwapFree)),
    ]
}

/// What the host moved to swap and back, of a trial in which it did.
fn swap(time: &Time<'_>) -> Vec<(&'static str, Points)> {
    let moved = |column| time.derived(|span| span.rate(column).map(|pages| pages * PAGE / MEBIBYTE));
    let traffic = vec![("series-swap-in", moved(Column::SwapIn)), ("series-swap-out", moved(Column::SwapOut))];
    let some = traffic.iter().flat_map(|(_, points)| points).any(|(_, value)| value.is_some_and(|value| value > 0.0));
    if some { traffic } else { Vec::new() }
}

fn pressure(time: &Time<'_>) -> Vec<(&'static str, Points)> {
    let share = |column| time.derived(|span| span.share_of_time(column).map(|share| share * 100.0));
    if time.has(Column::GroupPsiMemFull) {
        return vec![
            ("series-group-psi-memory", share(Column::GroupPsiMemFull)),
            ("series-group-psi-io", share(Column::GroupPsiIoFull)),
            ("series-group-psi-cpu", share(Column::GroupPsiCpuSome)),
        ];
    }
    vec![
        ("series-host-psi-memory", share(Column::PsiMemFull)),
        ("series-host-psi-io", share(Column::PsiIoFull)),
        ("series-host-psi-cpu", share(Column::PsiCpuSome)),
    ]
}

fn workers(time: &Time<'_>) -> Vec<(&'static str, Points)> {
    let count = |column| time.level(|get| get(column));
    let told = |value: fn(&ServerStatus) -> Option<u64>| -> Points {
        let statuses = time.trial.status.iter();
        statuses.map(|status| (time.seconds(status.at_ns), value(status).map(|value| value as f64))).collect()
    };
    vec![
        ("series-told-busy", told(|status| status.web.as_ref().and_then(WebStatus::busy))),
        ("series-pool-active", told(|status| status.fpm.map(|fpm| fpm.active))),
        ("series-pool-queue", told(|status| status.fpm.and_then(|fpm| fpm.queue))),
        ("series-workers", count(Column::TreeWorkers)),
        ("series-busy-workers", count(Column::TreeBusyWorkers)),
        ("series-accept-queue", count(Column::AcceptQueue)),
    ]
}

/// Averages neighbours until at most [`MOST_POINTS`] are left.
fn thin(points: Points) -> Points {
    let per_point = points.len().div_ceil(MOST_POINTS);
    if per_point < 2 {
        return points;
    }
    points
        .chunks(per_point)
        .map(|chunk| {
            let seconds = chunk.iter().map(|(t, _)| t).sum::<f64>() / chunk.len() as f64;
            let values: Vec<f64> = chunk.iter().filter_map(|(_, value)| *value).collect();
            (seconds, (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64))
        })
        .collect()
}
