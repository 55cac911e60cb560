//! State of the display: table, order, filter, selection.

use std::time::Duration;

use crate::history::History;
use crate::moment::{Request, Server, Snapshot, Traffic};

/// A table of the view.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Table {
    /// All tables, as far as they fit.
    #[default]
    Overview,
    /// Routes.
    Routes,
    /// Servers of all groups.
    Servers,
    /// Requests in flight.
    Requests,
}

impl Table {
    /// Tables in the order of their keys, with their names.
    pub const ALL: [(Table, &'static str); 4] = [
        (Table::Overview, "overview"),
        (Table::Routes, "routes"),
        (Table::Servers, "servers"),
        (Table::Requests, "requests"),
    ];

    /// Next table, cyclic.
    pub fn next(self) -> Table {
        let at = Table::ALL.iter().position(|(table, _)| *table == self);
        Table::ALL[(at.unwrap_or(0) + 1) % Table::ALL.len()].0
    }
}

/// Sort key of routes and servers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Order {
    /// Highest request rate first.
    #[default]
    Rate,
    /// Highest error rate first.
    Errors,
    /// Highest p99 first.
    Slowest,
    /// By name.
    Name,
}

impl Order {
    /// Next order, cyclic.
    pub fn next(self) -> Order {
        match self {
            Order::Rate => Order::Errors,
            Order::Errors => Order::Slowest,
            Order::Slowest => Order::Name,
            Order::Name => Order::Rate,
        }
    }

    /// Name shown in the footer.
    pub fn name(self) -> &'static str {
        match self {
            Order::Rate => "rate",
            Order::Errors => "errors",
            Order::Slowest => "p99",
            Order::Name => "name",
        }
    }
}

/// Requested change of a server's state.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StateChange {
    /// Group of the server.
    pub group: String,
    /// Address of the server.
    pub address: String,
    /// `up` or `drain`.
    pub state: &'static str,
}

/// How keys are interpreted.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Mode {
    /// Each key is a command.
    #[default]
    Normal,
    /// Keys edit the filter.
    Filtering,
    /// `y` confirms; any other key cancels.
    Confirming(StateChange),
}

/// Whether the view is updated.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum UpdateMode {
    /// Updated each second.
    #[default]
    Live,
    /// Frozen at the second in which it was paused.
    Paused,
}

/// State of the display.
#[derive(Debug, Default)]
pub struct View {
    pub(crate) snapshot: Snapshot,
    pub(crate) history: History,
    pub(crate) table: Table,
    pub(crate) order: Order,
    pub(crate) filter: String,
    pub(crate) mode: Mode,
    pub(crate) pace: UpdateMode,
    /// Row of the selected server.
    pub(crate) row: usize,
    /// Result of the last change, or an error; empty if there is neither.
    pub(crate) notice: String,
    /// Time since the last response, if one is overdue.
    pub(crate) overdue: Option<Duration>,
}

impl View {
    /// Shows the next second, unless paused.
    pub fn push(&mut self, moment: Snapshot) {
        self.history.push(&moment);
        if self.pace == UpdateMode::Live {
            self.snapshot = moment;
        }
        self.row = self.row.min(self.servers().len().saturating_sub(1));
    }

    /// Sets the time since the last response; `None` if responses arrive in time.
    pub fn set_overdue(&mut self, silence: Option<Duration>) {
        self.overdue = silence;
    }

    /// Shows a message below the tables until the next key.
    pub fn notice(&mut self, text: String) {
        self.notice = text;
    }

    /// Routes that match the filter, sorted.
    pub fn routes(&self) -> Vec<&Traffic> {
        let routes = self.snapshot.routes.iter();
        let mut routes: Vec<&Traffic> = routes.filter(|route| self.shows(&[&route.name])).collect();
        routes.sort_by(|one, other| self.compare(one, other));
        routes
    }

    /// Servers that match the filter, sorted.
    pub fn servers(&self) -> Vec<&Server> {
        let shown = |server: &&Server| {
            let words = [&server.group, &server.address, &server.traffic.name];
            self.shows(&words.map(String::as_str))
        };
        let mut servers: Vec<&Server> = self.snapshot.servers().filter(shown).collect();
        servers.sort_by(|one, other| self.compare(&one.traffic, &other.traffic));
        servers
    }

    /// Requests that match the filter, oldest first.
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
        self.snapshot.requests.iter().filter(shown).collect()
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
