//! Load before a window: for a fixed time, or until the rate does not change any more.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::client_report::read_report;
use super::failure::Try;
use super::running::Running;
use super::start::{launch, wait_for_end};
use super::subject::{Context, Subject};
use crate::scenario::{Role, WarmUp};

/// Between two looks at the rate; wrk and others take whole seconds only.
const PIECE: Duration = Duration::from_secs(1);

/// Two pieces whose rates differ by less than this share are of the same state: rates of one second vary by about two
/// per cent where nothing changes.
const STEADY: f64 = 0.03;

/// What a warm-up is followed by.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Warm {
    /// Nobody looked.
    Unknown,
    /// The rate did not change any more after so long.
    Steady(Duration),
    /// It still changed when the time for it was over.
    Unsteady(Duration),
}

/// Has the client make load that is not counted.
pub(super) fn warm_up(
    context: &mut Context<'_>,
    subject: &Subject<'_>,
    ports: &BTreeMap<Role, u16>,
    listeners: &[(Role, Running)],
) -> Try<Warm> {
    match context.experiment.warm_up {
        WarmUp::Fixed(Duration::ZERO) => Ok(Warm::Unknown),
        WarmUp::Fixed(length) => {
            let mut client = launch(context, subject, Role::Client, ports, length)?;
            wait_for_end(context, &client, listeners, length, "warming up", || ())?;
            client.stop();
            Ok(Warm::Unknown)
        }
        WarmUp::UntilSteady(longest) => until_steady(context, subject, ports, listeners, longest),
    }
}

fn until_steady(
    context: &mut Context<'_>,
    subject: &Subject<'_>,
    ports: &BTreeMap<Role, u16>,
    listeners: &[(Role, Running)],
    longest: Duration,
) -> Try<Warm> {
    let began = Instant::now();
    let mut rates: Vec<f64> = Vec::new();
    loop {
        let mut client = launch(context, subject, Role::Client, ports, PIECE)?;
        wait_for_end(context, &client, listeners, PIECE, "warming up", || ())?;
        let report = read_report(context, subject, Role::Client, &client)?;
        client.stop();
        rates.push(report.rps);
        if is_steady(&rates) {
            return Ok(Warm::Steady(began.elapsed()));
        }
        if began.elapsed() + PIECE > longest {
            return Ok(Warm::Unsteady(began.elapsed()));
        }
    }
}

/// Whether the last three rates lie within the bound: two may be equal by chance on the way.
fn is_steady(rates: &[f64]) -> bool {
    let [.., a, b, c] = *rates else {
        return false;
    };
    let (least, most) = (a.min(b).min(c), a.max(b).max(c));
    least > 0.0 && (most - least) / most <= STEADY
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_equal_rates_are_steady_and_rising_ones_are_not() {
        assert!(!is_steady(&[100.0, 100.0]));
        assert!(!is_steady(&[80.0, 90.0, 100.0]));
        assert!(!is_steady(&[0.0, 0.0, 0.0]));
        assert!(is_steady(&[50.0, 99.0, 100.0, 101.0]));
    }
}
