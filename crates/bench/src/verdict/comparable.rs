//! Checks whether one round of two variants may be divided: both clients use the same definitions, and both sides sent
//! the same responses.

use std::collections::BTreeMap;

use onrush_measure::units;

use super::bottleneck::percent;
use crate::outcome::{Latency, Trial, VariantOutcome};
use crate::scenario::{Figure, Metric, MetricKind, ResponseRule, Role};

/// Maximum difference between both sides in the share of a status class.
const CLASS_SHARE_MAX: f64 = 0.01;
/// Tolerance for response heads. They have between 80 and 240 bytes in the committed runs.
const SIZE_SLACK_BYTES: f64 = 512.0;
/// Tolerance for bodies compressed by two libraries at the same level.
const SIZE_RATIO_MAX: f64 = 1.25;

/// Why the ratio of both rounds is meaningless; `None` if it is meaningful, or the clients do not report enough to
/// decide.
pub(super) fn incomparable(
    figure: &Figure,
    (variant, ours): (&VariantOutcome, &Trial),
    (peer, theirs): (&VariantOutcome, &Trial),
) -> Option<String> {
    let (is_per_request, is_latency) = match figure.metric.metric_kind() {
        MetricKind::Rate | MetricKind::Cost => (true, false),
        MetricKind::Latency => (false, true),
        MetricKind::Memory | MetricKind::Count => (false, false),
    };
    if !ours.has_metrics() || !theirs.has_metrics() {
        return None;
    }
    if is_per_request && ours.counted != theirs.counted {
        let (own, other) = (ours.counted.plural(), theirs.counted.plural());
        return Some(format!("its client counts {other}, ours counts {own}"));
    }
    if let Some(why) = definitions(&figure.metric, ours, theirs).filter(|_| is_latency) {
        return Some(why);
    }
    match figure.responses {
        ResponseRule::Differ => None,
        ResponseRule::NotDiffer if is_per_request || is_latency => {
            let is_one_client =
                variant.programs.get(&Role::Client) == peer.programs.get(&Role::Client);
            statuses(ours, theirs).or_else(|| sizes(ours, theirs).filter(|_| is_one_client))
        }
        ResponseRule::NotDiffer => None,
    }
}

/// Checks that both clients measure latencies from the same moment.
fn definitions(metric: &Metric, ours: &Trial, theirs: &Trial) -> Option<String> {
    let of = |trial: &Trial| -> Option<Latency> {
        match metric.role() {
            Some(Role::Control) => trial.control_latency_us.clone(),
            Some(_) | None => trial.latency_us.clone(),
        }
    };
    let (own, other) = (of(ours)?.from, of(theirs)?.from);
    (own != other).then(|| format!("its client {}, ours {}", other.words(), own.words()))
}

/// Checks that the shares of status classes are the same.
fn statuses(ours: &Trial, theirs: &Trial) -> Option<String> {
    let (own, other) = (shares(&ours.statuses)?, shares(&theirs.statuses)?);
    let of =
        |shares: &BTreeMap<String, f64>, class: &str| shares.get(class).copied().unwrap_or(0.0);
    let mut classes = own.keys().chain(other.keys());
    let class =
        classes.find(|class| (of(&own, class) - of(&other, class)).abs() > CLASS_SHARE_MAX)?;
    Some(format!(
        "{} of its responses have status {class}, {} of ours",
        percent(of(&other, class)),
        percent(of(&own, class))
    ))
}

fn shares(statuses: &BTreeMap<String, u64>) -> Option<BTreeMap<String, f64>> {
    let all: u64 = statuses.values().sum();
    let share = |(class, count): (&String, &u64)| (class.clone(), *count as f64 / all as f64);
    (all > 0).then(|| statuses.iter().map(share).collect())
}

/// Checks that the sizes of responses, head and body as counted by the client, differ only as much as heads do.
fn sizes(ours: &Trial, theirs: &Trial) -> Option<String> {
    let size = |trial: &Trial| Some(trial.bytes_per_s? / trial.rps).filter(|size| size.is_finite());
    let (own, other) = (size(ours)?, size(theirs)?);
    let (small, large) = (own.min(other), own.max(other));
    let differ = large - small > SIZE_SLACK_BYTES && large > small * SIZE_RATIO_MAX;
    differ.then(|| {
        format!(
            "its responses have {}, ours {}",
            units::bytes(other),
            units::bytes(own)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::LatencyFrom;

    fn why(metric: &str, responses: ResponseRule, change: impl Fn(&mut Trial)) -> Option<String> {
        let figure = Figure {
            metric: Metric::parse(metric).expect("a metric"),
            ours: Vec::new(),
            theirs: None,
            above: BTreeMap::new(),
            bound: None,
            responses,
        };
        let ours = Trial {
            rps: 100.0,
            bytes_per_s: Some(100_000.0),
            statuses: [("2xx".into(), 1_000)].into(),
            latency_us: Some(Latency {
                from: LatencyFrom::Sent,
                mean: Some(1.0),
                max: None,
                percentiles: Vec::new(),
            }),
            metrics: [("rps".into(), 100.0)].into(),
            ..Trial::default()
        };
        let mut theirs = ours.clone();
        change(&mut theirs);
        let variant = crate::report::sample::outcome().works[0].variants[0].clone();
        incomparable(&figure, (&variant, &ours), (&variant, &theirs))
    }

    #[test]
    fn differing_latency_definitions_are_incomparable() {
        let change = |trial: &mut Trial| {
            let latency = trial.latency_us.as_mut().expect("latencies");
            latency.from = LatencyFrom::Backfilled;
        };
        let said = why("latency.p99", ResponseRule::NotDiffer, change);
        let expected =
            "its client adds samples for delayed requests, ours measures from sending a request";
        assert_eq!(said.as_deref(), Some(expected));
        assert_eq!(why("rps", ResponseRule::NotDiffer, change), None);
    }

    #[test]
    fn differing_statuses_are_incomparable() {
        let change = |trial: &mut Trial| {
            trial.statuses = [("2xx".into(), 500), ("3xx".into(), 500)].into();
        };
        let said = why("server.cpu_us_per_request", ResponseRule::NotDiffer, change);
        assert_eq!(
            said.as_deref(),
            Some("50 % of its responses have status 2xx, 100 % of ours")
        );
        assert_eq!(why("rps", ResponseRule::Differ, change), None);
    }

    #[test]
    fn only_differing_body_sizes_are_incomparable() {
        let of = |bytes_per_s: f64| {
            why("rps", ResponseRule::NotDiffer, |trial| {
                trial.bytes_per_s = Some(bytes_per_s);
            })
        };
        assert!(of(1_000.0).is_some_and(|why| why.starts_with("its responses have ")));
        assert_eq!(of(120_000.0), None);
        assert!(of(400_000.0).is_some());
    }
}
