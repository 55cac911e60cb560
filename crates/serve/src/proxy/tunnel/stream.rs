//! Tunnels between an HTTP/2 stream (RFC 8441) and a connection. The stream's window is updated only after the
//! connection has taken the bytes, and the connection is read only when the stream can take more.
//!
//! ```text
//!   stream ── DATA ──> window ── send ──> connection     END_STREAM <──> FIN
//!          <── DATA ── buffer <── recv ──                    CANCEL <──> reset
//! ```

use std::future::poll_fn;
use std::mem;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use onrush_engine::{Error, Input, Part};
use onrush_tls::Transport;

use super::end_guard::{End, TunnelEndGuard};
use super::idle_times::IdleTimes;
use super::silence::Silence;
use crate::exchange::downstream::http1::Http1;
use crate::exchange::downstream::http2::Stream;
use crate::exchange::stream_tunnel_end::{StreamTunnelEnd, tunnel_reset_error};
use crate::proxy::multiplexed::TunnelStream;

/// Relays bytes between a client on a stream and its server, starting with `input` from the server.
///
/// # Errors
/// The error of the end that failed.
pub(super) fn run_from_stream<'t>(
    client: &'t Stream,
    (server, input): (&'t Transport, Input),
    times: IdleTimes,
) -> impl Future<Output = Result<(), Error>> + 't {
    let ends = TunnelEnds {
        stream: client,
        connection: server,
        whose: PeerSide::Server,
        times,
        idle_max: times.open(),
    };
    ends.run(input)
}

/// Relays bytes between a client and its server on a stream.
///
/// # Errors
/// The error of the end that failed.
pub(super) async fn run_to_stream(
    client: &mut Http1,
    server: &TunnelStream,
    times: IdleTimes,
) -> Result<(), Error> {
    let input = mem::take(&mut client.input);
    let ends = TunnelEnds {
        stream: server,
        connection: &client.stream,
        whose: PeerSide::Client,
        times,
        idle_max: times.open(),
    };
    ends.run(input).await
}

/// Both ends and their idle timeouts.
#[derive(Clone, Copy)]
struct TunnelEnds<'t> {
    stream: &'t dyn StreamTunnelEnd,
    connection: &'t Transport,
    /// The peer of the connection.
    whose: PeerSide,
    times: IdleTimes,
    /// The timeout of `times` that applies now.
    idle_max: Duration,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum PeerSide {
    Client,
    Server,
}

impl<'t> TunnelEnds<'t> {
    /// Relays bytes, `input` of the connection first, until both ends have closed their sides. An end that has not
    /// received everything from the other is reset.
    async fn run(self, input: Input) -> Result<(), Error> {
        self.restart_idle_timeout();
        let mut up = ToConnection::Bytes;
        let mut down = ToStream::Room(input);
        let mut silence = Silence::default();
        let mut hearer = TunnelEndGuard::new(self.connection);
        let outcome = poll_fn(|context| self.poll(&mut up, &mut down, &mut silence, context)).await;
        hearer.has_all = matches!(up, ToConnection::Over);
        if !matches!(down, ToStream::Over) {
            self.stream.cancel();
        }
        outcome
    }

    fn poll(
        mut self,
        up: &mut ToConnection<'t>,
        down: &mut ToStream,
        silence: &mut Silence,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), Error>> {
        if let Poll::Ready(error) = self.stream.poll_reset(context) {
            return Poll::Ready(Err(error));
        }
        let is_half_closed =
            |up: &ToConnection<'_>, down: &ToStream| up.is_at_end() || down.is_at_end();
        let was_half_closed = is_half_closed(up, down);
        if was_half_closed {
            self.idle_max = self.times.half_closed();
        }
        for way in [up.poll(self, context), down.poll(self, context)] {
            if let Poll::Ready(Err(error)) = way {
                return Poll::Ready(Err(error));
            }
        }
        if !was_half_closed && is_half_closed(up, down) {
            self.idle_max = self.times.half_closed();
            self.restart_idle_timeout();
            silence.end();
        }
        match (&up, &down) {
            (ToConnection::Over, ToStream::Over) => return Poll::Ready(Ok(())),
            (ToConnection::Over, _) if !self.stream.peer_still_reads() && !down.is_at_end() => {
                return Poll::Ready(Err(tunnel_reset_error()));
            }
            // Otherwise, as in other tunnels, check for a hang-up: a client is not read while the stream takes nothing.
            (ToConnection::Over, _) | (_, ToStream::Over) => {}
            _ if self.whose == PeerSide::Client => {
                if let Poll::Ready(error) = self.connection.poll_hung_up() {
                    return Poll::Ready(Err(error));
                }
            }
            _ => {}
        }
        // The connection has an idle timeout of its own.
        if up.awaits_connection() || down.awaits_connection() {
            silence.end();
            return Poll::Pending;
        }
        let time = (self.connection.core(), self.idle_max);
        silence
            .poll(self.stream.bytes_moved(), time, context)
            .map(Err)
    }

