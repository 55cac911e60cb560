//! Tunnels: connections after a change of protocol (RFC 9110 7.8), such as WebSocket (RFC 6455). Bytes are relayed
//! unread in both directions until both ends have closed their sides.
//!
//! ```text
//!   client ── recv ──> buffer ── send ──> server
//!          <── send ── buffer <── recv ──
//! ```
//! If neither end uses TLS, bulk data goes through a kernel pipe and is never copied to user space (the engine's
//! `Relay`). A direction receives nothing before the other end has taken the previous bytes, so a slow reader slows
//! down its peer instead of filling memory; and while both ends wait, no buffer is held.
//!
//! A tunnel keeps its reservation of its server, and a stopping core waits for it as for any task. If a tunnel fails,
//! an end that has not received the last byte of the other is reset. An end on an HTTP/2 stream is a `StreamEnd`; its
//! window is updated after the other end has taken the bytes.

mod end_guard;
mod idle_times;
mod silence;
mod stream;
mod streams;

use std::future::poll_fn;
use std::mem;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use onrush_engine::{Error, Input, Relay};
use onrush_tls::Transport;

use super::group::Reservation;
use super::multiplexed::TunnelStream;
use crate::exchange::Exchange;
use crate::exchange::downstream::http1::Http1;
use crate::exchange::downstream::http2::Stream;
use end_guard::End;
use idle_times::IdleTimes;

/// A tunnel to be run: its 101 response is written for the client and may not have been sent.
pub(crate) struct Tunnel {
    /// Counts the tunnel as a request in flight at its server.
    _reservation: Reservation,
    server: ServerEnd,
}

/// The server's end of a tunnel.
pub(crate) enum ServerEnd {
    /// A connection, and the bytes that arrived on it after the 101.
    Connection(Transport, Input),
    Stream(TunnelStream),
}

impl Tunnel {
    pub(crate) fn new(reservation: Reservation, server: ServerEnd) -> Self {
        Self {
            _reservation: reservation,
            server,
        }
    }

    /// Relays bytes, starting with those already received, until both ends have closed their sides. If one end fails,
    /// or nothing moves for the idle timeout (shorter once one end has closed its side), an end that has not received
    /// all bytes is reset: an orderly close would mean that nothing is missing.
    ///
    /// # Errors
    /// The error of the end that failed.
    pub(crate) async fn run(
        mut self: Box<Self>,
        client: &mut Http1,
        exchange: &mut Exchange,
    ) -> Result<(), Error> {
        let timeouts = exchange.timeouts();
        let (times, patience) = (IdleTimes::of(timeouts), timeouts.client_send);
        let _underway = exchange.become_tunnel();
        let sent = client.flush(patience).await;
        let (server, from_server) = match &mut self.server {
            ServerEnd::Connection(server, input) => (server, mem::take(input)),
            ServerEnd::Stream(server) => {
                sent?;
                // Boxed, so that the more frequent tunnels over connections do not reserve memory for it.
                let to_stream = stream::run_to_stream(client, server, times);
                return Box::pin(to_stream).await;
            }
        };
        let client_stream = &client.stream;
        if sent.is_err() {
            server.reset_when_dropped();
            return sent;
        }
        let from_client = mem::take(&mut client.input);
        let mut lanes = [
            Direction::new(from_client, client_stream, server),
            Direction::new(from_server, server, client_stream),
        ];
        let mut idle_max = times.open();
        poll_fn(|context| {
            for lane in lanes.iter_mut().filter(|lane| !lane.has_passed_all()) {
                if let Poll::Ready(Err(error)) = lane.poll(idle_max, context) {
                    return Poll::Ready(Err(error));
                }
            }
            if idle_max != times.half_closed() && lanes.iter().any(Direction::has_ended) {
                idle_max = times.half_closed();
                client_stream.set_send_patience(idle_max);
                server.set_send_patience(idle_max);
            }
            let [server_has_all, client_has_all] = lanes.each_ref().map(Direction::has_passed_all);
            if server_has_all && client_has_all {
                return Poll::Ready(Ok(()));
            }
            // A direction whose receiver takes nothing does not notice that its sender has gone. Check this only for a
            // client that has not received the end: afterwards a hang-up may be an orderly close. Bytes that a server
            // sent before it closed are still delivered.
            if !server_has_all
                && !client_has_all
                && let Poll::Ready(error) = client_stream.poll_hung_up()
            {
                return Poll::Ready(Err(error));
            }
            Poll::Pending
        })
        .await
    }

