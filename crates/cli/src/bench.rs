//! `onrush bench`: runs an experiment from a file, or the built-in chain client -> proxy -> server.

mod compare;
mod exit;
mod history;
mod machine;
mod output_files;
mod predict;
mod share;
mod wire;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use onrush_bench::Seed;
use onrush_bench::{Charts, Options, Task, TrialSelection};

use onrush_measure::amount;
use onrush_measure::suggestion::suggestion;

use self::output_files::OutputFiles;
use crate::terminal::print_error;

/// Compare and predict results.
#[derive(clap::Subcommand)]
enum Results {
    Compare(compare::Args),
    History(history::Args),
    Predict(predict::Args),
    Wire(wire::Args),
    /// Be the agent of an experiment that runs on another machine
    #[command(hide = true)]
    Agent {
        /// Working directory of the agent; it is removed at the end
        directory: PathBuf,
    },
}

/// Run an experiment and write a report. Without a file, measure Onrush's own client, proxy and server.
#[derive(clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:
  onrush bench                                       client -> proxy -> server on this machine
  onrush bench experiments/first-light.toml          compared with nginx, HAProxy and wrk
  onrush bench --quick --out /tmp/check my.toml      check quickly that an experiment works
  onrush bench --dry-run my.toml                     trials, their order and times
  onrush bench --only 'file/nginx' --only connections=100 my.toml
  onrush bench --markdown - my.toml 2> progress      the summary for a README or a comment
  onrush bench --resume DIR                          resume an interrupted run
  onrush bench predict --machine server.toml         capacity of a machine (docs/predict.md)

Exit codes: 0 measured (also when a figure missed its target), 1 nothing was started or results could not be written, 3 a figure could not be \
judged because programs failed or are missing, errors occurred or the client was the limit, 130 stopped by Ctrl-C."
)]
pub(crate) struct Args {
    #[command(subcommand)]
    results: Option<Results>,
    /// Experiment file (docs/experiment.md) [default: client, proxy and server of Onrush]
    #[arg(value_name = "EXPERIMENT.toml")]
    experiment: Option<PathBuf>,
    /// Write the results to this directory [default: one directory named after the experiment and the time]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Also write the summary as Markdown to this file, or standard output (-)
    ///
    /// With -, the text output goes to standard error
    #[arg(long, value_name = "FILE", conflicts_with_all = ["dry_run", "list"])]
    markdown: Option<PathBuf>,
    /// Also write the charts as PNG (needs rsvg-convert)
    #[arg(long, conflicts_with_all = ["dry_run", "list"], hide_short_help = true)]
    png: bool,
    /// Run few rounds and short windows, only to check that the experiment works; the figures are not valid
    #[arg(long)]
    quick: bool,
    /// Record a CPU profile of each role with perf and write flame graphs; this slows the roles down
    #[arg(long, hide_short_help = true)]
    profile: bool,
    /// Run only this WORK, WORK/VARIANT (`*` matches any characters) or PARAMETER=VALUE of a sweep; repeatable
    #[arg(long, value_name = "WHAT")]
    only: Vec<String>,
    /// Use this scale of the experiment, if the file has several
    #[arg(long, value_name = "NAME", hide_short_help = true)]
    scale: Option<String>,
    /// Run as many rounds as fit into this time, such as 20m or 2h
    #[arg(long, value_name = "TIME", value_parser = duration, hide_short_help = true)]
    budget: Option<Duration>,
    /// Seed of the order of trials, as recorded in an earlier result
    #[arg(long, value_name = "NUMBER", hide_short_help = true)]
    seed: Option<u64>,
    /// Resume the interrupted run in this directory
    #[arg(long, value_name = "DIR", conflicts_with_all = ["experiment", "out", "quick", "only", "scale", "profile", "budget", "seed", "dry_run", "list"])]
    resume: Option<PathBuf>,
    /// Print the trials in order and their times, and start nothing
    #[arg(long, conflicts_with = "list")]
    dry_run: bool,
    /// Print works, points, variants and programs, and start nothing
    #[arg(long)]
    list: bool,
}

impl Args {
    fn options(self) -> Options {
        let task = match (self.resume, self.dry_run, self.list) {
            (Some(directory), _, _) => Task::Resume(directory),
            (None, true, _) => Task::Schedule,
            (None, false, true) => Task::List,
            (None, false, false) => Task::Measure,
        };
        Options {
            experiment: self.experiment,
            task,
            out: self.out,
            choice: TrialSelection {
                quick: self.quick,
                only: self.only,
                scale: self.scale,
                profile: self.profile,
            },
            budget: self.budget,
            seed: self.seed.map(Seed),
            charts: match self.png {
                true => Charts::Png,
                false => Charts::Svg,
            },
            onrush: None,
        }
    }
}

