//! From a connection to a session: rustls speaks, this carries its words to and fro.

mod refusal;

use std::sync::Arc;

use onrush_engine::{BUFFER_BYTES, Buffer, Core, Error, Input, Stream};
use rustls::client::UnbufferedClientConnection;
use rustls::pki_types::ServerName;
use rustls::server::UnbufferedServerConnection;
use rustls::unbuffered::{ConnectionState, EncodeError, EncodeTlsData, UnbufferedStatus};
use rustls::{ClientConfig, CommonState, ExtractedSecrets, ProtocolVersion, ServerConfig};

use crate::error::HandshakeError;
use crate::heard::Heard;
use crate::info::{self, Info};
use crate::limits::{EARLY_RECORD_BYTES_MAX, HANDSHAKE_BYTES_MAX};
use crate::record::{self, Opener, Sealer};
use crate::session::{Keeper, Session};

/// The first byte of a handshake's record (RFC 8446 5.1).
const HANDSHAKE_RECORD: u8 = 22;
/// Where the first record has the version of its hello: behind the header of the record, the type and the length.
const HELLO_VERSION: std::ops::Range<usize> = 9..11;

/// Shakes hands with a client, of whom `received` has come already, by the stream's deadline.
///
/// # Errors
/// See [`HandshakeError`]; the client has been told as far as it can understand.
pub(crate) async fn accept(
    stream: &Stream,
    received: Input,
    config: Arc<ServerConfig>,
) -> Result<Session, HandshakeError> {
    let connection = UnbufferedServerConnection::new(config).map_err(HandshakeError::Tls)?;
    shake(stream, received, Side::Server(connection)).await
}

/// Shakes hands with the server `name`, by the stream's deadline.
///
/// # Errors
/// See [`HandshakeError`].
pub(crate) async fn connect(
    stream: &Stream,
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
) -> Result<Session, HandshakeError> {
    let connection = UnbufferedClientConnection::new(config, name).map_err(HandshakeError::Tls)?;
    shake(stream, Input::default(), Side::Client(connection)).await
}

async fn shake(
    stream: &Stream,
    received: Input,
    mut side: Side,
) -> Result<Session, HandshakeError> {
    let mut incoming = Incoming {
        input: received,
        ..Incoming::default()
    };
    let mut outbox = Outbox::new(stream);
    if side.is_plain_http(incoming.bytes()) {
        refusal::refuse_plain_http(stream).await?;
        return Err(HandshakeError::PlainHttp);
    }
    let mut heard = Heard::default();
    loop {
        let step = heard.during(|| side.step(&mut incoming, &mut outbox))?;
        if std::mem::take(&mut heard.is_unopened) {
            incoming.skip_early_data()?;
        }
        match step {
            Step::Done => break,
            Step::Again => {}
            Step::Blocked if incoming.show_next_record() => {}
            Step::Blocked => {
                outbox.flush().await?;
                let is_first = incoming.bytes().is_empty();
                if incoming.receive(stream).await? == 0 {
                    return Err(HandshakeError::Ended);
                }
                if is_first && side.is_plain_http(incoming.bytes()) {
                    refusal::refuse_plain_http(stream).await?;
                    return Err(HandshakeError::PlainHttp);
                }
            }
            Step::Failed(error) => {
                let (own, error) = refusal::of(error, &side, &incoming);
                match own {
                    Some(alert) => refusal::say(stream, alert, &mut outbox).await,
                    None => refusal::say_why(stream, &mut side, &mut incoming, &mut outbox).await,
                }
                return Err(match heard.refused {
                    Some(why) => HandshakeError::Certificate(why),
                    None => HandshakeError::Tls(error),
                });
            }
        }
    }
    if side.has_last_word() {
        outbox.flush().await?;
    } else {
        outbox.queue();
    }
    let mut session = side.into_session(heard.name)?;
    session.incoming = incoming.into_input(stream.core())?;
    Ok(session)
}

/// One of the two ends, as rustls plays it.
#[allow(
    clippy::large_enum_variant,
    reason = "one per handshake, and never moved in numbers"
)]
enum Side {
    Server(UnbufferedServerConnection),
    Client(UnbufferedClientConnection),
}

/// What has to happen next.
enum Step {
    Again,
    /// The peer has to speak.
    Blocked,
    Done,
    Failed(rustls::Error),
}

