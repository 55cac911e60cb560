//! `--as TOOL …`: command lines and output of other load generators, so that scripts around them keep working.
//!
//! A command line of another tool is translated into one of `onrush load`, which `-v` prints, and is run like any
//! other. An option without an equivalent is refused with an alternative.

mod h1load;
mod h2load;
mod hey;
mod line;
mod mcblaster;
mod option;
mod wrk;

use std::io::Write;

use clap::{Args as _, FromArgMatches as _};
use onrush_load::dialect;
use onrush_load::error::Error;
use onrush_load::evidence::Evidence;
use onrush_load::plan::{Options, Plan};
use onrush_load::report::Report;
use onrush_load::run;
use onrush_load::snapshot::Snapshot;
use onrush_load::verdict::Verdict;
use onrush_load::verdict::reason::State;

use self::line::{Line, Printer, Run};
use super::arguments::Args;
use super::populate::populate;
use super::signals::stop_on_signal;
use crate::terminal::{Out, print_error};

/// Runs the command line of the tool named by the first word and prints the tool's output. Errors and the reasons of an
/// INVALID verdict go to standard error; the exit code is 0 after every completed run, as with these tools.
pub(super) fn run(words: &[String]) -> Result<u8, Error> {
    let (tool, words) = words.split_first().expect("clap wants one at least");
    let read: fn(&[String]) -> Result<Line, String> = match tool.as_str() {
        "h1load" => h1load::read,
        "h2load" => h2load::read,
        "mcblaster" => mcblaster::read,
        "wrk" => |words: &[String]| wrk::read(wrk::Tool::Wrk, words),
        "wrk2" => |words: &[String]| wrk::read(wrk::Tool::Wrk2, words),
        "hey" => |words: &[String]| hey::read(hey::Tool::Hey, words),
        "oha" => |words: &[String]| hey::read(hey::Tool::Oha, words),
        _ => {
            return Err(Error::Invalid(format!(
                "--as {tool:?}: unknown tool: expected h1load, h2load, wrk, wrk2, oha, hey or mcblaster"
            )));
        }
    };
    let line = read(words).map_err(|why| Error::Invalid(format!("--as {tool}: {why}")))?;
    match line {
        Line::Help(text) => {
            let _ = Out::standard().write_all(text.as_bytes());
            Ok(0)
        }
        Line::Run(run) => run.execute(tool),
    }
}

impl Run {
    fn execute(mut self, tool: &str) -> Result<u8, Error> {
        for note in &self.notes {
            print_error(format_args!("onrush load: --as {tool}: {note}"));
        }
        if self.verbose {
            print_error(format_args!("onrush load {}", quoted(&self.native)));
        }
        let mut plan = Plan::new(options(&self.native)?)?;
        populate(&mut plan)?;
        let running = run::start(plan)?;
        let stopper = running.stopper();
        stop_on_signal(stopper.clone())?;
        // A closed standard output does not stop the run.
        let mut out = Out::standard();
        let _ = write!(out, "{}", self.printer.head());
        let report = running.finish(|moment| {
            let _ = write!(out, "{}", self.printer.second(moment));
            if self.stop_on_connect_failure && moment.connect_failures > 0 {
                stopper.stop_because("a connection failed");
            }
        })?;
        let _ = write!(out, "{}", self.printer.end(&report));
        let _ = out.flush();
        if !matches!(self.printer, Printer::Own) {
            report_problems(&report, &self.verdict(&report));
        }
        Ok(0)
    }
}

impl Run {
    /// The verdict, where a capped rate is not a rate that has to be reached.
    fn verdict(&self, report: &Report) -> Verdict {
        if !self.is_capped {
            return report.verdict.clone();
        }
        Verdict::of(&Evidence {
            rate_asked: None,
            missed: 0,
            ..report.evidence.clone()
        })
    }
}

impl Printer {
    fn head(&self) -> String {
        match self {
            Printer::H1load { lines, .. } => lines.header() + "\n",
            Printer::H2load(text) => text.head(),
            Printer::Wrk(text) => text.head(),
            Printer::Mcblaster | Printer::Own => String::new(),
        }
    }

    fn second(&mut self, moment: &Snapshot<'_>) -> String {
        match self {
            Printer::H1load { lines, .. } => lines.second(moment) + "\n",
            Printer::Wrk(text) => text.second(moment).unwrap_or_default(),
            Printer::H2load(_) | Printer::Mcblaster | Printer::Own => String::new(),
        }
    }

