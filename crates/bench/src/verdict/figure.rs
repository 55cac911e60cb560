//! Lines of the results table: our variant compared with a peer, round by round, against a target.

use onrush_measure::compare::{Ratios, Rounds};

use super::agreement::undecided;
use super::bottleneck::percent;
use super::comparable::incomparable;
use super::validity::unsteady_in_words;
use crate::outcome::{FigureLine, Interval, Trial, VariantOutcome, Verdict, WorkOutcome};
use crate::scenario::{Figure, Metric, MetricKind, Role};

pub(super) const CONFIDENCE: f64 = 0.95;

/// Lines of one figure, one for each variant that it judges.
pub fn figure_lines(figure: &Figure, variants: &[VariantOutcome]) -> Vec<FigureLine> {
    let find = |name: &str| variants.iter().find(|variant| variant.name == name);
    let theirs = figure.theirs.as_deref().and_then(find);
    figure
        .ours
        .iter()
        .filter_map(|name| find(name))
        .map(|ours| line(figure, variants, ours, theirs))
        .collect()
}

/// Value of a trial: its metric, or the difference to another variant in the same round.
fn number(figure: &Figure, variants: &[VariantOutcome], name: &str, trial: &Trial) -> Option<f64> {
    let metric = figure.metric.name();
    let own = trial.metrics.get(&metric)?;
    let Some(base) = figure.above.get(name) else {
        return Some(*own);
    };
    let base = variants.iter().find(|variant| variant.name == *base)?;
    let beside = base
        .trials
        .iter()
        .find(|other| other.round == trial.round)?;
    let is_sound = beside.invalid.is_empty();
    is_sound.then(|| Some(own - beside.metrics.get(&metric)?))?
}

struct Pair {
    round: u32,
    /// The values, if both sides have one.
    values: Option<(f64, Option<f64>)>,
    /// Why the round does not count: an invalid trial, a disturbed control client, other programs, a client at its limit, an
    /// unsteady rate, or a missing value on one side.
    excluded_reason: Option<ExcludedReason>,
    /// Share of a CPU that other programs used, the larger of the two sides; `None` if it was within the limit.
    disturbed: Option<f64>,
}

#[derive(Clone, PartialEq)]
enum ExcludedReason {
    Because(String),
    /// Other programs used this share of a CPU.
    Disturbed(f64),
}

fn line(
    figure: &Figure,
    variants: &[VariantOutcome],
    ours: &VariantOutcome,
    theirs: Option<&VariantOutcome>,
) -> FigureLine {
    let trials = ours.trials.iter();
    let pairs: Vec<Pair> = trials
        .map(|trial| pair(figure, variants, (ours, trial), theirs))
        .collect();
    let spoilt = pairs
        .iter()
        .filter(|pair| pair.excluded_reason.is_some())
        .count();
    // A figure is judged if more than half of its rounds count. Otherwise all values are shown without a verdict.
    let standing = match spoilt * 2 < pairs.len().max(1) {
        true => FigureValidity::Valid,
        false => FigureValidity::Invalid,
    };
    let shown: Vec<(f64, Option<f64>)> = pairs
        .iter()
        .filter(|pair| standing == FigureValidity::Invalid || pair.excluded_reason.is_none())
        .filter_map(|pair| pair.values)
        .collect();
    let own: Vec<f64> = shown.iter().map(|(ours, _)| *ours).collect();
    let other: Vec<f64> = shown.iter().filter_map(|(_, theirs)| *theirs).collect();
    // Without a peer, values are divided by 1.
    let pairs_of_numbers = || own.iter().map(|own| (*own, 1.0)).collect::<Vec<_>>();
    let ratios = match theirs {
        Some(_) => ratios(&shown),
        None => Ratios::of(&pairs_of_numbers(), CONFIDENCE),
    };
    let value = ratios.as_ref().map(|ratios| ratios.rounds);
    let undecided = figure
        .bound
        .zip(ratios.as_ref())
        .and_then(|(bound, ratios)| undecided(&figure.metric, &ratios.each, bound))
        .filter(|_| standing == FigureValidity::Valid);
    FigureLine {
        metric: figure.metric.name(),
        title: title(figure, ours),
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
        is_disturbed: is_mostly_disturbed(&figure.metric, &pairs),
        verdict: match undecided {
            Some(_) => Verdict::Invalid,
            None => verdict(figure, value.map(|value| value.median), standing),
        },
        notes: left_out(ours, theirs).map_or_else(
            || {
                let notes = notes(&figure.metric, ours, &pairs, standing).into_iter();
                let shown = all_rounds_note(&shown, &pairs, standing);
                notes.chain(undecided).chain(shown).collect()
            },
            |why| vec![why],
        ),
    }
}

