//! Traffic of the interfaces, and what TCP lost or refused: /proc/net.
//!
//! Of the network namespace that the sampler itself is in.

use super::Probes;
use crate::text::{fields, lines, number};
use model::reading::{Column, Reading};
use std::path::Path;

/// Opens /proc/net/dev.
pub(super) fn open_dev(probes: &mut Probes, proc_root: &Path) {
    probes.keep(&proc_root.join("net/dev"), dev);
}

/// Opens /proc/net/sockstat.
pub(super) fn open_sockstat(probes: &mut Probes, proc_root: &Path) {
    probes.keep(&proc_root.join("net/sockstat"), sockstat);
}

/// Opens /proc/net/snmp and netstat.
pub(super) fn open_tcp(probes: &mut Probes, proc_root: &Path) {
    let net = proc_root.join("net");
    probes.keep(&net.join("snmp"), |text, row| {
        let wanted = [
            ("ActiveOpens", Column::TcpActiveOpens),
            ("PassiveOpens", Column::TcpPassiveOpens),
            ("OutSegs", Column::TcpOutSegments),
            ("RetransSegs", Column::TcpRetransmits),
        ];
        headed(text, b"Tcp:", &wanted, row);
    });
    probes.keep(&net.join("netstat"), |text, row| {
        let wanted = [("ListenOverflows", Column::TcpListenOverflows), ("ListenDrops", Column::TcpListenDrops)];
        headed(text, b"TcpExt:", &wanted, row);
    });
}

const RX_BYTES: usize = 0;
const RX_DROPS: usize = 3;
const TX_BYTES: usize = 8;
const TX_DROPS: usize = 11;

fn dev(text: &[u8], row: &mut Reading) {
    let (mut rx, mut tx, mut drops) = (0u64, 0u64, 0u64);
    for line in lines(text) {
        // The two lines of headings have no colon.
        let Some(colon) = line.iter().rposition(|&byte| byte == b':') else { continue };
        let mut numbers = [0; TX_DROPS + 1];
        for (value, field) in numbers.iter_mut().zip(fields(&line[colon + 1..])) {
            *value = number(field).unwrap_or(0);
        }
        if line[..colon].trim_ascii() == b"lo" {
            row.set(Column::LoopbackBytes, numbers[RX_BYTES]);
        } else if !lies_on_others(line[..colon].trim_ascii(), text) {
            rx = rx.saturating_add(numbers[RX_BYTES]);
            tx = tx.saturating_add(numbers[TX_BYTES]);
            drops = drops.saturating_add(numbers[RX_DROPS]).saturating_add(numbers[TX_DROPS]);
        }
    }
    row.set(Column::NetRxBytes, rx);
    row.set(Column::NetTxBytes, tx);
    row.set(Column::NetDrops, drops);
}

/// Bonds and VLANs, by their names as dstat does it: their traffic is that of interfaces which are counted, too. A VLAN that was
/// moved into a container without the interface below it is all that there is.
fn lies_on_others(name: &[u8], text: &[u8]) -> bool {
    let is_number = |text: &[u8]| !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    let is_bond = name.strip_prefix(b"bond").is_some_and(is_number);
    let below = name.iter().rposition(|&byte| byte == b'.').filter(|&point| is_number(&name[point + 1..]));
    is_bond || below.is_some_and(|point| lines(text).any(|line| name_of(line) == Some(&name[..point])))
}

fn name_of(line: &[u8]) -> Option<&[u8]> {
    let colon = line.iter().rposition(|&byte| byte == b':')?;
    Some(line[..colon].trim_ascii())
}

/// Files that name their columns in one line and give the numbers in the next, both with the same first field.
fn headed(text: &[u8], prefix: &[u8], wanted: &[(&str, Column)], row: &mut Reading) {
    let mut rows = lines(text).filter(|line| fields(line).next() == Some(prefix));
    let (Some(names), Some(values)) = (rows.next(), rows.next()) else { return };
    for (name, value) in fields(names).zip(fields(values)) {
        if let Some((_, column)) = wanted.iter().find(|(wanted, _)| wanted.as_bytes() == name)
            && let Some(value) = number(value)
        {
            row.set(*column, value);
        }
    }
}

