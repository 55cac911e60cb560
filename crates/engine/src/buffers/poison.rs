//! Memory that lies in a stock, in test builds: whoever still uses it is found out.
//!
//! It is filled with a pattern when it goes there, which must be whole when it is handed out again: a late write, be it the
//! kernel's, changes it, and a late read gets bytes that no test expects. A build for AddressSanitizer
//! (`--cfg address_sanitizer`, as in `make sanitize`) makes each access by the program an error at its very place. In
//! release builds nothing happens here.

use std::ptr::NonNull;

use crate::limits::BUFFER_BYTES;

/// Neither a character nor zero.
const PATTERN: u8 = 0xdb;

/// What the largest memory of a stock is to look like: comparing is faster than looking at each byte.
static PATTERNS: [u8; BUFFER_BYTES] = [PATTERN; BUFFER_BYTES];

/// Marks memory that goes to its stock.
///
/// # Safety
/// `bytes` bytes from `memory` on can be written, [`BUFFER_BYTES`] at most, and nobody uses them until they are taken out.
#[inline]
pub(crate) unsafe fn put_in(memory: NonNull<u8>, bytes: usize) {
    if cfg!(debug_assertions) {
        // SAFETY: the caller's promise.
        unsafe { memory.write_bytes(PATTERN, bytes) };
    }
    #[cfg(address_sanitizer)]
    // SAFETY: it touches the sanitizer's own records of memory that the caller says nobody uses.
    unsafe {
        __asan_poison_memory_region(memory.as_ptr().cast(), bytes);
    }
}

/// Takes the mark away from memory that leaves its stock.
///
/// # Safety
/// `bytes` bytes from `memory` on were marked by [`put_in`] and nobody else uses them.
///
/// # Panics
/// In test builds, when somebody has written to it meanwhile.
#[inline]
pub(crate) unsafe fn take_out(memory: NonNull<u8>, bytes: usize) {
    #[cfg(address_sanitizer)]
    // SAFETY: as above.
    unsafe {
        __asan_unpoison_memory_region(memory.as_ptr().cast(), bytes);
    }
    if cfg!(debug_assertions) {
        // SAFETY: initialised by `put_in`, and nobody else's: the caller's promise.
        let lain = unsafe { std::slice::from_raw_parts(memory.as_ptr(), bytes) };
        assert!(
            lain == &PATTERNS[..bytes],
            "memory was written to after it had been given back"
        );
    }
}

// sanitizer/asan_interface.h
#[cfg(address_sanitizer)]
unsafe extern "C" {
    fn __asan_poison_memory_region(memory: *const std::ffi::c_void, bytes: usize);
    fn __asan_unpoison_memory_region(memory: *const std::ffi::c_void, bytes: usize);
}
