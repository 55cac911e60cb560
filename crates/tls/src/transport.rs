//! A connection's transport: the operations of [`Stream`], with or without TLS.

mod tls;

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::net::SocketAddr;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use onrush_engine::{Core, Error, File, Input, Instant, Kind, Note, Op, Part, Stream, TcpInfo};

use self::tls::Tls;
use crate::acceptor::Acceptor;
use crate::connector::Connector;
use crate::error::HandshakeError;
use crate::handshake;
use crate::info::Info;
use crate::limits::{PLAINTEXT_MAX, RECORDS_PER_SEND};
use crate::session::Session;

/// A connection over TCP or a Unix socket, with TLS or without. Dropping it closes the connection.
///
/// It has the operations of [`Stream`] with the same contracts. With TLS, in addition:
///
/// - parts queued together are sent together, in full records and a shorter last one, as far as possible without
///   waiting;
/// - the end of received data is the peer's close_notify. An end without it is [`Kind::Truncated`]: the data may be
///   incomplete, unless it has a length of its own;
/// - a peer that violates the protocol gets an alert, and [`Kind::Alert`] has its number;
/// - an idle connection holds no buffers.
pub struct Transport {
    stream: Stream,
    /// `None` for a plain connection, which costs one check per operation.
    tls: Option<Box<RefCell<Tls>>>,
}

impl Transport {
    /// Returns a connection without TLS.
    pub fn plain(stream: Stream) -> Self {
        Self { stream, tls: None }
    }

    /// Does the handshake with a client by `deadline`, which is unset afterwards; `received` are bytes already
    /// received.
    ///
    /// # Errors
    /// See [`HandshakeError`].
    pub async fn accept(
        stream: Stream,
        received: Input,
        acceptor: &Acceptor,
        deadline: Instant,
    ) -> Result<Self, HandshakeError> {
        stream.set_deadline(Some(deadline));
        // Boxed: a handshake needs more memory than a connection, and only for a short time.
        let session = Box::pin(handshake::accept(&stream, received, acceptor.config())).await?;
        Ok(Self::of(stream, session))
    }

    /// Does the handshake with the connected server `host` by `deadline`, which is unset afterwards.
    ///
    /// # Errors
    /// See [`HandshakeError`]. A TLS 1.3 server that refuses our certificate reports that only in place of its first
    /// response.
    pub async fn connect(
        stream: Stream,
        connector: &Connector,
        host: &str,
        deadline: Instant,
    ) -> Result<Self, HandshakeError> {
        let name = connector.name(host)?;
        stream.set_deadline(Some(deadline));
        let session = Box::pin(handshake::connect(&stream, connector.config(), name)).await?;
        Ok(Self::of(stream, session))
    }

    fn of(stream: Stream, session: Session) -> Self {
        stream.set_deadline(None);
        let tls = Tls {
            session,
            has_unsent_tickets: true,
            is_sending: false,
            is_resetting: false,
        };
        Self {
            stream,
            tls: Some(Box::new(RefCell::new(tls))),
        }
    }

    /// Returns the stream of a plain connection, for callers that pass bytes on without reading them; `None` with TLS.
    pub fn as_plain(&self) -> Option<&Stream> {
        self.tls.is_none().then_some(&self.stream)
    }

    /// Negotiated parameters; `None` for a plain connection.
    pub fn info(&self) -> Option<Rc<Info>> {
        let tls = self.tls.as_ref()?;
        Some(Rc::clone(&tls.borrow().session.info))
    }

    /// Passes the negotiated parameters to `look`, without counting a reference.
    pub fn with_info<T>(&self, look: impl FnOnce(&Info) -> T) -> Option<T> {
        let tls = self.tls.as_ref()?;
        Some(look(&tls.borrow().session.info))
    }

    /// See [`Stream::set_deadline`].
    #[inline]
    pub fn set_deadline(&self, deadline: Option<Instant>) {
        self.stream.set_deadline(deadline);
    }