/// Runs the subcommand, or the experiment when there is none, and returns the exit code.
pub(crate) fn run(mut args: Args) -> ExitCode {
    match args.results.take() {
        Some(Results::Compare(args)) => exit_code_of(compare::run(&args)),
        Some(Results::History(args)) => exit_code_of(history::run(&args)),
        Some(Results::Predict(args)) => predict::run(&args),
        Some(Results::Wire(args)) => wire::run(&args),
        Some(Results::Agent { directory }) => {
            let served = onrush_bench::serve_agent(&directory).map(|()| ExitCode::SUCCESS);
            exit_code_of(served.map_err(anyhow::Error::new))
        }
        None => exit_code_of(measure(args)),
    }
}

/// Exit code of `result`; prints the error and returns 1 on failure.
fn exit_code_of(result: anyhow::Result<ExitCode>) -> ExitCode {
    result.unwrap_or_else(|error| {
        print_error(format_args!("onrush bench: {error:#}"));
        ExitCode::from(1)
    })
}

fn measure(args: Args) -> anyhow::Result<ExitCode> {
    if let Some(hint) = args.experiment.as_deref().and_then(subcommand_hint) {
        print_error(format_args!("{hint}"));
        return Ok(ExitCode::from(1));
    }
    let inputs: Vec<PathBuf> = args.experiment.iter().cloned().collect();
    if let Some(markdown) = &args.markdown
        && let Some(out) = args.out.as_ref().or(args.resume.as_ref())
        && onrush_bench::report::is_other_than_summary(out, markdown)
    {
        anyhow::bail!(
            "--markdown would overwrite {}, a file of the result: name another file",
            markdown.display()
        );
    }
    let files = OutputFiles::open(&[("--markdown", args.markdown.as_deref())], &inputs)?;
    let ended = onrush_bench::run(args.options())?;
    output_files::show(files.out(), &ended.summary);
    files.write(|_| ended.markdown.clone().unwrap_or_default())?;
    Ok(ExitCode::from(ended.exit.code()))
}

/// Hint for a command line that failed to parse: the subcommand of `onrush bench` that was probably meant.
pub(crate) fn hint(mut words: impl Iterator<Item = String>) -> Option<String> {
    let is_ours = words.next()? == "bench";
    let name = words.next().filter(|_| is_ours)?;
    subcommand_hint(Path::new(&name))
}

fn subcommand_hint(experiment: &Path) -> Option<String> {
    let meant = nearest_subcommand(experiment)?;
    let path = experiment.display();
    Some(format!(
        "onrush bench: {path} does not exist: did you mean `onrush bench {meant}`?"
    ))
}

/// Returns the subcommand that resembles `experiment`, if no such file exists.
fn nearest_subcommand(experiment: &Path) -> Option<&'static str> {
    let name = experiment.to_str().filter(|_| !experiment.exists())?;
    // An exact match is a correctly written subcommand; the mistake is elsewhere on the line.
    suggestion(name, ["compare", "history", "predict", "wire"]).filter(|verb| *verb != name)
}

/// Parses a time such as `90s`, `20m` or `2h`, of at most a week.
fn duration(text: &str) -> Result<Duration, String> {
    let length = amount::duration(text).ok();
    let length = length
        .filter(|length| *length > Duration::ZERO && *length <= onrush_bench::limits::BUDGET_MAX);
    length.ok_or_else(|| "expected a time of at most a week, such as 90s, 20m or 2h".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspelt_subcommand_is_suggested() {
        for (name, verb) in [
            ("comapre", "compare"),
            ("histroy", "history"),
            ("wires", "wire"),
        ] {
            assert_eq!(nearest_subcommand(Path::new(name)), Some(verb), "{name}");
        }
        for name in ["first-light.toml", "experiments/compare.toml", ".", "x"] {
            assert_eq!(nearest_subcommand(Path::new(name)), None, "{name}");
        }
        let words = |line: &str| hint(line.split(' ').map(String::from));
        assert!(words("bench comapre a b").is_some_and(|hint| hint.contains("bench compare`")));
        for line in [
            "bench",
            "bench --nosuch",
            "load comapre",
            "bench first.toml x",
            "bench predict --help",
            "bench compare a",
            "bench wire --rate 0",
        ] {
            assert_eq!(words(line), None, "{line}");
        }
    }
}
