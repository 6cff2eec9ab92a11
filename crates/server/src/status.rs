//! How a running server fares, asked without taking one of the workers that are measured.

use crate::apache::Scoreboard;
use crate::embedded::Count;
use crate::nginx::StubStatus;
use crate::php::FpmStatusSource;
use model::status::{ServerStatus, WebStatus};
use rustix::time::{ClockId, clock_gettime};

/// Everything about one server that can be asked while it is measured.
#[derive(Debug, Default)]
pub struct StatusSource {
    pub(crate) web: Option<WebSource>,
    pub(crate) fpm: Option<FpmStatusSource>,
}

/// Where a web server tells its own.
#[derive(Debug)]
pub(crate) enum WebSource {
    Apache(Scoreboard),
    Nginx(StubStatus),
    Embedded(Count),
}

impl WebSource {
    fn look(&self) -> Option<WebStatus> {
        match self {
            WebSource::Apache(scoreboard) => scoreboard.look(),
            WebSource::Nginx(status) => status.look(),
            WebSource::Embedded(count) => count.look(),
        }
    }
}

impl StatusSource {
    /// Whether there is nobody to ask.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.web.is_none() && self.fpm.is_none()
    }

    /// Asks now.
    #[must_use]
    pub fn look(&self) -> ServerStatus {
        let at_ns = now_ns();
        let web = self.web.as_ref().and_then(WebSource::look);
        let fpm = self.fpm.as_ref().and_then(FpmStatusSource::look);
        ServerStatus { at_ns, took_ns: now_ns().saturating_sub(at_ns), web, fpm }
    }
}

/// The clock of readings and loads.
fn now_ns() -> model::Nanos {
    let now = clock_gettime(ClockId::Monotonic);
    u64::try_from(now.tv_sec).unwrap_or(0) * model::SECOND + u64::try_from(now.tv_nsec).unwrap_or(0)
}