    /// [`Tunnel::run`] for a client on an HTTP/2 stream.
    ///
    /// # Errors
    /// The error of the end that failed.
    pub(crate) async fn run_on_stream(
        mut self: Box<Self>,
        client: &Stream,
        exchange: &mut Exchange,
    ) -> Result<(), Error> {
        let times = IdleTimes::of(exchange.timeouts());
        let _underway = exchange.become_tunnel();
        client.become_tunnel();
        match &mut self.server {
            ServerEnd::Connection(server, input) => {
                let server = (&*server, mem::take(input));
                stream::run_from_stream(client, server, times).await
            }
            ServerEnd::Stream(server) => {
                let core = client.transport().core();
                streams::run((client, server), core, times).await
            }
        }
    }
}

/// One direction. A state machine, because two nested futures took most of an idle tunnel's memory.
struct Direction<'t> {
    from: &'t Transport,
    to: &'t Transport,
    portions: TransferMode,
    stage: Stage,
    /// The shutdown of `to`, once the source has ended.
    end: Option<End<'t>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    /// Waiting for the next portion.
    Between,
    /// A portion is being transferred, and the send timeout of both ends runs.
    UnderWay,
    /// The end of the source has been passed on.
    PassedAll,
}

enum TransferMode {
    /// Both ends are plain.
    Plain(Relay),
    /// At least one end uses TLS: received bytes, and the number of bytes being sent.
    Sealed(Input, usize),
}

impl<'t> Direction<'t> {
    /// `input` has the first bytes.
    fn new(input: Input, from: &'t Transport, to: &'t Transport) -> Self {
        let portions = match from.as_plain().zip(to.as_plain()) {
            Some(_) => TransferMode::Plain(Relay::new(input)),
            None => TransferMode::Sealed(input, 0),
        };
        Self {
            from,
            to,
            portions,
            stage: Stage::Between,
            end: None,
        }
    }

    fn has_ended(&self) -> bool {
        self.end.is_some()
    }

    fn has_passed_all(&self) -> bool {
        self.stage == Stage::PassedAll
    }

    fn poll(&mut self, idle_max: Duration, context: &mut Context<'_>) -> Poll<Result<(), Error>> {
        loop {
            if let Some(end) = &mut self.end {
                ready!(end.as_mut().poll(context))?;
                self.stage = Stage::PassedAll;
                return Poll::Ready(Ok(()));
            }
            if mem::replace(&mut self.stage, Stage::UnderWay) == Stage::Between {
                // A byte in either direction resets both idle timeouts: an end that only receives is not idle.
                self.from.set_send_patience(idle_max);
                self.to.set_send_patience(idle_max);
            }
            let bytes = ready!(self.poll_portion())?;
            self.stage = Stage::Between;
            if bytes == 0 {
                // Release the buffer or pipe, because the other direction may stay open for long.
                self.portions = TransferMode::Sealed(Input::default(), 0);
                self.end = Some(Box::pin(self.to.shutdown()));
            }
        }
    }

    /// Transfers one portion, until the other end has taken it. Returns 0 at the end of the source.
    fn poll_portion(&mut self) -> Poll<Result<u64, Error>> {
        let ends = self.from.as_plain().zip(self.to.as_plain());
        match &mut self.portions {
            TransferMode::Plain(relay) => {
                let (from, to) = ends.expect("they were plain when the tunnel began");
                relay.poll_transfer(from, to)
            }
            TransferMode::Sealed(input, sending) => {
                if *sending == 0 {
                    if input.is_empty() && ready!(self.from.poll_recv(input))? == 0 {
                        return Poll::Ready(Ok(0));
                    }
                    *sending = queue(input, self.to)?;
                }
                ready!(self.to.poll_flush())?;
                Poll::Ready(Ok(mem::take(sending) as u64))
            }
        }
    }
}

impl Drop for Direction<'_> {
    /// Same as the `drop` of [`TunnelEndGuard`](hearer::Hearer), without additional memory.
    fn drop(&mut self) {
        if !self.has_passed_all() {
            self.to.reset_when_dropped();
        }
    }
}

/// Queues received bytes and returns their number.
fn queue(input: &mut Input, to: &Transport) -> Result<usize, Error> {
    let buffer = match input.take() {
        Some(buffer) => buffer,
        // The bytes were moved out of their buffer while waiting; copy them into a new one.
        None => {
            let mut buffer = to.core().buffer()?;
            let fits = buffer.put(input.bytes());
            assert!(fits, "it came out of a buffer of the same size");
            input.consume(buffer.len());
            buffer
        }
    };
    let bytes = buffer.len();
    to.queue(buffer);
    Ok(bytes)
}
