//! The figures that thresholds, searches and views look at: six kinds of times and the counts beside them. Pure.

use std::collections::BTreeMap;

use onrush_measure::histogram::Histogram;

use crate::record::times::Times;
use crate::record::unanswered::Unanswered;

/// What a time is of.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Kind {
    /// From the intended start of a request to the last byte of its response.
    Response,
    /// From the request being written to the last byte of its response.
    Service,
    /// From the intended start of a request to its being written.
    SendLag,
    /// From the request being written to the first bytes of its response.
    FirstByte,
    /// Of making a connection.
    Connect,
    /// Of a TLS handshake, from the connection to the keys.
    Tls,
}

impl Kind {
    /// All of them, in the order of reports.
    pub const ALL: [Kind; 6] = [
        Kind::Response,
        Kind::Service,
        Kind::SendLag,
        Kind::FirstByte,
        Kind::Connect,
        Kind::Tls,
    ];

    /// Its key in `histograms` of the JSON, and its name in thresholds.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Response => "response",
            Kind::Service => "service",
            Kind::SendLag => "send_lag",
            Kind::FirstByte => "first_byte",
            Kind::Connect => "connect",
            Kind::Tls => "tls",
        }
    }

    /// Its name in sentences.
    pub fn title(self) -> &'static str {
        match self {
            Kind::Response => "response time",
            Kind::Service => "service time",
            Kind::SendLag => "send lag",
            Kind::FirstByte => "first byte",
            Kind::Connect => "connect",
            Kind::Tls => "TLS handshake",
        }
    }
}

impl Times {
    /// The times of one kind.
    pub fn of(&self, kind: Kind) -> &Histogram {
        match kind {
            Kind::Response => &self.response,
            Kind::Service => &self.service,
            Kind::SendLag => &self.send_lag,
            Kind::FirstByte => &self.first_byte,
            Kind::Connect => &self.connect,
            Kind::Tls => &self.tls,
        }
    }

    /// The same, to record or to merge into.
    pub fn of_mut(&mut self, kind: Kind) -> &mut Histogram {
        match kind {
            Kind::Response => &mut self.response,
            Kind::Service => &mut self.service,
            Kind::SendLag => &mut self.send_lag,
            Kind::FirstByte => &mut self.first_byte,
            Kind::Connect => &mut self.connect,
            Kind::Tls => &mut self.tls,
        }
    }
}

/// What a run has come to, or has come to so far.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    /// The times.
    pub times: Times,
    /// Responses received.
    pub responses: u64,
    /// Requests without a response, responses other than expected, and failures to connect.
    pub errors: u64,
    /// Of these, responses other than expected.
    pub unexpected: u64,
    /// Of these, requests for whose response nothing arrived in time.
    pub timeouts: u64,
    /// How long requests without a response had waited; of a run under way, those that are still open among them.
    pub unanswered: Unanswered,
    /// Requests without a response at the end.
    pub unfinished: u64,
    /// Requests sent again.
    pub resent: u64,
    /// Requests that were due and never sent.
    pub missed: u64,
    /// Checks of steps that were made; of a run under way none.
    pub checks: Checks,
    /// Responses by status; of a run under way only by class, such as `2xx`.
    pub statuses: BTreeMap<String, u64>,
    /// Responses per second.
    pub rps: f64,
}

/// How often checks were made.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Checks {
    /// How often they held.
    pub passed: u64,
    /// How often they did not.
    pub failed: u64,
}
