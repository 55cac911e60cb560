//! What a command line of another tool comes to, and how it is read.

use onrush_load::dialect;

/// What a command line of another tool comes to.
#[derive(Debug)]
pub(super) enum Line {
    /// It asks what can be said, which is this.
    Help(&'static str),
    Run(Run),
}

#[derive(Debug)]
pub(super) struct Run {
    /// Our command line, behind `onrush load`.
    pub(super) native: Vec<String>,
    pub(super) printer: Printer,
    /// Whether the native command line is told.
    pub(super) verbose: bool,
    /// Whether the rate is a cap: what it kept back was not due.
    pub(super) is_capped: bool,
    /// Whether a failure to connect ends the run.
    pub(super) stop_on_connect_failure: bool,
    /// What was asked for and makes no difference here.
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

/// The value of the option that the parser has just read.
pub(super) fn value(parser: &mut lexopt::Parser) -> Result<String, String> {
    let value = parser.value().map_err(|error| error.to_string())?;
    value
        .into_string()
        .map_err(|value| format!("{value:?} is not UTF-8"))
}

/// A parser with the rules of getopt: a short option's value may be joined to it, and `=` is then part of it.
pub(super) fn parser(words: &[String]) -> lexopt::Parser {
    let mut parser = lexopt::Parser::from_args(words);
    parser.set_short_equals(false);
    parser
}

/// Whether flags about TLS make sense with this URL.
pub(super) fn is_https(url: &str) -> bool {
    let scheme = url.split("://").next();
    scheme.is_some_and(|scheme| scheme.eq_ignore_ascii_case("https"))
}

/// The only word that is no option.
pub(super) fn only_url(urls: Vec<String>, why_not_more: &str) -> Result<String, String> {
    let mut urls = urls.into_iter();
    let url = urls.next().ok_or("there is no URL")?;
    match urls.next() {
        None => Ok(url),
        Some(more) => Err(format!("{more:?} behind the URL {url:?}: {why_not_more}")),
    }
}
