//! In its steady state the engine allocates nothing per request. A test program of its own, because it counts every
//! allocation of the process, the scripted server's own threads excepted.

use load::{Control, Target, run};
use model::SECOND;
use model::plan::LoadSpec;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use testkit::scripted::{Scripted, Step, answer};

struct Counting;

static COUNT: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static IS_SERVER: Cell<bool> = const { Cell::new(false) };
}

// SAFETY: hands every call on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if !IS_SERVER.get() {
            COUNT.fetch_add(1, Ordering::Relaxed);
        }
        // SAFETY: the caller keeps the contract of `alloc`, which is the same here.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `dealloc`, and the pointer came from `System`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn allocations(requests: u64) -> u64 {
    let server = Scripted::start(|_| {
        IS_SERVER.set(true);
        vec![Step::Send(answer(200, "abc"))]
    });
    let spec = LoadSpec {
        connections: 4,
        threads: Some(1),
        requests: Some(requests),
        timeout_ns: 20 * SECOND,
        ..LoadSpec::of("test", "/")
    };
    let target = Target::new(server.address(), "localhost");
    let before = COUNT.load(Ordering::Relaxed);
    let mut control = Control { stop: &AtomicBool::new(false), on_interval: &mut |_| {} };
    let result = run(&spec, &target, &[], &mut control).expect("the load starts");
    assert_eq!(result.counts.good, requests);
    COUNT.load(Ordering::Relaxed) - before
}

#[test]
fn more_requests_are_not_more_allocations() {
    let few = allocations(500);
    let many = allocations(5500);
    // A slow machine takes a few seconds more for the many, and each second costs some allocations.
    assert!(many < few + 500, "{few} allocations for 500 requests, {many} for 5500");
}
