//! `onrush load --find-max`: trials one after the other in this process, and what they come to.

use std::io::Write;
use std::num::NonZeroU64;
use std::path::PathBuf;

use onrush_load::error::Error;
use onrush_load::find_max::{self, Answer, COLUMNS, Held, Search, Step, Trial};
use onrush_load::html::search_page;
use onrush_load::limits::CPU_SHARE_INVALID;
use onrush_load::pace::Pace;
use onrush_load::pace::arrivals::ArrivalPlan;
use onrush_load::pace::profile::Profile;
use onrush_load::plan::{Options, Plan};
use onrush_load::report::Report;
use onrush_load::run;
use onrush_load::threshold::{Fate, Threshold};

use super::end::End;
use super::exit::EXIT_NOT_FOUND;
use super::files::Form;
use super::output::Output;
use super::populate::populate;

/// Searches and shows each trial; the exit code.
pub(super) fn run(
    condition: &Threshold,
    options: &Options,
    output: &Output,
    inputs: &[PathBuf],
) -> Result<u8, Error> {
    let files = output.open(inputs)?;
    // Once: all trials find the same keys.
    populate(&mut Plan::new(options.clone())?)?;
    let end = End::on_signal()?;
    let mut out = output.out();
    let _ = writeln!(
        out,
        "the highest rate at which {}\n{COLUMNS}",
        condition.text()
    );
    let asked = options.pace.rate_asked(options.connections as u64);
    let mut search = Search::new(asked.map(|rate| rate.round().max(1.0) as u64));
    let answer = loop {
        match search.next() {
            Step::Done(answer) => break Some(answer),
            Step::Try(rate) | Step::Confirm(rate) => {
                let Some(report) = trial(rate, options, &end)? else {
                    break None;
                };
                let trial = judged(condition, rate, &report)?;
                let _ = writeln!(out, "{trial}");
                search.record(trial);
            }
        }
    };
    let sentence = answer.as_ref().map_or(
        "ended before anything was found".to_owned(),
        Answer::to_string,
    );
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
            Form::Csv | Form::Hdr => unreachable!("they are refused beside --find-max"),
        };
        writeln!(file, "{text}")
    })?;
    Ok(match answer {
        Some(Answer::Found { .. }) => 0,
        Some(Answer::Never { .. } | Answer::Unsteady { .. }) | None => EXIT_NOT_FOUND,
    })
}

/// One run at `rate`; none when the user has ended the search.
fn trial(rate: u64, options: &Options, end: &End) -> Result<Option<Report>, Error> {
    let rate =
        NonZeroU64::new(rate).ok_or_else(|| Error::Invalid("a rate of 0 is none".to_owned()))?;
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

/// An open loop at `rate`, spaced as the one that was asked for.
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

/// What a trial says of the target. A rate that was not kept up with is one that failed, whatever the percentile of the
/// requests that were made.
///
/// # Errors
/// When the trial was too short for the condition.
fn judged(condition: &Threshold, rate: u64, report: &Report) -> Result<Trial, Error> {
    let outcome = report.judge(condition);
    if outcome.fate == Fate::Undecided {
        return Err(Error::Invalid(format!(
            "a trial of {:.1} s at {rate} requests per second cannot tell whether {} holds: {}; make trials longer (-d) or begin at a higher rate (-R)",
            report.duration_s,
            condition.text(),
            outcome.measured
        )));
    }
    let mut threads = report.evidence.threads.iter();
    let is_full = threads.any(|thread| thread.cpu_share >= CPU_SHARE_INVALID);
    let is_behind = !find_max::keeps_up(report);
    let held = match outcome.fate {
        _ if is_full => Held::GeneratorLimit,
        // The condition is what is to be: a threshold that holds.
        Fate::Failed if is_behind => Held::RateNotKept,
        Fate::Failed => Held::Yes,
        Fate::Passed | Fate::Undecided => Held::No,
    };
    Ok(Trial::new(rate, held, outcome.measured, report))
}
