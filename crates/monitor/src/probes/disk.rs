//! What whole disks did: /proc/diskstats.
//!
//! Every operation is to be counted once. So a device counts when /sys/block has it (a partition it has not), when it lies on
//! no other (device mapper and RAID do, and say so in `slaves`), and when it is not made of memory or of a file (ram, zram,
//! loop). Disks are looked up once, at the start: one that is plugged in later is not counted.

use super::Probes;
use crate::text::{fields, lines, number};
use model::reading::{Column, Reading};
use std::path::Path;

/// Opens the file and finds out which of its lines are whole disks.
pub(super) fn open(probes: &mut Probes, proc_root: &Path, sys_root: &Path) {
    let mut disks = Disks { whole: whole_disks(&sys_root.join("block")), busiest_ms: 0 };
    if disks.whole.is_empty() {
        probes
            .notes
            .push(format!("no disk was found in {}: disk columns are absent", sys_root.join("block").display()));
        return;
    }
    probes.keep(&proc_root.join("diskstats"), move |text, row| disks.read(text, row));
}

struct Disks {
    whole: Vec<Disk>,
    /// What the busiest disk of each interval between readings was busy, summed since the first reading.
    busiest_ms: u64,
}

struct Disk {
    name: Vec<u8>,
    /// io_ticks at the reading before.
    ticks_before: Option<u64>,
}

/// The numbers of a line that are summed, by position after the name.
const SUMS: [(usize, Column); 8] = [
    (0, Column::DiskReads),
    (2, Column::DiskReadSectors),
    (4, Column::DiskWrites),
    (6, Column::DiskWriteSectors),
    (8, Column::DiskInFlight),
    (10, Column::DiskWeightedMs),
    (3, Column::DiskReadMs),
    (7, Column::DiskWriteMs),
];
const IO_TICKS: usize = 9;

impl Disks {
    fn read(&mut self, text: &[u8], row: &mut Reading) {
        let mut sums = [0u64; SUMS.len()];
        let mut busiest = 0;
        for line in lines(text) {
            let mut fields = fields(line).skip(2);
            let Some(name) = fields.next() else { continue };
            let Some(disk) = self.whole.iter_mut().find(|disk| disk.name == name) else { continue };
            let mut numbers = [0; IO_TICKS + 2];
            for (value, field) in numbers.iter_mut().zip(fields) {
                *value = number(field).unwrap_or(0);
            }
            for (sum, (position, _)) in sums.iter_mut().zip(SUMS) {
                *sum = sum.saturating_add(numbers[position]);
            }
            let ticks = numbers[IO_TICKS];
            let before = disk.ticks_before.replace(ticks).unwrap_or(ticks);
            busiest = busiest.max(ticks.saturating_sub(before));
        }
        SUMS.iter().zip(sums).for_each(|(&(_, column), sum)| row.set(column, sum));
        // Interval by interval: a disk that was busy for long before must not hide the one that is busy now.
        self.busiest_ms = self.busiest_ms.saturating_add(busiest);
        row.set(Column::DiskIoMs, self.busiest_ms);
    }
}

fn whole_disks(block: &Path) -> Vec<Disk> {
    let Ok(entries) = std::fs::read_dir(block) else { return Vec::new() };
    entries
        .flatten()
        .filter(|entry| std::fs::read_dir(entry.path().join("slaves")).map_or(true, |mut below| below.next().is_none()))
        .map(|entry| entry.file_name().into_encoded_bytes())
        .filter(|name| !["loop", "ram", "zram"].iter().any(|prefix| is_numbered(name, prefix.as_bytes())))
        // /sys writes `!` for the `/` in names such as cciss/c0d0.
        .map(|name| name.into_iter().map(|byte| if byte == b'!' { b'/' } else { byte }).collect())
        .map(|name| Disk { name, ticks_before: None })
        .collect()
}

fn is_numbered(name: &[u8], prefix: &[u8]) -> bool {
    name.strip_prefix(prefix).is_some_and(|rest| number(rest).is_some())
}

#[cfg(test)]
mod tests {
    use super::super::tests::{check, read};
    use super::*;
    use testkit::fake_proc::FakeTree;

    const DISKSTATS: &str = "   7       0 loop0 1 1 1 1 1 1 1 1 1 1 1\n\
        253       0 zram0 1 1 1 1 1 1 1 1 1 1 1\n\
        259       0 nvme0n1 100 9 2000 5 300 8 4000 7 2 600 700 0 0 0 0 0 0\n\
        259       1 nvme0n1p1 100 9 2000 5 300 8 4000 7 2 600 700\n\
        202       0 xvda 10 0 20 0 30 0 40 0 1 50 60\n\
        202       1 xvda1 10 0 20 0 30 0 40 0 1 50 60\n\
        179       0 mmcblk0 1 0 2 0 3 0 4 0 0 5 6\n\
        179       1 mmcblk0p1 1 0 2 0 3 0 4 0 0 5 6\n\
        252       0 dm-0 99 9 99 9 99 9 99 9 9 99 99\n";

    const SYS: [(&str, &str); 6] = [
        ("block/loop0/size", "1"),
        ("block/zram0/size", "1"),
        ("block/nvme0n1/size", "1"),
        ("block/xvda/size", "1"),
        ("block/mmcblk0/size", "1"),
        ("block/dm-0/slaves/nvme0n1", "1"),
    ];

    #[test]
    fn every_operation_counts_once() {
        use Column::*;
        let files = [&SYS[..], &[("diskstats", DISKSTATS)]].concat();
        check(
            &files,
            |probes, root| open(probes, root, root),
            &[
                (DiskReads, 111),
                (DiskWrites, 333),
                (DiskReadSectors, 2022),
                (DiskWriteSectors, 4044),
                (DiskInFlight, 3),
                (DiskIoMs, 0),
                (DiskWeightedMs, 766),
                (DiskReadMs, 5),
                (DiskWriteMs, 7),
            ],
        );
    }

    #[test]
    fn the_busiest_disk_is_the_busiest_now() {
        let dir = tempfile::tempdir().unwrap();
        let tree = FakeTree::new(dir.path());
        SYS.iter().for_each(|(path, text)| tree.file(path, text));
        tree.file("diskstats", DISKSTATS);
        let mut probes = Probes::none();
        open(&mut probes, dir.path(), dir.path());
        read(&mut probes);
        // The old workhorse did 1 ms more, the small one 40.
        tree.file("diskstats", &DISKSTATS.replace(" 2 600 ", " 2 601 ").replace(" 1 50 ", " 1 90 "));
        assert_eq!(read(&mut probes).get(Column::DiskIoMs), Some(40));
        // Then it works again. It has still done less than the other since the start, and counts all the same.
        tree.file("diskstats", &DISKSTATS.replace(" 2 600 ", " 2 631 ").replace(" 1 50 ", " 1 90 "));
        assert_eq!(read(&mut probes).get(Column::DiskIoMs), Some(70));
    }
}
