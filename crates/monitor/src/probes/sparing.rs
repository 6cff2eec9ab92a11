//! Looks that cost more, the more connections the host has.

use super::Probe;
use crate::appointments::clock;
use crate::source::Buffer;
use model::Nanos;
use model::reading::Reading;
use rustix::time::ClockId;

/// So much of the time at most goes into such looks, one part of a hundred, unless [`MOST_PASSED_OVER`] is reached. The kernel walks the table
/// of all its connections for one, those that ended within the last minute among them: a few milliseconds at 5000 new connections a second,
/// for which whoever shares the CPU with the sampler, such as a load, has to wait.
const PART: Nanos = 100;

/// Readings that are passed over at most, so that every third has the columns: a window of a second is to have a look of its own.
const MOST_PASSED_OVER: Nanos = 2;

/// Probes that read together, so that their columns are of one moment, and as often as their own cost allows. Readings between have none of
/// their columns.
pub(super) struct Sparing {
    probes: Vec<Box<dyn Probe>>,
    period_ns: Nanos,
    passes_over: Nanos,
}

impl Sparing {
    pub(super) fn new(probes: Vec<Box<dyn Probe>>, period_ns: Nanos) -> Sparing {
        Sparing { probes, period_ns: period_ns.max(1), passes_over: 0 }
    }

    /// So many readings are passed over after a look that cost so much CPU time.
    fn rests_after(&self, cost_ns: Nanos) -> Nanos {
        (cost_ns.saturating_mul(PART) / self.period_ns).min(MOST_PASSED_OVER)
    }
}

impl Probe for Sparing {
    fn read(&mut self, row: &mut Reading, buffer: &mut Buffer) {
        if self.passes_over > 0 {
            self.passes_over -= 1;
            return;
        }
        let began = clock(ClockId::ThreadCPUTime);
        for probe in &mut self.probes {
            probe.read(row, buffer);
        }
        self.passes_over = self.rests_after(clock(ClockId::ThreadCPUTime).saturating_sub(began));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::reading::Column;

    /// Uses so much CPU time for a column.
    struct Dear(Nanos, Column);

    impl Probe for Dear {
        fn read(&mut self, row: &mut Reading, _: &mut Buffer) {
            let until = clock(ClockId::ThreadCPUTime) + self.0;
            while clock(ClockId::ThreadCPUTime) < until {}
            row.set(self.1, 1);
        }
    }

    /// In which of seven readings each column is.
    fn read(cost_ns: Nanos, period_ns: Nanos) -> [String; 2] {
        let columns = [Column::TcpUnread, Column::BehindQueue];
        let probes = columns.map(|column| Box::new(Dear(cost_ns, column)) as Box<dyn Probe>);
        let mut sparing = Sparing::new(Vec::from(probes), period_ns);
        let rows: Vec<Reading> = std::iter::repeat_with(|| {
            let mut row = Reading::empty(0);
            sparing.read(&mut row, &mut Buffer::new());
            row
        })
        .take(7)
        .collect();
        columns.map(|column| rows.iter().map(|row| if row.get(column).is_some() { '1' } else { '-' }).collect())
    }

    #[test]
    fn what_is_dear_is_read_in_every_third_reading_and_together() {
        assert_eq!(read(5_000_000, 200_000_000), ["1--1--1"; 2]);
        assert_eq!(read(0, u64::MAX), ["1111111"; 2]);
    }

    #[test]
    fn it_is_the_cost_that_counts() {
        let sparing = Sparing::new(Vec::new(), 200_000_000);
        let rests = [0, 1_999_999, 2_000_000, 4_000_000, u64::MAX].map(|cost_ns| sparing.rests_after(cost_ns));
        assert_eq!(rests, [0, 0, 1, 2, 2]);
    }
}
