//! An endpoint of a group in one configuration.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use onrush_config::plan::{self, ServerAddress, Upstream};
use onrush_engine::{Address, Instant};

use super::state::{AdminState, HAS_WAITERS, Location, State};
use crate::proxy::ejection::{EjectionPhase, EjectionState};

/// One address of a server, configured or resolved from its name.
#[derive(Debug)]
pub(crate) struct Endpoint {
    /// Limit of requests in flight; `u32::MAX` for none.
    pub(crate) connections_max: u32,
    /// The address, if it needs no resolving.
    fixed: Option<Location>,
    /// Result of active checks.
    pub(super) is_healthy: Arc<AtomicBool>,
    deciders: EjectionPolicy,
    /// Whether the previous configuration has active checks, too, which are continued.
    was_checked: bool,
    pub(super) state: Arc<State>,
}

/// The mechanisms that may take servers of a configuration out of service.
#[derive(Clone, Copy, Debug)]
pub(super) struct EjectionPolicy {
    checks: bool,
    /// Ejection because of request outcomes; never applies to the only endpoint of a group.
    requests: bool,
    /// Whether request outcomes are counted, also of the only endpoint.
    counts: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Availability {
    /// The endpoint may get requests, since this time of the clock in nanoseconds (0: always).
    In {
        since: u64,
    },
    Out,
}

/// The address of a server that needs no resolving.
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

/// Largest number of addresses of a server.
pub(super) fn endpoints_max(server: &plan::Server) -> usize {
    match server.address.is_resolved_by_name() {
        true => server.addresses_max as usize,
        false => 1,
    }
}

impl EjectionPolicy {
    pub(super) fn of(upstream: &Upstream) -> Self {
        let endpoints: usize = upstream.servers.iter().map(endpoints_max).sum();
        Self {
            checks: upstream.health.is_some(),
            requests: upstream.eject.is_some() && endpoints > 1,
            counts: upstream.eject.is_some(),
        }
    }
}

impl Endpoint {
    /// `known` is the same server's endpoint in the previous configuration. Results of checks and ejection are taken
    /// over only if both configurations have the mechanism; otherwise nothing would ever revert them.
    pub(super) fn new(
        server: &plan::Server,
        fixed: Option<Location>,
        deciders: EjectionPolicy,
        known: Option<&Endpoint>,
    ) -> Self {
        let checked = known.filter(|known| known.deciders.checks && deciders.checks);
        if let Some(known) = known {
            let ejection = &known.state.ejection;
            // A server that is out was ejected under an older configuration; the previous one ignored it.
            let was_out = ejection.presence() != EjectionPhase::In && !known.deciders.requests;
            let was_failing = ejection.is_failing() && !known.deciders.counts;
            if deciders.requests && was_out || deciders.counts && was_failing {
                ejection.reset_state();
            }
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

    /// Current address and weight.
    pub(crate) fn location(&self) -> Option<Location> {
        let location = self.fixed.clone();
        let mut location = location.or_else(|| self.state.location().clone())?;
        if let Some(weight) = self.state.weight() {
            location.weight = weight;
        }
        Some(location)
    }

    pub(crate) fn duty(&self) -> AdminState {
        self.state.duty()
    }

    /// Whether its weight was set through the admin interface.
    pub(crate) fn is_weighed(&self) -> bool {
        self.state.weight().is_some()
    }

    /// State of ejection; always `In` if this configuration does not eject.
    pub(crate) fn presence(&self) -> EjectionPhase {
        match self.deciders.requests {
            true => self.state.ejection.presence(),
            false => EjectionPhase::In,
        }
    }

    /// Whether it fails and has to stay in service.
    pub(crate) fn is_failing(&self) -> bool {
        self.deciders.counts && self.state.ejection.is_failing()
    }

    /// Whether request outcomes may mark it as failing.
    pub(crate) fn may_fail(&self) -> bool {
        self.deciders.counts
    }

    /// Whether request outcomes may take it out.
    pub(crate) fn may_be_taken_out(&self) -> bool {
        self.deciders.requests
    }

    /// State of ejection, whether or not this configuration uses it.
    pub(in crate::proxy) fn ejection(&self) -> &EjectionState {
        &self.state.ejection
    }

    /// Sets the start of its current service or trial.
    pub(in crate::proxy) fn set_since(&self, now: Instant) {
        self.state.set_since(now);
    }

    /// Whether no other configuration has this server.
    pub(in crate::proxy) fn is_unshared(&self) -> bool {
        Arc::strong_count(&self.state) == 1
    }

    /// Start of the trial, if it is on trial.
    pub(crate) fn on_trial_since(&self) -> Instant {
        Instant::from_nanoseconds(self.state.since.load(Ordering::Relaxed))
    }

    /// Result of the checks under the previous configuration, if checks continue.
    pub(crate) fn checked_before(&self) -> Option<bool> {
        self.was_checked.then(|| self.is_healthy())
    }

    pub(crate) fn is_healthy(&self) -> bool {
        self.is_healthy.load(Ordering::Relaxed)
    }

    /// Whether it may get requests, provided it has an address.
    pub(crate) fn availability(&self) -> Availability {
        if !self.is_healthy()
            || self.presence() != EjectionPhase::In
            || self.duty() != AdminState::Serve
        {
            return Availability::Out;
        }
        Availability::In {
            since: self.state.since.load(Ordering::Relaxed),
        }
    }

    /// Whether it accepts requests of clients that stick to it.
    pub(crate) fn accepts_sticky_clients(&self) -> bool {
        self.is_healthy() && self.presence() == EjectionPhase::In && self.duty() != AdminState::Rest
    }

    /// Requests in flight of all cores; counted only if the group has a limit.
    #[inline]
    pub(crate) fn in_flight(&self) -> u32 {
        self.state.in_flight.load(Ordering::Relaxed) & !HAS_WAITERS
    }

    /// Reserves a connection, if the limit allows one more.
    pub(crate) fn acquire(&self) -> bool {
        self.state
            .in_flight
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |count| {
                (count & !HAS_WAITERS < self.connections_max).then(|| count + 1)
            })
            .is_ok()
    }
}
