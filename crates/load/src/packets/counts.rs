//! Counters of a core's flows.

use std::collections::BTreeMap;

use onrush_engine::Errno;
use onrush_measure::histogram::Histogram;

/// Totals of a core. `sent` does not include datagrams that the kernel refused, which are in [`Unsent`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) sent: u64,
    pub(crate) sent_bytes: u64,
    /// First arrivals of echoes, including late ones.
    pub(crate) received: u64,
    pub(crate) received_bytes: u64,
    pub(crate) late: u64,
    /// Echoes with a different length than the datagram.
    pub(crate) wrong_length: u64,
    pub(crate) duplicated: u64,
    pub(crate) reordered: u64,
    pub(crate) too_late: u64,
    /// Received datagrams that are not from this run.
    pub(crate) foreign: u64,
    /// Errors because nothing listens at the target (ICMP port unreachable).
    pub(crate) refused: u64,
}

impl Counts {
    pub(crate) fn add(&mut self, other: &Counts) {
        let Counts {
            sent,
            sent_bytes,
            received,
            received_bytes,
            late,
            wrong_length,
            duplicated,
            reordered,
            too_late,
            foreign,
            refused,
        } = other;
        self.sent += sent;
        self.sent_bytes += sent_bytes;
        self.received += received;
        self.received_bytes += received_bytes;
        self.late += late;
        self.wrong_length += wrong_length;
        self.duplicated += duplicated;
        self.reordered += reordered;
        self.too_late += too_late;
        self.foreign += foreign;
        self.refused += refused;
    }
}

/// Measured times, in nanoseconds.
#[derive(Clone, Debug, Default)]
pub(crate) struct PacketTimes {
    /// From the intended send time to the echo.
    pub(crate) response: Histogram,
    /// From the actual send time to the echo.
    pub(crate) service: Histogram,
    /// From the intended to the actual send time.
    pub(crate) lateness: Histogram,
}

impl PacketTimes {
    pub(crate) fn merge(&mut self, other: &PacketTimes) {
        self.response.merge(&other.response);
        self.service.merge(&other.service);
        self.lateness.merge(&other.lateness);
    }
}

/// Datagrams that the kernel refused, by errno.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Unsent(BTreeMap<i32, u64>);

impl Unsent {
    pub(crate) fn add(&mut self, errno: Errno, count: u64) {
        *self.0.entry(errno.raw_os_error()).or_default() += count;
    }

    pub(crate) fn merge(&mut self, other: &Unsent) {
        for (errno, count) in &other.0 {
            *self.0.entry(*errno).or_default() += count;
        }
    }

    pub(crate) fn count(&self) -> u64 {
        self.0.values().sum()
    }

    pub(crate) fn named(&self) -> BTreeMap<String, u64> {
        let named = self.0.iter().map(|(errno, count)| {
            let reason = std::io::Error::from_raw_os_error(*errno);
            (reason.to_string(), *count)
        });
        named.collect()
    }
}
