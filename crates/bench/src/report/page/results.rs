//! Top of the page: key figures and the results table.

use std::fmt::Write;

use onrush_chart::{Target, bullet, escape};

use super::super::table::{row, verdict};
use super::palette::Palette;
use crate::outcome::{FigureLine, Outcome, WorkOutcome};
use crate::scenario::Bound;
use crate::verdict::Verdict;

/// Key figures of an experiment without targets: the first figure of each work.
pub(super) fn key_figures(outcome: &Outcome, palette: &Palette) -> String {
    let mut tiles = String::new();
    // Sweeps are left out; their charts show all points.
    let works: Vec<&WorkOutcome> = outcome
        .works
        .chunk_by(|a, b| a.name == b.name)
        .filter(|points| points.len() == 1)
        .flatten()
        .collect();
    for work in &works {
        let Some(first) = work.figures.first() else {
            continue;
        };
        for line in work.figures.iter().filter(|line| line.title == first.title) {
            let row = row(work, line);
            let class = palette.class(&line.ours);
            let _ = write!(
                tiles,
                "<div class=\"tile\"><b>{}</b><span><i class=\"{class}\"></i>{}</span><small>{}{}</small>{}</div>",
                escape(&row.ours_value),
                escape(&row.ours),
                escape(&row.figure),
                match works.len() {
                    1 => String::new(),
                    _ => format!(", {}", escape(&work.title())),
                },
                badge(line.verdict)
            );
        }
    }
    if tiles.is_empty() {
        return tiles;
    }
    format!("<div class=\"tiles\">{tiles}</div>\n")
}

struct Columns {
    theirs: bool,
    spread: bool,
    target: bool,
    /// Shown even without targets, to mark invalid figures.
    verdict: bool,
}

/// The results table. On a narrow screen every row becomes a card in which each cell has its column's name.
pub(super) fn results_table(outcome: &Outcome, palette: &Palette) -> String {
    if outcome.lines().next().is_none() {
        return String::new();
    }
    let columns = Columns {
        theirs: outcome.lines().any(|(_, line)| line.theirs.is_some()),
        spread: outcome
            .lines()
            .any(|(_, line)| line.value.is_some_and(|value| value.count > 1)),
        target: outcome.lines().any(|(_, line)| line.target.is_some()),
        verdict: outcome
            .lines()
            .any(|(_, line)| line.verdict != Verdict::Measured),
    };
    if !columns.theirs && !columns.target {
        return matrix(outcome, palette);
    }
    let mut head =
        String::from("<th scope=\"col\" class=\"text\">figure</th><th scope=\"col\">measured</th>");
    if columns.theirs {
        head.push_str("<th scope=\"col\">peer</th><th scope=\"col\">ratio</th>");
    }
    if columns.spread {
        head.push_str("<th scope=\"col\">spread</th>");
    }
    if columns.target {
        head.push_str("<th scope=\"col\">target</th><th scope=\"col\"><span class=\"unseen\">beside it</span></th>");
    }
    if columns.verdict {
        head.push_str("<th scope=\"col\" class=\"text\">verdict</th>");
    }
    let mut body = String::new();
    for work in &outcome.works {
        let span = head.matches("<th").count();
        let _ = write!(
            body,
            "<tr class=\"work\"><th colspan=\"{span}\" scope=\"rowgroup\">{}</th></tr>",
            escape(&work.title())
        );
        for line in &work.figures {
            body.push_str(&table_row(work, line, &columns, palette));
        }
    }
    format!(
        "<section>\n<h2>Results</h2>\n<table class=\"results\"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>\n</section>\n"
    )
}

/// Table for experiments without peers and targets: a row for each figure, a column for each variant.
fn matrix(outcome: &Outcome, palette: &Palette) -> String {
    let mut names: Vec<&str> = Vec::new();
    for (_, line) in outcome.lines() {
        if !names.contains(&line.ours.as_str()) {
            names.push(&line.ours);
        }
    }
    let head: String = names
        .iter()
        .map(|name| {
            let color = palette.class(name);
            format!(
                "<th scope=\"col\"><i class=\"{color}\"></i>{}</th>",
                escape(name)
            )
        })
        .collect();
    let mut body = String::new();
    for work in &outcome.works {
        let _ = write!(
            body,
            "<tr class=\"work\"><th colspan=\"{}\" scope=\"rowgroup\">{}</th></tr>",
            names.len() + 1,
            escape(&work.title())
        );
        let mut titles: Vec<&str> = work
            .figures
            .iter()
            .map(|line| line.title.as_str())
            .collect();
        titles.dedup();
        for title in titles {
            body.push_str(&matrix_row(work, title, &names));
        }
    }
    format!(
        "<section>\n<h2>Results</h2>\n<table class=\"matrix\"><thead><tr><th scope=\"col\" class=\"text\">figure</th>{head}</tr></thead>\
         <tbody>{body}</tbody></table>\n</section>\n"
    )
}

