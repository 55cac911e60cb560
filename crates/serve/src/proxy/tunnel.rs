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

use std::future::{Future, poll_fn};
use std::mem;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use onrush_engine::{Error, Input, Relay};
use onrush_tls::Transport;

use super::group::Reservation;
use crate::downstream::http1::Http1;
use crate::exchange::Exchange;

/// A tunnel that begins: its 101 is written for the client and perhaps not sent.
pub(crate) struct Tunnel {
    /// It counts as a request of its server until it ends.
    _reservation: Reservation,
    server: Transport,
    /// What has arrived behind the 101.
    input: Input,
}

impl Tunnel {
    pub(crate) fn new(reservation: Reservation, server: Transport, input: Input) -> Self {
        Self {
            _reservation: reservation,
            server,
            input,
        }
    }

    /// Passes on what the two ends send, beginning with what has arrived, until both have ended. When one breaks, or
    /// nothing moves for as long as the plan says, an end that has not heard its last byte is reset: an orderly end would
    /// say that this was it.
    ///
    /// # Errors
    /// Those of the end that broke.
    pub(crate) async fn run(
        mut self: Box<Self>,
        client: &mut Http1,
        exchange: &mut Exchange,
    ) -> Result<(), Error> {
        exchange.become_tunnel();
        let timeouts = exchange.settings().timeouts;
        let idle_max = timeouts.tunnel_idle;
        let sent = client.flush(timeouts.client_send).await;
        let (server, client_stream) = (&self.server, &client.stream);
        if sent.is_err() {
            server.reset_when_dropped();
            return sent;
        }
        let from_client = mem::take(&mut client.input);
        let from_server = mem::take(&mut self.input);
        let mut lanes = [
            pin!(carry(from_client, client_stream, server, idle_max)),
            pin!(carry(from_server, server, client_stream, idle_max)),
        ];
        let mut ended = [false; 2];
        let outcome = poll_fn(|context| {
            for (lane, ended) in lanes.iter_mut().zip(&mut ended) {
                if *ended {
                    continue;
                }
                match lane.as_mut().poll(context) {
                    Poll::Ready(Ok(())) => *ended = true,
                    Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                    Poll::Pending => {}
                }
            }
            if ended == [true; 2] {
                return Poll::Ready(Ok(()));
            }
            // A direction whose receiver takes nothing does not hear that its sender has gone. Only of a client that has not
            // been told of the end: behind that, a hang-up may be one in good order. What a server sent before is delivered.
            if ended == [false; 2]
                && let Poll::Ready(error) = client_stream.poll_hung_up()
            {
                return Poll::Ready(Err(error));
            }
            Poll::Pending
        })
        .await;
        let [server_has_all, client_has_all] = ended;
        if !server_has_all {
            server.reset_when_dropped();
        }
        if !client_has_all {
            client_stream.reset_when_dropped();
        }
        outcome
    }
}

/// One direction, up to its end, which is passed on.
async fn carry(
    mut input: Input,
    from: &Transport,
    to: &Transport,
    idle_max: Duration,
) -> Result<(), Error> {
    let plain = from.as_plain().zip(to.as_plain());
    let mut relay = Relay::default();
    if plain.is_some() {
        relay = Relay::new(mem::take(&mut input));
    }
    loop {
        // A byte in either direction keeps both ends: who only listens is not idle.
        from.set_send_patience(idle_max);
        to.set_send_patience(idle_max);
        let bytes = match plain {
            Some((from, to)) => relay.transfer(from, to).await?,
            None => transfer(&mut input, from, to).await?,
        };
        if bytes == 0 {
            return to.shutdown().await;
        }
    }
}

/// What [`Relay::transfer`] does, where one of the two speaks TLS.
async fn transfer(input: &mut Input, from: &Transport, to: &Transport) -> Result<u64, Error> {
    if input.is_empty() && from.recv(input).await? == 0 {
        return Ok(0);
    }
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
    let bytes = buffer.len() as u64;
    to.queue(buffer);
    to.flush().await?;
    Ok(bytes)
}
