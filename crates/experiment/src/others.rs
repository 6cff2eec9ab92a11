//! Who else uses the CPUs: counted while nothing is sent yet, and around what is measured.

use model::check::Running;
use model::others::Others;
use server::{Between, Census};
use std::time::Duration;

/// So long nothing is sent at least, so that clock ticks tell who is at work.
const REST: Duration = Duration::from_millis(100);
/// So long where somebody waits for a minute anyway.
pub(crate) const LONG_REST: Duration = Duration::from_millis(250);

/// A time in which nothing was sent.
pub(crate) struct Calm(Census, Census);

impl Calm {
    /// Looks for a moment.
    pub(crate) fn now() -> Calm {
        Calm::since(Census::take())
    }

    /// From a count until now, and for a moment at least.
    pub(crate) fn since(began: Census) -> Calm {
        Calm::lasting(began, REST)
    }

    /// The same, and for so long at least.
    pub(crate) fn lasting(began: Census, least: Duration) -> Calm {
        std::thread::sleep(least.saturating_sub(began.age()));
        Calm(began, Census::take())
    }

    fn between(&self) -> Between<'_> {
        (&self.0, &self.1)
    }
}

/// What others used in `window`, and in the times without a load. What the trees of `roots` use is the server's.
pub(crate) fn others(calm: &[&Calm], window: &Sent, roots: &[u32]) -> Others {
    let calm: Vec<Between<'_>> = calm.iter().map(|calm| calm.between()).collect();
    let ours: Vec<u32> = roots.iter().copied().chain([std::process::id()]).collect();
    server::others(&calm, (&window.0, &window.1), &ours, host::facts().cpus)
}

/// The first processes of a server that was found running, and of PHP-FPM behind it.
pub(crate) fn roots(running: &Running) -> Vec<u32> {
    running.root.into_iter().chain(running.pools.iter().map(|pool| pool.root)).collect()
}

/// A time in which something was sent.
pub(crate) struct Sent(Census, Census);

impl Sent {
    /// Around some work.
    pub(crate) fn around<T>(work: impl FnOnce() -> T) -> (T, Sent) {
        let from = Census::take();
        let done = work();
        (done, Sent(from, Census::take()))
    }
}
