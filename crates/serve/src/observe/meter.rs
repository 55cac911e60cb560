//! Counters of one core, and their sum over all cores.

use std::cell::Cell;
#[cfg(test)]
use std::cell::RefCell;
use std::fmt;
use std::iter::Sum;
use std::ops::AddAssign;

use crate::observe::record::{FailureClass, Record, RequestEnd, RequestKind};

/// Counters of one core. Only its own thread accesses them.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    connections: Cell<u64>,
    /// Open client connections after their handshake.
    open: Cell<u64>,
    connections_refused: Cell<u64>,
    handshakes_failed: Cell<u64>,
    requests: Cell<u64>,
    /// By the first digit of the status; 0 is unused.
    statuses: [Cell<u64>; 6],
    refused: Cell<u64>,
    given_up: Cell<u64>,
    failures: [Cell<u64>; FailureClass::ALL.len()],
    retried: Cell<u64>,
    tunnels: Cell<u64>,
    unfinished: Cell<u64>,
    /// By [`MirrorOutcome`].
    mirrored: [Cell<u64>; MirrorOutcome::ALL.len()],
    trailers_dropped: [Cell<u64>; Message::ALL.len()],
    #[cfg(test)]
    seen: RefCell<Vec<SeenRecord>>,
}

/// A record that was observed.
#[cfg(test)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct SeenRecord {
    pub(crate) status: Option<u16>,
    pub(crate) failure: Option<FailureClass>,
    pub(crate) end: RequestEnd,
}

fn add(counter: &Cell<u64>) {
    counter.set(counter.get() + 1);
}

impl Meter {
    pub(crate) fn connection(&self) {
        add(&self.connections);
    }

    /// Counts an accepted client connection, which is now open.
    pub(crate) fn connection_opens(&self) {
        add(&self.connections);
        add(&self.open);
    }

    pub(crate) fn connection_closes(&self) {
        self.open.set(self.open.get() - 1);
    }

    pub(crate) fn connections_open(&self) -> u64 {
        self.open.get()
    }

    /// Counts a connection closed because the limit on connections is reached.
    pub(crate) fn connection_refused(&self) {
        add(&self.connections_refused);
    }

    pub(crate) fn handshake_failed(&self) {
        add(&self.connections);
        add(&self.handshakes_failed);
    }

    #[inline]
    pub(crate) fn observe(&self, record: &Record, end: RequestEnd) {
        if let Some(status) = record.status() {
            add(&self.requests);
            add(&self.statuses[usize::from(status / 100).min(5)]);
        }
        if !record.is_ordinary() || end != RequestEnd::Complete {
            self.observe_unusual(record, end);
        }
        #[cfg(test)]
        self.seen.borrow_mut().push(SeenRecord {
            status: record.status(),
            failure: record.failure(),
            end,
        });
    }

    fn observe_unusual(&self, record: &Record, end: RequestEnd) {
        match record.kind() {
            RequestKind::Ordinary => {}
            RequestKind::Refused => add(&self.refused),
            RequestKind::Tunnel => add(&self.tunnels),
        }
        if let Some(class) = record.failure() {
            add(&self.failures[class as usize]);
        }
        let retried = self.retried.get() + u64::from(record.retries());
        self.retried.set(retried);
        match end {
            RequestEnd::Complete | RequestEnd::Partial | RequestEnd::Broken => {}
            RequestEnd::GivenUp => add(&self.given_up),
            RequestEnd::CutOff => add(&self.unfinished),
        }
    }

    #[cfg(test)]
    pub(crate) fn take_seen(&self) -> Vec<SeenRecord> {
        self.seen.take()
    }

    /// Counts invalid input that gets no response, because it came before the first request or after the last.
    pub(crate) fn invalid_input(&self) {
        add(&self.refused);
    }

    /// Counts a request that was to be mirrored.
    pub(crate) fn mirrored(&self, outcome: MirrorOutcome) {
        add(&self.mirrored[outcome as usize]);
    }

