//! Receiver's counters of one flow.

use crate::header::Header;
use crate::window::{Arrival, Window};

/// Counters of one flow. Each datagram that arrived is in exactly one of `received`, `duplicated` and `too_late`.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct FlowCounters {
    /// Number of datagrams received for the first time.
    pub received: u64,
    /// Payload bytes of these, test headers included.
    pub bytes: u64,
    /// Number of datagrams received before.
    pub duplicated: u64,
    /// Received datagrams that arrived after one with a higher number (RFC 4737 section 3.3).
    pub reordered: u64,
    /// Number of datagrams below the window, for which it is unknown whether they arrived before; see
    /// [`WINDOW`](crate::limits::WINDOW).
    pub too_late: u64,
    /// Highest number received plus one; 0 if there is none.
    pub next: u64,
    /// Smoothed variation of the transit time in nanoseconds (RFC 3550 section 6.4.1). The clocks of both ends need the
    /// same rate, not the same time.
    pub jitter: f64,
}

impl FlowCounters {
    /// Missing numbers below the highest received one. Datagrams lost after the highest are not included.
    pub fn missing(&self) -> u64 {
        self.next.saturating_sub(self.received)
    }

    /// Adds the counters of another flow. The jitter is the maximum; `next` becomes a lower bound of the number sent.
    pub fn add(&mut self, other: &FlowCounters) {
        self.received += other.received;
        self.bytes += other.bytes;
        self.duplicated += other.duplicated;
        self.reordered += other.reordered;
        self.too_late += other.too_late;
        self.next += other.next;
        self.jitter = self.jitter.max(other.jitter);
    }
}

/// Counts the datagrams of one flow.
#[derive(Clone, Debug, Default)]
pub struct Counter {
    window: Window,
    tally: FlowCounters,
    /// Transit time of the previous datagram: arrival minus departure, in nanoseconds of two different clocks.
    transit: Option<i64>,
}

impl Counter {
    /// Counters so far.
    pub fn tally(&self) -> FlowCounters {
        FlowCounters {
            next: self.window.next(),
            ..self.tally
        }
    }

    /// Counts a datagram of `bytes` bytes that arrived at `now`, in nanoseconds of the receiver's clock.
    #[inline]
    pub fn record(&mut self, header: &Header, bytes: usize, now: u64) {
        match self.window.record(header.sequence) {
            Arrival::InOrder => self.transit(header, now),
            Arrival::Reordered => self.tally.reordered += 1,
            Arrival::Duplicate => {
                self.tally.duplicated += 1;
                return;
            }
            Arrival::TooLate => {
                self.tally.too_late += 1;
                return;
            }
        }
        self.tally.received += 1;
        self.tally.bytes += bytes as u64;
    }

    /// Updates the jitter. Called for datagrams in order only: RFC 3550 compares datagrams consecutive in arrival, so
    /// a reordered datagram would count twice.
    fn transit(&mut self, header: &Header, now: u64) {
        let transit = now.wrapping_sub(header.sent).cast_signed();
        if let Some(before) = self.transit.replace(transit) {
            let difference = transit.wrapping_sub(before).unsigned_abs() as f64;
            self.tally.jitter += (difference - self.tally.jitter) / 16.0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::header::{Flow, Kind};

    fn header(sequence: u32, sent: u64) -> Header {
        Header {
            kind: Kind::Data,
            flow: Flow { run: 1, number: 0 },
            sequence,
            sent,
        }
    }

    #[test]
    fn each_datagram_is_counted_once() {
        let mut counter = Counter::default();
        for number in [0, 1, 5, 3, 3, 6] {
            counter.record(&header(number, 0), 100, 0);
        }
        let tally = counter.tally();
        assert_eq!((tally.received, tally.bytes), (5, 500));
        assert_eq!((tally.duplicated, tally.reordered), (1, 1));
        assert_eq!((tally.next, tally.missing()), (7, 2));
    }

    #[test]
    fn jitter_is_independent_of_clock_offset() {
        let ahead = 1 << 40;
        let mut steady = Counter::default();
        let mut shaken = Counter::default();
        for number in 0..1000u32 {
            let sent = u64::from(number) * 1000;
            steady.record(&header(number, sent), 18, sent + ahead);
            let way = if number % 2 == 0 { 0 } else { 160 };
            shaken.record(&header(number, sent), 18, sent + ahead + way);
        }
        assert_eq!(steady.tally().jitter, 0.0);
        // Each transit time differs from the previous one by 160 ns, so the jitter converges to that.
        let jitter = shaken.tally().jitter;
        assert!((159.0..=160.0).contains(&jitter), "{jitter}");
    }

    #[test]
    fn flow_counters_are_summed() {
        let mut sum = FlowCounters::default();
        let mut counter = Counter::default();
        counter.record(&header(1, 0), 20, 0);
        sum.add(&counter.tally());
        sum.add(&counter.tally());
        assert_eq!((sum.received, sum.next, sum.missing()), (2, 4, 2));
    }
}
