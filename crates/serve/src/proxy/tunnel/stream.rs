//! Tunnels whose client is on a stream of HTTP/2 (RFC 8441): what it sends is held up by the window of the stream, of which nothing is
//! given back before the server has taken it, and what the server sends is received when the client's windows have room.
//!
//! ```text
//!   client ── DATA ──> window ── send ──> server     END_STREAM <──> FIN
//!          <── DATA ── buffer <── recv ──                CANCEL <──> reset
//! ```

use std::future::poll_fn;
use std::mem;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use onrush_engine::{Core, Error, Input, Kind, Op, Part, Sleep};
use onrush_tls::Transport;

use super::{End, Tunnel};
use crate::downstream::http2::Stream;
use crate::exchange::Exchange;

impl Tunnel {
    /// [`Tunnel::run`] for a client on a stream.
    ///
    /// # Errors
    /// Those of the end that broke.
    pub(crate) async fn run_on_stream(
        mut self: Box<Self>,
        client: &Stream,
        exchange: &mut Exchange,
    ) -> Result<(), Error> {
        let idle_max = exchange.timeouts().tunnel_idle;
        let _underway = exchange.become_tunnel();
        client.become_tunnel();
        let server = &self.server;
        let ends = Ends {
            client,
            server,
            idle_max,
        };
        ends.moves();
        let mut up = Up::Bytes;
        let mut down = Down::Room(mem::take(&mut self.input));
        let mut silence = Silence::default();
        let outcome = poll_fn(|context| {
            if let Poll::Ready(error) = client.poll_reset(context) {
                return Poll::Ready(Err(error));
            }
            for way in [up.poll(ends, context), down.poll(ends, context)] {
                if let Poll::Ready(Err(error)) = way {
                    return Poll::Ready(Err(error));
                }
            }
            if matches!((&up, &down), (Up::Over, Down::Over)) {
                return Poll::Ready(Ok(()));
            }
            // The wait for the server has a time of its own.
            match up.awaits_server() || down.awaits_server() {
                true => silence.end(),
                false => return silence.poll(ends, context).map(Err),
            }
            Poll::Pending
        })
        .await;
        if !matches!(up, Up::Over) {
            server.reset_when_dropped();
        }
        if !matches!(down, Down::Over) {
            client.cancel();
        }
        outcome
    }
}

/// Both ends, and how long nothing may move between them.
#[derive(Clone, Copy)]
struct Ends<'t> {
    client: &'t Stream,
    server: &'t Transport,
    idle_max: Duration,
}

impl Ends<'_> {
    /// A byte in either direction keeps both ends: who only listens is not idle.
    fn moves(self) {
        self.server.set_send_patience(self.idle_max);
    }
}

/// From the client to the server: what it waits for.
enum Up<'t> {
    /// Bytes of the client, or its end.
    Bytes,
    /// The server, to take so many bytes.
    Sent(usize),
    /// The server, to be told of the client's end.
    End(End<'t>),
    /// Nothing.
    Over,
}

impl<'t> Up<'t> {
    fn awaits_server(&self) -> bool {
        match self {
            Up::Sent(_) | Up::End(_) => true,
            Up::Bytes | Up::Over => false,
        }
    }

    fn poll(&mut self, ends: Ends<'t>, context: &mut Context<'_>) -> Poll<Result<(), Error>> {
        let Ends { client, server, .. } = ends;
        loop {
            *self = match self {
                Up::Bytes => {
                    let bytes = ready!(client.poll_bytes(context))?;
                    ends.moves();
                    match bytes.len() {
                        0 => Up::End(Box::pin(server.shutdown())),
                        count => {
                            server.queue(Part::Shared(Rc::from(bytes), 0));
                            Up::Sent(count)
                        }
                    }
                }
                Up::Sent(count) => {
                    ready!(server.poll_flush())?;
                    client.release(*count);
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

/// From the server to the client: what it waits for.
enum Down {
    /// Room in the client's windows. Nothing is held but what had come with the head.
    Room(Input),
    /// Bytes of the server, or its end.
    Bytes(Input),
    /// The client's windows, to take what was received.
    Sent(Input),
    /// The same, before the server's end.
    End,
    /// Nothing.
    Over,
}

impl Down {
    fn awaits_server(&self) -> bool {
        match self {
            Down::Bytes(_) => true,
            Down::Room(_) | Down::Sent(_) | Down::End | Down::Over => false,
        }
    }

    fn poll(&mut self, ends: Ends<'_>, context: &mut Context<'_>) -> Poll<Result<(), Error>> {
        let Ends { client, server, .. } = ends;
        loop {
            *self = match self {
                Down::Room(input) => {
                    ready!(client.poll_room(context))?;
                    Down::Bytes(mem::take(input))
                }
                Down::Bytes(input) => {
                    if input.is_empty() && ready!(server.poll_recv(input))? == 0 {
                        client.end();
                        Down::End
                    } else {
                        client.put(input);
                        ends.moves();
                        Down::Sent(mem::take(input))
                    }
                }
                Down::Sent(input) => {
                    ready!(client.poll_put(context))?;
                    ends.moves();
                    Down::Room(mem::take(input))
                }
                Down::End => {
                    ready!(client.poll_put(context))?;
                    Down::Over
                }
                Down::Over => return Poll::Ready(Ok(())),
            }
        }
    }
}

/// The time in which nothing moves while both directions wait for the client.
#[derive(Default)]
struct Silence {
    /// What had moved when it began.
    moved: u64,
    timer: Option<Sleep>,
}

impl Silence {
    fn end(&mut self) {
        self.timer = None;
    }

    /// Waits until it has been too long.
    fn poll(&mut self, ends: Ends<'_>, context: &mut Context<'_>) -> Poll<Error> {
        let core: &Core = ends.server.core();
        loop {
            let moved = ends.client.moved();
            if self.moved != moved {
                self.moved = moved;
                self.timer = None;
            }
            let begin = || core.sleep_until(core.now() + ends.idle_max);
            ready!(Pin::new(self.timer.get_or_insert_with(begin)).poll(context));
            if ends.client.moved() == moved {
                return Poll::Ready(Error::new(Op::Send, Kind::TimedOut));
            }
        }
    }
}
