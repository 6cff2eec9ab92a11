//! The numbers by which cells are compared: one per trial, larger than 0, or none.

use model::load::{LoadResult, Quantile};
use model::reading::{Column, Reading, Span};
use model::statistic::Statistic;
use model::trial::Trial;
use stats::Better;

/// One number of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Metric {
    /// Good answers per second.
    Goodput,
    /// Median latency, microseconds.
    Median,
    /// Latency that 99 % stay below, microseconds; only where the trial has answers enough for it.
    P99,
    /// CPU time of the server per good answer, microseconds.
    CpuPerAnswer,
    /// The most memory the server used of its own at any reading, swapped memory included, bytes.
    MemoryPeak,
}

impl Metric {
    /// Every metric, the one that plans are decided by first.
    pub const ALL: [Metric; 5] =
        [Metric::Goodput, Metric::Median, Metric::P99, Metric::CpuPerAnswer, Metric::MemoryPeak];

    /// Its name in reports for programs, and the end of the ids of its sentences.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Metric::Goodput => "goodput",
            Metric::Median => "p50",
            Metric::P99 => "p99",
            Metric::CpuPerAnswer => "cpu-per-answer",
            Metric::MemoryPeak => "memory-peak",
        }
    }

    /// Which direction is an improvement.
    #[must_use]
    pub fn better(self) -> Better {
        match self {
            Metric::Goodput => Better::Higher,
            Metric::Median | Metric::P99 | Metric::CpuPerAnswer | Metric::MemoryPeak => Better::Lower,
        }
    }

    /// How far a number may be from the true one by the way it is kept, as a share: latencies are in whole microseconds of three digits
    /// at least.
    pub(crate) fn grain(self, number: f64) -> f64 {
        match self {
            Metric::Median | Metric::P99 => (1.0 / number).max(0.001),
            Metric::Goodput | Metric::CpuPerAnswer | Metric::MemoryPeak => 0.0,
        }
    }

    /// The number of a trial; `None` where there is none, or where it is known only to be more than something.
    #[must_use]
    pub fn of(self, trial: &Trial, load: &LoadResult) -> Option<f64> {
        let number = match self {
            Metric::Goodput => load.goodput(),
            Metric::Median => percentile(load, 50.0)?,
            Metric::P99 => percentile(load, 99.0)?,
            Metric::CpuPerAnswer => cpu_us_per_second(window(trial, load)?)? / load.goodput(),
            Metric::MemoryPeak => trial.readings.rows.iter().filter_map(memory).max()? as f64,
        };
        (number.is_finite() && number > 0.0).then_some(number)
    }
}

fn percentile(load: &LoadResult, percent: f64) -> Option<f64> {
    let count = load.total.len() + load.unanswered.latency.len();
    match load.percentile(percent).filter(|_| count >= Statistic::Percentile(percent).needs())? {
        Quantile::Exactly(us) => Some(us as f64),
        Quantile::MoreThan(_) => None,
    }
}

/// The widest span of readings within the measured window.
fn window<'a>(trial: &'a Trial, load: &LoadResult) -> Option<Span<'a>> {
    let within = |row: &&Reading| (load.started_ns..=load.ended_ns).contains(&row.at_ns);
    let from = trial.readings.rows.iter().find(within)?;
    let to = trial.readings.rows.iter().rev().find(within)?;
    (from.at_ns < to.at_ns).then_some(Span { from, to })
}

/// CPU time that the server's group uses in a second, and what stands behind it outside of that, microseconds; of its processes where it has
/// no group. Readings of before 2026-11-23 have
/// the latter in whole ticks of 10 ms only.
fn cpu_us_per_second(span: Span<'_>) -> Option<f64> {
    let of = |column, to_us: f64| span.rate(column).map(|rate| rate * to_us);
    let of_tree = || of(Column::TreeCpuNs, 1e-3).or_else(|| of(Column::TreeCpuTicks, 1e4));
    let behind = || of(Column::TreeBehindCpuNs, 1e-3).unwrap_or(0.0);
    of(Column::GroupCpuNs, 1e-3).map(|group| group + behind()).or_else(of_tree)
}

/// Memory of the server's own: that of its group, or else what its processes have resident.
fn memory(row: &Reading) -> Option<u64> {
    match row.get(Column::GroupAnon) {
        Some(anon) => Some(anon + row.get(Column::GroupSwap).unwrap_or(0)),
        None => row.get(Column::TreeRss),
    }
}
