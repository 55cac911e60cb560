//! State of a server according to active checks, and the time of the next check. Pure: computes a transition from
//! outcomes and the time; `check.rs` makes the checks.

use std::fmt;
use std::time::Duration;

use onrush_config::plan;
use onrush_engine::Instant;
use onrush_engine::random::Random;

use super::failure::Failure;
use crate::limits::HEALTH_START_SPREAD;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    /// Time from the end of one check to the start of the next.
    pub(crate) interval: Duration,
    /// Random variation of the interval (at most 100), so that proxies started together do not check together.
    pub(crate) jitter_percent: u32,
    /// Number of consecutive successful checks after which a server is up.
    pub(crate) rise: u32,
    /// Number of consecutive failed checks after which a server is down.
    pub(crate) fall: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// The first check has not ended; the endpoint counts as healthy until then.
    Checking,
    Up,
    Down,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Outcome {
    Passed,
    Failed(CheckFault),
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum CheckFault {
    /// No valid response in time, or no connection if the check only connects.
    Exchange(Failure),
    Status(u16),
    /// The body does not match the expected pattern.
    Body,
    /// Not a gRPC response.
    NoGrpcStatus,
    /// A gRPC response with another status than OK.
    GrpcStatus(u16),
    /// The message is not a HealthCheckResponse.
    NoGrpcMessage,
    /// A HealthCheckResponse with this status instead of SERVING.
    NotServing(u8),
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Transition {
    pub(crate) state: State,
    pub(crate) reason: Reason,
}

/// Why the state changed, as shown in the log.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Reason {
    Passed { checks: u32 },
    Failed { checks: u32, last: CheckFault },
}

/// State of one server, and the checks that contradict it.
#[derive(Debug)]
pub(crate) struct Health {
    rules: Rules,
    state: State,
    /// Number of consecutive checks that contradict `state`.
    contradicting: u32,
    check_due: Instant,
    chance: Random,
}

impl From<&plan::Health> for Rules {
    fn from(written: &plan::Health) -> Self {
        Self {
            interval: written.interval,
            jitter_percent: u32::from(written.jitter),
            rise: written.rise.get(),
            fall: written.fall.get(),
        }
    }
}

impl Health {
    /// The first check starts within [`HEALTH_START_SPREAD`]; `seed` must differ between servers and between processes.
    pub(crate) fn new(rules: Rules, seed: u64, now: Instant) -> Self {
        let chance = Random::new(seed);
        let spread = HEALTH_START_SPREAD.min(rules.interval);
        Self {
            rules,
            state: State::Checking,
            contradicting: 0,
            check_due: now + Duration::from_nanos(chance.below(spread.as_nanos() as u64 + 1)),
            chance,
        }
    }

    /// Starts with a known state.
    pub(crate) fn with_state(self, state: State) -> Self {
        Self { state, ..self }
    }

    pub(crate) fn check_due(&self) -> Instant {
        self.check_due
    }

    /// Records the outcome of a check. The first one sets the state alone, so that a group that starts does not wait.
    pub(crate) fn observe(&mut self, outcome: Outcome, now: Instant) -> Option<Transition> {
        self.check_due = now + self.next_interval();
        let (believed, needed) = match outcome {
            Outcome::Passed => (State::Up, self.rules.rise),
            Outcome::Failed(_) => (State::Down, self.rules.fall),
        };
        if self.state == believed {
            self.contradicting = 0;
            return None;
        }
        self.contradicting += 1;
        if self.state != State::Checking && self.contradicting < needed {
            return None;
        }
        let checks = std::mem::take(&mut self.contradicting);
        self.state = believed;
        Some(Transition {
            state: believed,
            reason: match outcome {
                Outcome::Passed => Reason::Passed { checks },
                Outcome::Failed(last) => Reason::Failed { checks, last },
            },
        })
    }

    fn next_interval(&mut self) -> Duration {
        let interval = self.rules.interval.as_nanos() as u64;
        let jitter = interval / 100 * u64::from(self.rules.jitter_percent);
        Duration::from_nanos(interval - jitter + self.chance.below(2 * jitter + 1))
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Outcome::Passed => f.write_str("it passed"),
            Outcome::Failed(fault) => fault.fmt(f),
        }
    }
}

impl fmt::Display for Transition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match self.state {
            State::Checking => "being checked",
            State::Up => "up",
            State::Down => "down",
        };
        write!(f, "{state}: {}", self.reason)
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Passed { checks: 1 } => f.write_str("a check passed"),
            Reason::Passed { checks } => write!(f, "{checks} consecutive checks passed"),
            Reason::Failed { checks: 1, last } => write!(f, "a check failed: it {last}"),
            Reason::Failed { checks, last } => {
                write!(
                    f,
                    "{checks} consecutive checks failed: in the last one it {last}"
                )
            }
        }
    }
}

