//! What the server's processes share: their proportional (PSS) and unique (USS) memory, and what of them is in swap.
//!
//! The kernel walks all pages of a process to tell it, some milliseconds for 200 MB, and holds a lock of its memory meanwhile, so
//! that the process cannot fault. So it is done rarely, in a thread of its own at ordinary priority, and not at all while memory
//! is short; then only the swap is told, by status files, which take no such lock.

use super::Probes;
use super::tree::ROOM;
use crate::appointments::now;
use crate::source::{Buffer, Source};
use crate::text::{fields, lines, number};
use crate::watch::Watch;
use model::Nanos;
use model::reading::{ABSENT, Column, Reading};
use rustix::time::{ClockId, clock_gettime};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Stack of the thread.
const STACK: usize = 128 * 1024;

/// Memory is short while all tasks together waited for it for at least this part of the last ten seconds, in percent.
const SHORT_FULL: f64 = 1.0;

/// The same where one task waited.
const SHORT_SOME: f64 = 10.0;

/// Where pressure is not told: memory is short when less than one part in so many is available.
const SHORT_AVAILABLE: u64 = 20;

/// The processes of the tree, as the thread that follows them tells, and what was found of them.
#[derive(Clone)]
pub(super) struct Members(Arc<Shared>);

struct Shared {
    who: Mutex<Who>,
    /// Somebody is there to be looked at.
    news: Condvar,
    known: Known,
}

/// Who they are.
struct Who {
    pids: Vec<u32>,
    /// The how manieth tree it is.
    tree: u64,
}

impl Members {
    fn new() -> Self {
        let who = Mutex::new(Who { pids: Vec::with_capacity(ROOM), tree: 0 });
        Members(Arc::new(Shared { who, news: Condvar::new(), known: Known::default() }))
    }

    /// Says who they are now; while somebody reads them they stay as they were. What was found of a tree that is no more is
    /// forgotten.
    pub(super) fn are(&self, pids: impl Iterator<Item = u32>) {
        let Ok(mut who) = self.0.who.try_lock() else { return };
        let were_none = who.pids.is_empty();
        who.pids.clear();
        who.pids.extend(pids.take(ROOM));
        match (were_none, who.pids.is_empty()) {
            (true, false) => self.0.news.notify_one(),
            (false, true) => {
                who.tree += 1;
                self.0.known.forget();
            }
            _ => {}
        }
    }

    /// They are others from now on.
    pub(super) fn begin_anew(&self) {
        self.are(std::iter::empty());
    }

    /// Waits until there are any, and says of which tree.
    fn copy_to(&self, pids: &mut Vec<u32>) -> u64 {
        let who = self.lock();
        let who = self.0.news.wait_while(who, |who| who.pids.is_empty()).unwrap_or_else(PoisonError::into_inner);
        pids.clear();
        pids.extend(&who.pids);
        who.tree
    }

    /// Waits so long, or until another tree is there.
    fn rest(&self, every: Duration, tree: u64) {
        let same = |who: &mut Who| who.tree == tree;
        drop(self.0.news.wait_timeout_while(self.lock(), every, same));
    }

