//! Losses and delays in the kernel's counters, reported together with the bottleneck.

use onrush_measure::units::{count, plural};

use crate::outcome::{BySubject, Trial};

/// Share of retransmitted segments below which they are normal.
const RETRANSMITTED_MIN: f64 = 1.0 / 10_000.0;
/// Share of the window throttled by a CPU quota below which it is ignored.
const THROTTLED_MIN: f64 = 0.01;

/// One sentence, or `None` without losses. The counters cover the whole machine, including other programs.
pub(super) fn losses(trial: &Trial) -> Option<String> {
    let total = |subject: &str, measure: &str| {
        let measures = trial.totals.get(subject);
        let value = measures.and_then(|measures| measures.get(measure));
        value.copied().unwrap_or(0.0)
    };
    let mut parts = Vec::new();
    let dropped = of_all_cpus(&trial.totals, "softnet_dropped");
    if dropped > 0.0 {
        parts.push(format!(
            "{} dropped at a full backlog of a CPU (softnet)",
            plural(dropped as u64, "packet")
        ));
    }
    let overflows = total("tcp", "ListenOverflows");
    if overflows > 0.0 {
        parts.push(format!(
            "{} dropped at a full accept queue (ListenOverflows)",
            plural(overflows as u64, "connection")
        ));
    }
    let (again, sent) = (total("tcp", "RetransSegs"), total("tcp", "OutSegs"));
    if again > sent * RETRANSMITTED_MIN {
        parts.push(format!(
            "{} segments were retransmitted (RetransSegs)",
            count(again as u64)
        ));
    }
    let throttled = total("cgroup", "throttled_s");
    if throttled > trial.window_s * THROTTLED_MIN {
        parts.push(format!(
            "the control group's CPU quota stopped threads for {throttled:.1} s (throttled)"
        ));
    }
    if parts.is_empty() {
        return None;
    }
    Some(format!("In the window: {}.", parts.join(", ")))
}

pub(crate) fn of_all_cpus(totals: &BySubject, measure: &str) -> f64 {
    let cpus = totals.iter().filter(|(subject, _)| {
        let number = subject.strip_prefix("cpu");
        number.is_some_and(|number| number.parse::<u32>().is_ok())
    });
    // Not `sum`, which returns -0.0 for no values.
    cpus.filter_map(|(_, measures)| measures.get(measure))
        .fold(0.0, |sum, value| sum + value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(totals: &[(&str, &str, f64)]) -> Option<String> {
        let mut trial = Trial {
            window_s: 5.0,
            ..Trial::default()
        };
        for (subject, measure, value) in totals {
            let measures = trial.totals.entry((*subject).to_owned()).or_default();
            measures.insert((*measure).to_owned(), *value);
        }
        losses(&trial)
    }

    #[test]
    fn losses_are_listed_with_count_and_counter() {
        assert_eq!(said(&[]), None);
        let sentence = said(&[
            ("cpu0", "softnet_dropped", 3.0),
            ("cpu1", "softnet_dropped", 4.0),
            ("cpus of others", "softnet_dropped", 100.0),
            ("tcp", "ListenOverflows", 12.0),
        ]);
        assert_eq!(
            sentence.as_deref(),
            Some(
                "In the window: 7 packets dropped at a full backlog of a CPU (softnet), \
                 12 connections dropped at a full accept queue (ListenOverflows)."
            )
        );
        let sentence = said(&[("cgroup", "throttled_s", 2.5)]).expect("a quota");
        assert!(sentence.contains("stopped threads for 2.5 s"), "{sentence}");
    }

    #[test]
    fn small_losses_are_ignored() {
        let again = |again, sent| said(&[("tcp", "RetransSegs", again), ("tcp", "OutSegs", sent)]);
        assert_eq!(again(9.0, 100_000.0), None);
        assert!(again(11.0, 100_000.0).is_some_and(|text| text.contains("11 segments")));
        assert_eq!(said(&[("cgroup", "throttled_s", 0.04)]), None);
    }
}
