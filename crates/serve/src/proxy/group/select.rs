//! Selects the server of a group for a request.

use std::rc::Rc;

use onrush_config::plan::{Balance, Multiplexing, UpstreamProtocol};
use onrush_engine::random::mix;
use onrush_engine::{Core, Instant};
use onrush_http::Method;

use super::{Group, NO_SERVER, Reservation};
use crate::limits::{SERVERS_TRIED_MAX, SHARE_CHECK_INTERVAL, TRIAL_WAIT_MAX};
use crate::proxy::balance::BalanceRequest;
use crate::proxy::ejection::{EjectionPhase, Purpose};
use crate::proxy::endpoints::AdminState;
use crate::proxy::queue::Ticket;
use crate::proxy::unavailable::Unavailable;
use crate::worker::admit::key::Key;

/// Servers that a retry may use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RetryScope {
    /// Servers that are not ejected.
    InService,
    /// Ejected servers too.
    LastResort,
}

impl Group {
    /// Chooses a server by `key` for the first attempt of a request. A request that cannot be repeated avoids servers
    /// that have recently failed another one, as long as another server in service has capacity.
    ///
    /// # Errors
    /// As [`Group::reserve`].
    #[inline]
    pub(crate) fn reserve_first(
        self: &Rc<Self>,
        method: Method,
        key: u64,
        now: Instant,
    ) -> Result<Reservation, Unavailable> {
        if !method.is_idempotent()
            && let Some(avoid) = self.recently_failed(now)
            && let Some(reservation) = self.reserve_in_service(key, &avoid, now)
        {
            return Ok(reservation);
        }
        self.reserve(key, &[], now)
    }

    /// Chooses a server by `key`, but none of `avoid`: among the servers in service, and after a request has failed at
    /// all of them, among backups and then ejected servers.
    ///
    /// # Errors
    /// [`Unavailable::NoServer`] or [`Unavailable::Full`].
    #[inline]
    pub(crate) fn reserve(
        self: &Rc<Self>,
        key: u64,
        avoid: &[u32],
        now: Instant,
    ) -> Result<Reservation, Unavailable> {
        if let Some(reservation) = self.reserve_in_service(key, avoid, now) {
            return Ok(reservation);
        }
        let balancer = self.balancer.borrow();
        if avoid.is_empty() {
            return Err(match balancer.len() {
                0 => Unavailable::NoServer,
                _ => Unavailable::Full,
            });
        }
        if balancer.has_others_than(avoid) {
            return Err(Unavailable::Full);
        }
        drop(balancer);
        self.reserve_beyond(key, avoid)
    }

    /// Chooses a server in service with capacity, but none of `avoid`; with HTTP/2, one with a free stream if possible.
    #[inline]
    fn reserve_in_service(
        self: &Rc<Self>,
        key: u64,
        avoid: &[u32],
        now: Instant,
    ) -> Option<Reservation> {
        let reservation = self.reserve_any_in_service(key, avoid, now)?;
        match self.plan.protocol {
            UpstreamProtocol::Http2(bounds)
                if !reservation.server().multiplexed.has_room(bounds) =>
            {
                let another =
                    self.reserve_with_stream(key, (avoid, reservation.index()), bounds, now);
                Some(another.unwrap_or(reservation))
            }
            _ => Some(reservation),
        }
    }

    /// Chooses a server with a free stream, but neither `full` nor any of `avoid`.
    #[cold]
    fn reserve_with_stream(
        self: &Rc<Self>,
        key: u64,
        (avoid, full): (&[u32], u32),
        bounds: Multiplexing,
        now: Instant,
    ) -> Option<Reservation> {
        let mut avoid = [avoid, &[full]].concat();
        while avoid.len() < SERVERS_TRIED_MAX {
            let reservation = self.reserve_any_in_service(key, &avoid, now)?;
            if reservation.server().multiplexed.has_room(bounds) {
                return Some(reservation);
            }
            avoid.push(reservation.index());
        }
        None
    }

