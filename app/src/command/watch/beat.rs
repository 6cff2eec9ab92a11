//! Which look becomes which row: looks come once a period, rows once a delay, and between two rows the last one may be drawn anew.
//!
//! Knows times and no other numbers. Looks that come between two appointments, as in a storm, are no rows. An appointment that was
//! missed is made up for by the next look, however late: its row tells of all the time since the row before.

use model::reading::{Look, Span};
use model::{Nanos, SECOND};

/// The appointments of a watch, and how far it is.
#[derive(Debug)]
pub(super) struct Beat {
    period_ns: Nanos,
    /// Periods from row to row.
    delay: u64,
    /// The appointment of the last row; without end if `None`.
    last: Option<u64>,
    /// When the first look was due; `None` before it came.
    start_ns: Option<Nanos>,
    /// The appointment that is awaited.
    next: u64,
    /// The appointment at which the row is final.
    next_final: u64,
    /// The next look is the first of another clock, which ticks between the appointments.
    shifted: bool,
    done: bool,
}

/// What a look is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Moment {
    /// The row will not change any more.
    pub(super) fixed: bool,
    /// How long after its appointment it came, in seconds, when that is worth telling.
    pub(super) late_s: Option<f64>,
}

impl Moment {
    /// What is odd about the row that ends with `to`: that it came late, that the machine slept or its clock was set since the row before.
    /// `gap` stands between a number and its unit.
    pub(super) fn marks(self, from: Option<&Look>, to: &Look, gap: &str) -> Vec<String> {
        let late = self.late_s.map(|late| format!("late {late:.1}{gap}s"));
        let span = from.filter(|_| self.fixed).map(|from| Span { from: &from.reading, to: &to.reading });
        late.into_iter().chain(span.map(|span| span.jumps().words(gap)).unwrap_or_default()).collect()
    }
}

/// Later than this is late.
const LATE: Nanos = SECOND / 2;

impl Beat {
    /// Rows every `delay` periods, the first at once and the last at the appointment `last`.
    pub(super) fn new(period_ns: Nanos, delay: u64, last: Option<u64>) -> Beat {
        Beat { period_ns, delay, last, start_ns: None, next: 0, next_final: 0, shifted: false, done: false }
    }

    /// What the look of that instant is, which came so long after it was due; `None` when it is no row.
    pub(super) fn take(&mut self, at_ns: Nanos, late_ns: Nanos) -> Option<Moment> {
        // Where the first look was late, the next ones come sooner than a period after each other.
        let due_ns = at_ns.saturating_sub(late_ns);
        let start = *self.start_ns.get_or_insert(due_ns);
        // The sampler's clock and ours began a few microseconds apart.
        let passed = at_ns.saturating_sub(start) + self.period_ns / 50;
        let appointment = passed / self.period_ns;
        if self.done || appointment < self.next {
            return None;
        }
        let fixed = appointment >= self.next_final;
        let late = at_ns.saturating_sub(start).saturating_sub(self.next_final * self.period_ns);
        let late_s = (fixed && late >= LATE).then_some(late as f64 / SECOND as f64);
        if std::mem::take(&mut self.shifted) {
            self.start_ns = Some(due_ns.saturating_sub(appointment * self.period_ns));
        }
        self.next = appointment + 1;
        if fixed {
            self.next_final = (appointment / self.delay + 1) * self.delay;
        }
        self.done = self.last.is_some_and(|last| appointment >= last);
        Some(Moment { fixed, late_s })
    }

    /// Another sampler goes on: its looks come at times of their own, and are not late for that.
    pub(super) fn shift(&mut self) {
        self.shifted = true;
    }

