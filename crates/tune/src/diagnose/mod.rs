//! Finds the bottleneck under load from two readings of kernel counters. Pure.

mod busy;
mod conclusion;
mod counted;
mod disk;
mod link;
mod program;
mod queue;
mod socket;
mod table;

use std::collections::BTreeMap;

use serde::Serialize;

use crate::facts::{Counts, CpuTime, Facts, Sample, Softnet};
use onrush_machine::cpus::CpuSet;

/// Exhausted resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Limiter {
    /// One CPU handles packets and is full, while others are idle.
    OneCpuOfSoftirq,
    /// Every CPU that handles packets is full.
    Softirq,
    /// The CPUs that run programs are full.
    Application,
    /// The cloud provider limits packets or bytes.
    Allowance,
    /// The receive ring of the device overflowed.
    Ring,
    /// Backlog queues of CPUs overflowed under packet steering.
    Backlog,
    /// Accept queues overflowed.
    AcceptQueue,
    /// Packets were lost on the network.
    Loss,
    /// The hypervisor stole CPU time.
    Steal,
    /// The control group used up its CPU quota.
    Quota,
    /// The connection tracking table was full.
    Conntrack,
    /// TCP memory was exhausted.
    Memory,
    /// Local ports or TIME-WAIT buckets were exhausted.
    Ports,
    /// A link or its queueing discipline was full.
    Link,
    /// The network path to the peers was full.
    Network,
    /// Tasks were stalled on a disk.
    Disk,
    /// UDP socket buffers were full.
    UdpBuffers,
    /// A neighbour table was full.
    Neighbours,
    /// Other programs filled the CPUs of the given process.
    OtherPrograms,
    /// Pacing without a discipline that paces.
    Pacing,
    /// The process reached its limit of open files, and so of connections.
    Files,
    /// Nothing was full while clients sent requests: they did not send more.
    Client,
    /// Nothing was full.
    Elsewhere,
    /// Nothing was found full, but a needed reading is missing or ambiguous.
    CannotKnow,
}

/// Confidence of a finding. From counters: high requires 10 events, one per second, and a share of the possible events
/// that affects every measurement; fewer than 3 events, fewer than one in 10 seconds, or a tenth of that share are low.
/// From CPU load: high requires 98 % of a CPU for 2 seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Confidence {
    /// Counted by the kernel, often enough.
    High,
    /// Explains the observations.
    Medium,
    /// Possible.
    Low,
}

/// A limiter with evidence.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    /// Exhausted resource.
    pub limiter: Limiter,
    /// Confidence.
    pub confidence: Confidence,
    /// Evidence, as a sentence.
    pub evidence: String,
    /// Remedy.
    pub remedy: String,
}

/// Time of a CPU by mode between two readings, as shares.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Load {
    /// Not idle; iowait is idle.
    pub busy: f64,
    /// Interrupts and softirqs.
    pub interrupts: f64,
    /// Stolen by the hypervisor.
    pub steal: f64,
    /// Idle while a task waits for I/O.
    pub iowait: f64,
}

/// Load of each CPU between two readings, without CPUs whose counters did not change.
pub fn loads(before: &Counts, after: &Counts) -> BTreeMap<usize, Load> {
    let load = |(cpu, now): (&usize, &CpuTime)| {
        let then = before.cpus.get(cpu).copied().unwrap_or_default();
        let total = now.total().saturating_sub(then.total());
        let share = |now: u64, then: u64| now.saturating_sub(then) as f64 / total as f64;
        let load = Load {
            busy: (1.0 - share(now.idle, then.idle) - share(now.iowait, then.iowait))
                .clamp(0.0, 1.0),
            interrupts: share(now.interrupts, then.interrupts),
            steal: share(now.steal, then.steal),
            iowait: share(now.iowait, then.iowait),
        };
        (total > 0).then_some((*cpu, load))
    };
    after.cpus.iter().filter_map(load).collect()
}

/// Finds the limiters between two readings, by descending confidence; never empty.
pub fn judge(facts: &Facts, before: &Counts, after: &Counts) -> Vec<Finding> {
    let case = Case {
        facts,
        before,
        after,
        loads: loads(before, after),
    };
    // Causes come before their effects.
    let mut findings: Vec<Finding> = [
        // A stopped program has no other limiter.
        case.stopped(),
        case.allowance(),
        case.quota(),
        case.other_programs(),
        case.restricted_to_full_cpus(),
        case.cpus(),
        case.files(),
        case.thread(),
        case.shares_packet_cpus(),
        case.tracked(),
        case.neighbours(),
        case.ports(),
        case.ring(),
        case.backlog(),
        case.udp_buffers(),
        case.memory(),
        case.link(),
        case.disk(),
        case.accept_queue(),
        case.steal(),
        case.loss(),
        case.network(),
        case.unaccepted(),
        case.pacing(),
    ]
    .into_iter()
    .flatten()
    .collect();
    follow(&mut findings);
    if findings
        .iter()
        .all(|finding| finding.confidence == Confidence::Low)
    {
        // The conclusion comes before findings that are only possible.
        findings.splice(0..0, case.conclusion());
    }
    findings.sort_by_key(|finding| finding.confidence);
    findings
}

