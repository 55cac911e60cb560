//! Outcomes of changes, as text or as JSON.

use onrush_tune::apply::{self, Applied, ApplyError, Outcome, RevertOutcome, Reverted};

use super::arguments::Apply;
use super::extent::Extent;
use super::print::{print, print_lines};

/// Splits the result into the changes made and the error that stopped them.
pub(super) fn split(
    made: Result<Vec<Applied>, ApplyError>,
) -> (Vec<Applied>, Option<onrush_tune::Error>) {
    match made {
        Ok(applied) => (applied, None),
        Err(ApplyError { applied, cause }) => (applied, Some(cause)),
    }
}

/// Prints the outcome of each change; `Partly` if one was refused.
pub(super) fn print_applied(args: &Apply, applied: &[Applied]) -> anyhow::Result<Extent> {
    match args.json {
        true => print(&format!("{}\n", serde_json::to_string_pretty(applied)?))?,
        false => print_lines(&applied.iter().map(applied_line).collect::<String>())?,
    };
    let is_refused = |change: &Applied| matches!(change.outcome, Outcome::Refused(_));
    Ok(match applied.iter().any(is_refused) {
        true => Extent::Partly,
        false => Extent::Whole,
    })
}

fn applied_line(change: &Applied) -> String {
    let values = format!("{} -> {}", change.before, change.proposed);
    match &change.outcome {
        Outcome::Done => format!("done     {:<44} {values}\n", change.target.to_string()),
        Outcome::Adjusted(kept) => {
            format!(
                "adjusted {:<44} {values}, the kernel kept {kept}\n",
                change.target.to_string()
            )
        }
        Outcome::Refused(why) => format!(
            "refused  {:<44} {values}: {why}\n",
            change.target.to_string()
        ),
    }
}

pub(super) fn reverted_line(change: &Reverted) -> String {
    let target = change.target.to_string();
    match &change.outcome {
        RevertOutcome::Restored => format!("restored {target}\n"),
        RevertOutcome::Unchanged => format!("as it was {target}\n"),
        RevertOutcome::Gone => format!("gone     {target}\n"),
        RevertOutcome::Conflict(theirs) => {
            format!(
                "conflict {target}: another program has set it to {theirs}; --force overwrites that\n"
            )
        }
        RevertOutcome::Refused(why) => format!("refused  {target}: {why}\n"),
        RevertOutcome::Remains(why) => {
            format!("remains  {target}: its changes are undone, but it cannot be updated: {why}\n")
        }
        RevertOutcome::Lost(text) => format!(
            "lost     {target} cannot be read, so its change is not undone; the file is kept: {text}\n"
        ),
    }
}

pub(super) fn standing_line(change: &apply::ChangeStatus) -> String {
    let target = change.target.to_string();
    match (&change.now, change.is_in_force) {
        (_, true) => format!("in force {target:<44} {}\n", change.ours),
        (Some(now), false) => format!("drifted  {target:<44} {now}, was set to {}\n", change.ours),
        (None, false) => format!("gone     {target}\n"),
    }
}
