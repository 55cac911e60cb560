//! Tables of cumulative changes: the points of a work as steps, each applied on top of the previous ones, with its
//! effect.

use onrush_measure::compare::{Ratios, Rounds};

use super::number::number;
use crate::outcome::{Trial, VariantOutcome, WorkOutcome};
use crate::scenario::{Metric, Point};

const CONFIDENCE: f64 = 0.95;

pub(super) struct Step {
    /// The change: all values at the first step, then the values that differ from the previous step.
    pub(super) change: String,
    /// Median and range of the first figure.
    pub(super) value: String,
    /// Ratio to the previous step, round by round: `1.31 (1.27 … 1.36)`.
    pub(super) ratio: String,
    pub(super) limit: String,
}

pub(super) struct CumulativeSteps {
    pub(super) variant: String,
    pub(super) steps: Vec<Step>,
}

/// Title and steps of a work with cumulative changes; `None` for other works.
pub(super) fn cumulative_steps(points: &[WorkOutcome]) -> Option<(String, Vec<CumulativeSteps>)> {
    let first = points.first().filter(|work| work.is_road)?;
    let metric = first
        .figures
        .first()
        .and_then(|line| Metric::parse(&line.metric));
    let metric = metric.unwrap_or(Metric::Rate);
    let measured = first
        .variants
        .iter()
        .filter(|variant| variant.left_out.is_none());
    let roads = measured.map(|variant| CumulativeSteps {
        variant: variant.name.clone(),
        steps: steps(points, &variant.name, &metric),
    });
    Some((metric.title(), roads.collect()))
}

fn steps(points: &[WorkOutcome], variant: &str, metric: &Metric) -> Vec<Step> {
    let mut before: Option<&WorkOutcome> = None;
    let mut steps = Vec::new();
    for work in points {
        if let Some(of_it) = work.variant(variant) {
            let earlier = before.and_then(|work| work.variant(variant));
            steps.push(Step {
                change: change(before.map(|work| &work.point), &work.point),
                value: value(of_it, metric),
                ratio: earlier.map_or(String::new(), |earlier| ratio(earlier, of_it, metric)),
                limit: limit(of_it),
            });
        }
        before = Some(work);
    }
    steps
}

fn change(before: Option<&Point>, now: &Point) -> String {
    let Some(before) = before else {
        return now.to_string();
    };
    let settings = now.settings().iter();
    let changed =
        settings.filter(|setting| before.value(&setting.parameter) != Some(&setting.value));
    let changed = changed.fold(Point::default(), |point, setting| {
        point.with(&setting.parameter, &setting.value)
    });
    changed.to_string()
}

fn value(variant: &VariantOutcome, metric: &Metric) -> String {
    let symbol = metric.unit().symbol();
    let trials = undisturbed(variant);
    let values: Vec<f64> = trials
        .iter()
        .filter_map(|trial| trial.metrics.get(&metric.name()).copied())
        .collect();
    match Rounds::of(&values) {
        None => "not measured".into(),
        Some(rounds) if rounds.count < 2 => number(rounds.median, symbol),
        Some(Rounds {
            median, min, max, ..
        }) => format!(
            "{} ({} … {})",
            number(median, symbol),
            number(min, symbol),
            number(max, symbol)
        ),
    }
}

/// Rounds are interleaved, so the same round of both steps ran within minutes.
fn ratio(earlier: &VariantOutcome, now: &VariantOutcome, metric: &Metric) -> String {
    let name = metric.name();
    let (before, after) = (undisturbed(earlier), undisturbed(now));
    let pairs: Vec<(f64, f64)> = after
        .iter()
        .filter_map(|trial| {
            let beside = before.iter().find(|other| other.round == trial.round)?;
            Some((*trial.metrics.get(&name)?, *beside.metrics.get(&name)?))
        })
        .collect();
    match Ratios::of(&pairs, CONFIDENCE) {
        None => "–".into(),
        Some(ratios) if ratios.each.len() < 2 => format!("{:.2}", ratios.rounds.median),
        Some(ratios) => format!(
            "{:.2} ({:.2} … {:.2}, {:.0} %)",
            ratios.rounds.median,
            ratios.low,
            ratios.high,
            ratios.confidence * 100.0
        ),
    }
}

/// The valid, undisturbed trials, or all valid ones if all were disturbed, which a note of the run reports.
fn undisturbed(variant: &VariantOutcome) -> Vec<&Trial> {
    let valid: Vec<&Trial> = variant
        .trials
        .iter()
        .filter(|trial| trial.is_valid())
        .collect();
    let quiet: Vec<&Trial> = valid
        .iter()
        .copied()
        .filter(|trial| trial.disturbed.is_none())
        .collect();
    if quiet.is_empty() { valid } else { quiet }
}

fn limit(variant: &VariantOutcome) -> String {
    let mut trials = undisturbed(variant);
    trials.sort_by(|a, b| a.rps.total_cmp(&b.rps));
    let Some(trial) = trials.get(trials.len().saturating_sub(1) / 2) else {
        return reason(variant);
    };
    let advice = trial.limiter.advice.iter();
    let advice = advice.map(|advice| format!("To try: {advice}."));
    let sentences = std::iter::once(trial.limiter.sentence.clone()).chain(advice);
    sentences.collect::<Vec<_>>().join(" ").trim().to_owned()
}

/// Why a step has no valid round.
fn reason(variant: &VariantOutcome) -> String {
    let mut reasons = variant.trials.iter().flat_map(|trial| &trial.invalid);
    reasons.next().cloned().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample::outcome;

    #[test]
    fn tuning_steps_show_change_and_effect() {
        let work = outcome().works.remove(0);
        let at = |mask: &str, factor: f64| {
            let mut work = work.clone();
            work.point = Point::default().with("queues", "1").with("mask", mask);
            work.is_road = true;
            for variant in &mut work.variants {
                for trial in &mut variant.trials {
                    for value in trial.metrics.values_mut() {
                        *value *= factor;
                    }
                }
            }
            work
        };
        let points = [at("0", 1.0), at("2", 1.5)];
        let (title, roads) = cumulative_steps(&points).expect("a road");
        assert_eq!(title, "server CPU per request");
        assert_eq!(roads[0].steps[0].change, "queues=1 mask=0");
        assert_eq!(roads[0].steps[1].change, "mask=2");
        assert!(
            roads[0].steps[1].ratio.starts_with("1.50"),
            "{}",
            roads[0].steps[1].ratio
        );
        let mut failed = at("4", 1.0);
        for trial in failed
            .variants
            .iter_mut()
            .flat_map(|variant| &mut variant.trials)
        {
            trial.invalid = vec!["the server ended at once".into()];
        }
        let (_, roads) = super::cumulative_steps(&[points[0].clone(), failed]).expect("a road");
        assert_eq!(roads[0].steps[1].value, "not measured");
        assert_eq!(roads[0].steps[1].limit, "the server ended at once");
        assert!(cumulative_steps(&[work]).is_none());
    }
}
