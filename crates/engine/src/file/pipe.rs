//! Pipes that move bytes between sockets without a copy to user space.

use std::cell::{Cell, RefCell};
use std::os::fd::OwnedFd;
use std::rc::Rc;

use rustix::io::Errno;
use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_setpipe_size, pipe_with, splice};

use crate::limits::{PIPES_FREE_MAX, PIPES_MAX, PIPES_WIDE, SPLICE_BYTES, SPLICE_BYTES_NARROW};

pub(crate) struct Pipes {
    /// Invariant: all are empty.
    free: RefCell<Vec<Ends>>,
    in_use: Cell<usize>,
    /// Limit on the number of pipes, including free ones. Invariant: at most [`PIPES_MAX`].
    max: Cell<usize>,
}

struct Ends {
    read: OwnedFd,
    write: OwnedFd,
}

impl Pipes {
    pub(crate) fn new() -> Rc<Self> {
        Rc::new(Self {
            free: RefCell::new(Vec::new()),
            in_use: Cell::new(0),
            max: Cell::new(PIPES_MAX),
        })
    }

    /// Sets the limit, at most [`PIPES_MAX`]. Pipes in use stay open.
    pub(crate) fn bound(&self, max: usize) {
        self.max.set(max.min(PIPES_MAX));
        let free = self.max.get().saturating_sub(self.in_use.get());
        self.free.borrow_mut().truncate(free);
    }

    /// Returns an empty pipe; `None` at the limit or without free descriptors.
    pub(crate) fn take(self: &Rc<Self>) -> Option<Pipe> {
        if self.in_use.get() >= self.max.get() {
            return None;
        }
        let recycled = self.free.borrow_mut().pop();
        let ends = match recycled {
            Some(ends) => ends,
            None => Ends::new().ok()?,
        };
        self.in_use.set(self.in_use.get() + 1);
        Some(Pipe {
            ends: Some(ends),
            held: 0,
            pipes: Rc::clone(self),
        })
    }

    /// Bytes that a pipe may take at a time.
    fn portion(&self) -> usize {
        match self.in_use.get() {
            ..=PIPES_WIDE => SPLICE_BYTES,
            _ => SPLICE_BYTES_NARROW,
        }
    }

    fn put(&self, ends: Option<Ends>) {
        self.in_use.set(self.in_use.get() - 1);
        let mut free = self.free.borrow_mut();
        let has_room = self.in_use.get() + free.len() < self.max.get();
        if has_room && free.len() < PIPES_FREE_MAX {
            free.extend(ends);
        }
    }
}

impl Ends {
    fn new() -> Result<Self, Errno> {
        let (read, write) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        // Beyond a user's limit on pages in pipes (pipe(7), pipe-user-pages-soft) a pipe keeps its default size.
        let _ = fcntl_setpipe_size(&write, SPLICE_BYTES);
        Ok(Self { read, write })
    }
}

/// A pipe and the number of bytes in it. Returns to its pool when dropped, unless it holds bytes.
pub(crate) struct Pipe {
    /// `None` only on drop.
    ends: Option<Ends>,
    held: usize,
    pipes: Rc<Pipes>,
}

impl Pipe {
    pub(crate) fn held(&self) -> usize {
        self.held
    }

    /// Moves at most `max` bytes from a socket into the empty pipe (so EAGAIN refers to the socket); zero at the end.
    pub(crate) fn fill(&mut self, from: &OwnedFd, max: u64) -> Result<usize, Errno> {
        debug_assert_eq!(self.held, 0);
        let max = max.min(self.pipes.portion() as u64) as usize;
        let count = splice(from, None, &self.ends().write, None, max, FLAGS)?;
        self.held = count;
        Ok(count)
    }

    /// Moves as many bytes to a socket as it takes.
    pub(crate) fn drain(&mut self, to: &OwnedFd) -> Result<usize, Errno> {
        let count = splice(&self.ends().read, None, to, None, self.held, FLAGS)?;
        self.held -= count;
        Ok(count)
    }

    fn ends(&self) -> &Ends {
        self.ends.as_ref().expect("it is not being dropped")
    }
}

const FLAGS: SpliceFlags = SpliceFlags::NONBLOCK.union(SpliceFlags::MOVE);

impl Drop for Pipe {
    fn drop(&mut self) {
        let ends = self.ends.take();
        self.pipes.put(ends.filter(|_| self.held == 0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::{AsRawFd, RawFd};

    fn descriptor(pipe: &Pipe) -> RawFd {
        pipe.ends().read.as_raw_fd()
    }

    #[test]
    fn only_empty_pipes_are_reused() {
        let pipes = Pipes::new();
        let mut pipe = pipes.take().unwrap();
        let first = descriptor(&pipe);
        drop(pipe);
        pipe = pipes.take().unwrap();
        assert_eq!(descriptor(&pipe), first);
        let (near, far) = std::os::unix::net::UnixStream::pair().unwrap();
        std::io::Write::write_all(&mut &near, b"left").unwrap();
        assert_eq!(pipe.fill(&far.into(), 100).unwrap(), 4);
        drop(pipe);
        assert_eq!(pipes.in_use.get(), 0);
        assert!(pipes.free.borrow().is_empty());
    }

    #[test]
    fn pipe_count_is_limited() {
        let pipes = Pipes::new();
        pipes.bound(1);
        let pipe = pipes.take().unwrap();
        assert!(pipes.take().is_none());
        drop(pipe);
        assert!(pipes.take().is_some(), "a free one counts");
        pipes.bound(usize::MAX);
        assert_eq!(pipes.max.get(), PIPES_MAX);
    }
}
