//! Claims of a listener on its address: for connections, datagrams, or both.

use std::sync::{Arc, Weak};

use onrush_engine::{Address, Claim, DatagramClaim, SocketOwner};

/// Claims of a listener; at least one is present.
#[derive(Clone)]
pub(crate) struct ListenerClaims {
    pub(crate) streams: Option<Arc<Claim>>,
    pub(crate) datagrams: Option<Arc<DatagramClaim>>,
}

impl ListenerClaims {
    /// The address, with the actual port; it is the same for both claims.
    pub(crate) fn address(&self) -> Address {
        match (&self.streams, &self.datagrams) {
            (Some(streams), _) => streams.address().clone(),
            (None, Some(datagrams)) => Address::Tcp(datagrams.address()),
            (None, None) => unreachable!("each protocol has a transport"),
        }
    }

    /// Whether it shares no claim with `others`.
    pub(super) fn shares_nothing_with(&self, others: &[ListenerClaims]) -> bool {
        let streams = |other: &ListenerClaims| match (&self.streams, &other.streams) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            _ => false,
        };
        let datagrams = |other: &ListenerClaims| match (&self.datagrams, &other.datagrams) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            _ => false,
        };
        !others
            .iter()
            .any(|other| streams(other) || datagrams(other))
    }
}

pub(super) fn streams(holds: &[ListenerClaims]) -> impl Iterator<Item = &Arc<Claim>> {
    holds.iter().filter_map(|hold| hold.streams.as_ref())
}

pub(super) fn streams_weak(holds: &[ListenerClaims]) -> impl Iterator<Item = Weak<Claim>> {
    streams(holds).map(Arc::downgrade)
}

/// Stream claims whose sockets belong to a service manager.
pub(super) fn managed(holds: &[ListenerClaims]) -> impl Iterator<Item = &Arc<Claim>> {
    streams(holds).filter(|claim| claim.keeper() == SocketOwner::Manager)
}
