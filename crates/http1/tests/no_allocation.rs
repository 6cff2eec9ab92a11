//! Parsing answers of the usual kind allocates nothing once the parser has seen some. A test program of its own, because it
//! counts every allocation of its thread.

use http1::{Asked, Memo, Parser};
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

/// Allocations of the third to the hundredth answer, given in pieces of `size` bytes, two heads in turn.
fn check(answers: [&[u8]; 2], size: usize) {
    let (mut parser, mut memo) = (Parser::new(Asked::Content), Memo::default());
    let mut parse = |n: usize| {
        let pieces = answers[n % 2].chunks(size);
        pieces.filter_map(|piece| parser.feed(piece, &mut memo).expect("it is HTTP").answer).count()
    };
    assert_eq!(parse(0) + parse(1), 2);
    let before = COUNT.get();
    let answers: usize = (2..100).map(&mut parse).sum();
    assert_eq!((answers, COUNT.get() - before), (98, 0), "in pieces of {size}");
}

#[test]
fn the_first_answers_pay_for_all() {
    let plain: &[u8] = b"HTTP/1.1 200 OK\r\nServer: x\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\nhello";
    let chunked: &[u8] = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n0\r\nX: y\r\n\r\n";
    for size in [1, 7, 1000] {
        check([plain, plain], size);
        check([chunked, chunked], size);
        check([plain, chunked], size);
    }
}