    /// See [`Stream::deadline`].
    pub fn deadline(&self) -> Option<Instant> {
        self.stream.deadline()
    }

    /// See [`Stream::set_send_patience`].
    #[inline]
    pub fn set_send_patience(&self, patience: Duration) {
        self.stream.set_send_patience(patience);
    }

    // Plain functions that return a future, as in the engine: an `async fn` would hold its arguments twice.

    /// See [`Stream::recv`].
    ///
    /// # Errors
    /// As there; with TLS also [`Kind::Truncated`] and [`Kind::Alert`].
    pub fn recv(&self, input: &mut Input) -> impl Future<Output = Result<usize, Error>> {
        poll_fn(move |_| self.poll_recv(input))
    }

    /// See [`Stream::poll_recv_or_drop`]. With TLS nothing is dropped, because everything has to be decrypted.
    #[inline]
    pub fn poll_recv_or_drop(&self, input: &mut Input, max: u64) -> Poll<Result<usize, Error>> {
        match &self.tls {
            None if max > 0 => self.stream.poll_recv_or_drop(input, max),
            None | Some(_) => self.poll_recv(input),
        }
    }

    /// See [`Stream::poll_recv`].
    #[inline]
    pub fn poll_recv(&self, input: &mut Input) -> Poll<Result<usize, Error>> {
        self.poll_recv_by(Stream::poll_recv, input)
    }

    #[inline]
    fn poll_recv_by(
        &self,
        receive: impl Fn(&Stream, &mut Input) -> Poll<Result<usize, Error>>,
        input: &mut Input,
    ) -> Poll<Result<usize, Error>> {
        match &self.tls {
            None => receive(&self.stream, input),
            Some(tls) => tls.borrow_mut().poll_recv(&self.stream, input, receive),
        }
    }

    /// See [`Stream::poll_hung_up`].
    #[inline]
    pub fn poll_hung_up(&self) -> Poll<Error> {
        self.stream.poll_hung_up()
    }

    /// See [`Stream::recv_unless_stopping`].
    ///
    /// # Errors
    /// As there; with TLS also [`Kind::Truncated`] and [`Kind::Alert`].
    pub fn recv_unless_stopping(
        &self,
        input: &mut Input,
    ) -> impl Future<Output = Result<usize, Error>> {
        poll_fn(move |_| self.poll_recv_by(Stream::poll_recv_unless_stopping, input))
    }

    /// See [`Stream::recv_arrived`]. An incomplete record counts as not arrived.
    pub fn recv_arrived(&self, input: &mut Input) -> impl Future<Output = Result<usize, Error>> {
        poll_fn(move |_| self.poll_recv_by(Stream::poll_recv_arrived, input))
    }

    /// See [`Stream::queue`].
    #[inline]
    pub fn queue(&self, part: impl Into<Part>) {
        match &self.tls {
            None => self.stream.queue(part),
            Some(tls) => tls.borrow_mut().session.queue(part.into()),
        }
    }

