//! What a client measured, as it reports it.

use super::child::last_lines;
use super::failure::{Try, failed};
use super::prepare::REPORT;
use super::remote::texts;
use super::running::Running;
use super::subject::{Context, Subject};
use crate::collect::client::{self, ClientReport};
use crate::limits::OUTPUT_BYTES_MAX;
use crate::scenario::{Results, Role};

/// Reads the file or the output in which a client that has ended has reported.
pub(super) fn read_report(
    context: &Context<'_>,
    subject: &Subject<'_>,
    role: Role,
    client: &Running,
) -> Try<ClientReport> {
    let results = subject
        .program(context.experiment, role)
        .map_or(Results::Onrush, |program| program.results);
    // A client that was given `{json}` writes there; the directory is new for each run. All others print.
    let (written, printed) = match client {
        Running::There(distant) => {
            let texts = texts(context, distant)?;
            (texts.written.map(Ok), texts.printed)
        }
        Running::Here(child) => {
            let path = context.root.join(role.name()).join(REPORT);
            let written = path
                .exists()
                .then(|| onrush_file::read_text(&path, OUTPUT_BYTES_MAX));
            (written, child.output())
        }
    };
    let (report, ending) = match (written, results) {
        (Some(Err(error)), _) => (Err(error.to_string()), None),
        (Some(Ok(text)), _) => (client::read(results, &text), Some(last_lines(&text))),
        (None, Results::Onrush) => (Err("it wrote none into `{json}`".to_owned()), None),
        (None, _) => (client::read(results, &printed), None),
    };
    report.or_else(|why| {
        let file = ending.map_or_else(String::new, |lines| format!("; its file ends: {lines}"));
        let name = role.name();
        failed(format!(
            "no report of the {name} ({why}){file}; {}",
            client.last_words()
        ))
    })
}
