//! `/proc/net/dev`: traffic and losses of each interface.
//!
//! A packet here is one passed to or from the interface; with segmentation offload it may be many on the wire. Loopback
//! counts each packet twice, as sent and as received.

use std::collections::BTreeMap;
use std::time::Duration;

use onrush_machine::network::Interface;

use super::counters::{Count, Counters};
use crate::outcome::InterfaceUse;

/// The loopback interface.
pub const LOOPBACK: &str = "lo";

/// Rates since `before`; `None` without any traffic or loss. A counter that decreased, because the interface was
/// recreated, counts as zero.
pub fn used(now: &Interface, before: &Interface, span: Duration) -> Option<InterfaceUse> {
    let seconds = span.as_secs_f64().max(1e-9);
    let per_second = |now: u64, then: u64| now.saturating_sub(then) as f64 / seconds;
    let used = InterfaceUse {
        rx_packets: per_second(now.rx.packets, before.rx.packets),
        tx_packets: per_second(now.tx.packets, before.tx.packets),
        rx_bytes: per_second(now.rx.bytes, before.rx.bytes),
        tx_bytes: per_second(now.tx.bytes, before.tx.bytes),
        rx_errors: per_second(now.rx.errors, before.rx.errors),
        tx_errors: per_second(now.tx.errors, before.tx.errors),
        rx_dropped: per_second(now.rx.dropped, before.rx.dropped),
        tx_dropped: per_second(now.tx.dropped, before.tx.dropped),
    };
    (used != InterfaceUse::default()).then_some(used)
}

fn counts(of: &Interface) -> [(&'static str, Count); 8] {
    [
        ("rx_packets", Count::Total(of.rx.packets)),
        ("tx_packets", Count::Total(of.tx.packets)),
        ("rx_bytes", Count::Total(of.rx.bytes)),
        ("tx_bytes", Count::Total(of.tx.bytes)),
        ("rx_errors", Count::Total(of.rx.errors)),
        ("tx_errors", Count::Total(of.tx.errors)),
        ("rx_dropped", Count::Total(of.rx.dropped)),
        ("tx_dropped", Count::Total(of.tx.dropped)),
    ]
}

/// The counters for the totals of a window.
pub fn counters(interfaces: &BTreeMap<String, Interface>) -> Counters {
    let mut counters = Counters::default();
    for (name, counts) in interfaces {
        counters.add(name.clone(), self::counts(counts));
    }
    counters
}

#[cfg(test)]
mod tests {
    use super::*;
    use onrush_machine::network::interfaces;

    #[test]
    fn idle_interfaces_are_omitted_from_rates() {
        let head = "Inter-|   Receive\n face |bytes packets\n";
        let before = interfaces(&format!(
            "{head}    lo: 1000 10 0 0 0 0 0 0 2000 20 0 0 0 0 0 0\n  eth0:1 1 0 0 0 0 0 0 1 1 0 0 0 0 0 0\n"
        ));
        let now = interfaces(&format!(
            "{head}    lo: 3000 30 0 0 0 0 0 0 6000 60 0 0 0 0 0 0\n  eth0:1 1 0 0 0 0 0 0 1 1 0 0 0 0 0 0\n"
        ));
        let span = Duration::from_secs(2);
        assert_eq!(used(&now["eth0"], &before["eth0"], span), None);
        let lo = used(&now["lo"], &before["lo"], span).expect("lo carried packets");
        assert_eq!(
            (lo.rx_packets, lo.tx_packets, lo.rx_bytes, lo.tx_bytes),
            (10.0, 20.0, 1000.0, 2000.0)
        );
    }

    #[test]
    fn recreated_interface_counts_as_zero() {
        let before = interfaces("eth0: 900 9 1 2 0 0 0 0 800 8 3 4 0 0 0 0\n");
        let now = interfaces("eth0: 900 9 3 5 0 0 0 0 800 8 7 9 0 0 0 0\n");
        let second = Duration::from_secs(1);
        let lost = used(&now["eth0"], &before["eth0"], second).expect("packets were lost");
        assert_eq!(
            (
                lost.rx_errors,
                lost.rx_dropped,
                lost.tx_errors,
                lost.tx_dropped
            ),
            (2.0, 3.0, 4.0, 5.0)
        );
        let anew = interfaces("eth0: 1 1 0 0 0 0 0 0 1 1 0 0 0 0 0 0\n");
        assert_eq!(used(&anew["eth0"], &before["eth0"], second), None);
        assert!(interfaces("eth0: 1 1 0 0 0 0 0 0 1 1\nno line\n").is_empty());
    }
}
