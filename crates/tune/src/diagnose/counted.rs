//! Limiters found in the kernel's counters: drops, refusals, stolen time.

use std::collections::BTreeSet;

use super::busy::FULL;
use super::{Case, Confidence, Finding, Limiter, Load, finding, listed};
use crate::facts::Group;
use crate::facts::interface::allowance;

/// Share of stolen CPU time that affects every measurement.
const STEAL: f64 = 0.02;
/// Share of stolen time that matters even on idle CPUs.
const STEAL_SURE: f64 = 0.1;
/// Share of packets retransmitted, dropped or delayed that affects the slowest responses.
pub(super) const LOSS: f64 = 0.001;
/// Share of retransmitted segments above which loss is more than the effect of a full queue.
const LOSS_SURE: f64 = 0.02;
/// Share of throttled periods of a control group that affects the slowest responses: each one is a wait of up to a
/// period, 100 ms by default.
const STOPPED: f64 = 0.05;

impl Case<'_> {
    pub(super) fn allowance(&self) -> Option<Finding> {
        let grown = self.grown(|counter| allowance(counter).is_some());
        (!grown.is_empty()).then_some(())?;
        let kinds: BTreeSet<&str> = grown
            .iter()
            .filter_map(|(_, counter, _)| allowance(counter))
            .collect();
        finding(
            Limiter::Allowance,
            self.confidence(sum(&grown), self.packets(), LOSS),
            format!(
                "{} exceeded: the provider delayed or dropped packets ({})",
                kinds.into_iter().collect::<Vec<_>>().join(", "),
                listed(&grown)
            ),
            "no setting changes this: a larger machine, or a further interface where each has its own allowance",
        )
    }

    pub(super) fn ring(&self) -> Option<Finding> {
        let grown = self.grown(|counter| {
            ["rx_missed_errors", "rx_fifo_errors", "rx_over_errors"].contains(&counter)
        });
        (!grown.is_empty()).then_some(())?;
        finding(
            Limiter::Ring,
            self.confidence(sum(&grown), self.packets(), LOSS),
            format!(
                "the device dropped packets for lack of ring space: {}",
                listed(&grown)
            ),
            "first one CPU per queue for its interrupts, then larger rings (onrush tune plan)",
        )
    }

    pub(super) fn backlog(&self) -> Option<Finding> {
        let dropped = self.softnet(|row| row.dropped);
        (dropped > 0).then_some(())?;
        finding(
            Limiter::Backlog,
            self.confidence(dropped, self.softnet(|row| row.processed), LOSS),
            format!("{dropped} packets were dropped between CPUs (softnet_stat, second column)"),
            "a larger net.core.netdev_max_backlog, or more CPUs to steer to",
        )
    }

    /// The group throttled most often between the readings. Each group has its own counters, so ancestors are checked
    /// like the process's group.
    pub(super) fn quota(&self) -> Option<Finding> {
        let grown = |group: &Group| {
            let then = self.before.groups.iter().find(|old| old.path == group.path);
            let (throttled, periods) = then.map_or((0, 0), |old| (old.throttled, old.periods));
            let throttled = group.throttled.saturating_sub(throttled);
            (
                throttled,
                group.periods.saturating_sub(periods).max(throttled),
            )
        };
        let groups = self.after.groups.iter().map(|group| (grown(group), group));
        let ((times, periods), group) = groups.max_by_key(|((times, _), _)| *times)?;
        (times > 0).then_some(())?;
        let may = group
            .cpus()
            .map(|cpus| format!(", which may use {cpus:.2} CPUs,"))
            .unwrap_or_default();
        finding(
            Limiter::Quota,
            self.confidence(times, periods, STOPPED),
            format!(
                "control group {}{may} was stopped in {times} of {periods} periods because its CPU quota was used up",
                group.path
            ),
            &format!(
                "a larger quota ({}, CPUQuota in its unit, limits.cpu of its pod), or fewer threads",
                group.quota_files()
            ),
        )
    }

    pub(super) fn memory(&self) -> Option<Finding> {
        let pressures = self.grew("TcpExtTCPMemoryPressures");
        let aborted = self.grew("TcpExtTCPAbortOnMemory");
        (pressures > 0 || aborted > 0).then_some(())?;
        // Pressure only shrinks buffers; resets lose connections.
        let confidence = match aborted {
            0 => Confidence::Medium,
            _ => self.confidence(aborted, 0, 0.0).min(Confidence::Medium),
        };
        finding(
            Limiter::Memory,
            confidence,
            format!(
                "TCP's memory came under pressure {pressures} times, and {aborted} connections were reset for lack of \
                 memory"
            ),
            "a larger net.ipv4.tcp_mem (pressure begins at its middle number), or smaller buffers per connection",
        )
    }

    pub(super) fn steal(&self) -> Option<Finding> {
        let total: f64 = self.loads.values().map(|load| load.steal).sum();
        let share = total / self.loads.len().max(1) as f64;
        (share > STEAL).then_some(())?;
        // A small share limits only full CPUs.
        let is_full = |load: &Load| load.busy >= FULL;
        let confidence = match self.loads.values().all(is_full) {
            _ if share >= STEAL_SURE => Confidence::High,
            true => Confidence::Medium,
            false => Confidence::Low,
        };
        finding(
            Limiter::Steal,
            confidence,
            format!(
                "other guests on the same hardware took {:.0} % of the CPU time (steal)",
                share * 100.0
            ),
            "another machine, or a dedicated one: results measured beside other guests do not repeat",
        )
    }

    pub(super) fn loss(&self) -> Option<Finding> {
        let (again, sent) = (self.grew("TcpRetransSegs"), self.grew("TcpOutSegs"));
        (again as f64 > sent as f64 * LOSS && again > 10).then_some(())?;
        let timeouts = self.grew("TcpExtTCPTimeouts");
        // A full queue on the path drops some packets when TCP probes for bandwidth.
        let is_little = (again as f64) < sent as f64 * LOSS_SURE;
        let confidence = match is_little && self.network().is_some() {
            true => Confidence::Low,
            false => self.confidence(again, sent, LOSS).max(Confidence::Medium),
        };
        finding(
            Limiter::Loss,
            confidence,
            format!(
                "{again} of {sent} segments were retransmitted, {timeouts} times after a timeout, which is a wait of \
                 200 ms or more; losses that acknowledgements reveal are retransmitted within about a round trip"
            ),
            "check the drops of the devices between the machines; on one machine, its own rings and backlogs",
        )
    }

    fn packets(&self) -> u64 {
        sum(&self.grown(|counter| ["rx_packets", "tx_packets"].contains(&counter)))
    }

    pub(super) fn dropped(&self) -> u64 {
        let of_devices = self.grown(|counter| ["rx_dropped", "tx_dropped"].contains(&counter));
        let of_sockets = [
            "TcpExtTCPBacklogDrop",
            "TcpExtTCPRcvQDrop",
            "UdpRcvbufErrors",
            "Udp6RcvbufErrors",
        ];
        let devices = of_devices.iter().map(|(.., by)| *by);
        let sockets = of_sockets.iter().map(|name| self.grew(name));
        devices.chain(sockets).fold(0, u64::saturating_add)
    }
}

