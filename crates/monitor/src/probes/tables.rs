//! Tables of the kernel that have no totals, so that their lines must be counted: sockets by state, locks, System V objects.
//!
//! They are read only when a watch asks for them. Reading the TCP table walks every connection of the host; for the accept queue
//! of a server `accept` asks the kernel another way.

use super::{Probe, Probes};
use crate::source::{Buffer, Source};
use crate::text::fields;
use crate::watch::Table;
use model::reading::{Column, Reading};
use std::path::Path;

/// Opens the tables that are asked for.
pub(super) fn open(probes: &mut Probes, proc_root: &Path, tables: &[Table]) {
    for table in tables {
        for count in counts(*table) {
            add(probes, proc_root, count);
        }
    }
}

/// What is counted in one table, and in its twin for IPv6.
struct Count {
    files: &'static [&'static str],
    /// Lines of headings.
    headings: usize,
    columns: &'static [Column],
    /// Which of the columns a line counts for, by position.
    classes: fn(&[u8]) -> [Option<usize>; 2],
}

/// The most columns of one table.
const MOST: usize = 5;

fn counts(table: Table) -> Vec<Count> {
    use Column as C;
    let every = |files, columns| Count { files, headings: 1, columns, classes: |_| [Some(0), None] };
    match table {
        Table::Tcp => vec![Count {
            files: &["net/tcp", "net/tcp6"],
            headings: 1,
            columns: &[C::TcpListening, C::TcpEstablished, C::TcpHandshakes, C::TcpWaiting, C::TcpClosing],
            classes: tcp,
        }],
        Table::Udp => vec![Count {
            files: &["net/udp", "net/udp6"],
            headings: 1,
            columns: &[C::UdpListening, C::UdpConnected],
            classes: udp,
        }],
        Table::Raw => vec![every(&["net/raw"], &[C::RawSockets])],
        Table::Unix => vec![Count {
            files: &["net/unix"],
            headings: 1,
            columns: &[C::UnixDatagram, C::UnixStream, C::UnixListening, C::UnixConnected],
            classes: unix,
        }],
        Table::Locks => vec![Count {
            files: &["locks"],
            headings: 0,
            columns: &[C::LocksPosix, C::LocksFlock, C::LocksRead, C::LocksWrite],
            classes: locks,
        }],
        Table::Ipc => vec![
            every(&["sysvipc/msg"], &[C::IpcQueues]),
            every(&["sysvipc/sem"], &[C::IpcSemaphores]),
            every(&["sysvipc/shm"], &[C::IpcSegments]),
        ],
    }
}

/// `0: 0100007F:0050 00000000:0000 0A 00000000:00000000 ...`
fn tcp(line: &[u8]) -> [Option<usize>; 2] {
    let class = match fields(line).nth(3) {
        Some(b"0A") => Some(0),
        Some(b"01") => Some(1),
        Some(b"02" | b"03" | b"09") => Some(2),
        Some(b"06") => Some(3),
        Some(b"04" | b"05" | b"07" | b"08" | b"0B") => Some(4),
        _ => None,
    };
    [class, None]
}

fn udp(line: &[u8]) -> [Option<usize>; 2] {
    let class = match fields(line).nth(3) {
        Some(b"07") => Some(0),
        Some(b"01") => Some(1),
        _ => None,
    };
    [class, None]
}

/// `ffff8881: 00000002 00000000 00010000 0001 01 20543 /run/x`: kind and state are the fifth and sixth.
fn unix(line: &[u8]) -> [Option<usize>; 2] {
    let mut fields = fields(line).skip(4);
    match (fields.next(), fields.next()) {
        (Some(b"0002"), _) => [Some(0), None],
        (Some(b"0001"), Some(b"01")) => [Some(1), Some(2)],
        (Some(b"0001"), Some(b"03")) => [Some(1), Some(3)],
        (Some(b"0001"), _) => [Some(1), None],
        _ => [None, None],
    }
}

/// `1: POSIX  ADVISORY  WRITE 812 fd:00:1837 0 EOF`; who waits for a lock has an arrow in the second field and does not count.
fn locks(line: &[u8]) -> [Option<usize>; 2] {
    let mut fields = fields(line).skip(1);
    let family = match fields.next() {
        Some(b"POSIX") => Some(0),
        Some(b"FLOCK") => Some(1),
        _ => None,
    };
    let way = match fields.nth(1) {
        Some(b"READ") => Some(2),
        Some(b"WRITE") => Some(3),
        _ => None,
    };
    [family, way]
}

