//! `onrush bench compare`: compares the results of earlier runs.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use onrush_bench::archive::{ENVIRONMENT, RAW, Run};
use onrush_bench::compare::{Comparison, ComparisonStatus, Options, Selection, compare};
use onrush_bench::limits::COMPARED_MAX;
use serde_json::json;

use super::exit::{EXIT_NOT_COMPARABLE, EXIT_WORSE};
use super::output_files::{self, OutputFiles};
use super::share::share;

/// Compare results: which figures became better or worse, by how much, and with what confidence (docs/compare.md).
#[derive(clap::Args)]
#[command(after_help = "Examples:
  onrush bench compare runs/before out/now
  onrush bench compare runs/before out/now --only server.cpu_us_per_request --smallest 5%
  onrush bench compare runs/before out/now --markdown - 2> /dev/null

Exit codes: 0 nothing became worse, 1 a result cannot be read, 3 a figure asked for with --only is inconclusive or \
compared, or nothing can be compared at all, 4 something became worse.")]
pub(crate) struct Args {
    /// Result directories of onrush bench: the baseline, then those to compare with it
    #[arg(value_name = "DIR", required = true, num_args = 2..)]
    directories: Vec<PathBuf>,
    /// Smallest effect that matters, such as 5%
    #[arg(long, value_name = "SHARE", default_value = "2%", value_parser = share)]
    smallest: f64,
    /// Compare only figures whose name, 'WORK / VARIANT / METRIC', contains this; repeatable [default: all figures of Onrush]
    #[arg(long, value_name = "TEXT")]
    only: Vec<String>,
    /// Standard deviation between runs of one system, if measured [default: 0.25% if both runs contain the same reference, else 2%]
    #[arg(long, value_name = "SHARE", value_parser = share)]
    between_runs: Option<f64>,
    /// Write the comparisons as JSON to this file; with -, to standard output, and the text output to standard error
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the comparisons as Markdown to this file; - as with --json
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
}

/// Compares the later directories with the first and returns the exit code.
pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let (first, others) = args.directories.split_first().context("two directories")?;
    if others.len() > COMPARED_MAX {
        bail!(
            "{} directories: expected at most {COMPARED_MAX} after the first",
            others.len()
        );
    }
    let inputs: Vec<PathBuf> = args.directories.iter().flat_map(|it| files(it)).collect();
    let wanted = [
        ("--json", args.json.as_deref()),
        ("--markdown", args.markdown.as_deref()),
    ];
    let files = OutputFiles::open(&wanted, &inputs)?;
    let options = Options {
        min_effect: args.smallest,
        only: args.only.clone(),
        between_runs: args.between_runs,
    };
    let first = Run::read(first)?;
    let mut comparisons = Vec::new();
    for other in others {
        let comparison = compare(&first, &Run::read(other)?, &options);
        if comparison.figures.is_empty() && !args.only.is_empty() {
            bail!(
                "no figure of {} and {} is named {}: a name is 'WORK / VARIANT / METRIC', such as 'fixed answer / onrush epoll / rps'",
                first.name,
                other.display(),
                args.only.join(" or ")
            );
        }
        comparisons.push(comparison);
    }
    let texts: Vec<String> = comparisons.iter().map(Comparison::to_string).collect();
    output_files::show(files.out(), &texts.join("\n"));
    files.write(|flag| match flag {
        "--json" => format!("{:#}\n", json!({ "schema": 1, "comparisons": comparisons })),
        _ => {
            let tables: Vec<String> = comparisons.iter().map(Comparison::to_markdown).collect();
            tables.join("\n")
        }
    })?;
    Ok(ExitCode::from(code(&comparisons, &args.only)))
}

fn files(directory: &Path) -> [PathBuf; 2] {
    [RAW, ENVIRONMENT].map(|name| directory.join(name))
}

/// Exit code of the worst comparison.
fn code(comparisons: &[Comparison], only: &[String]) -> u8 {
    let asked = match only.is_empty() {
        true => Selection::All,
        false => Selection::ByName,
    };
    let standings = comparisons.iter().map(|it| it.status(asked));
    match standings.max().unwrap_or(ComparisonStatus::Passed) {
        ComparisonStatus::Passed => 0,
        ComparisonStatus::Untold => EXIT_NOT_COMPARABLE,
        ComparisonStatus::Worse => EXIT_WORSE,
    }
}
