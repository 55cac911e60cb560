//! Series of medians, and where they changed. Pure.

use std::collections::BTreeMap;

use onrush_measure::change::{Change, changes};
use onrush_measure::compare::Rounds;
use onrush_measure::effect::Effect;
use serde::Serialize;

use super::find::Dated;
use super::options::Options;
use crate::archive::{Entrant, Machine, Sound, Subject, is_asked};
use crate::compare::Direction;
use crate::compare::reference::{Pairs, closest, pairs};
use crate::compare::verdict::percent;
use crate::limits::HISTORY_ROUNDS_MIN;
use crate::scenario::Metric;

/// One figure over time.
#[derive(Debug, Clone, Serialize)]
pub struct Series {
    /// The experiment's name.
    pub experiment: String,
    /// Who did what.
    #[serde(flatten)]
    pub subject: Subject,
    /// The metric's name.
    pub metric: String,
    /// Its unit; that of a ratio is none.
    pub unit: &'static str,
    /// Which way it should go.
    pub direction: Direction,
    /// The peer's variant that the figure is divided by, round by round, where all runs hold one.
    pub beside: Option<String>,
    /// In the order of their dates.
    pub points: Vec<Point>,
    /// Where it changed.
    pub changes: Vec<ChangePoint>,
    /// Where its newest run stands.
    pub behind: Behind,
}

/// One run of a series.
#[derive(Debug, Clone, Serialize)]
pub struct Point {
    /// The run's directory.
    pub run: String,
    /// When it was made.
    pub date: String,
    /// The median of its rounds, or of their ratios.
    pub value: f64,
    /// How many rounds that is.
    pub rounds: usize,
}

/// A change of a series.
#[derive(Debug, Clone, Serialize)]
pub struct ChangePoint {
    /// The first run behind it, counted from 0.
    pub at: usize,
    /// That run's directory.
    pub run: String,
    /// When it was made.
    pub date: String,
    /// Whether it is for the worse.
    pub is_worse: bool,
    /// The median of the runs before it, back to the change before.
    pub before: f64,
    /// That of those behind it, as far as the next one.
    pub after: f64,
    /// How many times the runs before those behind are, with its interval.
    pub effect: Effect,
    /// How surely it is a change.
    pub confidence: f64,
}

/// Where the newest run of a series stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Behind {
    /// Behind no change, or one that is known.
    Nothing,
    /// Behind a change for the better.
    Better,
    /// Behind a change for the worse.
    Worse,
}

impl Series {
    /// `experiment / work / variant / metric`.
    pub fn name(&self) -> String {
        format!("{} / {} / {}", self.experiment, self.subject, self.metric)
    }
}

impl ChangePoint {
    /// Which run, how much, how surely.
    pub fn words(&self) -> String {
        let way = if self.is_worse { "worse" } else { "better" };
        let mut ends = [self.effect.low, self.effect.high].map(|ratio| (ratio - 1.0).abs());
        ends.sort_by(f64::total_cmp);
        format!(
            "{way} by {} ({} … {} at {}) from {} ({}) on, {} sure",
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

/// What runs belong to one series.
type Key<'run> = (&'run str, &'run Machine, &'run Subject, &'run str);

/// All series of `runs`, which are in their order.
pub(super) fn series(runs: &[Dated], options: &Options) -> Vec<Series> {
    let mut together: BTreeMap<Key<'_>, Vec<(&Dated, &Entrant)>> = BTreeMap::new();
    for run in runs {
        for entrant in run.run.rows.entrants.iter().filter(|it| it.is_ours) {
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
        if !is_asked(&options.only, &name, &metric) {
            return None;
        }
        one(experiment, &metric, &members, options)
    })
    .collect()
}

fn one(
    experiment: &str,
    metric: &Metric,
    members: &[(&Dated, &Entrant)],
    options: &Options,
) -> Option<Series> {
    let standing: Vec<(&Dated, &Entrant, Sound)> = members
        .iter()
        .map(|(run, entrant)| (*run, *entrant, entrant.sound(metric)))
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
        .filter(|change| (change.effect.ratio - 1.0).abs() >= options.smallest)
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

fn behind(last: Option<&ChangePoint>, options: &Options) -> Behind {
    let is_known =
        |change: &ChangePoint| options.since.as_ref().is_some_and(|day| change.date < *day);
    match last {
        Some(change) if is_known(change) => Behind::Nothing,
        Some(change) if change.is_worse => Behind::Worse,
        Some(_) => Behind::Better,
        None => Behind::Nothing,
    }
}

/// The reference that all runs of a series hold, told the same by all, with the pairs of each: of several, the one that the
/// series follows best.
fn beside(metric: &Metric, standing: &[(&Dated, &Entrant, Sound)]) -> Option<(String, Vec<Pairs>)> {
    let (first, entrant, _) = standing.first()?;
    let candidates = first
        .run
        .rows
        .references(&entrant.subject)
        .filter_map(|theirs| {
            let pairs_of = |(run, _, sound): &(&Dated, &Entrant, Sound)| {
                let other = run.run.rows.of(&theirs.subject).filter(|it| !it.is_ours)?;
                let is_same = first
                    .run
                    .facts
                    .is_same_reference(&run.run.facts, &theirs.subject);
                let pairs = pairs(&other.sound(metric), sound);
                (is_same && pairs.len() >= HISTORY_ROUNDS_MIN).then_some(pairs)
            };
            let all: Option<Vec<Pairs>> = standing.iter().map(pairs_of).collect();
            Some((theirs.subject.variant.clone(), all?))
        });
    closest(candidates, |(_, pairs)| pairs)
}
