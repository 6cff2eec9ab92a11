//! Whether memory is short just now, so that readings should come faster.
//!
//! The kernel tells it by a pressure trigger: the descriptor has an event while somebody waited for memory for more than a part
//! of a window. Where there is none, because pressure is not kept or not told to us, the growth of counters tells it a reading
//! later: pages read back from swap, or major faults.

use model::reading::{Column, Reading};
use model::{Nanos, SECOND};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

/// Stall and window in microseconds. The second is for those without privileges, who may only have windows of two seconds.
const TRIGGERS: [&[u8]; 2] = [b"some 150000 1000000\0", b"some 300000 2000000\0"];

/// A trigger's stall, and how long after it was asked for it is not to be believed without that: two windows and a little.
const STALL_US: u64 = 150_000;
const SETTLING: Nanos = 5 * SECOND;

/// Pages read back from swap per second that make a storm.
const SWAP_INS: f64 = 50.0;
/// Major faults per second that make a storm: programs that are started read their files by such faults, too, but not as many.
const MAJOR_FAULTS: f64 = 500.0;

/// How long a storm goes on after the last sign of it.
const CALM: Nanos = 10 * SECOND;

/// Looks out for storms.
pub(crate) struct Lookout {
    trigger: Option<OwnedFd>,
    /// When the trigger was asked for, and how long somebody had waited for memory until then, in microseconds.
    asked: (Nanos, u64),
    /// The counters at the reading before.
    before: Option<Counters>,
    /// When the storm is over, unless there is another sign.
    until: Nanos,
}

#[derive(Clone, Copy)]
struct Counters {
    at: Nanos,
    swap_ins: u64,
    major_faults: u64,
}

impl Lookout {
    /// Asks the kernel for a trigger; without one there is a note, and the counters must be read.
    pub(crate) fn open(proc_root: &Path, notes: &mut Vec<String>) -> Self {
        let path = proc_root.join("pressure/memory");
        let now = crate::appointments::now();
        let trigger = trigger(&path)
            .inspect_err(|error| {
                notes.push(format!(
                    "{} gives no trigger ({error}): a storm is seen by pages read back from swap, a reading later",
                    path.display()
                ));
            })
            .ok();
        let asked = (now, trigger.as_ref().and_then(waited_us).unwrap_or(0));
        Lookout { trigger, asked, before: None, until: 0 }
    }

    /// Takes every event for true from now on.
    #[cfg(test)]
    pub(crate) fn believe(&mut self) {
        (self.trigger, self.asked) = (None, (0, 0));
    }

    /// What has an event when memory is short.
    pub(crate) fn alarm(&self) -> Option<BorrowedFd<'_>> {
        self.trigger.as_ref().map(AsFd::as_fd)
    }

    /// Whether the counters must be among what is read.
    pub(crate) fn needs_counters(&self) -> bool {
        self.trigger.is_none()
    }

    /// The alarm had an event.
    pub(crate) fn alarmed(&mut self, now: Nanos) {
        let waited = self.trigger.as_ref().and_then(waited_us);
        if is_credible(now, waited, self.asked) {
            self.until = now + CALM;
        }
    }

    /// The alarm will have no more events.
    pub(crate) fn deaf(&mut self) {
        self.trigger = None;
    }

    /// Takes a reading into account.
    pub(crate) fn saw(&mut self, row: &Reading) {
        if self.trigger.is_some() {
            return;
        }
        let get = |column| row.get(column);
        let (Some(swap_ins), Some(major_faults)) = (get(Column::SwapIn), get(Column::MajorFaults)) else { return };
        let counters = Counters { at: row.at_ns, swap_ins, major_faults };
        if let Some(before) = self.before.replace(counters)
            && is_storm(before, counters)
        {
            self.until = row.at_ns + CALM;
        }
    }

    /// Whether there is a storm.
    pub(crate) fn storm(&self, now: Nanos) -> bool {
        now < self.until
    }
}

/// Whether an event means what it says. A new trigger counts all that was waited for since the machine was started, and for one more window
/// a part of that: it has an event at once and another one a window later, whatever memory is like (Linux 6.18). Until it has settled, the
/// time waited since it was asked for must be of a storm's size.
fn is_credible(now: Nanos, waited_us: Option<u64>, (asked, before_us): (Nanos, u64)) -> bool {
    let has_settled = now.saturating_sub(asked) >= SETTLING;
    has_settled || waited_us.is_none_or(|us| us.saturating_sub(before_us) >= STALL_US)
}