    #[inline]
    fn reserve_any_in_service(
        self: &Rc<Self>,
        key: u64,
        avoid: &[u32],
        now: Instant,
    ) -> Option<Reservation> {
        if self.endpoints.version() != self.seen.get() {
            self.refresh(now);
        }
        let question = BalanceRequest {
            key,
            load: &|server| self.load(server),
            load_sum: self.in_flight.get(),
            latency: &|server| self.server(server).latency.borrow().value(now, self.decay),
            avoid,
        };
        let purpose = match self.uses_last_resort.get() {
            false => Purpose::Ordinary,
            true => Purpose::LastResort,
        };
        loop {
            let server = self.balancer.borrow_mut().choose(&question)?;
            // Another core may have taken the last connection since the balancer looked.
            if let Some(reservation) = self.take(server, purpose) {
                return Some(reservation);
            }
        }
    }

    /// Chooses among backups and ejected servers, which the balancer does not use. O(n), for failed requests only.
    fn reserve_beyond(
        self: &Rc<Self>,
        key: u64,
        avoid: &[u32],
    ) -> Result<Reservation, Unavailable> {
        let candidates = self
            .usable_servers()
            .filter(|(server, _)| !avoid.contains(server));
        let Some((_, _, server)) = candidates
            .map(|(server, presence)| {
                let is_out = presence != EjectionPhase::In;
                (is_out, self.rank_beyond(server, key), server)
            })
            .min()
        else {
            return Err(Unavailable::NoServer);
        };
        let purpose = match self.endpoints.all()[server as usize].presence() {
            EjectionPhase::In => Purpose::Ordinary,
            EjectionPhase::Out | EjectionPhase::OnTrial | EjectionPhase::Tried => {
                Purpose::LastResort
            }
        };
        self.take(server, purpose).ok_or(Unavailable::Full)
    }

    /// Rank of a server when no balancer chooses; the lowest is used. With `hash`, rendezvous hashing sends equal keys
    /// to the same server; otherwise, the fewest requests in flight per weight.
    fn rank_beyond(&self, server: u32, key: u64) -> (u64, u64) {
        let its = self.server(server);
        match self.plan.balance {
            Balance::Hash(_) => (mix(key ^ its.identity.get()), 0),
            Balance::First => (0, 0),
            Balance::RoundRobin
            | Balance::Random
            | Balance::PowerOfTwo
            | Balance::LeastConnections
            | Balance::PeakEwma => {
                let share = self.shares[server as usize].get();
                let weight = share.map_or(1, |share| share.weight);
                let load = (u64::from(self.load(server)) << 16) / u64::from(weight);
                (load, self.chance.bits())
            }
        }
    }

    /// Servers that have an address, are enabled and pass their checks, with their state of ejection.
    pub(super) fn usable_servers(&self) -> impl Iterator<Item = (u32, EjectionPhase)> {
        let servers = (0..).zip(self.endpoints.all().iter().zip(&self.shares));
        servers.filter_map(|(index, (endpoint, share))| {
            let is_there = endpoint.is_healthy()
                && endpoint.duty() == AdminState::Serve
                && share.get().is_some();
            is_there.then(|| (index, endpoint.presence()))
        })
    }

    /// Whether a request that failed at `tried` and at `last` may go to another server. O(n).
    pub(crate) fn has_other(&self, tried: &[u32], last: u32, reach: RetryScope) -> bool {
        self.usable_servers().any(|(server, presence)| {
            let is_in_reach = reach == RetryScope::LastResort || presence == EjectionPhase::In;
            is_in_reach && server != last && !tried.contains(&server)
        })
    }

    /// Reserves a server on trial for this request, if there is one. Requests that may be repeated are preferred; after
    /// [`TRIAL_WAIT_MAX`] any request may be the trial.
    #[inline]
    pub(crate) fn reserve_trial(
        self: &Rc<Self>,
        method: Method,
        now: Instant,
    ) -> Option<Reservation> {
        let server = self.on_trial.get();
        if server == NO_SERVER {
            return None;
        }
        let since = self.endpoints.all()[server as usize].on_trial_since();
        if !method.is_idempotent() && now.since(since) < TRIAL_WAIT_MAX {
            return None;
        }
        self.on_trial.set(NO_SERVER);
        if !self.endpoints.claim_trial(server) {
            return None;
        }
        let reservation = self.take(server, Purpose::Trial);
        if reservation.is_none() {
            self.endpoints.release_trial(server);
        }
        reservation
    }

