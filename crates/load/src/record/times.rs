//! Histograms of the parts of a request, of one core in one second or of a whole run.

use onrush_measure::histogram::Histogram;

/// Histograms in nanoseconds, one per part of a request.
///
/// ```text
///  intended start ── send lag ──> written ── first byte ──> head complete ────> last byte
///        |                           └─────────── service ────────────────────────┘
///        └──────────────────────── response ──────────────────────────────────────┘
/// ```
#[derive(Clone, Debug, Default)]
pub struct Times {
    /// From the intended start to the last byte.
    pub response: Histogram,
    /// From the request being written to the last byte.
    pub service: Histogram,
    /// From the intended start to the request being written.
    pub send_lag: Histogram,
    /// From the request being written to a complete head.
    pub first_byte: Histogram,
    /// Response times minus the delays that the generator itself added.
    pub undelayed: Histogram,
    /// Connect times, from the first packet of a connection.
    pub connect: Histogram,
    /// Times of TLS handshakes, from connected.
    pub tls: Histogram,
}

/// Times of one response, in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct ResponseTimes {
    pub(crate) send_lag: u64,
    pub(crate) first_byte: u64,
    pub(crate) service: u64,
    pub(crate) response: u64,
    /// Upper bound of the delay that the generator itself added to the request or its response.
    pub(crate) own: u64,
}

/// Times of a response, and the number of responses with exactly these times.
pub(crate) type CountedTimes = (ResponseTimes, u64);

impl Times {
    fn each_mut(&mut self) -> [&mut Histogram; 7] {
        [
            &mut self.response,
            &mut self.service,
            &mut self.send_lag,
            &mut self.first_byte,
            &mut self.undelayed,
            &mut self.connect,
            &mut self.tls,
        ]
    }

    fn each(&self) -> [&Histogram; 7] {
        [
            &self.response,
            &self.service,
            &self.send_lag,
            &self.first_byte,
            &self.undelayed,
            &self.connect,
            &self.tls,
        ]
    }

    /// Records responses: one histogram after the other, each for all responses.
    pub(crate) fn responded(&mut self, all: &[CountedTimes]) {
        let add = |histogram: &mut Histogram, of: fn(&ResponseTimes) -> u64| {
            for (took, count) in all {
                histogram.record_many(of(took), *count);
            }
        };
        add(&mut self.response, |took| took.response);
        add(&mut self.service, |took| took.service);
        add(&mut self.send_lag, |took| took.send_lag);
        add(&mut self.first_byte, |took| took.first_byte);
        add(&mut self.undelayed, |took| {
            took.response.saturating_sub(took.own)
        });
    }

    /// Adds the histograms of another core or run.
    pub fn merge(&mut self, other: &Times) {
        for (sum, more) in self.each_mut().into_iter().zip(other.each()) {
            // Most seconds have no new connections: skip empty histograms.
            if more.count() > 0 {
                sum.merge(more);
            }
        }
    }

    /// Clears all histograms and keeps their memory.
    pub fn clear(&mut self) {
        for histogram in self.each_mut() {
            if histogram.count() > 0 {
                histogram.clear();
            }
        }
    }

    /// Whether all histograms of responses have this count.
    pub(crate) fn is_consistent(&self, responses: u64) -> bool {
        [
            &self.response,
            &self.service,
            &self.send_lag,
            &self.first_byte,
        ]
        .iter()
        .all(|histogram| histogram.count() == responses)
    }
}
