//! Load before a window: for a fixed time, or until the rate is steady.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::client_report::read_report;
use super::failure::Try;
use super::running::Running;
use super::start::{launch, wait_for_end};
use super::subject::{Context, Subject};
use crate::scenario::{Role, WarmUp};

/// Length of a piece of load, after which the rate is compared; wrk and others only accept whole seconds.
const LOAD_INTERVAL: Duration = Duration::from_secs(1);

/// Relative difference below which rates count as equal. Rates of one second vary by about 2 % without any change.
const STEADY: f64 = 0.03;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum WarmUpResult {
    Unknown,
    /// The rate was steady after this time.
    Steady(Duration),
    /// The rate still changed when the time limit was reached.
    Unsteady(Duration),
}

/// Runs the client without counting its results.
pub(super) fn warm_up(
    context: &mut Context<'_>,
    subject: &Subject<'_>,
    ports: &BTreeMap<Role, u16>,
    listeners: &[(Role, Running)],
) -> Try<WarmUpResult> {
    match context.experiment.warm_up {
        WarmUp::Fixed(Duration::ZERO) => Ok(WarmUpResult::Unknown),
        WarmUp::Fixed(length) => {
            let mut client = launch(context, subject, Role::Client, ports, length)?;
            wait_for_end(context, &client, listeners, length, "warming up", || ())?;
            client.stop();
            Ok(WarmUpResult::Unknown)
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
) -> Try<WarmUpResult> {
    let began = Instant::now();
    let mut rates: Vec<f64> = Vec::new();
    loop {
        let mut client = launch(context, subject, Role::Client, ports, LOAD_INTERVAL)?;
        wait_for_end(
            context,
            &client,
            listeners,
            LOAD_INTERVAL,
            "warming up",
            || (),
        )?;
        let report = read_report(context, subject, Role::Client, &client)?;
        client.stop();
        rates.push(report.rps);
        if is_steady(&rates) {
            return Ok(WarmUpResult::Steady(began.elapsed()));
        }
        if began.elapsed() + LOAD_INTERVAL > longest {
            return Ok(WarmUpResult::Unsteady(began.elapsed()));
        }
    }
}

/// Whether the last three rates are equal; two may be equal by chance while the rate still changes.
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
    fn warm_up_ends_after_three_equal_rates() {
        assert!(!is_steady(&[100.0, 100.0]));
        assert!(!is_steady(&[80.0, 90.0, 100.0]));
        assert!(!is_steady(&[0.0, 0.0, 0.0]));
        assert!(is_steady(&[50.0, 99.0, 100.0, 101.0]));
    }
}
