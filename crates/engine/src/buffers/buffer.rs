//! Buffers of a core's pool, which connections hold only while bytes are in flight; wide ones are for bulk data.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::cell::{Cell, RefCell};
use std::fmt;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::rc::Rc;

use crate::buffers::poison;
use crate::error::{Error, Kind, Op};
use crate::limits::{
    BUFFER_BYTES, BUFFERS_FREE_MAX, BUFFERS_MAX, WIDE_BUFFER_BYTES, WIDE_BUFFERS_MAX,
};

/// A core's pool of buffers. Last in, first out: the one returned last is still in the cache.
pub struct Pool {
    /// Invariant: marked by `poison`.
    free: RefCell<Vec<Memory>>,
    /// Free wide buffers. Together with those in use at most [`WIDE_BUFFERS_MAX`].
    wide_free: RefCell<Vec<Memory>>,
    wide_in_use: Cell<usize>,
    /// Buffers of either size outside `free`: held by tasks or lent to the kernel. Invariant: `in_use <= BUFFERS_MAX`.
    in_use: Cell<usize>,
}

impl Pool {
    pub(crate) fn new() -> Rc<Self> {
        Rc::new(Self {
            free: RefCell::new(Vec::new()),
            wide_free: RefCell::new(Vec::new()),
            wide_in_use: Cell::new(0),
            in_use: Cell::new(0),
        })
    }

    /// Number of buffers held by tasks or lent to the kernel.
    pub fn in_use(&self) -> usize {
        self.in_use.get()
    }

    /// Number of free buffers kept for reuse.
    pub fn free(&self) -> usize {
        self.free.borrow().len() + self.wide_free.borrow().len()
    }

    pub(crate) fn is_exhausted(&self) -> bool {
        self.in_use.get() >= BUFFERS_MAX
    }

    /// Returns an empty buffer, or [`Kind::NoBuffers`] when the core's bound is reached.
    pub(crate) fn take(self: &Rc<Self>) -> Result<Buffer, Error> {
        Ok(self.adopt(
            self.take_memory()
                .ok_or(Error::new(Op::Buffer, Kind::NoBuffers))?,
        ))
    }

    /// Returns memory for the kernel, without a handle; it must be returned through [`Pool::adopt`] or `put_memory`.
    pub(crate) fn take_memory(&self) -> Option<Memory> {
        if self.is_exhausted() {
            return None;
        }
        self.in_use.set(self.in_use.get() + 1);
        let recycled = self.free.borrow_mut().pop();
        let Some(memory) = recycled else {
            return Some(Memory::new(BufferSize::Normal));
        };
        // SAFETY: all memory in `free` is marked and has no other user.
        unsafe { poison::unmark_free(memory.start(), BUFFER_BYTES) };
        Some(memory)
    }

    /// Returns an empty wide buffer for bulk data; `None` at the bound on wide buffers.
    pub(crate) fn take_wide(self: &Rc<Self>) -> Option<Buffer> {
        if self.wide_in_use.get() >= WIDE_BUFFERS_MAX || self.is_exhausted() {
            return None;
        }
        Some(self.take_wide_unbounded())
    }

    /// Returns an empty wide buffer, regardless of the bound, for bytes that came out of a wide one and fit no other.
    pub(crate) fn take_wide_unbounded(self: &Rc<Self>) -> Buffer {
        let recycled = self.wide_free.borrow_mut().pop();
        let memory = recycled.unwrap_or_else(|| Memory::new(BufferSize::Wide));
        self.wide_in_use.set(self.wide_in_use.get() + 1);
        self.in_use.set(self.in_use.get() + 1);
        self.adopt(memory)
    }

    /// Makes a buffer of memory taken with `take_memory`.
    pub(crate) fn adopt(self: &Rc<Self>, memory: Memory) -> Buffer {
        Buffer {
            memory: ManuallyDrop::new(memory),
            start: 0,
            end: 0,
            pool: Rc::clone(self),
        }
    }

    pub(crate) fn put_memory(&self, memory: Memory) {
        self.in_use.set(self.in_use.get() - 1);
        if memory.width() == BufferSize::Wide {
            self.wide_in_use.set(self.wide_in_use.get() - 1);
            let mut free = self.wide_free.borrow_mut();
            if free.len() + self.wide_in_use.get() < WIDE_BUFFERS_MAX {
                free.push(memory);
            }
            return;
        }
        let mut free = self.free.borrow_mut();
        if free.len() < BUFFERS_FREE_MAX {
            // SAFETY: the pool owns it, and its last user has released it.
            unsafe { poison::mark_free(memory.start(), BUFFER_BYTES) };
            free.push(memory);
        }
    }

