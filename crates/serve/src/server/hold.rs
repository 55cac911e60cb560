//! What a listener has of its address: a claim for connections, one for datagrams, or both.

use std::sync::{Arc, Weak};

use onrush_engine::{Address, Claim, DatagramClaim, Keeper};

/// What a listener has of its address. Never neither.
#[derive(Clone)]
pub(crate) struct Hold {
    pub(crate) streams: Option<Arc<Claim>>,
    pub(crate) datagrams: Option<Arc<DatagramClaim>>,
}

impl Hold {
    /// The address, with the port that was chosen: of both claims the same.
    pub(crate) fn address(&self) -> Address {
        match (&self.streams, &self.datagrams) {
            (Some(streams), _) => streams.address().clone(),
            (None, Some(datagrams)) => Address::Tcp(datagrams.address()),
            (None, None) => unreachable!("each protocol has a transport"),
        }
    }

    /// Whether nothing of this one is in `others`.
    pub(super) fn is_beside(&self, others: &[Hold]) -> bool {
        let streams = |other: &Hold| match (&self.streams, &other.streams) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            _ => false,
        };
        let datagrams = |other: &Hold| match (&self.datagrams, &other.datagrams) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            _ => false,
        };
        !others
            .iter()
            .any(|other| streams(other) || datagrams(other))
    }
}

/// The claims for connections, in order.
pub(super) fn streams(holds: &[Hold]) -> impl Iterator<Item = &Arc<Claim>> {
    holds.iter().filter_map(|hold| hold.streams.as_ref())
}

/// The same, for who looks at them as long as they are there.
pub(super) fn streams_weak(holds: &[Hold]) -> impl Iterator<Item = Weak<Claim>> {
    streams(holds).map(Arc::downgrade)
}

/// Those of them whose sockets are a service manager's.
pub(super) fn managed(holds: &[Hold]) -> impl Iterator<Item = &Arc<Claim>> {
    streams(holds).filter(|claim| claim.keeper() == Keeper::Manager)
}
