//! Packet processing per CPU after the interrupt: `/proc/softirqs` and `/proc/net/softnet_stat`.

use onrush_machine::{network, per_cpu};

use super::counters::{Count, Counters};

/// Reads how often each CPU ran the network softirqs, `NET_RX` and `NET_TX`.
pub fn softirqs(text: &str, counters: &mut Counters) {
    for row in per_cpu::rows(text) {
        let measure = match row.label {
            "NET_RX" => "net_rx_softirqs",
            "NET_TX" => "net_tx_softirqs",
            _ => continue,
        };
        for (cpu, count) in row.counts {
            counters.add(format!("cpu{cpu}"), [(measure, Count::Total(count))]);
        }
    }
}

/// Reads the counters of each CPU's backlog: packets processed, packets dropped because it was full, polls that ended
/// with packets left, inter-processor interrupts for RPS, drops by the flow limit.
pub fn softnet(text: &str, counters: &mut Counters) {
    for (at, row) in network::softnet(text).enumerate() {
        let values = [
            ("softnet_processed", Some(row.processed)),
            ("softnet_dropped", Some(row.dropped)),
            ("softnet_time_squeeze", row.squeezed),
            ("softnet_received_rps", row.received_rps),
            ("softnet_flow_limit", row.flow_limit),
        ];
        let values = values.into_iter();
        let values = values.filter_map(|(measure, value)| Some((measure, Count::Total(value?))));
        counters.add(format!("cpu{}", row.cpu.unwrap_or(at)), values);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn softirqs_are_read_with_offline_cpu() {
        let text = "                    CPU0       CPU2       \n          HI:          0          0\n\
            \x20      TIMER:      12931      14774\n      NET_TX:          4          2\n\
            \x20     NET_RX:       3126       4732\n       BLOCK:          0      78566\n";
        let mut counters = Counters::default();
        softirqs(text, &mut counters);
        let at = |cpu, measure| counters.at(cpu, measure);
        assert_eq!(at("cpu0", "net_rx_softirqs"), Some(Count::Total(3_126)));
        assert_eq!(at("cpu2", "net_rx_softirqs"), Some(Count::Total(4_732)));
        assert_eq!(at("cpu2", "net_tx_softirqs"), Some(Count::Total(2)));
        assert_eq!(at("cpu1", "net_rx_softirqs"), None);
        softirqs("", &mut counters);
    }

    #[test]
    fn softnet_stat_cpu_column_is_optional() {
        let new = "00000008 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 \
            00000000 00000000 00000000 00000000\n00001bc2 00000003 0000000a 00000000 00000000 00000000 00000000 00000000 \
            00000000 00000010 00000002 00000000 00000003 00000000 00000000\n";
        let mut counters = Counters::default();
        softnet(new, &mut counters);
        let at = |cpu, measure| counters.at(cpu, measure);
        assert_eq!(at("cpu0", "softnet_processed"), Some(Count::Total(8)));
        assert_eq!(at("cpu3", "softnet_processed"), Some(Count::Total(7_106)));
        assert_eq!(at("cpu3", "softnet_dropped"), Some(Count::Total(3)));
        assert_eq!(at("cpu3", "softnet_time_squeeze"), Some(Count::Total(10)));
        assert_eq!(at("cpu3", "softnet_received_rps"), Some(Count::Total(16)));
        assert_eq!(at("cpu3", "softnet_flow_limit"), Some(Count::Total(2)));
        let old = "00000001 0 0 0 0 0 0 0 0 0 0\n00000002 0 0 0 0 0 0 0 0 0 0\n";
        let mut counters = Counters::default();
        softnet(old, &mut counters);
        assert_eq!(
            counters.at("cpu1", "softnet_processed"),
            Some(Count::Total(2))
        );
    }
}
