//! For tests: an allocator that knows what is allocated.

use std::alloc::{GlobalAlloc, Layout};
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::Memory;

/// [`Memory`] for tests: it counts what all threads have allocated and not freed, but for those that are left out.
///
/// What libraries in C allocate is not counted.
pub struct CountedMemory;

/// Bytes that are allocated, as [`cut`] off by the allocator.
static ALLOCATED: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static IS_LEFT_OUT: Cell<bool> = const { Cell::new(false) };
}

impl CountedMemory {
    /// Bytes that are allocated now, with what the allocator adds to each allocation.
    pub fn allocated() -> usize {
        ALLOCATED.load(Ordering::Relaxed)
    }

    /// Leaves out what this thread allocates and frees from now on: it plays the clients, say.
    pub fn leave_this_thread_out() {
        IS_LEFT_OUT.set(true);
    }
}

// SAFETY: everything is handed on to an allocator, which keeps the contract; counting changes no memory of it.
unsafe impl GlobalAlloc for CountedMemory {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(0, cut(layout.size()));
        // SAFETY: the caller keeps the contract of this function, which is the same.
        unsafe { Memory.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(0, cut(layout.size()));
        // SAFETY: as above.
        unsafe { Memory.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        count(cut(layout.size()), 0);
        // SAFETY: as above; what was given came from there.
        unsafe { Memory.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(cut(layout.size()), cut(size));
        // SAFETY: as above.
        unsafe { Memory.realloc(memory, layout, size) }
    }
}

/// What glibc takes for so many bytes: a length in front of them, in steps of 16.
fn cut(bytes: usize) -> usize {
    (bytes + 8).next_multiple_of(16).max(32)
}

fn count(fewer: usize, more: usize) {
    // At the end of a thread the mark may be gone; what is freed then was allocated before.
    if !IS_LEFT_OUT.try_with(Cell::get).unwrap_or(false) {
        ALLOCATED.fetch_add(more.wrapping_sub(fewer), Ordering::Relaxed);
    }
}
