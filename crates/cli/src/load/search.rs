//! `onrush load --find-max`: runs trials one after another in this process and reports the highest rate.

use std::io::Write;
use std::num::NonZeroU64;
use std::path::PathBuf;

use onrush_load::error::Error;
use onrush_load::find_max::{self, COLUMNS, NextStep, Search, SearchResult, Trial, TrialOutcome};
use onrush_load::html::search_page;
use onrush_load::limits::CPU_SHARE_INVALID;
use onrush_load::pace::Pace;
use onrush_load::pace::arrivals::ArrivalPlan;
use onrush_load::pace::profile::Profile;
use onrush_load::plan::{Options, Plan};
use onrush_load::report::Report;
use onrush_load::run;
use onrush_load::threshold::{Threshold, ThresholdOutcome};

use super::exit::EXIT_NOT_FOUND;
use super::files::Form;
use super::output::Output;
use super::populate::populate;
use super::search_stop::StopRequest;

/// Searches, shows each trial and returns the exit code.
pub(super) fn run(
    condition: &Threshold,
    options: &Options,
    output: &Output,
    inputs: &[PathBuf],
) -> Result<u8, Error> {
    let files = output.open(inputs)?;
    // Once: all trials use the same keys.
    files.discard_old_results_if_unreachable(populate(&mut Plan::new(options.clone())?))?;
    let end = StopRequest::on_signal()?;
    let mut out = output.out();
    let _ = writeln!(
        out,
        "the highest rate at which {}\n{COLUMNS}",
        condition.text()
    );
    let asked = options.pace.target_rate(options.connections as u64);
    let mut search = Search::new(asked.map(|rate| rate.round().max(1.0) as u64));
    let answer = loop {
        match search.next() {
            NextStep::Done(answer) => break Some(answer),
            NextStep::Try(rate) | NextStep::Confirm(rate) => {
                let Some(report) =
                    files.discard_old_results_if_unreachable(trial(rate, options, &end))?
                else {
                    break None;
                };
                let trial = classify_trial(condition, rate, &report);
                if trial.held == TrialOutcome::TooShort && search.trials().is_empty() {
                    return Err(too_short(
                        condition,
                        rate,
                        (report.duration_s, &trial.measured),
                    ));
                }
                let _ = writeln!(out, "{trial}");
                search.record(trial);
            }
        }
    };
    let sentence = find_max::sentence(answer.as_ref(), search.trials());
    let _ = writeln!(
        out,
        "\n{}\n{}: {sentence}",
        find_max::curve(search.trials()),
        condition.text()
    );
    files.write(|form, file| {
        let (target, trials) = (&options.target.url, search.trials());
        let text = match form {
            Form::Json => find_max::to_json(condition.text(), answer.as_ref(), trials),
            Form::Html => search_page(target, condition.text(), answer.as_ref(), trials),
            Form::Csv | Form::Hdr => unreachable!("rejected earlier with --find-max"),
        };
        writeln!(file, "{text}")
    })?;
    Ok(match answer {
        Some(SearchResult::Found { .. }) => 0,
        Some(
            SearchResult::Never { .. }
            | SearchResult::Unsteady { .. }
            | SearchResult::TooShort { .. },
        )
        | None => EXIT_NOT_FOUND,
    })
}

/// Makes one run at `rate`; `None` when the user has ended the search.
fn trial(rate: u64, options: &Options, end: &StopRequest) -> Result<Option<Report>, Error> {
    let rate = NonZeroU64::new(rate)
        .ok_or_else(|| Error::Invalid("the rate must be more than 0".to_owned()))?;
    let options = Options {
        pace: paced(&options.pace, rate),
        ..options.clone()
    };
    let running = run::start(Plan::new(options)?)?;
    let stopper = running.stopper();
    end.watch(move || stopper.stop());
    let report = running.finish(|_| ())?;
    Ok((!end.is_over()).then_some(report))
}

/// An open loop at `rate`, with the requested spacing.
fn paced(asked: &Pace, rate: NonZeroU64) -> Pace {
    match asked {
        Pace::Open(ArrivalPlan::Spaced { spacing, seed, .. }) => Pace::Open(ArrivalPlan::Spaced {
            profile: Profile::steady(rate),
            spacing: *spacing,
            seed: *seed,
        }),
        Pace::Open(ArrivalPlan::Bursts { .. } | ArrivalPlan::Listed(_))
        | Pace::EachConnection(_)
        | Pace::Closed
        | Pace::Think(_) => Pace::rate(rate),
    }
}

/// Classifies a trial. A rate that the run did not keep up with has failed, even if its percentiles meet the condition.
fn classify_trial(condition: &Threshold, rate: u64, report: &Report) -> Trial {
    let outcome = report.judge(condition);
    let mut threads = report.evidence.threads.iter();
    let is_full = threads.any(|thread| thread.cpu_share >= CPU_SHARE_INVALID);
    let is_behind = !find_max::keeps_up(report);
    let held = match outcome.fate {
        _ if is_full => TrialOutcome::GeneratorLimit,
        // The condition is the goal of the search: `Failed` means that it holds.
        ThresholdOutcome::Failed | ThresholdOutcome::Undecided if is_behind => {
            TrialOutcome::RateNotKept
        }
        ThresholdOutcome::Failed => TrialOutcome::Yes,
        ThresholdOutcome::Passed => TrialOutcome::No,
        ThresholdOutcome::Undecided if report.can_judge(condition) => TrialOutcome::Undecided,
        ThresholdOutcome::Undecided => TrialOutcome::TooShort,
    };
    Trial::new(rate, held, outcome.measured, report)
}

/// Error for a first trial that was too short to evaluate the condition, with its length and what it measured.
fn too_short(condition: &Threshold, rate: u64, (seconds, measured): (f64, &str)) -> Error {
    Error::Invalid(format!(
        "a trial of {seconds:.1} s at {rate} requests per second is too short to judge {}: {measured}; use longer trials (-d) or start at a higher rate (-R)",
        condition.text(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A trial of 5 s in which `responses` took 1 ms each and `unanswered` requests have waited as long without a
    /// response.
    fn trial_of(responses: u64, unanswered: u64) -> Report {
        let mut report = Report {
            duration_s: 5.0,
            requests: responses,
            ..Report::default()
        };
        report.evidence.failures = unanswered;
        report.latency_us.mean = Some(1000.0);
        report.times.response.record_many(1_000_000, responses);
        report
            .unanswered
            .response
            .record_many(1_000_000, unanswered);
        report
    }

    #[test]
    fn undecided_trial_is_not_a_pass() {
        for (condition, responses, unanswered, held) in [
            ("p99.9 < 5ms", 10_000, 0, TrialOutcome::Yes),
            ("p99.9 < 500us", 10_000, 0, TrialOutcome::No),
            ("p99.9 < 5ms", 10_000, 50, TrialOutcome::Undecided),
            // It fails however long the incomplete requests take.
            ("p99.9 < 500us", 10_000, 50, TrialOutcome::No),
            ("p99.9 < 5ms", 10_000, 500, TrialOutcome::RateNotKept),
            ("p99.9 < 5ms", 10, 0, TrialOutcome::TooShort),
        ] {
            let parsed = Threshold::parse(condition).unwrap();
            let trial = classify_trial(&parsed, 2000, &trial_of(responses, unanswered));
            assert_eq!(trial.held, held, "{condition} {responses} {unanswered}");
        }
    }
}
