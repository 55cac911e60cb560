//! Facts by which `verdict` judges a run: whether generator, machine and network kept up, and whether counts add up.

use onrush_measure::units;
use serde::{Deserialize, Serialize};

use crate::record::times::Times;

/// Facts of one run.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Evidence {
    /// Threads of the generator.
    pub threads: Vec<ThreadEvidence>,
    /// Requests per second that the pace asked for, averaged over the run if the pace changes; `None` in a closed loop.
    pub rate_asked: Option<f64>,
    /// Requests started per second.
    pub rate_achieved: f64,
    /// Requests due and never sent: beyond the catch-up limit, or waiting for a free connection at the end.
    pub missed: u64,
    /// Connections to be open at once; the highest number used, if each carries one request at a given rate.
    pub connections_asked: u64,
    /// Highest number of connections open at once.
    pub connections_achieved: u64,
    /// Jain's fairness index of the responses per connection: 1 when all had as many, 1/n when one of n had them all.
    /// `None` with one connection, or with fewer responses than connections.
    pub fairness: Option<f64>,
    /// Share of all CPUs' time taken by the hypervisor (steal), 0 to 1; `None` if the kernel does not report it.
    pub steal_share: Option<f64>,
    /// Time for which CPU quotas throttled the process' control group, over all CPUs; `None` without a quota.
    pub throttled_s: Option<f64>,
    /// TCP segments retransmitted on the sampled connections; `None` without TCP.
    pub retransmits: Option<u64>,
    /// TCP segments sent on the sampled connections.
    pub segments_out: Option<u64>,
    /// Connections that failed because no local port was free.
    pub no_local_port: u64,
    /// Requests taken to be sent; a resent request counts once.
    pub requests_sent: u64,
    /// Responses received.
    #[serde(rename = "answers")]
    pub responses: u64,
    /// Responses after ramp and warm-up, including late ones; `None` during a run, and in results of old versions.
    #[serde(default)]
    pub measured: Option<u64>,
    /// Requests that failed.
    pub failures: u64,
    /// Requests without a response when the run ended.
    pub unfinished: u64,
    /// Unfinished requests whose response came shortly after the end, so that their times are known.
    #[serde(default)]
    pub late: u64,
    /// Requests sent again because the server had not processed them: it closed a kept-alive connection before they
    /// arrived, excluded them in a GOAWAY, or refused their streams (REFUSED_STREAM).
    pub resent: u64,
    /// Resent requests whose streams were refused; they did not wait for a new connection.
    #[serde(default)]
    pub refused: u64,
    /// Requests that failed because nothing arrived in time.
    pub timeouts: u64,
    /// Responses followed by bytes that belong to no request.
    #[serde(default)]
    pub unasked: u64,
    /// Responses that a healthy server would not send, such as error lines of memcached.
    #[serde(default)]
    pub failed_responses: u64,
    /// Responses with a status of 300 or above, or with a gRPC code other than OK, to requests that list no expected statuses.
    #[serde(default)]
    pub unaccepted: u64,
    /// Responses with an unexpected status or body, and failed checks of journeys.
    #[serde(default)]
    pub unexpected: u64,
    /// Responses that belong to another request or to none, such as values of other keys.
    #[serde(default)]
    pub false_responses: u64,
    /// Whether requests = responses + failures + unfinished, and every histogram has the expected count.
    pub is_count_consistent: bool,
    /// 99th percentile of the time from the intended start of a request to its being written; `None` without requests.
    pub send_lag_p99_us: Option<f64>,
    /// Duration of the run.
    pub duration_s: f64,
    /// Time of the last response, in seconds since the start, if requests after it got none.
    #[serde(default)]
    pub answered_until_s: Option<f64>,
    /// Time before that in which there were only errors.
    #[serde(default)]
    pub silent_s: f64,
    /// Longest wait without a response, divided by the longest response time; `None` if every request has a response.
    #[serde(default)]
    pub longest_open: Option<f64>,
    /// Mean response time; `None` without responses.
    #[serde(default)]
    pub response_mean_us: Option<f64>,
    /// Upper bound of the generator's part of percentiles of the response time.
    #[serde(default)]
    pub own: Vec<GeneratorShare>,
    /// Upper bound of the generator's part of the mean response time; `None` if it was not measured.
    #[serde(default)]
    pub own_mean_us: Option<f64>,
    /// Delay of the start after the configured moment; `None` if none was configured.
    #[serde(default)]
    pub start_late_s: Option<f64>,
}

/// The generator's part of a percentile: the percentile minus that of the times without the generator's own delays.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct GeneratorShare {
    /// Percentile, above 0 and below 100.
    pub percentile: f64,
    /// The percentile as measured.
    pub response_us: f64,
    /// Upper bound of the generator's part of it.
    pub own_us: f64,
}

impl GeneratorShare {
    /// Returns the parts for the percentiles that the count of responses supports.
    pub fn of(times: &Times) -> Vec<GeneratorShare> {
        let of = |(percentile, ns)| GeneratorShare {
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

    /// The generator's share of the percentile.
    pub fn share(&self) -> f64 {
        self.own_us / self.response_us.max(f64::MIN_POSITIVE)
    }
}

/// Facts of one thread of the generator.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct ThreadEvidence {
    /// Share of the run during which the thread was on a CPU, 0 to 1; if it busy-polls, during which it had work.
    pub cpu_share: f64,
    /// Share of the run during which the thread was ready and waited for a CPU, 0 to 1.
    pub run_delay_share: f64,
    /// Involuntary context switches.
    pub involuntary_switches: u64,
    /// Longest delay in noticing an event: a turn between two polls of the kernel, or a wait that ended late.
    pub longest_turn_us: f64,
    /// Share of the run, 0 to 1, spent in delays of 20 ms and more during which the thread noticed nothing.
    #[serde(default)]
    pub stalled_share: f64,
}