/// The first field of a line, the name of a number in it, and its column.
const SOCKETS: [(&str, &str, Column); 6] = [
    ("sockets:", "used", Column::SocketsUsed),
    ("TCP:", "inuse", Column::SocketsTcp),
    ("TCP:", "tw", Column::TcpTimeWait),
    ("UDP:", "inuse", Column::SocketsUdp),
    ("RAW:", "inuse", Column::SocketsRaw),
    ("FRAG:", "inuse", Column::SocketsFrag),
];

/// `TCP: inuse 5 orphan 0 tw 3 alloc 8 mem 1`
fn sockstat(text: &[u8], row: &mut Reading) {
    for line in lines(text) {
        let mut fields = fields(line);
        let Some(family) = fields.next() else { continue };
        while let (Some(name), Some(value)) = (fields.next(), fields.next()) {
            let wanted = |(of, number, _): &&(&str, &str, Column)| of.as_bytes() == family && number.as_bytes() == name;
            if let Some((_, _, column)) = SOCKETS.iter().find(wanted)
                && let Some(value) = number(value)
            {
                row.set(*column, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::check;
    use super::*;

    fn open(probes: &mut Probes, proc_root: &Path) {
        open_dev(probes, proc_root);
        open_tcp(probes, proc_root);
        open_sockstat(probes, proc_root);
    }

    #[test]
    fn loopback_apart_and_tcp_by_name() {
        use Column::*;
        let dev = "Inter-|   Receive                                                |  Transmit\n \
            face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed\n    \
            lo: 500 5 0 0 0 0 0 0 500 5 0 0 0 0 0 0\n  \
            eth0: 1000 10 0 1 0 0 0 0 2000 20 0 2 0 0 0 0\n\
            wlan0:7000 10 0 4 0 0 0 0 8000 20 0 0 0 0 0 0\n\
            bond0: 90000 9 0 9 0 0 0 0 90000 9 0 9 0 0 0 0\neth0.12: 90000 9 0 9 0 0 0 0 90000 9 0 9 0 0 0 0\n\
            eth7.3: 100 9 0 0 0 0 0 0 100 9 0 0 0 0 0 0\n";
        let snmp = "Ip: Forwarding RetransSegs\nIp: 1 99\nTcp: RtoAlgorithm MaxConn ActiveOpens PassiveOpens OutSegs RetransSegs InErrs\nTcp: 1 -1 5 6 900 42 0\n";
        let netstat = "TcpExt: SyncookiesSent ListenOverflows ListenDrops TCPHPHits\nTcpExt: 1 22 23 4\nIpExt: InNoRoutes\nIpExt: 5\n";
        let sockstat = "sockets: used 15\nTCP: inuse 1 orphan 0 tw 77 alloc 1 mem 75\nUDP: inuse 2 mem 0\n\
            UDPLITE: inuse 9\nRAW: inuse 3\nFRAG: inuse 4 memory 0\n";
        check(
            &[("net/dev", dev), ("net/snmp", snmp), ("net/netstat", netstat), ("net/sockstat", sockstat)],
            open,
            &[
                (NetRxBytes, 8100),
                (NetTxBytes, 10_100),
                (NetDrops, 7),
                (LoopbackBytes, 500),
                (TcpRetransmits, 42),
                (TcpListenOverflows, 22),
                (TcpListenDrops, 23),
                (TcpTimeWait, 77),
                (SocketsUsed, 15),
                (SocketsTcp, 1),
                (SocketsUdp, 2),
                (SocketsRaw, 3),
                (SocketsFrag, 4),
                (TcpPassiveOpens, 6),
                (TcpActiveOpens, 5),
                (TcpOutSegments, 900),
            ],
        );
    }

    #[test]
    fn a_heading_without_numbers_fills_nothing() {
        let files = [("net/snmp", "Tcp: RetransSegs\n"), ("net/netstat", ""), ("net/sockstat", "TCP: inuse x tw\n")];
        check(&files, open, &[]);
    }
}
