//! A connection, as the task that owns it uses it.

pub(crate) mod listener;
pub(crate) mod splice;

mod addresses;

use std::future::{Future, poll_fn};
use std::task::Poll;
use std::time::Duration;

use crate::address::{Address, Source};
use crate::buffers::input::Input;
use crate::buffers::outgoing::Part;
use crate::clock::Instant;
use crate::core::Core;
use crate::driver::Driver;
use crate::driver::operations::{FileRange, NextData, Operations};
use crate::error::Error;
use crate::file::File;
use crate::limits::{BYTES_PER_OPERATION, FILE_BYTES_PER_OPERATION};
use crate::socket::key::Key;
use crate::socket::tcp_info::TcpInfo;

/// A connected stream socket of this core. Dropping it closes the connection after a send in progress has finished. If
/// the send cannot finish, the connection is reset, because an orderly end would hide the missing bytes.
pub struct Stream {
    core: Core,
    key: Key,
}

impl Stream {
    pub(crate) fn new(core: Core, key: Key) -> Self {
        Self { core, key }
    }

    /// Connects to `address`, by `deadline` when there is one.
    ///
    /// # Errors
    /// As in connect(2), or [`crate::Kind::TimedOut`].
    pub async fn connect(
        core: &Core,
        address: &Address,
        deadline: Option<Instant>,
    ) -> Result<Self, Error> {
        Self::connect_from(core, &Source::default(), address, deadline).await
    }

    /// [`Stream::connect`] from `source`, which Unix sockets ignore.
    ///
    /// # Errors
    /// As in connect(2), or [`crate::Kind::TimedOut`]; with [`crate::Op::Bind`] when `source` is not available, for
    /// example because it is not an address of this machine (`EADDRNOTAVAIL`).
    pub async fn connect_from(
        core: &Core,
        source: &Source,
        address: &Address,
        deadline: Option<Instant>,
    ) -> Result<Self, Error> {
        let inner = core.inner();
        let key = inner.state.borrow_mut().connect(source, address)?;
        let stream = Self::new(core.clone(), key);
        stream.set_deadline(deadline);
        poll_fn(|_| {
            inner
                .state
                .borrow_mut()
                .poll_connect(key, inner.tasks.current())
        })
        .await?;
        stream.set_deadline(None);
        Ok(stream)
    }

    /// A connection of a simulated core without a peer, for rendering what would be sent.
    ///
    /// # Panics
    /// When the core is not simulated.
    pub fn without_peer(core: &Core) -> Self {
        let state = &mut *core.inner().state.borrow_mut();
        let key = match &mut state.driver {
            Driver::Simulated(driver) => driver.unconnected_end(&mut state.sockets),
            Driver::Epoll(_) | Driver::Uring(_) => panic!("only a simulated core is asked to"),
        };
        Self::new(core.clone(), key)
    }

    /// Sets the time after which every wait on this stream, in either direction, ends with [`crate::Kind::TimedOut`].
    /// It stays in force until it is set again; setting it costs a store.
    pub fn set_deadline(&self, deadline: Option<Instant>) {
        self.core
            .inner()
            .state
            .borrow_mut()
            .set_deadline(self.key, deadline);
    }

    /// Makes every wait on this stream, in either direction, end with [`crate::Kind::TimedOut`] once the peer has taken
    /// nothing for `patience`. It stays in force until it is set again or [`Stream::set_deadline`] is called.
    pub fn set_send_patience(&self, patience: Duration) {
        self.core
            .inner()
            .state
            .borrow_mut()
            .set_send_patience(self.key, patience);
    }

    // The operations below are plain functions that return a future: an `async fn` would hold its arguments twice, and
    // these futures are part of every connection's memory.

    /// Appends received bytes to `input` and returns their number; 0 is the end of the stream.
    ///
    /// While it waits, `input` holds no buffer.
    ///
    /// # Errors
    /// As in recv(2), or [`crate::Kind::TimedOut`].
    ///
    /// # Panics
    /// When `input` is full.
    pub fn recv(&self, input: &mut Input) -> impl Future<Output = Result<usize, Error>> {
        poll_fn(move |_| self.poll_recv(input))
    }

    /// [`Stream::recv`] when only the number of the next `max` bytes matters: where the kernel can discard them they
    /// are not put into `input`, which must be empty. One call either discards or stores what it receives.
    ///
    /// # Errors
    /// As [`Stream::recv`].
    pub fn poll_recv_or_drop(&self, input: &mut Input, max: u64) -> Poll<Result<usize, Error>> {
        debug_assert!(input.is_empty());
        let inner = self.core.inner();
        if !inner.tasks.may_continue() {
            return Poll::Pending;
        }
        let task = inner.tasks.current();
        let state = &mut *inner.state.borrow_mut();
        let received = state.poll_recv_or_drop(self.key, input, max, task);
        if let Poll::Ready(Ok(count)) = received {
            inner.tasks.charge((count / BYTES_PER_OPERATION) as u32);
        }
        received
    }

