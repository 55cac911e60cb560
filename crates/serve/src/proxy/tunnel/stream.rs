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

use super::hearer::{End, Hearer};
use super::idle_times::IdleTimes;
use super::silence::Silence;
use crate::exchange::downstream::http1::Http1;
use crate::exchange::downstream::http2::Stream;
use crate::exchange::stream_end::{StreamEnd, reset};
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
    let ends = Ends {
        stream: client,
        connection: server,
        whose: Whose::Server,
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
    let ends = Ends {
        stream: server,
        connection: &client.stream,
        whose: Whose::Client,
        times,
        idle_max: times.open(),
    };
    ends.run(input).await
}

/// Both ends and their idle timeouts.
#[derive(Clone, Copy)]
struct Ends<'t> {
    stream: &'t dyn StreamEnd,
    connection: &'t Transport,
    /// The peer of the connection.
    whose: Whose,
    times: IdleTimes,
    /// The timeout of `times` that applies now.
    idle_max: Duration,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Whose {
    Client,
    Server,
}

impl<'t> Ends<'t> {
    /// Relays bytes, `input` of the connection first, until both ends have closed their sides. An end that has not
    /// received everything from the other is reset.
    async fn run(self, input: Input) -> Result<(), Error> {
        self.moves();
        let mut up = Up::Bytes;
        let mut down = Down::Room(input);
        let mut silence = Silence::default();
        let mut hearer = Hearer::new(self.connection);
        let outcome = poll_fn(|context| self.poll(&mut up, &mut down, &mut silence, context)).await;
        hearer.has_all = matches!(up, Up::Over);
        if !matches!(down, Down::Over) {
            self.stream.cancel();
        }
        outcome
    }

    fn poll(
        mut self,
        up: &mut Up<'t>,
        down: &mut Down,
        silence: &mut Silence,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), Error>> {
        if let Poll::Ready(error) = self.stream.poll_reset(context) {
            return Poll::Ready(Err(error));
        }
        let is_half_closed = |up: &Up<'_>, down: &Down| up.is_at_end() || down.is_at_end();
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
            self.moves();
            silence.end();
        }
        match (&up, &down) {
            (Up::Over, Down::Over) => return Poll::Ready(Ok(())),
            (Up::Over, _) if !self.stream.takes_more() && !down.is_at_end() => {
                return Poll::Ready(Err(reset()));
            }
            // Otherwise, as in other tunnels, check for a hang-up: a client is not read while the stream takes nothing.
            (Up::Over, _) | (_, Down::Over) => {}
            _ if self.whose == Whose::Client => {
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
        silence.poll(self.stream.moved(), time, context).map(Err)
    }

    /// Restarts the connection's idle timeout, for a byte in either direction.
    fn moves(self) {
        self.connection.set_send_patience(self.idle_max);
    }
}

/// Direction from the stream to the connection: what it waits for.
enum Up<'t> {
    /// Bytes from the stream, or its end.
    Bytes,
    /// The connection to take this number of bytes.
    Sent(usize),
    /// The shutdown of the connection.
    End(End<'t>),
    /// Finished.
    Over,
}

impl<'t> Up<'t> {
    /// Whether the stream has ended.
    fn is_at_end(&self) -> bool {
        matches!(self, Up::End(_) | Up::Over)
    }

    fn awaits_connection(&self) -> bool {
        match self {
            Up::Sent(_) | Up::End(_) => true,
            Up::Bytes | Up::Over => false,
        }
    }

    fn poll(&mut self, ends: Ends<'t>, context: &mut Context<'_>) -> Poll<Result<(), Error>> {
        let Ends {
            stream, connection, ..
        } = ends;
        loop {
            *self = match self {
                Up::Bytes => {
                    let bytes = ready!(stream.poll_bytes(context))?;
                    ends.moves();
                    match bytes.len() {
                        0 => Up::End(Box::pin(connection.shutdown())),
                        count => {
                            connection.queue(Part::Shared(Rc::from(bytes), 0));
                            Up::Sent(count)
                        }
                    }
                }
                Up::Sent(count) => {
                    ready!(connection.poll_flush())?;
                    stream.release(*count);
                    ends.moves();
                    Up::Bytes
                }
                Up::End(end) => {
                    ready!(end.as_mut().poll(context))?;
                    Up::Over
                }
                Up::Over => return Poll::Ready(Ok(())),
            }
        }
    }
}

/// Direction from the connection to the stream: what it waits for.
enum Down {
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

impl Down {
    fn awaits_connection(&self) -> bool {
        match self {
            Down::Bytes(_) => true,
            Down::Room(_) | Down::Sent(_) | Down::End | Down::Over => false,
        }
    }

    /// Whether everything, including the end, has been put on the stream.
    fn is_at_end(&self) -> bool {
        matches!(self, Down::End | Down::Over)
    }

    fn poll(&mut self, ends: Ends<'_>, context: &mut Context<'_>) -> Poll<Result<(), Error>> {
        let Ends {
            stream, connection, ..
        } = ends;
        loop {
            *self = match self {
                Down::Room(input) => {
                    ready!(stream.poll_room(context))?;
                    Down::Bytes(mem::take(input))
                }
                Down::Bytes(input) => {
                    if input.is_empty() && ready!(connection.poll_recv(input))? == 0 {
                        stream.end();
                        Down::End
                    } else {
                        stream.put(input);
                        ends.moves();
                        Down::Sent(mem::take(input))
                    }
                }
                Down::Sent(input) => {
                    ready!(stream.poll_put(context))?;
                    ends.moves();
                    Down::Room(mem::take(input))
                }
                Down::End => {
                    ready!(stream.poll_put(context))?;
                    Down::Over
                }
                Down::Over => return Poll::Ready(Ok(())),
            }
        }
    }
}
