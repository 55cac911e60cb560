//! Detects use of free memory in test builds.
//!
//! Memory is filled with a pattern when it becomes free, which must be intact when it is used again: a late write, also
//! by the kernel, changes it, and a late read returns bytes that no test expects. A build for AddressSanitizer (`--cfg
//! address_sanitizer`, as in `make sanitize`) reports each access by the program. Release builds do nothing.

use std::ptr::NonNull;

use crate::limits::BUFFER_BYTES;

/// Neither an ASCII character nor zero.
const PATTERN: u8 = 0xdb;

/// The expected content of the largest free memory: comparing slices is faster than checking each byte.
static PATTERNS: [u8; BUFFER_BYTES] = [PATTERN; BUFFER_BYTES];

/// Marks memory as free.
///
/// # Safety
/// `bytes` bytes from `memory` on, at most [`BUFFER_BYTES`], are writable and not used before [`take_out`].
#[inline]
pub(crate) unsafe fn mark_free(memory: NonNull<u8>, bytes: usize) {
    if cfg!(debug_assertions) {
        // SAFETY: guaranteed by the caller.
        unsafe { memory.write_bytes(PATTERN, bytes) };
    }
    #[cfg(address_sanitizer)]
    // SAFETY: it changes the sanitizer's records of memory that is unused by the caller's guarantee.
    unsafe {
        __asan_poison_memory_region(memory.as_ptr().cast(), bytes);
    }
}

/// Unmarks memory before it is used again.
///
/// # Safety
/// `bytes` bytes from `memory` on were marked by [`put_in`] and have no other user.
///
/// # Panics
/// In test builds, when the memory was written to while it was free.
#[inline]
pub(crate) unsafe fn unmark_free(memory: NonNull<u8>, bytes: usize) {
    #[cfg(address_sanitizer)]
    // SAFETY: as above.
    unsafe {
        __asan_unpoison_memory_region(memory.as_ptr().cast(), bytes);
    }
    if cfg!(debug_assertions) {
        // SAFETY: initialised by `put_in`, and without another user by the caller's guarantee.
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
