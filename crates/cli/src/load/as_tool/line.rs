//! The run that a command line of another tool asks for.

use onrush_load::dialect;

/// What a command line of another tool comes to.
#[derive(Debug)]
pub(super) enum Line {
    /// It asks for this help text.
    Help(&'static str),
    Run(Run),
}

#[derive(Debug)]
pub(super) struct Run {
    /// Our command line, after `onrush load`.
    pub(super) native: Vec<String>,
    pub(super) printer: Printer,
    /// Whether the native command line is printed.
    pub(super) verbose: bool,
    /// Whether the rate is a cap: what it kept back was not due.
    pub(super) is_capped: bool,
    /// Whether a failure to connect ends the run.
    pub(super) stop_on_connect_failure: bool,
    /// What was asked for and has no effect.
    pub(super) notes: Vec<String>,
}

/// What is printed, on standard output.
#[derive(Debug)]
pub(super) enum Printer {
    H1load {
        lines: dialect::h1load::Lines,
        percentiles: bool,
    },
    H2load(dialect::h2load::Text),
    Wrk(dialect::wrk::Text),
    Mcblaster,
    /// What a run of ours prints at its end.
    Own,
}

/// Whether flags about TLS make sense with this URL.
pub(super) fn is_https(url: &str) -> bool {
    let scheme = url.split("://").next();
    scheme.is_some_and(|scheme| scheme.eq_ignore_ascii_case("https"))
}
