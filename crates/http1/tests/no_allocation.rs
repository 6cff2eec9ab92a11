//! Parsing answers of the usual kind allocates nothing once the parser has seen one. A test program of its own, because it
//! counts every allocation of its thread.

use http1::{Method, Parser};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Counting;

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: hands every call on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.set(COUNT.get() + 1);
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

/// Allocations of the second to the hundredth answer, given in pieces of `size` bytes.
fn check(answer: &[u8], size: usize) {
    let mut parser = Parser::new(Method::Get);
    let mut parse = || answer.chunks(size).filter_map(|piece| parser.feed(piece).expect("it is HTTP").answer).count();
    assert_eq!(parse(), 1);
    let before = COUNT.get();
    let answers: usize = (1..100).map(|_| parse()).sum();
    assert_eq!((answers, COUNT.get() - before), (99, 0), "in pieces of {size}");
}

#[test]
fn the_first_answer_pays_for_all() {
    let plain = b"HTTP/1.1 200 OK\r\nServer: x\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\nhello";
    let chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n0\r\nX: y\r\n\r\n";
    for size in [1, 7, 1000] {
        check(plain, size);
        check(chunked, size);
    }
}
