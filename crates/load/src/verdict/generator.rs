//! Reasons against a run that lie with the generator and its machine.

use onrush_measure::units;

use super::reason::{NewReason, Reason, invalid, per_cent, suspect};
use crate::limits::{
    BUSY_DURATION_MIN, CONNECTIONS_SHARE_MIN, CPU_SHARE_INVALID, CPU_SHARE_SUSPECT, FAIRNESS_MIN,
    MISSED_SHARE_INVALID, OWN_MIN_US, OWN_PERCENTILE_INVALID, OWN_SHARE_INVALID, OWN_SHARE_SUSPECT,
    RATE_MISSED_SHARE, RETRANSMIT_SHARE_MAX, SEGMENTS_MIN, STALLED_SHARE_INVALID,
    STALLED_SHARE_SUSPECT, START_LATE_MAX, STEAL_SHARE_MAX, THROTTLED_SHARE_MAX,
};
use crate::record::evidence::{Evidence, GeneratorShare, ThreadEvidence};

/// Largest value of `figure` among the threads; `None` in a run that is too short for shares of its time.
pub(super) fn worst(evidence: &Evidence, figure: fn(&ThreadEvidence) -> f64) -> Option<f64> {
    if evidence.duration_s < BUSY_DURATION_MIN.as_secs_f64() {
        return None;
    }
    evidence.threads.iter().map(figure).reduce(f64::max)
}

pub(super) fn start(evidence: &Evidence) -> Option<Reason> {
    let late = evidence.start_late_s?;
    (late > START_LATE_MAX.as_secs_f64()).then(|| {
        suspect(
            "the run started after its scheduled time (--start-at)",
            format!("{late:.3} s"),
            format!("at most {} ms", START_LATE_MAX.as_millis()),
            "its connections were not opened in time: set --start-at further ahead, and check what delays the \
             connections",
        )
    })
}

/// A thread that never sleeps measures its own queue. In a closed loop this limits the rate, and the figures are valid
/// for that rate. In an open loop requests are sent late, and the load is not the configured one.
pub(super) fn cpu(evidence: &Evidence) -> Option<Reason> {
    let share = worst(evidence, |thread| thread.cpu_share)?;
    let remedy = "use more threads (-t) on CPUs of their own (--cpus), or a lower rate";
    if evidence.rate_asked.is_some() && share >= CPU_SHARE_INVALID {
        return Some(invalid(
            "the generator was the limit: CPU of its busiest thread",
            per_cent(share),
            format!("below {} at a set rate", per_cent(CPU_SHARE_INVALID)),
            remedy,
        ));
    }
    let bound = match evidence.rate_asked {
        Some(_) => CPU_SHARE_SUSPECT,
        None => CPU_SHARE_INVALID,
    };
    (share >= bound).then(|| {
        suspect(
            "the generator was the limit: CPU of its busiest thread",
            per_cent(share),
            format!("below {}", per_cent(bound)),
            remedy,
        )
    })
}

pub(super) fn rate(evidence: &Evidence) -> Option<Reason> {
    let asked = evidence.rate_asked.filter(|asked| *asked > 0.0)?;
    let due = asked * evidence.duration_s;
    let missed_share = evidence.missed as f64 / due.max(1.0);
    if missed_share > MISSED_SHARE_INVALID {
        return Some(invalid(
            "scheduled requests that were never sent",
            format!(
                "{} ({})",
                units::count(evidence.missed),
                per_cent(missed_share)
            ),
            format!("at most {}", per_cent(MISSED_SHARE_INVALID)),
            "the percentiles do not include them: use more threads (-t) or connections (-c), or a lower rate",
        ));
    }
    let short = 1.0 - evidence.rate_achieved / asked;
    // Requests in flight at the end were not late: at most one per connection. One more may be due just at the end.
    let in_flight = evidence.connections_asked.max(2) as f64 / due.max(1.0);
    (short > RATE_MISSED_SHARE.max(in_flight)).then(|| {
        suspect(
            "requests per second started",
            format!("{:.0} of {:.0} requested", evidence.rate_achieved, asked),
            format!("at most {} fewer", per_cent(RATE_MISSED_SHARE)),
            "the wait of those that started late is part of their latency: use more connections (-c), or treat the \
             result as the target's limit",
        )
    })
}

