//! Predictions compared with measurements: each row of a run predicted from the others, as in `predict --check`.

use std::fmt::Write;
use std::path::Path;

use onrush_chart::escape;
use onrush_measure::units;

use super::super::csv;
use super::palette::Palette;
use crate::environment::Environment;
use crate::outcome::Outcome;
use crate::predict::cross_validation::CrossValidated;
use crate::predict::measured::{Measured, RunTexts};
use crate::predict::series::leave_one_out;
use crate::predict::text::{cells_of, median};

/// The section; empty if no row of the run can be predicted from others.
pub(super) fn section(outcome: &Outcome, environment: &Environment, palette: &Palette) -> String {
    let raw = csv::raw(outcome);
    let run = RunTexts {
        raw: (Path::new("raw.csv"), &raw),
        experiment: (Path::new("environment.json"), &environment.experiment),
        commands: &environment.commands,
    };
    // Input that the model cannot parse, such as command lines without pinning, has no predictions; this is not an
    // error.
    let mut checked = leave_one_out(&run.measured().unwrap_or_default());
    checked.retain(|row| row.predicted.is_some());
    if checked.is_empty() {
        return String::new();
    }
    let rows: String = checked.iter().map(|row| table_row(row, palette)).collect();
    format!(
        "<section>\n<h2>Prediction and measurement</h2>\n<p class=\"about\">Each row is predicted from those that differ from it in \
         connections or CPUs only, by the model of <code>onrush bench predict --check</code>: {}. An error of +10 % is a \
         prediction that is a tenth too high.</p>\n<div class=\"scroll\" role=\"region\" aria-label=\"predictions\" tabindex=\"0\"><table class=\"roles\"><thead><tr>\
         <th scope=\"col\" class=\"text\">variant</th><th scope=\"col\" class=\"text\">work</th><th scope=\"col\">connections</th>\
         <th scope=\"col\">measured</th><th scope=\"col\">predicted</th><th scope=\"col\">error</th>\
         <th scope=\"col\" class=\"text\">full first, by the model</th></tr></thead><tbody>{rows}</tbody></table></div>\n</section>\n",
        escape(&median(&checked))
    )
}

fn table_row(checked: &CrossValidated<Measured>, palette: &Palette) -> String {
    let row = &checked.row;
    let mut text = format!(
        "<tr><th scope=\"row\"><i class=\"{}\"></i>{}</th><td class=\"text\">{}</td><td>{}</td>",
        palette.class(&row.variant),
        escape(&row.variant),
        escape(&row.work),
        units::count(u64::from(row.connections))
    );
    let cells = cells_of(checked);
    let last = cells.len().saturating_sub(1);
    for (index, cell) in cells.iter().enumerate() {
        let class = if index == last { " class=\"text\"" } else { "" };
        let _ = write!(text, "<td{class}>{}</td>", escape(cell));
    }
    text.push_str("</tr>");
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::WorkOutcome;
    use crate::report::sample::outcome;
    use crate::scenario::Point;

    const EXPERIMENT: &str = r#"
name = "x"
[program.load]
onrush = ["load", "http://{target}/", "-c", "{connections}"]
[program.serve]
onrush = ["serve", "--listen", "127.0.0.1:{port}"]
[[work]]
name = "fixed response"
sweep = { connections = [10, 100] }
client = "load"
server = "serve"
[[work.variant]]
name = "onrush epoll"
"#;

    /// The sample with two numbers of connections, and everything from which costs and CPUs of a client are read.
    fn run() -> (Outcome, Environment) {
        let mut outcome = outcome();
        let work = outcome.works.remove(0);
        let mut environment = Environment {
            experiment: EXPERIMENT.into(),
            ..Environment::default()
        };
        for connections in ["10", "100"] {
            let mut at = WorkOutcome {
                point: Point::default().with("connections", connections),
                ..work.clone()
            };
            for trial in at.variants.iter_mut().flat_map(|it| &mut it.trials) {
                let cost = "client.cpu_us_per_request".to_owned();
                trial.metrics.insert(cost, 3.0);
            }
            for (role, cpu) in [("client", "0"), ("server", "1")] {
                let name = format!("{} / onrush epoll / {role}", at.title());
                let words = ["taskset", "-c", cpu, "onrush"].map(String::from);
                environment.commands.insert(name, words.into());
            }
            outcome.works.push(at);
        }
        (outcome, environment)
    }

    #[test]
    fn predicted_rows_are_listed() {
        let (outcome, environment) = run();
        let html = section(&outcome, &environment, &Palette::of(&outcome));
        assert!(html.contains("median error 0.0 % over 2 rows"), "{html}");
        assert!(
            html.contains("<td>+0 %</td>") || html.contains("<td>-0 %</td>"),
            "{html}"
        );
        assert!(
            html.contains("connections=100") && !html.contains("nginx"),
            "{html}"
        );
    }

    #[test]
    fn run_without_predictions_has_no_section() {
        let (mut outcome, environment) = run();
        outcome.works.truncate(1);
        let palette = Palette::of(&outcome);
        assert_eq!(section(&outcome, &environment, &palette), "");
        assert_eq!(section(&outcome, &Environment::default(), &palette), "");
    }
}
