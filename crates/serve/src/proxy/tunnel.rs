//! Tunnels: connections that have changed their protocol (RFC 9110 7.8), as WebSocket's do (RFC 6455). Bytes pass in both
//! directions until each end has ended its own; what they say is nobody's business here.
//!
//! ```text
//!   client ── recv ──> buffer ── send ──> server
//!          <── send ── buffer <── recv ──
//! ```
//! Where neither end speaks TLS, a flow of bulk goes through a pipe of the kernel and never enters our memory (the
//! engine's `Relay`). A direction receives no more before the other end has taken what came last, so a slow reader holds
//! up its peer and not our memory; and while both wait, there is no buffer at all.
//!
//! A tunnel keeps its reservation of its server, and a stopping core waits for it as for any task. If it breaks, an
//! end that has not received the last byte of the other is reset. An end that is a stream of HTTP/2 is a `StreamEnd`;
//! its bytes are released to the window after the other end has taken them.

mod hearer;
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
use hearer::End;
use idle_times::IdleTimes;

/// A tunnel that begins: its 101 is written for the client and perhaps not sent.
pub(crate) struct Tunnel {
    /// It counts as a request of its server until it ends.
    _reservation: Reservation,
    server: ServerEnd,
}

/// Where a server speaks to its client.
pub(crate) enum ServerEnd {
    /// On a connection of its own, and what has arrived there behind the 101.
    Connection(Transport, Input),
    /// On a stream of HTTP/2.
    Stream(TunnelStream),
}

impl Tunnel {
    pub(crate) fn new(reservation: Reservation, server: ServerEnd) -> Self {
        Self {
            _reservation: reservation,
            server,
        }
    }

    /// Passes on what the two ends send, beginning with what has arrived, until both have ended. When one end breaks, or
    /// nothing moves for the time in the plan (which is shorter once one end has ended its side), an end that has not received
    /// all bytes is reset: an orderly close would claim that they were all.
    ///
    /// # Errors
    /// The error of the end that broke.
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
                // Boxed: tunnels over connections, which are many, pay nothing for it.
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
            Lane::new(from_client, client_stream, server),
            Lane::new(from_server, server, client_stream),
        ];
        let mut idle_max = times.open();
        poll_fn(|context| {
            for lane in lanes.iter_mut().filter(|lane| !lane.has_passed_all()) {
                if let Poll::Ready(Err(error)) = lane.poll(idle_max, context) {
                    return Poll::Ready(Err(error));
                }
            }
            if idle_max != times.half_closed() && lanes.iter().any(Lane::has_ended) {
                idle_max = times.half_closed();
                client_stream.set_send_patience(idle_max);
                server.set_send_patience(idle_max);
            }
            let [server_has_all, client_has_all] = lanes.each_ref().map(Lane::has_passed_all);
            if server_has_all && client_has_all {
                return Poll::Ready(Ok(()));
            }
            // A direction whose receiver takes nothing does not hear that its sender has gone. Only of a client that has not
            // been told of the end: behind that, a hang-up may be one in good order. What a server sent before is delivered.
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

    /// [`Tunnel::run`] for a client on a stream.
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

/// One direction, up to its end, which is passed on. Polled by hand: as two futures that wait within others, the directions
/// were most of what an idle tunnel cost.
struct Lane<'t> {
    from: &'t Transport,
    to: &'t Transport,
    portions: Portions,
    stage: Stage,
    /// The end of the source is on its way to the other end.
    end: Option<End<'t>>,
}

/// Where a direction is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    /// Between two portions.
    Between,
    /// A portion is under way, and the time that both ends have for it runs.
    UnderWay,
    /// The other end has been told of the end of the source.
    PassedAll,
}

/// How bytes get from one end to the other.
enum Portions {
    /// Both ends are plain.
    Plain(Relay),
    /// One of them speaks TLS: what was received, and how much is being sent.
    Sealed(Input, usize),
}

impl<'t> Lane<'t> {
    /// From one end to the other, beginning with `input`.
    fn new(input: Input, from: &'t Transport, to: &'t Transport) -> Self {
        let portions = match from.as_plain().zip(to.as_plain()) {
            Some(_) => Portions::Plain(Relay::new(input)),
            None => Portions::Sealed(input, 0),
        };
        Self {
            from,
            to,
            portions,
            stage: Stage::Between,
            end: None,
        }
    }

    /// Whether its source has ended.
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
                // A byte in either direction keeps both ends: who only listens is not idle.
                self.from.set_send_patience(idle_max);
                self.to.set_send_patience(idle_max);
            }
            let bytes = ready!(self.poll_portion())?;
            self.stage = Stage::Between;
            if bytes == 0 {
                // Releases its buffer or pipe: the other direction may wait for a long time.
                self.portions = Portions::Sealed(Input::default(), 0);
                self.end = Some(Box::pin(self.to.shutdown()));
            }
        }
    }

    /// One portion, from its arrival until the other end has taken it; 0 is the end.
    fn poll_portion(&mut self) -> Poll<Result<u64, Error>> {
        let ends = self.from.as_plain().zip(self.to.as_plain());
        match &mut self.portions {
            Portions::Plain(relay) => {
                let (from, to) = ends.expect("they were plain when the tunnel began");
                relay.poll_transfer(from, to)
            }
            Portions::Sealed(input, sending) => {
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

impl Drop for Lane<'_> {
    /// Does the same as the `drop` of [`Hearer`](hearer::Hearer), but needs no memory besides the tunnel's.
    fn drop(&mut self) {
        if !self.has_passed_all() {
            self.to.reset_when_dropped();
        }
    }
}

/// Queues what was received; how many bytes that are.
fn queue(input: &mut Input, to: &Transport) -> Result<usize, Error> {
    let buffer = match input.take() {
        Some(buffer) => buffer,
        // It has been put aside.
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
