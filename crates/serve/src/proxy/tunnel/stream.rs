//! Tunnels between a stream of HTTP/2 (RFC 8441) and a connection: what comes on the stream is held up by its window, of which nothing is
//! given back before the connection has taken it, and what the connection brings is received when the stream takes more.
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

/// Passes bytes between a client on a stream and its server, beginning with the `input` of the server.
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

/// The same for a server on a stream.
///
/// # Errors
/// Those of the end that broke.
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

/// Both ends, and how long nothing may move between them.
#[derive(Clone, Copy)]
struct Ends<'t> {
    stream: &'t dyn StreamEnd,
    connection: &'t Transport,
    /// Who is at the other end of the connection.
    whose: Whose,
    times: IdleTimes,
    /// The one of `times` that applies now.
    idle_max: Duration,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Whose {
    Client,
    Server,
}

impl<'t> Ends<'t> {
    /// Passes on what comes, `input` of the connection first, until both have ended. Who has not heard all of the other is reset.
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
            // As in other tunnels: while the stream takes nothing, nobody receives of a client, who may have gone.
            (Up::Over, _) | (_, Down::Over) => {}
            _ if self.whose == Whose::Client => {
                if let Poll::Ready(error) = self.connection.poll_hung_up() {
                    return Poll::Ready(Err(error));
                }
            }
            _ => {}
        }
        // The wait for the connection has a time of its own.
        if up.awaits_connection() || down.awaits_connection() {
            silence.end();
            return Poll::Pending;
        }
        let time = (self.connection.core(), self.idle_max);
        silence.poll(self.stream.moved(), time, context).map(Err)
    }

    /// A byte in either direction keeps both ends: who only listens is not idle.
    fn moves(self) {
        self.connection.set_send_patience(self.idle_max);
    }
}

/// From the stream to the connection: what it waits for.
enum Up<'t> {
    /// Bytes of the stream, or its end.
    Bytes,
    /// The connection, to take so many bytes.
    Sent(usize),
    /// The connection, to be told of the stream's end.
    End(End<'t>),
    /// Nothing.
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

/// From the connection to the stream: what it waits for.
enum Down {
    /// Room on the stream. Nothing is held but what had come with the head.
    Room(Input),
    /// Bytes of the connection, or its end.
    Bytes(Input),
    /// The stream's windows, to take what was received.
    Sent(Input),
    /// The same, before the connection's end.
    End,
    /// Nothing.
    Over,
}

impl Down {
    fn awaits_connection(&self) -> bool {
        match self {
            Down::Bytes(_) => true,
            Down::Room(_) | Down::Sent(_) | Down::End | Down::Over => false,
        }
    }

    /// Whether nothing more is to be said on the stream.
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
