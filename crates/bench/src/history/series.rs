//! Series of medians and their changes.

use std::collections::BTreeMap;

use onrush_measure::change::{Change, changes};
use onrush_measure::compare::Rounds;
use onrush_measure::effect::Effect;
use serde::Serialize;

use super::find::DatedRun;
use super::options::Options;
use crate::archive::{Machine, SeriesId, UsableRounds, VariantRows, is_selected};
use crate::compare::Direction;
use crate::compare::reference::{Pairs, closest, pairs};
use crate::compare::verdict::percent;
use crate::limits::HISTORY_ROUNDS_MIN;
use crate::scenario::Metric;

/// One figure over time.
#[derive(Debug, Clone, Serialize)]
pub struct Series {
    /// Name of the experiment.
    pub experiment: String,
    /// Work, point and variant.
    #[serde(flatten)]
    pub subject: SeriesId,
    /// Name of the metric.
    pub metric: String,
    /// Unit of the values; empty for ratios.
    pub unit: &'static str,
    /// Direction in which the metric improves.
    pub direction: Direction,
    /// The reference by which the figure is divided, round by round, if all runs contain it.
    pub beside: Option<String>,
    /// Points sorted by date.
    pub points: Vec<Point>,
    /// Changes of the series.
    pub changes: Vec<ChangePoint>,
    /// Kind of the last change.
    pub behind: LastChange,
}

/// One run of a series.
#[derive(Debug, Clone, Serialize)]
pub struct Point {
    /// Directory of the run.
    pub run: String,
    /// Date of the run.
    pub date: String,
    /// Median of its rounds, or of their ratios.
    pub value: f64,
    /// Number of rounds.
    pub rounds: usize,
}

/// A change of a series.
#[derive(Debug, Clone, Serialize)]
pub struct ChangePoint {
    /// Index of the first run after the change.
    pub at: usize,
    /// Directory of that run.
    pub run: String,
    /// Date of that run.
    pub date: String,
    /// Whether it is for the worse.
    pub is_worse: bool,
    /// Median of the runs between the previous change and this one.
    pub before: f64,
    /// Median of the runs between this change and the next one.
    pub after: f64,
    /// Ratio of the runs after to those before, with an interval.
    pub effect: Effect,
    /// Confidence that there is a change.
    pub confidence: f64,
}

/// Kind of a series' last change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LastChange {
    /// No change, or a known one.
    Nothing,
    /// A change for the better.
    Better,
    /// A change for the worse.
    Worse,
}

impl Series {
    /// `experiment / work / variant / metric`.
    pub fn name(&self) -> String {
        format!("{} / {} / {}", self.experiment, self.subject, self.metric)
    }
}

impl ChangePoint {
    /// Size, first run and confidence of the change as text.
    pub fn words(&self) -> String {
        let way = if self.is_worse { "worse" } else { "better" };
        let mut ends = [self.effect.low, self.effect.high].map(|ratio| (ratio - 1.0).abs());
        ends.sort_by(f64::total_cmp);
        format!(
            "{way} by {} ({} … {} at {}) since {} ({}), {} confidence",
            percent((self.effect.ratio - 1.0).abs()),
            percent(ends[0]),
            percent(ends[1]),
            percent(self.effect.confidence),
            self.run,
            self.date.chars().take(10).collect::<String>(),
            percent(self.confidence)
        )
    }
}

/// Identifies a series: experiment, machine, subject and metric.
type Key<'run> = (&'run str, &'run Machine, &'run SeriesId, &'run str);

pub(super) fn series(runs: &[DatedRun], options: &Options) -> Vec<Series> {
    let mut together: BTreeMap<Key<'_>, Vec<(&DatedRun, &VariantRows)>> = BTreeMap::new();
    for run in runs {
        for entrant in run.run.rows.variants.iter().filter(|it| it.is_ours) {
            for metric in entrant.metrics.keys() {
                let machine = &run.run.facts.machine;
                let key = (&run.experiment[..], machine, &entrant.subject, &metric[..]);
                together.entry(key).or_default().push((run, entrant));
            }
        }
    }
    let all = together.into_iter();
    all.filter_map(|((experiment, _, subject, metric), members)| {
        let name = format!("{experiment} / {subject} / {metric}");
        let metric = Metric::parse(metric)?;
        if !is_selected(&options.only, &name, &metric) {
            return None;
        }
        one(experiment, &metric, &members, options)
    })
    .collect()
}