/// How long somebody waited for memory since the machine was started, microseconds; `None` if the kernel does not tell.
fn waited_us(trigger: &OwnedFd) -> Option<u64> {
    let mut text = [0; 256];
    let length = rustix::io::pread(trigger, &mut text, 0).ok()?;
    let (_, total) = std::str::from_utf8(&text[..length]).ok()?.split_once("total=")?;
    total.split_whitespace().next()?.parse().ok()
}

fn is_storm(from: Counters, to: Counters) -> bool {
    let seconds = to.at.saturating_sub(from.at) as f64 / 1e9;
    let rate = |from: u64, to: u64| to.saturating_sub(from) as f64 / seconds;
    seconds > 0.0
        && (rate(from.swap_ins, to.swap_ins) >= SWAP_INS || rate(from.major_faults, to.major_faults) >= MAJOR_FAULTS)
}

fn trigger(path: &Path) -> Result<OwnedFd, Errno> {
    let mut refused = Errno::INVAL;
    for words in TRIGGERS {
        // A descriptor takes one trigger only.
        let file = rustix::fs::open(path, OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty())?;
        if !is_of_kernel(&file) {
            return Err(Errno::NOTSUP);
        }
        match rustix::io::write(&file, words) {
            Ok(_) => return Ok(file),
            Err(error) => refused = error,
        }
    }
    Err(refused)
}

/// Whether it is a file of the kernel and not one that stands for it in a test, which would be written over.
fn is_of_kernel(file: &OwnedFd) -> bool {
    // The proc file system and both kinds of control groups have no room to speak of.
    rustix::fs::fstatfs(file).is_ok_and(|it| it.f_blocks == 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use testkit::fake_proc::FakeTree;

    fn lookout() -> Lookout {
        Lookout { trigger: None, asked: (0, 0), before: None, until: 0 }
    }

    fn row(at_s: u64, swap_ins: u64, major_faults: u64) -> Reading {
        let mut row = Reading::empty(at_s * SECOND);
        row.set(Column::SwapIn, swap_ins);
        row.set(Column::MajorFaults, major_faults);
        row
    }

    fn check(rows: &[(u64, u64, u64)], expected: &[bool]) {
        let mut lookout = lookout();
        let storms: Vec<_> = rows
            .iter()
            .map(|&(at, swap_ins, faults)| {
                lookout.saw(&row(at, swap_ins, faults));
                lookout.storm(at * SECOND)
            })
            .collect();
        assert_eq!(storms, expected, "{rows:?}");
    }

    #[test]
    fn counters_tell_a_storm_and_its_end() {
        check(&[(1, 1000, 1000), (2, 1010, 1020), (3, 1060, 1020)], &[false, false, true]);
        check(&[(1, 0, 0), (2, 0, 499), (3, 0, 999)], &[false, false, true]);
        check(&[(1, 0, 0), (2, 90, 0), (11, 100, 0), (12, 100, 0)], &[false, true, true, false]);
        // What goes backwards or stands still is none, nor is much over a long time.
        check(&[(1, 900, 900), (2, 0, 0), (2, 90, 0), (100, 900, 900)], &[false, false, false, false]);
    }

    #[test]
    fn without_counters_there_is_none() {
        let mut lookout = lookout();
        lookout.saw(&Reading::empty(SECOND));
        assert!(!lookout.storm(SECOND));
    }

    #[test]
    fn a_new_trigger_is_not_believed_without_a_reason() {
        let asked = (SECOND, 2_375_444_897);
        let check = |at_s: u64, waited: Option<u64>, expected| {
            let waited = waited.map(|more| asked.1 + more);
            assert_eq!(is_credible(at_s * SECOND, waited, asked), expected, "{at_s} s, {waited:?}");
        };
        // As seen on an idle machine: events after 0.3 and 2.3 s, and no more than a millisecond was waited.
        check(1, Some(0), false);
        check(3, Some(1025), false);
        check(3, Some(150_000), true);
        check(6, Some(1025), true);
        check(1, None, true);
    }

    #[test]
    fn an_alarm_is_a_storm() {
        let mut lookout = lookout();
        lookout.alarmed(SECOND);
        assert!(lookout.storm(10 * SECOND) && !lookout.storm(11 * SECOND));
    }

    #[test]
    fn a_refused_trigger_is_noted_and_nothing_is_written() {
        let dir = tempfile::tempdir().unwrap();
        FakeTree::new(dir.path()).file("pressure/memory", "some avg10=0.00");
        let mut notes = Vec::new();
        assert!(Lookout::open(dir.path(), &mut notes).needs_counters());
        let text = std::fs::read_to_string(dir.path().join("pressure/memory")).unwrap();
        assert_eq!((text.as_str(), notes.len()), ("some avg10=0.00", 1), "{notes:?}");
    }
}
