//! Where connections and packets wait: at sockets, and before devices.

use std::collections::BTreeSet;

use super::{Case, Confidence, Finding, Limiter, finding};
use crate::facts::Counts;
use crate::facts::Interface;
use crate::facts::listening::{Port, ports};

/// A queue of connections below this is one that nobody chose: nginx asks for 511, and who gives no number to listen()
/// gets 128 of many languages.
const BACKLOG_SMALL: u64 = 511;
/// A share of connections that were turned away at first which shows in the slowest responses: each waits for a second.
const TURNED_AWAY: f64 = 0.001;
/// The discipline that spreads the packets of a connection over time, so that TCP need not.
const PACER: &str = "fq";
/// Ports that evidence names; the first are the worst.
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
            0 => "handshakes came faster than their queue holds",
            _ => "connections were not accepted in time",
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

    /// The ports that connections wait at or were turned away from: those of the process, or of all.
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
                "{}{} wait at {whose}port {}{dropped}",
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

    /// Queues that are small because somebody asked for no more, or was given no more.
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
                    "; port {} has all that net.core.somaxconn allows ({limit}): raise that, then start the program again",
                    port.number
                ));
            }
            (limit < BACKLOG_SMALL).then(|| {
                format!(
                    "; port {} was given room for {limit} only by its listen()",
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
                "congestion control is bbr and {queues}: each connection is paced by a timer of its own"
            ),
            "fq as queue of the device (net.core.default_qdisc is for those that come up later), or cubic where the network is \
             short and does not lose packets",
        )
    }

    /// The queues that packets left by and that do not pace them; where none can be seen, the default one.
    fn unpaced(&self) -> Option<String> {
        let default = self.facts.system.setting("net/core/default_qdisc");
        let sent = self.grown(|counter| counter == "tx_packets");
        let mut devices: Vec<&Interface> = sent
            .iter()
            .flat_map(|(name, ..)| self.facts.devices_of(name))
            .filter(|device| device.qdisc.is_some())
            .collect();
        // What goes to containers and tunnels says nothing of the network, unless there is nothing else.
        if devices.iter().any(|device| device.is_device) {
            devices.retain(|device| device.is_device);
        }
        if devices.is_empty() {
            let default = default.filter(|default| *default != PACER)?;
            return Some(format!("the default queue is {default}"));
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
                "the queue of {} is {}{over}",
                device.name, qdisc.root
            ))
        };
        let words: BTreeSet<String> = devices.iter().filter_map(words).collect();
        (!words.is_empty()).then(|| words.into_iter().collect::<Vec<_>>().join(", "))
    }
}