fn one(
    experiment: &str,
    metric: &Metric,
    members: &[(&DatedRun, &VariantRows)],
    options: &Options,
) -> Option<Series> {
    let standing: Vec<(&DatedRun, &VariantRows, UsableRounds)> = members
        .iter()
        .map(|(run, entrant)| (*run, *entrant, entrant.usable_rounds(metric)))
        .filter(|(.., sound)| {
            sound.rounds.len() >= HISTORY_ROUNDS_MIN && 2 * sound.rounds.len() > sound.all
        })
        .collect();
    let (_, first, _) = standing.first()?;
    let beside = beside(metric, &standing);
    let values: Vec<Rounds> = match &beside {
        Some((_, runs)) => runs
            .iter()
            .filter_map(|pairs| {
                let ratios: Vec<f64> = pairs.iter().map(|(theirs, ours)| ours / theirs).collect();
                Rounds::of(&ratios)
            })
            .collect(),
        None => standing
            .iter()
            .filter_map(|(.., sound)| {
                let values: Vec<f64> = sound.rounds.iter().map(|(_, value)| *value).collect();
                Rounds::of(&values)
            })
            .collect(),
    };
    let points: Vec<Point> = standing
        .iter()
        .zip(&values)
        .map(|((run, ..), rounds)| Point {
            run: run.run.name.clone(),
            date: run.date.clone(),
            value: rounds.median,
            rounds: rounds.count,
        })
        .collect();
    let direction = Direction::of(metric);
    let medians: Vec<f64> = points.iter().map(|point| point.value).collect();
    let found: Vec<ChangePoint> = changes(&medians, options.confidence)
        .into_iter()
        .filter(|change| (change.effect.ratio - 1.0).abs() >= options.min_effect)
        .map(|change| change_point(&change, &points, direction))
        .collect();
    Some(Series {
        experiment: experiment.to_owned(),
        subject: first.subject.clone(),
        metric: metric.name(),
        unit: if beside.is_some() {
            ""
        } else {
            metric.unit().symbol()
        },
        direction,
        beside: beside.map(|(name, _)| name),
        behind: behind(found.last(), options),
        points,
        changes: found,
    })
}

fn change_point(change: &Change, points: &[Point], direction: Direction) -> ChangePoint {
    let point = &points[change.at];
    ChangePoint {
        at: change.at,
        run: point.run.clone(),
        date: point.date.clone(),
        is_worse: direction.is_worse(change.effect.ratio),
        before: change.before,
        after: change.after,
        effect: change.effect,
        confidence: change.confidence,
    }
}

fn behind(last: Option<&ChangePoint>, options: &Options) -> LastChange {
    let is_known =
        |change: &ChangePoint| options.since.as_ref().is_some_and(|day| change.date < *day);
    match last {
        Some(change) if is_known(change) => LastChange::Nothing,
        Some(change) if change.is_worse => LastChange::Worse,
        Some(_) => LastChange::Better,
        None => LastChange::Nothing,
    }
}

/// The reference that all runs of a series contain unchanged, with its pairs in each run. Of several, the one whose
/// ratio to the series varies least.
fn beside(
    metric: &Metric,
    standing: &[(&DatedRun, &VariantRows, UsableRounds)],
) -> Option<(String, Vec<Pairs>)> {
    let (first, entrant, _) = standing.first()?;
    let candidates = first
        .run
        .rows
        .references(&entrant.subject)
        .filter_map(|theirs| {
            let pairs_of = |(run, _, sound): &(&DatedRun, &VariantRows, UsableRounds)| {
                let other = run.run.rows.of(&theirs.subject).filter(|it| !it.is_ours)?;
                let is_same = first
                    .run
                    .facts
                    .is_same_reference(&run.run.facts, &theirs.subject);
                let pairs = pairs(&other.usable_rounds(metric), sound);
                (is_same && pairs.len() >= HISTORY_ROUNDS_MIN).then_some(pairs)
            };
            let all: Option<Vec<Pairs>> = standing.iter().map(pairs_of).collect();
            Some((theirs.subject.variant.clone(), all?))
        });
    closest(candidates, |(_, pairs)| pairs)
}
