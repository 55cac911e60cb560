//! `onrush load merge` and `onrush load compare`, which read written results.

use std::io::Write;
use std::path::{Path, PathBuf};

use onrush_load::compare::compare;
use onrush_load::error::Error;
use onrush_load::limits::RESULT_BYTES_MAX;
use onrush_load::merge::part::Part;
use onrush_load::merge::{self, merge};
use onrush_load::report::Report;

use super::files::{Files, Form};
use super::output::Output;

/// Merge results of generators that loaded one target at the same time.
#[derive(clap::Args, Debug)]
pub(super) struct Merge {
    /// JSON files that the generators wrote with --json
    #[arg(value_name = "RESULT", required = true)]
    results: Vec<PathBuf>,

    #[command(flatten)]
    output: Output,
}

/// Compare two results: how much each percentile changed, and whether by more than chance.
#[derive(clap::Args, Debug)]
pub(super) struct Compare {
    /// JSON file of the first run
    #[arg(value_name = "A")]
    a: PathBuf,

    /// JSON file of the second run
    #[arg(value_name = "B")]
    b: PathBuf,

    /// Write the comparison as JSON to this file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Merges the results and returns the exit code.
pub(super) fn run_merge(args: &Merge) -> Result<u8, Error> {
    let parts: Vec<Part> = args
        .results
        .iter()
        .map(|path| read(path))
        .collect::<Result<_, _>>()?;
    let mut report = merge(&parts).map_err(Error::Invalid)?;
    args.output.judge(&mut report);
    let files = args.output.open(&args.results)?;
    let _ = writeln!(
        args.output.out(),
        "{}\n\n{report}",
        merge::headline(&parts, &report)
    );
    files.write_report(&report)?;
    Ok(args.output.exit_code(&report))
}

/// Compares two results. The exit code is 0 for any difference.
pub(super) fn run_compare(args: &Compare) -> Result<u8, Error> {
    let (a, b) = (read(&args.a)?, read(&args.b)?);
    let comparison = compare(&a, &b).map_err(Error::Invalid)?;
    let inputs = [args.a.clone(), args.b.clone()];
    let files = Files::open(&[("--json", args.json.as_deref(), Form::Json)], &inputs)?;
    let _ = write!(files.out(), "{comparison}");
    files.write(|_, file| writeln!(file, "{}", comparison.to_json()))?;
    Ok(0)
}

fn read(path: &Path) -> Result<Part, Error> {
    let name = path.display().to_string();
    let text = onrush_file::read_text(path, RESULT_BYTES_MAX)
        .map_err(|error| Error::Invalid(format!("{name} cannot be read: {error}")))?;
    let report =
        Report::from_json(&text).map_err(|reason| Error::Invalid(format!("{name}: {reason}")))?;
    Ok(Part { name, report })
}
