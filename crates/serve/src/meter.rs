//! What one core has done, in plain counters; and the sum over all cores.

use std::cell::Cell;
use std::fmt;
use std::iter::Sum;
use std::ops::AddAssign;

/// Counters of one core. No other thread sees them.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    connections: Cell<u64>,
    handshakes_failed: Cell<u64>,
    requests: Cell<u64>,
    /// By the first digit of the status; 0 is unused.
    statuses: [Cell<u64>; 6],
    refused: Cell<u64>,
    given_up: Cell<u64>,
    /// By [`Class`].
    failures: [Cell<u64>; Class::ALL.len()],
    retried: Cell<u64>,
    tunnels: Cell<u64>,
}

/// Why a forwarded request was not answered by a server, or not to its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    /// No server is up.
    NoServer,
    /// All servers have as much to do as they may have.
    Full,
    /// The connection to the server failed.
    Connect,
    /// It took too long.
    Timeout,
    /// The server ended the connection without an answer.
    Reset,
    /// What it sent was no answer, or not one to pass on.
    Garbage,
    /// The answer stopped in its middle.
    Cut,
    /// It was the client's doing.
    Client,
}

impl Class {
    /// All of them, in the order of their counters.
    pub const ALL: [Class; 8] = [
        Class::NoServer,
        Class::Full,
        Class::Connect,
        Class::Timeout,
        Class::Reset,
        Class::Garbage,
        Class::Cut,
        Class::Client,
    ];

    /// A word for it.
    pub fn name(self) -> &'static str {
        match self {
            Class::NoServer => "no server",
            Class::Full => "busy",
            Class::Connect => "connect",
            Class::Timeout => "timeout",
            Class::Reset => "reset",
            Class::Garbage => "bad answer",
            Class::Cut => "cut off",
            Class::Client => "client",
        }
    }
}

fn add(counter: &Cell<u64>) {
    counter.set(counter.get() + 1);
}

impl Meter {
    pub(crate) fn connection(&self) {
        add(&self.connections);
    }

    /// A client and we could not agree on how to speak TLS.
    pub(crate) fn handshake_failed(&self) {
        add(&self.connections);
        add(&self.handshakes_failed);
    }

    /// One request was answered with `status`.
    pub(crate) fn answer(&self, status: u16) {
        add(&self.requests);
        add(&self.statuses[usize::from(status / 100).min(5)]);
    }

    /// What was received was no request; it has been answered, too.
    pub(crate) fn refusal(&self) {
        add(&self.refused);
    }

    /// A client was gone before all of its answer had been sent.
    pub(crate) fn given_up(&self) {
        add(&self.given_up);
    }

    /// No server could answer the request.
    pub(crate) fn failure(&self, class: Class) {
        add(&self.failures[class as usize]);
    }

    /// A request was sent again.
    pub(crate) fn retry(&self) {
        add(&self.retried);
    }

    /// A connection has become a tunnel.
    pub(crate) fn tunnel(&self) {
        add(&self.tunnels);
    }

    pub(crate) fn totals(&self) -> Totals {
        Totals {
            connections: self.connections.get(),
            handshakes_failed: self.handshakes_failed.get(),
            requests: self.requests.get(),
            statuses: std::array::from_fn(|class| self.statuses[class].get()),
            refused: self.refused.get(),
            given_up: self.given_up.get(),
            failures: std::array::from_fn(|class| self.failures[class].get()),
            retried: self.retried.get(),
            tunnels: self.tunnels.get(),
            cut_off: 0,
        }
    }
}

/// What a server has done since its start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Totals {
    /// Connections accepted.
    pub connections: u64,
    /// Of `connections`: those whose TLS handshake failed.
    pub handshakes_failed: u64,
    /// Requests answered, refused ones included.
    pub requests: u64,
    /// Answers by the first digit of their status; index 0 is unused.
    pub statuses: [u64; 6],
    /// Of `requests`: input that was not a valid request.
    pub refused: u64,
    /// Requests whose client was gone before all of the answer had been sent. Where the answer had begun they are among
    /// `requests` and `statuses`, too.
    pub given_up: u64,
    /// Of `requests`: forwarded requests that no server answered, in the order of [`Class::ALL`].
    pub failures: [u64; Class::ALL.len()],
    /// Requests that were sent again on another connection.
    pub retried: u64,
    /// Connections that became tunnels; each was one of `requests`.
    pub tunnels: u64,
    /// Connections that were still busy when the time to finish was over.
    pub cut_off: u64,
}

impl Totals {
    /// Forwarded requests that no server answered.
    pub fn failed(&self) -> u64 {
        self.failures.iter().sum()
    }

    /// Of those, the ones that failed in this way.
    pub fn failures(&self, class: Class) -> u64 {
        self.failures[class as usize]
    }
}

impl AddAssign for Totals {
    fn add_assign(&mut self, other: Totals) {
        self.connections += other.connections;
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
        also(f, self.handshakes_failed, "TLS handshakes failed")?;
        also(f, self.tunnels, "tunnels")?;
        also(f, self.refused, "refused")?;
        also(f, self.given_up, "given up by clients")?;
        also(f, self.failed(), "failed upstream")?;
        let mut separator = " (";
        for class in Class::ALL
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
    fn totals_say_only_what_happened() {
        let meter = Meter::default();
        meter.connection();
        meter.answer(200);
        meter.answer(404);
        meter.answer(200);
        assert_eq!(
            meter.totals().to_string(),
            "3 requests on 1 connections: 2xx 2, 4xx 1"
        );
        meter.refusal();
        meter.given_up();
        meter.tunnel();
        meter.failure(Class::Reset);
        meter.failure(Class::Timeout);
        let sum: Totals = [meter.totals(), meter.totals()].into_iter().sum();
        assert_eq!(
            sum.to_string(),
            "6 requests on 2 connections: 2xx 4, 4xx 2; 2 tunnels; 2 refused; 2 given up by clients; 4 failed upstream (2 timeout, 2 reset)"
        );
    }
}
