//! Looks that cost more, the more connections the host has, and a thread for them where they cost much.
//!
//! The kernel walks the table of all its connections for one, those that ended within the last minute among them: milliseconds at thousands
//! of new connections a second. Whoever shares the CPU with the sampler, such as a load, has to wait for it, as the sampler goes before all
//! others. So after a look that was dear readings are passed over, and where the load has CPUs of its own, a thread that goes
//! behind all others does the next one; the reading after it has what was found. Beside the server it would find what there is when the server
//! is idle. On CPUs that are never idle it comes to little.

use super::shares::thread_time;
use super::{Probe, Probes};
use crate::source::Buffer;
use model::Nanos;
use model::reading::{Column, Reading};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

/// What such looks find.
const COLUMNS: [Column; 4] = [Column::TcpSending, Column::TcpUnread, Column::BehindQueue, Column::BehindAccepted];

/// A look is dear when it takes this part of the period in CPU time or more, one in so many; as many readings are passed over after it, and
/// no more than [`MOST_PASSED_OVER`].
const PART: Nanos = 100;

/// So that at least every third reading has the columns: a window of a second is to have a look of its own.
const MOST_PASSED_OVER: Nanos = 2;

/// Stack of the thread.
const STACK: usize = 128 * 1024;

/// Has these looks done together, so that what they find is of one moment; by a thread, if that is `wanted`.
pub(super) fn open(probes: &mut Probes, looks: Vec<Box<dyn Probe + Send>>, period_ns: Nanos, wanted: bool) {
    if looks.is_empty() {
        return;
    }
    let desk = Desk { looks, buffer: Buffer::new(), found: Reading::empty(0), cost_ns: 0, is_asked: false };
    let shared = Arc::new(Shared { desk: Mutex::new(desk), news: Condvar::new() });
    let theirs = Arc::clone(&shared);
    // It lives as long as the process, which ends by returning from its main function.
    let thread = std::thread::Builder::new().name("connections".to_owned()).stack_size(STACK);
    let has_thread = wanted && thread.spawn(move || theirs.answer()).is_ok();
    probes.add(Aside { shared, has_thread, period_ns: period_ns.max(1), passes_over: 0 });
}

/// Whether a thread behind all others may look. Before Linux 6.9 whoever asks the kernel so holds a lock meanwhile that the sampler needs for
/// its other questions.
pub(super) fn may_be_behind() -> bool {
    is_new(&rustix::system::uname().release().to_string_lossy())
}

fn is_new(release: &str) -> bool {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map_while(|number| number.parse::<u32>().ok());
    numbers.next().zip(numbers.next()).is_some_and(|version| version >= (6, 9))
}

struct Shared {
    /// Whoever looks holds it.
    desk: Mutex<Desk>,
    /// A look is asked for.
    news: Condvar,
}

struct Desk {
    looks: Vec<Box<dyn Probe + Send>>,
    buffer: Buffer,
    /// What the last look found, until it is taken.
    found: Reading,
    /// What the last look cost.
    cost_ns: Nanos,
    is_asked: bool,
}

impl Desk {
    fn look(&mut self) {
        let began = thread_time();
        for probe in &mut self.looks {
            probe.read(&mut self.found, &mut self.buffer);
        }
        self.cost_ns = thread_time().saturating_sub(began);
    }
}

impl Shared {
    fn answer(&self) {
        behind_all_others();
        let mut desk = self.desk.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            desk = self.news.wait_while(desk, |desk| !desk.is_asked).unwrap_or_else(PoisonError::into_inner);
            desk.is_asked = false;
            desk.look();
        }
    }
}

struct Aside {
    shared: Arc<Shared>,
    /// Whether there is a thread that answers.
    has_thread: bool,
    period_ns: Nanos,
    passes_over: Nanos,
}

impl Aside {
    /// So many hundredths of the period a look took: none where it was cheap.
    fn parts(&self, cost_ns: Nanos) -> Nanos {
        cost_ns.saturating_mul(PART) / self.period_ns
    }
}

