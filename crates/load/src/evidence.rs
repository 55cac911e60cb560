//! What a run has left behind that speaks for or against it: whether the generator kept up, whether the machine let it,
//! whether the network did, and whether the counts add up. Facts only; the judgement is made elsewhere.

use serde::{Deserialize, Serialize};

/// The facts of one run.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Evidence {
    /// Each thread of the generator.
    pub threads: Vec<ThreadEvidence>,
    /// Requests per second that were to be started, the mean over the run where the pace changes; none for a closed
    /// loop.
    pub rate_asked: Option<f64>,
    /// Requests per second that were started.
    pub rate_achieved: f64,
    /// Requests that were due and never sent: further behind than may be caught up with, or still waiting for a free
    /// connection at the end.
    pub missed: u64,
    /// Connections that were to be open at once.
    pub connections_asked: u64,
    /// Connections that were open at once, at most.
    pub connections_achieved: u64,
    /// Jain's index of the answers per connection: 1 when all had as many, 1/n when one of n had them all. None with
    /// one connection, or with fewer answers than connections.
    pub fairness: Option<f64>,
    /// The share of all CPUs' time that the hypervisor gave to others, 0 to 1; none where the kernel does not say.
    pub steal_share: Option<f64>,
    /// For how long the process' control group was held back by its CPU quota, over all CPUs; none without a quota.
    pub throttled_s: Option<f64>,
    /// TCP segments sent again, on the connections that were looked at; none without TCP.
    pub retransmits: Option<u64>,
    /// TCP segments sent, on the same connections.
    pub segments_out: Option<u64>,
    /// Connections that could not be made because no local port was free.
    pub no_local_port: u64,
    /// Requests that were taken to be sent; each counts once, however often it was sent.
    pub requests_sent: u64,
    /// Answers received.
    pub answers: u64,
    /// Requests that failed.
    pub failures: u64,
    /// Requests whose answer had not come when the run ended.
    pub unfinished: u64,
    /// Requests sent again because the server had closed a kept-alive connection before it saw them.
    pub resent: u64,
    /// Requests that failed because nothing arrived in time.
    pub timeouts: u64,
    /// Whether requests = answers + failures + unfinished, and every histogram holds as many values as it should.
    pub is_count_consistent: bool,
    /// The time from intended start to written that 99 of 100 requests did not exceed; none without requests.
    pub send_lag_p99_us: Option<f64>,
    /// How long the run took.
    pub duration_s: f64,
    /// For how long it began after the moment that was set; none where none was.
    #[serde(default)]
    pub start_late_s: Option<f64>,
}

/// The facts of one thread of the generator.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct ThreadEvidence {
    /// The share of the run during which it was on a CPU, 0 to 1; where it polls busily, during which it had something to
    /// do.
    pub cpu_share: f64,
    /// The share of the run during which it could have run and waited for a CPU, 0 to 1.
    pub run_delay_share: f64,
    /// How often it was taken off its CPU although it could have gone on.
    pub involuntary_switches: u64,
    /// The longest time between two looks at the kernel, waits aside.
    pub longest_turn_us: f64,
}
