//! Memory, swap and paging of the host: /proc/meminfo and /proc/vmstat.

use super::Probes;
use crate::text::{fields, key, key_numbers, lines, number};
use model::reading::{Column, Reading};
use std::path::Path;

/// Opens /proc/meminfo.
pub(super) fn open_meminfo(probes: &mut Probes, proc_root: &Path) {
    let meminfo = [
        key("MemTotal", Column::MemTotal),
        key("MemFree", Column::MemFree),
        key("MemAvailable", Column::MemAvailable),
        key("Buffers", Column::MemBuffers),
        key("Cached", Column::MemCached),
        key("SReclaimable", Column::MemReclaimable),
        key("Shmem", Column::MemShmem),
        key("Dirty", Column::MemDirty),
        key("Writeback", Column::MemWriteback),
        key("AnonPages", Column::MemAnon),
        key("SwapTotal", Column::SwapTotal),
        key("SwapFree", Column::SwapFree),
    ];
    probes.keep(&proc_root.join("meminfo"), move |text, row| key_numbers(text, &meminfo, row));
}

/// Opens /proc/vmstat.
pub(super) fn open_vmstat(probes: &mut Probes, proc_root: &Path) {
    let vmstat = [
        key("pswpin", Column::SwapIn),
        key("pswpout", Column::SwapOut),
        key("pgmajfault", Column::MajorFaults),
        key("pgfault", Column::MinorFaults),
        key("pgfree", Column::PageFrees),
        key("pgpgin", Column::PagedIn),
        key("pgpgout", Column::PagedOut),
        key("pgscan_direct", Column::ScanDirect),
        // Before 5.9 there is one number for refaults, of files.
        key("workingset_refault", Column::RefaultFile),
        key("workingset_refault_anon", Column::RefaultAnon),
        key("workingset_refault_file", Column::RefaultFile),
        key("oom_kill", Column::OomKills),
    ];
    probes.keep(&proc_root.join("vmstat"), move |text, row| {
        zones(text, row);
        key_numbers(text, &vmstat, row);
    });
}

/// The names of zones, as a kernel may have them.
const ZONES: [&[u8]; 6] = [b"dma", b"dma32", b"normal", b"high", b"movable", b"device"];

/// What is told for each zone of memory, of which a machine has some: `pgalloc_dma32`, `pgalloc_normal` ... Before 4.8
/// direct scans are told so, too.
const BY_ZONE: [(&[u8], Column); 2] = [(b"pgalloc_", Column::PageAllocations), (b"pgscan_direct_", Column::ScanDirect)];

fn zones(text: &[u8], row: &mut Reading) {
    let mut sums = [None; BY_ZONE.len()];
    for line in lines(text).filter(|line| line.starts_with(b"pg")) {
        for (sum, (prefix, _)) in sums.iter_mut().zip(BY_ZONE) {
            let mut fields = fields(line);
            let zone = fields.next().and_then(|name| name.strip_prefix(prefix));
            if zone.is_some_and(|zone| ZONES.contains(&zone))
                && let Some(pages) = fields.next().and_then(number)
            {
                *sum = Some(sum.map_or(pages, |sum: u64| sum.saturating_add(pages)));
            }
        }
    }
    for (sum, (_, column)) in sums.into_iter().zip(BY_ZONE) {
        sum.into_iter().for_each(|sum| row.set(column, sum));
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::check;
    use super::*;

    fn open(probes: &mut Probes, proc_root: &Path) {
        open_meminfo(probes, proc_root);
        open_vmstat(probes, proc_root);
    }

    #[test]
    fn look_alikes_are_not_taken() {
        use Column::*;
        let meminfo = "MemTotal:       1020000 kB\nMemFree:  5 kB\nMemAvailable: 9 kB\nBuffers: 80 kB\nCached: 8000 kB\n\
            SwapCached: 1 kB\nDirty: 3 kB\nWriteback: 4 kB\nWritebackTmp: 77 kB\nAnonPages: 6 kB\nShmem: 2 kB\n\
            ShmemHugePages: 99 kB\nSReclaimable: 7 kB\nSwapTotal: 720000 kB\nSwapFree: 1 kB\n";
        let vmstat = "pgalloc_dma 1\npgalloc_dma32 20\npgalloc_normal 300\npgfree 9\npgfault 8\npgpgin 4\npgpgout 5\n\
            pgmajfault 12\npswpin 100\npswpout 200\npgscan_direct 5\npgscan_direct_throttle 50\n\
            workingset_refault_anon 31\nworkingset_refault_file 32\noom_kill 1\n";
        check(
            &[("meminfo", meminfo), ("vmstat", vmstat)],
            open,
            &[
                (MemTotal, 1_020_000),
                (MemFree, 5),
                (MemAvailable, 9),
                (MemBuffers, 80),
                (MemCached, 8000),
                (MemReclaimable, 7),
                (MemShmem, 2),
                (MemDirty, 3),
                (MemWriteback, 4),
                (MemAnon, 6),
                (SwapTotal, 720_000),
                (SwapFree, 1),
                (SwapIn, 100),
                (SwapOut, 200),
                (MajorFaults, 12),
                (ScanDirect, 5),
                (RefaultAnon, 31),
                (RefaultFile, 32),
                (OomKills, 1),
                (MinorFaults, 8),
                (PageAllocations, 321),
                (PageFrees, 9),
                (PagedIn, 4),
                (PagedOut, 5),
            ],
        );
    }
}
