//! Output of a run: the terminal, files, an exit code.

use std::io::{self, IsTerminal, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use onrush_load::error::Error;
use onrush_load::exposition::{self, server};
use onrush_load::report::{COLUMNS, Report};
use onrush_load::run::Running;
use onrush_load::snapshot::Snapshot;
use onrush_load::threshold::{Threshold, ThresholdOutcome};
use onrush_load::verdict::reason::State;

use super::exit::{EXIT_ERRORS, EXIT_INVALID, EXIT_THRESHOLD};
use super::files::{Files, Form, is_standard};
use super::length::RunLength;
use super::live;
use crate::terminal::{Out, print_error};

/// What is shown and written, and what makes the run fail.
#[derive(clap::Args, Debug, Default)]
#[command(next_help_heading = "Results")]
pub(super) struct Output {
    /// Write the result as JSON to this file, or to standard output with -
    ///
    /// Its schema is docs/load-result.schema.json; with --find-max it has the condition, the answer and the trials. With -, the text output goes to standard error
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    /// Write CSV to this file, one row per second
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    csv: Option<PathBuf>,

    /// Write an HTML page with charts to this file; it works offline
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    html: Option<PathBuf>,

    /// Write the histograms to this file as an HdrHistogram log, one interval per second
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    hdr: Option<PathBuf>,

    /// Serve metrics of the run to Prometheus at http://ADDRESS/metrics, such as 127.0.0.1:9091; with port 0 the chosen port is printed
    #[arg(long, value_name = "ADDRESS", hide_short_help = true)]
    metrics: Option<SocketAddr>,

    /// Fail if this holds, such as 'p99 > 5ms' or 'errors > 0.1%'; repeatable
    ///
    /// Other figures are written as in 'service.p99.9 > 2ms'. The run ends as soon as the condition is certain to hold
    #[arg(long, value_name = "CONDITION", value_parser = threshold)]
    fail_if: Vec<Threshold>,

    /// End the run when this condition holds, such as 'errors >= 1' or 'p99 > 1s'; repeatable, checked every second
    #[arg(long, value_name = "CONDITION", value_parser = early_threshold, hide_short_help = true)]
    stop_if: Vec<Threshold>,

    /// Show the run full-screen, on a terminal
    #[arg(long, visible_alias = "ui", conflicts_with = "quiet")]
    live: bool,

    /// Print only the summary
    #[arg(short, long)]
    quiet: bool,
}

pub(super) fn threshold(text: &str) -> Result<Threshold, String> {
    Threshold::parse(text).map_err(|mistake| mistake.to_string())
}

fn early_threshold(text: &str) -> Result<Threshold, String> {
    let condition = threshold(text)?;
    condition.check_known_during_run().map(|()| condition)
}

impl Output {
    /// Opens the output files; `inputs` are files that are read and must not be written.
    ///
    /// # Errors
    /// When a file cannot be written, or two flags name the same file.
    pub(super) fn open(&self, inputs: &[PathBuf]) -> Result<Files, Error> {
        for hint in self.fail_if.iter().filter_map(Threshold::hint) {
            print_error(format_args!("onrush load: --fail-if {hint}"));
        }
        Files::open(&self.wanted(), inputs)
    }

    fn wanted(&self) -> [(&'static str, Option<&Path>, Form); 4] {
        [
            ("--json", self.json.as_deref(), Form::Json),
            ("--csv", self.csv.as_deref(), Form::Csv),
            ("--html", self.html.as_deref(), Form::Html),
            ("--hdr", self.hdr.as_deref(), Form::Hdr),
        ]
    }

    /// Starts the metrics page of the run, if requested.
    pub(super) fn metrics(&self) -> Result<Option<server::MetricsPage>, Error> {
        let Some(address) = self.metrics else {
            return Ok(None);
        };
        let page = server::MetricsPage::default();
        let address = server::start(address, page.clone()).map_err(Error::Invalid)?;
        print_error(format_args!(
            "onrush load: metrics at http://{address}/metrics"
        ));
        Ok(Some(page))
    }

    /// Stream for text that people read.
    pub(super) fn out(&self) -> Out {
        let mut paths = self.wanted().into_iter().filter_map(|(_, path, _)| path);
        if paths.any(is_standard) {
            Out::error()
        } else {
            Out::standard()
        }
    }

    /// Shows a run until its end, then its summary. A closed output, as with `head`, does not stop the run.
    pub(super) fn watch(
        &self,
        running: Running,
        extent: RunLength,
        metrics: Option<&server::MetricsPage>,
    ) -> Result<Report, Error> {
        let mut report = if self.live && io::stdout().is_terminal() {
            self.watch_full_screen(running, extent, metrics)?
        } else {
            self.watch_lines(running, extent, metrics)?
        };
        self.judge(&mut report);
        let _ = write!(self.out(), "{report}");
        Ok(report)
    }

    /// Evaluates the conditions of --fail-if.
    pub(super) fn judge(&self, report: &mut Report) {
        let judged = self
            .fail_conditions()
            .map(|condition| report.judge(condition));
        report.thresholds = judged.collect();
    }

    pub(super) fn fail_conditions(&self) -> impl Iterator<Item = &Threshold> {
        self.fail_if.iter()
    }

    pub(super) fn shows_lines(&self) -> bool {
        !self.quiet
    }

    /// Conditions of --fail-if and --stop-if.
    pub(super) fn conditions(&self) -> impl Iterator<Item = &Threshold> {
        self.fail_if.iter().chain(&self.stop_if)
    }

    fn watch_lines(
        &self,
        running: Running,
        extent: RunLength,
        metrics: Option<&server::MetricsPage>,
    ) -> Result<Report, Error> {
        let mut out = self.out();
        if !self.quiet {
            let _ = writeln!(out, "{}\n{COLUMNS}", running.headline());
        }
        let stopper = running.stopper();
        let report = running.finish(|moment| {
            if !self.quiet {
                let _ = writeln!(out, "{}", moment.second);
            }
            update_metrics(metrics, moment);
            if let Some(reason) = self.reason_to_stop(moment, extent) {
                stopper.stop_because(reason);
            }
        })?;
        if !self.quiet {
            let _ = writeln!(out);
        }
        Ok(report)
    }

    fn watch_full_screen(
        &self,
        running: Running,
        extent: RunLength,
        metrics: Option<&server::MetricsPage>,
    ) -> Result<Report, Error> {
        let stopper = running.stopper();
        let screen = live::Screen::open(running.headline(), extent, stopper.clone())
            .map_err(|error| Error::Invalid(format!("cannot use the terminal: {error}")))?;
        let report = running.finish(|moment| {
            screen.show(moment);
            update_metrics(metrics, moment);
            if let Some(reason) = self.reason_to_stop(moment, extent) {
                stopper.stop_because(reason);
            }
        });
        screen.close();
        report
    }

    /// Reason to stop early: a condition of `--stop-if` holds, or one of `--fail-if` is certain to hold.
    fn reason_to_stop(&self, moment: &Snapshot<'_>, length: RunLength) -> Option<String> {
        // Without conditions, do not copy the figures.
        if self.fail_if.is_empty() && self.stop_if.is_empty() {
            return None;
        }
        let figures = moment.figures();
        for condition in &self.stop_if {
            let outcome = condition.judge(&figures);
            if outcome.fate == ThresholdOutcome::Failed {
                return Some(format!("{} holds ({})", condition.text(), outcome.measured));
            }
        }
        let extent = length.extent(moment.row.t);
        let mut conditions = self.fail_if.iter();
        let lost = conditions.find(|condition| condition.must_fail(&figures, extent))?;
        Some(format!("--fail-if {} is certain to hold", lost.text()))
    }

    pub(super) fn exit_code(&self, report: &Report) -> u8 {
        let is_failed = report
            .thresholds
            .iter()
            .any(|outcome| outcome.fate != ThresholdOutcome::Passed);
        let are_errors_judged = self.fail_if.iter().any(Threshold::is_about_errors);
        if is_failed {
            EXIT_THRESHOLD
        } else if report.verdict.state == State::Invalid {
            EXIT_INVALID
        } else if report.errors > 0 && !are_errors_judged {
            EXIT_ERRORS
        } else {
            0
        }
    }
}

/// Updates the metrics page, if there is one.
fn update_metrics(metrics: Option<&server::MetricsPage>, moment: &Snapshot<'_>) {
    if let Some(page) = metrics {
        page.set(exposition::text(moment));
    }
}
