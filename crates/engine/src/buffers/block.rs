//! Memory blocks for futures that exist for one request.
//!
//! The allocator caches few free blocks of a size (glibc: seven), and a busy core has a hundred requests in progress:
//! nearly each block would be split from a larger one and merged again. A core keeps as many as it has needed at a
//! time, up to [`BLOCKS_FREE_MAX`], and reuses the last returned one first, while it is in the CPU's cache.

use std::alloc::{self, Layout, handle_alloc_error};
use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::ptr::NonNull;
use std::rc::Rc;
use std::task::{Context, Poll};

use crate::buffers::poison;
use crate::limits::{BLOCK_BYTES, BLOCKS_FREE_MAX};

/// Alignment of blocks, as of malloc.
const ALIGNMENT: usize = 16;

const LAYOUT: Layout = match Layout::from_size_align(BLOCK_BYTES, ALIGNMENT) {
    Ok(layout) => layout,
    Err(_) => unreachable!(),
};

/// Free blocks. Invariant: marked by `poison`.
#[derive(Default)]
pub(crate) struct Blocks(RefCell<Vec<NonNull<u8>>>);

impl Blocks {
    fn take(&self) -> NonNull<u8> {
        if let Some(block) = self.0.borrow_mut().pop() {
            // SAFETY: the block is marked and has no other user.
            unsafe { poison::unmark_free(block, BLOCK_BYTES) };
            return block;
        }
        // SAFETY: the layout's size is not zero.
        let block = unsafe { alloc::alloc(LAYOUT) };
        NonNull::new(block).unwrap_or_else(|| handle_alloc_error(LAYOUT))
    }

    fn put(&self, block: NonNull<u8>) {
        let mut free = self.0.borrow_mut();
        if free.len() < BLOCKS_FREE_MAX {
            // SAFETY: it comes from `take`, and its owner is gone.
            unsafe { poison::mark_free(block, BLOCK_BYTES) };
            return free.push(block);
        }
        // SAFETY: it comes from `take`, so from the global allocator with this layout, and its owner is gone.
        unsafe { alloc::dealloc(block.as_ptr(), LAYOUT) };
    }

    pub(crate) fn free(&self) -> usize {
        self.0.borrow().len()
    }

    pub(crate) fn drop_free(&self) {
        for block in self.0.take() {
            // SAFETY: as in `take`; it is freed here.
            unsafe { poison::unmark_free(block, BLOCK_BYTES) };
            // SAFETY: as in `put`.
            unsafe { alloc::dealloc(block.as_ptr(), LAYOUT) };
        }
    }
}

impl Drop for Blocks {
    fn drop(&mut self) {
        self.drop_free();
    }
}

/// A future in a block.
pub struct InBlock<F> {
    /// Initialised and owned by this value alone.
    future: NonNull<F>,
    blocks: Rc<Blocks>,
}

impl<F> InBlock<F> {
    /// Compile-time check, so that a future that has grown does not silently cost more per request.
    const FITS: () = assert!(
        size_of::<F>() <= BLOCK_BYTES && align_of::<F>() <= ALIGNMENT,
        "a future is larger than a block"
    );

    pub(crate) fn new(future: F, blocks: &Rc<Blocks>) -> Self {
        const { Self::FITS };
        let block = blocks.take().cast::<F>();
        // SAFETY: `FITS` has checked size and alignment at compile time, and the block has no other user.
        unsafe { block.write(future) };
        Self {
            future: block,
            blocks: Rc::clone(blocks),
        }
    }
}

// The pinned future is in the block, which does not move with its handle.
impl<F> Unpin for InBlock<F> {}

impl<F: Future> Future for InBlock<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        // SAFETY: it is initialised, and borrowed only through its owner, which is borrowed here.
        let future = unsafe { self.future.as_mut() };
        // SAFETY: it does not move before it is dropped in place.
        unsafe { Pin::new_unchecked(future) }.poll(context)
    }
}

impl<F> Drop for InBlock<F> {
    fn drop(&mut self) {
        // SAFETY: it is initialised and this is its only drop; nothing uses it afterwards.
        unsafe { self.future.drop_in_place() };
        self.blocks.put(self.future.cast());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::pin::pin;
    use std::task::Waker;

    /// A future with `N` bytes of state, which counts its drops.
    async fn counted<const N: usize>(ends: Rc<Cell<u32>>) -> usize {
        struct End(Rc<Cell<u32>>);
        impl Drop for End {
            fn drop(&mut self) {
                self.0.set(self.0.get() + 1);
            }
        }
        let _end = End(ends);
        let state = [1_u8; N];
        let mut paused = false;
        std::future::poll_fn(|_| {
            if std::mem::replace(&mut paused, true) {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
        state.iter().map(|&byte| usize::from(byte)).sum()
    }

    fn run_and_abandon<const N: usize>(blocks: &Rc<Blocks>) {
        let ends = Rc::new(Cell::new(0));
        let mut context = Context::from_waker(Waker::noop());
        let mut future = pin!(InBlock::new(counted::<N>(Rc::clone(&ends)), blocks));
        assert!(future.as_mut().poll(&mut context).is_pending());
        assert_eq!(future.as_mut().poll(&mut context), Poll::Ready(N));
        let mut abandoned = InBlock::new(counted::<N>(Rc::clone(&ends)), blocks);
        assert!(Pin::new(&mut abandoned).poll(&mut context).is_pending());
        drop(abandoned);
        assert_eq!(ends.get(), 2, "both have ended, each once");
    }

    #[test]
    fn future_in_block_runs_and_drops_once() {
        let blocks = Rc::default();
        run_and_abandon::<1>(&blocks);
        run_and_abandon::<{ BLOCK_BYTES / 2 }>(&blocks);
        assert_eq!(blocks.0.borrow().len(), 2, "two were in use at a time");
    }

    #[test]
    fn free_blocks_are_limited() {
        let blocks = Rc::default();
        let futures: Vec<_> = (0..BLOCKS_FREE_MAX + 3)
            .map(|_| InBlock::new(std::future::ready(()), &blocks))
            .collect();
        drop(futures);
        assert_eq!(blocks.free(), BLOCKS_FREE_MAX);
        blocks.drop_free();
        assert_eq!(blocks.0.borrow().capacity(), 0);
        drop(InBlock::new(std::future::ready(()), &blocks));
        assert_eq!(blocks.free(), 1, "blocks are kept again");
    }
}