    /// Queues a copy of `bytes` in buffers of the core, or on the heap if no buffer is free: they may have changed the
    /// state of a protocol (HPACK, windows), so they must be sent.
    pub fn queue_bytes(&self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let Ok(mut buffer) = self.core().buffer() else {
                return self.queue(Part::Shared(Rc::from(bytes), 0));
            };
            let count = buffer.put_some(bytes);
            bytes = &bytes[count..];
            self.queue(buffer);
        }
    }

    /// See [`Stream::flush`].
    ///
    /// # Errors
    /// As there.
    pub fn flush(&self) -> impl Future<Output = Result<(), Error>> {
        poll_fn(|_| self.poll_flush())
    }

    /// See [`Stream::poll_flush`].
    #[inline]
    pub fn poll_flush(&self) -> Poll<Result<(), Error>> {
        match &self.tls {
            None => self.stream.poll_flush(),
            Some(tls) => tls.borrow_mut().poll_flush(&self.stream),
        }
    }

    /// See [`Stream::written`].
    #[inline]
    pub fn written(&self) -> Option<Instant> {
        self.stream.written()
    }

    /// See [`Stream::tcp_info`].
    pub fn tcp_info(&self) -> Option<TcpInfo> {
        self.stream.tcp_info()
    }

    /// See [`Stream::send_file`]. With TLS the file is read into memory, a few buffers at a time.
    pub async fn send_file(&self, file: &File, offset: u64, length: u64) -> Result<u64, Error> {
        if self.tls.is_none() {
            return self.stream.send_file(file, offset, length).await;
        }
        let bytes = self.queue_file(file, offset, length)?;
        self.flush().await?;
        Ok(bytes)
    }

    /// Queues as much of a file as one send takes.
    fn queue_file(&self, file: &File, offset: u64, length: u64) -> Result<u64, Error> {
        debug_assert!(length > 0);
        let length = length.min((RECORDS_PER_SEND * PLAINTEXT_MAX) as u64);
        let mut bytes = 0;
        while bytes < length {
            let left = length - bytes;
            let mut buffer = self.core().buffer_for(left)?;
            // Full records only: a remainder would make a short one.
            let room = buffer.room() / PLAINTEXT_MAX * PLAINTEXT_MAX;
            let wanted = left.min(room as u64) as usize;
            let count = file.read(offset + bytes, &mut buffer.spare()[..wanted])?;
            buffer.fill(count);
            self.queue(buffer);
            bytes += count as u64;
            if count == 0 {
                break;
            }
        }
        if bytes == 0 {
            return Err(Error::new(Op::SendFile, Kind::FileTooShort));
        }
        Ok(bytes)
    }

    /// See [`Stream::shutdown`]; with TLS sends close_notify first.
    pub async fn shutdown(&self) -> Result<(), Error> {
        if let Some(tls) = &self.tls {
            poll_fn(|_| tls.borrow_mut().poll_flush(&self.stream)).await?;
            tls.borrow_mut().say_goodbye(&self.stream);
        }
        self.stream.shutdown().await
    }

    /// See [`Stream::reset_when_dropped`].
    pub fn reset_when_dropped(&self) {
        if let Some(tls) = &self.tls {
            tls.borrow_mut().is_resetting = true;
        }
        self.stream.reset_when_dropped();
    }

    /// See [`Stream::peer`].
    pub fn peer(&self) -> Option<SocketAddr> {
        self.stream.peer()
    }

    /// See [`Stream::local`].
    pub fn local(&self) -> Option<SocketAddr> {
        self.stream.local()
    }

    /// See [`Stream::watch_arrivals`].
    pub fn watch_arrivals(&self) {
        self.stream.watch_arrivals();
    }

    /// See [`Stream::is_spent`]. With TLS, received records are examined: a ticket or a KeyUpdate does not count.
    #[inline]
    pub fn is_spent(&self) -> bool {
        match &self.tls {
            None => self.stream.is_spent(),
            Some(tls) => tls.borrow_mut().is_spent(&self.stream),
        }
    }

    /// See [`Stream::slot_index`].
    pub fn place(&self) -> u32 {
        self.stream.slot_index()
    }

    /// See [`Stream::sequence_number`].
    pub fn number(&self) -> u32 {
        self.stream.sequence_number()
    }

    /// See [`Stream::change_note`].
    #[inline]
    pub fn change_note(&self, change: impl FnOnce(Note) -> Note) {
        self.stream.change_note(change);
    }

    /// Core of the connection.
    #[inline]
    pub fn core(&self) -> &Core {
        self.stream.core()
    }
}

impl Drop for Transport {
    /// Sends close_notify, unless a reset was requested or data is being sent.
    fn drop(&mut self) {
        if let Some(tls) = &mut self.tls {
            let tls = tls.get_mut();
            if !tls.is_resetting && !tls.is_sending {
                tls.say_goodbye(&self.stream);
            }
        }
    }
}

#[cfg(test)]
mod tests;
