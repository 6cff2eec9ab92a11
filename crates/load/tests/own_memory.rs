//! Workers write to memory of their own: connections, histograms and queues of one share no cache line with another's. A test
//! program of its own, because it looks at every allocation of the process.

use load::{Control, Target, run};
use model::SECOND;
use model::plan::LoadSpec;
use std::alloc::{GlobalAlloc, Layout, System};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use testkit::scripted::{Scripted, Step, answer};

struct Noting;

const CACHE_LINE: usize = 64;
/// What is smaller may lie in what the starting thread gave away with the worker: names, the first request of a connection.
const SMALL: usize = 256;
const ROOM: usize = 1 << 16;
// Of each allocation of a worker: its thread, where it is and how long.
static NOTES: [[AtomicUsize; 3]; ROOM] = [const { [const { AtomicUsize::new(0) }; 3] }; ROOM];
static NOTED: AtomicUsize = AtomicUsize::new(0);

/// Whether the calling thread has the name of a worker.
fn is_worker() -> bool {
    let mut name = [0_u8; 16];
    // SAFETY: the kernel writes at most 16 bytes there.
    let done = unsafe { libc::prctl(libc::PR_GET_NAME, name.as_mut_ptr()) };
    done == 0 && name.starts_with(b"load\0")
}

fn note(at: usize, length: usize) {
    if is_worker() {
        let index = NOTED.fetch_add(1, Ordering::Relaxed);
        let thread = rustix::thread::gettid().as_raw_nonzero().get() as usize;
        if let Some(note) = NOTES.get(index) {
            note.iter().zip([thread, at, length]).for_each(|(word, value)| word.store(value, Ordering::Relaxed));
        }
    }
}

// SAFETY: hands every call on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Noting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract of `alloc`, which is the same here.
        let pointer = unsafe { System.alloc(layout) };
        note(pointer as usize, layout.size());
        pointer
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `dealloc`, and the pointer came from `System`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Noting = Noting;

#[test]
fn no_cache_line_belongs_to_two_workers() {
    // The allocator of glibc has memory for 8 threads per CPU, and the server's threads have a share of it here.
    let threads = 2;
    let server = Scripted::always(vec![Step::Send(answer(200, "abc"))]);
    // Long enough for all workers to be at work at once, because a thread may get the memory of one that has ended; and less
    // than a second, after which a worker has made histograms of its own in any case.
    let spec = LoadSpec {
        connections: 2,
        threads: Some(threads),
        duration_ns: Some(SECOND / 2),
        timeout_ns: 20 * SECOND,
        ..LoadSpec::of("test", "/")
    };
    let mut control = Control { stop: &AtomicBool::new(false), on_interval: &mut |_| {} };
    let result = run(&spec, &Target::new(server.address(), "localhost"), &[], &mut control).expect("the load starts");
    assert_eq!((result.counts.connects, result.generator.threads), (2, threads));

    let noted = NOTED.load(Ordering::Relaxed);
    assert!(noted <= ROOM, "{noted} allocations");
    let mut owners = BTreeMap::new();
    let mut largest = BTreeMap::new();
    for note in &NOTES[..noted] {
        let [thread, at, length] = note.each_ref().map(|word| word.load(Ordering::Relaxed));
        if length < SMALL {
            continue;
        }
        let most = largest.entry(thread).or_insert(0);
        *most = length.max(*most);
        for line in at / CACHE_LINE..=(at + length - 1) / CACHE_LINE {
            let owner = *owners.entry(line).or_insert(thread);
            assert_eq!(owner, thread, "both wrote to the line at {:#x}", line * CACHE_LINE);
        }
    }
    // Each worker has made its first histograms itself.
    assert_eq!(largest.len(), threads as usize);
    assert!(largest.values().all(|length| *length > 100_000), "{largest:?}");
}