/// Lowers the confidence of an effect to that of its cause, so that the cause comes first.
fn follow(findings: &mut [Finding]) {
    use Limiter::{
        AcceptQueue, Application, Disk, Link, Loss, OneCpuOfSoftirq, OtherPrograms, Quota, Ring,
        Softirq,
    };
    for at in 0..findings.len() {
        let causes: &[Limiter] = match findings[at].limiter {
            Loss => &[Link, Ring, OneCpuOfSoftirq, Softirq],
            AcceptQueue => &[Application, OtherPrograms, Quota, Disk],
            _ => continue,
        };
        // An application that is only likely to be slow may be inferred from the same queue; a full CPU is a cause.
        let is_cause = |finding: &&Finding| {
            causes.contains(&finding.limiter)
                && (finding.limiter != Application || finding.confidence == Confidence::High)
        };
        let cause = findings
            .iter()
            .filter(is_cause)
            .map(|finding| finding.confidence)
            .filter(|confidence| *confidence < Confidence::Low)
            .min();
        if let Some(cause) = cause {
            findings[at].confidence = findings[at].confidence.max(cause);
        }
    }
}

/// Share of samples that makes a queue a standing one.
const MOST_SAMPLES: f64 = 0.75;
/// Fewer events may be chance.
const EVENTS_SURE: u64 = 10;
/// Events per second; rarer ones affect few measurements.
const RATE_SURE: f64 = 1.0;
/// Fewer events are not evidence.
const EVENTS_LIKELY: u64 = 3;
/// Events per second; rarer ones are not evidence.
const RATE_LIKELY: f64 = 0.1;

struct Case<'here> {
    facts: &'here Facts,
    before: &'here Counts,
    after: &'here Counts,
    loads: BTreeMap<usize, Load>,
}

fn finding(
    limiter: Limiter,
    confidence: Confidence,
    evidence: String,
    remedy: &str,
) -> Option<Finding> {
    Some(Finding {
        limiter,
        confidence,
        evidence,
        remedy: remedy.to_owned(),
    })
}

fn named(cpus: &CpuSet) -> String {
    let kind = if cpus.len() == 1 { "CPU" } else { "CPUs" };
    format!("{kind} {cpus}")
}

/// `CPU 3 is`, `CPUs 0-7 are`
fn are(cpus: &CpuSet) -> String {
    let verb = if cpus.len() == 1 { "is" } else { "are" };
    format!("{} {verb}", named(cpus))
}

/// `eth0 rx_missed_errors by 17`
fn listed(grown: &[(&str, &str, u64)]) -> String {
    let line = |(name, counter, by): &(&str, &str, u64)| format!("{name} {counter} by {by}");
    grown.iter().map(line).collect::<Vec<_>>().join(", ")
}

impl Case<'_> {
    /// Seconds between the readings; 0 if unknown.
    fn seconds(&self) -> f64 {
        (self.after.uptime - self.before.uptime).max(0.0)
    }

    /// Confidence from `events` of `possible` (0 if unknown), where a share of `telling` affects every measurement.
    fn confidence(&self, events: u64, possible: u64, telling: f64) -> Confidence {
        let seconds = self.seconds();
        let rate = if seconds > 0.0 {
            events as f64 / seconds
        } else {
            f64::INFINITY
        };
        let share = if possible > 0 {
            events as f64 / possible as f64
        } else {
            f64::INFINITY
        };
        if events >= EVENTS_SURE && rate >= RATE_SURE && share >= telling {
            return Confidence::High;
        }
        match events < EVENTS_LIKELY || rate < RATE_LIKELY || share < telling / 10.0 {
            true => Confidence::Low,
            false => Confidence::Medium,
        }
    }

    /// Share of the samples that satisfy a condition, without samples that were not read; `None` if none was.
    fn share_of_samples(&self, is_so: impl Fn(&Sample) -> Option<bool>) -> Option<f64> {
        let known: Vec<bool> = self.after.samples.iter().filter_map(is_so).collect();
        let times = known.iter().filter(|is_so| **is_so).count();
        (!known.is_empty()).then(|| times as f64 / known.len() as f64)
    }

    fn grew(&self, name: &str) -> u64 {
        let count = |counts: &Counts| counts.network.get(name).copied().unwrap_or(0);
        count(self.after).saturating_sub(count(self.before))
    }

    /// Counters of interfaces that grew: `eth0`, `rx_missed_errors`, 17.
    fn grown(&self, is_meant: impl Fn(&str) -> bool) -> Vec<(&str, &str, u64)> {
        let mut grown = Vec::new();
        for (name, counters) in &self.after.interfaces {
            let then = self.before.interfaces.get(name);
            for (counter, now) in counters.iter().filter(|(counter, _)| is_meant(counter)) {
                let then = then
                    .and_then(|counters| counters.get(counter))
                    .copied()
                    .unwrap_or(0);
                if *now > then {
                    grown.push((name.as_str(), counter.as_str(), now - then));
                }
            }
        }
        grown
    }

    fn softnet(&self, part: fn(&Softnet) -> u64) -> u64 {
        let sum = |counts: &Counts| {
            counts
                .softnet
                .values()
                .map(part)
                .fold(0, u64::saturating_add)
        };
        sum(self.after).saturating_sub(sum(self.before))
    }
}

#[cfg(test)]
mod tests;