/// The metric with the client's unit, and the variant that is subtracted.
fn title(figure: &Figure, ours: &VariantOutcome) -> String {
    let mut ran = ours.trials.iter().filter(|trial| trial.has_metrics());
    let counted = ran.next().map(|trial| trial.counted).unwrap_or_default();
    let title = figure.metric.title_of(counted);
    match figure.above.get(&ours.name) {
        Some(base) => format!("{title} above {base}"),
        None => title,
    }
}

/// Note that values are of all rounds, if half of them or more do not count and some do: charts contain only the
/// latter.
fn all_rounds_note(
    shown: &[(f64, Option<f64>)],
    pairs: &[Pair],
    standing: FigureValidity,
) -> Option<String> {
    let some_count = pairs.iter().any(|pair| pair.excluded_reason.is_none());
    (standing == FigureValidity::Invalid && some_count && shown.len() > 1)
        .then(|| "the figures include all rounds, because too few are valid".to_owned())
}

/// Why a side was not measured at all.
fn left_out(ours: &VariantOutcome, theirs: Option<&VariantOutcome>) -> Option<String> {
    let mut sides = [Some(ours), theirs].into_iter().flatten();
    sides.find_map(|side| {
        let why = side.left_out.as_ref()?;
        Some(format!("{}: {why}", side.name))
    })
}

fn ratios(shown: &[(f64, Option<f64>)]) -> Option<Ratios> {
    let pairs: Vec<(f64, f64)> = shown
        .iter()
        .filter_map(|(ours, theirs)| Some((*ours, (*theirs)?)))
        .collect();
    Ratios::of(&pairs, CONFIDENCE)
}

fn pair(
    figure: &Figure,
    variants: &[VariantOutcome],
    (variant, ours): (&VariantOutcome, &Trial),
    theirs: Option<&VariantOutcome>,
) -> Pair {
    let number = |name: &str, trial: &Trial| number(figure, variants, name, trial);
    let aim = RoundCriteria::of(figure);
    let mut spoilt = excluded_reason(&aim, ours, Side::Ours);
    let mut values = number(&variant.name, ours).map(|own| (own, None));
    let mut disturbed = ours.disturbed;
    if let Some(theirs) = theirs {
        let beside = theirs.trials.iter().find(|trial| trial.round == ours.round);
        let theirs_spoilt = match beside {
            Some(trial) => self::excluded_reason(&aim, trial, Side::Theirs).or_else(|| {
                incomparable(figure, (variant, ours), (theirs, trial)).map(ExcludedReason::Because)
            }),
            None => Some(ExcludedReason::Because("did not run".into())),
        };
        let theirs_spoilt = theirs_spoilt.map(|why| match why {
            ExcludedReason::Because(why) => {
                ExcludedReason::Because(format!("{}: {why}", theirs.name))
            }
            ExcludedReason::Disturbed(share) => ExcludedReason::Disturbed(share),
        });
        // A failure takes precedence over a disturbance of the other side.
        spoilt = match (spoilt, theirs_spoilt) {
            (Some(ExcludedReason::Disturbed(_)), Some(ExcludedReason::Because(why))) => {
                Some(ExcludedReason::Because(why))
            }
            (own, theirs) => own.or(theirs),
        };
        let theirs_disturbed = beside.and_then(|trial| trial.disturbed);
        disturbed = disturbed
            .into_iter()
            .chain(theirs_disturbed)
            .reduce(f64::max);
        let other = beside.and_then(|trial| number(&theirs.name, trial));
        values = values.and_then(|(own, _)| Some((own, Some(other?))));
    }
    Pair {
        round: ours.round,
        values,
        excluded_reason: spoilt,
        disturbed,
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Ours,
    Theirs,
}

struct RoundCriteria<'a> {
    metric: &'a Metric,
    has_target: bool,
}