    /// Counts a message whose trailers were dropped because of its framing on the next connection.
    pub(crate) fn trailers_dropped(&self, message: Message) {
        add(&self.trailers_dropped[message as usize]);
    }

    pub(crate) fn totals(&self) -> Totals {
        Totals {
            connections: self.connections.get(),
            connections_refused: self.connections_refused.get(),
            handshakes_failed: self.handshakes_failed.get(),
            requests: self.requests.get(),
            statuses: std::array::from_fn(|class| self.statuses[class].get()),
            refused: self.refused.get(),
            given_up: self.given_up.get(),
            failures: std::array::from_fn(|class| self.failures[class].get()),
            retried: self.retried.get(),
            tunnels: self.tunnels.get(),
            unfinished: self.unfinished.get(),
            mirrored: std::array::from_fn(|outcome| self.mirrored[outcome].get()),
            trailers_dropped: std::array::from_fn(|message| self.trailers_dropped[message].get()),
            cut_off: 0,
        }
    }
}

/// Counters of a server since its start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Totals {
    /// Accepted connections.
    pub connections: u64,
    /// Number of connections closed at once because the limit on connections was reached.
    pub connections_refused: u64,
    /// Of `connections`: failed TLS handshakes.
    pub handshakes_failed: u64,
    /// Number of requests that got a response, refusals included.
    pub requests: u64,
    /// Responses by the first digit of the status; index 0 is unused.
    pub statuses: [u64; 6],
    /// Part of `requests`: input that was not a valid request.
    pub refused: u64,
    /// Number of requests whose client disconnected before the whole response was sent. If the response had started,
    /// they are also in `requests` and `statuses`.
    pub given_up: u64,
    /// Part of `requests`: forwarded requests without a complete response from a server, in the order of
    /// [`FailureClass::ALL`].
    pub failures: [u64; FailureClass::ALL.len()],
    /// Number of requests that were sent again on another connection.
    pub retried: u64,
    /// Part of `requests`: connections that became tunnels.
    pub tunnels: u64,
    /// Number of requests still in flight when the shutdown timeout expired. If the response had started, they are also
    /// in `requests` and `statuses`.
    pub unfinished: u64,
    /// Requests that were to be mirrored, in the order of [`MirrorOutcome::ALL`].
    pub mirrored: [u64; MirrorOutcome::ALL.len()],
    /// Messages whose trailers were dropped, in the order of [`Message::ALL`].
    pub trailers_dropped: [u64; Message::ALL.len()],
    /// Number of connections still busy when the shutdown timeout expired.
    pub cut_off: u64,
}

/// Outcome of mirroring a request to another group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MirrorOutcome {
    /// A server responded to the copy.
    Answered,
    /// No server responded.
    Failed,
    /// The limit of copies was reached, no server was available, or no time was left.
    Dropped,
    /// The request cannot be mirrored: its body did not arrive with its head, or has trailers.
    Skipped,
}

impl MirrorOutcome {
    /// All outcomes, in the order of their counters.
    pub const ALL: [MirrorOutcome; 4] = [
        MirrorOutcome::Answered,
        MirrorOutcome::Failed,
        MirrorOutcome::Dropped,
        MirrorOutcome::Skipped,
    ];

    /// Label in metrics.
    pub fn name(self) -> &'static str {
        match self {
            MirrorOutcome::Answered => "answered",
            MirrorOutcome::Failed => "failed",
            MirrorOutcome::Dropped => "dropped",
            MirrorOutcome::Skipped => "skipped",
        }
    }
}

/// Kind of a forwarded message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Message {
    /// From a client.
    Request,
    /// From a server.
    Response,
}

impl Message {
    /// Both kinds, in the order of their counters.
    pub const ALL: [Message; 2] = [Message::Request, Message::Response];

    /// Label in metrics.
    pub fn name(self) -> &'static str {
        match self {
            Message::Request => "request",
            Message::Response => "response",
        }
    }
}

