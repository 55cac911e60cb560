//! How long things took, on one core within a second or over a whole run.

use onrush_measure::histogram::Histogram;

/// A histogram, in nanoseconds, of each part of a request.
///
/// ```text
///  intended start ── send lag ──> written ── first byte ──> head there ──> last byte there
///        |                           └─────────── service ───────────────────┘
///        └──────────────────────── response ─────────────────────────────────┘
/// ```
#[derive(Clone, Debug, Default)]
pub struct Times {
    /// From the intended start to the last byte.
    pub response: Histogram,
    /// From written to the last byte.
    pub service: Histogram,
    /// From the intended start to written.
    pub send_lag: Histogram,
    /// From written to a complete head.
    pub first_byte: Histogram,
    /// What the response times would have been, had the generator itself kept nothing waiting.
    pub undelayed: Histogram,
    /// Of connections: from the first packet to connected.
    pub connect: Histogram,
    /// Of connections: from connected to the end of the TLS handshake.
    pub tls: Histogram,
}

/// The times of one response, in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct ResponseTimes {
    pub(crate) send_lag: u64,
    pub(crate) first_byte: u64,
    pub(crate) service: u64,
    pub(crate) response: u64,
    /// For how long the generator itself kept the request or its response waiting, at most.
    pub(crate) own: u64,
}

/// Responses that took the same, each of them, and how many they are.
pub(crate) type Took = (ResponseTimes, u64);

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

    /// So many responses are there that took this: one histogram after the other, each for all of them.
    pub(crate) fn responded(&mut self, all: &[Took]) {
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

    /// Adds what others have measured.
    pub fn merge(&mut self, other: &Times) {
        for (sum, more) in self.each_mut().into_iter().zip(other.each()) {
            // Most seconds make no connections: what is empty costs nothing.
            if more.count() > 0 {
                sum.merge(more);
            }
        }
    }

    /// Forgets everything, keeping the memory.
    pub fn clear(&mut self) {
        for histogram in self.each_mut() {
            if histogram.count() > 0 {
                histogram.clear();
            }
        }
    }

    /// Whether responses are in all histograms of responses or in none.
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