impl Side {
    fn step(&mut self, incoming: &mut Incoming, outbox: &mut Outbox<'_>) -> Result<Step, Error> {
        let (discard, step) = match self {
            Side::Server(connection) => {
                take(connection.process_tls_records(incoming.shown_mut()), outbox)
            }
            Side::Client(connection) => {
                take(connection.process_tls_records(incoming.shown_mut()), outbox)
            }
        };
        incoming.consume(discard);
        let state = self.state();
        match step? {
            // All is said and heard. What follows is for the session: rustls would open it with keys that it gives away.
            Step::Again if !state.wants_write() && !state.is_handshaking() => Ok(Step::Done),
            step => Ok(step),
        }
    }

    fn state(&self) -> &CommonState {
        match self {
            Side::Server(connection) => connection,
            Side::Client(connection) => connection,
        }
    }

    /// Whether the peer waits for what we say last. What a TLS 1.3 server says last are tickets: they leave with its first
    /// answer when the request has arrived already, and else as soon as it waits for one.
    fn has_last_word(&self) -> bool {
        match self {
            Side::Server(connection) => {
                connection.protocol_version() != Some(ProtocolVersion::TLSv1_3)
            }
            Side::Client(_) => true,
        }
    }

    fn is_plain_http(&self, bytes: &[u8]) -> bool {
        match self {
            Side::Server(_) => bytes
                .first()
                .is_some_and(|&byte| byte != HANDSHAKE_RECORD && byte.is_ascii_uppercase()),
            Side::Client(_) => false,
        }
    }

    /// Takes the keys over; the client asked for `name`.
    fn into_session(self, name: Option<Box<str>>) -> Result<Session, HandshakeError> {
        let end = match self {
            Side::Server(_) => info::Side::Server,
            Side::Client(_) => info::Side::Client,
        };
        let (info, secrets, keeper) = match self {
            Side::Server(connection) => {
                let info = Info::new(&connection, name, info::Side::Server);
                let (secrets, keeper) = connection
                    .dangerous_into_kernel_connection()
                    .map_err(HandshakeError::Tls)?;
                (info, secrets, Keeper::Server(keeper))
            }
            Side::Client(connection) => {
                let info = Info::new(&connection, None, info::Side::Client);
                let (secrets, keeper) = connection
                    .dangerous_into_kernel_connection()
                    .map_err(HandshakeError::Tls)?;
                (info, secrets, Keeper::Client(keeper))
            }
        };
        let ExtractedSecrets { tx, rx } = secrets;
        let (version, keeper) = match info.version {
            info::Version::Tls12 => (ProtocolVersion::TLSv1_2, None),
            info::Version::Tls13 => (ProtocolVersion::TLSv1_3, Some(Box::new(keeper))),
        };
        let sealer = Sealer::new(version, tx.0, &tx.1);
        let opener = Opener::new(version, rx.0, &rx.1);
        Ok(Session::new(sealer, opener, keeper, info, end))
    }
}

/// Does what rustls asks for, as far as that needs no waiting; and how many bytes it has read.
fn take<Data>(
    status: UnbufferedStatus<'_, '_, Data>,
    outbox: &mut Outbox<'_>,
) -> (usize, Result<Step, Error>) {
    let UnbufferedStatus { discard, state } = status;
    let step = match state {
        Ok(ConnectionState::EncodeTlsData(message)) => outbox.put(message).map(|()| Step::Again),
        Ok(ConnectionState::TransmitTlsData(message)) => {
            // It is sent before the next wait.
            message.done();
            Ok(Step::Again)
        }
        Ok(ConnectionState::BlockedHandshake) => Ok(Step::Blocked),
        Ok(ConnectionState::WriteTraffic(_)) => Ok(Step::Done),
        // Data before the end of the handshake is never accepted, and an end no success.
        Ok(_) => Ok(Step::Failed(rustls::Error::HandshakeNotComplete)),
        Err(error) => Ok(Step::Failed(error)),
    };
    (discard, step)
}

