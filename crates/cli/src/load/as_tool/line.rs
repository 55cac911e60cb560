//! The run that another tool's command line requests.

use onrush_load::dialect;

/// A parsed command line of another tool.
#[derive(Debug)]
pub(super) enum Line {
    /// A request for this help text.
    Help(&'static str),
    Run(Run),
}

#[derive(Debug)]
pub(super) struct Run {
    /// Arguments of `onrush load`.
    pub(super) native: Vec<String>,
    pub(super) printer: Printer,
    /// Whether to print the native command line.
    pub(super) verbose: bool,
    /// Whether the rate is a cap, so that requests that it delays are not missed.
    pub(super) is_capped: bool,
    /// Whether a failed connection ends the run.
    pub(super) stop_on_connect_failure: bool,
    /// Notes on options that have no effect.
    pub(super) notes: Vec<String>,
}

/// Format of the output on standard output.
#[derive(Debug)]
pub(super) enum Printer {
    H1load {
        lines: dialect::h1load::LineFormatter,
        percentiles: bool,
    },
    H2load(dialect::h2load::SummaryFormatter),
    Wrk(dialect::wrk::SummaryFormatter),
    Mcblaster,
    /// The report of `onrush load`, at the end.
    Own,
}

/// Whether the URL uses TLS.
pub(super) fn is_https(url: &str) -> bool {
    let scheme = url.split("://").next();
    scheme.is_some_and(|scheme| scheme.eq_ignore_ascii_case("https"))
}
