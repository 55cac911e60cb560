//! Counters and states of a group and its servers, for the admin interface.

use std::ops::SubAssign;

use crate::observe::latency::Histogram;
use crate::proxy::endpoints::AdminState;

/// State and counters of a server group.
#[derive(Clone, Debug)]
pub struct GroupView {
    /// Name in the configuration.
    pub name: String,
    /// Number of requests in flight to its servers.
    pub in_flight: u64,
    /// Number of requests that wait for capacity.
    pub queued: u64,
    /// Limit of `queued`.
    pub queue_max: u64,
    /// In the order of the configuration.
    pub servers: Vec<ServerView>,
}

/// Health of a server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ServerState {
    /// The server may get requests.
    Up,
    /// The server gets requests and fails; no other server can take its place.
    Failing,
    /// Active checks have failed.
    Down,
    /// The server is out of service because of request outcomes.
    Ejected,
    /// The next suitable request shows whether the server responds again.
    OnTrial,
}

impl ServerState {
    /// All states.
    pub const ALL: [ServerState; 5] = [
        ServerState::Up,
        ServerState::Failing,
        ServerState::Down,
        ServerState::Ejected,
        ServerState::OnTrial,
    ];

    /// Name of the state, for display.
    pub fn name(self) -> &'static str {
        match self {
            ServerState::Up => "up",
            ServerState::Failing => "failing",
            ServerState::Down => "down",
            ServerState::Ejected => "ejected",
            ServerState::OnTrial => "on trial",
        }
    }
}

/// One server, or one address of a name.
#[derive(Clone, Debug)]
pub struct ServerView {
    /// Name in the configuration.
    pub name: String,
    /// Current address.
    pub address: String,
    /// Health.
    pub state: ServerState,
    /// Administrative state.
    pub duty: AdminState,
    /// Weight in load balancing.
    pub weight: u32,
    /// Whether the weight was set through the admin interface.
    pub has_admin_weight: bool,
    /// Whether it gets requests only when no primary server is available.
    pub is_backup: bool,
    /// Number of requests in flight.
    pub in_flight: u64,
    /// Limit of `in_flight`.
    pub connections_max: Option<u32>,
    /// Idle connections to it.
    pub idle: u64,
    /// Responses by the first digit of the status; index 0 counts failed attempts.
    pub statuses: [u64; 6],
    /// Time from the request to the first byte of its response.
    pub first_byte: Histogram,
    /// Time from the request to the last byte of its response; for tunnels and truncated responses, to the first byte.
    pub duration: Histogram,
    /// Number of ejections.
    pub ejections: u64,
}

impl GroupView {
    /// Merges servers with the same address, for example two names that resolve to it. Counts, and the weights of
    /// enabled servers, are added; the state is the better of the two.
    pub fn merge_by_address(&mut self) {
        let mut merged: Vec<ServerView> = Vec::with_capacity(self.servers.len());
        for server in self.servers.drain(..) {
            match merged.iter_mut().find(|one| one.address == server.address) {
                Some(one) => one.merge(&server),
                None => merged.push(server),
            }
        }
        self.servers = merged;
    }
}

impl ServerView {
    /// Adds another entry of the same address.
    fn merge(&mut self, other: &ServerView) {
        let weight = |of: &ServerView| match of.duty {
            AdminState::Serve => of.weight,
            AdminState::Drain | AdminState::Rest => 0,
        };
        let weight = weight(self) + weight(other);
        if other.state_rank() < self.state_rank() {
            (self.state, self.duty) = (other.state, other.duty);
        }
        if weight > 0 {
            self.weight = weight;
        }
        self.has_admin_weight |= other.has_admin_weight;
        self.is_backup &= other.is_backup;
        let bounds = self.connections_max.zip(other.connections_max);
        self.connections_max = bounds.map(|(one, more)| one.saturating_add(more));
        self.add(other);
    }

    /// Rank of the state; lower is better.
    fn state_rank(&self) -> (AdminState, u8) {
        let state = match self.state {
            ServerState::Up => 0,
            ServerState::Failing => 1,
            ServerState::OnTrial => 2,
            ServerState::Ejected => 3,
            ServerState::Down => 4,
        };
        (self.duty, state)
    }

    pub(crate) fn add(&mut self, other: &ServerView) {
        self.in_flight += other.in_flight;
        self.idle += other.idle;
        for (sum, more) in self.statuses.iter_mut().zip(other.statuses) {
            *sum += more;
        }
        self.first_byte += &other.first_byte;
        self.duration += &other.duration;
        self.ejections += other.ejections;
    }
}

impl SubAssign<&ServerView> for ServerView {
    /// Subtracts an earlier snapshot from the counters; states and gauges stay.
    fn sub_assign(&mut self, before: &ServerView) {
        for (count, less) in self.statuses.iter_mut().zip(before.statuses) {
            *count = count.saturating_sub(less);
        }
        self.first_byte -= &before.first_byte;
        self.duration -= &before.duration;
        self.ejections = self.ejections.saturating_sub(before.ejections);
    }
}
