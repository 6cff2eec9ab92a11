//! Who had which request when, and what of a process's or a thread's accounts is therefore whose.

use super::log::{Behind, Line};
use model::Nanos;
use model::accounts::Delays;
use std::collections::{BTreeMap, VecDeque};

/// PHP-FPM tells the second of an end.
const SECOND_NS: i64 = 1_000_000_000;
/// By how much the ends of two logs' lines may lie apart.
const SLACK_NS: i64 = 1_000_000;

/// A time in which a process, or one thread of it, had a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stay {
    /// The kernel's number of the process or the thread.
    pub(super) task: u32,
    /// Whether it is the server's, and not PHP-FPM's behind it.
    pub(super) is_front: bool,
    pub(super) from: i64,
    pub(super) to: i64,
}

/// For each line who had its request: `front` of the server, before and unless a process of PHP-FPM had it. Where `front` does not know,
/// nobody does.
pub(super) fn stays(lines: &[Line], behind: &[Behind], front: impl Fn(&Line) -> Option<u32>) -> Vec<Vec<Stay>> {
    let behind = by_line(lines, behind);
    let of = |(line, behind): (&Line, Option<&Behind>)| {
        let (begin, end) = (line.begin_ns, line.end_ns());
        // Its clock stops when the script has run, which is soon followed by the end of the server's. One that has answered before is
        // cut.
        let split = behind.map_or(end, |behind| end.saturating_sub_unsigned(behind.own_ns).max(begin));
        let front = front(line).map(|task| Stay { task, is_front: true, from: begin, to: split });
        let behind = behind.map(|behind| Stay { task: behind.pid, is_front: false, from: split, to: end });
        front.into_iter().chain(behind).collect()
    };
    lines.iter().zip(behind).map(of).collect()
}

/// For each line that was passed on PHP-FPM's of the same request: those of a client's port are in the same order, one after the other, but
/// for what one of the two ends by itself.
fn by_line<'b>(lines: &[Line], behind: &'b [Behind]) -> Vec<Option<&'b Behind>> {
    let mut free: BTreeMap<u16, VecDeque<&Behind>> = BTreeMap::new();
    behind.iter().for_each(|behind| free.entry(behind.port).or_default().push_back(behind));
    let find = |line: &Line| {
        let free = free.get_mut(&line.port.filter(|_| line.passed_on)?)?;
        // Who is left from before was nobody's: a client that went away.
        let is_over = |behind: &&Behind| behind.second_ns.saturating_add(SECOND_NS + SLACK_NS) < line.begin_ns;
        while free.front().is_some_and(is_over) {
            free.pop_front();
        }
        let last = |behind: &Behind| line.end_ns().max(line.begin_ns.saturating_add_unsigned(behind.own_ns));
        let is_its = |behind: &&Behind| {
            behind.status == line.status && behind.second_ns <= last(behind).saturating_add(SLACK_NS)
        };
        let at = free.iter().position(is_its)?;
        free.drain(..=at).next_back()
    };
    lines.iter().map(find).collect()
}

/// The times in which one process or thread had requests: several at once, where it works on several.
#[derive(Debug, Default)]
pub(super) struct Held {
    /// Beginnings and ends, each ascending and with the sum of all before it.
    from: Vec<(i64, i128)>,
    to: Vec<(i64, i128)>,
}

impl Held {
    /// By process or thread.
    pub(super) fn by_task<'s>(stays: impl Iterator<Item = &'s Stay>) -> BTreeMap<u32, Held> {
        let mut times: BTreeMap<u32, (Vec<i64>, Vec<i64>)> = BTreeMap::new();
        for stay in stays {
            let (from, to) = times.entry(stay.task).or_default();
            from.push(stay.from);
            to.push(stay.to);
        }
        times.into_iter().map(|(task, (from, to))| (task, Held { from: summed(from), to: summed(to) })).collect()
    }

    /// How many it had at an instant.
    pub(super) fn at(&self, instant: i64) -> u64 {
        let begun = self.from.partition_point(|(from, _)| *from <= instant);
        let ended = self.to.partition_point(|(to, _)| *to < instant);
        (begun - ended) as u64
    }

    /// For how long between two instants, added up over requests.
    pub(super) fn between(&self, from: i64, to: i64) -> i128 {
        let until = |times: &[(i64, i128)], instant: i64| {
            let before = times.partition_point(|(at, _)| *at < instant);
            let sum = before.checked_sub(1).map_or(0, |last| times[last].1 + i128::from(times[last].0));
            before as i128 * i128::from(instant) - sum
        };
        let held = |instant| until(&self.from, instant) - until(&self.to, instant);
        held(to) - held(from)
    }

    /// What of accounts that were read now and then is a stay's: of what was added in each interval its share of all the time in which
    /// there was a request. Between requests a process does next to nothing.
    pub(super) fn share(&self, series: &[(Nanos, Delays)], stay: &Stay) -> Delays {
        let mut sum = Delays::default();
        // The interval in which it begins.
        let first = series.partition_point(|(at, _)| (*at as i64) <= stay.from).saturating_sub(1);
        for pair in series[first..].windows(2) {
            let (begin, end) = (pair[0].0 as i64, pair[1].0 as i64);
            if begin >= stay.to {
                break;
            }
            let (shared, all) = (stay.to.min(end) - stay.from.max(begin), self.between(begin, end));
            if shared > 0 && all > 0 {
                sum += pair[1].1.since(pair[0].1).times((shared as f64 / all as f64).min(1.0));
            }
        }
        sum
    }
}

