//! Counters and states of a group and its servers, for the admin interface.

use std::ops::SubAssign;

use crate::observe::latency::Histogram;
use crate::proxy::endpoints::Duty;

/// One group of servers.
#[derive(Clone, Debug)]
pub struct GroupView {
    /// As it is configured.
    pub name: String,
    /// Requests on their way to its servers.
    pub in_flight: u64,
    /// Requests that wait for capacity.
    pub queued: u64,
    /// How many may.
    pub queue_max: u64,
    /// In the order of the configuration.
    pub servers: Vec<ServerView>,
}

/// What is believed of a server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ServerState {
    /// It may have requests.
    Up,
    /// Active checks have failed.
    Down,
    /// It was taken out for the outcome of its requests.
    Ejected,
    /// It gets one request, to show whether it responds again.
    OnTrial,
}

impl ServerState {
    /// All of them.
    pub const ALL: [ServerState; 4] = [
        ServerState::Up,
        ServerState::Down,
        ServerState::Ejected,
        ServerState::OnTrial,
    ];

    /// A word for it.
    pub fn name(self) -> &'static str {
        match self {
            ServerState::Up => "up",
            ServerState::Down => "down",
            ServerState::Ejected => "ejected",
            ServerState::OnTrial => "on trial",
        }
    }
}

/// One server, or one address of a name.
#[derive(Clone, Debug)]
pub struct ServerView {
    /// As it is configured.
    pub name: String,
    /// Where it is.
    pub address: String,
    /// What is believed of it.
    pub state: ServerState,
    /// What an administrator wants of it.
    pub duty: Duty,
    /// Its share.
    pub weight: u32,
    /// Whether that was set by hand.
    pub is_weighed: bool,
    /// Whether it gets requests only when no other can take them.
    pub is_backup: bool,
    /// Requests on their way to it.
    pub in_flight: u64,
    /// How many may be.
    pub connections_max: Option<u32>,
    /// Idle connections to it.
    pub idle: u64,
    /// Responses by the first digit of the status; index 0 is for attempts that failed.
    pub statuses: [u64; 6],
    /// From a request to the first byte of its response.
    pub first_byte: Histogram,
    /// From a request to the last byte of its response; to the first one of a response that was cut off, and of a tunnel.
    pub duration: Histogram,
    /// How often it was taken out for the outcome of its requests.
    pub ejections: u64,
}

impl GroupView {
    /// Makes one server of those with the same address, as of two names that lead there: counts and weights of those that get
    /// requests add up, and the state is that of the one that is best off.
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
    /// Takes in another one that is at the same place.
    fn merge(&mut self, other: &ServerView) {
        let weight = |of: &ServerView| match of.duty {
            Duty::Serve => of.weight,
            Duty::Drain | Duty::Rest => 0,
        };
        let weight = weight(self) + weight(other);
        if other.standing() < self.standing() {
            (self.state, self.duty) = (other.state, other.duty);
        }
        if weight > 0 {
            self.weight = weight;
        }
        self.is_weighed |= other.is_weighed;
        self.is_backup &= other.is_backup;
        let bounds = self.connections_max.zip(other.connections_max);
        self.connections_max = bounds.map(|(one, more)| one.saturating_add(more));
        self.add(other);
    }

    /// Less is better off.
    fn standing(&self) -> (Duty, u8) {
        let state = match self.state {
            ServerState::Up => 0,
            ServerState::OnTrial => 1,
            ServerState::Ejected => 2,
            ServerState::Down => 3,
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
    /// What has come since the other one was taken of the same; what it is now stays.
    fn sub_assign(&mut self, before: &ServerView) {
        for (count, less) in self.statuses.iter_mut().zip(before.statuses) {
            *count = count.saturating_sub(less);
        }
        self.first_byte -= &before.first_byte;
        self.duration -= &before.duration;
        self.ejections = self.ejections.saturating_sub(before.ejections);
    }
}
