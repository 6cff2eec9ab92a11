//! For tests: how often a thread allocated.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static SO_FAR: Cell<u64> = const { Cell::new(0) };
}

/// How often this thread has allocated or made an allocation larger.
pub(crate) fn so_far() -> u64 {
    SO_FAR.with(Cell::get)
}

struct Counting;

#[global_allocator]
static COUNTING: Counting = Counting;

fn count() {
    // A thread that is ending has no count any more, and nobody who asks for it.
    let _ = SO_FAR.try_with(|so_far| so_far.set(so_far.get() + 1));
}

// SAFETY: every call is handed on to the system's allocator as it came; counting does not allocate.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller keeps the same contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: as above.
        unsafe { System.realloc(block, layout, size) }
    }
}
