//! How full the fullest link is: what went over each interface in an interval against the speed that it tells.
//!
//! Of the interfaces with a device behind them that tell a speed when the watch begins. Those of software alone (tun, veth, bridges) tell one
//! that is nobody's, if they tell any: 10 Mbit/s or 10 Gbit/s.

use super::Probes;
use crate::text::{fields, lines, number};
use model::reading::Column;
use std::path::Path;

/// A link that says it does a million bits a second does so many bytes a nanosecond, times 1e9.
const BYTES_PER_MEGABIT: u64 = 125_000;
const RX_BYTES: usize = 0;
const TX_BYTES: usize = 8;

/// Opens /proc/net/dev for them, if there are any.
pub(super) fn open(probes: &mut Probes, proc_root: &Path, sys_root: &Path) {
    let mut links = links(&sys_root.join("class/net"));
    if links.is_empty() {
        return;
    }
    let mut total_ns = 0u64;
    probes.keep(&proc_root.join("net/dev"), move |text, row| {
        total_ns = total_ns.saturating_add(fullest(text, &mut links));
        row.set(Column::NetLinkNs, total_ns);
    });
}

/// An interface that tells its speed.
struct Link {
    name: Vec<u8>,
    bytes_per_second: u64,
    /// Received and sent so far; `None` before the first reading.
    before: Option<[u64; 2]>,
}

fn links(folder: &Path) -> Vec<Link> {
    let link = |entry: std::fs::DirEntry| {
        if !entry.path().join("device").exists() {
            return None;
        }
        let speed = std::fs::read_to_string(entry.path().join("speed")).ok()?;
        // -1 where nobody knows.
        let megabits = speed.trim().parse::<u64>().ok().filter(|&megabits| megabits > 0)?;
        let name = entry.file_name().into_encoded_bytes();
        Some(Link { name, bytes_per_second: megabits.saturating_mul(BYTES_PER_MEGABIT), before: None })
    };
    std::fs::read_dir(folder).into_iter().flatten().flatten().filter_map(link).collect()
}

/// The longest time that one direction of one of them needs for what went over it since the reading before.
fn fullest(text: &[u8], links: &mut [Link]) -> u64 {
    let mut longest = 0;
    for line in lines(text) {
        let Some(colon) = line.iter().rposition(|&byte| byte == b':') else { continue };
        let name = line[..colon].trim_ascii();
        let Some(link) = links.iter_mut().find(|link| link.name == name) else { continue };
        let mut numbers = [0; TX_BYTES + 1];
        for (value, field) in numbers.iter_mut().zip(fields(&line[colon + 1..])) {
            *value = number(field).unwrap_or(0);
        }
        let now = [numbers[RX_BYTES], numbers[TX_BYTES]];
        for (now, before) in now.iter().zip(link.before.unwrap_or(now)) {
            let bytes = u128::from(now.saturating_sub(before));
            let ns = bytes * 1_000_000_000 / u128::from(link.bytes_per_second);
            longest = longest.max(u64::try_from(ns).unwrap_or(u64::MAX));
        }
        link.before = Some(now);
    }
    longest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dev(eth0: [u64; 2], eth1: [u64; 2]) -> String {
        let line = |name: &str, [rx, tx]: [u64; 2]| format!("  {name}: {rx} 1 0 0 0 0 0 0 {tx} 1 0 0 0 0 0 0\n");
        format!("Inter-| Receive\n face |bytes\n{}{}{}", line("lo", [9, 9]), line("eth0", eth0), line("eth1", eth1))
    }

    #[test]
    fn the_fullest_direction_of_the_fullest_link() {
        let folder = tempfile::tempdir().unwrap();
        for (name, speed) in [("eth0", "1000\n"), ("eth1", "100\n"), ("lo", ""), ("eth2", "-1\n"), ("tun0", "10\n")] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
            std::fs::write(folder.path().join(name).join("speed"), speed).unwrap();
            if name.starts_with("eth") {
                std::fs::create_dir(folder.path().join(name).join("device")).unwrap();
            }
        }
        let mut links = links(folder.path());
        assert_eq!(links.len(), 2);
        let mut read = |text: String| fullest(text.as_bytes(), &mut links);
        // What went over it before the first reading is not of any interval.
        assert_eq!(read(dev([5_000, 7_000], [0, 0])), 0);
        // A gigabit is 125 bytes in a microsecond.
        assert_eq!(read(dev([5_125, 7_000], [0, 0])), 1_000);
        // Sending is another direction, and a tenth of the speed takes ten times as long.
        assert_eq!(read(dev([5_250, 7_250], [0, 125])), 10_000);
        // A counter that begins anew.
        assert_eq!(read(dev([5_250, 7_250], [0, 0])), 0);
    }
}
