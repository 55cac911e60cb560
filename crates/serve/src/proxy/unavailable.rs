//! Why no server of a group accepts a request.

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Unavailable {
    /// All servers are down, or none has an address.
    NoServer,
    /// All servers have reached their limit on connections.
    Full,
    /// As `Full`, and the queue has reached its limit too.
    QueueFull,
    /// As `Full`, and no connection became free in time.
    QueuedTooLong,
    /// The client has used up its share of the capacity, and waited too long or too many requests wait.
    ClientShare,
}
