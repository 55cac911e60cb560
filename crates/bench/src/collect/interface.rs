//! `/proc/net/dev`: what every interface carried, and what it lost. Pure.
//!
//! A packet here is what the interface handed over or was handed: with segmentation offload one may stand for many on
//! the wire. Loopback counts each packet twice, once as sent and once as received.

use std::collections::BTreeMap;
use std::time::Duration;

use super::counters::{Count, Counters};
use crate::outcome::InterfaceUse;

/// The interface on which both ends of a connection are on this machine.
pub const LOOPBACK: &str = "lo";

/// Counters of one interface.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct InterfaceCounters {
    rx: Direction,
    tx: Direction,
}

/// The first four columns of one direction (proc(5)).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Direction {
    bytes: u64,
    packets: u64,
    errors: u64,
    dropped: u64,
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

impl InterfaceCounters {
    /// Rates since `before`; `None` when nothing was carried or lost. Counters that went backwards, because the interface
    /// was made anew, have carried nothing.
    pub fn since(self, before: InterfaceCounters, span: Duration) -> Option<InterfaceUse> {
        let seconds = span.as_secs_f64().max(1e-9);
        let per_second = |now: u64, then: u64| now.saturating_sub(then) as f64 / seconds;
        let used = InterfaceUse {
            rx_packets: per_second(self.rx.packets, before.rx.packets),
            tx_packets: per_second(self.tx.packets, before.tx.packets),
            rx_bytes: per_second(self.rx.bytes, before.rx.bytes),
            tx_bytes: per_second(self.tx.bytes, before.tx.bytes),
            rx_errors: per_second(self.rx.errors, before.rx.errors),
            tx_errors: per_second(self.tx.errors, before.tx.errors),
            rx_dropped: per_second(self.rx.dropped, before.rx.dropped),
            tx_dropped: per_second(self.tx.dropped, before.tx.dropped),
        };
        (used != InterfaceUse::default()).then_some(used)
    }

    fn counts(self) -> [(&'static str, Count); 8] {
        [
            ("rx_packets", Count::Total(self.rx.packets)),
            ("tx_packets", Count::Total(self.tx.packets)),
            ("rx_bytes", Count::Total(self.rx.bytes)),
            ("tx_bytes", Count::Total(self.tx.bytes)),
            ("rx_errors", Count::Total(self.rx.errors)),
            ("tx_errors", Count::Total(self.tx.errors)),
            ("rx_dropped", Count::Total(self.rx.dropped)),
            ("tx_dropped", Count::Total(self.tx.dropped)),
        ]
    }
}

/// The same as counters, for the totals of a window.
pub fn counters(interfaces: &BTreeMap<String, InterfaceCounters>) -> Counters {
    let mut counters = Counters::default();
    for (name, counts) in interfaces {
        counters.add(name.clone(), counts.counts());
    }
    counters
}

/// Reads `/proc/net/dev`.
pub fn interfaces(dev: &str) -> BTreeMap<String, InterfaceCounters> {
    /// Columns of each direction.
    const COLUMNS: usize = 8;
    let line = |line: &str| {
        let (name, counters) = line.split_once(':')?;
        let columns: Vec<u64> = counters
            .split_ascii_whitespace()
            .map_while(|word| word.parse().ok())
            .collect();
        let (rx, tx) = columns.split_at_checked(COLUMNS)?;
        let counters = InterfaceCounters {
            rx: Direction::read(rx)?,
            tx: Direction::read(tx)?,
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

    #[test]
    fn losses_are_counted_and_an_interface_made_anew_has_carried_nothing() {
        let before = interfaces("eth0: 900 9 1 2 0 0 0 0 800 8 3 4 0 0 0 0\n");
        let now = interfaces("eth0: 900 9 3 5 0 0 0 0 800 8 7 9 0 0 0 0\n");
        let used = now["eth0"].since(before["eth0"], Duration::from_secs(1));
        let used = used.expect("packets were lost");
        assert_eq!(
            (
                used.rx_errors,
                used.rx_dropped,
                used.tx_errors,
                used.tx_dropped
            ),
            (2.0, 3.0, 4.0, 5.0)
        );
        let anew = interfaces("eth0: 1 1 0 0 0 0 0 0 1 1 0 0 0 0 0 0\n");
        assert_eq!(
            anew["eth0"].since(before["eth0"], Duration::from_secs(1)),
            None
        );
        assert!(interfaces("eth0: 1 1 0 0 0 0 0 0 1 1\nno line\n").is_empty());
    }
}
