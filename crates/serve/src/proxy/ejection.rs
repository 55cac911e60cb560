//! Passive health checking: the outcomes of requests take servers out of service and bring them back.
//!
//! All cores and all configurations with a server share its state. The state is an [`EjectionPhase`], and for a server that is `Out` also a
//! [`Cause`](recheck_delay::Cause), on which its return depends:
//!
//! - *in*: it may get requests.
//! - *failing*: a rule would take it out, but it has to stay, so it gets requests like a server that is in. The views and
//!   `onrush_server_up` show it as failing (0), and no ejection is counted. A response after the time for which it would have been
//!   out shows that it works again.
//! - *unreachable*: it is out, and the first successful connection brings it back. The core that took it out tries to
//!   connect after 0.25 s, and then with a delay that doubles up to `time`.
//! - *unreliable*: it is out for `time`, and each further absence is twice as long, up to 5 minutes. Each period of service as
//!   long as the last absence halves the next one.
//! - *on trial*: the next request that may be repeated goes to it (after one second, any request).
//! - *tried*: that request is in progress.
//!
//! | state | event | next state | logged, counted |
//! |---|---|---|---|
//! | in | a request finds no connection, with `on = "connections"` | unreachable | `server_ejected`, ejections |
//! | in | the limit of a rule is reached | unreliable | `server_ejected`, ejections |
//! | in | the same, but it may not be taken out | failing | `server_failing` |
//! | in | a request fails below all limits | in | |
//! | failing | the limit of a rule is reached | unreliable | `server_ejected`, ejections |
//! | failing | a request gets a response within the time | failing | |
//! | failing | a request gets a response after the time | in | `server_back` |
//! | unreachable | a recheck connects | in | `server_back` |
//! | unreachable | a recheck cannot connect | unreachable | |
//! | unreliable | a recheck connects when the time is over | on trial | |
//! | unreliable | a recheck cannot connect | unreachable | |
//! | on trial | a request is chosen for the trial | tried | |
//! | tried | the request gets a response | in | `server_back` |
//! | tried | the request fails | unreliable | `server_ejected`, ejections |
//! | tried | the request ends without an outcome | on trial | |
//! | in | the response that ended the trial stops midway, with `on = "answers"` | unreliable | `server_ejected`, ejections |
//! | not in | a request of last resort gets a response | in | `server_back` |
//! | not in | a request of last resort fails | the same | |
//! | not in | a request from before the ejection fails | the same | |
//! | any | the state is reset | in | |
//!
//! The rules are failures in a row, a share of failures and a latency far above the median (`ejector.rs`); with `on =
//! "responses"` a failed connection is one failure among others. No server is taken out when `share_max` is reached or
//! only one is in service, as is the only server of a group; its counts are then reset. With `on = "connections"` there is also an immediate recheck of
//! an unreliable server: a killed process first loses its connections and only a moment later refuses new ones. A
//! request of last resort goes to a server that is not in, because no other is available. The state is reset when the
//! address of the server changes, and when a configuration without ejection is followed by one with it.
//!
//! `outcome.rs` classifies the end of a request, `ejector.rs` counts outcomes on each core and applies the rules, and
//! `evidence.rs` changes the state accordingly. `presence.rs` is the state, `transitions.rs` changes it, `recheck_delay.rs`
//! has the times, and `recheck.rs` is the task that brings a server back. A request that cannot be repeated avoids
//! servers that have recently failed another request (`recent_failures.rs`), in any state.
//!
//! A request counts once: with `on = "connections"` and for tunnels at the head of its response, else at the end, since a
//! response that stops midway is a failure. The head of a trial's response is enough for its return.
//!
//! Other modules use only a small part of this: a group counts outcomes ([`Ejection::observe_head`],
//! [`Ejection::observe`]) and follows a [`Change`] (log, counter, [`bring_back`]), chooses servers by their
//! [`EjectionPhase`] with a [`Purpose`], and claims and releases trials.

mod ejector;
mod ended;
mod evidence;
pub(super) mod outcome;
mod presence;
mod recent_failures;
mod recheck;
pub(super) mod recheck_delay;
pub(super) mod transitions;

use std::cell::RefCell;

use onrush_config::plan::{EjectOn, Upstream};
use onrush_engine::Instant;

use super::endpoints::Endpoint;
use ejector::Ejector;
use recent_failures::RecentFailures;
use recheck_delay::RecheckDelays;

pub(crate) use ejector::GroupSnapshot;
pub(crate) use ended::{report_ended, report_unassigned};
pub(crate) use evidence::{Change, Purpose};
pub(crate) use outcome::Outcome;
pub(crate) use presence::{EjectionPhase, EjectionState};
pub(crate) use recheck::bring_back;

/// Ejection for the servers of a group on one core.
#[derive(Debug)]
pub(crate) struct Ejection {
    ejector: RefCell<Ejector>,
    terms: RecheckDelays,
    recent_failures: RecentFailures,
}

impl Ejection {
    /// Returns `None` if the group does not eject. Takes over the counts of the previous group `before`;
    /// the list has, for each endpoint, the index of its server there, or `None` for a new server.
    pub(crate) fn new(
        upstream: &Upstream,
        endpoints: &[Endpoint],
        before: Option<(&Ejection, &[Option<usize>])>,
    ) -> Option<Self> {
        let written = upstream.eject.as_ref()?;
        let mut ejector = Ejector::new(written.into(), endpoints.len());
        let mut recent_failures = RecentFailures::default();
        if let Some((before, positions)) = before {
            ejector.take_over(&before.ejector.borrow(), positions);
            recent_failures = before.recent_failures.in_positions(positions);
        }
        Some(Self {
            ejector: RefCell::new(ejector),
            terms: written.into(),
            recent_failures,
        })
    }

    /// Outcomes that count as failures.
    fn on(&self) -> EjectOn {
        self.ejector.borrow().rules().on
    }

    /// Whether a successful response would change any count.
    pub(crate) fn wants_responses(&self) -> bool {
        self.ejector.borrow().wants_responses()
    }

    /// Servers that have recently failed a request, if any; requests that cannot be repeated avoid them.
    #[inline]
    pub(crate) fn recently_failed(&self, now: Instant) -> Option<Vec<u32>> {
        self.recent_failures.at(now)
    }

    /// Resets the counts of a server that has been taken out, on this core or on another.
    pub(crate) fn forget(&self, server: u32) {
        self.ejector.borrow_mut().forget(server);
    }
}
