//! What came of a comparison, as it is written to JSON (`docs/compare.md`).

use onrush_measure::compare::Rounds;
use onrush_measure::effect::Effect;
use serde::Serialize;

use super::direction::Direction;
use super::judge::CONFIDENCE;
use super::verdict::{Counts, Verdict, percent, signed};
use crate::archive::{Difference, Subject};

/// Two runs beside each other.
#[derive(Debug, Clone, Serialize)]
pub struct Comparison {
    /// The directory of the first.
    pub a: String,
    /// The directory of the second.
    pub b: String,
    /// The smallest effect that matters, as a share.
    pub smallest: f64,
    /// How many figures were judged, all of which hold together.
    pub together: usize,
    /// What is not the same, beside the figures.
    pub differences: Vec<Difference>,
    /// In the order of the first run.
    pub figures: Vec<Figure>,
    /// How far the peers' variants moved.
    pub references: Vec<Moved>,
    /// Variants that only the first has.
    pub only_in_a: Vec<String>,
    /// Variants that only the second has.
    pub only_in_b: Vec<String>,
    /// Metrics of both that were not compared: what was collected beside the load, unless it is asked for, and what is not
    /// known.
    pub without_direction: Vec<String>,
}

/// One figure of both runs.
#[derive(Debug, Clone, Serialize)]
pub struct Figure {
    /// Who did what.
    #[serde(flatten)]
    pub subject: Subject,
    /// The metric's name.
    pub metric: String,
    /// Its unit.
    pub unit: &'static str,
    /// Which way it should go.
    pub direction: Direction,
    /// In the first run.
    pub a: Option<Rounds>,
    /// In the second.
    pub b: Option<Rounds>,
    /// Where a reference decides.
    pub beside: Option<Beside>,
    /// How many times the first the second is, with 90 %; of the ratios to the reference where there is one.
    pub effect: Option<Effect>,
    /// The same, with 95 % for all figures of the comparison together.
    pub together: Option<Effect>,
    /// What may be said of it.
    pub verdict: Verdict,
    /// Why nothing can be said, where nothing can.
    pub why: String,
    /// How many rounds of each run would do, where a number would.
    pub rounds_needed: Option<usize>,
}

/// A figure beside a reference.
#[derive(Debug, Clone, Serialize)]
pub struct Beside {
    /// The variant that ours is divided by, round by round.
    pub reference: String,
    /// The ratio in the first run, from its pairs of rounds.
    pub a: Effect,
    /// The ratio in the second.
    pub b: Effect,
    /// What the figure's own rounds say, without the reference.
    pub alone: Option<Effect>,
    /// The verdict that would follow from that.
    pub alone_verdict: Verdict,
}

impl Beside {
    pub(super) fn of(
        reference: String,
        pairs: &[Vec<(f64, f64)>; 2],
        (alone, alone_verdict): (Option<Effect>, Verdict),
    ) -> Option<Beside> {
        let ratio = |pairs: &Vec<(f64, f64)>| Effect::paired(pairs, CONFIDENCE);
        Some(Beside {
            reference,
            a: ratio(&pairs[0])?,
            b: ratio(&pairs[1])?,
            alone,
            alone_verdict,
        })
    }
}

/// How far a reference moved.
#[derive(Debug, Clone, Serialize)]
pub struct Moved {
    /// Who did what.
    #[serde(flatten)]
    pub subject: Subject,
    /// The metric's name.
    pub metric: String,
    /// From the median of the first run to that of the second, as a share.
    pub change: f64,
    /// Whether its programs and what they were told are the same in both; otherwise nothing is set beside it.
    pub is_same: bool,
}

/// How a comparison ends, for a shell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    /// Nothing became worse.
    Fine,
    /// Nothing became worse, but of what was asked for not everything can be told; or nothing could be compared at all.
    Untold,
    /// Something became worse.
    Worse,
}

impl Figure {
    /// The verdict as a sentence.
    pub fn words(&self) -> String {
        match (self.verdict, self.together) {
            (Verdict::Better | Verdict::Worse, Some(effect)) => {
                let mut ends = [effect.low, effect.high].map(|ratio| (ratio - 1.0).abs());
                ends.sort_by(f64::total_cmp);
                format!(
                    "{} by {} ({} … {})",
                    self.verdict.says(),
                    percent((effect.ratio - 1.0).abs()),
                    percent(ends[0]),
                    percent(ends[1])
                )
            }
            (verdict, _) if self.why.is_empty() => verdict.says().to_owned(),
            (verdict, _) => format!("{}: {}", verdict.says(), self.why),
        }
    }

    /// The ratio with its interval, as changes.
    pub fn change(&self) -> Option<(String, String)> {
        let effect = self.effect?;
        let interval = format!("{} … {}", signed(effect.low), signed(effect.high));
        Some((signed(effect.ratio), interval))
    }
}

impl Comparison {
    /// How many figures there are of each verdict.
    pub fn counts(&self) -> Counts {
        Counts::of(self.figures.iter().map(|figure| figure.verdict))
    }

    /// How it ends, when figures were asked for by name or all were taken.
    pub fn standing(&self, asked: Asked) -> Standing {
        let count = |verdict| self.counts().of_verdict(verdict);
        let not_comparable = count(Verdict::NotComparable);
        let is_nothing_told = not_comparable == self.figures.len();
        let is_some_untold = count(Verdict::CannotBeTold) + not_comparable > 0;
        match asked {
            _ if count(Verdict::Worse) > 0 => Standing::Worse,
            Asked::ByName if is_some_untold => Standing::Untold,
            Asked::ByName | Asked::All if is_nothing_told => Standing::Untold,
            Asked::ByName | Asked::All => Standing::Fine,
        }
    }
}

/// Whether figures were asked for by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    /// Some: each of them has to be told.
    ByName,
    /// All that there are.
    All,
}
