//! Result of a comparison, as written to JSON (`docs/compare.md`).

use onrush_measure::compare::Rounds;
use onrush_measure::effect::Effect;
use serde::Serialize;

use super::direction::Direction;
use super::judge::CONFIDENCE;
use super::verdict::{Counts, Verdict, percent, signed};
use crate::archive::{Difference, SeriesId};

/// Comparison of two runs.
#[derive(Debug, Clone, Serialize)]
pub struct Comparison {
    /// Directory of the first run.
    pub a: String,
    /// Directory of the second run.
    pub b: String,
    /// Smallest relevant effect, as a share.
    #[serde(rename = "smallest")]
    pub min_effect: f64,
    /// Number of figures judged; verdicts hold jointly over all of them.
    pub together: usize,
    /// Differences other than figures.
    pub differences: Vec<Difference>,
    /// Figures in the order of the first run.
    pub figures: Vec<Figure>,
    /// Changes of the references.
    pub references: Vec<ReferenceChange>,
    /// Variants that only the first run has.
    pub only_in_a: Vec<String>,
    /// Variants that only the second run has.
    pub only_in_b: Vec<String>,
    /// Metrics of both runs that were not compared: metrics of collectors unless selected, and unknown metrics.
    pub without_direction: Vec<String>,
}

/// One figure of both runs.
#[derive(Debug, Clone, Serialize)]
pub struct Figure {
    /// Work, point and variant.
    #[serde(flatten)]
    pub subject: SeriesId,
    /// Name of the metric.
    pub metric: String,
    /// Its unit.
    pub unit: &'static str,
    /// Direction in which the metric improves.
    pub direction: Direction,
    /// Rounds of the first run.
    pub a: Option<Rounds>,
    /// Rounds of the second run.
    pub b: Option<Rounds>,
    /// Comparison relative to a reference, if there is one.
    pub beside: Option<RelativeFigure>,
    /// Ratio of the second run to the first with a 90 % interval; of the ratios to the reference if there is one.
    pub effect: Option<Effect>,
    /// The same ratio with a 95 % interval for all figures of the comparison jointly.
    pub together: Option<Effect>,
    /// Verdict.
    pub verdict: Verdict,
    /// Reason for a missing verdict; otherwise empty.
    pub why: String,
    /// Rounds per run that would suffice for a verdict, if any number would.
    pub rounds_needed: Option<usize>,
}

/// A figure relative to a reference.
#[derive(Debug, Clone, Serialize)]
pub struct RelativeFigure {
    /// The variant by which ours is divided, round by round.
    pub reference: String,
    /// Ratio in the first run, from its pairs of rounds.
    pub a: Effect,
    /// Ratio in the second run.
    pub b: Effect,
    /// Ratio of the figure's own rounds, without the reference.
    pub alone: Option<Effect>,
    /// Verdict without the reference.
    pub alone_verdict: Verdict,
}

impl RelativeFigure {
    pub(super) fn of(
        reference: String,
        pairs: &[Vec<(f64, f64)>; 2],
        (alone, alone_verdict): (Option<Effect>, Verdict),
    ) -> Option<RelativeFigure> {
        let ratio = |pairs: &Vec<(f64, f64)>| Effect::paired(pairs, CONFIDENCE);
        Some(RelativeFigure {
            reference,
            a: ratio(&pairs[0])?,
            b: ratio(&pairs[1])?,
            alone,
            alone_verdict,
        })
    }
}

/// Change of a reference between the runs.
#[derive(Debug, Clone, Serialize)]
pub struct ReferenceChange {
    /// Work, point and variant.
    #[serde(flatten)]
    pub subject: SeriesId,
    /// Name of the metric.
    pub metric: String,
    /// Relative change of the median from the first run to the second.
    pub change: f64,
    /// Whether its programs, command lines and files are the same in both runs; if not, it is not used as a reference.
    pub is_same: bool,
}

/// Overall result, for the exit status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ComparisonStatus {
    /// No figure is worse.
    Passed,
    /// No figure is worse, but some selected figure has no verdict, or no figure could be compared.
    Untold,
    /// A figure is worse.
    Worse,
}

impl Figure {
    /// The verdict as text.
    pub fn words(&self) -> String {
        match (self.verdict, self.together) {
            (Verdict::Better | Verdict::Worse, Some(effect)) => {
                let mut ends = [effect.low, effect.high].map(|ratio| (ratio - 1.0).abs());
                ends.sort_by(f64::total_cmp);
                format!(
                    "{} by {} ({} … {})",
                    self.verdict.label(),
                    percent((effect.ratio - 1.0).abs()),
                    percent(ends[0]),
                    percent(ends[1])
                )
            }
            (verdict, _) if self.why.is_empty() => verdict.label().to_owned(),
            (verdict, _) => format!("{}: {}", verdict.label(), self.why),
        }
    }

    /// The ratio and its interval as relative changes.
    pub fn change(&self) -> Option<(String, String)> {
        let effect = self.effect?;
        let interval = format!("{} … {}", signed(effect.low), signed(effect.high));
        Some((signed(effect.ratio), interval))
    }
}

impl Comparison {
    /// Number of figures for each verdict.
    pub fn counts(&self) -> Counts {
        Counts::of(self.figures.iter().map(|figure| figure.verdict))
    }

    /// Overall result, depending on whether figures were selected by name.
    pub fn status(&self, asked: Selection) -> ComparisonStatus {
        let count = |verdict| self.counts().of_verdict(verdict);
        let not_comparable = count(Verdict::NotComparable);
        let is_nothing_told = not_comparable == self.figures.len();
        let is_some_untold = count(Verdict::CannotBeTold) + not_comparable > 0;
        match asked {
            _ if count(Verdict::Worse) > 0 => ComparisonStatus::Worse,
            Selection::ByName if is_some_untold => ComparisonStatus::Untold,
            Selection::ByName | Selection::All if is_nothing_told => ComparisonStatus::Untold,
            Selection::ByName | Selection::All => ComparisonStatus::Passed,
        }
    }
}

/// Whether figures were selected by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Selection {
    /// Some were; each of them needs a verdict.
    ByName,
    /// All figures are compared.
    All,
}
