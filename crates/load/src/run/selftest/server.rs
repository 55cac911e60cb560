//! A server whose delays are known: it waits as it is told before each response, and notes how long it really has waited.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use onrush_engine::{Address, Claim, Core, Cores, Input, Instant, Io, Listener, Setup, Stream};
use onrush_measure::histogram::Histogram;

use super::{cpu, polls};
use crate::pace::error::Error;

/// How long the server waits before a response.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Delay {
    None,
    Constant(Duration),
    /// With this mean.
    Exponential(Duration),
    /// The second for this share of the responses, else the first.
    Bimodal(Duration, Duration, f64),
    /// None, but for everything that arrives from the first of these times after the first request on, until the second
    /// has passed.
    Stall(Duration, Duration),
    /// None, and each connection ends with this response.
    ClosesAfter(u64),
}

impl Delay {
    /// The value that a share `at` of all delays does not exceed; `None` where it depends on when requests arrive.
    pub(super) fn quantile(self, at: f64) -> Option<Duration> {
        match self {
            Delay::None | Delay::ClosesAfter(_) => Some(Duration::ZERO),
            Delay::Constant(time) => Some(time),
            Delay::Exponential(mean) => Some(mean.mul_f64(-(1.0 - at).ln())),
            Delay::Bimodal(one, other, share) => Some(if at < 1.0 - share { one } else { other }),
            Delay::Stall(..) => None,
        }
    }
}

/// What the server knows when it ends.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    /// How long it really waited before each response, in nanoseconds.
    pub(super) waited: Histogram,
    /// Requests read.
    pub(super) requests: u64,
    /// When the first one was.
    pub(super) first: Option<Instant>,
    /// When the stall began, and when the last response that it held up was sent.
    pub(super) stall: Option<(Instant, Instant)>,
}

pub(super) struct Server {
    cores: Cores<Seen>,
    pub(super) address: Address,
}

impl Server {
    /// Starts one on a free port of the loopback, with a thread of its own.
    pub(super) fn start(io: Io, delay: Delay) -> Result<Server, Error> {
        let refused = |error: onrush_engine::Error| {
            Error::Invalid(format!(
                "the server of the self-test cannot be started: {error}"
            ))
        };
        let claim = Claim::new(&Address::Tcp(([127, 0, 0, 1], 0).into())).map_err(refused)?;
        let address = claim.address().clone();
        let setup = Setup {
            io,
            cpus: vec![cpu(1)],
        };
        // Asked here: the thread that is pinned has one CPU.
        let polls = polls();
        let claim = std::sync::Arc::new(claim);
        let cores = onrush_engine::start(&setup, move |core: Core| {
            let seen = Rc::new(RefCell::new(Seen::default()));
            if polls {
                core.busy_poll();
            }
            if let Ok(listener) = Listener::new(&core, &claim) {
                core.spawn(listen(core.clone(), listener, delay, Rc::clone(&seen)));
                core.run();
            }
            seen.take()
        })
        .map_err(refused)?;
        Ok(Server { cores, address })
    }

    /// Stops it and returns what it knows.
    pub(super) fn stop(self) -> Seen {
        self.cores.stop(Duration::ZERO);
        self.cores.join().pop().unwrap_or_default()
    }
}

async fn listen(core: Core, listener: Listener, delay: Delay, seen: Rc<RefCell<Seen>>) {
    while let Ok(stream) = listener.accept().await {
        core.spawn(serve(core.clone(), stream, delay, Rc::clone(&seen)));
    }
}

const RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const LAST_RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok";

/// Responds to the requests of one connection. They come from the generator of this very program, one at a time and without a
/// body, so that their end is all that must be known of them.
async fn serve(core: Core, stream: Stream, delay: Delay, seen: Rc<RefCell<Seen>>) {
    let mut input = Input::default();
    let mut on_connection = 0;
    loop {
        while !input.bytes().ends_with(b"\r\n\r\n") {
            match stream.recv(&mut input).await {
                Ok(1..) => {}
                Ok(0) | Err(_) => return,
            }
        }
        input.consume(input.bytes().len());
        let arrived = core.now_exact();
        on_connection += 1;
        let until = seen.borrow_mut().until(delay, arrived);
        if until > arrived {
            core.sleep_until(until).await;
        }
        let is_last = delay == Delay::ClosesAfter(on_connection);
        stream.queue(if is_last { LAST_RESPONSE } else { RESPONSE });
        let sent = core.now_exact();
        seen.borrow_mut().responded(delay, arrived, sent);
        if stream.flush().await.is_err() {
            return;
        }
        if is_last {
            let _ = stream.shutdown().await;
            return;
        }
    }
}

/// What a fraction moves on by so that any number of them is spread evenly: the golden ratio's.
const GOLDEN: f64 = 0.618_033_988_749_894_9;

impl Seen {
    /// When the request that arrived at `arrived` is to get its response.
    fn until(&mut self, delay: Delay, arrived: Instant) -> Instant {
        self.requests += 1;
        let first = *self.first.get_or_insert(arrived);
        if let Delay::Stall(after, time) = delay {
            let (begin, end) = (first + after, first + after + time);
            return if (begin..end).contains(&arrived) {
                self.stall.get_or_insert((begin, end));
                end
            } else {
                arrived
            };
        }
        // Spread evenly and not drawn at random: the percentiles of so many are then those of the distribution.
        let at = (self.requests as f64 * GOLDEN).fract();
        arrived + delay.quantile(at).unwrap_or_default()
    }

    fn responded(&mut self, delay: Delay, arrived: Instant, sent: Instant) {
        self.waited.record(sent.nanoseconds_since(arrived));
        if let (Delay::Stall(..), Some((_, end))) = (delay, &mut self.stall)
            && arrived < *end
        {
            *end = sent.max(*end);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_are_spread_as_their_distribution_says() {
        let millisecond = Duration::from_millis(1);
        for delay in [
            Delay::Constant(millisecond),
            Delay::Exponential(millisecond),
            Delay::Bimodal(millisecond, millisecond * 10, 0.15),
        ] {
            let mut seen = Seen::default();
            let mut delays = Histogram::new();
            let arrived = Instant::from_nanoseconds(5);
            for _ in 0..10_000 {
                delays.record(seen.until(delay, arrived).nanoseconds_since(arrived));
            }
            // Where fewer than a hundred values lie above, one of them more or less is a per cent.
            let supported = |(percentile, _): &(f64, u64)| *percentile <= 99.0;
            for (percentile, found) in delays.percentiles().filter(supported) {
                let expected = delay.quantile(percentile / 100.0).unwrap().as_nanos() as f64;
                let error = (found as f64 - expected).abs() / expected;
                assert!(error < 0.01, "{delay:?} at {percentile}: {found}");
            }
        }
    }
}