/// What has been received and rustls has not consumed: one buffer, or as long as a message needs.
#[derive(Default)]
struct Incoming {
    input: Input,
    /// Used once a buffer was too short. Invariant: then `input` is empty between receives.
    long: Vec<u8>,
    /// The bytes that rustls may look at: whole records, and none behind the one that completes the handshake.
    shown: usize,
    /// What the first record's hello says of its version (RFC 8446 4.1.2).
    hello_version: Option<[u8; 2]>,
    /// Bytes of early data that were skipped.
    skipped: usize,
}

impl Incoming {
    fn bytes(&self) -> &[u8] {
        if self.long.is_empty() {
            self.input.bytes()
        } else {
            &self.long
        }
    }

    fn shown_mut(&mut self) -> &mut [u8] {
        let bytes = if self.long.is_empty() {
            self.input.bytes_mut()
        } else {
            &mut self.long
        };
        &mut bytes[..self.shown]
    }

    /// Shows one more record, if it is there; what is none is shown as it is, so that rustls refuses it.
    fn show_next_record(&mut self) -> bool {
        if self.hello_version.is_none() {
            self.hello_version = self.bytes().get(HELLO_VERSION).map(|two| [two[0], two[1]]);
        }
        let hidden = &self.bytes()[self.shown..];
        let more = match record::length(hidden) {
            // Nobody has a version other than 3.x: what claims one is no record, and rustls is to say so at once.
            Ok(Some(_)) if hidden[1] != 3 => hidden.len(),
            Ok(Some(length)) if length <= hidden.len() => length,
            Ok(_) => return false,
            Err(_) => hidden.len(),
        };
        self.shown += more;
        true
    }

    fn consume(&mut self, count: usize) {
        self.shown -= count;
        if !self.long.is_empty() {
            self.long.drain(..count);
        } else if count > 0 {
            self.input.consume(count);
        }
    }

    /// Drops the record that was shown and could not be opened: early data, of which rustls skips a record without an end
    /// of its own, and would look at it again with the next one (RFC 8446 4.2.10).
    fn skip_early_data(&mut self) -> Result<(), HandshakeError> {
        self.skipped += self.shown;
        self.consume(self.shown);
        if self.skipped > EARLY_RECORD_BYTES_MAX {
            return Err(HandshakeError::TooLong);
        }
        Ok(())
    }

    /// What is left for the session.
    fn into_input(mut self, core: &Core) -> Result<Input, HandshakeError> {
        if !self.long.is_empty() && self.input.put_some(&self.long, core)? < self.long.len() {
            return Err(HandshakeError::TooLong);
        }
        Ok(self.input)
    }

    async fn receive(&mut self, stream: &Stream) -> Result<usize, HandshakeError> {
        if self.input.bytes().len() == BUFFER_BYTES {
            self.spill();
        }
        let count = stream.recv(&mut self.input).await?;
        if !self.long.is_empty() {
            self.spill();
            if self.long.len() > HANDSHAKE_BYTES_MAX + BUFFER_BYTES {
                return Err(HandshakeError::TooLong);
            }
        }
        Ok(count)
    }

    fn spill(&mut self) {
        self.long.extend_from_slice(self.input.bytes());
        self.input.consume(self.input.bytes().len());
    }
}

/// What is to be sent: several messages in one go.
struct Outbox<'s> {
    stream: &'s Stream,
    buffer: Option<Buffer>,
}

impl<'s> Outbox<'s> {
    fn new(stream: &'s Stream) -> Self {
        Self {
            stream,
            buffer: None,
        }
    }

    fn put<Data>(&mut self, mut message: EncodeTlsData<'_, Data>) -> Result<(), Error> {
        loop {
            if self.buffer.is_none() {
                self.buffer = Some(self.stream.core().buffer()?);
            }
            let buffer = self.buffer.as_mut().expect("set above");
            match message.encode(buffer.spare()) {
                Ok(count) => {
                    buffer.fill(count);
                    return Ok(());
                }
                Err(EncodeError::InsufficientSize(_)) => {
                    assert!(!buffer.is_empty(), "a record fits a buffer");
                    self.queue();
                }
                Err(EncodeError::AlreadyEncoded) => unreachable!("left with the first success"),
            }
        }
    }

    /// Hands what is written to the stream.
    fn queue(&mut self) {
        if let Some(buffer) = self.buffer.take() {
            self.stream.queue(buffer);
        }
    }

    async fn flush(&mut self) -> Result<(), Error> {
        self.queue();
        self.stream.flush().await
    }
}
