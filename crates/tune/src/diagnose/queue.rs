//! Queues of connections and packets at sockets and devices.

use std::collections::BTreeSet;

use super::{Case, Confidence, Finding, Limiter, finding};
use crate::facts::Counts;
use crate::facts::Interface;
use crate::facts::listening::{Port, ports};

/// Backlogs below this are probably defaults: nginx uses 511, and many languages pass 128 to listen() by default.
const BACKLOG_SMALL: u64 = 511;
/// Share of dropped connection attempts that affects the slowest responses: each is retried after one second.
const TURNED_AWAY: f64 = 0.001;
/// Queueing discipline that paces, so that TCP need not.
const PACER: &str = "fq";
/// Maximum number of ports in the evidence, the worst first.
const PORTS_SHOWN: usize = 5;

impl Case<'_> {
    pub(super) fn accept_queue(&self) -> Option<Finding> {
        let (overflows, cookies) = (
            self.grew("TcpExtListenOverflows"),
            self.grew("TcpExtTCPReqQFullDoCookies"),
        );
        (overflows > 0 || cookies > 0).then_some(())?;
        let ports = self.queues();
        let accepted = self.grew("TcpPassiveOpens");
        let times = overflows.saturating_add(cookies);
        let what = match overflows {
            0 => "the queue of handshakes in progress was full",
            _ => "the accept queue was full",
        };
        finding(
            Limiter::AcceptQueue,
            self.confidence(times, accepted.saturating_add(times), TURNED_AWAY),
            format!(
                "{what}: ListenOverflows {overflows}, TCPReqQFullDoCookies {cookies}{}",
                self.waiting(&ports)
            ),
            &format!(
                "a program that accepts faster, a larger backlog in its listen(), and net.core.somaxconn above that{}",
                self.small(&ports)
            ),
        )
    }

    /// Ports with waiting or dropped connections, of the process or of all.
    fn queues(&self) -> Vec<Port> {
        let sockets = |counts: &'_ Counts| match &counts.process {
            Some(process) => process.listening.clone(),
            None => counts.listening.clone(),
        };
        let mut ports = ports(&sockets(self.before), &sockets(self.after));
        ports.retain(|port| port.waiting > 0 || port.dropped > 0);
        ports.truncate(PORTS_SHOWN);
        ports
    }

    /// `129 of 128 wait at port 8080, 17 dropped`
    fn waiting(&self, ports: &[Port]) -> String {
        let words = |port: &Port| {
            let most = port.limit.map(|limit| format!(" of {limit}"));
            let whose = match (port.sockets, port.full) {
                (1, _) => String::new(),
                (sockets, 0) => format!("the {sockets} sockets of "),
                (sockets, full) => format!("the {sockets} sockets ({full} full) of "),
            };
            let dropped = match port.dropped {
                0 => String::new(),
                dropped => format!(", {dropped} dropped"),
            };
            format!(
                "{}{} wait on {whose}port {}{dropped}",
                port.waiting,
                most.unwrap_or_default(),
                port.number
            )
        };
        let list = ports.iter().map(words).collect::<Vec<_>>().join(", ");
        match (&self.after.process, list.is_empty()) {
            (Some(process), true) => {
                format!("; none wait for {} at this moment", process.name)
            }
            (Some(process), false) => format!("; of {}, {list}", process.name),
            (None, true) => String::new(),
            (None, false) => format!("; {list}"),
        }
    }

    /// Accept queues limited by a small backlog or by somaxconn.
    fn small(&self, ports: &[Port]) -> String {
        let most: Option<u64> = self
            .facts
            .system
            .setting("net/core/somaxconn")
            .and_then(|text| text.parse().ok());
        let words = |port: &Port| {
            let limit = port.limit_min?;
            if Some(limit) == most {
                return Some(format!(
                    "; the accept queue of port {} is limited by net.core.somaxconn ({limit}): raise that, then \
                     restart the program",
                    port.number
                ));
            }
            (limit < BACKLOG_SMALL).then(|| {
                format!(
                    "; the accept queue of port {} is limited to {limit} by the backlog of its listen()",
                    port.number
                )
            })
        };
        ports.iter().filter_map(words).collect()
    }

    pub(super) fn pacing(&self) -> Option<Finding> {
        let control = self
            .facts
            .system
            .setting("net/ipv4/tcp_congestion_control")?;
        (control == "bbr").then_some(())?;
        let queues = self.unpaced()?;
        finding(
            Limiter::Pacing,
            Confidence::Low,
            format!(
                "congestion control is bbr and {queues}: each connection is paced by its own timer"
            ),
            "fq as qdisc of the device (net.core.default_qdisc applies to devices that come up later), or cubic where \
             the network is short and does not lose packets",
        )
    }

    /// Disciplines that sent packets without pacing; if unknown, the default discipline.
    fn unpaced(&self) -> Option<String> {
        let default = self.facts.system.setting("net/core/default_qdisc");
        let sent = self.grown(|counter| counter == "tx_packets");
        let mut devices: Vec<&Interface> = sent
            .iter()
            .flat_map(|(name, ..)| self.facts.devices_of(name))
            .filter(|device| device.qdisc.is_some())
            .collect();
        // Interfaces of containers and tunnels count only if there is nothing else.
        if devices.iter().any(|device| device.is_device) {
            devices.retain(|device| device.is_device);
        }
        if devices.is_empty() {
            let default = default.filter(|default| *default != PACER)?;
            return Some(format!("the default qdisc is {default}"));
        }
        let words = |device: &&Interface| {
            let qdisc = device.qdisc.as_ref()?;
            let mut leaves = qdisc.leaves(default);
            leaves.retain(|leaf| *leaf != PACER);
            let over = match leaves[..] {
                [] => return None,
                [root] if root == qdisc.root => String::new(),
                _ => format!(" over {}", leaves.join(" and ")),
            };
            Some(format!(
                "the qdisc of {} is {}{over}",
                device.name, qdisc.root
            ))
        };
        let words: BTreeSet<String> = devices.iter().filter_map(words).collect();
        (!words.is_empty()).then(|| words.into_iter().collect::<Vec<_>>().join(", "))
    }
}