/// Instants in their order, each with the sum of those before it.
fn summed(mut times: Vec<i64>) -> Vec<(i64, i128)> {
    times.sort_unstable();
    let mut sum = 0;
    times
        .into_iter()
        .map(|at| {
            let before = sum;
            sum += i128::from(at);
            (at, before)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::log;
    use super::*;
    use proptest::prelude::*;

    const MS: i64 = 1_000_000;

    fn line(begin: i64, end: i64, port: u16) -> Line {
        let own_ns = ((end - begin) * MS) as u64;
        Line { begin_ns: begin * MS, own_ns, pid: 1, status: 200, thread: None, port: Some(port), passed_on: true }
    }

    fn behind(second: i64, ms: u64, pid: u32, port: u16) -> Behind {
        Behind { second_ns: second * 1000 * MS, own_ns: ms * MS as u64, pid, status: 200, port }
    }

    fn stay(from: i64, to: i64) -> Stay {
        Stay { task: 1, is_front: true, from, to }
    }

    #[test]
    fn who_had_a_request_behind_a_server() {
        // A page, a file on the same connection, another page, one of another client that answers before it is done, and one that nobody
        // had.
        let file = Line { passed_on: false, ..line(160, 162, 7) };
        let lines = [line(100, 150, 7), file, line(2200, 2300, 7), line(2900, 3100, 8), line(3200, 3210, 9)];
        // The second was of a client that went away, the server answered by itself before the third.
        let php = [40, 30, 90].map(|ms| behind(if ms == 90 { 2 } else { 0 }, ms, ms as u32 + 11, 7));
        let php = [php.as_slice(), &[behind(4, 2000, 51, 8), behind(9, 5, 51, 9)]].concat();
        let stay = |task, from, to| Stay { task, is_front: task == 1, from: from * MS, to: to * MS };
        let expected = [
            vec![stay(1, 100, 110), stay(51, 110, 150)],
            vec![stay(1, 160, 162)],
            vec![stay(1, 2200, 2210), stay(101, 2210, 2300)],
            vec![stay(1, 2900, 2900), stay(51, 2900, 3100)],
            vec![stay(1, 3200, 3210)],
        ];
        assert_eq!(stays(&lines, &php, |line| Some(line.pid)), expected);
        let by_itself = Line { status: 502, ..line(2190, 2195, 7) };
        let failed = Behind { status: 500, ..behind(2, 90, 7, 7) };
        let more = [&lines[..2], &[by_itself], &lines[2..]].concat();
        let php = [&php[..2], &[failed], &php[2..]].concat();
        let found = stays(&more, &php, |line| Some(line.pid));
        assert_eq!([&found[2], &found[3]], [&vec![stay(1, 2190, 2195)], &expected[2]]);
        assert_eq!(stays(&lines[..1], &php, |_| None), [vec![stay(51, 110, 150)]]);
    }

    #[test]
    fn accounts_are_shared_by_time_in_requests() {
        let at = |ms: i64, on_cpu_ns| ((ms * MS) as u64, Delays { on_cpu_ns, ..Delays::default() });
        let series = [at(0, 100), at(50, 180), at(100, 180), at(150, 200)];
        // It had two at once for ten of the first fifty.
        let stays = [(10, 30), (20, 40), (130, 140)].map(|(from, to)| stay(from * MS, to * MS));
        let held = &Held::by_task(stays.iter())[&1];
        let shares = stays.map(|stay| held.share(&series, &stay).on_cpu_ns);
        assert_eq!(shares, [40, 40, 20]);
        assert_eq!([5, 10, 25, 40, 41].map(|ms| held.at(ms * MS)), [0, 1, 2, 1, 0]);
        assert_eq!(held.share(&[], &stays[0]), Delays::default());
    }

    proptest! {
        /// Whatever stands in the logs.
        #[test]
        fn strange_logs_do_no_harm(
            lines in proptest::collection::vec("(1|9{1,19}|2[.]000) (0[.]005|[0-9]{1,19}) 1 200 - 7 proxy", 0..8),
            php in proptest::collection::vec("[0-9]{1,11} [0-9]{1,19} 5 200 7", 0..8),
            wall in proptest::num::i64::ANY,
        ) {
            let (lines, php) = (lines.join("\n"), php.join("\n"));
            let (lines, php) = (log::lines(lines.as_bytes(), wall), log::behind(php.as_bytes(), wall));
            let stays = stays(&lines, &php, |line| Some(line.pid));
            for (task, held) in Held::by_task(stays.iter().flatten()) {
                let at = stays.iter().flatten().filter(|stay| stay.task == task).map(|stay| held.at(stay.from)).min();
                prop_assert!(at > Some(0));
                prop_assert!(held.between(i64::MIN, i64::MAX) >= 0);
            }
        }

        /// The sums say what adding up each stay says.
        #[test]
        fn how_long_requests_were_there(
            times in proptest::collection::vec((0..1000i64, 0..100i64), 0..20),
            from in -10..1100i64,
            length in 0..500i64,
        ) {
            let stays: Vec<Stay> = times.iter().map(|(from, length)| stay(*from, from + length)).collect();
            let to = from + length;
            let each = |stay: &Stay| i128::from((stay.to.min(to) - stay.from.max(from)).max(0));
            let held = Held::by_task(stays.iter()).remove(&1).unwrap_or_default();
            prop_assert_eq!(held.between(from, to), stays.iter().map(each).sum::<i128>());
            prop_assert_eq!(held.at(from), stays.iter().filter(|stay| (stay.from..=stay.to).contains(&from)).count() as u64);
        }
    }
}
