//! Metrics of a window other than rates and latencies: packets and context switches per request, losses, and the
//! overhead of measuring.

use crate::collect::interface::LOOPBACK;
use crate::collect::sampler::Window;
use crate::outcome::{BySubject, CollectorUse, Trial};
use crate::scenario::CollectedMetric;
use crate::verdict::of_all_cpus;

/// Bench's own use of a CPU above which a note is added; the documentation promises less.
const COLLECTOR_SHARE_NOTED: f64 = 0.005;
/// Interfaces with fewer packets per request carried unrelated traffic.
const PACKETS_PER_REQUEST_MIN: f64 = 0.01;

/// Moves collected data into the trial. `requests` is the sum over all clients in the window.
pub(super) fn collected(trial: &mut Trial, window: Window, requests: u64) {
    let length = window.length.as_secs_f64().max(1e-9);
    let requests = requests as f64;
    let mut add = |name: String, value: f64| {
        trial.metrics.insert(name, value);
    };
    let total = |subject: &str, measure: &str| total(&window.totals, subject, measure);
    if requests > 0.0 {
        let mut all_packets = 0.0;
        for (subject, measures) in &window.totals {
            let sent = measures.get("tx_packets").copied().unwrap_or(0.0);
            let received = measures.get("rx_packets").copied().unwrap_or(0.0);
            // On loopback each packet is counted as sent and as received.
            let packets = sent + if subject == LOOPBACK { 0.0 } else { received };
            if packets / requests >= PACKETS_PER_REQUEST_MIN {
                add(format!("packets_per_request.{subject}"), packets / requests);
                // Interfaces of other hosts are named `HOST:INTERFACE`.
                if !subject.contains(':') {
                    all_packets += packets;
                }
            }
        }
        if all_packets > 0.0 {
            add(CollectedMetric::Packets.name(), all_packets / requests);
        }
        let switches = total("machine", "context_switches");
        add("context_switches_per_request".into(), switches / requests);
        for (role, used) in &window.roles {
            let mut per_request = |name: &str, value: f64| {
                add(
                    format!("{}.{name}_per_request", role.name()),
                    value / requests,
                );
            };
            per_request("wait_us", used.wait.as_secs_f64() * 1e6);
            per_request("voluntary_switches", used.voluntary_switches as f64);
            per_request("involuntary_switches", used.involuntary_switches as f64);
        }
    }
    for name in ["RetransSegs", "ListenOverflows", "ListenDrops"] {
        add(format!("tcp.{name}"), total("tcp", name));
    }
    for name in ["dropped", "time_squeeze"] {
        let all = of_all_cpus(&window.totals, &format!("softnet_{name}"));
        add(format!("softnet.{name}"), all);
    }
    let used = window.collector.as_secs_f64();
    let collector = CollectorUse {
        cpu_s: used,
        cpu_share: used / length,
    };
    add("collector.cpu_share".into(), collector.cpu_share);
    if collector.cpu_share > COLLECTOR_SHARE_NOTED {
        trial.notes.push(format!(
            "the measurement itself used {:.1} % of a CPU",
            collector.cpu_share * 100.0
        ));
    }
    trial.collector = collector;
    observed(trial, window);
}

/// Moves rows, CPU use and totals into the trial, which need no number of requests.
pub(super) fn observed(trial: &mut Trial, window: Window) {
    trial.window_s = window.length.as_secs_f64();
    trial.samples = window.samples;
    trial.cpus = window.cpus;
    trial.totals = window.totals;
    trial.left_out = window.left_out;
}

fn total(totals: &BySubject, subject: &str, measure: &str) -> f64 {
    let measures = totals.get(subject);
    measures
        .and_then(|measures| measures.get(measure))
        .copied()
        .unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use super::*;
    use crate::collect::process::TreeUse;
    use crate::scenario::Role;

    fn window() -> Window {
        let subject = |name: &str, measures: &[(&str, f64)]| {
            let measures = measures.iter();
            let measures: BTreeMap<String, f64> = measures
                .map(|(name, value)| ((*name).to_owned(), *value))
                .collect();
            (name.to_owned(), measures)
        };
        let server = TreeUse {
            wait: Duration::from_millis(10),
            voluntary_switches: 2_000,
            ..TreeUse::default()
        };
        Window {
            length: Duration::from_secs(2),
            samples: Vec::new(),
            cpus: Vec::new(),
            roles: [(Role::Server, server)].into(),
            totals: [
                subject("lo", &[("rx_packets", 4_000.0), ("tx_packets", 4_000.0)]),
                subject("eth0", &[("rx_packets", 3_000.0), ("tx_packets", 1_000.0)]),
                subject("eth1", &[("rx_packets", 9.0)]),
                subject("left:eth0", &[("tx_packets", 2_000.0)]),
                subject("cpu0", &[("softnet_dropped", 3.0)]),
                subject("cpu1", &[("softnet_dropped", 4.0)]),
                subject("tcp", &[("RetransSegs", 5.0)]),
                subject("machine", &[("context_switches", 500.0)]),
            ]
            .into(),
            collector: Duration::from_millis(4),
            left_out: vec!["pressure".into()],
        }
    }

    #[test]
    fn loopback_packets_are_counted_once() {
        let mut trial = Trial::default();
        collected(&mut trial, window(), 1_000);
        let metric = |name: &str| trial.metrics.get(name).copied();
        assert_eq!(metric("packets_per_request.lo"), Some(4.0));
        assert_eq!(metric("packets_per_request.eth0"), Some(4.0));
        assert_eq!(metric("packets_per_request.eth1"), None);
        assert_eq!(metric("packets_per_request"), Some(8.0));
        assert_eq!(metric("context_switches_per_request"), Some(0.5));
        assert_eq!(metric("server.wait_us_per_request"), Some(10.0));
        assert_eq!(metric("server.voluntary_switches_per_request"), Some(2.0));
        assert_eq!(metric("softnet.dropped"), Some(7.0));
        assert_eq!(metric("softnet.time_squeeze"), Some(0.0));
        assert_eq!(metric("tcp.RetransSegs"), Some(5.0));
        assert_eq!(metric("collector.cpu_share"), Some(0.002));
        assert!(trial.notes.is_empty());
        assert_eq!((trial.window_s, trial.left_out.len()), (2.0, 1));
    }

    #[test]
    fn collector_cost_is_noted_without_requests() {
        let mut trial = Trial::default();
        let costly = Window {
            collector: Duration::from_millis(30),
            ..window()
        };
        collected(&mut trial, costly, 0);
        assert_eq!(trial.notes, ["the measurement itself used 1.5 % of a CPU"]);
        assert!(trial.metrics.values().all(|value| value.is_finite()));
        assert!(!trial.metrics.contains_key("packets_per_request.lo"));
    }
}
