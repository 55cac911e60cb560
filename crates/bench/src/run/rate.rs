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
        Some(rounds) => Ok(Some((rounds.median * share).max(1.0))),
        None => Err(format!(
            "its rate is a share of that of `{}` / `{of_variant}`, which was not measured",
            title(of_work, of_point)
        )),
    }
}
