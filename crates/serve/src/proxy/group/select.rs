//! Which server of a group takes a request.

use std::rc::Rc;

use onrush_config::plan::Balance;
use onrush_engine::random::mix;
use onrush_engine::{Core, Instant};
use onrush_http::Method;

use super::{Errand, Group, NOBODY, Place};
use crate::limits::TRIAL_PATIENCE;
use crate::proxy::balance::Question;
use crate::proxy::queue::Ticket;
use crate::proxy::roster::{Presence, Standing};
use crate::proxy::unplaced::Unplaced;

/// Which servers come into question.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Reach {
    /// Those that are not known to be out.
    InService,
    /// Those that have been taken out for what requests met there, too.
    LastResort,
}

impl Group {
    /// Chooses a server by `key` for a request that no server has had yet. One that cannot be repeated avoids servers that
    /// have just failed others, as long as another in service has room.
    ///
    /// # Errors
    /// As [`Group::place`].
    #[inline]
    pub(crate) fn place_first(
        self: &Rc<Self>,
        method: Method,
        key: u64,
        now: Instant,
    ) -> Result<Place, Unplaced> {
        if !method.is_idempotent()
            && let Some(suspects) = self.suspects.at(now)
            && let Some(place) = self.place_in_service(key, &suspects, now)
        {
            return Ok(place);
        }
        self.place(key, &[], now)
    }

    /// Chooses a server by `key`, none of `avoid`: of those in service, and when a request has failed at all of them, of
    /// the backups and then of those that were taken out.
    ///
    /// # Errors
    /// [`Unplaced::NoServer`] or [`Unplaced::Full`].
    #[inline]
    pub(crate) fn place(
        self: &Rc<Self>,
        key: u64,
        avoid: &[u32],
        now: Instant,
    ) -> Result<Place, Unplaced> {
        if let Some(place) = self.place_in_service(key, avoid, now) {
            return Ok(place);
        }
        let balancer = self.balancer.borrow();
        if avoid.is_empty() {
            return Err(match balancer.len() {
                0 => Unplaced::NoServer,
                _ => Unplaced::Full,
            });
        }
        if balancer.has_others_than(avoid) {
            return Err(Unplaced::Full);
        }
        drop(balancer);
        self.place_beyond(key, avoid)
    }

    /// Chooses one of the servers in service that has room, none of `avoid`.
    #[inline]
    fn place_in_service(self: &Rc<Self>, key: u64, avoid: &[u32], now: Instant) -> Option<Place> {
        if self.roster.version() != self.seen.get() {
            self.look(now);
        }
        let question = Question {
            key,
            load: &|server| self.load(server),
            load_sum: self.in_flight.get(),
            latency: &|server| self.server(server).latency.borrow().value(now, self.decay),
            avoid,
        };
        let errand = match self.is_desperate.get() {
            false => Errand::Ordinary,
            true => Errand::LastResort,
        };
        loop {
            let server = self.balancer.borrow_mut().choose(&question)?;
            // Another core may have taken the last connection since it was looked at.
            if let Some(place) = self.take(server, errand) {
                return Some(place);
            }
        }
    }

    /// Chooses among the servers that get no requests as long as others take them. O(n), for a request that failed.
    fn place_beyond(self: &Rc<Self>, key: u64, avoid: &[u32]) -> Result<Place, Unplaced> {
        let candidates = self.seated().filter(|(server, _)| !avoid.contains(server));
        let Some((_, _, server)) = candidates
            .map(|(server, presence)| {
                let is_out = presence != Presence::In;
                (is_out, self.rank_beyond(server, key), server)
            })
            .min()
        else {
            return Err(Unplaced::NoServer);
        };
        let errand = match self.roster.seats()[server as usize].presence() {
            Presence::In => Errand::Ordinary,
            Presence::Out | Presence::OnTrial | Presence::Tried => Errand::LastResort,
        };
        self.take(server, errand).ok_or(Unplaced::Full)
    }

