//! Table of journeys and their steps.

use std::fmt::Write;

use onrush_chart::escape;
use onrush_measure::units;

use super::time::time;
use crate::report::Report;
use crate::report::journeys::{JourneyRow, StepRow, failures_text};
use crate::report::latency::Latency;

/// Appends the table of journeys and their steps to `body`, if there are any.
pub(super) fn journeys(body: &mut String, report: &Report) {
    if report.journeys.is_empty() {
        return;
    }
    let all = report.setup.iter().chain(&report.journeys);
    let rows: String = all.map(journey).collect();
    let _ = write!(
        body,
        "<section>\n<h2>Journeys</h2>\n<p class=\"about\">Times are from the moment a user or a step was due. Those that did not come to the end make “≥” figures, and the mean leaves them out.</p>\n\
         <div class=\"scroll\" role=\"region\" aria-label=\"journeys\" tabindex=\"0\"><table class=\"figures\"><thead><tr><th scope=\"col\" class=\"text\">journey, step</th>\
         <th scope=\"col\">begun</th><th scope=\"col\">completed</th><th scope=\"col\">failed</th><th scope=\"col\">unfinished</th>\
         <th scope=\"col\">mean</th><th scope=\"col\">p50</th><th scope=\"col\">p99</th><th scope=\"col\">largest</th></tr></thead><tbody>{rows}</tbody></table></div>\n</section>\n"
    );
}

fn journey(row: &JourneyRow) -> String {
    let counts = [row.begun, row.completed, row.failed, row.unfinished];
    let name = format!("<b>{}</b>", escape(&row.name));
    let steps: String = row.steps.iter().map(step).collect();
    line(&name, counts, &row.latency_us) + &steps
}

fn step(row: &StepRow) -> String {
    let counts = [row.begun, row.completed, row.failed, row.unfinished];
    let name = format!(
        "{}<small>{}</small>",
        escape(&row.name),
        escape(&failures_text(row))
    );
    line(&name, counts, &row.latency_us)
}

fn line(name: &str, counts: [u64; 4], latency: &Latency) -> String {
    let times = ["mean", "50", "99", "max"].map(|name| latency.text(name, "–", time));
    let cells = counts.map(units::count).into_iter().chain(times);
    let cells: String = cells
        .map(|cell| format!("<td>{}</td>", escape(&cell)))
        .collect();
    format!("<tr><th scope=\"row\">{name}</th>{cells}</tr>\n")
}
