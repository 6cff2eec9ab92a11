//! The server's log of its own time, and that of PHP-FPM behind it, as `latency_budget` in a plan has them written.
//!
//! Apache: microseconds since 1970 at the beginning, microseconds taken, process, status, thread, the client's port, the handler. nginx:
//! seconds since 1970 at the end, seconds taken, both with three decimals, then the same, with `-` for the thread, and whom it passed the
//! request on to. PHP-FPM: seconds since 1970 at the end, microseconds taken, process, status, the client's port.

use model::Nanos;

/// One request by the server's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Line {
    /// When its clock began; by the machine's monotonic clock, and before that one's beginning in a strange log.
    pub(super) begin_ns: i64,
    /// How long it ran.
    pub(super) own_ns: Nanos,
    /// The process that wrote the line.
    pub(super) pid: u32,
    /// What was answered.
    pub(super) status: u16,
    /// The thread that wrote it, by the address that its process knows it by; nginx says nothing of it.
    pub(super) thread: Option<u64>,
    /// The client's port, where that is known.
    pub(super) port: Option<u16>,
    /// Whether it was passed on to another server.
    pub(super) passed_on: bool,
}

impl Line {
    pub(super) fn end_ns(&self) -> i64 {
        self.begin_ns.saturating_add_unsigned(self.own_ns)
    }
}

/// The lines in the order of their ends. `wall_ns` is what the wall's clock
/// shows less what the monotonic one does.
pub(super) fn lines(log: &[u8], wall_ns: i64) -> Vec<Line> {
    let parse = |line: &[u8]| line_of(std::str::from_utf8(line).ok()?, wall_ns);
    let mut lines: Vec<Line> = log.split(|&byte| byte == b'\n').filter_map(parse).collect();
    lines.sort_by_key(Line::end_ns);
    lines
}

fn line_of(line: &str, wall_ns: i64) -> Option<Line> {
    let mut fields = line.split(' ');
    let (at, took) = (fields.next()?, fields.next()?);
    let (pid, status) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    let (thread, port) = (fields.next()?.parse().ok(), fields.next()?.parse().ok());
    let handler = fields.next()?;
    let (begin_ns, own_ns, passed_on) = match at.split_once('.') {
        None => {
            let began = at.parse::<i64>().ok()?.checked_mul(1000)?;
            (began, ns_of_us(took)?, handler.starts_with("proxy"))
        }
        Some(_) => {
            let own = thousandths(took)?.checked_mul(1_000_000)?;
            // The clock that it reads shows whole milliseconds, the last one that was over.
            let end = i64::try_from(thousandths(at)?).ok()?.checked_mul(1_000_000)?.checked_add(500_000)?;
            (end.checked_sub_unsigned(own)?, own, !matches!(handler, "-" | ""))
        }
    };
    Some(Line { begin_ns: begin_ns.checked_sub(wall_ns)?, own_ns, pid, status, thread, port, passed_on })
}

/// Microseconds in nanoseconds, which fit into the monotonic clock's numbers.
fn ns_of_us(text: &str) -> Option<Nanos> {
    text.parse::<i64>().ok()?.checked_mul(1000)?.try_into().ok()
}

/// One request by PHP-FPM's clock, which is told without the instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Behind {
    /// The second that it ended in, its beginning by the machine's monotonic clock.
    pub(super) second_ns: i64,
    /// How long it took.
    pub(super) own_ns: Nanos,
    /// The process that worked on it.
    pub(super) pid: u32,
    /// What was answered.
    pub(super) status: u16,
    /// The client's port.
    pub(super) port: u16,
}

/// The lines of PHP-FPM's log in their order, which is that of their ends.
pub(super) fn behind(log: &[u8], wall_ns: i64) -> Vec<Behind> {
    let parse = |line: &[u8]| {
        let mut fields = std::str::from_utf8(line).ok()?.split(' ');
        let second = fields.next()?.parse::<i64>().ok()?.checked_mul(1_000_000_000)?;
        let own_ns = ns_of_us(fields.next()?)?;
        let (pid, status) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
        let port = fields.next()?.parse().ok()?;
        Some(Behind { second_ns: second.checked_sub(wall_ns)?, own_ns, pid, status, port })
    };
    log.split(|&byte| byte == b'\n').filter_map(parse).collect()
}

/// `1.250` as 1250.
fn thousandths(text: &str) -> Option<u64> {
    let (whole, part) = text.split_once('.')?;
    if part.len() != 3 {
        return None;
    }
    whole.parse::<u64>().ok()?.checked_mul(1000)?.checked_add(part.parse().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_servers_write() {
        let log = b"1795353600000300 250 42 200 140409997096640 40001 proxy:unix:/a b|fcgi://localhost\n\
            1795353600000100 50 41 503 9 40002 text/css\n1795353600.002 0.001 43 200 -  -\nnonsense\n\
            1795353600000200 - 41 200 9 40004 -\n1795353600.003 0.001 43 200 - 40003 unix:/a, unix:/b";
        let wall = 1_795_353_600_000_000_000;
        let expected = [
            Line {
                begin_ns: 100_000,
                own_ns: 50_000,
                pid: 41,
                status: 503,
                thread: Some(9),
                port: Some(40002),
                passed_on: false,
            },
            Line {
                begin_ns: 300_000,
                own_ns: 250_000,
                pid: 42,
                status: 200,
                thread: Some(140_409_997_096_640),
                port: Some(40001),
                passed_on: true,
            },
            Line {
                begin_ns: 1_500_000,
                own_ns: 1_000_000,
                pid: 43,
                status: 200,
                thread: None,
                port: None,
                passed_on: false,
            },
            Line {
                begin_ns: 2_500_000,
                own_ns: 1_000_000,
                pid: 43,
                status: 200,
                thread: None,
                port: Some(40003),
                passed_on: true,
            },
        ];
        assert_eq!(lines(log, wall), expected);
        let log =
            b"1795353601 2500 51 200 40001\nnonsense\n1795353601 - 51 200 40001\n1795353601 10000000000000000 51 200 4\n";
        let expected = Behind { second_ns: 1_000_000_000, own_ns: 2_500_000, pid: 51, status: 200, port: 40001 };
        assert_eq!(behind(log, wall), [expected]);
    }
}