fn sum(grown: &[(&str, &str, u64)]) -> u64 {
    let by = grown.iter().map(|(.., by)| *by);
    by.fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnose::judge;
    use crate::facts::cgroup::Group;
    use crate::facts::{Counts, Facts};
    use onrush_machine::cgroup::Version;

    #[test]
    fn throttled_parent_cgroup_is_reported_with_quota() {
        let group = |path: &str, periods: u64, throttled: u64| Group {
            path: path.to_owned(),
            quota: Some((50_000, 100_000)),
            periods,
            throttled,
            version: Version::Two,
        };
        let counts = |groups: [Group; 2]| Counts {
            groups: groups.into(),
            ..Counts::default()
        };
        let before = counts([group("/a/b", 100, 1), group("/a", 100, 50)]);
        let after = counts([group("/a/b", 148, 1), group("/a", 148, 98)]);
        let findings = judge(&Facts::default(), &before, &after);
        assert_eq!(
            (findings[0].confidence, findings[0].evidence.as_str()),
            (
                Confidence::High,
                "control group /a, which may use 0.50 CPUs, was stopped in 48 of 48 periods because its CPU quota \
                 was used up"
            )
        );
        assert_eq!(
            judge(&Facts::default(), &after, &after)[0].limiter,
            Limiter::Elsewhere
        );
    }

    #[test]
    fn quota_advice_matches_cgroup_version() {
        for (version, expected) in [
            (
                Version::One,
                "a larger quota (cpu.cfs_quota_us in each cpu.cfs_period_us, CPUQuota in its unit, ",
            ),
            (
                Version::Two,
                "a larger quota (cpu.max, CPUQuota in its unit, ",
            ),
        ] {
            let group = Group {
                path: "/a".to_owned(),
                quota: Some((50_000, 100_000)),
                periods: 48,
                throttled: 48,
                version,
            };
            let after = Counts {
                groups: vec![group],
                ..Counts::default()
            };
            let findings = judge(&Facts::default(), &Counts::default(), &after);
            assert!(findings[0].remedy.starts_with(expected), "{findings:?}");
        }
    }
}
