//! Traffic in a trial's window that was not the load's: what the server says it served, or who was at its door, against what was sent.
//!
//! Whatever the load may have caused counts as the load's, so that what is left is somebody else's for certain: requests without an
//! answer, those sent twice, those that the warm-up left behind, and those by which the server was asked how it fares.

use crate::SECOND;
use crate::load::LoadResult;
use crate::status::{Around, ServerStatus};
use crate::trial::Trial;

/// Less than this share of the window's traffic is no doubt about it.
const SHARE: f64 = 0.01;
/// Nor are fewer requests than these: somebody looked at the page, or a monitor asked whether it is there.
const LEAST_REQUESTS: u64 = 10;
/// Nor is a connection that was seen less often.
const LEAST_SEEN: u64 = 3;

/// Somebody else's traffic in a window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Foreign {
    /// The server served more requests than the load can have caused.
    Requests {
        /// What it says it served.
        served: u64,
        /// Requests of the load, whether they were answered or not.
        ours: u64,
        /// Requests that were others', at least.
        others: u64,
    },
    /// Others had connections on which something moved.
    Connections {
        /// How many at once, the mean.
        others: f64,
        /// Connections of the load.
        ours: u32,
    },
}

impl Foreign {
    /// How many for each one of ours.
    #[must_use]
    pub fn weight(&self) -> f64 {
        match *self {
            Foreign::Requests { ours, others, .. } => others as f64 / ours.max(1) as f64,
            Foreign::Connections { others, ours } => others / f64::from(ours.max(1)),
        }
    }
}

impl Trial {
    /// Others' traffic in the measured window, when there was enough to doubt the trial; `None` too where nobody counted.
    #[must_use]
    pub fn foreign(&self) -> Option<Foreign> {
        let load = self.load.as_ref()?;
        let requests = self.around.as_ref().and_then(|around| self.requests_of_others(around, load));
        requests.or_else(|| self.connections_of_others(load))
    }

    /// The load, and those beside it.
    fn loads<'a>(&'a self, load: &'a LoadResult) -> impl Iterator<Item = &'a LoadResult> {
        std::iter::once(load).chain(self.beside.iter().map(|beside| &beside.load))
    }

    fn requests_of_others(&self, around: &Around, load: &LoadResult) -> Option<Foreign> {
        let ours = self.loads(load).map(LoadResult::sent).sum::<u64>();
        let looks = self.status.iter().filter(|look| (around.before.at_ns..=around.after.at_ns).contains(&look.at_ns));
        // A look that was given up may have been answered later, and prefork wakes an idle child by a request of its own once a second.
        let seconds = (load.ended_ns.saturating_sub(load.started_ns)).div_ceil(SECOND);
        let caused = ours
            + self.loads(load).map(|load| load.counts.retries).sum::<u64>()
            + around.left
            + looks.count() as u64
            + 2 * seconds
            + 2;
        let requests = |served: u64| Foreign::Requests { served, ours, others: served.saturating_sub(caused) };
        let is_much = |found: &Foreign| {
            let Foreign::Requests { served, others, .. } = *found else { return false };
            others >= LEAST_REQUESTS && others as f64 >= SHARE * served as f64
        };
        // PHP's processes may be asked by others than this server.
        let counts = [grown(around, served_by_web), grown(around, |look| Some(look.fpm?.accepted))];
        let most = counts.into_iter().flatten().max()?;
        Some(requests(most)).filter(is_much)
    }

    fn connections_of_others(&self, load: &LoadResult) -> Option<Foreign> {
        let door = self.door.filter(|door| door.active >= LEAST_SEEN)?;
        let others = door.active as f64 / door.looks.max(1) as f64;
        let ours = self.loads(load).map(|load| load.connections).sum();
        (others >= SHARE * f64::from(ours)).then_some(Foreign::Connections { others, ours })
    }
}

