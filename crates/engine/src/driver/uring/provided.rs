//! Provided buffers: memory lent to the kernel, which takes one buffer for each receive.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ptr::NonNull;
use std::rc::Rc;
use std::sync::atomic::{AtomicU16, Ordering};

use io_uring::IoUring;
use io_uring::types::BufRingEntry;
use rustix::io::Errno;

use crate::buffers::buffer::{Buffer, Memory, Pool};
use crate::limits::{BUFFER_BYTES, RING_BUFFERS};

/// A ring of provided buffers (io_uring_register_buf_ring(3)).
pub(super) struct ProvidedBuffers {
    entries: NonNull<BufRingEntry>,
    /// Memory lent under each buffer ID. Invariant: `lent[id]` is `Some` exactly while the kernel may write to it.
    lent: Vec<Option<Memory>>,
    missing: Vec<u16>,
    tail: u16,
}

impl ProvidedBuffers {
    pub(super) const GROUP: u16 = 0;

    /// The kernel requires page alignment; 64 KiB covers arm64's largest page.
    fn layout() -> Layout {
        Layout::array::<BufRingEntry>(RING_BUFFERS.into())
            .and_then(|layout| layout.align_to(64 * 1024))
            .expect("a few KiB")
    }

    pub(super) fn register(ring: &IoUring) -> Result<Self, Errno> {
        // SAFETY: the layout is not of size zero.
        let memory = unsafe { alloc_zeroed(Self::layout()) };
        let Some(entries) = NonNull::new(memory.cast::<BufRingEntry>()) else {
            handle_alloc_error(Self::layout());
        };
        let provided = Self {
            entries,
            lent: (0..RING_BUFFERS).map(|_| None).collect(),
            missing: (0..RING_BUFFERS).collect(),
            tail: 0,
        };
        let address = entries.as_ptr() as u64;
        // SAFETY: the memory is page-aligned, large enough for the entries, and freed only after the ring: `Ring`
        // declares `ring` before `buffers`, so the ring is dropped first.
        unsafe {
            ring.submitter()
                .register_buf_ring_with_flags(address, RING_BUFFERS, Self::GROUP, 0)
        }
        .map_err(super::outcome::errno)?;
        Ok(provided)
    }

    /// Whether the kernel has a buffer for received data, or gets one with the next turn.
    pub(super) fn can_take(&self, pool: &Pool) -> bool {
        self.missing.len() < usize::from(RING_BUFFERS) || !pool.is_exhausted()
    }

    #[cfg(test)]
    pub(super) fn is_whole(&self) -> bool {
        self.missing.is_empty()
    }

    pub(super) fn take(&mut self, id: u16, pool: &Rc<Pool>) -> Buffer {
        let memory = self.lent[usize::from(id)]
            .take()
            .expect("the kernel returns only what it was lent");
        self.missing.push(id);
        pool.adopt(memory)
    }

    /// Replaces the buffers that were taken.
    pub(super) fn replenish(&mut self, pool: &Rc<Pool>) {
        let before = self.tail;
        while let Some(&id) = self.missing.last() {
            let Some(memory) = pool.take_memory() else {
                break;
            };
            self.missing.pop();
            let index = usize::from(self.tail % RING_BUFFERS);
            // SAFETY: `index` is below the number of entries that were allocated.
            let entry = unsafe { self.entries.add(index) };
            // SAFETY: initialised and not shared: the kernel reads an entry only after the tail has passed it.
            let entry = unsafe { &mut *entry.as_ptr() };
            entry.set_addr(memory.address() as u64);
            entry.set_len(BUFFER_BYTES as u32);
            entry.set_bid(id);
            self.lent[usize::from(id)] = Some(memory);
            self.tail = self.tail.wrapping_add(1);
        }
        if self.tail != before {
            self.publish();
        }
    }

    fn publish(&self) {
        // SAFETY: `entries` is the base of the registered ring.
        let tail = unsafe { BufRingEntry::tail(self.entries.as_ptr()) };
        // SAFETY: aligned, valid while the ring exists, written by this thread only, and read atomically by the kernel.
        let tail = unsafe { AtomicU16::from_ptr(tail.cast_mut()) };
        tail.store(self.tail, Ordering::Release);
    }
}

impl Drop for ProvidedBuffers {
    fn drop(&mut self) {
        // SAFETY: allocated in `register` with the same layout; the ring is already closed.
        unsafe { dealloc(self.entries.as_ptr().cast(), Self::layout()) };
    }
}
