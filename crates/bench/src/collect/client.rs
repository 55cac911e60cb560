//! What clients say they measured: the file of `onrush load --json`, the text of wrk, or the JSON of oha. Pure.

mod oha;
mod onrush;
mod report;
mod wrk;

#[cfg(test)]
mod tests;

pub use self::report::ClientReport;
use crate::scenario::Results;

/// Reads a report; the error says what is wrong with it.
pub fn read(results: Results, text: &str) -> Result<ClientReport, String> {
    match results {
        Results::Onrush => onrush::read(text),
        Results::Wrk => wrk::read(text).ok_or_else(|| "the output of wrk has no totals".to_owned()),
        Results::Oha => oha::read(text),
    }
}