/// Opens the files of a count. A twin may be missing, as it is without IPv6; a table of which nothing opens costs a note.
fn add(probes: &mut Probes, proc_root: &Path, count: Count) {
    let opened: Vec<_> = count.files.iter().map(|file| Source::open(&proc_root.join(file))).collect();
    let error = opened.iter().find_map(|source| source.as_ref().err().copied());
    let sources: Vec<Source> = opened.into_iter().flatten().collect();
    match (sources.is_empty(), error) {
        (true, Some(error)) => probes.missing(&proc_root.join(count.files[0]), error),
        _ => probes.add(Counted { sources, count }),
    }
}

struct Counted {
    sources: Vec<Source>,
    count: Count,
}

impl Probe for Counted {
    fn read(&mut self, row: &mut Reading, buffer: &mut Buffer) {
        let Count { headings, columns, classes, .. } = self.count;
        let mut sums = [0u64; MOST];
        for source in &self.sources {
            let mut line_number = 0;
            let read = source.each_line(buffer, |line| {
                line_number += 1;
                if line_number > headings {
                    classes(line).into_iter().flatten().for_each(|class| sums[class] += 1);
                }
            });
            // Half a table would be a wrong number.
            if read.is_err() {
                return;
            }
        }
        columns.iter().zip(sums).for_each(|(&column, sum)| row.set(column, sum));
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::check;
    use super::*;

    const TCP: &str = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n   \
        0: 0100007F:0050 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1 1 0 100 0 0 10 0\n   \
        1: 0100007F:0050 0100007F:C350 01 00000000:00000000 00:00000000 00000000     0        0 2 1 0 20 4 30 10 -1\n   \
        2: 0100007F:0050 0100007F:C351 06 00000000:00000000 03:00000000 00000000     0        0 0 3 0\n   \
        3: 0100007F:0050 0100007F:C352 03 00000000:00000000 01:00000000 00000000     0        0 0 3 0\n   \
        4: 0100007F:0050 0100007F:C353 0C 00000000:00000000 01:00000000 00000000     0        0 0 3 0\n";

    #[test]
    fn sockets_by_state() {
        use Column::*;
        let tcp6 = TCP.replace(" 06 ", " 08 ").replace(" 03 ", " 09 ");
        let udp = "sl local rem st\n 1: a b 07 x\n 2: a b 07 x\n 3: a b 01 x\n";
        let unix = "Num RefCount Protocol Flags Type St Inode Path\nf: 2 0 10000 0001 01 5 /run/a\nf: 3 0 0 0001 03 6\n\
            f: 3 0 0 0001 02 6\nf: 2 0 0 0002 01 7\nf: 2 0 10000 0005 01 8 /run/udev\n";
        check(
            &[("net/tcp", TCP), ("net/tcp6", &tcp6), ("net/udp", udp), ("net/raw", "sl\n 1: x\n"), ("net/unix", unix)],
            |probes, root| open(probes, root, &[Table::Tcp, Table::Udp, Table::Raw, Table::Unix]),
            &[
                (TcpListening, 2),
                (TcpEstablished, 2),
                (TcpHandshakes, 2),
                (TcpWaiting, 1),
                (TcpClosing, 1),
                (UdpListening, 2),
                (UdpConnected, 1),
                (RawSockets, 1),
                (UnixDatagram, 1),
                (UnixStream, 3),
                (UnixListening, 1),
                (UnixConnected, 1),
            ],
        );
    }

    #[test]
    fn locks_and_system_v_objects() {
        use Column::*;
        let locks = "1: POSIX  ADVISORY  WRITE 812 fd:00:1837 0 EOF\n1: -> POSIX  ADVISORY  WRITE 813 fd:00:1837 0 EOF\n\
            2: FLOCK  ADVISORY  READ 9 00:19:5 0 EOF\n3: OFDLCK ADVISORY  READ -1 00:19:6 0 EOF\n";
        let ipc = [("sysvipc/msg", "key\n"), ("sysvipc/sem", "key\n 0 1\n"), ("sysvipc/shm", "key\n 0 1\n 0 2\n")];
        check(
            &[&ipc[..], &[("locks", locks)]].concat(),
            |probes, root| open(probes, root, &[Table::Locks, Table::Ipc]),
            &[
                (IpcQueues, 0),
                (IpcSemaphores, 1),
                (IpcSegments, 2),
                (LocksPosix, 1),
                (LocksFlock, 1),
                (LocksRead, 2),
                (LocksWrite, 1),
            ],
        );
    }

    #[test]
    fn a_table_that_was_not_asked_for_is_not_read() {
        check(&[("net/tcp", TCP)], |probes, root| open(probes, root, &[]), &[]);
    }

    #[test]
    fn without_ipv6_the_other_half_is_the_table() {
        use Column::*;
        let expected = [(TcpListening, 1), (TcpEstablished, 1), (TcpHandshakes, 1), (TcpWaiting, 1), (TcpClosing, 0)];
        check(&[("net/tcp", TCP)], |probes, root| open(probes, root, &[Table::Tcp]), &expected);
    }
}
