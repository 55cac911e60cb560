//! Lines of the table: ours beside theirs, round by round, against a target.

use onrush_measure::compare::{Ratios, Rounds};
use serde::Serialize;

use crate::outcome::{FigureLine, Interval, Trial, VariantOutcome};
use crate::scenario::{Figure, Metric};

/// The usual confidence of an interval.
const CONFIDENCE: f64 = 0.95;

/// What became of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The median reached the target.
    Reached,
    /// It did not.
    Missed,
    /// Measured; there is no target.
    Measured,
    /// No round gave a number for both sides.
    NotMeasured,
    /// Too many rounds were invalid.
    Invalid,
}

/// The lines of one figure: one for each variant it judges.
pub fn figure_lines(figure: &Figure, variants: &[VariantOutcome]) -> Vec<FigureLine> {
    let find = |name: &str| variants.iter().find(|variant| variant.name == name);
    let theirs = figure.theirs.as_deref().and_then(find);
    figure
        .ours
        .iter()
        .filter_map(|name| find(name))
        .map(|ours| line(figure, ours, theirs))
        .collect()
}

/// One round of both sides.
enum Pair {
    Usable(f64, Option<f64>),
    Unusable(u32, String),
}

fn line(figure: &Figure, ours: &VariantOutcome, theirs: Option<&VariantOutcome>) -> FigureLine {
    let key = figure.metric.name();
    let pairs: Vec<Pair> = ours
        .trials
        .iter()
        .map(|trial| pair(&figure.metric, trial, theirs))
        .collect();
    let usable: Vec<(f64, Option<f64>)> = pairs
        .iter()
        .filter_map(|pair| match pair {
            Pair::Usable(ours, theirs) => Some((*ours, *theirs)),
            Pair::Unusable(..) => None,
        })
        .collect();
    let own: Vec<f64> = usable.iter().map(|(ours, _)| *ours).collect();
    let other: Vec<f64> = usable.iter().filter_map(|(_, theirs)| *theirs).collect();
    let ratios = ratios(&usable);
    let value = match theirs {
        Some(_) => ratios.as_ref().map(|ratios| ratios.rounds),
        None => Rounds::of(&own),
    };
    FigureLine {
        title: figure.metric.title(),
        unit: figure.metric.unit().symbol().into(),
        ours: ours.name.clone(),
        theirs: theirs.map(|theirs| theirs.name.clone()),
        ours_value: Rounds::of(&own),
        theirs_value: Rounds::of(&other),
        value,
        interval: ratios.map(|ratios| Interval {
            low: ratios.low,
            high: ratios.high,
            confidence: ratios.confidence,
        }),
        target: figure.bound,
        verdict: verdict(figure, value.map(|value| value.median), &pairs),
        notes: notes(&figure.metric, ours, &pairs),
        metric: key,
    }
}

fn ratios(usable: &[(f64, Option<f64>)]) -> Option<Ratios> {
    let pairs: Vec<(f64, f64)> = usable
        .iter()
        .filter_map(|(ours, theirs)| Some((*ours, (*theirs)?)))
        .collect();
    Ratios::of(&pairs, CONFIDENCE)
}