    /// Reserves this server and no other.
    pub(crate) fn reserve_on(self: &Rc<Self>, server: u32) -> Option<Reservation> {
        let endpoint = self.endpoints.all().get(server as usize)?;
        if !endpoint.accepts_sticky_clients() || self.shares[server as usize].get().is_none() {
            return None;
        }
        self.take(server, Purpose::Ordinary)
    }

    /// Reserves with `reserve`, unless a waiting request comes first or the client has used up its share.
    pub(crate) fn reserve_for(
        self: &Rc<Self>,
        client: Option<Key>,
        reserve: impl FnOnce() -> Result<Reservation, Unavailable>,
    ) -> Result<Reservation, Unavailable> {
        if !self.queue.is_empty() && self.next_waiting().is_some() {
            return Err(Unavailable::Full);
        }
        self.reserve_in_turn(client, reserve)
    }

    fn reserve_in_turn(
        self: &Rc<Self>,
        client: Option<Key>,
        reserve: impl FnOnce() -> Result<Reservation, Unavailable>,
    ) -> Result<Reservation, Unavailable> {
        if client.is_some_and(|client| !self.is_within_share(client)) {
            return Err(Unavailable::ClientShare);
        }
        let reservation = reserve()?;
        Ok(reservation.counts_for_client(client.and_then(|client| self.clients.enter(client))))
    }

    /// Waits until another attempt to reserve makes sense, or `until`.
    async fn wait(&self, ticket: &Ticket<'_>, core: &Core, until: Instant) {
        let next = self.next_waiting();
        let is_next = |next: Option<u64>| next.is_some_and(|next| ticket.is(next));
        if self.is_limited && is_next(next) && ticket.enter_line().await {
            return;
        }
        // With all clients beyond their shares, nothing wakes the queue: the first request retries periodically.
        let look = core.now() + SHARE_CHECK_INTERVAL;
        let looks = ticket.is_first() && (next.is_none() || !self.is_limited);
        let until = if looks { until.min(look) } else { until };
        ticket.turn(core, until).await;
        if !is_next(self.next_waiting()) {
            self.pass_on_wake_up();
        }
    }

    /// [`Group::reserve_first`], or [`Group::reserve`] with servers to avoid, waiting for capacity until `until`.
    pub(crate) async fn reserve_or_wait(
        self: &Rc<Self>,
        method: Method,
        (key, avoid): (u64, &[u32]),
        client: Option<Key>,
        core: &Core,
        until: Instant,
    ) -> Result<Reservation, Unavailable> {
        let mut ticket: Option<Ticket<'_>> = None;
        loop {
            let reserve = || match avoid {
                [] => self.reserve_first(method, key, core.now()),
                _ => self.reserve(key, avoid, core.now()),
            };
            // Requests that already wait come first.
            let placed = match &ticket {
                None => self.reserve_for(client, reserve),
                Some(ticket) if self.next_waiting().is_some_and(|it| ticket.is(it)) => {
                    self.reserve_in_turn(client, reserve)
                }
                Some(_) => Err(Unavailable::Full),
            };
            let is_share = match placed {
                Err(Unavailable::Full) => client.is_some_and(|it| !self.is_within_share(it)),
                Err(Unavailable::ClientShare) => true,
                placed => {
                    if let (Ok(_), Some(ticket)) = (&placed, &ticket) {
                        ticket.finish();
                    }
                    return placed;
                }
            };
            let why = |otherwise| match is_share {
                true => Unavailable::ClientShare,
                false => otherwise,
            };
            if core.now() >= until {
                return Err(why(Unavailable::QueuedTooLong));
            }
            match &ticket {
                Some(ticket) => self.wait(ticket, core, until).await,
                None => {
                    let joined = self.queue.join(client).await;
                    ticket = Some(joined.ok_or(why(Unavailable::QueueFull))?);
                }
            }
        }
    }
}