impl Probe for Aside {
    fn read(&mut self, row: &mut Reading, _: &mut Buffer) {
        // Whoever waits for the thread waits behind all others.
        let Ok(mut desk) = self.shared.desk.try_lock() else { return };
        let dear = self.parts(desk.cost_ns);
        let is_due = self.passes_over == 0 && !desk.is_asked;
        self.passes_over = if is_due { dear.min(MOST_PASSED_OVER) } else { self.passes_over.saturating_sub(1) };
        if is_due && (dear == 0 || !self.has_thread) {
            desk.look();
        }
        for column in COLUMNS {
            if let Some(found) = desk.found.get(column) {
                row.set(column, found);
            }
        }
        desk.found = Reading::empty(0);
        if is_due && dear > 0 && self.has_thread {
            desk.is_asked = true;
            self.shared.news.notify_one();
        }
    }
}

/// Refused, it only is more in a hurry.
fn behind_all_others() {
    let parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: 0 is the calling thread and `parameters` lives until the call returns.
    let _ = unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const parameters) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    /// Uses so much CPU time for a column.
    struct Dear(Nanos, Column);

    impl Probe for Dear {
        fn read(&mut self, row: &mut Reading, _: &mut Buffer) {
            let until = thread_time() + self.0;
            while thread_time() < until {}
            row.set(self.1, 1);
        }
    }

    /// Two looks that cost so much together, with a period of a millisecond.
    fn opened(cost_ns: Nanos, has_thread: bool) -> Probes {
        let mut probes = Probes::none();
        let looks = [Column::TcpUnread, Column::BehindQueue];
        let looks = looks.map(|column| Box::new(Dear(cost_ns / 2, column)) as Box<dyn Probe + Send>);
        open(&mut probes, Vec::from(looks), 1_000_000, has_thread);
        probes
    }

    /// Whether a reading has what both find; never of one alone.
    fn read(probes: &mut Probes) -> bool {
        let mut row = Reading::empty(0);
        probes.others[0].read(&mut row, &mut Buffer::new());
        let has = [Column::TcpUnread, Column::BehindQueue].map(|column| row.get(column).is_some());
        assert_eq!(has[0], has[1]);
        has[0]
    }

    #[test]
    fn what_is_cheap_is_in_every_reading() {
        let mut probes = opened(0, false);
        assert!((0..9).all(|_| read(&mut probes)));
    }

    #[test]
    fn what_is_dear_is_in_one_of_three() {
        let mut probes = opened(100_000, false);
        assert_eq!([(); 7].map(|()| read(&mut probes)), [true, true, false, false, true, false, false]);
    }

    /// The reading that asks has nothing, and one after it has what was found.
    #[test]
    fn what_a_thread_finds_is_in_a_reading_after_it() {
        let mut probes = opened(100_000, true);
        let deadline = Instant::now() + Duration::from_secs(60);
        let (mut found, mut readings) = (0, 0);
        while found < 4 {
            readings += 1;
            found += usize::from(read(&mut probes));
            std::thread::yield_now();
            assert!(Instant::now() < deadline, "{found} of {readings}");
        }
        // The first looks itself; each of the others passes over two.
        assert!(readings > 3 * (found - 2), "{found} of {readings}");
    }

    #[test]
    fn kernels_are_told_by_their_release() {
        let releases = ["6.9.0-rc1", "6.18.44-fc", "7.0", "6.8.12-amd64", "6.1.0-44-amd64", "5.15.0", "unknown"];
        assert_eq!(releases.map(is_new), [true, true, true, false, false, false, false]);
    }

    #[test]
    fn nothing_to_look_at_is_no_probe() {
        let mut probes = Probes::none();
        open(&mut probes, Vec::new(), 1, true);
        assert!(probes.others.is_empty() && probes.notes.is_empty());
    }
}
