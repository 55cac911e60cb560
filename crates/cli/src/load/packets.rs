//! `onrush load udp://…`: flags -> a run of datagrams, or a search of several runs -> lines, a summary, files, an exit
//! code.

use std::io::Write;
use std::num::NonZeroU64;
use std::time::Duration;

use onrush_load::error::Error;
use onrush_load::find_max::{
    self, COLUMNS as TRIAL_COLUMNS, NextStep, Search, SearchResult, Trial, TrialOutcome,
};
use onrush_load::limits::FIND_PACKETS_PRECISION;
use onrush_load::pace::Pace;
use onrush_load::packets::report::Report;
use onrush_load::packets::run;
use onrush_load::packets::text::COLUMNS;
use onrush_load::packets::{Options, Plan};
use onrush_load::stop::Stop;
use onrush_load::target::Target;
use onrush_load::threshold::{Threshold, ThresholdOutcome};
use onrush_load::verdict::reason::State;

use super::arguments::{Args, DURATION_DEFAULT};
use super::exit::{EXIT_ERRORS, EXIT_INVALID, EXIT_NOT_FOUND, EXIT_THRESHOLD};
use super::files::Form;
use super::output::Output;
use super::search_stop::StopRequest;
use super::signals::on_signal;

fn options(args: Args, target: Target) -> Result<Options, Error> {
    let paced = args.pace.paced().map_err(Error::Invalid)?;
    let sizes = args.packets.sizes().map_err(Error::Invalid)?;
    let defaults = Options::new(target);
    let after = match (args.duration, args.count) {
        (None, None) => paced.duration.or(Some(DURATION_DEFAULT)),
        (after, _) => after,
    };
    Ok(Options {
        direction: args.packets.way(),
        flows: usize::try_from(args.connections).unwrap_or(usize::MAX),
        threads: usize::try_from(args.threads).unwrap_or(usize::MAX),
        cpus: args.cpus.map(|cpus| cpus.0).unwrap_or_default(),
        io: args.io,
        busy_poll: args.busy_poll,
        stop: Stop {
            after,
            count: args.count,
        },
        pace: args.packets.rate(&sizes).map_or(paced.pace, Pace::rate),
        sizes,
        departure: args.packets.via.or(args.packets.send).unwrap_or_default(),
        depth: args.packets.depth.unwrap_or(1),
        timeout: args.timeout.unwrap_or(defaults.timeout),
        sources: args.reach.sources(),
        interfaces: args.packets.interface,
        seed: paced.seed,
        ..defaults
    })
}

pub(super) fn run(mut args: Args) -> Result<u8, Error> {
    let mut urls = std::mem::take(&mut args.urls);
    let target = match urls.len() {
        1 => urls.remove(0),
        _ => {
            return Err(Error::Invalid(
                "datagrams go to one address: pass one udp://HOST:PORT, and start one run per address at the same time".to_owned(),
            ));
        }
    };
    let output = std::mem::take(&mut args.output);
    let condition = args.find_max.take();
    let options = options(args, target)?;
    match condition {
        Some(condition) => search(&condition, &options, &output),
        None => one(options, &output),
    }
}

fn one(options: Options, output: &Output) -> Result<u8, Error> {
    let plan = Plan::new(options)?;
    let files = output.open(&[])?;
    let running = files.discard_old_results_if_unreachable(run::start(plan))?;
    let stopper = running.stopper();
    on_signal(move || stopper.stop())?;
    let mut out = output.out();
    let is_shown = output.shows_lines();
    if is_shown {
        let _ = writeln!(out, "{}\n{COLUMNS}", running.headline());
    }
    let finished = running.finish(|second| {
        if is_shown {
            let _ = writeln!(out, "{second}");
        }
    });
    let mut report = files.discard_old_results_if_unreachable(finished)?;
    let judged = output
        .fail_conditions()
        .map(|condition| report.judge(condition));
    report.thresholds = judged.collect();
    if is_shown {
        let _ = writeln!(out);
    }
    let _ = write!(out, "{report}");
    files.write(|form, file| match form {
        Form::Json => writeln!(file, "{}", report.to_json()),
        Form::Csv | Form::Html | Form::Hdr => unreachable!("rejected earlier with udp://"),
    })?;
    Ok(exit_code(&report))
}

