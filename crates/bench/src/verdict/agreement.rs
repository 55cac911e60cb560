//! Checks whether the rounds of one variant agree. If they do not, the system has several states, and the median shows
//! only one of them.

use std::collections::BTreeMap;

use super::bottleneck::percent;
use crate::outcome::{FigureLine, Trial, VariantOutcome};
use crate::scenario::{Bound, Metric, MetricKind};

/// With fewer rounds an outlier cannot be identified.
const ROUNDS_MIN: usize = 3;
/// Limit on the deviation of rates and costs: quiet runs under `runs/` have 1 to 4 %, disturbed ones 15 % and more.
const DEVIATION_MAX: f64 = 0.10;
/// Limit on the deviation of latencies, whose high percentiles depend on few requests.
const DEVIATION_OF_LATENCY_MAX: f64 = 0.25;
/// Interquartile range of a normal distribution in standard deviations.
const QUARTILES_APART: f64 = 1.349;
/// Standard error of the median of a normal distribution relative to that of the mean.
const MEDIAN: f64 = 1.2533;

/// Deviation of rounds as a share of their median: the interquartile range scaled to a standard deviation. It ignores
/// one outlier in five rounds but not two; the median absolute deviation would miss a second state in fewer than half
/// of the rounds. `None` with fewer than three rounds or a median of 0.
pub(super) fn deviation(values: &[f64]) -> Option<f64> {
    if values.len() < ROUNDS_MIN {
        return None;
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let apart = at(&sorted, 0.75) - at(&sorted, 0.25);
    let deviation = apart / QUARTILES_APART / at(&sorted, 0.5).abs();
    deviation.is_finite().then_some(deviation)
}

/// Quantile of sorted values with linear interpolation.
fn at(sorted: &[f64], share: f64) -> f64 {
    let place = (sorted.len() - 1) as f64 * share;
    let (low, high) = (
        sorted[place.floor() as usize],
        sorted[place.ceil() as usize],
    );
    low + (high - low) * place.fract()
}

/// Limit on the deviation of a metric's rounds: the deviation at which this number of rounds gives the requested
/// precision, or else a limit for the kind of metric. `None` for counts of events, which are few and vary.
pub(super) fn bar(metric: &Metric, precision: Option<f64>, rounds: usize) -> Option<f64> {
    let bar = match metric.metric_kind() {
        MetricKind::Rate | MetricKind::Cost | MetricKind::Memory => DEVIATION_MAX,
        MetricKind::Latency => DEVIATION_OF_LATENCY_MAX,
        MetricKind::Count => return None,
    };
    Some(precision.map_or(bar, |precision| precision * (rounds as f64).sqrt() / MEDIAN))
}

/// Why a figure with disagreeing rounds cannot be judged: the target is between their quartiles, so other rounds might
/// give another verdict.
pub(super) fn undecided(metric: &Metric, values: &[f64], target: Bound) -> Option<String> {
    let apart = deviation(values)?;
    let bar = bar(metric, None, values.len()).filter(|bar| apart > *bar)?;
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let is_between = target.holds(at(&sorted, 0.25)) != target.holds(at(&sorted, 0.75));
    is_between.then(|| {
        format!(
            "its rounds do not agree: they differ by {} (limit {}), and the target is between them",
            percent(apart),
            percent(bar)
        )
    })
}

/// Metrics of a work's figures whose rounds disagree, by variant, with their deviation.
pub fn disagreements(
    figures: &[FigureLine],
    variant: &VariantOutcome,
    precision: Option<f64>,
) -> BTreeMap<String, f64> {
    let names = figures
        .iter()
        .filter(|line| line.ours == variant.name || line.theirs.as_ref() == Some(&variant.name))
        .map(|line| &line.metric);
    let apart = names.filter_map(|name| {
        let metric = Metric::parse(name)?;
        let values: Vec<f64> = variant
            .trials
            .iter()
            .filter(|trial| trial.is_valid())
            .filter_map(|trial| trial.metrics.get(name).copied())
            .collect();
        let deviation = deviation(&values)?;
        let bar = bar(&metric, precision, values.len())?;
        (deviation > bar).then(|| (name.clone(), deviation))
    });
    apart.collect()
}

/// Suggestion to make the rounds of a variant agree, based on its trials.
pub fn remedy(trials: &[Trial]) -> &'static str {
    let any = |is_so: fn(&Trial) -> bool| trials.iter().any(is_so);
    if any(|trial| trial.disturbed.is_some()) {
        return "end the other programs that used its CPUs";
    }
    if any(|trial| trial.unsteady.is_some()) {
        return "give it a longer `warm_up`: its rate still changed";
    }
    "increase `measure` and `rounds`, and compare `samples.csv` of a low and a high round"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bimodal_rounds_disagree_but_single_outlier_does_not() {
        let one_odd = deviation(&[100.0, 101.0, 99.0, 100.5, 300.0]).expect("five rounds");
        assert!(one_odd < 0.02, "{one_odd}");
        let two_states = deviation(&[100.0, 140.0, 101.0, 139.0, 100.0]).expect("five rounds");
        assert!(two_states > 0.25, "{two_states}");
        assert_eq!(deviation(&[1.0, 2.0]), None);
        assert_eq!(deviation(&[0.0, 0.0, 0.0]), None);
    }

    #[test]
    fn deviation_limit_depends_on_precision_or_kind() {
        let rate = Metric::Rate;
        assert_eq!(bar(&rate, None, 5), Some(DEVIATION_MAX));
        assert_eq!(
            bar(&Metric::LatencyMean, None, 5),
            Some(DEVIATION_OF_LATENCY_MAX)
        );
        let asked = bar(&rate, Some(0.02), 25).expect("a bar");
        assert!((asked - 0.1 / MEDIAN).abs() < 1e-9, "{asked}");
        let events = Metric::parse("tcp.RetransSegs").expect("a metric");
        assert_eq!(bar(&events, None, 5), None);
    }

    #[test]
    fn disagreeing_rounds_are_reported_with_remedy() {
        let work = crate::report::sample::outcome().works.remove(0);
        let (figures, mut variant) = (work.figures, work.variants[0].clone());
        assert!(disagreements(&figures, &variant, None).is_empty());
        for (trial, factor) in variant.trials.iter_mut().zip([1.0, 1.5, 2.0]) {
            for value in trial.metrics.values_mut() {
                *value *= factor;
            }
        }
        let found = disagreements(&figures, &variant, None);
        let names: Vec<&str> = found.keys().map(String::as_str).collect();
        assert_eq!(names, ["server.cpu_us_per_request"]);
        assert!(remedy(&variant.trials).contains("increase `measure` and `rounds`"));
        variant.trials[1].disturbed = Some(0.3);
        assert!(remedy(&variant.trials).contains("other programs"));
    }
}
