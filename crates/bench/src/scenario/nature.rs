//! What kind of number a metric is, and its unit.

/// What kind of number a metric is, which says what spoils it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Nature {
    /// Of requests in a second: a client that is the limit makes it a floor.
    Rate,
    /// Of a request: it stands when the client was the limit.
    Cost,
    /// A time that a client waited.
    Latency,
    /// What there is; who else uses the CPUs does not change it.
    Memory,
    /// How often something happened in the window, whatever the number of requests.
    Count,
}

/// The unit a metric is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Requests per second.
    PerSecond,
    /// Microseconds.
    Microseconds,
    /// Bytes.
    Bytes,
    /// A number of something, or a share.
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