/// A clause whose subject is the server ("it").
impl fmt::Display for CheckFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CheckFault::Exchange(Failure::Connect(error)) => {
                write!(f, "could not be reached: {error}")
            }
            CheckFault::Exchange(Failure::NoResponse(error)) => {
                write!(f, "did not respond: {error}")
            }
            CheckFault::Exchange(failure) => failure.fmt(f),
            CheckFault::Status(status) => write!(f, "responded with the status {status}"),
            CheckFault::Body => f.write_str("responded with another body"),
            CheckFault::NoGrpcStatus => f.write_str("sent a response that has no grpc-status"),
            CheckFault::GrpcStatus(status) => {
                write!(f, "sent a response that has grpc-status {status}")
            }
            CheckFault::NoGrpcMessage => {
                f.write_str("sent a message that is not a HealthCheckResponse")
            }
            CheckFault::NotServing(status) => {
                let names = ["UNKNOWN", "SERVING", "NOT_SERVING", "SERVICE_UNKNOWN"];
                match names.get(usize::from(*status)) {
                    Some(name) => write!(f, "says {name}"),
                    None => write!(f, "reports the unknown status {status}"),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use onrush_engine::{Errno, Error, Kind, Op};
    use proptest::prelude::*;

    const RULES: Rules = Rules {
        interval: Duration::from_secs(2),
        jitter_percent: 10,
        rise: 2,
        fall: 3,
    };

    /// Feeds checks, `.` passed and `x` failed. `expected` has each transition with the number of its check.
    #[track_caller]
    fn check(checks: &str, expected: &[(usize, &str)]) {
        let mut health = Health::new(RULES, 1, Instant::default());
        let transitions: Vec<(usize, String)> = (1..)
            .zip(checks.chars())
            .filter_map(|(number, check)| {
                let outcome = match check {
                    '.' => Outcome::Passed,
                    _ => Outcome::Failed(CheckFault::Status(503)),
                };
                let transition = health.observe(outcome, Instant::default())?;
                assert_eq!(transition.state, health.state);
                Some((number, transition.to_string()))
            })
            .collect();
        let transitions: Vec<(usize, &str)> = transitions
            .iter()
            .map(|(number, text)| (*number, text.as_str()))
            .collect();
        assert_eq!(transitions, expected, "of {checks}");
    }

    #[test]
    fn first_check_sets_state() {
        check(".", &[(1, "up: a check passed")]);
        let failed = "down: a check failed: it responded with the status 503";
        check("x", &[(1, failed)]);
        let health = Health::new(RULES, 1, Instant::default());
        assert_eq!(health.state, State::Checking);
    }

    #[test]
    fn rise_and_fall_change_state() {
        let up = (1, "up: a check passed");
        let down =
            "down: 3 consecutive checks failed: in the last one it responded with the status 503";
        check(".xx.xx.xx", &[up]);
        check(".xxx", &[up, (4, down)]);
        check(".xx.xxxxxx", &[up, (7, down)]);
        let risen = "up: 2 consecutive checks passed";
        check(".xxx.x.x..", &[up, (4, down), (10, risen)]);
        check(".xxx..xxx", &[up, (4, down), (6, risen), (9, down)]);
    }

    #[test]
    fn health_transitions_are_formatted() {
        let refused = Error::new(Op::Connect, Kind::Os(Errno::CONNREFUSED));
        for (fault, expected) in [
            (
                CheckFault::Exchange(Failure::Connect(refused)),
                "it could not be reached: connect: Connection refused (os error 111)".to_owned(),
            ),
            (
                CheckFault::Exchange(Failure::Closed),
                "it closed the connection without a response".to_owned(),
            ),
            (
                CheckFault::Exchange(Failure::BadResponse("no version".into())),
                "it sent an invalid response: no version".to_owned(),
            ),
            (
                CheckFault::Body,
                "it responded with another body".to_owned(),
            ),
        ] {
            let mut health = Health::new(RULES, 1, Instant::default());
            let transition = health.observe(Outcome::Failed(fault), Instant::default());
            let text = transition.expect("the first check decides").to_string();
            assert_eq!(text, format!("down: a check failed: {expected}"));
        }
    }

    proptest! {
        #[test]
        fn check_interval_is_jittered(
            seed: u64,
            milliseconds in 1..10_000_u64,
            jitter_percent in 0..=100_u32,
        ) {
            let interval = Duration::from_millis(milliseconds);
            let rules = Rules { interval, jitter_percent, ..RULES };
            let now = Instant::from_nanoseconds(77);
            let mut health = Health::new(rules, seed, now);
            let first = health.check_due().since(now);
            prop_assert!(first <= interval && first <= HEALTH_START_SPREAD);
            for _ in 0..10 {
                health.observe(Outcome::Passed, now);
                let next = health.check_due().since(now);
                let jitter = interval * jitter_percent / 100;
                prop_assert!(interval - jitter <= next && next <= interval + jitter);
            }
        }
    }

    #[test]
    fn health_check_start_is_jittered() {
        let due = |seed| {
            let mut health = Health::new(RULES, seed, Instant::default());
            let first = health.check_due();
            health.observe(Outcome::Passed, Instant::default());
            (first, health.check_due())
        };
        let (one, other) = (due(1), due(2));
        assert!(one.0 != other.0 && one.1 != other.1);
    }
}