    fn end(&self, report: &Report) -> String {
        match self {
            Printer::H1load { percentiles, .. } if *percentiles => {
                dialect::h1load::percentiles(report)
            }
            Printer::H1load { .. } => String::new(),
            Printer::H2load(text) => text.report(report),
            Printer::Wrk(text) => text.report(report),
            Printer::Mcblaster => dialect::mcblaster::report(report),
            Printer::Own => report.to_string(),
        }
    }
}

/// Parses a command line of `onrush load`.
fn options(native: &[String]) -> Result<Options, Error> {
    let command = Args::augment_args(clap::Command::new("onrush load").no_binary_name(true));
    let args = command
        .try_get_matches_from(native)
        .and_then(|matches| Args::from_arg_matches(&matches));
    let mut args = args.map_err(|error| Error::Invalid(first_paragraph(&error.to_string())))?;
    let urls = std::mem::take(&mut args.urls);
    // The notes are about files, and no file is given.
    args.options(&urls).map(|(options, _)| options)
}

/// The error without the usage: the user has not called `onrush load` by its own options.
fn first_paragraph(error: &str) -> String {
    let paragraph = error.split("\n\n").next().unwrap_or_default();
    paragraph.trim_start_matches("error: ").trim().to_owned()
}

/// The words quoted for a shell.
fn quoted(words: &[String]) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_=+.,:/%@".contains(letter);
    let quote = |word: &String| match word.chars().all(is_plain) {
        true => word.clone(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    };
    words.iter().map(quote).collect::<Vec<_>>().join(" ")
}

/// Reports on standard error what the tool's output cannot show.
fn report_problems(report: &Report, verdict: &Verdict) {
    if report.errors > 0 {
        let kinds = report.errors_by_kind.iter();
        let kinds: Vec<String> = kinds
            .filter(|(_, count)| **count > 0)
            .map(|(kind, count)| format!("{kind} {count}"))
            .collect();
        print_error(format_args!(
            "onrush load: errors: {} ({})",
            report.errors,
            kinds.join(", ")
        ));
    }
    let without = report.unanswered.response.count();
    if without > 0 {
        print_error(format_args!(
            "onrush load: requests without a response: {without}; percentiles count each with the time it had waited, so they are lower bounds"
        ));
    }
    if verdict.state == State::Invalid {
        for reason in &verdict.reasons {
            print_error(format_args!("onrush load: {} {reason}", reason.state));
        }
    }
    if let Some(reason) = &report.stopped_because {
        print_error(format_args!("onrush load: ended early: {reason}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The native command line for one of another tool, if both accept it.
    pub(super) fn native(
        read: impl Fn(&[String]) -> Result<Line, String>,
        line: &str,
    ) -> Result<String, String> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let Line::Run(run) = read(&words)? else {
            return Ok("help".to_owned());
        };
        let options = options(&run.native).map_err(|error| error.to_string())?;
        Plan::new(options).map_err(|error| error.to_string())?;
        Ok(quoted(&run.native))
    }

    #[test]
    fn native_errors_are_one_line() {
        let words = ["-c", "2", "ftp://a/"].map(str::to_owned);
        let error = options(&words).unwrap_err().to_string();
        assert!(error.contains("does not begin with http://"), "{error}");
        assert!(!error.contains('\n'), "{error}");
    }

    #[test]
    fn capped_rate_does_not_invalidate_run() {
        let evidence = Evidence {
            rate_asked: Some(1000.0),
            rate_achieved: 40.0,
            missed: 1920,
            requests_sent: 80,
            responses: 80,
            is_count_consistent: true,
            ..Evidence::default()
        };
        let report = Report {
            verdict: Verdict::of(&evidence),
            evidence,
            ..Report::default()
        };
        assert_eq!(report.verdict.state, State::Invalid);
        for (line, state) in [
            ("h1load -R 1000 a:1", State::Valid),
            ("h1load a:1", State::Invalid),
        ] {
            let words: Vec<String> = line.split(' ').skip(1).map(str::to_owned).collect();
            let Ok(Line::Run(run)) = h1load::read(&words) else {
                panic!("{line} is one");
            };
            assert_eq!(run.verdict(&report).state, state, "{line}");
        }
    }

    #[test]
    fn native_line_is_quoted_for_shell() {
        let words = ["--header=X: it's", "http://a/?b&c"].map(str::to_owned);
        assert_eq!(quoted(&words), r"'--header=X: it'\''s' 'http://a/?b&c'");
    }

    #[test]
    fn unknown_tool_error_lists_tools() {
        let error = run(&["ab".to_owned()]).unwrap_err().to_string();
        assert!(
            error.contains("expected h1load, h2load, wrk, wrk2, oha, hey or mcblaster"),
            "{error}"
        );
    }
}
