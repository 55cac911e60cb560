//! Accepting connections.

use std::os::fd::OwnedFd;
use std::task::Poll;

use rustix::io::Errno;
use rustix::net::{SocketFlags, accept_with};

use crate::core::State;
use crate::driver::Driver;
use crate::error::{Error, Kind, Op};
use crate::socket::{Key, Socket};
use crate::task::TaskId;

impl State {
    pub(crate) fn poll_accept(&mut self, listener: Key, task: TaskId) -> Poll<Result<Key, Error>> {
        let accepted = match self.driver {
            Driver::Epoll(_) => self.accept_epoll(listener),
            Driver::Uring(_) => self.accept_ring(listener),
            Driver::Simulated(_) => self.accept_simulated(listener),
        };
        match accepted {
            Ok(key) => Poll::Ready(Ok(key)),
            Err(Errno::AGAIN) if self.stopping && self.sockets[listener].interruptible => {
                Poll::Ready(Err(Error::new(Op::Accept, Kind::Stopping)))
            }
            Err(Errno::AGAIN) => {
                self.sockets[listener].recv_waiter = task;
                Poll::Pending
            }
            Err(errno) => Poll::Ready(Err(Error::os(Op::Accept, errno))),
        }
    }

    fn accept_epoll(&mut self, listener: Key) -> Result<Key, Errno> {
        if !self.sockets[listener].readable {
            return Err(Errno::AGAIN);
        }
        loop {
            let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
            match accept_with(self.sockets[listener].descriptor(), flags) {
                Ok(descriptor) => return self.adopt(descriptor),
                // The connection was gone before we came to it (accept(2)).
                Err(Errno::INTR | Errno::CONNABORTED | Errno::PROTO) => {}
                Err(errno) => {
                    self.sockets[listener].readable = errno != Errno::AGAIN;
                    return Err(errno);
                }
            }
        }
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
        let socket = &mut sockets[listener];
        while let Some(accepted) = socket.ring.accepted.pop() {
            match accepted {
                Ok(descriptor) => return self.adopt(descriptor),
                Err(
                    Errno::INTR
                    | Errno::CONNABORTED
                    | Errno::PROTO
                    | Errno::CANCELED
                    | Errno::AGAIN,
                ) => {}
                Err(errno) => return Err(errno),
            }
        }
        if !socket.ring.armed {
            driver.arm_accept(listener, socket);
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
        driver.accept(listener).ok_or(Errno::AGAIN)
    }

    /// Makes a connected descriptor one of the core's sockets.
    pub(crate) fn adopt(&mut self, descriptor: OwnedFd) -> Result<Key, Errno> {
        let mut socket = Socket::new(Some(descriptor));
        socket.is_accepted = true;
        let key = self.sockets.insert(socket);
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
