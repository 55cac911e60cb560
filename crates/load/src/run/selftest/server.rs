//! Server with known delays: waits before each response and records the actual wait.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use onrush_engine::{Address, Claim, Core, Cores, Input, Instant, Io, Listener, Setup, Stream};
use onrush_measure::histogram::Histogram;

use super::{can_busy_poll, cpu};
use crate::pace::error::Error;

#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Delay {
    None,
    Constant(Duration),
    /// With this mean.
    Exponential(Duration),
    /// The second delay for this share of the responses, otherwise the first.
    Bimodal(Duration, Duration, f64),
    /// A stall that starts after the first time since the first request, and lasts for the second; otherwise no delay.
    Stall(Duration, Duration),
    /// No delay; each connection is closed with this response.
    ClosesAfter(u64),
}

impl Delay {
    /// Quantile of the delays at share `at`; `None` if delays depend on when requests arrive.
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

/// Observations of the server.
#[derive(Clone, Debug, Default)]
pub(super) struct Observations {
    /// Actual wait before each response, in nanoseconds.
    pub(super) waited: Histogram,
    pub(super) requests: u64,
    /// Time of the first request.
    pub(super) first: Option<Instant>,
    /// Start of the stall, and time of the last response that it delayed.
    pub(super) stall: Option<(Instant, Instant)>,
}

pub(super) struct Server {
    cores: Cores<Observations>,
    pub(super) address: Address,
}

impl Server {
    pub(super) fn start(io: Io, delay: Delay) -> Result<Server, Error> {
        let refused = |error: onrush_engine::Error| {
            Error::Invalid(format!("cannot start the server of the self-test: {error}"))
        };
        let claim = Claim::new(&Address::Tcp(([127, 0, 0, 1], 0).into())).map_err(refused)?;
        let address = claim.address().clone();
        let setup = Setup {
            io,
            cpus: vec![cpu(1)],
        };
        // Called here, because the server's thread will be pinned to one CPU.
        let polls = can_busy_poll();
        let claim = std::sync::Arc::new(claim);
        let cores = onrush_engine::start(&setup, move |core: Core| {
            let seen = Rc::new(RefCell::new(Observations::default()));
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

    pub(super) fn stop(self) -> Observations {
        self.cores.stop(Duration::ZERO);
        self.cores.join().pop().unwrap_or_default()
    }
}

async fn listen(core: Core, listener: Listener, delay: Delay, seen: Rc<RefCell<Observations>>) {
    while let Ok(stream) = listener.accept().await {
        core.spawn(serve(core.clone(), stream, delay, Rc::clone(&seen)));
    }
}

const RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const LAST_RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok";

/// Responds to the requests of one connection. They come from the generator in this process, one at a time and without
/// a body, so finding the end of the head is enough.
async fn serve(core: Core, stream: Stream, delay: Delay, seen: Rc<RefCell<Observations>>) {
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

/// Fraction of the golden ratio: steps of this size modulo 1 are spread evenly for any count.
const GOLDEN: f64 = 0.618_033_988_749_894_9;

impl Observations {
    /// Returns the time at which the request that arrived at `arrived` gets its response.
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
        // Spread evenly instead of random, so that any number of delays has the percentiles of the distribution.
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
    fn server_delays_follow_distribution() {
        let millisecond = Duration::from_millis(1);
        for delay in [
            Delay::Constant(millisecond),
            Delay::Exponential(millisecond),
            Delay::Bimodal(millisecond, millisecond * 10, 0.15),
        ] {
            let mut seen = Observations::default();
            let mut delays = Histogram::new();
            let arrived = Instant::from_nanoseconds(5);
            for _ in 0..10_000 {
                delays.record(seen.until(delay, arrived).nanoseconds_since(arrived));
            }
            // With fewer than a hundred values above a percentile, one value more or less is a per cent.
            let supported = |(percentile, _): &(f64, u64)| *percentile <= 99.0;
            for (percentile, found) in delays.percentiles().filter(supported) {
                let expected = delay.quantile(percentile / 100.0).unwrap().as_nanos() as f64;
                let error = (found as f64 - expected).abs() / expected;
                assert!(error < 0.01, "{delay:?} at {percentile}: {found}");
            }
        }
    }
}
