//! Tunnels between two streams of HTTP/2: what comes on one is held up by its window, of which nothing is given back before the windows
//! of the other have taken it.
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
use crate::exchange::stream_end::{StreamEnd, reset};

/// Passes on what comes until both have ended. Who has not heard all of the other is reset, and so are both when nothing moves for as
/// long as `times` say.
///
/// # Errors
/// Those of the end that broke.
pub(super) async fn run(
    (client, server): (&dyn StreamEnd, &dyn StreamEnd),
    core: &Core,
    times: IdleTimes,
) -> Result<(), Error> {
    let mut ways = [Way::new(client, server), Way::new(server, client)];
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
        if down.is_over() && !server.takes_more() && !up.is_at_end() {
            return Poll::Ready(Err(reset()));
        }
        if idle_max != times.half_closed() && ways.iter().any(Way::is_at_end) {
            idle_max = times.half_closed();
            silence.end();
        }
        let moved = client.moved() + server.moved();
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

/// One direction.
struct Way<'t> {
    from: &'t dyn StreamEnd,
    to: &'t dyn StreamEnd,
    awaits: Awaits,
}

/// What it waits for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Awaits {
    /// Room where it leads.
    Room,
    /// Bytes, or the end.
    Bytes,
    /// Windows, to take so many bytes.
    Sent(usize),
    /// The same, before the end.
    End,
    /// Nothing.
    Nothing,
}

impl<'t> Way<'t> {
    fn new(from: &'t dyn StreamEnd, to: &'t dyn StreamEnd) -> Self {
        let awaits = Awaits::Room;
        Self { from, to, awaits }
    }

    fn is_over(&self) -> bool {
        self.awaits == Awaits::Nothing
    }

    /// Whether nothing more is to be said where it leads.
    fn is_at_end(&self) -> bool {
        matches!(self.awaits, Awaits::End | Awaits::Nothing)
    }

    fn poll(&mut self, context: &Context<'_>) -> Poll<Result<(), Error>> {
        loop {
            self.awaits = match self.awaits {
                Awaits::Room => {
                    ready!(self.to.poll_room(context))?;
                    Awaits::Bytes
                }
                Awaits::Bytes => {
                    let bytes = ready!(self.from.poll_bytes(context))?;
                    match bytes.len() {
                        0 => {
                            self.to.end();
                            Awaits::End
                        }
                        count => {
                            self.to.put_bytes(bytes);
                            Awaits::Sent(count)
                        }
                    }
                }
                Awaits::Sent(count) => {
                    ready!(self.to.poll_put(context))?;
                    self.from.release(count);
                    Awaits::Room
                }
                Awaits::End => {
                    ready!(self.to.poll_put(context))?;
                    Awaits::Nothing
                }
                Awaits::Nothing => return Poll::Ready(Ok(())),
            }
        }
    }
}