    pub(crate) fn drop_free(&self) {
        for memory in self.free.take() {
            // SAFETY: as in `take_memory`; it is dropped here.
            unsafe { poison::unmark_free(memory.start(), BUFFER_BYTES) };
        }
        self.wide_free.take();
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.drop_free();
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum BufferSize {
    Normal,
    Wide,
}

impl BufferSize {
    const fn layout(self) -> Layout {
        let bytes = match self {
            BufferSize::Normal => BUFFER_BYTES,
            BufferSize::Wide => WIDE_BUFFER_BYTES,
        };
        // The alignment of malloc, which leaves the low bits of addresses unused.
        match Layout::from_size_align(bytes, 16) {
            Ok(layout) => layout,
            Err(_) => unreachable!(),
        }
    }
}

/// The bytes of a buffer. Not a `Box`, whose address only the owner may have: the kernel has it as well.
pub(crate) struct Memory(
    /// Allocated with the layout of its width, and owned by this value alone. The lowest bit of the address marks a
    /// wide buffer, so that the several buffers of each socket need no field for their widths.
    NonNull<u8>,
);

const WIDE_BIT: usize = 1;

impl Memory {
    fn new(width: BufferSize) -> Self {
        // SAFETY: neither layout is of size zero.
        let bytes = unsafe { alloc_zeroed(width.layout()) };
        let Some(bytes) = NonNull::new(bytes) else {
            handle_alloc_error(width.layout());
        };
        Self(match width {
            BufferSize::Normal => bytes,
            BufferSize::Wide => bytes.map_addr(|address| address | WIDE_BIT),
        })
    }

    #[inline]
    fn width(&self) -> BufferSize {
        match self.0.addr().get() & WIDE_BIT {
            0 => BufferSize::Normal,
            _ => BufferSize::Wide,
        }
    }

    #[inline]
    fn start(&self) -> NonNull<u8> {
        let address = self.address();
        NonNull::new(address).expect("memory is not at address zero")
    }

    /// The address, for the kernel. It does not change when the handle moves.
    #[inline]
    pub(crate) fn address(&self) -> *mut u8 {
        self.0.as_ptr().map_addr(|address| address & !WIDE_BIT)
    }

    #[inline]
    fn bytes(&self) -> usize {
        match self.width() {
            BufferSize::Normal => BUFFER_BYTES,
            BufferSize::Wide => WIDE_BUFFER_BYTES,
        }
    }
}

impl Deref for Memory {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: the bytes are initialised and live as long as `self`; the ring has the handle while the kernel
        // writes.
        unsafe { std::slice::from_raw_parts(self.address(), self.bytes()) }
    }
}

impl DerefMut for Memory {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and `self` is borrowed exclusively. Bytes that the kernel reads are not written to.
        unsafe { std::slice::from_raw_parts_mut(self.address(), self.bytes()) }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: it was allocated with this layout and is freed only here.
        unsafe { dealloc(self.address(), self.width().layout()) };
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool")
            .field("in_use", &self.in_use.get())
            .finish_non_exhaustive()
    }
}

/// Memory of one of the sizes, and the filled part of it. Returns to its pool when dropped.
///
/// ```text
///   0        start          end                   size
///   | consumed | filled (Deref) | spare          |
/// ```
pub struct Buffer {
    memory: ManuallyDrop<Memory>,
    /// Invariant: `start <= end <= memory.len()`.
    start: u32,
    end: u32,
    pool: Rc<Pool>,
}

impl Buffer {
    /// The memory after the filled part.
    pub fn spare(&mut self) -> &mut [u8] {
        &mut self.memory[self.end as usize..]
    }

