//! Kind and unit of a metric.

/// Kind of number, which determines what invalidates it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricKind {
    /// Requests per second: only a lower bound if the client was the bottleneck.
    Rate,
    /// Cost per request: valid even if the client was the bottleneck.
    Cost,
    /// Time that a client waited.
    Latency,
    /// Memory: independent of other programs on the same CPUs.
    Memory,
    /// Number of events in the window, not divided by requests.
    Count,
}

/// Unit of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Requests per second.
    PerSecond,
    /// Microseconds.
    Microseconds,
    /// Bytes.
    Bytes,
    /// A plain number or a share.
    Number,
}

impl Unit {
    /// The symbol in tables.
    pub fn symbol(self) -> &'static str {
        match self {
            Unit::PerSecond => "/s",
            Unit::Microseconds => "µs",
            Unit::Bytes => "B",
            Unit::Number => "",
        }
    }
}
