//! One look at what the server's workers hold, near the end of a measured window: while they work, as long as nobody can say that it
//! disturbed more than one moment of it.
//!
//! A load of a given length is looked at when three quarters of it are over; of a given number of requests, at the first second that
//! ends with three quarters of them sent. What ends before that is looked at right afterwards: workers keep most of what they took.

use load::monotonic_ns;
use model::load::LoadInterval;
use model::plan::LoadSpec;
use model::workers::WorkersHeld;
use std::panic::resume_unwind;
use std::path::Path;
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::Duration;

/// The part of a load that lies before the look.
const BEFORE: f64 = 0.75;

/// Calls for the look when enough requests were sent.
#[derive(Debug)]
pub(crate) struct Progress {
    /// `None` when the time decides.
    wanted: Option<u64>,
    sent: u64,
    call: Sender<()>,
}

impl Progress {
    /// Takes note of what happened within one second.
    pub(crate) fn saw(&mut self, interval: &LoadInterval) {
        let Some(wanted) = self.wanted else { return };
        self.sent += interval.counts.good + interval.counts.failures();
        if self.sent as f64 >= wanted as f64 * BEFORE {
            self.wanted = None;
            // Nobody listens any more when the look was had.
            let _ = self.call.send(());
        }
    }
}

/// Does `work`, and looks once at the processes below these roots.
pub(crate) fn beside<T>(
    roots: &[u32],
    spec: &LoadSpec,
    work: impl FnOnce(&mut Progress) -> T,
) -> (T, Option<WorkersHeld>) {
    let (call, called) = channel();
    let after = spec.length_ns().map_or(Duration::MAX, |length| Duration::from_nanos((length as f64 * BEFORE) as u64));
    let mut progress = Progress { wanted: spec.requests, sent: 0, call };
    thread::scope(|scope| {
        let wait_and_look = move || {
            // Time to look, called for, or too late for both: the sender is dropped when the work is done, also by its panic.
            let _ = called.recv_timeout(after);
            look(roots)
        };
        // Without the thread nothing is known of them.
        let looking = thread::Builder::new().name("workers".to_owned()).spawn_scoped(scope, wait_and_look);
        let result = work(&mut progress);
        drop(progress);
        let held = looking.map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic)));
        (result, held.ok().flatten())
    })
}

fn look(roots: &[u32]) -> Option<WorkersHeld> {
    let at_ns = monotonic_ns();
    let (crews, unread) = server::workers_held(Path::new("/proc"), roots);
    let took_ns = monotonic_ns() - at_ns;
    (unread > 0 || !crews.is_empty()).then_some(WorkersHeld { at_ns, took_ns, crews, unread })
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::latency::Latency;
    use model::load::Counts;
    use model::{Nanos, SECOND};

    fn interval(good: u64) -> LoadInterval {
        let counts = Counts { good, ..Counts::default() };
        LoadInterval { start_ns: 0, length_ns: SECOND, counts, total: Latency::new().pack() }
    }

    /// Looks at this process beside a load, whose work is done with its progress; whether the look came before the work's end.
    fn check(requests: Option<u64>, duration_ns: Option<Nanos>, work: impl FnOnce(&mut Progress), during: bool) {
        let spec = LoadSpec { requests, duration_ns, ..LoadSpec::of("l", "/") };
        let (ended, held) = beside(&[std::process::id()], &spec, |progress| {
            work(progress);
            monotonic_ns()
        });
        let held = held.unwrap();
        assert_eq!(held.at_ns < ended, during, "{requests:?} {duration_ns:?}");
        assert_eq!((held.crews.len(), held.crews[0].workers.len(), held.unread), (1, 1, 0));
    }

    #[test]
    fn what_ends_early_is_looked_at_afterwards() {
        let work = |progress: &mut Progress| [50, 20].iter().for_each(|&good| progress.saw(&interval(good)));
        check(Some(100), None, work, false);
        check(None, Some(3600 * SECOND), work, false);
    }

    #[test]
    fn a_look_that_is_called_for_is_had_meanwhile() {
        for (requests, duration_ns) in [(Some(100), None), (Some(100), Some(3600 * SECOND)), (None, Some(4))] {
            let work = |progress: &mut Progress| {
                [70, 5].iter().for_each(|&good| progress.saw(&interval(good)));
                // Nobody hears it, once the look was had.
                while progress.call.send(()).is_ok() {
                    thread::sleep(Duration::from_millis(1));
                }
            };
            check(requests, duration_ns, work, true);
        }
    }
}
