//! An allocator that reports a lack of memory and exits, instead of aborting with a core dump.

pub(crate) mod counted;

use std::alloc::{GlobalAlloc, Layout, System};

/// The system's allocator, except that a failed allocation writes one sentence to standard error and exits with code 1.
/// So `try_reserve` does not report a lack of memory either: callers must limit sizes that come from outside.
///
/// Costs one comparison per allocation.
pub struct Memory;

// SAFETY: every call is forwarded to the system's allocator, which upholds the contract.
unsafe impl GlobalAlloc for Memory {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller upholds the contract of `GlobalAlloc::alloc`, which is also that of the inner allocator.
        exit_if_null(unsafe { System.alloc(layout) }, layout.size())
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        exit_if_null(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    #[inline]
    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as above; the memory came from the same allocator.
        unsafe { System.dealloc(memory, layout) }
    }

    #[inline]
    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as above.
        exit_if_null(unsafe { System.realloc(memory, layout, size) }, size)
    }
}

impl Memory {
    /// Returns all free pages of the allocator to the system. Other threads may have to wait to allocate meanwhile.
    pub fn return_free() {
        #[cfg(target_env = "gnu")]
        // SAFETY: it changes no allocated memory, and any thread may call it.
        unsafe {
            libc::malloc_trim(0);
        }
    }
}

#[inline]
fn exit_if_null(memory: *mut u8, size: usize) -> *mut u8 {
    if memory.is_null() {
        exit_out_of_memory(size);
    }
    memory
}

/// Reports the failure and exits, without allocating.
#[cold]
#[inline(never)]
fn exit_out_of_memory(size: usize) -> ! {
    let digits = Digits::of(size);
    let parts: [&[u8]; 3] = [
        b"onrush: out of memory: the system refuses ",
        digits.text(),
        b" more bytes; raise the memory limit of this process (ulimit -v, MemoryMax=, container limit), or configure less\n",
    ];
    for part in parts {
        // SAFETY: the part is memory of its length. A failed write is ignored.
        unsafe { libc::write(libc::STDERR_FILENO, part.as_ptr().cast(), part.len()) };
    }
    // SAFETY: it only ends the process. Exit handlers must not run without memory.
    unsafe { libc::_exit(1) }
}

/// A number in decimal: at most 20 digits for 64 bits.
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
    fn digits_match_decimal_format() {
        for number in [0, 7, 10, 1_234_567, usize::MAX] {
            assert_eq!(Digits::of(number).text(), number.to_string().as_bytes());
        }
    }
}
