//! `/proc/net/dev`: what every interface carried. Pure.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::outcome::InterfaceUse;

/// Counters of one interface.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct InterfaceCounters {
    rx_bytes: u64,
    rx_packets: u64,
    tx_bytes: u64,
    tx_packets: u64,
}

impl InterfaceCounters {
    /// Rates since `before`; `None` when nothing was carried.
    pub fn since(self, before: InterfaceCounters, span: Duration) -> Option<InterfaceUse> {
        let per_second =
            |now: u64, then: u64| now.saturating_sub(then) as f64 / span.as_secs_f64().max(1e-9);
        let used = InterfaceUse {
            rx_packets: per_second(self.rx_packets, before.rx_packets),
            tx_packets: per_second(self.tx_packets, before.tx_packets),
            rx_bytes: per_second(self.rx_bytes, before.rx_bytes),
            tx_bytes: per_second(self.tx_bytes, before.tx_bytes),
        };
        (used.rx_packets + used.tx_packets > 0.0).then_some(used)
    }
}

/// Reads `/proc/net/dev`.
pub fn interfaces(dev: &str) -> BTreeMap<String, InterfaceCounters> {
    let line = |line: &str| {
        let (name, counters) = line.split_once(':')?;
        let counters: Vec<u64> = counters
            .split_ascii_whitespace()
            .filter_map(|word| word.parse().ok())
            .collect();
        let [
            rx_bytes,
            rx_packets,
            _,
            _,
            _,
            _,
            _,
            _,
            tx_bytes,
            tx_packets,
            ..,
        ] = counters[..]
        else {
            return None;
        };
        let counters = InterfaceCounters {
            rx_bytes,
            rx_packets,
            tx_bytes,
            tx_packets,
        };
        Some((name.trim().to_owned(), counters))
    };
    dev.lines().filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interface_rates_are_per_second_and_silent_ones_are_left_out() {
        let head = "Inter-|   Receive\n face |bytes packets\n";
        let before = interfaces(&format!(
            "{head}    lo: 1000 10 0 0 0 0 0 0 2000 20 0 0 0 0 0 0\n  eth0:1 1 0 0 0 0 0 0 1 1 0 0 0 0 0 0\n"
        ));
        let now = interfaces(&format!(
            "{head}    lo: 3000 30 0 0 0 0 0 0 6000 60 0 0 0 0 0 0\n  eth0:1 1 0 0 0 0 0 0 1 1 0 0 0 0 0 0\n"
        ));
        let span = Duration::from_secs(2);
        assert_eq!(now["eth0"].since(before["eth0"], span), None);
        let lo = now["lo"]
            .since(before["lo"], span)
            .expect("lo carried packets");
        assert_eq!(
            (lo.rx_packets, lo.tx_packets, lo.rx_bytes, lo.tx_bytes),
            (10.0, 20.0, 1000.0, 2000.0)
        );
    }
}