    /// There are no more rows.
    pub(super) fn is_done(&self) -> bool {
        self.done
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::reading::Column;

    /// Looks at so many milliseconds, and what becomes of each: `.` nothing, `u` an update, `F` a final row, with its lateness.
    fn check(delay: u64, last: Option<u64>, looks: &[u64], expected: &str) {
        let mut beat = Beat::new(SECOND, delay, last);
        let told = looks.iter().map(|at| match beat.take(7 * SECOND + at * 1_000_000, 0) {
            None => ".".to_owned(),
            Some(Moment { fixed: false, .. }) => "u".to_owned(),
            Some(Moment { late_s: None, .. }) => "F".to_owned(),
            Some(Moment { late_s: Some(late), .. }) => format!("F{late:.1}"),
        });
        assert_eq!(told.collect::<Vec<_>>().join(" "), expected);
    }

    #[test]
    fn a_row_a_second() {
        check(1, None, &[0, 1000, 2001, 2999, 4000], "F F F F F");
        check(1, Some(2), &[0, 1000, 2001, 2999, 4000], "F F F . .");
    }

    #[test]
    fn another_sampler_sets_another_clock() {
        let mut beat = Beat::new(SECOND, 1, None);
        let mut late = |at: u64| beat.take(at * SECOND / 10, 0).map(|moment| moment.late_s);
        assert_eq!((late(70), late(80)), (Some(None), Some(None)));
        beat.shift();
        let mut late = |at: u64| beat.take(at * SECOND / 10, 0).map(|moment| moment.late_s);
        assert_eq!((late(97), late(107), late(116), late(117)), (Some(Some(0.7)), Some(None), None, Some(None)));
    }

    #[test]
    fn a_first_look_that_was_late_makes_no_later_one_early() {
        let mut beat = Beat::new(SECOND, 1, None);
        let mut is_row =
            |at_ms: u64, late_ms: u64| beat.take(7 * SECOND + at_ms * 1_000_000, late_ms * 1_000_000).is_some();
        assert!(is_row(300, 300) && is_row(1000, 0) && is_row(2400, 400) && is_row(3000, 0));
        // Neither does that of another sampler.
        beat.shift();
        let mut is_row =
            |at_ms: u64, late_ms: u64| beat.take(7 * SECOND + at_ms * 1_000_000, late_ms * 1_000_000).is_some();
        assert!(is_row(4700, 300) && is_row(5400, 0) && is_row(6800, 400) && is_row(7400, 0));
    }

    #[test]
    fn a_final_row_tells_what_became_of_time() {
        let look = |at_s: u64, boot_s: u64, wall_s: u64| {
            let mut look = Look::empty(at_s * SECOND, 0);
            look.reading.set(Column::BootNs, boot_s * SECOND);
            look.reading.set(Column::WallNs, wall_s * SECOND);
            look
        };
        let (from, to) = (look(1, 1, 1000), look(3, 23, 4622));
        let check = |fixed, from: Option<&Look>, expected: &[&str]| {
            let moment = Moment { fixed, late_s: fixed.then_some(0.96) };
            assert_eq!(moment.marks(from, &to, ""), expected);
        };
        check(true, Some(&from), &["late 1.0s", "suspended 20.0s", "clock set by +3600.0s"]);
        check(true, None, &["late 1.0s"]);
        check(false, Some(&from), &[]);
    }

    #[test]
    fn updates_between_rows() {
        check(3, Some(3), &[0, 1000, 2000, 3000, 4000], "F u u F .");
    }

    #[test]
    fn looks_between_appointments_are_no_rows() {
        check(1, None, &[0, 100, 500, 900, 1000, 1100, 1900, 2000], "F . . . F . . F");
    }

    #[test]
    fn what_is_late_is_told_and_not_lost() {
        check(1, None, &[0, 1000, 2400, 3000], "F F F F");
        check(1, None, &[0, 1000, 2700, 3000], "F F F0.7 F");
        check(1, None, &[0, 1000, 5200, 6000], "F F F3.2 F");
        // The row of the third second comes in the fifth, and the next one is due in the sixth.
        check(3, None, &[0, 1000, 5000, 6000, 7000], "F u F2.0 F u");
        check(1, Some(3), &[0, 5000], "F F4.0");
    }
}
