//! The kernel's accounts of a server's processes over a window, read in a thread of this process beside a load.
//!
//! Workers, the children of the roots, are asked about at every look, so that what one did between two instants is a difference; where one
//! has several threads, each of these, too. Of what else belongs to the tree, such as CGI programs, the kernel tells when it ends. At every
//! look those that are blocked are seen where in the kernel they are, since its counters of causes overlap and those of disks have been wrong (see `docs/latency-budget.md`).

use crate::appointments::now;
use crate::probes::AcceptLook;
use crate::taskstats::{Ended, TaskStats};
use crate::text::{fields, number, stat};
use model::Nanos;
use model::accounts::Delays;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Between two looks at the processes.
const LOOK_NS: Nanos = 50_000_000;
/// Looks take at most one of so many parts of a CPU: those at a thousand threads are rarer,
const LOOK_PART: Nanos = 25;
/// but never more than this apart.
const LOOK_MOST_NS: Nanos = 500_000_000;
/// Between two looks at the accept queue: a look takes less than 20 µs.
const QUEUE_NS: Nanos = 5_000_000;
/// How much of what a C library keeps of a thread is read, in bytes: glibc has the kernel's number at 720.
const NAMED: usize = 1024;

/// Reads the accounts until it is told to end.
pub struct Accountant {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Books>,
}

/// What was read.
#[derive(Debug, Default)]
pub struct Books {
    /// By worker: its accounts at each look, ascending; one that came later begins with none.
    pub workers: BTreeMap<u32, Vec<(Nanos, Delays)>>,
    /// The same of each thread of a worker that has several, but for its first.
    pub threads: BTreeMap<u32, Vec<(Nanos, Delays)>>,
    /// Processes of the tree that ended and were no workers.
    pub ended: Vec<EndedProcess>,
    /// What processes and those threads were seen doing: when, who, and what.
    pub looks: Vec<(Nanos, u32, Doing)>,
    /// Time between two such looks, on average.
    pub look_ns: Nanos,
    /// Connections that waited to be accepted, look by look; empty where the kernel does not tell.
    pub queue: Vec<(Nanos, u64)>,
    /// Whether that was ever as many as may wait.
    pub queue_was_full: bool,
    /// CPU time of the workers' children that ended, as their parents were told; `None` when a worker itself ended.
    pub cpu_by_parents_ns: Option<Nanos>,
    /// Whether the kernel could not keep all ends for us.
    pub lost: bool,
}

/// A process that ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EndedProcess {
    /// The process.
    pub pid: u32,
    /// Its parent.
    pub parent: u32,
    /// When it ended.
    pub at_ns: Nanos,
    /// How long it lived.
    pub elapsed_ns: Nanos,
    /// What that went to, all its threads together.
    pub delays: Delays,
}

/// What a process is seen doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doing {
    /// It is on a CPU, or waits for one.
    Runnable,
    /// Blocked, making room in memory.
    Reclaim,
    /// Blocked, reading a page back from swap.
    Swap,
    /// Blocked, reading or writing a file.
    Disk,
    /// Blocked in anything else: a lock, a socket, a pipe.
    Other,
}

/// Whether the kernel tells its accounts here.
///
/// # Errors
/// When it does not, or not to us.
pub fn may_account() -> io::Result<()> {
    listener().map(|_| ())
}

fn listener() -> io::Result<TaskStats> {
    let mut kernel = TaskStats::open()?;
    let cpus = std::fs::read_to_string("/sys/devices/system/cpu/possible")?;
    kernel.listen(cpus.trim())?;
    Ok(kernel)
}

