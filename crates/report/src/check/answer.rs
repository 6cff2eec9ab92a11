//! What a server takes: the windows at the fewest connections that bring nearly as much as any, put together.

use diagnosis::check::windows;
use model::latency::Latency;
use model::load::{LoadResult, Quantile, Unanswered, percentile_of};
use model::run::Run;
use model::statistic::Statistic;
use serde::Serialize;

/// The name of the cell that the answer rests on.
const HOLD: &str = "hold";
/// Of the intervals that are made this way so many hold the mean.
const CONFIDENCE: f64 = 0.95;

/// What it takes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Answer {
    /// Requests at once.
    pub connections: u32,
    /// Good answers per second, geometric mean over the windows; where one had no answer at all, their plain mean.
    pub good_per_s: f64,
    /// Where the mean lies with 95 % confidence (t on the logarithms of the windows); `None` of a single window, and where one had no
    /// answer.
    pub low: Option<f64>,
    /// The other end.
    pub high: Option<f64>,
    /// Half of the answers took no longer.
    pub p50_us: Option<u64>,
    /// 99 of 100 took no longer; `None` when there are too few answers to tell.
    pub p99_us: Option<u64>,
    /// How many windows there were.
    pub windows: u32,
    /// How many of them had no answer at all.
    pub silent: u32,
}

impl Answer {
    /// `None` when nothing was answered.
    pub(super) fn of(run: &Run) -> Option<Answer> {
        let all: Vec<&LoadResult> = windows(run, HOLD).map(|(_, load)| load).collect();
        let loads: Vec<&LoadResult> = all.iter().copied().filter(|load| load.goodput() > 0.0).collect();
        let silent = all.len() - loads.len();
        let logs: Vec<f64> = loads.iter().map(|load| load.goodput().ln()).collect();
        let summary = stats::summarize(&logs).ok()?;
        let freedom = u32::try_from(logs.len().saturating_sub(1)).unwrap_or(u32::MAX);
        // Leaving out those that stood still would praise it by what is left.
        let mean = if silent == 0 {
            summary.mean.exp()
        } else {
            loads.iter().map(|load| load.goodput()).sum::<f64>() / all.len() as f64
        };
        let half = summary
            .sd
            .filter(|_| silent == 0)
            .map(|sd| stats::t_quantile(1.0 - (1.0 - CONFIDENCE) / 2.0, freedom) * sd / (logs.len() as f64).sqrt());
        let (mut total, mut unanswered) = (Latency::new(), Unanswered::default());
        for load in &all {
            total.merge(&load.total);
            unanswered.merge(&load.unanswered);
        }
        let percentile = |percent: f64| match percentile_of(&total, &unanswered.latency, percent)? {
            Quantile::Exactly(us) if total.len() >= Statistic::Percentile(percent).needs() => Some(us),
            _ => None,
        };
        Some(Answer {
            connections: loads.first()?.connections,
            good_per_s: mean,
            low: half.map(|half| (summary.mean - half).exp()),
            high: half.map(|half| (summary.mean + half).exp()),
            p50_us: percentile(50.0),
            p99_us: percentile(99.0),
            windows: u32::try_from(all.len()).unwrap_or(u32::MAX),
            silent: u32::try_from(silent).unwrap_or(u32::MAX),
        })
    }
}
