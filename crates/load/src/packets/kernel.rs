//! Kernel counters of this machine that show where datagrams were lost.

use std::collections::BTreeMap;
use std::fs;

use onrush_machine::network;
use serde::Serialize;

/// Counters of this network namespace, and of all CPUs.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct KernelCounters {
    /// Datagrams dropped because a receiving socket's buffer was full (`RcvbufErrors`, IPv4 and IPv6).
    pub(crate) receive_buffer: u64,
    /// Datagrams dropped because a sending socket's buffer or an interface's queue was full (`SndbufErrors`).
    pub(crate) send_buffer: u64,
    /// Datagrams to ports without a listener (`NoPorts`).
    pub(crate) no_port: u64,
    /// Packets dropped because a CPU's queue was full (`softnet_stat`, second column), of all CPUs and namespaces.
    pub(crate) backlog: u64,
    pub(crate) interfaces: BTreeMap<String, InterfaceCounters>,
}

/// Counters of an interface (/proc/net/dev).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct InterfaceCounters {
    /// Packets received.
    pub rx_packets: u64,
    /// Received packets that were dropped.
    pub rx_dropped: u64,
    /// Packets sent.
    pub tx_packets: u64,
    /// Packets dropped on sending.
    pub tx_dropped: u64,
}

impl KernelCounters {
    /// Reads the current values; counters that the kernel lacks are 0.
    pub(crate) fn now() -> KernelCounters {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let mut counters = KernelCounters {
            backlog: backlog(&read("/proc/thread-self/net/softnet_stat")),
            interfaces: interfaces(&read("/proc/thread-self/net/dev")),
            ..KernelCounters::default()
        };
        counters.add_udp(&read("/proc/thread-self/net/snmp"));
        counters.add_udp6(&read("/proc/thread-self/net/snmp6"));
        counters
    }

    /// Adds the UDP counters of IPv4, from `snmp`.
    fn add_udp(&mut self, snmp: &str) {
        for (table, name, value) in network::counters(snmp) {
            if table == "Udp" {
                self.add(name, value);
            }
        }
    }

    /// Adds the UDP counters of IPv6, from `snmp6`.
    fn add_udp6(&mut self, snmp6: &str) {
        for (name, value) in network::counters6(snmp6) {
            if let Some(name) = name.strip_prefix("Udp6") {
                self.add(name, value);
            }
        }
    }

    fn add(&mut self, name: &str, value: &str) {
        let value: u64 = value.parse().unwrap_or(0);
        match name {
            "RcvbufErrors" => self.receive_buffer += value,
            "SndbufErrors" => self.send_buffer += value,
            "NoPorts" => self.no_port += value,
            _ => {}
        }
    }

    /// Returns the differences since `earlier`, without interfaces that had no traffic.
    pub(crate) fn since(&self, earlier: &KernelCounters) -> KernelCounters {
        let mut interfaces = BTreeMap::new();
        for (name, now) in &self.interfaces {
            let before = earlier.interfaces.get(name).copied().unwrap_or_default();
            let moved = InterfaceCounters {
                rx_packets: now.rx_packets.saturating_sub(before.rx_packets),
                rx_dropped: now.rx_dropped.saturating_sub(before.rx_dropped),
                tx_packets: now.tx_packets.saturating_sub(before.tx_packets),
                tx_dropped: now.tx_dropped.saturating_sub(before.tx_dropped),
            };
            if moved != InterfaceCounters::default() {
                interfaces.insert(name.clone(), moved);
            }
        }
        KernelCounters {
            receive_buffer: self.receive_buffer.saturating_sub(earlier.receive_buffer),
            send_buffer: self.send_buffer.saturating_sub(earlier.send_buffer),
            no_port: self.no_port.saturating_sub(earlier.no_port),
            backlog: self.backlog.saturating_sub(earlier.backlog),
            interfaces,
        }
    }

    /// Returns the packets dropped by interfaces.
    pub(crate) fn interface_drops(&self) -> u64 {
        let drops = |it: &InterfaceCounters| it.rx_dropped + it.tx_dropped;
        self.interfaces.values().map(drops).sum()
    }
}

fn backlog(text: &str) -> u64 {
    network::softnet(text).map(|row| row.dropped).sum()
}

fn interfaces(text: &str) -> BTreeMap<String, InterfaceCounters> {
    let counters = |of: network::Interface| InterfaceCounters {
        rx_packets: of.rx.packets,
        rx_dropped: of.rx.dropped,
        tx_packets: of.tx.packets,
        tx_dropped: of.tx.dropped,
    };
    let found = network::interfaces(text).into_iter();
    found.map(|(name, of)| (name, counters(of))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn snmp_counters_are_parsed() {
        let snmp = "Ip: Forwarding\nIp: 1\nUdp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors SndbufErrors\nUdp: 10 2 3 40 5 6\nUdpLite: InDatagrams\nUdpLite: 9\n";
        let mut four = KernelCounters::default();
        four.add_udp(snmp);
        assert_eq!(
            (four.receive_buffer, four.send_buffer, four.no_port),
            (5, 6, 2)
        );
        let mut six = KernelCounters::default();
        six.add_udp6("Ip6InReceives \t 3\nUdp6NoPorts   4\nUdp6RcvbufErrors  \t7\n");
        assert_eq!(
            (six.receive_buffer, six.send_buffer, six.no_port),
            (7, 0, 4)
        );
        assert_eq!(backlog("0001 0000000a 0\n0002 00000001 0\n"), 11);
        let dev = "Inter-| Receive\n face |bytes packets\n    lo: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n";
        let lo = interfaces(dev)["lo"];
        assert_eq!(
            (lo.rx_packets, lo.rx_dropped, lo.tx_packets, lo.tx_dropped),
            (2, 4, 10, 12)
        );
    }

    #[test]
    fn loopback_counters_are_read() {
        assert!(KernelCounters::now().interfaces.contains_key("lo"));
    }

    #[test]
    fn interfaces_without_traffic_are_omitted() {
        let mut before = KernelCounters::default();
        before
            .interfaces
            .insert("a".into(), InterfaceCounters::default());
        let mut now = before.clone();
        now.interfaces.insert(
            "b".into(),
            InterfaceCounters {
                tx_dropped: 2,
                ..InterfaceCounters::default()
            },
        );
        let since = now.since(&before);
        assert_eq!(since.interfaces.keys().collect::<Vec<_>>(), ["b"]);
        assert_eq!(since.interface_drops(), 2);
    }
}