    /// The filled part, for decryption in place.
    pub fn filled_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.start as usize..self.end as usize]
    }

    /// Number of bytes that still fit.
    pub fn room(&self) -> usize {
        self.memory.bytes() - self.end as usize
    }

    /// Marks the first `count` bytes of the spare part as filled.
    ///
    /// # Panics
    /// When fewer bytes are spare.
    pub fn fill(&mut self, count: usize) {
        assert!(count <= self.room());
        self.end += count as u32;
    }

    /// Appends `bytes`; returns `false`, and appends nothing, if they do not fit.
    #[must_use]
    pub fn put(&mut self, bytes: &[u8]) -> bool {
        if bytes.len() > self.room() {
            return false;
        }
        let end = self.end as usize;
        self.memory[end..end + bytes.len()].copy_from_slice(bytes);
        self.end += bytes.len() as u32;
        true
    }

    /// Appends as many of `bytes` as fit and returns their number.
    pub fn put_some(&mut self, bytes: &[u8]) -> usize {
        let count = bytes.len().min(self.room());
        let fits = self.put(&bytes[..count]);
        debug_assert!(fits);
        count
    }

    /// Drops the first `count` filled bytes.
    ///
    /// # Panics
    /// When fewer bytes are filled.
    pub fn consume(&mut self, count: usize) {
        assert!(count <= self.len());
        self.start += count as u32;
        if self.start == self.end {
            self.clear();
        }
    }

    /// Keeps only the first `count` filled bytes.
    pub fn truncate(&mut self, count: usize) {
        let count = count.min(self.len());
        self.end = self.start + count as u32;
    }

    /// Drops all filled bytes.
    pub fn clear(&mut self) {
        self.start = 0;
        self.end = 0;
    }

    pub(crate) fn compact(&mut self) {
        if self.start > 0 {
            self.memory
                .copy_within(self.start as usize..self.end as usize, 0);
            self.end -= self.start;
            self.start = 0;
        }
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.memory[self.start as usize..self.end as usize]
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: the buffer is being dropped and does not use its memory again.
        let memory = unsafe { ManuallyDrop::take(&mut self.memory) };
        self.pool.put_memory(memory);
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Buffer")
            .field("start", &self.start)
            .field("end", &self.end)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Pool {
        /// Simulates that all other buffers are in use, or stops that.
        pub(crate) fn set_exhausted(&self, exhausted: bool) {
            let in_use = self.in_use.get();
            self.in_use.set(match exhausted {
                true => in_use + BUFFERS_MAX,
                false => in_use - BUFFERS_MAX,
            });
        }
    }

    #[test]
    fn dropped_buffer_is_reused_next() {
        let pool = Pool::new();
        let mut first = pool.take().unwrap();
        assert!(first.put(b"old"));
        let address = first.memory.as_ptr();
        drop(first);
        let second = pool.take().unwrap();
        assert_eq!(second.memory.as_ptr(), address);
        assert!(second.is_empty(), "what was in it is not visible");
        assert_eq!(pool.in_use(), 1);
    }

    #[test]
    fn free_buffers_of_both_sizes_are_dropped() {
        let pool = Pool::new();
        let used = pool.take().unwrap();
        drop((pool.take().unwrap(), pool.take_wide().unwrap()));
        assert_eq!((pool.in_use(), pool.free()), (1, 2));
        pool.drop_free();
        assert_eq!((pool.in_use(), pool.free()), (1, 0));
        drop(used);
        assert_eq!(pool.free(), 1, "buffers are kept again");
    }

    #[test]
    #[cfg(debug_assertions)]
    fn reused_buffer_has_no_old_content() {
        let pool = Pool::new();
        let mut first = pool.take().unwrap();
        assert!(first.put(&[1; BUFFER_BYTES]));
        drop(first);
        assert!(!pool.take().unwrap().spare().contains(&1));
    }

    /// A sanitizer reports the write itself.
    #[test]
    #[cfg(all(debug_assertions, not(address_sanitizer)))]
    #[should_panic(expected = "written to after it had been given back")]
    fn write_after_free_panics() {
        let pool = Pool::new();
        let late = pool.take().unwrap().memory.address();
        // SAFETY: the pool keeps the memory, and it is not borrowed.
        unsafe { late.write(1) };
        let _ = pool.take();
    }

    #[test]
    fn buffer_limit_is_an_error() {
        let pool = Pool::new();
        pool.in_use.set(BUFFERS_MAX);
        assert!(matches!(pool.take(), Err(error) if error.kind == Kind::NoBuffers));
    }

    #[test]
    fn truncate_keeps_at_most_length() {
        let pool = Pool::new();
        for (length, left) in [
            (0, 0),
            (3, 3),
            (5, 4),
            (u32::MAX as usize, 4),
            (usize::MAX, 4),
        ] {
            let mut buffer = pool.take().unwrap();
            assert!(buffer.put(b"abcde"));
            buffer.consume(1);
            buffer.truncate(length);
            assert_eq!(&buffer[..], &b"bcde"[..left]);
        }
    }

    #[test]
    fn compact_reclaims_consumed_space() {
        let pool = Pool::new();
        let mut buffer = pool.take().unwrap();
        assert!(buffer.put(&vec![7; BUFFER_BYTES]));
        assert!(!buffer.put(b"x"));
        buffer.consume(BUFFER_BYTES - 2);
        assert_eq!(buffer.room(), 0);
        buffer.compact();
        assert_eq!(
            (&buffer[..], buffer.room()),
            (&[7, 7][..], BUFFER_BYTES - 2)
        );
        buffer.consume(2);
        assert_eq!(buffer.room(), BUFFER_BYTES);
    }
}
