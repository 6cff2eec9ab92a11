//! Which parts of a screen there is room for, and how much each gets: what matters most last gives way.

/// What a part of the screen takes, in rows.
#[derive(Debug, Clone, Copy)]
pub(super) struct Room {
    /// The lower, the more it matters.
    pub(super) rank: u8,
    /// Whether others are left out rather than this one.
    pub(super) needed: bool,
    /// Whether it is good for something between the numbers below.
    pub(super) elastic: bool,
    /// With fewer it cannot be shown.
    pub(super) least: u16,
    /// With so many it is shown well.
    pub(super) good: u16,
    /// It has no use for more.
    pub(super) most: u16,
}

/// Rows for each part, in their order; none for those that are left out.
pub(super) fn fit(rooms: &[Room], height: u16) -> Vec<u16> {
    let mut order: Vec<usize> = (0..rooms.len()).collect();
    order.sort_by_key(|&index| rooms[index].rank);
    let (mut rows, mut left) = (vec![0; rooms.len()], height);
    // More rows for a part: up to so many, or none when it must have all of them. Whether it has any then.
    let mut give = |index: usize, up_to: u16, all: bool| {
        let more = up_to.saturating_sub(rows[index]);
        let given = if all && more > left { 0 } else { more.min(left) };
        rows[index] += given;
        left -= given;
        rows[index] > 0
    };
    let (needed, others): (Vec<usize>, Vec<usize>) = order.iter().partition(|&&index| rooms[index].needed);
    let shown: Vec<usize> = needed.iter().copied().filter(|&index| give(index, rooms[index].least, true)).collect();
    for &index in &shown {
        give(index, rooms[index].good, !rooms[index].elastic);
    }
    // What is left over by something more important is not for the rest.
    for &index in others.iter().filter(|_| shown.len() == needed.len()) {
        if give(index, rooms[index].least, true) {
            give(index, rooms[index].good, !rooms[index].elastic);
        }
    }
    for index in order {
        if give(index, 0, true) {
            give(index, rooms[index].most, !rooms[index].elastic);
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: Room = Room { rank: 0, needed: true, elastic: true, least: 3, good: 6, most: 11 };
    const TIMES: Room = Room { rank: 1, needed: true, elastic: false, least: 3, good: 7, most: 7 };
    const BARS: Room = Room { rank: 2, needed: false, elastic: true, least: 11, good: 11, most: 11 };
    const NOTES: Room = Room { rank: 3, needed: false, elastic: true, least: 2, good: 4, most: 4 };

    #[track_caller]
    fn check(height: u16, expected: [u16; 4]) {
        assert_eq!(fit(&[RATE, TIMES, BARS, NOTES], height), expected, "{height} rows");
    }

    #[test]
    fn what_matters_least_gives_way() {
        check(0, [0, 0, 0, 0]);
        check(2, [0, 0, 0, 0]);
        check(5, [5, 0, 0, 0]);
        check(7, [4, 3, 0, 0]);
        check(11, [6, 3, 0, 2]);
        check(13, [6, 7, 0, 0]);
        check(14, [7, 7, 0, 0]);
        check(15, [6, 7, 0, 2]);
        check(24, [6, 7, 11, 0]);
        check(26, [6, 7, 11, 2]);
        check(40, [11, 7, 11, 4]);
    }
}