    /// The lower, the sooner it is asked where no balancer chooses: equal keys go to the same server (rendezvous hashing),
    /// and others to the one with the fewest requests in flight for its weight.
    fn rank_beyond(&self, server: u32, key: u64) -> (u64, u64) {
        let its = self.server(server);
        match self.plan.balance {
            Balance::Hash(_) => (mix(key ^ its.identity.get()), 0),
            Balance::First => (0, 0),
            _ => {
                let share = self.shares[server as usize].get();
                let weight = share.map_or(1, |share| share.weight);
                let load = (u64::from(self.load(server)) << 16) / u64::from(weight);
                (load, self.chance.bits())
            }
        }
    }

    /// The servers that are somewhere and that checks have nothing against, with whether they were taken out.
    pub(super) fn seated(&self) -> impl Iterator<Item = (u32, Presence)> {
        let servers = (0..).zip(self.roster.seats().iter().zip(&self.shares));
        servers.filter_map(|(index, (seat, share))| {
            let is_there = seat.is_healthy() && share.get().is_some();
            is_there.then(|| (index, seat.presence()))
        })
    }

    /// Whether a request that failed at `tried` and at `last` may go to another server. O(n).
    pub(crate) fn has_other(&self, tried: &[u32], last: u32, reach: Reach) -> bool {
        self.seated().any(|(server, presence)| {
            let is_in_reach = reach == Reach::LastResort || presence == Presence::In;
            is_in_reach && server != last && !tried.contains(&server)
        })
    }

    /// A place on a server that is on trial, if there is one and this request may be the one. Those that can be repeated
    /// are taken first; when none has come for a while, any.
    #[inline]
    pub(crate) fn place_on_trial(self: &Rc<Self>, method: Method, now: Instant) -> Option<Place> {
        let server = self.on_trial.get();
        if server == NOBODY {
            return None;
        }
        let since = self.roster.seats()[server as usize].on_trial_since();
        if !method.is_idempotent() && now.since(since) < TRIAL_PATIENCE {
            return None;
        }
        self.on_trial.set(NOBODY);
        if !self.roster.claim_trial(server) {
            return None;
        }
        let place = self.take(server, Errand::Trial);
        if place.is_none() {
            self.roster.give_trial_back(server);
        }
        place
    }

    /// A place on this server and no other.
    pub(crate) fn place_on(self: &Rc<Self>, server: u32) -> Option<Place> {
        let seat = self.roster.seats().get(server as usize)?;
        let is_in = matches!(seat.standing(), Standing::In { .. });
        if !is_in || self.shares[server as usize].get().is_none() {
            return None;
        }
        self.take(server, Errand::Ordinary)
    }

    /// [`Group::place_first`], or [`Group::place`] when servers are to be avoided, waiting for room until `until`.
    pub(crate) async fn place_patiently(
        self: &Rc<Self>,
        method: Method,
        (key, avoid): (u64, &[u32]),
        core: &Core,
        until: Instant,
    ) -> Result<Place, Unplaced> {
        let mut ticket: Option<Ticket<'_>> = None;
        loop {
            // Who waits already has the right of way.
            let is_next = ticket
                .as_ref()
                .map_or(self.queue.is_empty(), Ticket::is_first);
            let placed = match avoid {
                _ if !is_next => Err(Unplaced::Full),
                [] => self.place_first(method, key, core.now()),
                _ => self.place(key, avoid, core.now()),
            };
            match placed {
                Err(Unplaced::Full) => {}
                placed => {
                    if let (Ok(_), Some(ticket)) = (&placed, &ticket) {
                        ticket.finish();
                    }
                    return placed;
                }
            }
            if core.now() >= until {
                return Err(Unplaced::QueuedTooLong);
            }
            match &ticket {
                Some(ticket) if ticket.is_first() && ticket.stand_in_line().await => {}
                Some(ticket) => ticket.turn(core, until).await,
                None => ticket = Some(self.queue.join().await.ok_or(Unplaced::QueueFull)?),
            }
        }
    }
}
