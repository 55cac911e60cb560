//! What a core has counted of its flows.

use std::collections::BTreeMap;

use onrush_engine::Errno;
use onrush_measure::histogram::Histogram;

/// What has happened so far. Datagrams that left are in `sent`; those that the kernel did not take are in `unsent`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) sent: u64,
    /// Bytes of payload of these.
    pub(crate) sent_bytes: u64,
    /// Echoes that came for the first time, whenever.
    pub(crate) received: u64,
    pub(crate) received_bytes: u64,
    /// Of these, those that nobody waited for any more.
    pub(crate) late: u64,
    /// Of these, those with another length than they were sent with.
    pub(crate) wrong_length: u64,
    pub(crate) duplicated: u64,
    pub(crate) reordered: u64,
    pub(crate) too_late: u64,
    /// Datagrams that are none of this run.
    pub(crate) foreign: u64,
    /// How often the network said that nobody listens (ICMP port unreachable).
    pub(crate) refused: u64,
}

impl Counts {
    /// Adds what another core has counted.
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

/// What a core has measured, in nanoseconds.
#[derive(Clone, Debug, Default)]
pub(crate) struct PacketTimes {
    /// From when a datagram should have left to its echo.
    pub(crate) response: Histogram,
    /// From when it left to its echo.
    pub(crate) service: Histogram,
    /// From when it should have left to when it did.
    pub(crate) lateness: Histogram,
}

impl PacketTimes {
    pub(crate) fn merge(&mut self, other: &PacketTimes) {
        self.response.merge(&other.response);
        self.service.merge(&other.service);
        self.lateness.merge(&other.lateness);
    }
}

/// Datagrams that the kernel did not take, by its reason.
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

    /// How many they are.
    pub(crate) fn count(&self) -> u64 {
        self.0.values().sum()
    }

    /// The reasons as sentences of the system, each with its count.
    pub(crate) fn named(&self) -> BTreeMap<String, u64> {
        let named = self.0.iter().map(|(errno, count)| {
            let reason = std::io::Error::from_raw_os_error(*errno);
            (reason.to_string(), *count)
        });
        named.collect()
    }
}