/// Exit code of a run. Lost datagrams are a result, not an error, unless a condition limits them.
fn exit_code(report: &Report) -> u8 {
    let is_failed = report
        .thresholds
        .iter()
        .any(|outcome| outcome.fate != ThresholdOutcome::Passed);
    if is_failed {
        EXIT_THRESHOLD
    } else if report.verdict.state == State::Invalid {
        EXIT_INVALID
    } else if report.unsent() > 0 || report.wrong_length > 0 {
        EXIT_ERRORS
    } else {
        0
    }
}

/// Searches for the highest rate at which `condition` holds.
fn search(condition: &Threshold, options: &Options, output: &Output) -> Result<u8, Error> {
    let files = output.open(&[])?;
    let end = StopRequest::on_signal()?;
    let mut out = output.out();
    let _ = writeln!(
        out,
        "the highest rate at which {}\n{TRIAL_COLUMNS}",
        condition.text()
    );
    let asked = options.pace.target_rate(options.flows as u64);
    let start = asked.map(|rate| rate.round().max(1.0) as u64);
    let mut search = Search::new(start).narrowed_to(FIND_PACKETS_PRECISION);
    let answer = loop {
        let trial = match search.next() {
            NextStep::Done(answer) => break Some(answer),
            NextStep::Try(rate) => files.discard_old_results_if_unreachable(trial(
                condition,
                rate,
                &short(options),
                &end,
            ))?,
            NextStep::Confirm(rate) => {
                files.discard_old_results_if_unreachable(trial(condition, rate, options, &end))?
            }
        };
        let Some(trial) = trial else { break None };
        if trial.held == TrialOutcome::TooShort && search.trials().is_empty() {
            return Err(Error::Invalid(format!(
                "a trial at {} datagrams per second is too short to judge {}: {}; use longer trials (-d)",
                trial.rate,
                condition.text(),
                trial.measured
            )));
        }
        let _ = writeln!(out, "{trial}");
        search.record(trial);
    };
    let sentence = find_max::sentence(answer.as_ref(), search.trials());
    let _ = writeln!(out, "\n{}: {sentence}", condition.text());
    files.write(|form, file| match form {
        Form::Json => writeln!(
            file,
            "{}",
            find_max::to_json(condition.text(), answer.as_ref(), search.trials())
        ),
        Form::Csv | Form::Html | Form::Hdr => unreachable!("rejected earlier with udp://"),
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

/// Options of an intermediate trial: a quarter as long, which still shows a queue that fills. RFC 2544 section 24
/// allows short trials before the final one.
fn short(options: &Options) -> Options {
    let mut short = options.clone();
    let after = options
        .stop
        .after
        .map(|after| (after / 4).max(TRIAL_MIN).min(after));
    short.stop.after = after;
    short
}

/// Shortest intermediate trial.
const TRIAL_MIN: Duration = Duration::from_millis(500);

/// Makes one trial at `rate`; `None` when the user has ended the search.
fn trial(
    condition: &Threshold,
    rate: u64,
    options: &Options,
    end: &StopRequest,
) -> Result<Option<Trial>, Error> {
    let rate = NonZeroU64::new(rate)
        .ok_or_else(|| Error::Invalid("the rate must be more than 0".to_owned()))?;
    let options = Options {
        pace: Pace::rate(rate),
        ..options.clone()
    };
    let running = run::start(Plan::new(options)?)?;
    let stopper = running.stopper();
    end.watch(move || stopper.stop());
    let report = running.finish(|_| ())?;
    if end.is_over() {
        return Ok(None);
    }
    if !report.is_counted() {
        return Err(Error::Invalid(format!(
            "{} does not report received datagrams: a search needs onrush serve --sink or --echo as its target",
            report.url
        )));
    }
    let outcome = report.judge(condition);
    // Datagrams that could not be sent in time count against the rate.
    let is_short = report.skipped as f64 > report.sent as f64 * SKIPPED_SHARE_MAX;
    let held = match outcome.fate {
        _ if is_short => TrialOutcome::GeneratorLimit,
        ThresholdOutcome::Failed => TrialOutcome::Yes,
        ThresholdOutcome::Passed => TrialOutcome::No,
        ThresholdOutcome::Undecided => TrialOutcome::TooShort,
    };
    let latency = &report.latency_us;
    Ok(Some(Trial {
        rate: rate.get(),
        held,
        measured: outcome.measured,
        rps: report.received_per_s.unwrap_or(0.0),
        p50_us: latency.percentile("50"),
        p99_us: latency.percentile("99"),
        p99_9_us: latency.percentile("99.9"),
        at_least: latency.at_least.clone(),
    }))
}

/// Share of a trial's datagrams that may be skipped: the datagrams of the last moment always are.
const SKIPPED_SHARE_MAX: f64 = 0.005;
