//! `onrush load`: flags -> a run, or a search of several runs -> lines, a summary, files, an exit code.

mod arguments;
mod as_tool;
mod connection_flags;
mod datagrams;
mod files;
mod grpc;
mod http2;
mod live;
mod memcached;
mod output;
mod pace;
mod packets;
mod populate;
mod recording;
mod requests;
mod results;
mod search;
mod search_stop;
mod signals;

mod exit;
mod length;
mod value;

use std::io::Write;
use std::process::ExitCode;

use onrush_load::error::Error;
use onrush_load::journey::Journeys;
use onrush_load::plan::Plan;
use onrush_load::target::Target;
use onrush_load::threshold::Threshold;
use onrush_load::{Io, run, selftest};

pub(crate) use self::arguments::Args;
use self::arguments::Results;
use self::exit::{EXIT_ERRORS, EXIT_UNREACHABLE, EXIT_USAGE};
use self::length::RunLength;
use crate::terminal::{Out, print_error};

/// Runs `onrush load` and returns the exit code.
///
/// `given` holds the long names of the flags on the command line.
pub(crate) fn run(args: Args, given: &[String]) -> ExitCode {
    let code = load(args, given).unwrap_or_else(|error| {
        print_error(format_args!("onrush load: {error}"));
        match error {
            Error::Invalid(_) => EXIT_USAGE,
            Error::Unreachable(_) => EXIT_UNREACHABLE,
        }
    });
    ExitCode::from(code)
}

/// Runs the self-test, which checks the generator's figures, and returns the exit code.
fn test(io: Io) -> Result<u8, Error> {
    let test = selftest::test(io)?;
    let _ = write!(Out::standard(), "{test}");
    Ok(if test.is_right() { 0 } else { EXIT_ERRORS })
}

/// Refuses conditions about loss: requests fail, only datagrams are lost.
fn refuse_loss(args: &Args) -> Result<(), Error> {
    let mut conditions = args.output.conditions().chain(&args.find_max);
    match conditions.find(|condition| condition.is_about_loss()) {
        None => Ok(()),
        Some(condition) => Err(Error::Invalid(format!(
            "{}: loss applies only to datagrams: use a condition on errors, or udp://",
            condition.text()
        ))),
    }
}

/// Refuses conditions about journeys, steps or checks that the run does not have.
fn refuse_unknown_steps<'a>(
    conditions: impl Iterator<Item = &'a Threshold>,
    journeys: Option<&Journeys>,
) -> Result<(), Error> {
    for condition in conditions {
        let checked = match journeys {
            Some(journeys) => condition.check_journeys(journeys),
            None if condition.scope().is_some() || condition.is_about_checks() => {
                Err("no journeys: pass --journeys FILE".to_owned())
            }
            None => Ok(()),
        };
        checked.map_err(|why| Error::Invalid(format!("{}: {why}", condition.text())))?;
    }
    Ok(())
}

fn load(mut args: Args, given: &[String]) -> Result<u8, Error> {
    match args.results.take() {
        Some(Results::Merge(args)) => return results::run_merge(&args),
        Some(Results::Compare(args)) => return results::run_compare(&args),
        None => {}
    }
    if !args.as_tool.is_empty() {
        return as_tool::run(&args.as_tool);
    }
    if args.selftest {
        return test(args.io);
    }
    datagrams::check_flags(&args.urls, given)?;
    if args.urls.iter().any(Target::is_datagrams) {
        refuse_unknown_steps(args.output.conditions().chain(&args.find_max), None)?;
        return packets::run(args);
    }
    refuse_loss(&args)?;
    let urls = std::mem::take(&mut args.urls);
    let output = std::mem::take(&mut args.output);
    let condition = args.find_max.take();
    let (options, found) = args.options(&urls)?;
    let notes = found.notes.iter();
    notes.for_each(|note| print_error(format_args!("onrush load: {note}")));
    let conditions = output.conditions().chain(&condition);
    refuse_unknown_steps(conditions, options.journeys.as_deref())?;
    if let Some(condition) = condition {
        return search::run(&condition, &options, &output, &found.files);
    }
    let after = options.stop.after;
    let mut plan = Plan::new(options)?;
    let length = RunLength {
        after,
        count: plan.count(),
    };
    let files = output.open(&found.files)?;
    files.discard_old_results_if_unreachable(populate::populate(&mut plan))?;
    let metrics = output.metrics()?;
    let running = files.discard_old_results_if_unreachable(run::start(plan))?;
    signals::stop_on_signal(running.stopper())?;
    let report = files.discard_old_results_if_unreachable(output.watch(
        running,
        length,
        metrics.as_ref(),
    ))?;
    files.write_report(&report)?;
    Ok(output.exit_code(&report))
}
