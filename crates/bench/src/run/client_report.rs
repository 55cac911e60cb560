//! Reads the report of a client that has ended.

use super::child::{UnsuccessfulExit, last_lines};
use super::failure::{Try, failed};
use super::prepare::REPORT;
use super::remote::texts;
use super::running::Running;
use super::subject::{Context, Subject};
use crate::collect::client::{self, ClientReport};
use crate::limits::OUTPUT_BYTES_MAX;
use crate::scenario::{Results, Role};

/// Exit statuses of `onrush load` with a report: errors, a failed condition, and invalid figures.
const VERDICT_STATUSES: [i32; 3] = [3, 4, 5];

/// Reason to distrust a report because its client failed. Some exit statuses of `onrush load` only repeat the verdict
/// in its report (docs/load.md).
pub(super) fn failure(
    context: &Context<'_>,
    subject: &Subject<'_>,
    role: Role,
    client: &Running,
) -> Option<String> {
    let ended = client.failure()?;
    let program = subject.program(context.experiment, role);
    let is_judgement = match ended {
        UnsuccessfulExit::Status(code) => {
            VERDICT_STATUSES.contains(&code)
                && program.is_some_and(|program| program.results.is_ours())
        }
        UnsuccessfulExit::Signal(_) => false,
    };
    (!is_judgement).then(|| format!("the {} ended with {ended}", role.name()))
}

/// Reads the report file or the output of a client that has ended.
pub(super) fn read_report(
    context: &Context<'_>,
    subject: &Subject<'_>,
    role: Role,
    client: &Running,
) -> Try<ClientReport> {
    let results = subject
        .program(context.experiment, role)
        .map_or(Results::Onrush, |program| program.results);
    // Clients with `{json}` in their command line write a file, whose directory is new for each run; others print.
    let (written, printed) = match client {
        Running::Remote(distant) => {
            if distant.was_truncated() {
                let most = OUTPUT_BYTES_MAX >> 20;
                return failed(format!("the {} printed more than {most} MiB", role.name()));
            }
            let texts = texts(context, distant)?;
            (texts.written.map(Ok), texts.printed)
        }
        Running::Local(child) => {
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
        (None, results) if results.is_ours() => {
            (Err("it wrote no report into `{json}`".to_owned()), None)
        }
        (None, _) => (client::read(results, &printed), None),
    };
    report.or_else(|why| {
        let file = ending.map_or_else(String::new, |lines| {
            format!("; its file ends with: {lines}")
        });
        let name = role.name();
        let ended = client.failure();
        let ended = ended.map_or_else(String::new, |ended| format!("; it ended with {ended}"));
        failed(format!(
            "no report of the {name} ({why}){ended}{file}; {}",
            client.output_tail()
        ))
    })
}
