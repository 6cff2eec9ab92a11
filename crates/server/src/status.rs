//! How a running server fares, asked without taking one of the workers that are measured.

use crate::php::FpmStatusSource;
use model::status::ServerStatus;
use rustix::time::{ClockId, clock_gettime};

/// Everything about one server that can be asked while it is measured.
#[derive(Debug, Default)]
pub struct StatusSource {
    pub(crate) fpm: Option<FpmStatusSource>,
}

impl StatusSource {
    /// Whether there is nobody to ask.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.fpm.is_none()
    }

    /// Asks now.
    #[must_use]
    pub fn look(&self) -> ServerStatus {
        let at_ns = now_ns();
        let fpm = self.fpm.as_ref().and_then(FpmStatusSource::look);
        ServerStatus { at_ns, took_ns: now_ns().saturating_sub(at_ns), web: None, fpm }
    }
}

/// The clock of readings and loads.
fn now_ns() -> model::Nanos {
    let now = clock_gettime(ClockId::Monotonic);
    u64::try_from(now.tv_sec).unwrap_or(0) * model::SECOND + u64::try_from(now.tv_nsec).unwrap_or(0)
}
