//! Tunnels between two HTTP/2 streams. The window of one is updated only after the windows of the other have taken the
//! bytes.
//!
//! ```text
//!   client ── DATA ──> window ── DATA ──> server     END_STREAM <──> END_STREAM
//!          <── DATA ── window <── DATA ──                CANCEL <──> CANCEL
//! ```

use std::future::poll_fn;
use std::task::{Context, Poll, ready};

use onrush_engine::{Core, Error};

use super::idle_times::IdleTimes;
use super::silence::Silence;
use crate::exchange::stream_tunnel_end::{StreamTunnelEnd, tunnel_reset_error};

/// Relays bytes until both ends have closed their sides. An end that has not received everything from the other is
/// reset; both are when nothing moves for the idle timeout.
///
/// # Errors
/// The error of the end that failed.
pub(super) async fn run(
    (client, server): (&dyn StreamTunnelEnd, &dyn StreamTunnelEnd),
    core: &Core,
    times: IdleTimes,
) -> Result<(), Error> {
    let mut ways = [
        StreamDirection::new(client, server),
        StreamDirection::new(server, client),
    ];
    let mut silence = Silence::default();
    let mut idle_max = times.open();
    let outcome = poll_fn(|context| {
        for end in [client, server] {
            if let Poll::Ready(error) = end.poll_reset(context) {
                return Poll::Ready(Err(error));
            }
        }
        for way in &mut ways {
            if let Poll::Ready(Err(error)) = way.poll(context) {
                return Poll::Ready(Err(error));
            }
        }
        let [up, down] = &ways;
        if up.is_over() && down.is_over() {
            return Poll::Ready(Ok(()));
        }
        if down.is_over() && !server.peer_still_reads() && !up.is_at_end() {
            return Poll::Ready(Err(tunnel_reset_error()));
        }
        if idle_max != times.half_closed() && ways.iter().any(StreamDirection::is_at_end) {
            idle_max = times.half_closed();
            silence.end();
        }
        let moved = client.bytes_moved() + server.bytes_moved();
        silence.poll(moved, (core, idle_max), context).map(Err)
    })
    .await;
    for way in &ways {
        if !way.is_over() {
            way.to.cancel();
        }
    }
    outcome
}

struct StreamDirection<'t> {
    from: &'t dyn StreamTunnelEnd,
    to: &'t dyn StreamTunnelEnd,
    awaits: DirectionState,
}

/// The event for which a direction waits.
#[derive(Clone, Copy, PartialEq, Eq)]
enum DirectionState {
    /// Window of the receiver.
    Room,
    /// Bytes from the sender, or its end.
    Bytes,
    /// The receiver's windows to take this number of bytes.
    Sent(usize),
    /// The receiver's windows to take all bytes and the end.
    End,
    /// Finished.
    Nothing,
}

impl<'t> StreamDirection<'t> {
    fn new(from: &'t dyn StreamTunnelEnd, to: &'t dyn StreamTunnelEnd) -> Self {
        let awaits = DirectionState::Room;
        Self { from, to, awaits }
    }

    fn is_over(&self) -> bool {
        self.awaits == DirectionState::Nothing
    }

    /// Whether everything, including the end, has been put on the receiver's stream.
    fn is_at_end(&self) -> bool {
        matches!(self.awaits, DirectionState::End | DirectionState::Nothing)
    }

    fn poll(&mut self, context: &Context<'_>) -> Poll<Result<(), Error>> {
        loop {
            self.awaits = match self.awaits {
                DirectionState::Room => {
                    ready!(self.to.poll_room(context))?;
                    DirectionState::Bytes
                }
                DirectionState::Bytes => {
                    let bytes = ready!(self.from.poll_bytes(context))?;
                    match bytes.len() {
                        0 => {
                            self.to.end();
                            DirectionState::End
                        }
                        count => {
                            self.to.put_bytes(bytes);
                            DirectionState::Sent(count)
                        }
                    }
                }
                DirectionState::Sent(count) => {
                    ready!(self.to.poll_put(context))?;
                    self.from.release(count);
                    DirectionState::Room
                }
                DirectionState::End => {
                    ready!(self.to.poll_put(context))?;
                    DirectionState::Nothing
                }
                DirectionState::Nothing => return Poll::Ready(Ok(())),
            }
        }
    }
}