/// A thread that waits for a CPU notices nothing, and delays its requests in flight. The delay is measured for each
/// request ([`Evidence::own_mean_us`]). For results without it, the share of time is used as the share of the mean
/// response time, divided by the mean number of requests in flight if that is below one.
pub(super) fn run_delay(evidence: &Evidence) -> Option<Reason> {
    let share = worst(evidence, |thread| thread.run_delay_share)?;
    let mean_us = evidence.response_mean_us?;
    let under_way = evidence.responses as f64 * mean_us / 1e6 / evidence.duration_s;
    let of_mean = match evidence.own_mean_us {
        Some(own_us) => own_us / mean_us.max(f64::MIN_POSITIVE),
        // Older results lack the generator's own part of each request.
        None => (share / under_way.clamp(f64::MIN_POSITIVE, 1.0)).min(1.0),
    };
    let exceeds = |bound: f64| share > bound || (of_mean > bound && of_mean * mean_us > OWN_MIN_US);
    let reason = |judge: NewReason, bound: f64| {
        judge(
            "a runnable thread waited for a CPU",
            format!(
                "{} of the time, up to {} of the mean response time",
                per_cent(share),
                per_cent(of_mean)
            ),
            format!("at most {}", per_cent(bound)),
            "give the generator CPUs of its own (--cpus), apart from the server's",
        )
    };
    match () {
        () if exceeds(OWN_SHARE_INVALID) => Some(reason(invalid, OWN_SHARE_INVALID)),
        () if exceeds(OWN_SHARE_SUSPECT) => Some(reason(suspect, OWN_SHARE_SUSPECT)),
        () => None,
    }
}

/// The generator's part of percentiles: sending late despite a free connection, and responses that waited to be read.
pub(super) fn own(evidence: &Evidence) -> Option<Reason> {
    if evidence.duration_s < BUSY_DURATION_MIN.as_secs_f64() {
        return None;
    }
    let exceeds =
        |part: &&GeneratorShare, bound: f64| part.share() > bound && part.own_us > OWN_MIN_US;
    let worst = |parts: Vec<&GeneratorShare>| {
        parts
            .into_iter()
            .max_by(|one, other| one.share().total_cmp(&other.share()))
            .copied()
    };
    let wrong = evidence.own.iter().filter(|part| {
        part.percentile <= OWN_PERCENTILE_INVALID && exceeds(part, OWN_SHARE_INVALID)
    });
    let doubtful = evidence
        .own
        .iter()
        .filter(|part| exceeds(part, OWN_SHARE_SUSPECT));
    let reason = |judge: NewReason, part: GeneratorShare, bound: f64| {
        let time = |us: f64| units::nanoseconds(us * 1000.0);
        judge(
            "the generator's own part of the response time",
            format!(
                "up to {} of p{}, {} of {}",
                per_cent(part.share()),
                units::percentile(part.percentile),
                time(part.own_us),
                time(part.response_us)
            ),
            format!("at most {}", per_cent(bound)),
            "it sent or read late, because it was stopped, had no CPU or too much work: give it CPUs of its own \
             (--cpus) or more threads (-t)",
        )
    };
    if let Some(part) = worst(wrong.collect()) {
        return Some(reason(invalid, part, OWN_SHARE_INVALID));
    }
    worst(doubtful.collect()).map(|part| reason(suspect, part, OWN_SHARE_SUSPECT))
}

