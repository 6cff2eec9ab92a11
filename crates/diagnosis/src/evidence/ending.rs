//! Processes that end because they have had as many connections as they may.

use super::window::Window;
use model::load::LoadResult;
use model::reading::Column;
use model::trial::Trial;

/// How often they do.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ending {
    /// Connections after which a process ends.
    pub after: f64,
    /// Processes that end in a second: connections per second over that.
    pub rate: f64,
    /// The most worker processes that a reading met. Where each has had its connections before the next reading comes, none is met in a
    /// whole window, and there was one all the same: somebody answered.
    pub most: f64,
    /// The fewest worker processes that were there.
    pub least: f64,
}

impl Ending {
    /// Of an Apache under all loads of a trial; `None` where processes stay, or nothing was measured.
    pub(super) fn of(window: &Window<'_>, trial: &Trial, load: &LoadResult) -> Option<Ending> {
        let after: f64 = trial.settings.values.get("MaxConnectionsPerChild")?.parse().ok()?;
        let connects = trial.beside.iter().map(|beside| &beside.load).chain([load]).map(|load| load.counts.connects);
        let rate = connects.sum::<u64>() as f64 / load.seconds() / after;
        let most = window.most(Column::TreeWorkers)?.max(1.0);
        let least = window.levels(Column::TreeWorkers).min()? as f64;
        (after > 0.0 && rate.is_finite()).then_some(Ending { after, rate, most, least })
    }
}