    /// [`Stream::recv`] for tasks that wait for several things at once; wakes the task that polled last.
    #[inline]
    pub fn poll_recv(&self, input: &mut Input) -> Poll<Result<usize, Error>> {
        let inner = self.core.inner();
        if !inner.tasks.may_continue() {
            return Poll::Pending;
        }
        inner
            .state
            .borrow_mut()
            .poll_recv(self.key, input, inner.tasks.current())
    }

    /// Waits until the connection has ended in both directions: the peer has reset it, the peer of a Unix socket has
    /// closed it, or it has failed. Wakes the task that polled last; arriving bytes or a deadline do not end this wait.
    ///
    /// A peer that has shut down its sending side may still read, and a closed TCP connection looks the same until
    /// something is sent. A connection that both sides have shut down with [`Stream::shutdown`] counts as ended.
    pub fn poll_hung_up(&self) -> Poll<Error> {
        let inner = self.core.inner();
        inner
            .state
            .borrow_mut()
            .poll_hung_up(self.key, inner.tasks.current())
    }

    /// Appends bytes that have arrived to `input` without waiting; `None` if there are none.
    ///
    /// # Errors
    /// As in recv(2).
    pub fn recv_now(&self, input: &mut Input) -> Option<Result<usize, Error>> {
        let state = &mut *self.core.inner().state.borrow_mut();
        state.recv_now(self.key, input)
    }

    /// [`Stream::recv`] that also ends with [`crate::Kind::Stopping`], when the core is asked to stop or
    /// [`Core::end_idle`] chooses this connection.
    pub fn recv_unless_stopping(
        &self,
        input: &mut Input,
    ) -> impl Future<Output = Result<usize, Error>> {
        poll_fn(move |_| self.poll_recv_unless_stopping(input))
    }

    /// [`Stream::recv_unless_stopping`] for tasks that wait for several things at once.
    pub fn poll_recv_unless_stopping(&self, input: &mut Input) -> Poll<Result<usize, Error>> {
        let inner = self.core.inner();
        if !inner.tasks.may_continue() {
            return Poll::Pending;
        }
        let state = &mut *inner.state.borrow_mut();
        state.sockets[self.key].interruptible = true;
        let polled = state.poll_recv(self.key, input, inner.tasks.current());
        state.sockets[self.key].interruptible = polled.is_pending();
        polled
    }

    /// The deadline of waits on this connection; progress of a send may have moved it.
    pub fn deadline(&self) -> Option<Instant> {
        self.core.inner().state.borrow().sockets[self.key].deadline
    }

    /// [`Stream::recv`] of bytes that have arrived, by asking the kernel; [`crate::Kind::TimedOut`] if there are none.
    /// For a last check before a connection is closed as idle.
    ///
    /// # Errors
    /// As [`Stream::recv`].
    pub fn recv_arrived(&self, input: &mut Input) -> impl Future<Output = Result<usize, Error>> {
        poll_fn(move |_| self.poll_recv_arrived(input))
    }

    /// [`Stream::recv_arrived`] for tasks that wait for several things at once.
    pub fn poll_recv_arrived(&self, input: &mut Input) -> Poll<Result<usize, Error>> {
        let inner = self.core.inner();
        inner
            .state
            .borrow_mut()
            .poll_arrived(self.key, input, inner.tasks.current())
    }

    pub(crate) fn key(&self) -> Key {
        self.key
    }

    /// Waits until the kernel has taken everything that was queued.
    pub(crate) fn sent(&self) -> impl Future<Output = Result<(), Error>> {
        poll_fn(|_| {
            let inner = self.core.inner();
            inner
                .state
                .borrow_mut()
                .poll_sent(self.key, inner.tasks.current())
        })
    }

    /// Adds a part to the bytes that the next [`Stream::flush`] sends.
    #[inline]
    pub fn queue(&self, part: impl Into<Part>) {
        let part = part.into();
        if !part.bytes().is_empty() {
            self.core.inner().state.borrow_mut().sockets[self.key]
                .outgoing
                .push(part);
        }
    }

    /// Sends the queued parts, in one system call if possible.
    ///
    /// It may return before the last bytes are sent: small sends are deferred until just before the next poll of the
    /// kernel. The next call reports a failure.
    ///
    /// # Errors
    /// As in send(2), or [`crate::Kind::TimedOut`]; the queued parts are dropped.
    pub fn flush(&self) -> impl Future<Output = Result<(), Error>> {
        poll_fn(|_| self.poll_flush())
    }