impl Totals {
    /// Forwarded requests without a complete response from a server.
    pub fn failed(&self) -> u64 {
        self.failures.iter().sum()
    }

    /// Failed requests of one class.
    pub fn failures(&self, class: FailureClass) -> u64 {
        self.failures[class as usize]
    }
}

impl AddAssign for Totals {
    fn add_assign(&mut self, other: Totals) {
        self.connections += other.connections;
        self.connections_refused += other.connections_refused;
        self.handshakes_failed += other.handshakes_failed;
        self.requests += other.requests;
        for (sum, more) in self.statuses.iter_mut().zip(other.statuses) {
            *sum += more;
        }
        self.refused += other.refused;
        self.given_up += other.given_up;
        for (sum, more) in self.failures.iter_mut().zip(other.failures) {
            *sum += more;
        }
        self.retried += other.retried;
        self.tunnels += other.tunnels;
        self.unfinished += other.unfinished;
        for (sum, more) in self.mirrored.iter_mut().zip(other.mirrored) {
            *sum += more;
        }
        let dropped = self.trailers_dropped.iter_mut();
        for (sum, more) in dropped.zip(other.trailers_dropped) {
            *sum += more;
        }
        self.cut_off += other.cut_off;
    }
}

impl Sum for Totals {
    fn sum<I: Iterator<Item = Totals>>(totals: I) -> Totals {
        totals.fold(Totals::default(), |mut sum, more| {
            sum += more;
            sum
        })
    }
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} requests on {} connections",
            self.requests, self.connections
        )?;
        let classes = (1..=5).filter(|&class| self.statuses[class] > 0);
        for (position, class) in classes.enumerate() {
            write!(
                f,
                "{} {class}xx {}",
                if position == 0 { ":" } else { "," },
                self.statuses[class]
            )?;
        }
        let also = |f: &mut fmt::Formatter<'_>, count: u64, what: &str| {
            if count > 0 {
                write!(f, "; {count} {what}")?;
            }
            Ok(())
        };
        also(f, self.connections_refused, "connections refused")?;
        also(f, self.handshakes_failed, "TLS handshakes failed")?;
        also(f, self.tunnels, "tunnels")?;
        also(f, self.refused, "refused")?;
        also(f, self.given_up, "given up by clients")?;
        also(f, self.failed(), "failed upstream")?;
        let mut separator = " (";
        for class in FailureClass::ALL
            .into_iter()
            .filter(|&class| self.failures(class) > 0)
        {
            write!(f, "{separator}{} {}", self.failures(class), class.name())?;
            separator = ", ";
        }
        if self.failed() > 0 {
            f.write_str(")")?;
        }
        also(f, self.retried, "retried")?;
        also(f, self.cut_off, "connections cut off")?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_match_events() {
        let meter = Meter::default();
        let observe = |status: u16, tell: &dyn Fn(&mut Record)| {
            let mut record = Record::default();
            record.respond(status);
            tell(&mut record);
            meter.observe(&record, RequestEnd::Complete);
        };
        meter.connection();
        for status in [200, 404, 200] {
            observe(status, &|_| {});
        }
        assert_eq!(
            meter.totals().to_string(),
            "3 requests on 1 connections: 2xx 2, 4xx 1"
        );
        meter.invalid_input();
        observe(101, &|record| record.tunnel());
        let given_up = Record::default();
        given_up.respond(200);
        meter.observe(&given_up, RequestEnd::GivenUp);
        for class in [FailureClass::Reset, FailureClass::Timeout] {
            observe(502, &|record| record.fail(class));
        }
        let sum: Totals = [meter.totals(), meter.totals()].into_iter().sum();
        assert_eq!(
            sum.to_string(),
            "14 requests on 2 connections: 1xx 2, 2xx 6, 4xx 2, 5xx 4; 2 tunnels; 2 refused; 2 given up by clients; 4 failed upstream (2 timeout, 2 reset)"
        );
    }
}