pub(super) fn stalls(evidence: &Evidence) -> Option<Reason> {
    let share = worst(evidence, |thread| thread.stalled_share)?;
    let longest = worst(evidence, |thread| thread.longest_turn_us)?;
    let (judge, bound): (NewReason, f64) = match share {
        share if share > STALLED_SHARE_INVALID => (invalid, STALLED_SHARE_INVALID),
        share if share > STALLED_SHARE_SUSPECT => (suspect, STALLED_SHARE_SUSPECT),
        _ => return None,
    };
    Some(judge(
        "a thread of the generator was stalled",
        format!(
            "{} of the run, {} at a time",
            per_cent(share),
            units::nanoseconds(longest * 1000.0)
        ),
        format!("at most {}", per_cent(bound)),
        "it was stopped or had no CPU, and sent no load meanwhile: keep it running, on CPUs of its own (--cpus)",
    ))
}

pub(super) fn connections(evidence: &Evidence) -> Option<Reason> {
    let (asked, achieved) = (evidence.connections_asked, evidence.connections_achieved);
    let is_short = (achieved as f64) < asked as f64 * CONNECTIONS_SHARE_MIN;
    (asked > 0 && is_short).then(|| {
        suspect(
            "connections open at the same time",
            format!("{} of {}", units::count(achieved), units::count(asked)),
            format!("at least {}", per_cent(CONNECTIONS_SHARE_MIN)),
            "the load used fewer connections than requested: see the errors, and the target's limit on connections",
        )
    })
}

pub(super) fn ports(evidence: &Evidence) -> Option<Reason> {
    (evidence.no_local_port > 0).then(|| {
        suspect(
            "connections without a free local port",
            units::count(evidence.no_local_port),
            "none".to_owned(),
            "use keep-alive connections, widen net.ipv4.ip_local_port_range, or use more source addresses",
        )
    })
}

pub(super) fn fairness(evidence: &Evidence) -> Option<Reason> {
    let fairness = evidence.fairness?;
    (fairness < FAIRNESS_MIN).then(|| {
        suspect(
            "responses were distributed unevenly over the connections: Jain's index",
            format!("{fairness:.2}"),
            format!("at least {FAIRNESS_MIN:.2}"),
            "some connections had hardly any responses: check the target's threads and its limits per connection",
        )
    })
}

pub(super) fn steal(evidence: &Evidence) -> Option<Reason> {
    let share = evidence.steal_share?;
    (share > STEAL_SHARE_MAX).then(|| {
        suspect(
            "the hypervisor gave this machine's CPU time to others",
            per_cent(share),
            format!("at most {}", per_cent(STEAL_SHARE_MAX)),
            "measure again when the host is idle, or on a dedicated machine",
        )
    })
}

pub(super) fn throttling(evidence: &Evidence) -> Option<Reason> {
    let throttled = evidence.throttled_s.filter(|_| evidence.duration_s > 0.0)?;
    let share = throttled / evidence.duration_s;
    (share > THROTTLED_SHARE_MAX).then(|| {
        suspect(
            "the control group's CPU quota throttled the generator",
            format!("{throttled:.2} s, {} of the run", per_cent(share)),
            format!("at most {}", per_cent(THROTTLED_SHARE_MAX)),
            "raise the quota (cpu.max; in Kubernetes the CPU limit) or use fewer threads",
        )
    })
}

pub(super) fn retransmits(evidence: &Evidence) -> Option<Reason> {
    let (again, out) = (evidence.retransmits?, evidence.segments_out?);
    let share = again as f64 / out.max(1) as f64;
    (out >= SEGMENTS_MIN && share > RETRANSMIT_SHARE_MAX).then(|| {
        suspect(
            "retransmitted TCP segments",
            format!("{} of {}", units::count(again), units::count(out)),
            format!("at most {}", per_cent(RETRANSMIT_SHARE_MAX)),
            "the network lost packets, and each loss cost 200 ms or more: check for drops (ip -s link, nstat) before \
             relying on high percentiles",
        )
    })
}
