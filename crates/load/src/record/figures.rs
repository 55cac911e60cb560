//! Figures used by thresholds, searches and views: six kinds of times, and the counters. Pure.

use std::collections::BTreeMap;

use onrush_measure::histogram::Histogram;

use crate::record::incomplete_waits::IncompleteWaits;
use crate::record::times::Times;

/// Kind of a time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Kind {
    /// From the intended start of a request to the last byte of its response.
    Response,
    /// From the request being written to the last byte of its response.
    Service,
    /// From the intended start of a request to its being written.
    SendLag,
    /// From the request being written to the complete head of its response.
    FirstByte,
    /// From the first packet of a connection to connected.
    Connect,
    /// From connected to the end of the TLS handshake.
    Tls,
}

impl Kind {
    /// All kinds, in the order of reports.
    pub const ALL: [Kind; 6] = [
        Kind::Response,
        Kind::Service,
        Kind::SendLag,
        Kind::FirstByte,
        Kind::Connect,
        Kind::Tls,
    ];

    /// Key in `histograms` of the JSON result, and name in thresholds.
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

    /// Name in sentences.
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
    /// Returns the histogram of one kind.
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

    /// Returns the histogram of one kind, to record or merge into.
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

/// Figures of a run, finished or in progress.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    /// Histograms of times.
    pub times: Times,
    /// Responses received.
    pub responses: u64,
    /// Requests without a response, unexpected responses, and failures to connect.
    pub errors: u64,
    /// Unexpected responses among `errors`.
    pub unexpected: u64,
    /// Timeouts among `errors`.
    pub timeouts: u64,
    /// Waits of requests without a response; during a run, including requests in flight.
    pub unanswered: IncompleteWaits,
    /// Requests without a response at the end.
    pub unfinished: u64,
    /// Requests sent again.
    pub resent: u64,
    /// Requests that were due and never sent.
    pub missed: u64,
    /// Results of the checks of journey steps; zero during a run.
    pub checks: Checks,
    /// Responses by status; during a run only by class, such as `2xx`.
    pub statuses: BTreeMap<String, u64>,
    /// Responses per second.
    pub rps: f64,
}

/// Results of checks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Checks {
    /// Checks passed.
    pub passed: u64,
    /// Checks failed.
    pub failed: u64,
}
