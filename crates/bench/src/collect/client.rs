//! Parsers of the clients' reports, one file per client.

mod ab;
mod fortio;
mod h1load;
mod h2load;
mod iperf3;
mod k6;
mod load_verdict;
mod memcaslap;
mod oha;
mod onrush;
mod packets;
mod sockperf;
mod vegeta;
mod wrk;
mod wrk2;

mod live;
mod parsing;
mod report;

pub use self::live::last_second;
pub use self::report::ClientReport;
use crate::scenario::Results;

/// Parses a report. The error names what was expected and what was found.
///
/// A number that the client does not report is absent, or an error if a trial needs it.
pub fn read(results: Results, text: &str) -> Result<ClientReport, String> {
    let text = whole_lines(results, text);
    let read = match results {
        Results::Onrush => onrush::read(text),
        Results::OnrushService => onrush::read_service(text),
        Results::Wrk => wrk::read(text),
        Results::Wrk2 => wrk2::read(text),
        Results::H1load => h1load::read(text),
        Results::H2load => h2load::read(text),
        Results::Oha => oha::read(text),
        Results::Ab => ab::read(text),
        Results::K6 => k6::read(text),
        Results::Vegeta => vegeta::read(text),
        Results::Fortio => fortio::read(text),
        Results::Memcaslap => memcaslap::read(text),
        Results::Iperf3 => iperf3::read(text),
        Results::Sockperf => sockperf::read(text),
    };
    let checked = read.and_then(ClientReport::checked);
    checked.map_err(|why| format!("expected {}; {why}", results.form()))
}

/// Removes an incomplete last line, in which a number may be truncated.
fn whole_lines(results: Results, text: &str) -> &str {
    match results {
        Results::Onrush
        | Results::OnrushService
        | Results::Oha
        | Results::K6
        | Results::Vegeta
        | Results::Fortio
        | Results::Iperf3 => text,
        Results::Wrk
        | Results::Wrk2
        | Results::H1load
        | Results::H2load
        | Results::Ab
        | Results::Memcaslap
        | Results::Sockperf => text.rfind('\n').map_or("", |end| &text[..=end]),
    }
}
