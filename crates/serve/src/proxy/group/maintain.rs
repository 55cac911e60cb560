//! Updates of a group from its endpoints, by the passage of time, and when its configuration is replaced.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use onrush_engine::{Address, Core, Instant};
use onrush_http::proxy_protocol::Origin;

use super::server::identity;
use super::{Group, NO_DEADLINE, NO_SERVER, Server, Share, Tier};
use crate::limits::POOL_SWEEP;
use crate::proxy::balance::Member;
use crate::proxy::ejection::EjectionPhase;
use crate::proxy::endpoints::{AdminState, Availability, Endpoint, Location};
use crate::proxy::retirement::RetirementStart;
use crate::proxy::slow_start::SlowStart;
use crate::worker::Worker;
use crate::worker::idle_limit::IdleLimit;
use crate::worker::time_slice::{TimeSlice, run_unsliced};

impl Group {
    /// Takes over changes of the endpoints.
    pub(super) fn refresh(&self, now: Instant) {
        let members = self.copy_endpoints(now);
        self.balancer.borrow_mut().update(&members);
        self.refresh_measures();
    }

    /// Copies the state of the endpoints. Returns the servers to choose among; the caller updates the balancer.
    pub(super) fn copy_endpoints(&self, now: Instant) -> Vec<Member> {
        self.seen.set(self.endpoints.version());
        self.has_failing
            .set(self.endpoints.all().iter().any(Endpoint::is_failing));
        self.is_starting.set(false);
        for (index, (endpoint, server)) in (0..).zip(self.endpoints.all().iter().zip(&self.servers))
        {
            let location = endpoint.location();
            self.shares[index as usize].set(location.as_ref().map(Location::share));
            server.move_to(location.map(|location| location.address));
            if endpoint.presence() != EjectionPhase::In {
                self.forget(index);
            } else if endpoint.duty() == AdminState::Rest {
                server.pool.drain();
            }
        }
        let mut members = self.members_of(Tier::Primary, now);
        if members.is_empty() {
            members = self.members_of(Tier::Backup, now);
        }
        let uses_last_resort = members.is_empty();
        if uses_last_resort {
            members = self.members_out();
        }
        self.uses_last_resort.set(uses_last_resort);
        let mut located = self.usable_servers();
        let on_trial = located.find(|(_, presence)| *presence == EjectionPhase::OnTrial);
        self.on_trial
            .set(on_trial.map_or(NO_SERVER, |(index, _)| index));
        members
    }

    /// Ejected servers, used when no other is left: if requests were refused, a group that failed briefly would stay
    /// down.
    fn members_out(&self) -> Vec<Member> {
        let member = |(index, _): (u32, EjectionPhase)| {
            let share = self.shares[index as usize].get()?;
            let weight = FULL.weight(share.weight, None, Instant::default());
            self.member(index as usize, weight)
        };
        self.usable_servers().filter_map(member).collect()
    }

    /// Servers of a tier that may get requests.
    fn members_of(&self, tier: Tier, now: Instant) -> Vec<Member> {
        let endpoints = self.endpoints.all().iter().zip(&self.shares).enumerate();
        let member_at = |(index, (endpoint, share)): (usize, (&Endpoint, &Cell<Option<Share>>))| {
            let Availability::In { since } = endpoint.availability() else {
                return None;
            };
            let share = share.get().filter(|share| share.tier == tier)?;
            let since = (since > 0).then(|| Instant::from_nanoseconds(since));
            let slow_start = self
                .plan
                .slow_start
                .map_or(FULL, |duration| SlowStart { duration });
            if since.is_some_and(|since| slow_start.next_change(since, now).is_some()) {
                self.is_starting.set(true);
            }
            self.member(index, slow_start.weight(share.weight, since, now))
        };
        endpoints.filter_map(member_at).collect()
    }

    fn member(&self, index: usize, weight: u32) -> Option<Member> {
        let address = self.servers[index].address.borrow();
        let endpoint = &self.endpoints.all()[index];
        address
            .as_ref()
            .map(|address| member(index, endpoint, address, weight))
    }

