//! A connection, seen by the task that owns it.

pub(crate) mod listener;
pub(crate) mod splice;

mod ends;

use std::future::{Future, poll_fn};
use std::task::Poll;
use std::time::Duration;

use crate::address::{Address, Source};
use crate::buffers::input::Input;
use crate::buffers::outgoing::Part;
use crate::clock::Instant;
use crate::core::Core;
use crate::driver::Driver;
use crate::driver::operations::{Follows, Operations, Stretch};
use crate::error::Error;
use crate::file::File;
use crate::limits::{BYTES_PER_OPERATION, FILE_BYTES_PER_OPERATION};
use crate::socket::key::Key;
use crate::socket::tcp_info::TcpInfo;

/// A connected stream socket of this core. Dropping it closes the connection; a send that is under way is still
/// finished, and where it cannot be, the connection is reset: its end would look orderly with a part of it missing.
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

    /// [`Stream::connect`] from `source`, which for Unix sockets has no meaning.
    ///
    /// # Errors
    /// As in connect(2), or [`crate::Kind::TimedOut`]; with [`crate::Op::Bind`] when `source` cannot be had, for example
    /// because it is no address of this machine (`EADDRNOTAVAIL`).
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

    /// A connection of a simulated core that nobody is at the other end of: nothing arrives, and nothing is to be sent. For
    /// who wants to know what would be written.
    ///
    /// # Panics
    /// When the core is not simulated.
    pub fn alone(core: &Core) -> Self {
        let state = &mut *core.inner().state.borrow_mut();
        let key = match &mut state.driver {
            Driver::Simulated(driver) => driver.lone_end(&mut state.sockets),
            Driver::Epoll(_) | Driver::Uring(_) => panic!("only a simulated core is asked to"),
        };
        Self::new(core.clone(), key)
    }

    /// Every wait on this stream, in either direction, ends with [`crate::Kind::TimedOut`] once `deadline` has passed.
    /// Holds until it is set again; setting it costs a store.
    pub fn set_deadline(&self, deadline: Option<Instant>) {
        self.core
            .inner()
            .state
            .borrow_mut()
            .set_deadline(self.key, deadline);
    }

    /// Every wait on this stream, in either direction, ends with [`crate::Kind::TimedOut`] once the peer has taken
    /// nothing for `patience`. Holds until [`Stream::set_deadline`] is called or it is set again.
    pub fn set_send_patience(&self, patience: Duration) {
        self.core
            .inner()
            .state
            .borrow_mut()
            .set_send_patience(self.key, patience);
    }

    // The operations below are plain functions that return a future: an `async fn` would hold its arguments twice, and
    // these futures are part of every connection's memory.

    /// Appends what arrives to `input` and returns how many bytes that were; 0 is the end of the stream.
    ///
    /// While it waits, `input` holds no buffer.
    ///
    /// # Errors
    /// As in recv(2), or [`crate::Kind::TimedOut`].
    ///
    /// # Panics
    /// When `input` is full: the caller consumes or gives up before.
    pub fn recv(&self, input: &mut Input) -> impl Future<Output = Result<usize, Error>> {
        poll_fn(move |_| self.poll_recv(input))
    }

    /// [`Stream::recv`] for those to whom the next `max` bytes mean nothing but their number: where the kernel can drop them
    /// they are not put into `input`, which must be empty. What arrives is dropped or put there as a whole.
    ///
    /// # Errors
    /// As [`Stream::recv`].
    pub fn poll_recv_or_drop(&self, input: &mut Input, max: u64) -> Poll<Result<usize, Error>> {
        debug_assert!(input.is_empty());
        let inner = self.core.inner();
        if !inner.tasks.may_go_on() {
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

    /// [`Stream::recv`] for those who wait for more than one thing at a time; the task that asks is the one that is
    /// woken.
    #[inline]
    pub fn poll_recv(&self, input: &mut Input) -> Poll<Result<usize, Error>> {
        let inner = self.core.inner();
        if !inner.tasks.may_go_on() {
            return Poll::Pending;
        }
        inner
            .state
            .borrow_mut()
            .poll_recv(self.key, input, inner.tasks.current())
    }

    /// Waits until the connection is of no more use to anybody: the peer has reset it, a Unix socket's peer has closed it,
    /// or it has failed. The task that asks is the one that is woken; bytes that arrive do not wake it, and no deadline
    /// ends this wait.
    ///
    /// A peer that has ended its side may still be reading, and one that has closed a TCP connection looks the same until
    /// it is sent something. Where both sides were ended by [`Stream::shutdown`] that counts as of no use, too.
    pub fn poll_hung_up(&self) -> Poll<Error> {
        let inner = self.core.inner();
        inner
            .state
            .borrow_mut()
            .poll_hung_up(self.key, inner.tasks.current())
    }

    /// Appends what has arrived to `input`, without a wait: `None` when nothing has.
    ///
    /// # Errors
    /// As in recv(2).
    pub fn recv_now(&self, input: &mut Input) -> Option<Result<usize, Error>> {
        let state = &mut *self.core.inner().state.borrow_mut();
        state.recv_now(self.key, input)
    }

    /// Like [`Stream::recv`], but a wait also ends when the core is asked to stop, or [`Core::end_idle`] chooses this
    /// connection, with [`crate::Kind::Stopping`].
    ///
    /// # Errors
    /// As [`Stream::recv`].
    pub fn recv_unless_stopping(
        &self,
        input: &mut Input,
    ) -> impl Future<Output = Result<usize, Error>> {
        poll_fn(move |_| self.poll_recv_unless_stopping(input))
    }

    /// [`Stream::recv_unless_stopping`] for those who wait for more than one thing at a time.
    pub fn poll_recv_unless_stopping(&self, input: &mut Input) -> Poll<Result<usize, Error>> {
        let inner = self.core.inner();
        if !inner.tasks.may_go_on() {
            return Poll::Pending;
        }
        let state = &mut *inner.state.borrow_mut();
        state.sockets[self.key].interruptible = true;
        let polled = state.poll_recv(self.key, input, inner.tasks.current());
        state.sockets[self.key].interruptible = polled.is_pending();
        polled
    }

    /// When waits on this connection end, as it was last set; progress of a send may have moved it.
    pub fn deadline(&self) -> Option<Instant> {
        self.core.inner().state.borrow().sockets[self.key].deadline
    }

    /// [`Stream::recv`] of what has arrived by now, which the kernel itself is asked for: [`crate::Kind::TimedOut`] when
    /// nothing has. For those who are about to end the connection because nothing came.
    ///
    /// # Errors
    /// As [`Stream::recv`].
    pub fn recv_arrived(&self, input: &mut Input) -> impl Future<Output = Result<usize, Error>> {
        poll_fn(move |_| self.poll_recv_arrived(input))
    }

    /// [`Stream::recv_arrived`] for those who wait for more than one thing at a time.
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

    /// Waits until the kernel has all that was queued.
    pub(crate) fn sent(&self) -> impl Future<Output = Result<(), Error>> {
        poll_fn(|_| {
            let inner = self.core.inner();
            inner
                .state
                .borrow_mut()
                .poll_sent(self.key, inner.tasks.current())
        })
    }

    /// Adds a part to what the next [`Stream::flush`] sends.
    #[inline]
    pub fn queue(&self, part: impl Into<Part>) {
        let part = part.into();
        if !part.bytes().is_empty() {
            self.core.inner().state.borrow_mut().sockets[self.key]
                .outgoing
                .push(part);
        }
    }

    /// Sends what is queued, all parts in one call to the kernel where it takes them.
    ///
    /// It may return while the last bytes are on their way, at the latest at the end of the core's turn; a failure is
    /// then reported by the next call.
    ///
    /// # Errors
    /// As in send(2), or [`crate::Kind::TimedOut`]; what was queued is dropped.
    pub fn flush(&self) -> impl Future<Output = Result<(), Error>> {
        poll_fn(|_| self.poll_flush())
    }

    /// [`Stream::flush`] for those who wait for more than one thing at a time.
    #[inline]
    pub fn poll_flush(&self) -> Poll<Result<(), Error>> {
        let inner = self.core.inner();
        if !inner.tasks.may_go_on() {
            return Poll::Pending;
        }
        inner
            .state
            .borrow_mut()
            .poll_flush(self.key, Follows::Nothing, &inner.tasks)
    }

    /// When the kernel was handed what was last flushed, on a core that was asked to [note that](Core::note_writes): with
    /// io_uring the start of the call that handed over everything of that turn, else of its own. `None` until it is known;
    /// it is before any response arrives.
    #[inline]
    pub fn written(&self) -> Option<Instant> {
        let state = self.core.inner().state.borrow();
        let written = state.sockets[self.key].written;
        (written != Instant::default()).then_some(written)
    }

    /// What the kernel knows about the connection; `None` for Unix sockets and simulated ones.
    pub fn tcp_info(&self) -> Option<TcpInfo> {
        let state = self.core.inner().state.borrow();
        TcpInfo::of(state.sockets[self.key].descriptor.as_ref()?)
    }

    /// Whether bytes that were queued have not left for the kernel yet: they wait for the end of the turn, or for a peer
    /// that does not read.
    pub fn has_unsent(&self) -> bool {
        let state = self.core.inner().state.borrow();
        let socket = &state.sockets[self.key];
        !socket.outgoing.is_empty() || socket.is_sending()
    }

    /// Counts work that a peer has caused like so many `operations`: a task may finish 64 of them before the others get
    /// their turn. `false` when it has done more: the task is queued for another turn and its poll is to end as pending.
    #[must_use]
    pub fn charge(&self, operations: u32) -> bool {
        let tasks = &self.core.inner().tasks;
        tasks.charge(operations);
        tasks.may_go_on()
    }

    /// Sends what is queued as far as the kernel takes it without a wait. What is left goes with the next
    /// [`Stream::flush`], or is lost when there is none; a failure shows in whatever meets it next.
    pub fn flush_now(&self) {
        let state = &mut *self.core.inner().state.borrow_mut();
        let _ = state.flush_now(self.key, Follows::Nothing);
    }

    /// Sends what is queued and then bytes of `file` from `offset` on, which never enter our memory: at least one and at
    /// most `length`, which is not 0. Returns how many, so that the caller can renew its deadline as bytes move, and let
    /// others have their turn.
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
        let stretch = Stretch { offset, length };
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

    /// Sends what is queued, waits until the kernel has all of it and ends our side of the connection.
    ///
    /// # Errors
    /// As [`Stream::flush`].
    pub async fn shutdown(&self) -> Result<(), Error> {
        self.sent().await?;
        self.core.inner().state.borrow_mut().end(self.key)
    }

    /// Makes the coming drop a reset, so that the peer cannot take what it has got for everything there was. What is
    /// on its way may be lost: the drop does not wait for it. A Unix socket knows no resets of its own accord: there it has no effect.
    pub fn reset_when_dropped(&self) {
        self.core
            .inner()
            .state
            .borrow_mut()
            .reset_at_close(self.key);
    }

    /// Has the kernel report what arrives from now on, so that [`Stream::is_spent`] need not ask it: for connections that are
    /// kept while nobody receives.
    pub fn watch_arrivals(&self) {
        let state = &mut *self.core.inner().state.borrow_mut();
        state
            .driver
            .watch_arrivals(self.key, &mut state.sockets[self.key]);
    }

    /// Whether the peer has ended its side, the connection failed, or bytes have arrived that nobody asked for; all of
    /// which mean that a pooled connection must not be used again.
    #[inline]
    pub fn is_spent(&self) -> bool {
        let state = self.core.inner().state.borrow();
        let socket = &state.sockets[self.key];
        socket.send_failed.is_some() || state.driver.is_spent(socket)
    }

    /// The core it belongs to.
    pub fn core(&self) -> &Core {
        &self.core
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.core.inner().state.borrow_mut().close(self.key);
    }
}
