//! A place for a server, and what its configuration says of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use onrush_config::plan::{self, ServerAddress, Upstream};
use onrush_engine::{Address, Instant};

use super::location::At;
use super::state::{Presence, State, WAITED_FOR};
use crate::limits::ADDRESSES_PER_NAME;

/// A place for a server.
#[derive(Debug)]
pub(crate) struct Seat {
    /// Connections with a request in flight that it may have; `u32::MAX` for no bound.
    pub(crate) connections_max: u32,
    /// Where it is when its address needs no resolving.
    fixed: Option<At>,
    /// By active checks.
    pub(super) is_healthy: Arc<AtomicBool>,
    judges: Judges,
    /// Whether active checks are made, and were in the configuration before, and are gone on with.
    was_checked: bool,
    pub(super) state: Arc<State>,
}

/// Who says in a configuration whether servers may have requests.
#[derive(Clone, Copy, Debug)]
pub(super) struct Judges {
    /// Active checks.
    checks: bool,
    /// What requests meet there, unless it is the only one.
    requests: bool,
}

/// Whether a server may have requests now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It may, since so many nanoseconds of the clock (0: always).
    In { since: u64 },
    /// It may not.
    Out,
}

/// Where a server is whose address needs no resolving.
pub(super) fn fixed_address(server: &plan::Server) -> Option<At> {
    let address = match &server.address {
        ServerAddress::Ip(address) => Address::Tcp(*address),
        ServerAddress::Unix(path) => Address::Unix(path.clone()),
        ServerAddress::Name { .. } | ServerAddress::Srv(_) => return None,
    };
    Some(At {
        address,
        weight: server.weight,
        backup: server.backup,
    })
}

/// How many places a server may turn out to need.
pub(super) fn seats_of(server: &plan::Server) -> usize {
    match server.address.may_be_several() {
        true => ADDRESSES_PER_NAME,
        false => 1,
    }
}

impl Judges {
    pub(super) fn of(upstream: &Upstream) -> Self {
        let seats: usize = upstream.servers.iter().map(seats_of).sum();
        Self {
            checks: upstream.health.is_some(),
            // One always stays.
            requests: upstream.eject.is_some() && seats > 1,
        }
    }
}

impl Seat {
    /// `known` is the same server's seat in the configuration before. What a judge said of it counts only where he goes on
    /// judging: otherwise nobody would take it back.
    pub(super) fn new(
        server: &plan::Server,
        fixed: Option<At>,
        judges: Judges,
        known: Option<&Seat>,
    ) -> Self {
        let checked = known.filter(|known| known.judges.checks && judges.checks);
        if let Some(known) = known
            && judges.requests
            && !known.judges.requests
        {
            // It was out in an earlier configuration, if it is. The one before does not ask.
            known.state.begin_anew();
        }
        Self {
            connections_max: server.connections_max.map_or(u32::MAX, Into::into),
            fixed,
            is_healthy: match checked {
                Some(known) => Arc::clone(&known.is_healthy),
                None => Arc::new(AtomicBool::new(true)),
            },
            judges,
            was_checked: checked.is_some(),
            state: known.map_or_else(Arc::default, |known| Arc::clone(&known.state)),
        }
    }

    pub(super) fn is_taken(&self) -> bool {
        self.fixed.is_some() || self.state.lock().is_some()
    }

    /// Where the server is and its weight.
    pub(crate) fn at(&self) -> Option<At> {
        self.fixed.clone().or_else(|| self.state.lock().clone())
    }

    /// Whether it has been taken out.
    pub(crate) fn presence(&self) -> Presence {
        match self.judges.requests {
            true => self.state.presence(),
            false => Presence::In,
        }
    }

    /// Whether what requests meet may take it out.
    pub(crate) fn may_be_taken_out(&self) -> bool {
        self.judges.requests
    }

    /// Since when it is on trial, if it is.
    pub(crate) fn on_trial_since(&self) -> Instant {
        Instant::from_nanoseconds(self.state.since.load(Ordering::Relaxed))
    }

    /// What active checks have said of it in the configuration before, if they were made there and are made here.
    pub(crate) fn checked_before(&self) -> Option<bool> {
        self.was_checked.then(|| self.is_healthy())
    }

    /// Whether active checks have it in.
    pub(crate) fn is_healthy(&self) -> bool {
        self.is_healthy.load(Ordering::Relaxed)
    }

    /// Whether it may have requests, apart from being vacant.
    pub(crate) fn standing(&self) -> Standing {
        if !self.is_healthy() || self.presence() != Presence::In {
            return Standing::Out;
        }
        Standing::In {
            since: self.state.since.load(Ordering::Relaxed),
        }
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
