//! Memory for futures that come and go with every request.
//!
//! The allocator keeps few free blocks of a size at hand (glibc: seven), and a busy core has a hundred requests under way:
//! nearly each would be cut out of a larger block and put together with its neighbours again. A core keeps
//! as many as it has needed at a time, up to [`BLOCKS_FREE_MAX`]; the one that was given back last is handed out first,
//! while it is in the CPU's cache.

use std::alloc::{self, Layout, handle_alloc_error};
use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::ptr::NonNull;
use std::rc::Rc;
use std::task::{Context, Poll};

use crate::buffers::poison;
use crate::limits::{BLOCK_BYTES, BLOCKS_FREE_MAX};

/// What blocks are aligned to: as malloc's are.
const ALIGNMENT: usize = 16;

const LAYOUT: Layout = match Layout::from_size_align(BLOCK_BYTES, ALIGNMENT) {
    Ok(layout) => layout,
    Err(_) => unreachable!(),
};

/// Blocks that nobody uses. Invariant: they are marked by `poison`.
#[derive(Default)]
pub(crate) struct Blocks(RefCell<Vec<NonNull<u8>>>);

impl Blocks {
    fn take(&self) -> NonNull<u8> {
        if let Some(block) = self.0.borrow_mut().pop() {
            // SAFETY: all of it is marked and nobody's.
            unsafe { poison::take_out(block, BLOCK_BYTES) };
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
            unsafe { poison::put_in(block, BLOCK_BYTES) };
            return free.push(block);
        }
        // SAFETY: it comes from `take`, so from the global allocator with this layout, and its owner is gone.
        unsafe { alloc::dealloc(block.as_ptr(), LAYOUT) };
    }

    /// Number of free blocks kept for reuse.
    pub(crate) fn free(&self) -> usize {
        self.0.borrow().len()
    }

    /// Returns all free blocks to the allocator.
    pub(crate) fn drop_free(&self) {
        for block in self.0.take() {
            // SAFETY: as in `take`; it is freed here.
            unsafe { poison::take_out(block, BLOCK_BYTES) };
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
    /// Initialised, and nobody else's, until this is dropped.
    future: NonNull<F>,
    blocks: Rc<Blocks>,
}

impl<F> InBlock<F> {
    /// That the future fits is seen when it is compiled: one that has outgrown its block would cost more with every request,
    /// and nobody would notice.
    const FITS: () = assert!(
        size_of::<F>() <= BLOCK_BYTES && align_of::<F>() <= ALIGNMENT,
        "a future is larger than a block"
    );

    pub(crate) fn new(future: F, blocks: &Rc<Blocks>) -> Self {
        const { Self::FITS };
        let block = blocks.take().cast::<F>();
        // SAFETY: the block is large enough and aligned, or this would not have been compiled, and nobody else has it.
        unsafe { block.write(future) };
        Self {
            future: block,
            blocks: Rc::clone(blocks),
        }
    }
}

// What is pinned is in the block, which does not move with its handle.
impl<F> Unpin for InBlock<F> {}

impl<F: Future> Future for InBlock<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        // SAFETY: it is initialised, and borrowed by nobody but its owner, who is borrowed here.
        let future = unsafe { self.future.as_mut() };
        // SAFETY: it stays where it is until it is dropped there.
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

    /// A future with `N` bytes of state, which counts its ends.
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
    fn a_future_runs_in_a_block_and_ends_once() {
        let blocks = Rc::default();
        run_and_abandon::<1>(&blocks);
        run_and_abandon::<{ BLOCK_BYTES / 2 }>(&blocks);
        assert_eq!(blocks.0.borrow().len(), 2, "two were in use at a time");
    }

    #[test]
    fn no_more_blocks_are_kept_than_the_limit() {
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
