//! Connect times, and counters of TLS handshakes.

use onrush_tls::Version;

/// Duration of a connect or a handshake, in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ConnectTime {
    pub(crate) all_ns: u64,
    /// Upper bound of the generator's own part of it.
    pub(crate) own_ns: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Handshakes {
    pub(crate) count: u64,
    /// Handshakes resumed with a ticket.
    pub(crate) resumed: u64,
    pub(crate) sum_ns: u64,
    /// See [`ConnectTime::own_ns`].
    pub(crate) own_ns: u64,
    /// Version and cipher suite of the first handshake.
    pub(crate) version: Version,
    pub(crate) cipher: &'static str,
}

impl Handshakes {
    pub(super) fn sum(one: Option<Handshakes>, other: Option<Handshakes>) -> Option<Handshakes> {
        let (Some(one), Some(other)) = (one, other) else {
            return one.or(other);
        };
        Some(Handshakes {
            count: one.count + other.count,
            resumed: one.resumed + other.resumed,
            sum_ns: one.sum_ns + other.sum_ns,
            own_ns: one.own_ns + other.own_ns,
            ..one
        })
    }
}
