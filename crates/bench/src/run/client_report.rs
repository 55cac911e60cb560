//! What a client measured, as it reports it.

use super::child::Child;
use super::subject::{Context, Subject, Try, failed};
use crate::collect::client::{self, ClientReport};
use crate::limits::OUTPUT_BYTES_MAX;
use crate::scenario::{Results, Role};

/// Reads the file or the output in which a client that has ended has reported.
pub(super) fn read_report(
    context: &Context<'_>,
    subject: &Subject<'_>,
    role: Role,
    child: &Child,
) -> Try<ClientReport> {
    let results = subject
        .program(context.experiment, role)
        .map_or(Results::Onrush, |program| program.results);
    let text = match results {
        Results::Wrk | Results::Oha => child.output(),
        Results::Onrush => {
            let path = context.root.join(role.name()).join("report.json");
            onrush_file::read_text(&path, OUTPUT_BYTES_MAX).unwrap_or_default()
        }
    };
    client::read(results, &text).or_else(|why| {
        failed(format!(
            "no report of the {} ({why}); {}",
            role.name(),
            child.last_words()
        ))
    })
}
