//! `onrush bench`: an experiment from a file, or the chain client -> proxy -> server that ships with the program.

mod compare;
mod exit;
mod history;
mod share;
mod written;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use onrush_bench::Options;

use crate::terminal::{Out, say};

/// What is made of results that were written before.
#[derive(clap::Subcommand)]
enum Results {
    Compare(compare::Args),
    History(history::Args),
}

/// Without a file, Onrush's own server, proxy and load generator are measured with a control client beside them.
#[derive(clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:
  onrush bench                                       client -> proxy -> server on this machine
  onrush bench experiments/first-light.toml          beside nginx, HAProxy and wrk
  onrush bench --quick --out /tmp/check my.toml      whether an experiment works, in short

Exit codes: 0 measured (also when a figure missed its target), 1 nothing could be measured, 3 a figure could not be \
judged because programs failed, errors occurred or the client was the limit, 130 stopped by Ctrl-C."
)]
pub(crate) struct Args {
    #[command(subcommand)]
    results: Option<Results>,
    /// The experiment (docs/experiment.md)
    #[arg(value_name = "EXPERIMENT.toml")]
    experiment: Option<PathBuf>,
    /// Write the results here [default: a directory named after the experiment and the time]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Few rounds and short windows: checks that an experiment works, proves nothing
    #[arg(long)]
    quick: bool,
}

/// Measures, reports, and says how it went.
pub(crate) fn run(mut args: Args) -> ExitCode {
    match args.results.take() {
        Some(Results::Compare(args)) => ended(compare::run(&args)),
        Some(Results::History(args)) => ended(history::run(&args)),
        None => measure(args),
    }
}

/// What came of earlier results.
fn ended(result: anyhow::Result<ExitCode>) -> ExitCode {
    result.unwrap_or_else(|error| {
        say(format_args!("onrush bench: {error:#}"));
        ExitCode::from(1)
    })
}

fn measure(args: Args) -> ExitCode {
    let options = Options {
        experiment: args.experiment,
        out: args.out,
        quick: args.quick,
        onrush: None,
    };
    match onrush_bench::run(options) {
        Ok(ended) => {
            let _ = Out::standard().write_all(ended.summary.as_bytes());
            ExitCode::from(ended.exit.code())
        }
        Err(error) => {
            say(format_args!(
                "onrush bench: {:#}",
                anyhow::Error::new(error)
            ));
            ExitCode::from(1)
        }
    }
}