fn served_by_web(look: &ServerStatus) -> Option<u64> {
    look.web.as_ref()?.served()
}

/// By how much a count grew between the two looks.
fn grown(around: &Around, count: impl Fn(&ServerStatus) -> Option<u64>) -> Option<u64> {
    count(&around.after)?.checked_sub(count(&around.before)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::Door;
    use crate::status::{FpmStatus, WebStatus};

    /// A trial of ten seconds with so many good answers and requests in flight at the end, and nothing known of the server.
    fn trial(good: u64, in_flight: u64) -> Trial {
        serde_json::from_value(serde_json::json!({
            "block": 0, "position": 0, "cell": "c", "outcome": {"kind": "complete"}, "began_ns": 0,
            "settings": {"server": "", "values": {}, "worker_limit": null}, "notes": [], "log_tail": "",
            "load": {
                "connections": 100, "started_ns": SECOND, "ended_ns": 11 * SECOND, "end": "duration", "in_flight": in_flight,
                "counts": {"good": good, "failed": {}, "statuses": {}, "bytes_in": 0, "bytes_out": 0, "connects": 100},
                "in_flight_ns": 0, "body_bytes": null, "examples": {},
                "generator": {"threads": 1, "cpu_ns": 0, "cpus": []},
            },
        }))
        .unwrap()
    }

    fn apache(at_ns: u64, served: u64) -> ServerStatus {
        let web = Some(WebStatus::Apache { places: [('_', 5)].into(), served: Some(served) });
        ServerStatus { at_ns, web, ..ServerStatus::default() }
    }

    /// How many requests were others', when a server counted so many while 10,000 were sent.
    fn check(before: u64, after: u64, left: u64, expected: Option<u64>) {
        let around = Around { before: apache(SECOND, before), after: apache(11 * SECOND, after), left };
        let trial = Trial { around: Some(around), ..trial(9_900, 100) };
        let others = trial.foreign().map(|found| match found {
            Foreign::Requests { others, ours: 10_000, .. } => others,
            other => panic!("{other:?}"),
        });
        assert_eq!(others, expected, "{before} {after} {left}");
    }

    #[test]
    fn what_the_load_can_have_caused_is_nobody_elses() {
        check(5, 10_005, 0, None);
        // Two in each second are the server's own, and two more are ours.
        check(5, 10_027, 0, None);
        // Less than a hundredth.
        check(5, 10_027 + 99, 0, None);
        check(5, 10_027 + 105, 0, Some(105));
        // The warm-up may have left some.
        check(5, 10_027 + 105, 100, None);
        check(5, 20_027, 100, Some(9_900));
        // ExtendedStatus is off; or the server was started again.
        check(0, 0, 0, None);
        check(50_000, 10, 0, None);
    }

    #[test]
    fn phps_processes_are_asked_by_others_too() {
        let look = |at_ns, accepted| {
            let fpm = Some(FpmStatus { accepted, ..FpmStatus::default() });
            ServerStatus { fpm, ..apache(at_ns, accepted.min(10_000) + 1) }
        };
        let around = Around { before: look(SECOND, 0), after: look(11 * SECOND, 12_022), left: 0 };
        let trial = Trial { around: Some(around), ..trial(10_000, 0) };
        assert_eq!(trial.foreign(), Some(Foreign::Requests { served: 12_022, ours: 10_000, others: 2_000 }));
    }

    #[test]
    fn nobody_is_doubted_for_one_look_at_the_page() {
        let seen = |looks, active| {
            let door = Some(Door { others: 1, looks, active, ..Door::default() });
            Trial { door, ..trial(10_000, 0) }.foreign()
        };
        assert_eq!(seen(50, 2), None);
        assert_eq!(seen(50, 49), None);
        assert_eq!(seen(50, 50), Some(Foreign::Connections { others: 1.0, ours: 100 }));
        assert_eq!(trial(10_000, 0).foreign(), None);
    }
}
