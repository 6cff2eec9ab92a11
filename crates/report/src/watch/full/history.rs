//! Looks as columns of a chart. A column is a piece of time; a rate in it is that of all the time between the last look before
//! the column and the last look in it, so that no time is left out, however late a look came.

use model::Nanos;
use model::reading::{Look, Span};

/// The value of each column, the newest last and `count` at most; `value` is what two looks say. A look that came late tells of all
/// columns since the look before.
pub(super) fn columns<T: Copy>(
    looks: &[Look],
    column_ns: Nanos,
    count: usize,
    value: impl Fn(&Span<'_>) -> Option<T>,
) -> Vec<Option<T>> {
    let Some(last) = looks.last() else { return Vec::new() };
    let column_ns = column_ns.max(1);
    // Columns begin at whole multiples of their length, so that a chart moves by whole columns only.
    let newest = last.at_ns() / column_ns;
    let oldest = newest.saturating_sub(count as u64 - 1);
    let mut columns = vec![None; (newest - oldest + 1) as usize];
    let mut before: Option<&Look> = None;
    let mut rest = looks;
    while let Some(first) = rest.first() {
        let column = first.at_ns() / column_ns;
        let length = rest.iter().take_while(|look| look.at_ns() / column_ns == column).count();
        let (here, later) = rest.split_at(length);
        rest = later;
        let (from, to) = (before.or(here.first()), here.last());
        let since = before.map_or(column, |look| look.at_ns() / column_ns + 1);
        before = to;
        let (Some(from), Some(to)) = (from, to) else { continue };
        if column < oldest {
            continue;
        }
        let found = value(&Span { from: &from.reading, to: &to.reading });
        for at in since.clamp(oldest, column)..=column {
            columns[(at - oldest) as usize] = found;
        }
    }
    // Nothing before the first look.
    let begin = looks.first().map_or(0, |look| (look.at_ns() / column_ns).saturating_sub(oldest) as usize);
    columns.split_off(begin.min(columns.len()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::SECOND;
    use model::reading::Column;

    /// Looks at these seconds, of a counter that has this value; columns of so many seconds.
    fn check(looks: &[(u64, u64)], seconds: u64, count: usize, expected: &str) {
        let look = |&(at, value): &(u64, u64)| {
            let mut look = Look::empty(at * SECOND, 0);
            look.reading.set(Column::Forks, value);
            look
        };
        let looks: Vec<Look> = looks.iter().map(look).collect();
        let found = columns(&looks, seconds * SECOND, count, |span| span.rate(Column::Forks));
        let text = |value: &Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.1}"));
        assert_eq!(found.iter().map(text).collect::<Vec<_>>().join(" "), expected);
    }

    #[test]
    fn a_column_is_a_piece_of_time() {
        check(&[], 1, 9, "");
        check(&[(10, 0)], 1, 9, "-");
        check(&[(10, 0), (11, 5), (12, 6)], 1, 9, "- 5.0 1.0");
        check(&[(10, 0), (11, 5), (12, 6)], 1, 2, "5.0 1.0");
        check(&[(10, 0), (11, 5), (12, 6), (13, 8), (14, 12)], 2, 9, "5.0 1.5 4.0");
    }

    #[test]
    fn a_late_look_tells_of_all_the_time_since() {
        check(&[(10, 0), (11, 4), (15, 12), (16, 12)], 1, 9, "- 4.0 2.0 2.0 2.0 2.0 0.0");
        check(&[(10, 0), (11, 4), (15, 12), (16, 12)], 1, 3, "2.0 2.0 0.0");
        check(&[(10, 0), (3000, 2990)], 1, 4, "1.0 1.0 1.0 1.0");
    }
}
