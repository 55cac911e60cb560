//! `onrush load`: flags -> a run, or a search of many -> lines, a summary, files, an exit code.

mod arguments;
mod as_tool;
mod live;
mod memcached;
mod output;
mod pace;
mod populate;
mod reach;
mod requests;
mod results;
mod search;
mod signals;

mod exit;
mod length;
mod value;

use std::io::Write;
use std::process::ExitCode;

use onrush_load::error::Error;
use onrush_load::plan::Plan;
use onrush_load::{Io, run, selftest};

pub(crate) use self::arguments::Args;
use self::arguments::Results;
use self::exit::{EXIT_ERRORS, EXIT_UNREACHABLE, EXIT_USAGE};
use self::length::Length;
use crate::terminal::{Out, say};

/// Runs the verb to its exit code.
pub(crate) fn run(args: Args) -> ExitCode {
    let code = load(args).unwrap_or_else(|error| {
        say(format_args!("onrush load: {error}"));
        match error {
            Error::Invalid(_) => EXIT_USAGE,
            Error::Unreachable(_) => EXIT_UNREACHABLE,
        }
    });
    ExitCode::from(code)
}

/// Whether the generator's figures are right, as an exit code.
fn test(io: Io) -> Result<u8, Error> {
    let test = selftest::test(io)?;
    let _ = write!(Out::standard(), "{test}");
    Ok(if test.is_right() { 0 } else { EXIT_ERRORS })
}

fn load(mut args: Args) -> Result<u8, Error> {
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
    let urls = std::mem::take(&mut args.urls);
    let output = std::mem::take(&mut args.output);
    let condition = args.find_max.take();
    let (options, found) = args.options(&urls)?;
    let notes = found.notes.iter();
    notes.for_each(|note| say(format_args!("onrush load: {note}")));
    if let Some(condition) = condition {
        return search::run(&condition, &options, &output, &found.files);
    }
    let after = options.stop.after;
    let mut plan = Plan::new(options)?;
    let length = Length {
        after,
        count: plan.count(),
    };
    let files = output.open(&found.files)?;
    populate::populate(&mut plan)?;
    let running = run::start(plan)?;
    signals::stop_on_signal(running.stopper())?;
    let report = output.watch(running, length)?;
    files.write_report(&report)?;
    Ok(output.exit_code(&report))
}
