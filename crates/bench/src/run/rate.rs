//! Rate of a paced work.

use onrush_measure::compare::Rounds;

use crate::outcome::WorkOutcome;
use crate::scenario::{Metric, Rate, Work, title};

/// The request rate of a paced work, based on the rounds so far.
pub(super) fn rate(works: &[WorkOutcome], work: &Work) -> Result<Option<f64>, String> {
    let (share, of_work, of_point, of_variant) = match &work.rate {
        None => return Ok(None),
        Some(Rate::Fixed(rate)) => return Ok(Some(*rate)),
        Some(Rate::Share {
            share,
            work,
            point,
            variant,
        }) => (share, work, point, variant),
    };
    let rates: Vec<f64> = works
        .iter()
        .filter(|work| work.name == *of_work && work.point == *of_point)
        .filter_map(|work| work.variant(of_variant))
        .flat_map(|variant| &variant.trials)
        .filter_map(|trial| trial.metrics.get(&Metric::Rate.name()).copied())
        .collect();
    match Rounds::of(&rates) {
        Some(rounds) => Ok(Some(share_of(rounds.median, *share))),
        None => Err(format!(
            "its rate is a share of that of `{}` / `{of_variant}`, which was not measured",
            title(of_work, of_point)
        )),
    }
}

/// A share of a rate as the whole number that clients take, so that the result has the rate that was run.
fn share_of(rate: f64, share: f64) -> f64 {
    (rate * share).round().max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rate_shares_are_rounded() {
        for (rate, share, expected) in [(1001.0, 0.5, 501.0), (999.0, 0.6, 599.0), (2.0, 0.1, 1.0)]
        {
            assert_eq!(share_of(rate, share), expected, "{rate} {share}");
        }
    }
}
