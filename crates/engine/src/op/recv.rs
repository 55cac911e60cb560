//! Receiving: appends at least one byte to an [`Input`], or reports the end of the stream.
//!
//! A receive that fills a buffer marks the socket as carrying bulk (`Socket::note_length`). From then on it receives
//! into wide buffers of 64 KiB, which needs a quarter of the calls. A kept connection that carried bulk has a poll in
//! the ring (`watch_arrivals`), so that no call is needed to see whether the server has closed it.
//! `Stream::poll_recv_or_drop` lets the kernel discard the bytes of a body that is not inspected.

use std::task::Poll;

use rustix::io::Errno;

use crate::buffers::input::Input;
use crate::driver::operations::Operations;
use crate::error::{Error, Kind, Op};
use crate::socket::key::Key;
use crate::state::State;
use crate::task::id::TaskId;

impl State {
    /// `Ok(0)` is the end of the stream.
    #[inline]
    pub(crate) fn poll_recv(
        &mut self,
        key: Key,
        input: &mut Input,
        task: TaskId,
    ) -> Poll<Result<usize, Error>> {
        match self.recv_now(key, input) {
            Some(received) => {
                self.expected.note_received(key);
                Poll::Ready(received)
            }
            None => self.wait_for_bytes(key, task),
        }
    }

    /// [`State::poll_recv`] into an empty `input` if the next `max` bytes are not needed: the kernel may discard them.
    pub(crate) fn poll_recv_or_drop(
        &mut self,
        key: Key,
        input: &mut Input,
        max: u64,
        task: TaskId,
    ) -> Poll<Result<usize, Error>> {
        if !self.sockets[key].can_discard || !self.can_splice_now(key) {
            return self.poll_recv(key, input, task);
        }
        match self.driver.drop_arrived(key, max, &mut self.sockets) {
            Err(Errno::AGAIN) => self.wait_for_bytes(key, task),
            dropped => {
                self.expected.note_received(key);
                Poll::Ready(dropped.map_err(|errno| Error::os(Op::Recv, errno)))
            }
        }
    }

    /// Waits for bytes, the deadline, or the stop of the core. Ready only with an error.
    pub(crate) fn wait_for_bytes(&mut self, key: Key, task: TaskId) -> Poll<Result<usize, Error>> {
        let socket = &mut self.sockets[key];
        let is_unwanted = std::mem::take(&mut socket.is_unwanted);
        if socket.interruptible && (self.stopping || is_unwanted) {
            return Poll::Ready(Err(Error::new(Op::Recv, Kind::Stopping)));
        }
        if let Err(error) = self.wait_until_deadline(key, Op::Recv) {
            return Poll::Ready(Err(error));
        }
        self.sockets[key].recv_waiter = task;
        Poll::Pending
    }

    /// Receives without waiting; `None` if nothing has arrived. Without bytes `input` keeps no empty buffer.
    #[inline]
    pub(crate) fn recv_now(&mut self, key: Key, input: &mut Input) -> Option<Result<usize, Error>> {
        let received = self.driver.recv(key, input, &mut self.sockets, &self.pool);
        if !matches!(received, Ok(1..)) {
            input.park();
        }
        match received {
            Err(error) if error == Error::os(Op::Recv, Errno::AGAIN) => None,
            received => Some(received),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::*;
    use crate::address::Address;
    use crate::claim::Claim;
    use crate::core::Core;
    use crate::driver::choice::Io;
    use crate::driver::simulation::Simulation;
    use crate::stream::Stream;
    use crate::stream::listener::Listener;

    /// Both ends receive without a buffer, get an error, and receive the bytes once buffers are available again.
    async fn starve(core: Core, listener: Listener, address: Address) {
        let client = Stream::connect(&core, &address, None).await.unwrap();
        let server = listener.accept().await.unwrap();
        for (from, to) in [(&client, &server), (&server, &client)] {
            from.queue(&b"bytes"[..]);
            from.flush().await.unwrap();
            let mut input = Input::default();
            let error = to.recv(&mut input).await.unwrap_err();
            assert_eq!(error, Error::new(Op::Buffer, Kind::NoBuffers));
        }
        core.pool().set_exhausted(false);
        for to in [&client, &server] {
            let mut input = Input::default();
            while input.bytes().len() < 5 {
                to.recv(&mut input).await.unwrap();
            }
            assert_eq!(input.bytes(), b"bytes");
        }
    }

    #[test]
    fn end_of_stream_releases_buffer() {
        let kernel = [Io::Epoll, Io::IoUring].map(|io| Core::new(0, io).ok());
        let simulated = Core::simulated(Simulation::with_seed(1));
        for core in kernel.into_iter().chain([Some(simulated)]).flatten() {
            let claim = Claim::new(&Address::Tcp("127.0.0.1:0".parse().unwrap())).unwrap();
            let listener = Listener::new(&core, &claim).unwrap();
            let done = Rc::new(std::cell::Cell::new(false));
            let (seen, receiving) = (Rc::clone(&done), core.clone());
            let address = claim.address().clone();
            core.spawn(async move {
                let client = Stream::connect(&receiving, &address, None).await.unwrap();
                let server = listener.accept().await.unwrap();
                client.shutdown().await.unwrap();
                let mut input = Input::default();
                assert_eq!(server.recv(&mut input).await, Ok(0));
                assert!(input.take().is_none(), "an empty buffer is held");
                seen.set(true);
            });
            core.run();
            assert!(done.get(), "the test's task ended");
        }
    }

    #[test]
    fn recv_without_buffers_loses_no_bytes() {
        let kernel = [Io::Epoll, Io::IoUring].map(|io| Core::new(0, io).ok());
        let simulated = (0..20).map(|seed| Some(Core::simulated(Simulation::with_seed(seed))));
        for core in kernel.into_iter().chain(simulated).flatten() {
            core.pool().set_exhausted(true);
            let claim = Claim::new(&Address::Tcp("127.0.0.1:0".parse().unwrap())).unwrap();
            let listener = Listener::new(&core, &claim).unwrap();
            let done = Rc::new(std::cell::Cell::new(false));
            let (seen, starving) = (Rc::clone(&done), core.clone());
            let address = claim.address().clone();
            core.spawn(async move {
                starve(starving, listener, address).await;
                seen.set(true);
            });
            core.run();
            assert!(done.get(), "the test's task ended");
        }
    }
}
