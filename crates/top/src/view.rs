//! What of a server is looked at: which table, in which order, and what is chosen.

use std::time::Duration;

use crate::history::History;
use crate::moment::{Moment, Request, Server, Traffic};

/// A table.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Table {
    /// All of them, as far as there is room.
    #[default]
    Overview,
    /// Routes.
    Routes,
    /// Servers of all groups.
    Servers,
    /// Requests under way.
    Requests,
}

impl Table {
    /// In the order of their keys.
    pub const ALL: [(Table, &'static str); 4] = [
        (Table::Overview, "overview"),
        (Table::Routes, "routes"),
        (Table::Servers, "servers"),
        (Table::Requests, "requests"),
    ];

    /// The one behind it.
    pub fn next(self) -> Table {
        let at = Table::ALL.iter().position(|(table, _)| *table == self);
        Table::ALL[(at.unwrap_or(0) + 1) % Table::ALL.len()].0
    }
}

/// What rows are sorted by.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Order {
    /// The busiest first.
    #[default]
    Rate,
    /// Those with the most errors first.
    Errors,
    /// Those with the longest times first.
    Slowest,
    /// By name.
    Name,
}

impl Order {
    /// The one behind it.
    pub fn next(self) -> Order {
        match self {
            Order::Rate => Order::Errors,
            Order::Errors => Order::Slowest,
            Order::Slowest => Order::Name,
            Order::Name => Order::Rate,
        }
    }

    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Order::Rate => "rate",
            Order::Errors => "errors",
            Order::Slowest => "p99",
            Order::Name => "name",
        }
    }
}

/// Something that is to be done with a server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Wish {
    /// Its group.
    pub group: String,
    /// Where it is.
    pub address: String,
    /// `up` or `drain`.
    pub state: &'static str,
}

/// What keys mean at the moment.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Mode {
    /// Each key does something.
    #[default]
    Looking,
    /// They are letters of the filter.
    Filtering,
    /// One is a yes, every other a no.
    Confirming(Wish),
}

/// Whether the view follows the server.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Pace {
    /// It shows each second.
    #[default]
    Live,
    /// It shows the second at which it was stopped.
    Paused,
}

/// The view.
#[derive(Debug, Default)]
pub struct View {
    pub(crate) moment: Moment,
    pub(crate) history: History,
    pub(crate) table: Table,
    pub(crate) order: Order,
    pub(crate) filter: String,
    pub(crate) mode: Mode,
    pub(crate) pace: Pace,
    /// The chosen server, by its row.
    pub(crate) row: usize,
    /// What came of the last wish, or what is wrong.
    pub(crate) notice: String,
    /// How long nothing has come that should have.
    pub(crate) silence: Option<Duration>,
}

impl View {
    /// The next second.
    pub fn push(&mut self, moment: Moment) {
        self.history.push(&moment);
        if self.pace == Pace::Live {
            self.moment = moment;
        }
        self.row = self.row.min(self.servers().len().saturating_sub(1));
    }

    /// Nothing has come for so long, or what is shown is new.
    pub fn silent_for(&mut self, silence: Option<Duration>) {
        self.silence = silence;
    }

    /// Says something below the tables until the next key.
    pub fn notice(&mut self, text: String) {
        self.notice = text;
    }

    /// The routes that pass the filter, in order.
    pub fn routes(&self) -> Vec<&Traffic> {
        let routes = self.moment.routes.iter();
        let mut routes: Vec<&Traffic> = routes.filter(|route| self.shows(&[&route.name])).collect();
        routes.sort_by(|one, other| self.compare(one, other));
        routes
    }

    /// The servers that pass the filter, in order.
    pub fn servers(&self) -> Vec<&Server> {
        let shown = |server: &&Server| {
            let words = [&server.group, &server.address, &server.traffic.name];
            self.shows(&words.map(String::as_str))
        };
        let mut servers: Vec<&Server> = self.moment.servers().filter(shown).collect();
        servers.sort_by(|one, other| self.compare(&one.traffic, &other.traffic));
        servers
    }

    /// The requests that pass the filter, the oldest first.
    pub fn requests(&self) -> Vec<&Request> {
        let shown = |request: &&Request| {
            let words = [
                &request.line,
                &request.client,
                &request.server,
                &request.state,
            ];
            self.shows(&words.map(String::as_str))
        };
        self.moment.requests.iter().filter(shown).collect()
    }

    fn shows(&self, words: &[&str]) -> bool {
        words.iter().any(|word| word.contains(&self.filter))
    }

    fn compare(&self, one: &Traffic, other: &Traffic) -> std::cmp::Ordering {
        let slow = |traffic: &Traffic| traffic.p99.unwrap_or(-1.0);
        let by_name = one.name.cmp(&other.name);
        match self.order {
            Order::Rate => other.rate.total_cmp(&one.rate).then(by_name),
            Order::Errors => other.errors.total_cmp(&one.errors).then(by_name),
            Order::Slowest => slow(other).total_cmp(&slow(one)).then(by_name),
            Order::Name => by_name,
        }
    }
}
