//! What a run has left behind that speaks for or against it: whether the generator kept up, whether the machine let it,
//! whether the network did, and whether the counts add up. Facts only; the judgement is made elsewhere.

use onrush_measure::units;
use serde::{Deserialize, Serialize};

use crate::record::times::Times;

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
    /// Connections that were to be open at once; where each carries one request at a rate, as many as it took.
    pub connections_asked: u64,
    /// Connections that were open at once, at most.
    pub connections_achieved: u64,
    /// Jain's index of the responses per connection: 1 when all had as many, 1/n when one of n had them all. None with
    /// one connection, or with fewer responses than connections.
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
    /// Responses received.
    #[serde(rename = "answers")]
    pub responses: u64,
    /// Responses whose times were measured, late ones among them: those behind ramp and warm-up. None while more may come, and
    /// in results of versions that did not say.
    #[serde(default)]
    pub measured: Option<u64>,
    /// Requests that failed.
    pub failures: u64,
    /// Requests whose response had not come when the run ended.
    pub unfinished: u64,
    /// Of these, those whose response came shortly behind the end, so that their times are known.
    #[serde(default)]
    pub late: u64,
    /// Requests sent again because the server did nothing for them: it had closed a kept-alive connection before they reached it,
    /// has said so as it went away, or has refused their streams.
    pub resent: u64,
    /// Of these, those whose streams it has refused, which have waited for no connection.
    #[serde(default)]
    pub refused: u64,
    /// Requests that failed because nothing arrived in time.
    pub timeouts: u64,
    /// Responses behind which bytes came that nobody had asked for.
    #[serde(default)]
    pub unasked: u64,
    /// Responses that a server that is well has for no request of the run, such as error lines of memcached.
    #[serde(default)]
    pub failed_responses: u64,
    /// Responses with a status of 300 or above, or with a gRPC code other than OK, to requests that list no expected statuses.
    #[serde(default)]
    pub unaccepted: u64,
    /// Responses other than the run expects, by their status, their body or a check of a journey.
    #[serde(default)]
    pub unexpected: u64,
    /// Responses that are known to be another request's, or nobody's, such as values of other keys.
    #[serde(default)]
    pub false_responses: u64,
    /// Whether requests = responses + failures + unfinished, and every histogram holds as many values as it should.
    pub is_count_consistent: bool,
    /// The time from intended start to written that 99 of 100 requests did not exceed; none without requests.
    pub send_lag_p99_us: Option<f64>,
    /// How long the run took.
    pub duration_s: f64,
    /// When the last response came, in seconds since the start, where from then on none did though some were asked for.
    #[serde(default)]
    pub answered_until_s: Option<f64>,
    /// For how long, before that, there were only errors.
    #[serde(default)]
    pub silent_s: f64,
    /// How long the request without a response that had waited longest had done so, in times of the longest response
    /// time; none where all have one.
    #[serde(default)]
    pub longest_open: Option<f64>,
    /// The mean response time; none without responses.
    #[serde(default)]
    pub response_mean_us: Option<f64>,
    /// For percentiles of the response time, how much of each the generator itself made, at most.
    #[serde(default)]
    pub own: Vec<OwnPart>,
    /// Upper bound of the generator's part of the mean response time; `None` if it was not measured.
    #[serde(default)]
    pub own_mean_us: Option<f64>,
    /// For how long it began after the moment that was set; none where none was.
    #[serde(default)]
    pub start_late_s: Option<f64>,
}

/// How much of a percentile of the response time the generator itself made: it is that of all times less the time for
/// which the generator kept each request, or its response, waiting.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct OwnPart {
    /// Above 0 and below 100.
    pub percentile: f64,
    /// The percentile as it was measured.
    pub response_us: f64,
    /// The generator's part of it, at most.
    pub own_us: f64,
}

impl OwnPart {
    /// Of the percentiles that the count of responses supports.
    pub fn of(times: &Times) -> Vec<OwnPart> {
        let of = |(percentile, ns)| OwnPart {
            percentile,
            response_us: units::microseconds(ns),
            own_us: units::microseconds(ns.saturating_sub(times.undelayed.value_at(percentile))),
        };
        // Results of versions that did not measure it have none.
        let is_known = times.undelayed.count() == times.response.count();
        let all = times.response.percentiles().filter(|_| is_known);
        all.map(of).collect()
    }

    /// The generator's part of the mean; `None` if it was not measured for every response.
    pub(crate) fn mean_us(times: &Times) -> Option<f64> {
        let (all, without) = (&times.response, &times.undelayed);
        let is_known = all.count() > 0 && all.count() == without.count();
        is_known.then(|| ((all.mean() - without.mean()) / 1000.0).max(0.0))
    }

    /// Its share of what was measured.
    pub fn share(&self) -> f64 {
        self.own_us / self.response_us.max(f64::MIN_POSITIVE)
    }
}

/// The facts of one thread of the generator.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct ThreadEvidence {
    /// The share of the run during which it was on a CPU, 0 to 1; where it busy-polls, during which it had something to
    /// do.
    pub cpu_share: f64,
    /// The share of the run during which it could have run and waited for a CPU, 0 to 1.
    pub run_delay_share: f64,
    /// How often it was taken off its CPU although it could have gone on.
    pub involuntary_switches: u64,
    /// The longest time for which something that had happened may have waited to be seen: a turn between two looks at
    /// the kernel, or a wait that ended later than it should have.
    pub longest_turn_us: f64,
    /// The share of the run, 0 to 1, for which it saw nothing, in such times of 20 ms and more.
    #[serde(default)]
    pub stalled_share: f64,
}
