//! For tests: an allocator that counts allocated bytes.

use std::alloc::{GlobalAlloc, Layout};
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::Memory;

/// [`Memory`] for tests: counts the bytes that all threads have allocated and not freed, except excluded threads.
///
/// Allocations by C libraries are not counted.
pub struct CountedMemory;

/// Allocated bytes, rounded by [`cut`].
static ALLOCATED: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static IS_LEFT_OUT: Cell<bool> = const { Cell::new(false) };
}

impl CountedMemory {
    /// Bytes allocated now, including the allocator's overhead.
    pub fn allocated() -> usize {
        ALLOCATED.load(Ordering::Relaxed)
    }

    /// Excludes this thread's allocations and frees from now on, for example because it simulates the clients.
    pub fn exclude_this_thread() {
        IS_LEFT_OUT.set(true);
    }
}

// SAFETY: every call is forwarded to an allocator, which upholds the contract; counting changes none of its memory.
unsafe impl GlobalAlloc for CountedMemory {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(0, allocated_size(layout.size()));
        // SAFETY: the caller upholds the contract of `GlobalAlloc::alloc`, which is also that of the inner allocator.
        unsafe { Memory.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(0, allocated_size(layout.size()));
        // SAFETY: as above.
        unsafe { Memory.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        count(allocated_size(layout.size()), 0);
        // SAFETY: as above; the memory came from the same allocator.
        unsafe { Memory.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(allocated_size(layout.size()), allocated_size(size));
        // SAFETY: as above.
        unsafe { Memory.realloc(memory, layout, size) }
    }
}

/// Bytes that glibc uses for an allocation: a length before it, in steps of 16.
fn allocated_size(bytes: usize) -> usize {
    (bytes + 8).next_multiple_of(16).max(32)
}

fn count(fewer: usize, more: usize) {
    // At the end of a thread the flag may be gone; memory freed then was allocated before.
    if !IS_LEFT_OUT.try_with(Cell::get).unwrap_or(false) {
        ALLOCATED.fetch_add(more.wrapping_sub(fewer), Ordering::Relaxed);
    }
}
