//! Accepting connections.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::task::Poll;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{SocketFlags, accept_with};

use crate::allowance::Allowance;
use crate::driver::Driver;
use crate::driver::uring::submit::Accepts;
use crate::error::{Error, Kind, Op};
use crate::socket::key::Key;
use crate::socket::{Socket, set_blocking};
use crate::state::State;
use crate::task::id::TaskId;

impl State {
    pub(crate) fn poll_accept(&mut self, listener: Key, task: TaskId) -> Poll<Result<Key, Error>> {
        let accepted = match (self.take_accepted(listener), &self.driver) {
            // Has its descriptor, whether there is room or not.
            (Some(accepted), _) => accepted,
            (None, _) if self.has_no_room() => match self.look_for_waiting(listener) {
                true => return Poll::Ready(Err(Error::new(Op::Accept, Kind::Full))),
                false => Err(Errno::AGAIN),
            },
            (None, Driver::Epoll(_)) => self.accept_epoll(listener),
            (None, Driver::Uring(_)) => self.accept_ring(listener),
            (None, Driver::Simulated(_)) => self.accept_simulated(listener),
        };
        match accepted {
            Ok(key) => Poll::Ready(Ok(key)),
            // With io_uring an accept that is armed may still bring what it has taken from the queue.
            Err(Errno::AGAIN)
                if self.stopping
                    && self.sockets[listener].interruptible
                    && !self.sockets[listener].ring.armed =>
            {
                Poll::Ready(Err(Error::new(Op::Accept, Kind::Stopping)))
            }
            Err(Errno::AGAIN) => {
                self.sockets[listener].recv_waiter = task;
                Poll::Pending
            }
            Err(errno) => Poll::Ready(Err(Error::os(Op::Accept, errno))),
        }
    }

    /// What io_uring has accepted by itself.
    fn take_accepted(&mut self, listener: Key) -> Option<Result<Key, Errno>> {
        while let Some(accepted) = self.sockets[listener].ring.accepted.pop() {
            match accepted {
                Ok(descriptor) => return Some(self.adopt(descriptor)),
                Err(
                    Errno::INTR
                    | Errno::CONNABORTED
                    | Errno::PROTO
                    | Errno::CANCELED
                    | Errno::AGAIN,
                ) => {}
                Err(errno) => return Some(Err(errno)),
            }
        }
        None
    }

    fn has_no_room(&self) -> bool {
        let is_used_up = |allowance: &Arc<Allowance>| allowance.is_used_up();
        self.sockets.allowance.as_ref().is_some_and(is_used_up)
    }

    /// Whether somebody waits to be accepted; if not, whoever comes wakes the listener's task.
    fn look_for_waiting(&mut self, listener: Key) -> bool {
        let State {
            driver, sockets, ..
        } = self;
        let socket = &mut sockets[listener];
        if let Driver::Simulated(driver) = driver {
            return driver.is_waited_for(listener);
        }
        let mut descriptors = [PollFd::new(socket.descriptor(), PollFlags::IN)];
        // Interrupted is as good as nobody: the caller looks again.
        let is_waiting = poll(&mut descriptors, Some(&Timespec::default())) == Ok(1);
        socket.readable = is_waiting;
        if let Driver::Uring(driver) = driver {
            if socket.ring.armed {
                // It would go on accepting.
                driver.cancel_accept(listener, socket);
            } else if !is_waiting && !socket.ring.polling_readable {
                driver.poll_readable(listener, socket);
            }
        }
        is_waiting
    }

    fn accept_epoll(&mut self, listener: Key) -> Result<Key, Errno> {
        // A core that stops asks the kernel itself: what has come since the last look must not be lost.
        if !self.sockets[listener].readable && !self.stopping {
            return Err(Errno::AGAIN);
        }
        let accepted = accept_now(&self.sockets[listener], SocketFlags::NONBLOCK);
        self.sockets[listener].readable = accepted.as_ref().err() != Some(&Errno::AGAIN);
        self.adopt(accepted?)
    }

    fn accept_ring(&mut self, listener: Key) -> Result<Key, Errno> {
        let State {
            driver: Driver::Uring(driver),
            sockets,
            ..
        } = self
        else {
            unreachable!("dispatched on it")
        };
        let many = match &sockets.allowance {
            Some(allowance) if !allowance.is_wide() => Accepts::One,
            _ => Accepts::Many,
        };
        let socket = &mut sockets[listener];
        match socket.ring.armed {
            false if self.stopping => {
                // The listeners of other cores may share the file, which is no harm: they stop, too.
                set_blocking(socket.descriptor(), false)?;
                let accepted = accept_now(socket, SocketFlags::empty())?;
                return self.adopt(accepted);
            }
            false => driver.arm_accept(listener, socket, many),
            true if self.stopping || (many == Accepts::One && socket.ring.accepts_many) => {
                driver.cancel_accept(listener, socket)
            }
            true => {}
        }
        Err(Errno::AGAIN)
    }

    fn accept_simulated(&mut self, listener: Key) -> Result<Key, Errno> {
        let State {
            driver: Driver::Simulated(driver),
            ..
        } = self
        else {
            unreachable!("dispatched on it")
        };
        let accepted = match self.stopping {
            true => driver.accept_certainly(listener),
            false => driver.accept(listener),
        };
        let key = accepted.ok_or(Errno::AGAIN)?;
        self.is_accepted(key);
        Ok(key)
    }

    /// Counts a connection among those that were accepted.
    fn is_accepted(&mut self, key: Key) {
        self.sockets[key].is_accepted = true;
        if let Some(allowance) = &self.sockets.allowance {
            allowance.take();
        }
    }

    /// Makes a connected descriptor one of the core's sockets.
    pub(crate) fn adopt(&mut self, descriptor: OwnedFd) -> Result<Key, Errno> {
        let key = self.sockets.insert(Socket::new(Some(descriptor)));
        self.is_accepted(key);
        let socket = &mut self.sockets[key];
        // Read at once: a client that connects has nearly always sent its first request already.
        socket.readable = true;
        socket.writable = true;
        if let Driver::Epoll(driver) = &self.driver
            && let Err(errno) = driver.register(socket.descriptor(), key)
        {
            self.sockets.remove(key);
            return Err(errno);
        }
        Ok(key)
    }
}

/// Takes a connection from the queue without a wait.
fn accept_now(listener: &Socket, flags: SocketFlags) -> Result<OwnedFd, Errno> {
    loop {
        match accept_with(listener.descriptor(), flags | SocketFlags::CLOEXEC) {
            // The connection was gone before we came to it (accept(2)).
            Err(Errno::INTR | Errno::CONNABORTED | Errno::PROTO) => {}
            outcome => return outcome,
        }
    }
}
