//! The readings of the load's window: which they are, and the few ways in which a column is summed up over them.

use super::{Pressure, Whose};
use model::Nanos;
use model::reading::{Column, Reading, Readings, Span};

/// The readings of one window, and those of the whole trial.
pub(super) struct Window<'a> {
    all: &'a [Reading],
    rows: &'a [Reading],
    from_ns: Nanos,
    to_ns: Nanos,
}

impl<'a> Window<'a> {
    /// The readings of the load from `from_ns` to `to_ns`.
    ///
    /// Readings do not come when a load begins or ends. Taken are the intervals between readings that lie mostly inside the load,
    /// so that neither idle time around a short load dilutes it nor a second at its edge is lost; if no interval does, the one
    /// that shares most with it.
    pub(super) fn of(readings: &'a Readings, from_ns: Nanos, to_ns: Nanos) -> Window<'a> {
        let all = readings.rows.as_slice();
        let shared = |pair: &[Reading]| to_ns.min(pair[1].at_ns).saturating_sub(from_ns.max(pair[0].at_ns));
        let mostly = |pair: &[Reading]| shared(pair) > 0 && 2 * shared(pair) >= pair[1].at_ns - pair[0].at_ns;
        let inside = all.windows(2).position(mostly).zip(all.windows(2).rposition(mostly));
        let nearest = || {
            let best = (0..all.len().saturating_sub(1)).max_by_key(|&i| shared(&all[i..i + 2]))?;
            (shared(&all[best..best + 2]) > 0).then_some((best, best))
        };
        let rows = inside.or_else(nearest).map_or(&[][..], |(first, last)| &all[first..last + 2]);
        Window { all, rows, from_ns, to_ns }
    }

    pub(super) fn rows(&self) -> &'a [Reading] {
        self.rows
    }

    /// Seconds between readings in the time of the load; its beginning and its end stand for readings there.
    pub(super) fn between(&self) -> Vec<f64> {
        let inside = self.all.iter().map(|row| row.at_ns).filter(|at| (self.from_ns..self.to_ns).contains(at));
        let instants: Vec<Nanos> = [self.from_ns].into_iter().chain(inside).chain([self.to_ns]).collect();
        instants.windows(2).map(|pair| pair[1].saturating_sub(pair[0]) as f64 / 1e9).collect()
    }

