//! A connection's transport: the operations of [`Stream`], whatever the bytes look like on the wire.

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
/// Its operations are those of [`Stream`], with the same contracts. With TLS, in addition:
///
/// - what is queued together leaves together, in full records and one that is not, as far as it need not wait;
/// - the end of what is received is the peer's word that nothing more comes. Without that word it is
///   [`Kind::Truncated`], and what was received may have lost its end; a message that says how long it is has not;
/// - a peer that breaks the protocol is told, and [`Kind::Alert`] says which rule it was;
/// - an idle connection holds no buffers.
pub struct Transport {
    stream: Stream,
    /// `None` for a plain connection, which costs this one look at each operation.
    tls: Option<Box<RefCell<Tls>>>,
}

impl Transport {
    /// A connection whose bytes are sent as they are.
    pub fn plain(stream: Stream) -> Self {
        Self { stream, tls: None }
    }

    /// Shakes hands with a client that has connected, by `deadline`; `received` has come of it already. The deadline of
    /// the connection is unset afterwards.
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
        // Boxed: a handshake needs more memory than a connection, and not for long.
        let session = Box::pin(handshake::accept(&stream, received, acceptor.config())).await?;
        Ok(Self::of(stream, session))
    }

    /// Shakes hands with the server `host` that was connected to, by `deadline`. The deadline of the connection is unset
    /// afterwards.
    ///
    /// # Errors
    /// See [`HandshakeError`]. With TLS 1.3 a server that refuses our certificate says so only where its first response
    /// would be.
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
            is_greeting: true,
            is_sending: false,
            is_resetting: false,
        };
        Self {
            stream,
            tls: Some(Box::new(RefCell::new(tls))),
        }
    }

    /// The connection itself when its bytes are sent as they are, for those who pass them on without a look; `None` with
    /// TLS.
    pub fn as_plain(&self) -> Option<&Stream> {
        self.tls.is_none().then_some(&self.stream)
    }

    /// What was agreed on in the handshake; `None` for a plain connection.
    pub fn info(&self) -> Option<Rc<Info>> {
        let tls = self.tls.as_ref()?;
        Some(Rc::clone(&tls.borrow().session.info))
    }

    /// [`Transport::info`] for those who only look at it.
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

    /// See [`Stream::poll_recv_or_drop`]. With TLS nothing is dropped, since all of it has to be opened.
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

    /// See [`Stream::recv_arrived`]. A record that has come in part has not arrived.
    ///
    /// # Errors
    /// As there; with TLS also [`Kind::Truncated`] and [`Kind::Alert`].
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

    /// Queues a copy of `bytes` in buffers of the core, or on the heap if no buffer is free: the bytes may have changed the state of
    /// a protocol (HPACK, windows), so they must be sent.
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

    /// See [`Stream::send_file`]. With TLS the file is read into our memory, a few buffers of it at a time.
    ///
    /// # Errors
    /// As there.
    pub async fn send_file(&self, file: &File, offset: u64, length: u64) -> Result<u64, Error> {
        if self.tls.is_none() {
            return self.stream.send_file(file, offset, length).await;
        }
        let bytes = self.queue_file(file, offset, length)?;
        self.flush().await?;
        Ok(bytes)
    }

    /// Queues what one send takes of a file.
    fn queue_file(&self, file: &File, offset: u64, length: u64) -> Result<u64, Error> {
        debug_assert!(length > 0);
        let length = length.min((RECORDS_PER_SEND * PLAINTEXT_MAX) as u64);
        let mut bytes = 0;
        while bytes < length {
            let left = length - bytes;
            let mut buffer = self.core().buffer_for(left)?;
            // Full records: what is left over would make a short one.
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

    /// See [`Stream::shutdown`]; with TLS the peer is told first.
    ///
    /// # Errors
    /// As there.
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

    /// See [`Stream::is_spent`]. With TLS, what has arrived is looked at: a ticket or a new key spends nothing.
    #[inline]
    pub fn is_spent(&self) -> bool {
        match &self.tls {
            None => self.stream.is_spent(),
            Some(tls) => tls.borrow_mut().is_spent(&self.stream),
        }
    }

    /// See [`Stream::place`].
    pub fn place(&self) -> u32 {
        self.stream.place()
    }

    /// See [`Stream::number`].
    pub fn number(&self) -> u32 {
        self.stream.number()
    }

    /// See [`Stream::change_note`].
    #[inline]
    pub fn change_note(&self, change: impl FnOnce(Note) -> Note) {
        self.stream.change_note(change);
    }

    /// The core it belongs to.
    #[inline]
    pub fn core(&self) -> &Core {
        self.stream.core()
    }
}

impl Drop for Transport {
    /// An orderly end, unless another was asked for.
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
