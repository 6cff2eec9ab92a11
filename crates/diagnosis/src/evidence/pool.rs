//! What servers tell of themselves beside the readings: workers at work, and PHP's processes with who waits for them.

use crate::number::{Numbers, Quantity};
use crate::thresholds::{HELD_PART, NEAR_LIMIT};
use model::load::LoadResult;
use model::status::{FpmStatus, ServerStatus, WebStatus};
use model::trial::{EffectiveSettings, Trial};

/// PHP-FPM's pool.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pool {
    /// The most processes it may have.
    pub limit: Option<f64>,
    /// Processes that worked, median.
    pub active: f64,
    /// Processes that did not, median.
    pub idle: f64,
    /// Requests that waited for one, median.
    pub queue: Option<f64>,
    /// How often in the trial it wanted more processes than it may have.
    pub reached: u64,
}

impl Pool {
    /// What the pool told in a load; `None` when nothing was told in it.
    pub(super) fn of(trial: &Trial, load: &LoadResult) -> Option<Pool> {
        let told: Vec<&FpmStatus> = during(trial, load).filter_map(|status| status.fpm.as_ref()).collect();
        let first = trial.status.iter().find_map(|status| status.fpm.as_ref())?;
        let queues: Vec<u64> = told.iter().filter_map(|fpm| fpm.queue).collect();
        Some(Pool {
            limit: limit(&trial.settings),
            active: median(told.iter().map(|fpm| fpm.active).collect())?,
            idle: median(told.iter().map(|fpm| fpm.idle).collect())?,
            queue: median(queues),
            reached: told.last()?.limit_reached.saturating_sub(first.limit_reached),
        })
    }

    /// Whether all processes that there may be worked, or requests waited for one and there could hardly be more. Of a few at work a look
    /// meets now and then who has just come.
    #[must_use]
    pub fn is_full(&self) -> bool {
        let all = self.limit.is_some_and(|limit| self.active >= limit);
        all || self.waits() && !self.has_room()
    }

    /// Whether it is still to begin others: requests wait, all that are there work, and it never wanted more than it may have.
    #[must_use]
    pub fn is_starting(&self) -> bool {
        self.waits() && self.has_room() && self.idle < 1.0
    }

    fn waits(&self) -> bool {
        self.queue.is_some_and(|queue| queue >= 1.0)
    }

    fn has_room(&self) -> bool {
        self.reached == 0 && self.limit.is_some_and(|limit| self.active < NEAR_LIMIT * limit)
    }

    /// Its numbers, for a finding.
    #[must_use]
    pub fn numbers(&self) -> Numbers {
        Numbers::default()
            .with(Quantity::PoolLimit, self.limit)
            .with(Quantity::PoolActive, self.active)
            .with(Quantity::PoolQueue, self.queue)
            .with(Quantity::PoolLimitReached, Some(self.reached as f64).filter(|_| self.reached > 0))
    }
}

/// Workers of Apache that a request or a kept connection occupied, median of what its scoreboard showed in a load; of threads as of
/// processes.
pub(super) fn occupied(trial: &Trial, load: &LoadResult) -> Option<f64> {
    let of_apache = |status: &ServerStatus| match &status.web {
        Some(web @ WebStatus::Apache { .. }) => web.busy().map(|busy| busy + web.kept()),
        _ => None,
    };
    median(during(trial, load).filter_map(of_apache).collect())
}

/// Workers of Apache that would take a request at once, the same way.
pub(super) fn ready(trial: &Trial, load: &LoadResult) -> Option<f64> {
    median(during(trial, load).filter_map(|status| status.web.as_ref()?.ready()).collect())
}

/// When all of so many workers were occupied, a good part of them by kept connections.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shut {
    /// Looks at which that was so, of all, 0 to 1.
    pub part: f64,
    /// Workers that only kept a connection open then, median.
    pub kept: f64,
}

/// The same of a load; `None` where it was so at no look, and of an Apache whose kept connections hold none.
pub(super) fn shut(trial: &Trial, load: &LoadResult, limit: f64) -> Option<Shut> {
    let holds = trial.settings.values.get("MPM").is_some_and(|mpm| mpm == "prefork" || mpm == "worker");
    let of_apache = |status: &ServerStatus| match &status.web {
        Some(web @ WebStatus::Apache { .. }) => Some((web.kept(), web.busy()?)),
        _ => None,
    };
    let looks: Vec<(u64, u64)> = during(trial, load).filter_map(of_apache).filter(|_| holds).collect();
    let is_shut = |&(kept, busy): &(u64, u64)| kept as f64 >= HELD_PART * limit && (busy + kept) as f64 >= limit;
    let shut: Vec<u64> = looks.iter().copied().filter(is_shut).map(|(kept, _)| kept).collect();
    let part = shut.len() as f64 / looks.len() as f64;
    Some(Shut { part, kept: median(shut)? })
}

fn during<'a>(trial: &'a Trial, load: &LoadResult) -> impl Iterator<Item = &'a ServerStatus> + use<'a> {
    let window = load.started_ns..=load.ended_ns;
    trial.status.iter().filter(move |status| window.contains(&status.at_ns))
}

fn limit(settings: &EffectiveSettings) -> Option<f64> {
    settings.values.get("pm.max_children")?.parse().ok()
}

fn median(mut values: Vec<u64>) -> Option<f64> {
    values.sort_unstable();
    let n = values.len();
    (n > 0).then(|| f64::midpoint(values[(n - 1) / 2] as f64, values[n / 2] as f64))
}
