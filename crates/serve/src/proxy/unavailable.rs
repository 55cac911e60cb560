//! Why no server of a group takes a request.

/// Why no server takes it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Unavailable {
    /// All are down, or none has an address.
    NoServer,
    /// All have as many connections as they may have.
    Full,
    /// And as many requests as may wait for them do.
    QueueFull,
    /// And that did not change in time.
    QueuedTooLong,
    /// The client has its share of the capacity, and that did not change in time or too many requests wait.
    ClientShare,
}
