//! `onrush bench history`: shows all results of a folder over time.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::bail;
use onrush_bench::history::{History, Options, history};
use time::Month;

use super::exit::EXIT_WORSE;
use super::output_files::{self, OutputFiles};
use super::share::{confidence, share};

/// Read all results in a directory tree, in the order of their dates, and find where figures changed (docs/compare.md).
#[derive(clap::Args)]
#[command(after_help = "Examples:
  onrush bench history runs/
  onrush bench history runs/ --only server.cpu_us_per_request --html history.html
  onrush bench history runs/ --since 2026-11-01        changes before that day are known

Exit codes: 0 no series ends after a change for the worse, 1 there is no result, or an output cannot be written, \
4 the newest run of a series comes after such a change.")]
pub(crate) struct Args {
    /// Directory tree of results
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// Smallest change that matters, such as 5%
    #[arg(long, value_name = "SHARE", default_value = "2%", value_parser = share)]
    smallest: f64,
    /// Confidence required to report a change
    #[arg(long, value_name = "SHARE", default_value = "99%", value_parser = confidence)]
    confidence: f64,
    /// Show only series whose name, 'EXPERIMENT / WORK / VARIANT / METRIC', contains this; repeatable [default: all of
    /// Onrush]
    #[arg(long, value_name = "TEXT")]
    only: Vec<String>,
    /// Changes before this day, such as 2026-11-21, are known: list them, but do not fail
    #[arg(long, value_name = "DAY", value_parser = day)]
    since: Option<String>,
    /// Write the history as JSON to this file; with -, to standard output, and the text output to standard error
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the changes as Markdown to this file; - as with --json
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
    /// Write an HTML page with a chart of each series to this file; it works offline
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

/// Parses a calendar day such as `2026-11-21`.
fn day(text: &str) -> Result<String, String> {
    let shape = "0000-00-00";
    let fits = |(letter, form): (char, char)| match form {
        '-' => letter == '-',
        _ => letter.is_ascii_digit(),
    };
    if text.len() != shape.len() || !text.chars().zip(shape.chars()).all(fits) {
        return Err("expected a day such as 2026-11-21".into());
    }
    let number = |range: std::ops::Range<usize>| text[range].parse().unwrap_or(0_u32);
    let (year, month, day) = (number(0..4), number(5..7), number(8..10));
    let Ok(name) = Month::try_from(month as u8) else {
        return Err(format!(
            "month {month} does not exist: expected 01 to 12, as in 2026-11-21"
        ));
    };
    let days = u32::from(name.length(year as i32));
    match (1..=days).contains(&day) {
        true => Ok(text.to_owned()),
        false => Err(format!(
            "month {month} of {year} has no day {day}: expected 01 to {days}, as in 2026-11-21"
        )),
    }
}

/// Reads the results, shows and writes the history, and returns the exit code.
pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let wanted: [(&'static str, Option<&Path>); 3] = [
        ("--json", args.json.as_deref()),
        ("--markdown", args.markdown.as_deref()),
        ("--html", args.html.as_deref()),
    ];
    let files = OutputFiles::open(&wanted, &[])?;
    let options = Options {
        min_effect: args.smallest,
        confidence: args.confidence,
        only: args.only.clone(),
        since: args.since.clone(),
    };
    let history = history(&args.folder, &options)?;
    if history.series.is_empty() && !args.only.is_empty() {
        bail!(
            "no series below {} is named {}: a name is 'EXPERIMENT / WORK / VARIANT / METRIC'",
            history.folder,
            args.only.join(" or ")
        );
    }
    output_files::show(files.out(), &history.to_string());
    files.write(|flag| match flag {
        "--json" => history.to_json(),
        "--markdown" => history.to_markdown(),
        _ => history.to_html(),
    })?;
    Ok(ExitCode::from(code(&history)))
}

fn code(history: &History) -> u8 {
    match history.has_new_regression() {
        true => EXIT_WORSE,
        false => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nonexistent_dates_are_refused() {
        for text in ["2026-11-21", "2024-02-29", "2000-02-29", "2026-12-31"] {
            assert_eq!(day(text), Ok(text.to_owned()));
        }
        for text in [
            "2026-13-45",
            "2026-00-10",
            "2026-02-29",
            "1900-02-29",
            "2026-04-31",
            "2026-11-00",
            "2026-1-1",
            "",
            "x",
        ] {
            let error = day(text).expect_err(text);
            assert!(error.contains("expected"), "{text}: {error}");
        }
        assert!(day("2026-13-45").is_err_and(|error| error.contains("month 13")));
    }
}
