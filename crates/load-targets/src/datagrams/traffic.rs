//! Counters of a listener's datagrams on one core.

use std::cell::Cell;
use std::ops::AddAssign;

/// Counters of a listener on one core.
#[derive(Debug)]
pub struct DatagramTraffic {
    name: String,
    received: Cell<u64>,
    received_bytes: Cell<u64>,
    sent: Cell<u64>,
    foreign: Cell<u64>,
    dropped: Cell<u64>,
    failed: Cell<u64>,
}

fn add(counter: &Cell<u64>, more: u64) {
    counter.set(counter.get() + more);
}

impl DatagramTraffic {
    /// Starts at zero.
    pub fn new(name: String) -> Self {
        Self {
            name,
            received: Cell::default(),
            received_bytes: Cell::default(),
            sent: Cell::default(),
            foreign: Cell::default(),
            dropped: Cell::default(),
            failed: Cell::default(),
        }
    }

    /// Returns the name of the listener.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Counts a received datagram of this size.
    #[inline]
    pub fn received(&self, bytes: usize) {
        add(&self.received, 1);
        add(&self.received_bytes, bytes as u64);
    }

    /// Counts a received datagram that is not a test datagram.
    #[inline]
    pub(crate) fn foreign(&self) {
        add(&self.foreign, 1);
    }

    pub(crate) fn sent(&self, datagrams: u64) {
        add(&self.sent, datagrams);
    }

    /// Counts messages that the kernel dropped because the receive buffer was full.
    pub(crate) fn dropped(&self, messages: u64) {
        add(&self.dropped, messages);
    }

    /// Counts datagrams that were not answered.
    pub(crate) fn failed(&self, datagrams: u64) {
        add(&self.failed, datagrams);
    }

    /// Returns the current values.
    pub fn view(&self) -> DatagramView {
        DatagramView {
            name: self.name.clone(),
            received: self.received.get(),
            received_bytes: self.received_bytes.get(),
            sent: self.sent.get(),
            foreign: self.foreign.get(),
            dropped: self.dropped.get(),
            failed: self.failed.get(),
        }
    }
}

/// Counters of a listener's datagrams, on one core or in total.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct DatagramView {
    /// Name of the listener.
    pub name: String,
    /// Received datagrams.
    pub received: u64,
    /// Number of bytes of the received datagrams' payload.
    pub received_bytes: u64,
    /// Number of datagrams sent, including reports.
    pub sent: u64,
    /// Received datagrams that are not test datagrams.
    pub foreign: u64,
    /// Number of messages that the kernel dropped because the receive buffer was full, each with one or more coalesced
    /// datagrams.
    pub dropped: u64,
    /// Number of datagrams that could not be answered, or were not because their source port is the listener's port.
    pub failed: u64,
}

impl AddAssign<&DatagramView> for DatagramView {
    fn add_assign(&mut self, other: &DatagramView) {
        self.received += other.received;
        self.received_bytes += other.received_bytes;
        self.sent += other.sent;
        self.foreign += other.foreign;
        self.dropped += other.dropped;
        self.failed += other.failed;
    }
}
