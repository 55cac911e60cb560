//! What the kernel counts by itself: drops, refusals, and time that others took.

use std::collections::BTreeSet;

use super::{Case, Confidence, Finding, Limiter, finding, listed};
use crate::facts::interface::allowance;

/// A share of CPU time that others took which shows in every figure.
const STEAL: f64 = 0.02;
/// A share of packets sent again which shows in the slowest answers.
pub(super) const LOSS: f64 = 0.001;

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
            Confidence::High,
            format!(
                "{} exceeded: the provider held packets back ({})",
                kinds.into_iter().collect::<Vec<_>>().join(", "),
                listed(&grown)
            ),
            "no setting moves this: a larger machine, or a further interface where each has its own allowance",
        )
    }

    pub(super) fn ring(&self) -> Option<Finding> {
        let grown = self.grown(|counter| {
            ["rx_missed_errors", "rx_fifo_errors", "rx_over_errors"].contains(&counter)
        });
        (!grown.is_empty()).then_some(())?;
        finding(
            Limiter::Ring,
            Confidence::High,
            format!("the device had no room for packets: {}", listed(&grown)),
            "a CPU of its own for each queue's interrupts first, larger rings then (onrush tune plan)",
        )
    }

    pub(super) fn backlog(&self) -> Option<Finding> {
        let dropped = self.softnet(|row| row.dropped);
        (dropped > 0).then_some(())?;
        finding(
            Limiter::Backlog,
            Confidence::High,
            format!(
                "{dropped} packets were dropped on their way from one CPU to another (softnet_stat, second column)"
            ),
            "net.core.netdev_max_backlog, or more CPUs to steer to",
        )
    }

    pub(super) fn quota(&self) -> Option<Finding> {
        let times = self.after.throttled.saturating_sub(self.before.throttled);
        (times > 0).then_some(())?;
        finding(
            Limiter::Quota,
            Confidence::High,
            format!(
                "this control group was stopped {times} times because its share of CPU time was used up"
            ),
            "a larger cpu.max, or fewer threads",
        )
    }

    pub(super) fn conntrack(&self) -> Option<Finding> {
        let number = |name: &str| self.facts.system.setting(name)?.parse::<u64>().ok();
        let count = number("net/netfilter/nf_conntrack_count")?;
        let most = number("net/netfilter/nf_conntrack_max")?;
        (count as f64 >= most as f64 * 0.95).then_some(())?;
        finding(
            Limiter::Conntrack,
            Confidence::High,
            format!(
                "{count} of {most} connections are tracked: new ones are dropped when the table is full"
            ),
            "rules that do not track the service's connections (notrack), or nf_conntrack_max and its hash size",
        )
    }

    pub(super) fn memory(&self) -> Option<Finding> {
        let times = self
            .grew("TcpExtTCPMemoryPressures")
            .saturating_add(self.grew("TcpExtTCPAbortOnMemory"));
        (times > 0).then_some(())?;
        finding(
            Limiter::Memory,
            Confidence::High,
            format!("TCP ran out of memory {times} times"),
            "net.ipv4.tcp_mem, or smaller buffers for each connection",
        )
    }

    pub(super) fn ports(&self) -> Option<Finding> {
        let waiting = self.grew("TcpExtTCPTimeWaitOverflow");
        (waiting > 0).then_some(())?;
        finding(
            Limiter::Ports,
            Confidence::Medium,
            format!("{waiting} closed connections had no place to wait (TCPTimeWaitOverflow)"),
            "connections that are kept open; net.ipv4.tcp_max_tw_buckets and ip_local_port_range where they cannot be",
        )
    }

    pub(super) fn steal(&self) -> Option<Finding> {
        let total: f64 = self.loads.values().map(|load| load.steal).sum();
        let share = total / self.loads.len().max(1) as f64;
        (share > STEAL).then_some(())?;
        finding(
            Limiter::Steal,
            Confidence::High,
            format!(
                "others on the same hardware took {:.0} % of the CPU time",
                share * 100.0
            ),
            "another machine, or a dedicated one: no figure measured beside others repeats",
        )
    }

    pub(super) fn loss(&self) -> Option<Finding> {
        let (again, sent) = (self.grew("TcpRetransSegs"), self.grew("TcpOutSegs"));
        (again as f64 > sent as f64 * LOSS && again > 10).then_some(())?;
        finding(
            Limiter::Loss,
            Confidence::Medium,
            format!(
                "{again} of {sent} segments were sent again: each makes an answer wait for 200 ms or more"
            ),
            "the drops of the devices between; on one machine, its own rings and backlogs",
        )
    }

    /// Packets that were dropped here for any reason.
    pub(super) fn dropped(&self) -> u64 {
        let of_devices = self.grown(|counter| ["rx_dropped", "tx_dropped"].contains(&counter));
        let of_sockets = [
            "TcpExtTCPBacklogDrop",
            "TcpExtTCPRcvQDrop",
            "UdpRcvbufErrors",
        ];
        let devices = of_devices.iter().map(|(.., by)| *by);
        let sockets = of_sockets.iter().map(|name| self.grew(name));
        devices.chain(sockets).fold(0, u64::saturating_add)
    }
}