fn pair(metric: &Metric, ours: &Trial, theirs: Option<&VariantOutcome>) -> Pair {
    let own = match value(metric, ours, Side::Ours) {
        Ok(own) => own,
        Err(why) => return Pair::Unusable(ours.round, why),
    };
    let Some(theirs) = theirs else {
        return Pair::Usable(own, None);
    };
    let beside = theirs.trials.iter().find(|trial| trial.round == ours.round);
    match beside.map(|trial| value(metric, trial, Side::Theirs)) {
        Some(Ok(other)) => Pair::Usable(own, Some(other)),
        Some(Err(why)) => Pair::Unusable(ours.round, format!("{}: {why}", theirs.name)),
        None => Pair::Unusable(ours.round, format!("{} did not run", theirs.name)),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Ours,
    Theirs,
}

fn value(metric: &Metric, trial: &Trial, side: Side) -> Result<f64, String> {
    if !trial.invalid.is_empty() {
        return Err(trial.invalid.join("; "));
    }
    let spoils = match metric {
        Metric::Cpu(_) | Metric::Memory(_) => false,
        // Our rate is then at least this much; theirs would flatter the ratio.
        Metric::Rate => side == Side::Theirs,
        Metric::LatencyMean | Metric::Latency(_) => true,
    };
    if trial.client_is_limit && spoils {
        return Err("the client was the limit".into());
    }
    trial
        .metrics
        .get(&metric.name())
        .copied()
        .ok_or_else(|| "not measured".into())
}

/// A figure stands on at least half of its rounds.
fn verdict(figure: &Figure, median: Option<f64>, pairs: &[Pair]) -> Verdict {
    let unusable = pairs
        .iter()
        .filter(|pair| matches!(pair, Pair::Unusable(..)))
        .count();
    if unusable > 0 && unusable * 2 >= pairs.len() {
        return Verdict::Invalid;
    }
    let Some(median) = median else {
        return Verdict::NotMeasured;
    };
    match figure.bound {
        None => Verdict::Measured,
        Some(bound) if bound.holds(median) => Verdict::Reached,
        Some(_) => Verdict::Missed,
    }
}

/// Rounds that do not count or count for less, each reason once.
fn notes(metric: &Metric, ours: &VariantOutcome, pairs: &[Pair]) -> Vec<String> {
    let mut reasons: Vec<(String, Vec<u32>)> = Vec::new();
    let mut add = |why: &str, round: u32| match reasons.iter_mut().find(|(known, _)| known == why) {
        Some((_, rounds)) => rounds.push(round),
        None => reasons.push((why.into(), vec![round])),
    };
    for (pair, trial) in pairs.iter().zip(&ours.trials) {
        match pair {
            Pair::Unusable(round, why) => add(&format!("left out: {why}"), *round),
            Pair::Usable(..) if *metric == Metric::Rate && trial.client_is_limit => {
                add(
                    "the client was the limit, the true rate is higher",
                    trial.round,
                );
            }
            Pair::Usable(..) => {}
        }
    }
    let words = |(why, rounds): (String, Vec<u32>)| {
        if rounds.len() == pairs.len() {
            return format!("every round: {why}");
        }
        let list: Vec<_> = rounds.iter().map(u32::to_string).collect();
        format!("round {}: {why}", list.join(", "))
    };
    reasons.into_iter().map(words).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::placement::place;
    use crate::scenario::{Bound, Role};

    fn variant(name: &str, values: &[f64]) -> VariantOutcome {
        let trial = |(index, value): (usize, &f64)| Trial {
            round: index as u32 + 1,
            metrics: [("rps".to_owned(), *value)].into(),
            ..Trial::default()
        };
        VariantOutcome {
            name: name.into(),
            ours: true,
            under_test: Role::Server,
            programs: Default::default(),
            placement: place(&[0, 1], &[Role::Client, Role::Server], Role::Server, None),
            metrics: Default::default(),
            trials: values.iter().enumerate().map(trial).collect(),
        }
    }

    fn figure(theirs: Option<&str>, bound: Option<Bound>) -> Figure {
        Figure {
            metric: Metric::Rate,
            ours: vec!["ours".into()],
            theirs: theirs.map(String::from),
            bound,
        }
    }

    #[test]
    fn ratio_is_the_median_of_rounds_and_not_the_ratio_of_medians() {
        let variants = [
            variant("ours", &[10.0, 40.0, 90.0]),
            variant("theirs", &[10.0, 20.0, 100.0]),
        ];
        let line = &figure_lines(
            &figure(Some("theirs"), Some(Bound::AtLeast(1.0))),
            &variants,
        )[0];
        let value = line.value.expect("three rounds");
        assert_eq!((value.median, value.min, value.max), (1.0, 0.9, 2.0));
        assert_eq!(line.verdict, Verdict::Reached);
    }

    #[test]
    fn number_without_peer_is_judged_itself() {
        let variants = [variant("ours", &[900.0, 1000.0, 1100.0])];
        let judge = |bound| figure_lines(&figure(None, bound), &variants)[0].verdict;
        assert_eq!(judge(Some(Bound::AtMost(1024.0))), Verdict::Reached);
        assert_eq!(judge(Some(Bound::AtMost(999.0))), Verdict::Missed);
        assert_eq!(judge(None), Verdict::Measured);
    }

    #[test]
    fn invalid_rounds_are_left_out_and_named_until_too_many_are() {
        let mut ours = variant("ours", &[1.0, 2.0, 3.0]);
        ours.trials[0].invalid.push("3 requests failed".into());
        let line = &figure_lines(&figure(None, None), &[ours.clone()])[0];
        assert_eq!(line.value.map(|value| value.median), Some(2.5));
        assert_eq!(line.notes, ["round 1: left out: 3 requests failed"]);
        ours.trials[1].invalid.push("3 requests failed".into());
        let line = &figure_lines(&figure(None, None), &[ours])[0];
        assert_eq!(line.verdict, Verdict::Invalid);
    }

    #[test]
    fn full_client_makes_our_rate_a_floor_and_spoils_theirs() {
        let mut variants = [variant("ours", &[3.0]), variant("theirs", &[1.0])];
        variants[0].trials[0].client_is_limit = true;
        let line = &figure_lines(&figure(Some("theirs"), None), &variants)[0];
        assert_eq!(line.verdict, Verdict::Measured);
        assert_eq!(
            line.notes,
            ["every round: the client was the limit, the true rate is higher"]
        );
        variants[1].trials[0].client_is_limit = true;
        let line = &figure_lines(&figure(Some("theirs"), None), &variants)[0];
        assert_eq!(line.verdict, Verdict::Invalid);
    }

    #[test]
    fn nothing_measured_is_said() {
        let line = &figure_lines(
            &figure(Some("theirs"), None),
            &[variant("ours", &[]), variant("theirs", &[1.0])],
        )[0];
        assert_eq!(line.verdict, Verdict::NotMeasured);
    }
}