    /// Seconds from one reading to the next, ordinarily: the median over the whole trial, without those that a storm was looked at with
    /// between the appointments.
    pub(super) fn period(&self) -> Option<f64> {
        let due: Vec<Nanos> =
            self.all.iter().filter(|row| row.get(Column::SamplerExtra) != Some(1)).map(|row| row.at_ns).collect();
        let mut gaps: Vec<Nanos> = due.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).collect();
        gaps.sort_unstable();
        gaps.get(gaps.len() / 2).map(|&ns| ns as f64 / 1e9)
    }

    pub(super) fn span(&self) -> Option<Span<'a>> {
        match self.rows {
            [from, .., to] => Some(Span { from, to }),
            _ => None,
        }
    }

    /// Growth of a counter.
    pub(super) fn delta(&self, column: Column) -> Option<u64> {
        self.span()?.delta(column)
    }

    /// Growth of a counter per second.
    pub(super) fn rate(&self, column: Column) -> Option<f64> {
        self.span()?.rate(column)
    }

    /// What part the growth of one counter is of another's; `None` when the other did not grow.
    pub(super) fn part(&self, column: Column, of: Column) -> Option<f64> {
        let (part, all) = (self.delta(column)?, self.delta(of)?);
        (all > 0).then(|| (part as f64 / all as f64).min(1.0))
    }

    /// Growth per second of a level that should only grow; `None` when it fell somewhere, because a part of it left.
    pub(super) fn rise(&self, column: Column) -> Option<f64> {
        // A reading that does not tell it says nothing about a fall.
        let rises = self.rows.iter().filter_map(|row| row.get(column)).is_sorted();
        if rises { self.rate(column) } else { None }
    }

    /// The values of a level while the load was on: those of the readings inside it, else those around it.
    pub(super) fn levels(&self, column: Column) -> impl Iterator<Item = u64> {
        self.levels_of(move |row| row.get(column))
    }

    /// The same of what `of` makes of a reading.
    fn levels_of(&self, of: impl Fn(&Reading) -> Option<u64>) -> impl Iterator<Item = u64> {
        let within = |row: &&Reading| (self.from_ns..=self.to_ns).contains(&row.at_ns);
        let any = self.rows.iter().any(|row| within(&row));
        self.rows.iter().filter(move |row| !any || within(row)).filter_map(of)
    }

    /// The median of a level.
    pub(super) fn median(&self, column: Column) -> Option<f64> {
        self.median_of(|row| row.get(column))
    }

    /// The median of what `of` makes of a reading.
    pub(super) fn median_of(&self, of: impl Fn(&Reading) -> Option<u64>) -> Option<f64> {
        let mut values: Vec<u64> = self.levels_of(of).collect();
        values.sort_unstable();
        let n = values.len();
        (n > 0).then(|| f64::midpoint(values[(n - 1) / 2] as f64, values[n / 2] as f64))
    }

    /// The largest value of a level in the window, its two ends included.
    pub(super) fn most(&self, column: Column) -> Option<f64> {
        self.rows.iter().filter_map(|row| row.get(column)).max().map(|value| value as f64)
    }

    /// The largest value of what `of` makes of a reading, over the window, its two ends included.
    pub(super) fn most_of(&self, of: impl Fn(&Reading) -> Option<f64>) -> Option<f64> {
        self.rows.iter().filter_map(of).reduce(f64::max)
    }

    /// The largest value of a level in the whole trial, warm-up included.
    pub(super) fn most_ever(&self, column: Column) -> Option<f64> {
        self.all.iter().filter_map(|row| row.get(column)).max().map(|value| value as f64)
    }

    /// The smallest value of what `of` makes of a reading, before the load if there is such a reading, else in the whole trial.
    pub(super) fn least_before(&self, of: impl Fn(&Reading) -> Option<f64>) -> Option<f64> {
        let before = self.all.iter().take_while(|row| row.at_ns < self.from_ns).filter_map(&of).reduce(f64::min);
        before.or_else(|| self.all.iter().filter_map(&of).reduce(f64::min))
    }

    /// Share of the intervals in which every one of `columns` grew; `None` when one of them is absent throughout.
    pub(super) fn growing_together(&self, columns: [Column; 2]) -> Option<f64> {
        let grew = |pair: &[Reading]| {
            let span = Span { from: &pair[0], to: &pair[1] };
            columns.iter().map(|&column| Some(span.delta(column)? > 0)).try_fold(true, |all, one| Some(all && one?))
        };
        let known: Vec<bool> = self.rows.windows(2).filter_map(grew).collect();
        (!known.is_empty()).then(|| known.iter().filter(|&&both| both).count() as f64 / known.len() as f64)
    }

    /// Pressure from the group's two columns (some, full), else from the host's.
    pub(super) fn pressure(&self, group: [Column; 2], host: [Column; 2]) -> Option<Pressure> {
        let span = self.span()?;
        let read = |[some, full]: [Column; 2], whose| {
            Some(Pressure { whose, some: span.share_of_time(some)?, full: span.share_of_time(full)? })
        };
        read(group, Whose::Group).or_else(|| read(host, Whose::Host))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::SECOND;

    /// Readings at 0, 1, 2, .. 9 s; the load from and to tenths of seconds; the readings taken and those whose levels count.
    fn check(from_tenths: u64, to_tenths: u64, taken: &[u64], levels: &[u64]) {
        let row = |second: u64| {
            let mut row = Reading::empty(second * SECOND);
            row.set(Column::Load1, second);
            row
        };
        let readings = Readings { rows: (0..10).map(row).collect(), notes: vec![] };
        let window = Window::of(&readings, from_tenths * SECOND / 10, to_tenths * SECOND / 10);
        let at: Vec<u64> = window.rows().iter().map(|row| row.at_ns / SECOND).collect();
        assert_eq!(at, taken);
        assert_eq!(window.levels(Column::Load1).collect::<Vec<_>>(), levels);
    }

    #[test]
    fn intervals_that_are_mostly_load() {
        check(20, 50, &[2, 3, 4, 5], &[2, 3, 4, 5]);
        check(24, 56, &[2, 3, 4, 5, 6], &[3, 4, 5]);
        check(26, 54, &[3, 4, 5], &[3, 4, 5]);
        check(9, 21, &[1, 2], &[1, 2]);
        check(0, 95, &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9], &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    }

    #[test]
    fn shorter_than_an_interval() {
        check(12, 14, &[1, 2], &[1, 2]);
        check(16, 23, &[1, 2], &[2]);
        check(100, 120, &[], &[]);
        check(30, 30, &[], &[]);
    }
}
