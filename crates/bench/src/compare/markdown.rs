//! Comparison as Markdown, for a pull request or a README.

use super::comparison::{Comparison, Figure};
use super::text::{sentence, some, within};
use crate::report::number;

impl Comparison {
    /// The comparison as a Markdown table.
    pub fn to_markdown(&self) -> String {
        let mut text = format!(
            "A `{}`, B `{}`: {}\n\n",
            cell(&self.a),
            cell(&self.b),
            self.counts().label()
        );
        for difference in &self.differences {
            text += &format!("- not the same: {}\n", cell(&sentence(difference)));
        }
        for (side, names) in [("A", &self.only_in_a), ("B", &self.only_in_b)] {
            if !names.is_empty() {
                text += &format!("- only in {side}: {}\n", cell(&some(names)));
            }
        }
        if text.ends_with("\n- ") || !text.ends_with("\n\n") {
            text.push('\n');
        }
        text += "| work | variant | metric | A | B | change | 90 % | beside | verdict |\n|---|---|---|--:|--:|--:|---|---|---|\n";
        for figure in &self.figures {
            text += &row(figure);
        }
        text += &format!(
            "\nNo difference: the interval lies within {}. Better and worse: all {} figures hold together at 95 %.\n",
            within(self.min_effect),
            self.together
        );
        text
    }
}

fn row(figure: &Figure) -> String {
    let side = |rounds: Option<onrush_measure::compare::Rounds>| {
        rounds.map_or_else(|| "–".into(), |rounds| number(rounds.median, figure.unit))
    };
    let (change, interval) = figure.change().unwrap_or_default();
    let beside = figure
        .beside
        .as_ref()
        .map_or("", |beside| &beside.reference);
    let cells = [
        cell(&figure.subject.place()),
        cell(&figure.subject.variant),
        cell(&figure.metric),
        side(figure.a),
        side(figure.b),
        change,
        interval,
        cell(beside),
        cell(&figure.words()),
    ];
    format!("| {} |\n", cells.join(" | "))
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace(['\n', '\r'], " ")
}
