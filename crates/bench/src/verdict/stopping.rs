//! Decides whether figures are precise enough to stop before all rounds are made.

use super::figure::CONFIDENCE;
use crate::outcome::FigureLine;

/// Whether for every line the confidence interval is within `precision` of the median, or entirely on one side of the
/// target. A line without a verdict is not precise enough; without lines the result is true.
///
/// Repeated checks make it more likely that an interval is satisfied by chance. So the interval decides, never the
/// median alone.
pub fn all_precise(lines: impl IntoIterator<Item = FigureLine>, precision: f64) -> bool {
    lines.into_iter().all(|line| is_settled(&line, precision))
}

fn is_settled(line: &FigureLine, precision: f64) -> bool {
    let (Some(interval), Some(value)) = (line.interval, line.value) else {
        return false;
    };
    if interval.confidence < CONFIDENCE {
        return false;
    }
    let room = value.median.abs() * precision;
    let is_narrow = value.median - interval.low <= room && interval.high - value.median <= room;
    let is_on_one_side = line
        .target
        .is_some_and(|bound| bound.holds(interval.low) == bound.holds(interval.high));
    is_narrow || is_on_one_side
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::{Interval, Verdict};
    use crate::scenario::Bound;
    use onrush_measure::compare::Rounds;

    fn line(low: f64, high: f64, confidence: f64, target: Option<Bound>) -> FigureLine {
        FigureLine {
            metric: "rps".into(),
            title: String::new(),
            unit: String::new(),
            ours: String::new(),
            theirs: None,
            ours_value: None,
            theirs_value: None,
            value: Rounds::of(&[1.0]),
            interval: Some(Interval {
                low,
                high,
                confidence,
            }),
            target,
            is_disturbed: false,
            verdict: Verdict::Measured,
            notes: Vec::new(),
        }
    }

    #[test]
    fn narrow_or_decisive_intervals_stop_rounds() {
        assert!(all_precise([line(0.99, 1.01, 0.97, None)], 0.02));
        assert!(!all_precise([line(0.9, 1.01, 0.97, None)], 0.02));
        assert!(!all_precise([line(0.99, 1.01, 0.94, None)], 0.02));
        let below = Some(Bound::AtMost(1.3));
        assert!(all_precise([line(0.8, 1.2, 0.97, below)], 0.02));
        let across = Some(Bound::AtMost(1.1));
        assert!(!all_precise([line(0.8, 1.2, 0.97, across)], 0.02));
    }

    #[test]
    fn missing_interval_continues_rounds() {
        let mut open = line(1.0, 1.0, 0.99, None);
        open.interval = None;
        assert!(!all_precise([line(1.0, 1.0, 0.99, None), open], 0.02));
    }
}
