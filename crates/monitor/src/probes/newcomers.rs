//! Which processes have come since the last scan, found without listing the host's.
//!
//! The kernel gives numbers out in turn and tells the last one in /proc/loadavg (proc(5)). What lies between two of them are the
//! processes and threads that came meanwhile; only when these are many, or the numbers began anew, is a listing cheaper or needed.
//! A number is given out a little before its process can be seen: one that was not there is tried once more at the next scan.

use crate::source::{Buffer, Source};
use crate::text::{fields, number};
use std::path::Path;

/// More new numbers than this are found by a listing: it costs about as much as looking at so many.
const FEW: u32 = 64;

/// Numbers before the last one that may have been given out and not be seen yet when the host's processes are listed.
const UNSEEN: u32 = 8;

/// Scans after which the host's processes are listed in any case.
const LIST_EVERY: u32 = 16;

/// The file system of a program (linux/magic.h), which may make up what it tells.
const FUSE: i64 = 0x6573_5546;

/// The numbers given out since the last scan.
pub(super) struct Newcomers {
    loadavg: Option<Source>,
    /// The last number given out before the last scan.
    last: Option<u32>,
    /// Those to be looked at in this scan, behind those that were not there in the last one.
    numbers: Vec<u32>,
    /// How many were not there.
    again: usize,
    /// Scans since the last listing.
    scans: u32,
}

impl Newcomers {
    /// Opens /proc/loadavg. Without it every scan lists the host's processes, and so it does if the numbers in that file are not
    /// those under `proc_root`: another container's, or made up as lxcfs does.
    pub(super) fn open(proc_root: &Path) -> Newcomers {
        let own = std::fs::read_link(proc_root.join("self")).is_ok_and(|own| own == *std::process::id().to_string());
        let loadavg = Source::open(&proc_root.join("loadavg")).ok();
        let loadavg = loadavg.filter(|loadavg| own && !loadavg.lies_on(FUSE));
        Newcomers { loadavg, last: None, numbers: Vec::with_capacity(2 * FEW as usize), again: 0, scans: 0 }
    }

    /// Begins a scan. True if the new processes are among `numbers`; false if the host's must be listed, as for `unknown` ones.
    pub(super) fn begin(&mut self, buffer: &mut Buffer, unknown: bool) -> bool {
        self.scans += 1;
        let last = self.loadavg.as_ref().and_then(|loadavg| last_number(loadavg.read(buffer).ok()?));
        let before = std::mem::replace(&mut self.last, last);
        // Smaller than before: the numbers began anew.
        let new = before.zip(last).filter(|(before, last)| last.checked_sub(*before).is_some_and(|count| count <= FEW));
        match new {
            Some((before, last)) if !unknown && self.scans < LIST_EVERY => {
                self.again = self.numbers.len();
                self.numbers.extend(before + 1..=last);
                true
            }
            _ => {
                (self.scans, self.again) = (0, 0);
                self.numbers.clear();
                self.numbers.extend(last.into_iter().flat_map(|last| last.saturating_sub(UNSEEN)..=last));
                false
            }
        }
    }

    /// The next scan lists the host's processes, whatever came since.
    pub(super) fn list_next(&mut self) {
        self.last = None;
    }

    /// The numbers to be looked at.
    pub(super) fn numbers(&self) -> &[u32] {
        &self.numbers
    }

    /// Keeps those that were not there for the next scan: once.
    pub(super) fn end(&mut self, is_missing: impl Fn(u32) -> bool) {
        self.numbers.drain(..self.again);
        self.numbers.retain(|&pid| is_missing(pid));
    }
}

/// `0.52 1.00 12.34 1/79 1234`
fn last_number(text: &[u8]) -> Option<u32> {
    u32::try_from(number(fields(text).nth(4)?)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use testkit::fake_proc::FakeTree;

    struct Fake {
        _dir: tempfile::TempDir,
        tree: FakeTree,
        newcomers: Newcomers,
        buffer: Buffer,
    }

    fn fake(own: u32) -> Fake {
        let dir = tempfile::tempdir().unwrap();
        let tree = FakeTree::new(dir.path());
        tree.file("loadavg", "0.52 1.00 12.34 1/79 1000\n");
        std::os::unix::fs::symlink(own.to_string(), dir.path().join("self")).unwrap();
        let newcomers = Newcomers::open(dir.path());
        Fake { _dir: dir, tree, newcomers, buffer: Buffer::new() }
    }

    impl Fake {
        /// A scan with that last number, and those that are not there; what is looked at, or `None` for a listing.
        fn scan(&mut self, last: u32, unknown: bool, missing: &[u32]) -> Option<Vec<u32>> {
            self.tree.file("loadavg", &format!("0.52 1.00 12.34 1/79 {last}\n"));
            let by_number = self.newcomers.begin(&mut self.buffer, unknown);
            let numbers = self.newcomers.numbers().to_vec();
            self.newcomers.end(|pid| missing.contains(&pid));
            by_number.then_some(numbers)
        }
    }

    #[test]
    fn what_lies_between_two_last_numbers_is_new() {
        let mut fake = fake(std::process::id());
        assert_eq!(fake.scan(1000, false, &[1000]), None, "the first lists");
        assert_eq!(
            fake.scan(1002, false, &[1001, 1002]),
            Some(vec![1000, 1001, 1002]),
            "not seen before; and two new ones"
        );
        assert_eq!(fake.scan(1002, false, &[1001]), Some(vec![1001, 1002]), "once more");
        assert_eq!(fake.scan(1002, false, &[]), Some(vec![]), "and no more");
    }

    #[test]
    fn when_a_listing_is_due() {
        let mut fake = fake(std::process::id());
        fake.scan(1000, false, &[]);
        assert_eq!(fake.scan(1000 + FEW + 1, false, &[]), None, "many");
        assert_eq!(fake.scan(300, false, &[]), None, "numbers began anew");
        assert_eq!(fake.scan(301, true, &[]), None, "one is not known");
        let listed = (1..20).position(|_| fake.scan(301, false, &[]).is_none());
        assert_eq!(listed, Some(LIST_EVERY as usize - 1), "after a while");
    }

    #[test]
    fn the_numbers_of_another_place_say_nothing() {
        let mut fake = fake(1);
        assert_eq!([fake.scan(1000, false, &[]), fake.scan(1001, false, &[])], [None, None]);
    }
}