fn matrix_row(work: &WorkOutcome, title: &str, names: &[&str]) -> String {
    let lines: Vec<&FigureLine> = work
        .figures
        .iter()
        .filter(|line| line.title == title)
        .collect();
    let mut remarks: Vec<String> = lines.iter().flat_map(|line| line.notes.clone()).collect();
    remarks.sort();
    remarks.dedup();
    let mut html = format!(
        "<tr><th scope=\"row\" class=\"text\">{}{}</th>",
        escape(title),
        notes(&remarks)
    );
    for name in names {
        let Some(line) = lines.iter().find(|line| line.ours == *name) else {
            html.push_str("<td></td>");
            continue;
        };
        let cell = row(work, line);
        let spread = if cell.spread.is_empty() {
            String::new()
        } else {
            format!("<small>{}</small>", escape(&cell.spread))
        };
        let _ = write!(
            html,
            "<td>{}{spread}{}</td>",
            escape(&cell.ours_value),
            badge(line.verdict)
        );
    }
    html.push_str("</tr>");
    html
}

fn table_row(
    work: &WorkOutcome,
    line: &FigureLine,
    columns: &Columns,
    palette: &Palette,
) -> String {
    let cells = row(work, line);
    let color = |name: &str| palette.class(name);
    let who = |name: &str, value: &str| {
        if name.is_empty() {
            return String::new();
        }
        format!(
            "<span class=\"num\">{}</span><small><i class=\"{}\"></i>{}</small>",
            escape(value),
            color(name),
            escape(name)
        )
    };
    let cell = |label: &str, class: &str, content: String| {
        let empty = if content.is_empty() { " empty" } else { "" };
        format!("<td data-label=\"{label}\" class=\"{class}{empty}\">{content}</td>")
    };
    let mut html = format!(
        "<tr><th scope=\"row\" class=\"text\">{}{}</th>",
        escape(&cells.figure),
        notes(&cells.notes)
    );
    html.push_str(&cell("measured", "", who(&cells.ours, &cells.ours_value)));
    if columns.theirs {
        html.push_str(&cell("peer", "", who(&cells.theirs, &cells.theirs_value)));
        let ratio = if cells.value.is_empty() {
            String::new()
        } else {
            // Invalid figures are not emphasized.
            let element = match line.verdict {
                Verdict::Invalid | Verdict::NotMeasured => "span",
                Verdict::Reached | Verdict::Missed | Verdict::Measured => "b",
            };
            format!(
                "<{element} class=\"num\">{}</{element}>",
                escape(&cells.value)
            )
        };
        html.push_str(&cell("ratio", "", ratio));
    }
    if columns.spread {
        html.push_str(&cell("spread", "spread", escape(&cells.spread)));
    }
    if columns.target {
        html.push_str(&cell("target", "", escape(&cells.target)));
        html.push_str(&cell("", "bar", bar(line)));
    }
    if columns.verdict {
        html.push_str(&cell("verdict", "text", badge(line.verdict)));
    }
    html.push_str("</tr>");
    html
}

fn notes(notes: &[String]) -> String {
    notes
        .iter()
        .map(|note| format!("<small class=\"remark\">{}</small>", escape(note)))
        .collect()
}

fn bar(line: &FigureLine) -> String {
    let (Some(value), Some(target)) = (line.value, line.target) else {
        return String::new();
    };
    let target = match target {
        Bound::AtMost(limit) => Target::AtMost(limit),
        Bound::AtLeast(limit) => Target::AtLeast(limit),
    };
    bullet(
        value.median,
        value.min,
        value.max,
        target,
        verdict_class(line.verdict),
    )
}

fn badge(value: Verdict) -> String {
    let sign = match value {
        Verdict::Reached => "✓",
        Verdict::Missed => "✗",
        Verdict::Measured => return String::new(),
        Verdict::NotMeasured | Verdict::Invalid => "?",
    };
    format!(
        "<span class=\"badge {}\"><span aria-hidden=\"true\">{sign}</span> {}</span>",
        verdict_class(value),
        verdict(value)
    )
}

fn verdict_class(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Reached => "good",
        Verdict::Missed => "bad",
        Verdict::Measured | Verdict::NotMeasured | Verdict::Invalid => "open",
    }
}
