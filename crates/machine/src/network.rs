//! `/proc/net`: the kernel's counters of interfaces (`dev`), of packets per CPU (`softnet_stat`), and of IP, TCP and
//! UDP (`snmp`, `netstat`, `snmp6`).

use std::collections::BTreeMap;

/// Counters of one interface.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Interface {
    /// Received.
    pub rx: Direction,
    /// Sent.
    pub tx: Direction,
}

/// The first four columns of one direction (proc(5)).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Direction {
    /// Number of bytes.
    pub bytes: u64,
    /// Number of packets.
    pub packets: u64,
    /// Number of packets with an error.
    pub errors: u64,
    /// Number of packets dropped.
    pub dropped: u64,
}

impl Direction {
    fn read(columns: &[u64]) -> Option<Direction> {
        let [bytes, packets, errors, dropped, ..] = *columns else {
            return None;
        };
        Some(Direction {
            bytes,
            packets,
            errors,
            dropped,
        })
    }
}

/// Parses `dev`.
pub fn interfaces(dev: &str) -> BTreeMap<String, Interface> {
    /// Number of columns of each direction.
    const COLUMNS: usize = 8;
    let line = |line: &str| {
        let (name, counters) = line.split_once(':')?;
        let words = counters.split_ascii_whitespace();
        let columns: Vec<u64> = words.map_while(|word| word.parse().ok()).collect();
        let (rx, tx) = columns.split_at_checked(COLUMNS)?;
        let interface = Interface {
            rx: Direction::read(rx)?,
            tx: Direction::read(tx)?,
        };
        Some((name.trim().to_owned(), interface))
    };
    dev.lines().filter_map(line).collect()
}

/// Packet counters of one CPU (`softnet_seq_show` in net/core/net-procfs.c of the kernel). `None`: this kernel lacks
/// the column.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Softnet {
    /// The CPU, in the file since Linux 5.10. Older kernels have one row per online CPU, in order.
    pub cpu: Option<usize>,
    /// Number of packets processed.
    pub processed: u64,
    /// Number of packets dropped because the CPU's backlog was full.
    pub dropped: u64,
    /// Times polling stopped with packets left because its budget or time was used up.
    pub squeezed: Option<u64>,
    /// Times another CPU passed packets to this one (RPS).
    pub received_rps: Option<u64>,
    /// Packets dropped by the flow limit.
    pub flow_limit: Option<u64>,
}

/// Parses `softnet_stat`: one row of hexadecimal numbers per online CPU.
pub fn softnet(text: &str) -> impl Iterator<Item = Softnet> {
    text.lines().filter_map(|line| {
        let words = line.split_ascii_whitespace();
        let columns: Vec<u64> = words
            .map_while(|word| u64::from_str_radix(word, 16).ok())
            .collect();
        let column = |at: usize| columns.get(at).copied();
        Some(Softnet {
            cpu: column(12).and_then(|cpu| usize::try_from(cpu).ok()),
            processed: column(0)?,
            dropped: column(1)?,
            squeezed: column(2),
            received_rps: column(9),
            flow_limit: column(10),
        })
    })
}

/// Parses `snmp` or `netstat` into table, name and value of each counter. Lines come in pairs: `Tcp: RtoMin
/// RetransSegs` and `Tcp: 200 17`. Values may be negative.
pub fn counters(text: &str) -> impl Iterator<Item = (&str, &str, &str)> {
    let names = text.lines().step_by(2);
    let values = text.lines().skip(1).step_by(2);
    names.zip(values).flat_map(|(names, values)| {
        let pair = names.split_once(':').zip(values.split_once(':'));
        let pair = pair.filter(|((table, _), (same, _))| table == same);
        pair.into_iter().flat_map(|((table, names), (_, values))| {
            let names = names.split_ascii_whitespace();
            names
                .zip(values.split_ascii_whitespace())
                .map(move |(name, value)| (table, name, value))
        })
    })
}

/// Parses `snmp6`: a name and a value per line (`Udp6RcvbufErrors   17`).
pub fn counters6(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.lines()
        .filter_map(|line| line.trim().split_once(char::is_whitespace))
        .map(|(name, value)| (name, value.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interfaces_have_receive_and_transmit_counters() {
        let dev = "Inter-| Receive\n face |bytes packets\n    lo: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n";
        let lo = interfaces(dev)["lo"];
        assert_eq!(
            (lo.rx.packets, lo.rx.dropped, lo.tx.packets, lo.tx.dropped),
            (2, 4, 10, 12)
        );
    }

    #[test]
    fn softnet_rows_of_old_and_new_kernels() {
        let old = "0001 0000000a 0\n";
        let new = "0002 00000001 3 0 0 0 0 0 0 4 5 0 00000007\n\n";
        let found: Vec<_> = softnet(&format!("{old}{new}")).collect();
        assert_eq!(
            (found[0].cpu, found[0].dropped, found[0].received_rps),
            (None, 10, None)
        );
        assert_eq!((found[1].cpu, found[1].squeezed), (Some(7), Some(3)));
        assert_eq!(
            (found[1].received_rps, found[1].flow_limit),
            (Some(4), Some(5))
        );
        assert_eq!(found.len(), 2);
    }

    #[test]
    fn snmp_tables_are_parsed() {
        let text =
            "Tcp: RtoMin MaxConn\nTcp: 200 -1\nUdp: InDatagrams\nUdp: 9\nBroken: a\nOther: 1\n";
        let found: Vec<_> = counters(text).collect();
        assert_eq!(
            found,
            [
                ("Tcp", "RtoMin", "200"),
                ("Tcp", "MaxConn", "-1"),
                ("Udp", "InDatagrams", "9")
            ]
        );
        let six: Vec<_> = counters6("Ip6InReceives \t 3\nUdp6NoPorts   4\n").collect();
        assert_eq!(six, [("Ip6InReceives", "3"), ("Udp6NoPorts", "4")]);
    }
}