impl RoundCriteria<'_> {
    fn of(figure: &Figure) -> RoundCriteria<'_> {
        RoundCriteria {
            metric: &figure.metric,
            has_target: figure.bound.is_some(),
        }
    }
}

/// Whether a round of a variant counts in all figures of the work with this metric. Without such a figure, every valid
/// round counts.
pub(crate) fn counts(work: &WorkOutcome, variant: &str, metric: &Metric, trial: &Trial) -> bool {
    let name = metric.name();
    let lines = work.figures.iter().filter(|line| line.metric == name);
    let spoilt = |line: &FigureLine| {
        let aim = RoundCriteria {
            metric,
            has_target: line.target.is_some(),
        };
        let is_ours = line.ours == variant;
        let is_theirs = line.theirs.as_deref() == Some(variant);
        (is_ours && excluded_reason(&aim, trial, Side::Ours).is_some())
            || (is_theirs && excluded_reason(&aim, trial, Side::Theirs).is_some())
    };
    trial.is_valid() && !lines.into_iter().any(spoilt)
}

fn excluded_reason(aim: &RoundCriteria<'_>, trial: &Trial, side: Side) -> Option<ExcludedReason> {
    if !trial.invalid.is_empty() {
        return Some(ExcludedReason::Because(trial.invalid.join("; ")));
    }
    let metric = aim.metric;
    let is_of_control = metric.role() == Some(Role::Control);
    if is_of_control && !trial.control_disturbed.is_empty() {
        let why = trial.control_disturbed.join("; ");
        return Some(ExcludedReason::Because(format!(
            "the control client: {why}"
        )));
    }
    // Without a target a disturbed round is shown; the line has a note.
    if let Some(share) = trial.disturbed.filter(|_| aim.has_target) {
        return Some(ExcludedReason::Disturbed(share));
    }
    let (needs_client_with_room, needs_steady_rate) = match metric.metric_kind() {
        MetricKind::Cost | MetricKind::Count | MetricKind::Memory => (false, false),
        // Our rate is then a lower bound, which is acceptable; a lower bound of the peer's rate would favour us.
        MetricKind::Rate => (side == Side::Theirs, true),
        // The control client's latencies do not depend on the load client being saturated.
        MetricKind::Latency => (!is_of_control, true),
    };
    if trial.client_is_limit && needs_client_with_room {
        return Some(ExcludedReason::Because("the client was the limit".into()));
    }
    if let Some(change) = trial.unsteady.filter(|_| needs_steady_rate) {
        return Some(ExcludedReason::Because(unsteady_in_words(change)));
    }
    let is_measured = trial.metrics.contains_key(&metric.name());
    (!is_measured).then(|| ExcludedReason::Because("not measured".into()))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum FigureValidity {
    Valid,
    Invalid,
}

fn verdict(figure: &Figure, median: Option<f64>, standing: FigureValidity) -> Verdict {
    let Some(median) = median else {
        return Verdict::NotMeasured;
    };
    if standing == FigureValidity::Invalid {
        return Verdict::Invalid;
    }
    match figure.bound {
        None => Verdict::Measured,
        Some(bound) if bound.holds(median) => Verdict::Reached,
        Some(_) => Verdict::Missed,
    }
}

fn is_mostly_disturbed(metric: &Metric, pairs: &[Pair]) -> bool {
    let disturbed = pairs.iter().filter(|pair| is_disturbed(metric, pair));
    2 * disturbed.count() >= pairs.len().max(1)
}

/// Whether other programs affected a value that is shown because it has no target. Memory does not depend on CPU use.
fn is_disturbed(metric: &Metric, pair: &Pair) -> bool {
    pair.disturbed.is_some() && metric.metric_kind() != MetricKind::Memory
}

/// Reasons for rounds that do not count or were disturbed, without duplicates.
fn notes(
    metric: &Metric,
    ours: &VariantOutcome,
    pairs: &[Pair],
    standing: FigureValidity,
) -> Vec<String> {
    let mut reasons: Vec<(String, Vec<u32>)> = Vec::new();
    let mut add = |why: &str, round: u32| match reasons.iter_mut().find(|(known, _)| known == why) {
        Some((_, rounds)) => rounds.push(round),
        None => reasons.push((why.into(), vec![round])),
    };
    let most = pairs.iter().filter_map(|pair| pair.disturbed);
    let most = percent(most.fold(0.0, f64::max));
    let out = match standing {
        FigureValidity::Valid => "left out, ",
        FigureValidity::Invalid => "",
    };
    for (pair, trial) in pairs.iter().zip(&ours.trials) {
        match &pair.excluded_reason {
            Some(ExcludedReason::Because(why)) => add(&format!("{out}{why}"), pair.round),
            Some(ExcludedReason::Disturbed(_)) => add(
                &format!("{out}other programs used up to {most} of a CPU"),
                pair.round,
            ),
            None if is_disturbed(metric, pair) => add(
                &format!("disturbed: other programs used up to {most} of a CPU"),
                pair.round,
            ),
            None if metric.metric_kind() == MetricKind::Rate && trial.client_is_limit => {
                add(
                    "the client was the limit, the true rate is higher",
                    pair.round,
                );
            }
            None => {}
        }
    }
    let words = |(why, rounds): (String, Vec<u32>)| {
        if rounds.len() == pairs.len() {
            return why;
        }
        let list: Vec<_> = rounds.iter().map(u32::to_string).collect();
        let noun = if rounds.len() == 1 { "round" } else { "rounds" };
        format!("{noun} {}: {why}", list.join(", "))
    };
    reasons.into_iter().map(words).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::placement::place;
    use crate::scenario::{Bound, CountedUnit};

    fn variant(name: &str, values: &[f64]) -> VariantOutcome {
        let trial = |(index, value): (usize, &f64)| Trial {
            round: index as u32 + 1,
            metrics: [("rps".to_owned(), *value)].into(),
            ..Trial::default()
        };
        VariantOutcome {
            hosts: [].into(),
            name: name.into(),
            ours: true,
            under_test: Role::Server,
            programs: Default::default(),
            placement: place(&[0, 1], &[Role::Client, Role::Server], Role::Server, None),
            left_out: None,
            disagreeing: Default::default(),
            metrics: Default::default(),
            trials: values.iter().enumerate().map(trial).collect(),
        }
    }

    fn figure(theirs: Option<&str>, bound: Option<Bound>) -> Figure {
        Figure {
            metric: Metric::Rate,
            ours: vec!["ours".into()],
            theirs: theirs.map(String::from),
            above: Default::default(),
            bound,
            responses: Default::default(),
        }
    }

    #[test]
    fn ratio_is_median_of_round_ratios() {
        let variants = [
            variant("ours", &[10.0, 40.0, 90.0]),
            variant("theirs", &[10.0, 20.0, 100.0]),
        ];
        let line = &figure_lines(
            &figure(Some("theirs"), Some(Bound::AtLeast(0.9))),
            &variants,
        )[0];
        let value = line.value.expect("three rounds");
        assert_eq!((value.median, value.min, value.max), (1.0, 0.9, 2.0));
        assert_eq!(line.verdict, Verdict::Reached);
    }

    #[test]
    fn counted_unit_sets_title_and_must_match() {
        let mut variants = [variant("ours", &[10.0]), variant("theirs", &[10.0])];
        variants[0].trials[0].counted = CountedUnit::Bytes;
        let alone = &figure_lines(&figure(None, None), &variants)[0];
        assert_eq!(alone.title, "bytes per second");
        assert_eq!(alone.verdict, Verdict::Measured);
        let beside = &figure_lines(&figure(Some("theirs"), None), &variants)[0];
        assert_eq!(beside.verdict, Verdict::Invalid);
        assert_eq!(
            beside.notes,
            ["theirs: its client counts requests, ours counts bytes"]
        );
        let cost = Metric::Cpu(Role::Server).title_of(CountedUnit::Bytes);
        assert_eq!(cost, "server CPU per byte");
    }

    #[test]
    fn overheads_are_compared_per_round() {
        let variants = [
            variant("ours", &[10.0, 20.0]),
            variant("ours with TLS", &[12.0, 23.0]),
            variant("theirs", &[10.0, 30.0]),
            variant("theirs with TLS", &[14.0, 36.0]),
        ];
        let above = [("ours with TLS", "ours"), ("theirs with TLS", "theirs")];
        let figure = Figure {
            ours: vec!["ours with TLS".into()],
            above: above.map(|(name, base)| (name.into(), base.into())).into(),
            ..figure(Some("theirs with TLS"), Some(Bound::AtMost(0.55)))
        };
        let line = &figure_lines(&figure, &variants)[0];
        let value = line.value.expect("two rounds");
        assert_eq!((value.min, value.max), (0.5, 0.5));
        assert_eq!(
            line.ours_value.map(|own| (own.min, own.max)),
            Some((2.0, 3.0))
        );
        assert_eq!(line.verdict, Verdict::Reached);
        assert!(line.title.ends_with(" above ours"), "{}", line.title);
    }

    #[test]
    fn figure_without_peer_is_judged_by_target() {
        let variants = [variant("ours", &[900.0, 1000.0, 1100.0])];
        let judge = |bound| figure_lines(&figure(None, bound), &variants)[0].verdict;
        assert_eq!(judge(Some(Bound::AtMost(1024.0))), Verdict::Reached);
        assert_eq!(judge(Some(Bound::AtMost(999.0))), Verdict::Missed);
        assert_eq!(judge(None), Verdict::Measured);
    }

    #[test]
    fn too_many_invalid_rounds_invalidate_figure() {
        let mut ours = variant("ours", &[1.0, 2.0, 3.0]);
        ours.trials[0].invalid.push("3 requests failed".into());
        let line = &figure_lines(&figure(None, None), &[ours.clone()])[0];
        assert_eq!(line.value.map(|value| value.median), Some(2.5));
        assert_eq!(line.notes, ["round 1: left out, 3 requests failed"]);
        ours.trials[1].invalid.push("3 requests failed".into());
        let line = &figure_lines(&figure(None, None), &[ours])[0];
        assert_eq!(line.verdict, Verdict::Invalid);
        assert_eq!(
            line.notes,
            [
                "rounds 1, 2: 3 requests failed",
                "the figures include all rounds, because too few are valid"
            ]
        );
    }

    #[test]
    fn disturbed_round_is_not_judged() {
        let mut ours = variant("ours", &[1.0]);
        ours.trials[0].disturbed = Some(0.31);
        let line = |bound| figure_lines(&figure(None, bound), &[ours.clone()])[0].clone();
        let shown = line(None);
        assert_eq!(
            (shown.verdict, shown.is_disturbed),
            (Verdict::Measured, true)
        );
        assert_eq!(
            shown.notes,
            ["disturbed: other programs used up to 31 % of a CPU"]
        );
        let judged = line(Some(Bound::AtMost(2.0)));
        assert_eq!(judged.verdict, Verdict::Invalid);
        assert_eq!(judged.value.map(|value| value.median), Some(1.0));
        assert_eq!(judged.notes, ["other programs used up to 31 % of a CPU"]);
    }

    #[test]
    fn saturated_client_makes_rate_a_lower_bound() {
        let mut variants = [variant("ours", &[3.0]), variant("theirs", &[1.0])];
        variants[0].trials[0].client_is_limit = true;
        let line = &figure_lines(&figure(Some("theirs"), None), &variants)[0];
        assert_eq!(line.verdict, Verdict::Measured);
        assert_eq!(
            line.notes,
            ["the client was the limit, the true rate is higher"]
        );
        variants[1].trials[0].client_is_limit = true;
        let line = &figure_lines(&figure(Some("theirs"), None), &variants)[0];
        assert_eq!(line.verdict, Verdict::Invalid);
    }

    #[test]
    fn unsteady_rate_invalidates_rate_not_cost() {
        let mut ours = variant("ours", &[1.0]);
        ours.trials[0].unsteady = Some(-0.2);
        let line = &figure_lines(&figure(None, None), &[ours.clone()])[0];
        assert_eq!(line.verdict, Verdict::Invalid);
        assert_eq!(
            line.notes,
            ["not steady: the rate fell by 20 % within the window"]
        );
        let cost = Metric::Cpu(Role::Server);
        ours.trials[0].metrics.insert(cost.name(), 3.0);
        let figure = Figure {
            metric: cost,
            ..figure(None, None)
        };
        assert_eq!(figure_lines(&figure, &[ours])[0].verdict, Verdict::Measured);
    }

    #[test]
    fn target_within_disagreeing_rounds_is_not_judged() {
        let line = |values: &[f64], bound| {
            figure_lines(&figure(None, Some(bound)), &[variant("ours", values)])[0].clone()
        };
        let two_states = [100.0, 140.0, 101.0, 139.0, 100.0];
        let between = line(&two_states, Bound::AtLeast(120.0));
        assert_eq!(between.verdict, Verdict::Invalid);
        assert!(
            between.notes[0].starts_with("its rounds do not agree: they differ by 29 %"),
            "{:?}",
            between.notes
        );
        assert_eq!(
            line(&two_states, Bound::AtLeast(90.0)).verdict,
            Verdict::Reached
        );
        let near = [100.0, 101.0, 99.0, 100.5, 99.5];
        assert_eq!(line(&near, Bound::AtLeast(100.2)).verdict, Verdict::Missed);
    }

    #[test]
    fn disturbed_control_figures_are_not_judged() {
        let mut ours = variant("ours", &[1.0]);
        let metric = Metric::parse("control.latency.p99").expect("a metric");
        ours.trials[0].metrics.insert(metric.name(), 90.0);
        ours.trials[0].client_is_limit = true;
        let of_control = |ours: &VariantOutcome| {
            let figure = Figure {
                metric: metric.clone(),
                ..figure(None, None)
            };
            figure_lines(&figure, std::slice::from_ref(ours))[0].clone()
        };
        assert_eq!(of_control(&ours).verdict, Verdict::Measured);
        ours.trials[0].control_disturbed.push("it was busy".into());
        let line = of_control(&ours);
        assert_eq!(line.verdict, Verdict::Invalid);
        assert_eq!(line.notes, ["the control client: it was busy"]);
        let rate = &figure_lines(&figure(None, None), &[ours])[0];
        assert_eq!(rate.verdict, Verdict::Measured);
    }

    #[test]
    fn skipped_variant_has_reason() {
        let mut theirs = variant("theirs", &[]);
        theirs.left_out = Some("nginx is not installed: apt-get install nginx-light".into());
        let variants = [variant("ours", &[1.0]), theirs];
        let line = &figure_lines(&figure(Some("theirs"), None), &variants)[0];
        assert_eq!(line.verdict, Verdict::NotMeasured);
        assert_eq!(
            line.notes,
            ["theirs: nginx is not installed: apt-get install nginx-light"]
        );
    }

    #[test]
    fn missing_measurement_is_reported() {
        let line = &figure_lines(
            &figure(Some("theirs"), None),
            &[variant("ours", &[]), variant("theirs", &[1.0])],
        )[0];
        assert_eq!(line.verdict, Verdict::NotMeasured);
    }
}
