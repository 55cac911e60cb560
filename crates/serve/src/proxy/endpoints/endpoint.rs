//! An endpoint of a group, and what its configuration says of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use onrush_config::plan::{self, ServerAddress, Upstream};
use onrush_engine::{Address, Instant};

use super::state::{Duty, Location, State, WAITED_FOR};
use crate::proxy::ejection::{EjectionState, Presence};

/// Where a server may be: its address, or one of those of its name.
#[derive(Debug)]
pub(crate) struct Endpoint {
    /// Connections with a request in flight that it may have; `u32::MAX` for no bound.
    pub(crate) connections_max: u32,
    /// Where it is when its address needs no resolving.
    fixed: Option<Location>,
    /// By active checks.
    pub(super) is_healthy: Arc<AtomicBool>,
    deciders: Deciders,
    /// Whether active checks are made, and were in the configuration before, and are gone on with.
    was_checked: bool,
    pub(super) state: Arc<State>,
}

/// What decides in a configuration whether servers may have requests.
#[derive(Clone, Copy, Debug)]
pub(super) struct Deciders {
    /// Active checks.
    checks: bool,
    /// What requests meet there, unless it is the only one.
    requests: bool,
}

/// Whether a server may have requests now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Availability {
    /// It may, since so many nanoseconds of the clock (0: always).
    In { since: u64 },
    /// It may not.
    Out,
}

/// Where a server is whose address needs no resolving.
pub(super) fn fixed_address(server: &plan::Server) -> Option<Location> {
    let address = match &server.address {
        ServerAddress::Ip(address) => Address::Tcp(*address),
        ServerAddress::Unix(path) => Address::Unix(path.clone()),
        ServerAddress::Name { .. } | ServerAddress::Srv(_) => return None,
    };
    Some(Location {
        address,
        weight: server.weight,
        backup: server.backup,
    })
}

/// How many addresses a server may turn out to have.
pub(super) fn endpoints_max(server: &plan::Server) -> usize {
    match server.address.may_be_several() {
        true => server.addresses_max as usize,
        false => 1,
    }
}

impl Deciders {
    pub(super) fn of(upstream: &Upstream) -> Self {
        let endpoints: usize = upstream.servers.iter().map(endpoints_max).sum();
        Self {
            checks: upstream.health.is_some(),
            // One always stays.
            requests: upstream.eject.is_some() && endpoints > 1,
        }
    }
}

impl Endpoint {
    /// `known` is the same server's endpoint in the configuration before. What checks or requests have shown counts only where
    /// they go on: otherwise nothing would ever change it back.
    pub(super) fn new(
        server: &plan::Server,
        fixed: Option<Location>,
        deciders: Deciders,
        known: Option<&Endpoint>,
    ) -> Self {
        let checked = known.filter(|known| known.deciders.checks && deciders.checks);
        if let Some(known) = known
            && deciders.requests
            && !known.deciders.requests
        {
            // If it is out, an earlier configuration took it out, and the one before ignores that.
            known.state.ejection.begin_anew();
        }
        Self {
            connections_max: server.connections_max.map_or(u32::MAX, Into::into),
            fixed,
            is_healthy: match checked {
                Some(known) => Arc::clone(&known.is_healthy),
                None => Arc::new(AtomicBool::new(true)),
            },
            deciders,
            was_checked: checked.is_some(),
            state: known.map_or_else(Arc::default, |known| Arc::clone(&known.state)),
        }
    }

    pub(super) fn is_located(&self) -> bool {
        self.fixed.is_some() || self.state.location().is_some()
    }

    /// Where the server is and its weight.
    pub(crate) fn location(&self) -> Option<Location> {
        let location = self.fixed.clone();
        let mut location = location.or_else(|| self.state.location().clone())?;
        if let Some(weight) = self.state.weight() {
            location.weight = weight;
        }
        Some(location)
    }

    /// What an administrator wants of it.
    pub(crate) fn duty(&self) -> Duty {
        self.state.duty()
    }

    /// Whether its weight was given by hand.
    pub(crate) fn is_weighed(&self) -> bool {
        self.state.weight().is_some()
    }

    /// Whether it has been taken out.
    pub(crate) fn presence(&self) -> Presence {
        match self.deciders.requests {
            true => self.state.ejection.presence(),
            false => Presence::In,
        }
    }

    /// Whether what requests meet may take it out.
    pub(crate) fn may_be_taken_out(&self) -> bool {
        self.deciders.requests
    }

    /// Its state of ejection, whether or not this configuration applies it.
    pub(in crate::proxy) fn ejection(&self) -> &EjectionState {
        &self.state.ejection
    }

    /// It may have requests, or is on trial, since `now`.
    pub(in crate::proxy) fn set_since(&self, now: Instant) {
        self.state.set_since(now);
    }

    /// Whether no other configuration has this server.
    pub(in crate::proxy) fn is_alone(&self) -> bool {
        Arc::strong_count(&self.state) == 1
    }

    /// Since when it is on trial, if it is.
    pub(crate) fn on_trial_since(&self) -> Instant {
        Instant::from_nanoseconds(self.state.since.load(Ordering::Relaxed))
    }

    /// What active checks have said of it in the configuration before, if they were made there and are made here.
    pub(crate) fn checked_before(&self) -> Option<bool> {
        self.was_checked.then(|| self.is_healthy())
    }

    /// Whether active checks believe it to be up.
    pub(crate) fn is_healthy(&self) -> bool {
        self.is_healthy.load(Ordering::Relaxed)
    }

    /// Whether it may have requests, apart from being vacant.
    pub(crate) fn availability(&self) -> Availability {
        if !self.is_healthy() || self.presence() != Presence::In || self.duty() != Duty::Serve {
            return Availability::Out;
        }
        Availability::In {
            since: self.state.since.load(Ordering::Relaxed),
        }
    }

    /// Whether a client that has been with it may come again.
    pub(crate) fn takes_its_clients(&self) -> bool {
        self.is_healthy() && self.presence() == Presence::In && self.duty() != Duty::Rest
    }

    /// Requests in flight of all cores, when there is a bound.
    #[inline]
    pub(crate) fn in_flight(&self) -> u32 {
        self.state.in_flight.load(Ordering::Relaxed) & !WAITED_FOR
    }

    /// Takes one of the connections it may have, if any is left.
    pub(crate) fn acquire(&self) -> bool {
        self.state
            .in_flight
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |count| {
                (count & !WAITED_FOR < self.connections_max).then(|| count + 1)
            })
            .is_ok()
    }
}
