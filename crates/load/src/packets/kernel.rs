//! What the kernel of this machine has counted of datagrams: where those may be that nobody received.

use std::collections::BTreeMap;
use std::fs;

use serde::Serialize;

/// Counters of this network namespace, and of all CPUs.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct KernelCounters {
    /// Datagrams that a receiving socket here had no room for (`RcvbufErrors`, over IPv4 and IPv6).
    pub(crate) receive_buffer: u64,
    /// Datagrams that a sending socket had no room for, or a queue of an interface (`SndbufErrors`).
    pub(crate) send_buffer: u64,
    /// Datagrams for ports on which nobody listened (`NoPorts`).
    pub(crate) no_port: u64,
    /// Packets that a CPU's queue had no room for (`softnet_stat`, second column), of all CPUs and namespaces.
    pub(crate) backlog: u64,
    /// By interface.
    pub(crate) interfaces: BTreeMap<String, InterfaceCounters>,
}

/// Counters of an interface (/proc/net/dev).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct InterfaceCounters {
    /// Packets that came in.
    pub rx_packets: u64,
    /// Packets dropped on their way in.
    pub rx_dropped: u64,
    /// Packets that went out.
    pub tx_packets: u64,
    /// Packets dropped on their way out.
    pub tx_dropped: u64,
}

impl KernelCounters {
    /// As they are now; what a kernel does not tell is 0.
    pub(crate) fn now() -> KernelCounters {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let four = Udp::of_snmp(&read("/proc/thread-self/net/snmp"));
        let six = Udp::of_snmp6(&read("/proc/thread-self/net/snmp6"));
        KernelCounters {
            receive_buffer: four.receive_buffer + six.receive_buffer,
            send_buffer: four.send_buffer + six.send_buffer,
            no_port: four.no_port + six.no_port,
            backlog: backlog(&read("/proc/thread-self/net/softnet_stat")),
            interfaces: interfaces(&read("/proc/thread-self/net/dev")),
        }
    }

    /// What has been counted since `earlier`; interfaces that moved nothing are left out.
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

    /// Packets that interfaces here dropped.
    pub(crate) fn interface_drops(&self) -> u64 {
        let drops = |it: &InterfaceCounters| it.rx_dropped + it.tx_dropped;
        self.interfaces.values().map(drops).sum()
    }
}

#[derive(Clone, Copy, Default)]
struct Udp {
    receive_buffer: u64,
    send_buffer: u64,
    no_port: u64,
}

impl Udp {
    /// Of /proc/net/snmp: a line of names and a line of numbers, both with `Udp:` before them (proc_net(5)).
    fn of_snmp(text: &str) -> Udp {
        let mut lines = text.lines().filter_map(|line| line.strip_prefix("Udp:"));
        let (Some(names), Some(numbers)) = (lines.next(), lines.next()) else {
            return Udp::default();
        };
        let names = names.split_ascii_whitespace();
        Udp::of(names.zip(numbers.split_ascii_whitespace()), "")
    }

    /// Of /proc/net/snmp6: a name and a number in each line.
    fn of_snmp6(text: &str) -> Udp {
        Udp::of(
            text.lines()
                .filter_map(|line| line.split_once(char::is_whitespace)),
            "Udp6",
        )
    }

    fn of<'text>(pairs: impl Iterator<Item = (&'text str, &'text str)>, prefix: &str) -> Udp {
        let mut udp = Udp::default();
        for (name, number) in pairs {
            let Some(name) = name.strip_prefix(prefix) else {
                continue;
            };
            let number = number.trim().parse().unwrap_or(0);
            match name {
                "RcvbufErrors" => udp.receive_buffer = number,
                "SndbufErrors" => udp.send_buffer = number,
                "NoPorts" => udp.no_port = number,
                _ => {}
            }
        }
        udp
    }
}

/// The sum of the second numbers of all lines, which are hexadecimal.
fn backlog(text: &str) -> u64 {
    let dropped = |line: &str| {
        let number = line.split_ascii_whitespace().nth(1)?;
        u64::from_str_radix(number, 16).ok()
    };
    text.lines().filter_map(dropped).sum()
}

/// Of /proc/net/dev: behind two lines of titles an interface in each, with eight numbers of what came in and eight of what went
/// out: bytes, packets, errors, dropped.
fn interfaces(text: &str) -> BTreeMap<String, InterfaceCounters> {
    let interface = |line: &str| {
        let (name, numbers) = line.split_once(':')?;
        let numbers = numbers.split_ascii_whitespace().map(str::parse);
        let numbers: Vec<u64> = numbers.collect::<Result<_, _>>().ok()?;
        let counters = InterfaceCounters {
            rx_packets: *numbers.get(1)?,
            rx_dropped: *numbers.get(3)?,
            tx_packets: *numbers.get(9)?,
            tx_dropped: *numbers.get(11)?,
        };
        Some((name.trim().to_owned(), counters))
    };
    text.lines().filter_map(interface).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_read_as_the_kernel_writes_them() {
        let snmp = "Ip: Forwarding\nIp: 1\nUdp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors SndbufErrors\nUdp: 10 2 3 40 5 6\nUdpLite: InDatagrams\nUdpLite: 9\n";
        let four = Udp::of_snmp(snmp);
        assert_eq!(
            (four.receive_buffer, four.send_buffer, four.no_port),
            (5, 6, 2)
        );
        let six = Udp::of_snmp6("Ip6InReceives \t 3\nUdp6NoPorts   4\nUdp6RcvbufErrors  \t7\n");
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
    fn the_machine_tells_of_its_loopback() {
        assert!(KernelCounters::now().interfaces.contains_key("lo"));
    }

    #[test]
    fn what_moved_nothing_is_left_out() {
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