    /// [`Stream::flush`] for tasks that wait for several things at once.
    #[inline]
    pub fn poll_flush(&self) -> Poll<Result<(), Error>> {
        let inner = self.core.inner();
        if !inner.tasks.may_continue() {
            return Poll::Pending;
        }
        inner
            .state
            .borrow_mut()
            .poll_flush(self.key, NextData::Nothing, &inner.tasks)
    }

    /// The time at which the kernel was given the bytes of the last flush, on a core with [`Core::note_writes`]: with
    /// io_uring the start of the call that submitted everything of that turn, otherwise the start of its own call.
    /// `None` until it is known, which is before a response can arrive.
    #[inline]
    pub fn written(&self) -> Option<Instant> {
        let state = self.core.inner().state.borrow();
        let written = state.sockets[self.key].written;
        (written != Instant::default()).then_some(written)
    }

    /// The kernel's data about the connection; `None` for Unix and simulated sockets.
    pub fn tcp_info(&self) -> Option<TcpInfo> {
        let state = self.core.inner().state.borrow();
        TcpInfo::of(state.sockets[self.key].descriptor.as_ref()?)
    }

    /// Whether queued bytes have not reached the kernel: they wait for the deferred send or for the peer.
    pub fn has_unsent(&self) -> bool {
        let state = self.core.inner().state.borrow();
        let socket = &state.sockets[self.key];
        !socket.outgoing.is_empty() || socket.is_sending()
    }

    /// Counts work that a peer has caused as this many `operations` of the task, which may finish 64 before other tasks
    /// run. `false` if the task is over that limit: it is queued for another turn, and its poll should return pending.
    #[must_use]
    pub fn charge(&self, operations: u32) -> bool {
        let tasks = &self.core.inner().tasks;
        tasks.charge(operations);
        tasks.may_continue()
    }

    /// Sends as much of the queue as the kernel takes without waiting. A rest or a failure is left to the next
    /// [`Stream::flush`].
    pub fn flush_now(&self) {
        let state = &mut *self.core.inner().state.borrow_mut();
        let _ = state.flush_now(self.key, NextData::Nothing);
    }

    /// Sends the queued parts and then, without a copy to user space, 1 to `length` bytes of `file` from `offset` on.
    /// Returns the number of bytes of the file, so that the caller can renew its deadline and yield. `length` is not 0.
    ///
    /// # Errors
    /// As [`Stream::flush`], or [`crate::Kind::FileTooShort`] when the file ends before `offset`.
    pub async fn send_file(&self, file: &File, offset: u64, length: u64) -> Result<u64, Error> {
        debug_assert!(length > 0);
        let inner = self.core.inner();
        poll_fn(|_| {
            let mut state = inner.state.borrow_mut();
            let follows = state.follows(length);
            state.poll_flush(self.key, follows, &inner.tasks)
        })
        .await?;
        self.sent().await?;
        let stretch = FileRange { offset, length };
        let sent = poll_fn(|_| {
            inner
                .state
                .borrow_mut()
                .poll_send_file(self.key, file, stretch, inner.tasks.current())
        })
        .await?;
        inner.tasks.charge((sent / FILE_BYTES_PER_OPERATION) as u32);
        Ok(sent)
    }

    /// Sends the queued parts, waits until the kernel has taken them, and shuts down the sending side.
    ///
    /// # Errors
    /// As [`Stream::flush`].
    pub async fn shutdown(&self) -> Result<(), Error> {
        self.sent().await?;
        self.core.inner().state.borrow_mut().end(self.key)
    }

    /// Makes the coming drop a reset, so that the peer does not take a truncated message for a complete one. The drop
    /// does not wait for bytes in transit, which may be lost. No effect on Unix sockets, which have no resets.
    pub fn reset_when_dropped(&self) {
        self.core
            .inner()
            .state
            .borrow_mut()
            .reset_at_close(self.key);
    }

    /// Makes the driver report arriving bytes, so that [`Stream::is_spent`] of a pooled connection needs no system
    /// call.
    pub fn watch_arrivals(&self) {
        let state = &mut *self.core.inner().state.borrow_mut();
        state
            .driver
            .watch_arrivals(self.key, &mut state.sockets[self.key]);
    }

    /// Whether the peer has ended its side, the connection has failed, or unexpected bytes have arrived. Any of them
    /// means that a pooled connection must not be used again.
    #[inline]
    pub fn is_spent(&self) -> bool {
        let state = self.core.inner().state.borrow();
        let socket = &state.sockets[self.key];
        socket.send_failed.is_some() || state.driver.is_spent(socket)
    }

    /// The core of the stream.
    pub fn core(&self) -> &Core {
        &self.core
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.core.inner().state.borrow_mut().close(self.key);
    }
}
