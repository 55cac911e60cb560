//! Verdict on one figure.

use onrush_measure::blocks::normal_quantile;
use onrush_measure::effect::{self, Effect};

use super::direction::Direction;
use super::verdict::Verdict;
use crate::limits::ROUNDS_MAX;

/// Confidence of one figure's interval. `NoDifference` is a test of equivalence: two one-sided tests of 5 % each, which
/// is a 90 % interval (Schuirmann, Journal of Pharmacokinetics and Biopharmaceutics 15, 1987).
pub(super) const CONFIDENCE: f64 = 0.90;

/// Joint confidence of `Better` and `Worse` over all figures of a comparison (Bonferroni), so that forty figures of an
/// unchanged system show no false `Worse`.
pub(super) const JOINT_CONFIDENCE: f64 = 0.95;

/// Probability with which the recommended number of rounds suffices for an unchanged system.
const POWER: f64 = 0.95;

pub(super) struct Judge {
    pub(super) min_effect: f64,
    pub(super) together: usize,
}

/// Whether there are enough rounds for [`JOINT_CONFIDENCE`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HasEnoughRounds {
    Yes,
    No,
}

#[derive(Debug, Clone)]
pub(super) struct Judged {
    pub(super) effect: Option<Effect>,
    pub(super) together: Option<Effect>,
    pub(super) verdict: Verdict,
    pub(super) why: String,
    pub(super) rounds_needed: Option<usize>,
}

impl Judged {
    pub(super) fn not_comparable(why: String) -> Judged {
        Judged {
            effect: None,
            together: None,
            verdict: Verdict::NotComparable,
            why,
            rounds_needed: None,
        }
    }
}

impl Judge {
    /// Judges the rounds of both runs. `between_runs` is the standard deviation of logarithms between runs of the same
    /// system.
    pub(super) fn judge(
        &self,
        rounds: &[Vec<f64>; 2],
        between_runs: f64,
        direction: Direction,
    ) -> Judged {
        let [a, b] = rounds;
        let inflation = effect::inflation(&[a, b]);
        // Each run contributes its own error.
        let between = between_runs * f64::sqrt(2.0);
        let confidence_together = 1.0 - (1.0 - JOINT_CONFIDENCE) / self.together.max(1) as f64;
        let at = |confidence| Effect::independent(a, b, confidence);
        let (Some(plain), Some(plain_together)) = (at(CONFIDENCE), at(confidence_together)) else {
            return Judged::not_comparable("no rounds".into());
        };
        let effect = plain.widened(inflation, between);
        let together = plain_together.widened(inflation, between);
        let surely = match together.confidence >= confidence_together - 1e-9 {
            true => HasEnoughRounds::Yes,
            false => HasEnoughRounds::No,
        };
        let verdict = self.verdict(&effect, &together, surely, direction);
        let needed = self.needed(plain.width() * inflation, a.len().min(b.len()), between);
        let (why, rounds_needed) = match verdict {
            Verdict::CannotBeTold => {
                let within = needed.filter(|rounds| *rounds <= ROUNDS_MAX as usize);
                (self.why(&effect, surely, needed), within)
            }
            Verdict::NoDifference | Verdict::Better | Verdict::Worse | Verdict::NotComparable => {
                (String::new(), None)
            }
        };
        Judged {
            effect: Some(effect),
            together: Some(together),
            verdict,
            why,
            rounds_needed,
        }
    }

    fn verdict(
        &self,
        effect: &Effect,
        together: &Effect,
        surely: HasEnoughRounds,
        direction: Direction,
    ) -> Verdict {
        let (low, high) = (1.0 - self.min_effect, 1.0 + self.min_effect);
        let holds = effect.confidence >= CONFIDENCE - 1e-9;
        if holds && effect.low >= low && effect.high <= high {
            return Verdict::NoDifference;
        }
        let is_outside = together.low > high || together.high < low;
        match surely == HasEnoughRounds::Yes && is_outside {
            true if direction.is_worse(together.ratio) => Verdict::Worse,
            true => Verdict::Better,
            false => Verdict::CannotBeTold,
        }
    }

    fn why(&self, effect: &Effect, surely: HasEnoughRounds, needed: Option<usize>) -> String {
        let figures = self.together;
        let is_outside = effect.low > 1.0 + self.min_effect || effect.high < 1.0 - self.min_effect;
        match (is_outside, surely, needed) {
            (true, HasEnoughRounds::Yes, _) => format!("with {figures} figures, one may look like this by chance"),
            (true, HasEnoughRounds::No, _) => {
                format!(
                    "too few rounds to be sure of one of {figures} figures; compare fewer with --only"
                )
            }
            (false, _, None) => {
                "two runs of one system differ as much; a reference with enough rounds in both runs is needed"
                    .into()
            }
            (false, _, Some(rounds)) if rounds > ROUNDS_MAX as usize => {
                "its rounds vary too much; no number of rounds would decide".into()
            }
            (false, _, Some(rounds)) => format!("about {rounds} rounds would decide"),
        }
    }

    /// Rounds per run that would show no difference with probability [`POWER`] for an unchanged system, estimated from
    /// an interval of `width` (of logarithms). `None` if no number would.
    fn needed(&self, width: f64, rounds: usize, between: f64) -> Option<usize> {
        let reach = normal_quantile(0.5 + CONFIDENCE / 2.0);
        let error = width / 2.0 / reach;
        let wanted = self.min_effect.ln_1p() / (reach + normal_quantile(0.5 + POWER / 2.0));
        let left = wanted.powi(2) - between.powi(2);
        if left <= 0.0 {
            return None;
        }
        let needed = rounds as f64 * error.powi(2) / left;
        Some((needed.ceil() as usize).max(rounds + 1))
    }
}
