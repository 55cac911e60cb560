//! Memory that the system refuses: the program says so and ends, instead of being aborted with a dump of itself.

pub(crate) mod counted;

use std::alloc::{GlobalAlloc, Layout, System};

/// The system's allocator. Where it has no memory left it writes one sentence to standard error and ends the process with
/// exit code 1. What may be refused without an end is asked for in sizes that were looked at before.
///
/// Costs one comparison of each allocation.
pub struct Memory;

// SAFETY: everything is handed on to the system's allocator, which keeps the contract.
unsafe impl GlobalAlloc for Memory {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract of this function, which is the same.
        given(unsafe { System.alloc(layout) }, layout.size())
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        given(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    #[inline]
    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as above; what was given came from there.
        unsafe { System.dealloc(memory, layout) }
    }

    #[inline]
    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as above.
        given(unsafe { System.realloc(memory, layout, size) }, size)
    }
}

impl Memory {
    /// Returns all free pages of the allocator to the system, also those between allocations in use. Other threads that allocate may
    /// have to wait meanwhile.
    pub fn return_free() {
        #[cfg(target_env = "gnu")]
        // SAFETY: it changes nothing that is allocated, and may be called by any thread.
        unsafe {
            libc::malloc_trim(0);
        }
    }
}

#[inline]
fn given(memory: *mut u8, size: usize) -> *mut u8 {
    if memory.is_null() {
        refused(size);
    }
    memory
}

/// Allocates nothing.
#[cold]
#[inline(never)]
fn refused(size: usize) -> ! {
    let digits = Digits::of(size);
    let parts: [&[u8]; 3] = [
        b"onrush: out of memory: the system refuses ",
        digits.text(),
        b" more bytes; raise the limit of this process (ulimit -v, MemoryMax=, the container's), or ask for less\n",
    ];
    for part in parts {
        // SAFETY: the part is memory of its length. Nobody may be left to read it, which changes nothing.
        unsafe { libc::write(libc::STDERR_FILENO, part.as_ptr().cast(), part.len()) };
    }
    // SAFETY: it only ends the process; nothing that runs at an orderly end may run without memory.
    unsafe { libc::_exit(1) }
}

/// A number in decimal; of 64 bits it has 20 digits at most.
struct Digits {
    bytes: [u8; 20],
    start: usize,
}

impl Digits {
    fn of(mut number: usize) -> Digits {
        let mut digits = Digits {
            bytes: [b'0'; 20],
            start: 20,
        };
        loop {
            digits.start -= 1;
            digits.bytes[digits.start] = b'0' + (number % 10) as u8;
            number /= 10;
            if number == 0 {
                return digits;
            }
        }
    }

    fn text(&self) -> &[u8] {
        &self.bytes[self.start..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_written_without_memory() {
        for number in [0, 7, 10, 1_234_567, usize::MAX] {
            assert_eq!(Digits::of(number).text(), number.to_string().as_bytes());
        }
    }
}