    /// Counts idle connections towards the core's limit `kept`.
    pub(crate) fn set_core_limit(&self, kept: &Rc<IdleLimit>) {
        let servers = self.servers.iter();
        servers.for_each(|server| server.pool.set_core_limit(kept));
    }

    /// Closes the idle connections and returns their number.
    pub(crate) fn give_up_idle(&self) -> usize {
        let give_up = |server: &Rc<Server>| {
            let count = server.pool.len();
            server.pool.drain();
            count + server.multiplexed.close_idle()
        };
        self.servers.iter().map(give_up).sum()
    }

    pub(crate) fn free_spare(&self) -> usize {
        let freed = self
            .servers
            .iter()
            .map(|server| server.multiplexed.free_spare());
        freed.sum()
    }

    /// Closes all idle connections; a connection in use is closed after its response.
    pub(crate) fn clear(&self) {
        for server in &self.servers {
            server.pool.clear();
            server.multiplexed.clear();
        }
    }

    /// Keeps `connections_ready` idle connections to each server, until the core stops.
    pub(crate) async fn keep_ready(self: Rc<Self>, worker: Rc<Worker>) {
        let core = &worker.core;
        while !core.is_stopping() {
            for (server, endpoint) in self.servers.iter().zip(self.endpoints.all()) {
                while matches!(endpoint.availability(), Availability::In { .. })
                    && server.address().is_some()
                    && server.pool.len() < self.plan.preconnect
                    && worker.kept.has_room()
                {
                    match self
                        .connect(server, &Origin::Local, &worker, NO_DEADLINE)
                        .await
                    {
                        Ok(transport) => server.pool.put(transport, core.now()),
                        // Requests and checks report the error; the next sweep tries again.
                        Err(_) => break,
                    }
                    if core.is_stopping() {
                        return;
                    }
                }
            }
            core.sleep_unless_stopping(POOL_SWEEP).await;
        }
    }

    /// Closes connections that have been idle for too long, and raises the weights of servers in slow start.
    async fn run_maintenance(&self, core: &Core, slice: &mut TimeSlice) {
        let idle_max = self.timeouts.upstream_idle;
        for server in &self.servers {
            server.pool.expire(core.now(), idle_max);
            slice.step().await;
        }
        if self.is_starting.get() {
            self.refresh(core.now());
        }
    }

    /// Retires the group after another configuration has taken over: ends its tasks, and closes the idle connections to
    /// servers that the new one does not use. Requests in flight are finished, and their connections then closed.
    pub(crate) async fn retire(&self, slice: &mut TimeSlice) {
        if self.retirement.begin() == RetirementStart::Now {
            for server in &self.servers {
                for connection in server.end_use() {
                    drop(connection);
                    slice.step().await;
                }
                slice.step().await;
            }
        }
    }

    /// [`Group::retire`] without slices.
    pub(crate) fn retire_at_once(&self) {
        run_unsliced(async |slice| self.retire(slice).await);
    }
}

/// Maintains all groups of a site until the core stops. One task serves all, because there may be thousands.
pub(crate) async fn maintain(groups: Vec<Rc<Group>>, core: Core) {
    while !core.is_stopping() {
        let mut slice = TimeSlice::begin(&core);
        for group in &groups {
            group.run_maintenance(&core, &mut slice).await;
        }
        core.sleep_unless_stopping(POOL_SWEEP).await;
    }
}

/// For a group that was prepared but never came into force.
impl Drop for Group {
    fn drop(&mut self) {
        self.retire_at_once();
    }
}

/// No slow start.
pub(super) const FULL: SlowStart = SlowStart {
    duration: Duration::ZERO,
};

impl Location {
    fn share(&self) -> Share {
        Share {
            weight: self.weight,
            tier: match self.backup {
                true => Tier::Backup,
                false => Tier::Primary,
            },
        }
    }
}

pub(super) fn member(index: usize, endpoint: &Endpoint, address: &Address, weight: u32) -> Member {
    Member {
        server: index as u32,
        weight,
        load_max: endpoint.connections_max,
        identity: identity(address),
    }
}