    /// Remembers what was found of a tree, if it is still there.
    fn found(&self, tree: u64, remember: impl FnOnce(&Known)) {
        let who = self.lock();
        if who.tree == tree {
            remember(&self.0.known);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Who> {
        self.0.who.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Starts the thread, if that was asked for; who the processes are must be told to it.
pub(super) fn open(probes: &mut Probes, watch: &Watch) -> Option<Members> {
    let every = Duration::from_nanos(watch.shares_period_ns?);
    let members = Members::new();
    let looker = Looker::new(&watch.proc_root);
    let theirs = members.clone();
    let thread = std::thread::Builder::new().name("shares".to_owned()).stack_size(STACK);
    match thread.spawn(move || look_every(every, looker, &theirs)) {
        Ok(_) => Some(members),
        Err(error) => {
            probes.notes.push(format!("shared memory cannot be watched ({error}): its columns are absent"));
            None
        }
    }
}

/// What was found last.
struct Known {
    pss: AtomicU64,
    uss: AtomicU64,
    swap: AtomicU64,
    /// When.
    at: AtomicU64,
    cost: AtomicU64,
}

impl Default for Known {
    fn default() -> Self {
        let absent = || AtomicU64::new(ABSENT);
        Known { pss: absent(), uss: absent(), swap: absent(), at: absent(), cost: absent() }
    }
}

impl Known {
    fn forget(&self) {
        let Known { pss, uss, swap, at, cost } = self;
        [at, pss, uss, swap, cost].into_iter().for_each(|value| value.store(ABSENT, Ordering::Release));
    }
}

impl Members {
    /// Puts what is known into a row.
    pub(super) fn tell(&self, row: &mut Reading) {
        let Known { pss, uss, swap, at, cost } = &self.0.known;
        let at = at.load(Ordering::Acquire);
        for (column, value) in
            [(Column::TreePss, pss), (Column::TreeUss, uss), (Column::TreeSwap, swap), (Column::TreeSharesCostNs, cost)]
        {
            row.set(column, value.load(Ordering::Relaxed));
        }
        if at != ABSENT {
            row.set(Column::TreeSharesAgeNs, now().saturating_sub(at));
        }
    }
}

fn look_every(every: Duration, mut looker: Looker, members: &Members) {
    ordinary_priority();
    let mut pids = Vec::with_capacity(ROOM);
    loop {
        let tree = members.copy_to(&mut pids);
        let began = thread_time();
        let found = looker.look(&pids);
        let cost = thread_time().saturating_sub(began);
        members.found(tree, |known| {
            known.swap.store(found.swap, Ordering::Relaxed);
            if let Some([pss, uss]) = found.shares {
                known.pss.store(pss, Ordering::Relaxed);
                known.uss.store(uss, Ordering::Relaxed);
                known.cost.store(cost, Ordering::Relaxed);
                known.at.store(now(), Ordering::Release);
            }
        });
        members.rest(every, tree);
    }
}

/// Gives back the priority that was inherited: what is done here may take its time.
fn ordinary_priority() {
    let parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: 0 is the calling thread and `parameters` lives until the call returns. Refused, it only is more in a hurry.
    let _ = unsafe { libc::sched_setscheduler(0, libc::SCHED_OTHER, &raw const parameters) };
}

/// CPU time of the calling thread.
pub(super) fn thread_time() -> Nanos {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * model::SECOND + time.tv_nsec as u64
}

/// What was found of all processes together, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Found {
    /// PSS and USS, unless memory was short or the kernel would not tell.
    shares: Option<[u64; 2]>,
    swap: u64,
}

struct Looker {
    proc_root: PathBuf,
    pressure: Option<Source>,
    meminfo: Option<Source>,
    buffer: Buffer,
}

impl Looker {
    fn new(proc_root: &Path) -> Self {
        let mut buffer = Buffer::new();
        // Some open well and refuse to be read: pressure switched off at boot.
        let mut open = |file| Source::open(&proc_root.join(file)).ok().filter(|file| file.read(&mut buffer).is_ok());
        let (pressure, meminfo) = (open("pressure/memory"), open("meminfo"));
        Looker { proc_root: proc_root.to_owned(), pressure, meminfo, buffer }
    }

    fn look(&mut self, pids: &[u32]) -> Found {
        self.shares(pids).unwrap_or_else(|| {
            let swap = pids
                .iter()
                .filter_map(|&pid| self.kib(pid, "status", &[b"VmSwap:"]))
                .map(|[swap]| swap.saturating_mul(1024));
            Found { shares: None, swap: swap.fold(0, u64::saturating_add) }
        })
    }

    /// `None` as soon as memory is short, or when no process could be looked at.
    fn shares(&mut self, pids: &[u32]) -> Option<Found> {
        let names: [&[u8]; 4] = [b"Pss:", b"Private_Clean:", b"Private_Dirty:", b"Swap:"];
        let (mut seen, mut sums) = (false, [0u64; 3]);
        for &pid in pids {
            if self.memory_is_short() {
                return None;
            }
            // One that has ended meanwhile has nothing any more.
            if let Some([pss, clean, dirty, swap]) = self.kib(pid, "smaps_rollup", &names) {
                seen = true;
                for (sum, kib) in sums.iter_mut().zip([pss, clean.saturating_add(dirty), swap]) {
                    *sum = sum.saturating_add(kib.saturating_mul(1024));
                }
            }
        }
        let [pss, uss, swap] = sums;
        seen.then_some(Found { shares: Some([pss, uss]), swap })
    }

    /// The numbers of those lines of a file of a process, 0 for one that is not there; `None` when there is no such file.
    fn kib<const N: usize>(&mut self, pid: u32, file: &str, names: &[&[u8]; N]) -> Option<[u64; N]> {
        let source = Source::open(&self.proc_root.join(pid.to_string()).join(file)).ok()?;
        let text = source.read(&mut self.buffer).ok()?;
        let mut found = [0; N];
        for line in lines(text) {
            let mut fields = fields(line);
            let name = fields.next();
            if let Some(at) = names.iter().position(|wanted| Some(*wanted) == name) {
                found[at] = fields.next().and_then(number).unwrap_or(0);
            }
        }
        Some(found)
    }

    fn memory_is_short(&mut self) -> bool {
        match (&self.pressure, &self.meminfo) {
            (Some(pressure), _) => pressure.read(&mut self.buffer).is_ok_and(is_short),
            (None, Some(meminfo)) => meminfo.read(&mut self.buffer).is_ok_and(little_is_available),
            (None, None) => false,
        }
    }
}

/// `some avg10=0.00 avg60=0.00 avg300=0.00 total=20`
fn is_short(text: &[u8]) -> bool {
    lines(text).any(|line| {
        let limit = if line.starts_with(b"full ") { SHORT_FULL } else { SHORT_SOME };
        let average = fields(line).find_map(|field| field.strip_prefix(b"avg10="));
        let average = average.and_then(|text| std::str::from_utf8(text).ok()).and_then(|text| text.parse::<f64>().ok());
        average.is_some_and(|average| average >= limit)
    })
}

/// `MemAvailable:   9000 kB`, from Linux 3.14 on.
fn little_is_available(meminfo: &[u8]) -> bool {
    let kib = |name: &[u8]| {
        let line = lines(meminfo).find(|line| line.starts_with(name))?;
        fields(line).nth(1).and_then(number)
    };
    let (total, available) = (kib(b"MemTotal:"), kib(b"MemAvailable:"));
    total.zip(available).is_some_and(|(total, available)| available < total / SHORT_AVAILABLE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use testkit::fake_proc::FakeTree;

    const ROLLUP: &str = "55d0-7ffe ---p 00000000 00:00 0    [rollup]\nRss:  900 kB\nPss:  500 kB\nPss_Dirty: 7 kB\n\
        Shared_Clean: 400 kB\nPrivate_Clean: 30 kB\nPrivate_Dirty: 200 kB\nSwap: 50 kB\nSwapPss: 50 kB\n";

    fn check(files: &[(&str, &str)], expected: Found) {
        let dir = tempfile::tempdir().unwrap();
        let tree = FakeTree::new(dir.path());
        files.iter().for_each(|(path, text)| tree.file(path, text));
        assert_eq!(Looker::new(dir.path()).look(&[10, 11, 12]), expected, "{files:?}");
    }

    #[test]
    fn shares_are_summed_over_the_tree() {
        let shares = Some([2 * 500 * 1024, 2 * 230 * 1024]);
        let two = [("10/smaps_rollup", ROLLUP), ("12/smaps_rollup", ROLLUP)];
        check(&two, Found { shares, swap: 100 * 1024 });
        let calm = ("pressure/memory", "some avg10=9.99 avg60=90.00\nfull avg10=0.99 avg60=50.00\n");
        check(&[two[0], two[1], calm], Found { shares, swap: 100 * 1024 });
    }

    #[test]
    fn while_memory_is_short_only_swap_is_looked_at() {
        let files = |pressure| {
            let status = "Name: a\nVmRSS: 5 kB\nVmSwap: 70 kB\n";
            [("10/smaps_rollup", ROLLUP), ("10/status", status), ("11/status", status), ("pressure/memory", pressure)]
        };
        check(&files("some avg10=10.00\nfull avg10=0.00\n"), Found { shares: None, swap: 140 * 1024 });
        check(&files("some avg10=2.00\nfull avg10=1.00\n"), Found { shares: None, swap: 140 * 1024 });
    }

    #[test]
    fn where_pressure_is_not_told_memory_is_short_when_little_is_available() {
        let files = |meminfo| [("10/smaps_rollup", ROLLUP), ("meminfo", meminfo)];
        let shares = Some([500 * 1024, 230 * 1024]);
        check(&files("MemTotal: 1000 kB\nMemAvailable: 50 kB\n"), Found { shares, swap: 50 * 1024 });
        check(&files("MemTotal: 1000 kB\nMemAvailable: 49 kB\n"), Found { shares: None, swap: 0 });
        check(&files("MemTotal: 1000 kB\nMemFree: 49 kB\n"), Found { shares, swap: 50 * 1024 });
    }

    #[test]
    fn what_is_not_told_is_absent() {
        check(&[("11/status", "VmSwap: 1 kB\n")], Found { shares: None, swap: 1024 });
        check(&[], Found { shares: None, swap: 0 });
    }

    #[test]
    fn what_was_found_of_a_tree_ends_with_it() {
        let members = Members::new();
        let swap = || {
            let mut row = Reading::empty(0);
            members.tell(&mut row);
            row.get(Column::TreeSwap)
        };
        members.are([7].into_iter());
        let mut pids = Vec::new();
        let tree = members.copy_to(&mut pids);
        members.found(tree, |known| known.swap.store(5, Ordering::Relaxed));
        assert_eq!((pids.as_slice(), swap()), (&[7][..], Some(5)));
        // It is another one while this one is being looked at.
        members.begin_anew();
        assert_eq!(swap(), None);
        members.found(tree, |known| known.swap.store(6, Ordering::Relaxed));
        assert_eq!(swap(), None);
        // And then nobody sleeps until the old tree's turn.
        members.are([8].into_iter());
        members.rest(Duration::MAX, tree);
        assert_ne!(members.copy_to(&mut pids), tree);
        assert_eq!(pids, [8]);
    }

    #[test]
    fn the_live_kernel_knows_our_own_shares() {
        let mut looker = Looker::new(Path::new("/proc"));
        (looker.pressure, looker.meminfo) = (None, None);
        match looker.look(&[std::process::id()]).shares {
            Some([pss, uss]) => assert!(uss > 100 * 1024 && uss <= pss, "{uss} {pss}"),
            None => testkit::skip::not_here("no smaps_rollup (it came with Linux 4.14)"),
        }
    }
}
