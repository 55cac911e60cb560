//! Delaying timers on a core that was held up: bytes that have arrived are received before their deadline expires.

use std::time::Duration;

use super::Core;
use crate::driver::event::PollOutcome;
use crate::limits::STALL_MIN;
use crate::state::State;

/// Work left on a core that was held up before its timers may expire.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum TimerDelay {
    Nothing,
    /// This many polls of the kernel have not returned all events.
    Events {
        looks: usize,
    },
    /// All events have been seen, and their tasks run.
    Tasks,
}

impl Core {
    /// Whether due timers wait for the next turn, because the core was held up (its thread was stopped, had no CPU or
    /// much to do) and events of that time have not been seen or their tasks have not run. So a task that waits for
    /// bytes with a deadline or a sleep gets the bytes that have arrived. The delay is bounded by one turn over all
    /// ready sockets, which the kernel reports in rotation.
    pub(super) fn must_delay_timers(
        &self,
        look: PollOutcome,
        (busy, overslept): (Duration, Duration),
        state: &State,
    ) -> bool {
        let was_held_up = busy.max(overslept) > STALL_MIN || look == PollOutcome::Interrupted;
        // Events between the look and the following read of the clock were not seen.
        let has_seen_all = look == PollOutcome::Complete && overslept <= STALL_MIN;
        let looks_max = 1 + state.sockets.slots() / state.driver.events_per_look();
        let is_due = || state.timers.next().is_some_and(|next| next <= state.now);
        let behind = match self.0.behind.get() {
            TimerDelay::Nothing if !was_held_up || !is_due() => TimerDelay::Nothing,
            TimerDelay::Nothing | TimerDelay::Events { .. } if has_seen_all => TimerDelay::Tasks,
            TimerDelay::Nothing => TimerDelay::Events { looks: 1 },
            TimerDelay::Events { looks } if looks < looks_max => {
                TimerDelay::Events { looks: looks + 1 }
            }
            // However slow the turns are, timers run in between.
            TimerDelay::Events { .. } | TimerDelay::Tasks => TimerDelay::Nothing,
        };
        self.0.behind.set(behind);
        behind != TimerDelay::Nothing
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::future::{Future, poll_fn};
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};
    use std::pin::pin;
    use std::rc::Rc;
    use std::task::Poll;
    use std::thread;

    use super::*;
    use crate::address::Address;
    use crate::buffers::input::Input;
    use crate::claim::Claim;
    use crate::driver::choice::Io;
    use crate::driver::simulation::Simulation;
    use crate::error::{Error, Kind};
    use crate::limits::EVENTS_PER_WAIT;
    use crate::stream::Stream;
    use crate::stream::listener::Listener;

    /// How long a task waits for bytes; `STOP` is longer.
    const PATIENCE: Duration = Duration::from_millis(100);
    const STOP: Duration = Duration::from_millis(400);

    async fn receive(stream: &Stream) -> Result<usize, Error> {
        stream.set_deadline(Some(stream.core().now_exact() + PATIENCE));
        stream.recv(&mut Input::default()).await
    }

    /// Whether a byte was received before a pause of [`PATIENCE`] ended.
    async fn is_received_before_a_pause(stream: &Stream) -> bool {
        let mut input = Input::default();
        let mut pause = pin!(stream.core().sleep(PATIENCE));
        poll_fn(|context| {
            if pause.as_mut().poll(context).is_ready() {
                return Poll::Ready(false);
            }
            stream
                .poll_recv(&mut input)
                .map(|received| received == Ok(1))
        })
        .await
    }

    /// Holds a core up while more sockets become readable than one look returns. Returns how many, and how many
    /// received.
    fn hold_up(core: &Core) -> (usize, usize) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = Address::Tcp(listener.local_addr().unwrap());
        let (count, received) = (EVENTS_PER_WAIT + 44, Rc::new(Cell::new(0)));
        let (holding, seen) = (core.clone(), Rc::clone(&received));
        core.spawn(async move {
            let mut peers: Vec<TcpStream> = Vec::new();
            let mut streams = Vec::new();
            for _ in 0..count {
                streams.push(Stream::connect(&holding, &address, None).await.unwrap());
                peers.push(listener.accept().unwrap().0);
            }
            for (number, stream) in streams.into_iter().enumerate() {
                let seen = Rc::clone(&seen);
                holding.spawn(async move {
                    let is_received = match number % 2 {
                        0 => receive(&stream).await == Ok(1),
                        _ => is_received_before_a_pause(&stream).await,
                    };
                    seen.set(seen.get() + usize::from(is_received));
                });
            }
            // Now all tasks wait.
            holding.sleep(Duration::from_millis(1)).await;
            for peer in &mut peers {
                peer.write_all(b"x").unwrap();
            }
            thread::sleep(STOP);
        });
        core.run();
        (count, received.get())
    }

    #[test]
    fn stalled_thread_receives_before_timeout() {
        for core in [Io::Epoll, Io::IoUring].map(|io| Core::new(0, io).ok()) {
            let Some(core) = core else { continue };
            let (count, received) = hold_up(&core);
            assert_eq!(received, count);
        }
    }

    #[test]
    fn suspended_core_receives_before_timeout() {
        for seed in 0..50 {
            // Bytes are receivable as soon as they arrive, as with a kernel.
            let core = Core::simulated(Simulation {
                spurious_again: 0,
                ..Simulation::with_seed(seed)
            });
            let claim = Claim::new(&Address::Tcp("127.0.0.1:0".parse().unwrap())).unwrap();
            let listener = Listener::new(&core, &claim).unwrap();
            let outcomes: Rc<Cell<usize>> = Rc::default();
            let (stopping, seen) = (core.clone(), Rc::clone(&outcomes));
            core.spawn(async move {
                let address = claim.address();
                let mut peers = Vec::new();
                for number in 0..3 {
                    let stream = Stream::connect(&stopping, address, None).await.unwrap();
                    peers.push(listener.accept().await.unwrap());
                    let seen = Rc::clone(&seen);
                    stopping.spawn(async move {
                        match number {
                            0 => assert_eq!(receive(&stream).await, Ok(1)),
                            1 => assert!(is_received_before_a_pause(&stream).await),
                            _ => {
                                let error = receive(&stream).await.unwrap_err();
                                assert_eq!(error.kind, Kind::TimedOut, "nothing was sent");
                            }
                        }
                        seen.set(seen.get() + 1);
                    });
                }
                for peer in &peers[..2] {
                    peer.queue(&b"x"[..]);
                    peer.flush().await.unwrap();
                }
                // Now the bytes are in transit.
                stopping.yield_now().await;
                stopping.suspend(STOP);
                stopping.sleep(2 * STOP).await;
            });
            core.run();
            assert_eq!(outcomes.get(), 3, "seed {seed}");
        }
    }
}