impl Accountant {
    /// Begins with the processes below `roots`, and with the accept queue of `port`.
    ///
    /// # Errors
    /// As [`may_account`], or without a thread.
    pub fn start(proc_root: &Path, roots: &[u32], port: u16) -> io::Result<Accountant> {
        let mut clerk = Clerk {
            listener: listener()?,
            kernel: TaskStats::open()?,
            queue: AcceptLook::open(port).ok(),
            tree: Tree { proc_root: proc_root.to_owned(), roots: roots.to_vec() },
            books: Books::default(),
            ended: Vec::new(),
            looked_ns: None,
        };
        // The window begins when this returns.
        clerk.look();
        let before = clerk.cpu_by_parents();
        let stop = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&stop);
        let work = move || clerk.work(&told, &before);
        let thread = thread::Builder::new().name("accounts".to_owned()).spawn(work)?;
        Ok(Accountant { stop, thread })
    }

    /// Ends, and gives what was read.
    #[must_use]
    pub fn finish(self) -> Books {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

struct Clerk {
    listener: TaskStats,
    kernel: TaskStats,
    queue: Option<AcceptLook>,
    tree: Tree,
    books: Books,
    ended: Vec<Ended>,
    /// When the last look began.
    looked_ns: Option<Nanos>,
}

impl Clerk {
    fn work(mut self, stop: &AtomicBool, before: &BTreeMap<u32, u64>) -> Books {
        let began = now();
        let (mut next_queue, mut next_look, mut looks) = (began, began + LOOK_NS, 0);
        while !stop.load(Ordering::Relaxed) {
            let at = now();
            if at >= next_queue {
                if let Some((waiting, limit)) = self.queue.as_mut().and_then(AcceptLook::look) {
                    self.books.queue.push((at, waiting));
                    self.books.queue_was_full |= waiting >= limit;
                }
                next_queue = at + QUEUE_NS;
            }
            if at >= next_look {
                let before = on_cpu();
                self.look();
                looks += 1;
                // What was missed is not made up for: a look stands for the time between two of them.
                next_look = now() + ((on_cpu() - before) * LOOK_PART).clamp(LOOK_NS, LOOK_MOST_NS);
            }
            // Whoever ends is heard at once, so that it is known when.
            self.listener.wait(Duration::from_nanos(next_queue.saturating_sub(now())));
            self.hear();
        }
        self.look();
        self.hear();
        self.books.look_ns = (now() - began) / (looks + 1);
        self.books.cpu_by_parents_ns = added(before, &self.cpu_by_parents());
        settle(self.books, &self.ended, &self.tree.roots)
    }

    fn hear(&mut self) {
        let Clerk { listener, ended, books, .. } = self;
        books.lost |= !listener.ended(&mut |end| ended.push(end));
    }

    fn look(&mut self) {
        let before = self.looked_ns.replace(now());
        for (pid, depth) in self.tree.below_roots() {
            let is_worker = depth == 1;
            if is_worker && let Some(delays) = self.kernel.process(pid) {
                add(&mut self.books.workers, pid, delays, before);
            }
            let Some((doing, threads)) = self.tree.doing(&pid.to_string()) else { continue };
            self.books.looks.push((now(), pid, doing));
            if is_worker && threads > 1 {
                self.look_at_threads(pid, before);
                // It takes its time, and who ends meanwhile is to be heard when.
                self.hear();
            }
        }
    }

    fn look_at_threads(&mut self, pid: u32, before: Option<Nanos>) {
        for thread in self.tree.threads(pid).into_iter().filter(|thread| *thread != pid) {
            if let Some(delays) = self.kernel.thread(thread) {
                add(&mut self.books.threads, thread, delays, before);
            }
            if let Some((doing, _)) = self.tree.doing(&format!("{pid}/task/{thread}")) {
                self.books.looks.push((now(), thread, doing));
            }
        }
    }

    /// By worker: CPU time of its children that ended, in nanoseconds.
    fn cpu_by_parents(&self) -> BTreeMap<u32, u64> {
        let tick = 1_000_000_000 / rustix::param::clock_ticks_per_second().max(1);
        let workers = self.tree.below_roots().into_iter().filter(|(_, depth)| *depth == 1);
        let told = |(pid, _): (u32, u32)| {
            let text = self.tree.read(&pid.to_string(), "stat")?;
            let (_, fields) = stat(&text)?;
            // Of the children that were waited for: in user mode and in the kernel.
            let mut ticks = fields.skip(13).map(number);
            Some((pid, ticks.next()??.saturating_add(ticks.next()??).saturating_mul(tick)))
        };
        workers.filter_map(told).collect()
    }
}

/// Accounts at a look; of who came since the one before, they begin with none then.
fn add(books: &mut BTreeMap<u32, Vec<(Nanos, Delays)>>, who: u32, delays: Delays, before: Option<Nanos>) {
    let series = books.entry(who).or_default();
    if series.is_empty()
        && let Some(before) = before
    {
        series.push((before, Delays::default()));
    }
    series.push((now(), delays));
}

/// CPU time of this thread.
fn on_cpu() -> Nanos {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as Nanos * 1_000_000_000 + time.tv_nsec as Nanos
}

/// What was added to the workers of before and of after; `None` when one of before has gone.
fn added(before: &BTreeMap<u32, u64>, after: &BTreeMap<u32, u64>) -> Option<u64> {
    if !before.keys().all(|pid| after.contains_key(pid)) {
        return None;
    }
    Some(after.iter().map(|(pid, ns)| ns.saturating_sub(before.get(pid).copied().unwrap_or(0))).sum())
}

/// Sorts the ends of threads into those of workers, those of other processes of the tree, and those of strangers.
fn settle(mut books: Books, ended: &[Ended], roots: &[u32]) -> Books {
    let parents: BTreeMap<u32, u32> = ended.iter().map(|end| (end.process, end.parent)).collect();
    let workers: BTreeSet<u32> = books.workers.keys().copied().collect();
    let mut processes: BTreeMap<u32, EndedProcess> = BTreeMap::new();
    for end in ended {
        let process = processes.entry(end.process).or_insert(EndedProcess {
            pid: end.process,
            parent: end.parent,
            at_ns: end.at_ns,
            elapsed_ns: 0,
            delays: Delays::default(),
        });
        process.delays += end.delays;
        process.at_ns = process.at_ns.max(end.at_ns);
        process.elapsed_ns = process.elapsed_ns.max(end.elapsed_ns);
    }
    for process in processes.into_values() {
        if workers.contains(&process.pid) || roots.contains(&process.parent) {
            // One that lives has lost only a thread, which its own accounts keep.
            let lives = !ended.iter().any(|end| end.pid == process.pid);
            let began_ns = process.at_ns.saturating_sub(process.elapsed_ns);
            let series = books.workers.entry(process.pid).or_insert_with(|| vec![(began_ns, Delays::default())]);
            if !lives {
                series.push((process.at_ns, process.delays));
            }
        } else if descends(process.parent, &parents, &workers) {
            books.ended.push(process);
        }
    }
    books
}

/// Whether a process is one of those, or a descendant of one as far as is known.
fn descends(mut pid: u32, parents: &BTreeMap<u32, u32>, from: &BTreeSet<u32>) -> bool {
    // Numbers may come again, so that a chain could go in circles.
    for _ in 0..32 {
        if from.contains(&pid) {
            return true;
        }
        match parents.get(&pid) {
            Some(&parent) => pid = parent,
            None => return false,
        }
    }
    false
}

/// The processes below some roots.
struct Tree {
    proc_root: PathBuf,
    roots: Vec<u32>,
}

impl Tree {
    /// Each with its distance to its root.
    fn below_roots(&self) -> Vec<(u32, u32)> {
        let mut found: Vec<(u32, u32)> = self.roots.iter().map(|&pid| (pid, 0)).collect();
        let mut next = 0;
        while let Some(&(pid, depth)) = found.get(next) {
            next += 1;
            let children = self.read(&pid.to_string(), &format!("task/{pid}/children")).unwrap_or_default();
            let pids = fields(&children).filter_map(|field| u32::try_from(number(field)?).ok());
            found.extend(pids.map(|child| (child, depth + 1)));
        }
        found.split_off(self.roots.len())
    }

    /// A file of a process, `4711`, or of a thread, `4711/task/4712`.
    fn read(&self, of: &str, file: &str) -> Option<Vec<u8>> {
        std::fs::read(self.proc_root.join(of).join(file)).ok()
    }

    /// All threads of a process, its first among them.
    fn threads(&self, pid: u32) -> Vec<u32> {
        threads(&self.proc_root, pid)
    }

    /// What a process or a thread does, and how many threads its process has; `None` when it is none any more.
    fn doing(&self, of: &str) -> Option<(Doing, u64)> {
        let text = self.read(of, "stat")?;
        let (_, mut fields) = stat(&text)?;
        let doing = match fields.next()? {
            b"R" => Doing::Runnable,
            b"S" => Doing::Other,
            b"D" => Doing::of(&String::from_utf8_lossy(&self.read(of, "stack")?)),
            _ => return None,
        };
        Some((doing, fields.nth(16).and_then(number).unwrap_or(1)))
    }
}

fn threads(proc_root: &Path, pid: u32) -> Vec<u32> {
    let tasks = std::fs::read_dir(proc_root.join(format!("{pid}/task"))).into_iter().flatten();
    tasks.filter_map(|task| task.ok()?.file_name().to_str()?.parse().ok()).collect()
}

/// The threads of a process that lives, by the address (`pthread_t`) by which programs name them. What lies there is the C library's own;
/// the kernel's number of the thread is in it, at a place of the library's choice.
#[must_use]
pub fn threads_named(pid: u32, names: &BTreeSet<u64>) -> BTreeMap<u64, u32> {
    let threads: BTreeSet<u32> = threads(Path::new("/proc"), pid).into_iter().collect();
    let Ok(memory) = std::fs::File::open(format!("/proc/{pid}/mem")) else { return BTreeMap::new() };
    let read = |name: &u64| {
        let mut bytes = [0; NAMED];
        memory.read_exact_at(&mut bytes, *name).is_ok().then_some((*name, bytes))
    };
    numbered(&names.iter().filter_map(read).collect::<Vec<_>>(), &threads)
}

/// Each name with the number at the place where most have that of a thread, none the same.
fn numbered(read: &[(u64, [u8; NAMED])], threads: &BTreeSet<u32>) -> BTreeMap<u64, u32> {
    let at = |place: usize| {
        let number = |bytes: &[u8; NAMED]| u32::from_ne_bytes(std::array::from_fn(|byte| bytes[place + byte]));
        let found = read.iter().map(|(name, bytes)| (number(bytes), *name)).filter(|(it, _)| threads.contains(it));
        found.collect::<BTreeMap<u32, u64>>()
    };
    let best = (0..NAMED).step_by(4).map(at).max_by_key(BTreeMap::len).unwrap_or_default();
    best.into_iter().map(|(number, name)| (name, number)).collect()
}

impl Doing {
    /// By the functions of the kernel that a process waits in. Whoever makes room for a page from swap makes room.
    fn of(stack: &str) -> Doing {
        let has = |names: &[&str]| names.iter().any(|name| stack.contains(name));
        if has(&["try_to_free", "shrink_", "reclaim", "compact_zone", "migrate_pages"]) {
            Doing::Reclaim
        } else if has(&["do_swap_page", "swapin_", "swap_read", "shmem_swapin"]) {
            Doing::Swap
        } else if has(&["filemap_", "submit_bio", "blk_mq", "io_schedule", "jbd2_", "ext4_", "xfs_", "btrfs_", "fsync"])
        {
            Doing::Disk
        } else {
            Doing::Other
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_a_process_is_blocked() {
        // As Linux 6.18 shows them, shortened.
        let stacks = [
            ("folio_wait_bit_common\n__folio_lock_or_retry\ndo_swap_page\nhandle_mm_fault", Doing::Swap),
            (
                "rq_qos_wait\nwbt_wait\nsubmit_bio_noacct\nswap_writeout\nshrink_folio_list\ndo_swap_page",
                Doing::Reclaim,
            ),
            ("folio_wait_writeback\nshrink_folio_list\ntry_to_free_mem_cgroup_pages\ncharge_memcg", Doing::Reclaim),
            ("folio_wait_bit_common\nfilemap_get_pages\nfilemap_read\next4_file_read_iter", Doing::Disk),
            ("flock_lock_inode_wait\n__x64_sys_flock", Doing::Other),
            ("", Doing::Other),
        ];
        for (stack, expected) in stacks {
            assert_eq!(Doing::of(stack), expected, "{stack}");
        }
    }

    fn end(pid: u32, process: u32, parent: u32, on_cpu_ns: u64) -> Ended {
        let delays = Delays { on_cpu_ns, ..Delays::default() };
        Ended { pid, process, parent, at_ns: 100, elapsed_ns: 10 * on_cpu_ns, delays }
    }

    #[test]
    fn who_ended() {
        let series = vec![(0, Delays::default())];
        let workers = [(11, series.clone()), (12, series)].into();
        let ended = [
            end(11, 11, 1, 5),  // a worker
            end(31, 12, 1, 6),  // a thread of one that lives
            end(13, 13, 1, 7),  // a worker that came and went
            end(21, 21, 11, 1), // a program of a worker's
            end(22, 22, 21, 2), // one that it started
            end(32, 22, 21, 3), // a thread of that
            end(90, 90, 80, 9), // a stranger
        ];
        let books = settle(Books { workers, ..Books::default() }, &ended, &[1]);
        let seen: Vec<(u32, u64)> = books.ended.iter().map(|it| (it.pid, it.delays.on_cpu_ns)).collect();
        assert_eq!(seen, [(21, 1), (22, 5)]);
        let last = |pid: u32| books.workers[&pid].last().map(|(_, delays)| delays.on_cpu_ns);
        assert_eq!([11, 12, 13].map(last), [Some(5), Some(0), Some(7)]);
        // It began before its end.
        assert_eq!(books.workers[&13][0].0, 100 - 70);
        assert_eq!(added(&[(1, 5)].into(), &[(1, 7), (2, 3)].into()), Some(5));
        assert_eq!(added(&[(1, 5)].into(), &[(2, 3)].into()), None);
    }

    #[test]
    fn which_number_a_thread_has() {
        let bytes = |numbers: &[(usize, u32)]| {
            let mut bytes = [0; NAMED];
            numbers.iter().for_each(|(at, number)| bytes[*at..*at + 4].copy_from_slice(&number.to_ne_bytes()));
            bytes
        };
        // At 16 all have the process's, at 40 two their own, and one a thread's that has gone.
        let read = [
            (1000, bytes(&[(16, 7), (40, 8)])),
            (2000, bytes(&[(16, 7), (40, 9)])),
            (3000, bytes(&[(16, 7), (40, 77)])),
        ];
        assert_eq!(numbered(&read, &[7, 8, 9].into()), [(1000, 8), (2000, 9)].into());
        assert_eq!(numbered(&[], &[7].into()), BTreeMap::new());
    }

    #[test]
    fn threads_of_this_process_are_found_and_accounted() {
        if let Err(error) = may_account() {
            return testkit::skip::not_here(&format!("the kernel tells no delays here ({error})"));
        }
        let (tell, told) = std::sync::mpsc::channel();
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let thread = thread::spawn(move || {
            // SAFETY: it only says who asks.
            let name = unsafe { libc::pthread_self() } as u64;
            tell.send((name, rustix::thread::gettid().as_raw_nonzero().get() as u32)).unwrap();
            let _ = ended.recv();
        });
        let (name, number) = told.recv().unwrap();
        assert_eq!(threads_named(std::process::id(), &[name, 1].into()), [(name, number)].into());
        let mut kernel = TaskStats::open().unwrap();
        assert!(kernel.thread(number).is_some_and(|delays| delays.on_cpu_ns > 0));
        drop(end);
        thread.join().unwrap();
        assert_eq!(kernel.thread(u32::MAX >> 1), None);
    }

    #[test]
    fn a_program_and_its_parent() {
        if let Err(error) = may_account() {
            return testkit::skip::not_here(&format!("the kernel tells no delays here ({error})"));
        }
        // This process is the root, a shell its worker, and what that starts the programs.
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", "read go; i=0; while [ $i -lt 3 ]; do sleep 0; i=$((i+1)); done; read go"]);
        let mut shell = shell.stdin(std::process::Stdio::piped()).spawn().unwrap();
        let mut pipe = shell.stdin.take().unwrap();
        // The test's threads are children's parents by thread; the shell is found below the thread that started it.
        let root = Tree { proc_root: "/proc".into(), roots: vec![shell.id()] };
        assert_eq!(root.below_roots(), []);
        let mut clerk = Clerk {
            listener: listener().unwrap(),
            kernel: TaskStats::open().unwrap(),
            queue: None,
            tree: root,
            books: Books::default(),
            ended: Vec::new(),
            looked_ns: None,
        };
        let accounts = clerk.kernel.process(shell.id()).unwrap();
        clerk.books.workers.insert(shell.id(), vec![(now(), accounts)]);
        io::Write::write_all(&mut pipe, b"go\ngo\n").unwrap();
        drop(pipe);
        shell.wait().unwrap();
        clerk.hear();
        let books = settle(clerk.books, &clerk.ended, &[std::process::id()]);
        let programs: Vec<&EndedProcess> = books.ended.iter().filter(|it| it.parent == shell.id()).collect();
        assert_eq!((programs.len(), books.lost), (3, false), "{books:?}");
        assert!(programs.iter().all(|it| it.delays.on_cpu_ns > 0 && it.elapsed_ns > 0), "{programs:?}");
        assert!(books.workers[&shell.id()].last().unwrap().1.on_cpu_ns > accounts.on_cpu_ns);
    }
}
