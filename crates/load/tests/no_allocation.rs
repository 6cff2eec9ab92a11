//! In its steady state the engine allocates nothing per request. A test program of its own, because it counts every
//! allocation of the process, the scripted server's own threads excepted.

use load::{Control, Target, run};
use model::SECOND;
use model::plan::{Body, Check, LoadSpec, RequestSpec};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use testkit::scripted::{Scripted, Step};

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

/// How many allocations so many requests take.
fn allocations(spec: &LoadSpec, requests: u64) -> u64 {
    let server = Scripted::start(|_| {
        IS_SERVER.set(true);
        let head = "HTTP/1.1 200 X\r\nSet-Cookie: a=1\r\nX-A: 1\r\nContent-Length: 3\r\n\r\nabc";
        vec![Step::Send(head.as_bytes().to_vec())]
    });
    let spec = LoadSpec {
        connections: 4,
        threads: Some(1),
        requests: Some(requests),
        timeout_ns: 20 * SECOND,
        ..spec.clone()
    };
    let target = Target::new(server.address(), "localhost");
    let before = COUNT.load(Ordering::Relaxed);
    let mut control = Control { stop: &AtomicBool::new(false), on_interval: &mut |_| {} };
    let result = run(&spec, &target, &[], &mut control).expect("the load starts");
    assert_eq!(result.counts.good, requests);
    COUNT.load(Ordering::Relaxed) - before
}

fn check(spec: &LoadSpec) {
    let few = allocations(spec, 500);
    let many = allocations(spec, 5500);
    // A slow machine takes a few seconds more for the many, and each second costs some allocations.
    assert!(many < few + 500, "{few} allocations for 500 requests, {many} for 5500");
}

/// One test, because what it counts is the whole process's.
#[test]
fn more_requests_are_not_more_allocations() {
    check(&LoadSpec::of("test", "/"));
    let one = RequestSpec {
        method: "POST".to_owned(),
        headers: vec![("Cookie".to_owned(), "b=2".to_owned()), ("X-Id".to_owned(), "${hex:16}".to_owned())],
        body: Some(Body::written("n=${counter}&r=${random:1-1000000}")),
        ..RequestSpec::get("/${counter}")
    };
    let checks = ["status = 200", "header x-a = 1", "body contains bc", "body matches ^a.c$"];
    let checks = checks.map(|text| Check::parse(text).expect("a check")).to_vec();
    check(&LoadSpec { mix: vec![one, RequestSpec::get("/")], checks, cookies: true, ..LoadSpec::of("test", "/") });
}
