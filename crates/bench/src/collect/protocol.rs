//! The kernel's counters of IP, TCP and UDP in a network namespace: `snmp`, `netstat`, `sockstat`, `sockstat6`.

use onrush_machine::network;

use super::counters::{Count, Counters};

/// The tables that matter for a server under load, and their subjects in results.
const TABLES: [(&str, &str); 4] = [
    ("Ip", "ip"),
    ("Tcp", "tcp"),
    ("TcpExt", "tcp"),
    ("Udp", "udp"),
];

/// Reads `/proc/net/snmp` or `/proc/net/netstat`. Measures keep the kernel's names (`RetransSegs`, `ListenOverflows`),
/// which its documentation and other tools use.
pub fn tables(text: &str, counters: &mut Counters) {
    for (table, name, value) in network::counters(text) {
        if let Some((_, subject)) = TABLES.iter().find(|(known, _)| *known == table) {
            counters.add(
                *subject,
                count(name, value).map(|count| (name.to_owned(), count)),
            );
        }
    }
}

/// Skips protocol settings among the counters (RFC 1213), and returns the only gauge as a gauge.
fn count(name: &str, value: &str) -> Option<Count> {
    match name {
        "Forwarding" | "DefaultTTL" | "RtoAlgorithm" | "RtoMin" | "RtoMax" | "MaxConn" => None,
        "CurrEstab" => Some(Count::Gauge(value.parse().ok()?)),
        _ => Some(Count::Total(value.parse().ok()?)),
    }
}

/// Reads `/proc/net/sockstat` or `sockstat6`: sockets by protocol and state, and their buffer memory in pages (`mem`).
pub fn sockets(text: &str, counters: &mut Counters) {
    for line in text.lines() {
        let Some((protocol, values)) = line.split_once(':') else {
            continue;
        };
        let words: Vec<&str> = values.split_ascii_whitespace().collect();
        let pairs = words.chunks_exact(2).filter_map(|pair| {
            let name = match pair[0] {
                "mem" => "mem_pages",
                "memory" => "memory_bytes",
                name => name,
            };
            let value: f64 = pair[1].parse().ok()?;
            Some((format!("{protocol}_{name}"), Count::Gauge(value)))
        });
        counters.add("sockets", pairs);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn snmp_counters_are_read_without_settings() {
        let snmp = "Ip: Forwarding DefaultTTL InReceives InDiscards\nIp: 2 64 7111 4\n\
            Icmp: InMsgs InErrors\nIcmp: 1 0\n\
            Tcp: RtoAlgorithm RtoMin RtoMax MaxConn ActiveOpens PassiveOpens AttemptFails EstabResets CurrEstab InSegs \
            OutSegs RetransSegs InErrs OutRsts InCsumErrors\nTcp: 1 200 120000 -1 21 2 0 0 4 7070 4083 7 0 6 0\n\
            Udp: InDatagrams NoPorts\nUdp: 40 1\n";
        let netstat = "TcpExt: ListenOverflows ListenDrops TCPTimeouts TCPAbortOnData TCPMemoryPressures\n\
            TcpExt: 11 12 13 14 15\nIpExt: InNoRoutes\nIpExt: 3\n";
        let mut counters = Counters::default();
        tables(snmp, &mut counters);
        tables(netstat, &mut counters);
        for (subject, measure, count) in [
            ("ip", "InDiscards", Count::Total(4)),
            ("tcp", "RetransSegs", Count::Total(7)),
            ("tcp", "OutRsts", Count::Total(6)),
            ("tcp", "CurrEstab", Count::Gauge(4.0)),
            ("tcp", "ListenOverflows", Count::Total(11)),
            ("tcp", "ListenDrops", Count::Total(12)),
            ("tcp", "TCPTimeouts", Count::Total(13)),
            ("tcp", "TCPAbortOnData", Count::Total(14)),
            ("tcp", "TCPMemoryPressures", Count::Total(15)),
            ("udp", "InDatagrams", Count::Total(40)),
        ] {
            assert_eq!(counters.at(subject, measure), Some(count), "{measure}");
        }
        assert_eq!(counters.at("tcp", "RtoMin"), None);
        assert_eq!(counters.at("tcp", "InNoRoutes"), None);
    }

    #[test]
    fn malformed_tables_are_skipped() {
        let mut counters = Counters::default();
        tables("Tcp: InSegs OutSegs\nTcp: 5", &mut counters);
        tables("Tcp: InSegs\nUdp: 7\nTcp: InSegs", &mut counters);
        tables("no table\nat all\n", &mut counters);
        assert_eq!(counters.at("tcp", "InSegs"), Some(Count::Total(5)));
        assert_eq!(counters.at("tcp", "OutSegs"), None);
    }

    #[test]
    fn sockets_are_gauges_by_protocol() {
        let mut counters = Counters::default();
        let text = "sockets: used 22\nTCP: inuse 5 orphan 0 tw 1 alloc 6 mem 3\nUDP: inuse 0 mem 0\n\
            FRAG: inuse 0 memory 4096\n";
        sockets(text, &mut counters);
        sockets("TCP6: inuse 9\nUDP6: inuse\n", &mut counters);
        let at = |measure| counters.at("sockets", measure);
        assert_eq!(at("sockets_used"), Some(Count::Gauge(22.0)));
        assert_eq!(at("TCP_tw"), Some(Count::Gauge(1.0)));
        assert_eq!(at("TCP_mem_pages"), Some(Count::Gauge(3.0)));
        assert_eq!(at("FRAG_memory_bytes"), Some(Count::Gauge(4_096.0)));
        assert_eq!(at("TCP6_inuse"), Some(Count::Gauge(9.0)));
        assert_eq!(at("UDP6_inuse"), None);
    }
}
