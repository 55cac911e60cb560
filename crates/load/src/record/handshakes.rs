//! How long connections took to be made, and what came of their TLS handshakes.

use onrush_tls::Version;

/// How long something of a connection took, in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Took {
    pub(crate) all_ns: u64,
    /// For how long of that the generator itself kept it from being seen, at most.
    pub(crate) own_ns: u64,
}

/// What came of TLS handshakes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Handshakes {
    pub(crate) count: u64,
    /// Of these, with a ticket of an earlier connection.
    pub(crate) resumed: u64,
    pub(crate) sum_ns: u64,
    /// See [`Took::own_ns`].
    pub(crate) own_ns: u64,
    /// Of the first.
    pub(crate) version: Version,
    pub(crate) cipher: &'static str,
}

impl Handshakes {
    /// The sum of what two cores have seen.
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