    /// Restarts the connection's idle timeout, for a byte in either direction.
    fn restart_idle_timeout(self) {
        self.connection.set_send_patience(self.idle_max);
    }
}

/// Direction from the stream to the connection: what it waits for.
enum ToConnection<'t> {
    /// Bytes from the stream, or its end.
    Bytes,
    /// The connection to take this number of bytes.
    Sent(usize),
    /// The shutdown of the connection.
    End(End<'t>),
    /// Finished.
    Over,
}

impl<'t> ToConnection<'t> {
    /// Whether the stream has ended.
    fn is_at_end(&self) -> bool {
        matches!(self, ToConnection::End(_) | ToConnection::Over)
    }

    fn awaits_connection(&self) -> bool {
        match self {
            ToConnection::Sent(_) | ToConnection::End(_) => true,
            ToConnection::Bytes | ToConnection::Over => false,
        }
    }

    fn poll(&mut self, ends: TunnelEnds<'t>, context: &mut Context<'_>) -> Poll<Result<(), Error>> {
        let TunnelEnds {
            stream, connection, ..
        } = ends;
        loop {
            *self = match self {
                ToConnection::Bytes => {
                    let bytes = ready!(stream.poll_bytes(context))?;
                    ends.restart_idle_timeout();
                    match bytes.len() {
                        0 => ToConnection::End(Box::pin(connection.shutdown())),
                        count => {
                            connection.queue(Part::Shared(Rc::from(bytes), 0));
                            ToConnection::Sent(count)
                        }
                    }
                }
                ToConnection::Sent(count) => {
                    ready!(connection.poll_flush())?;
                    stream.release(*count);
                    ends.restart_idle_timeout();
                    ToConnection::Bytes
                }
                ToConnection::End(end) => {
                    ready!(end.as_mut().poll(context))?;
                    ToConnection::Over
                }
                ToConnection::Over => return Poll::Ready(Ok(())),
            }
        }
    }
}

/// Direction from the connection to the stream: what it waits for.
enum ToStream {
    /// Window of the stream. The input holds only bytes that arrived with the head.
    Room(Input),
    /// Bytes from the connection, or its end.
    Bytes(Input),
    /// The stream to send the received bytes within its windows.
    Sent(Input),
    /// The stream to send all bytes and the end.
    End,
    /// Finished.
    Over,
}

impl ToStream {
    fn awaits_connection(&self) -> bool {
        match self {
            ToStream::Bytes(_) => true,
            ToStream::Room(_) | ToStream::Sent(_) | ToStream::End | ToStream::Over => false,
        }
    }

    /// Whether everything, including the end, has been put on the stream.
    fn is_at_end(&self) -> bool {
        matches!(self, ToStream::End | ToStream::Over)
    }

    fn poll(&mut self, ends: TunnelEnds<'_>, context: &mut Context<'_>) -> Poll<Result<(), Error>> {
        let TunnelEnds {
            stream, connection, ..
        } = ends;
        loop {
            *self = match self {
                ToStream::Room(input) => {
                    ready!(stream.poll_room(context))?;
                    ToStream::Bytes(mem::take(input))
                }
                ToStream::Bytes(input) => {
                    if input.is_empty() && ready!(connection.poll_recv(input))? == 0 {
                        stream.end();
                        ToStream::End
                    } else {
                        stream.put(input);
                        ends.restart_idle_timeout();
                        ToStream::Sent(mem::take(input))
                    }
                }
                ToStream::Sent(input) => {
                    ready!(stream.poll_put(context))?;
                    ends.restart_idle_timeout();
                    ToStream::Room(mem::take(input))
                }
                ToStream::End => {
                    ready!(stream.poll_put(context))?;
                    ToStream::Over
                }
                ToStream::Over => return Poll::Ready(Ok(())),
            }
        }
    }
}
