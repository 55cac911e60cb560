//! Changes of a history as Markdown.

use super::History;
use super::text::{beside, value};

impl History {
    /// The changes as a Markdown table.
    pub fn to_markdown(&self) -> String {
        let cell = |text: &str| text.replace('|', "\\|").replace(['\n', '\r'], " ");
        let mut text = format!("{}\n\n", cell(&self.headline()));
        for said in self.machines.iter().chain(&self.left_out) {
            text += &format!("- {}\n", cell(said));
        }
        let changed = self.series.iter().filter(|it| !it.changes.is_empty());
        if changed.clone().count() == 0 {
            return text + "\nNo series changed.\n";
        }
        text += "\n| series | before | after | change |\n|---|--:|--:|---|\n";
        for series in changed {
            for change in &series.changes {
                text += &format!(
                    "| {}{} | {} | {} | {} |\n",
                    cell(&series.name()),
                    cell(&beside(series)),
                    value(series, change.before),
                    value(series, change.after),
                    cell(&change.words())
                );
            }
        }
        text
    }
}
