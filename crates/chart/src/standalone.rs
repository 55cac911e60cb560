//! Extracts the charts of a page as standalone SVG files for slides, documents and converters.
//!
//! SVG converters support neither CSS variables nor the page around a chart. So the rules for charts are taken from the
//! page's style sheet, for light and dark mode, with variables replaced by colours. Interactive parts (hover values,
//! cursor) are removed.

use std::fmt::Write;

use super::legend;
use super::page::STYLE;

/// Start of the style sheet's colours for dark mode.
const DARK: &str = "@media screen and (prefers-color-scheme: dark)";

/// Title and standalone SVG of each chart on a page.
pub fn charts(page: &str) -> Vec<(String, String)> {
    const BEGIN: &str = "<svg class=\"chart";
    const END: &str = "</svg>";
    let style = style();
    let parts = page.split(BEGIN).skip(1);
    let charts = parts.filter_map(|part| {
        let (body, _) = part.split_once(END)?;
        let (_, titled) = body.split_once("<title>")?;
        let (title, _) = titled.split_once("</title>")?;
        // Hover values may contain `>`, so the tag ends where the title starts.
        let at = body.find("><title>")?;
        let (classes, attributes) = body[..at].split_once('"')?;
        let attributes = without(attributes, "data-hover");
        let attributes = without(&attributes, "tabindex");
        let content = body[at + 1..].split("<line class=\"cursor\"").next()?;
        let (head, height) = legend::head(title, content);
        let attributes = higher(&attributes, height);
        let svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"chart{classes}\"{attributes}><style>{style}</style>\
             <rect class=\"paper\" width=\"100%\" height=\"100%\"/>{head}<g transform=\"translate(0 {height:.1})\">{content}</g>{END}\n"
        );
        Some((title.to_owned(), svg))
    });
    charts.collect()
}

/// Removes an attribute; its quotes may be single or double.
fn without(attributes: &str, name: &str) -> String {
    let Some((before, rest)) = attributes.split_once(&format!(" {name}=")) else {
        return attributes.to_owned();
    };
    let quote = rest.chars().next().unwrap_or('"');
    let after = rest.splitn(3, quote).nth(2).unwrap_or_default();
    format!("{before}{after}")
}

/// Increases the height in `viewBox`.
fn higher(attributes: &str, by: f64) -> String {
    const VIEW: &str = " viewBox=\"0 0 ";
    let parts = attributes.split_once(VIEW).and_then(|(before, rest)| {
        let (size, after) = rest.split_once('"')?;
        let (width, height) = size.split_once(' ')?;
        let height: f64 = height.parse().ok()?;
        Some(format!("{before}{VIEW}{width} {:.1}\"{after}", height + by))
    });
    parts.unwrap_or_else(|| attributes.to_owned())
}

/// CSS rules for charts: light mode, then dark mode.
fn style() -> String {
    let (light, rest) = STYLE.split_once(DARK).unwrap_or((STYLE, ""));
    let (dark, rules) = rest.split_once("\n}\n").unwrap_or(("", rest));
    let (light, dark) = (Colours::of(light), Colours::of(dark));
    let fonts =
        ".chart text { font-family: system-ui, \"DejaVu Sans\", sans-serif; font-size: 11px; }";
    format!(
        "{fonts}\n{}\n@media (prefers-color-scheme: dark) {{\n{}\n}}\n",
        light.rules(rules),
        dark.rules(rules)
    )
}

struct Colours<'a>(Vec<(&'a str, &'a str)>);

impl<'a> Colours<'a> {
    fn of(text: &'a str) -> Colours<'a> {
        let variable = |declaration: &'a str| {
            let (_, variable) = declaration.split_once("--")?;
            let (name, value) = variable.split_once(':')?;
            Some((name, value.trim()))
        };
        Colours(text.split(';').filter_map(variable).collect())
    }

    /// The CSS rules for charts with variables replaced.
    fn rules(&self, rules: &str) -> String {
        let mut text = format!(".paper {{ fill: {}; }}", self.value("paper"));
        let classes = classes(rules);
        for (selectors, declarations) in each_rule(rules) {
            let wanted = selectors.split(',').map(str::trim);
            let wanted: Vec<&str> = wanted.filter(|it| is_of_charts(it)).collect();
            if wanted.is_empty() || declarations.contains("--c:") {
                continue;
            }
            if declarations.contains("var(--c") {
                for (class, colour) in &classes {
                    let selectors = wanted.iter().map(|it| format!("{it}.{class}"));
                    let selectors: Vec<String> = selectors.collect();
                    let of_class = declarations
                        .replace("var(--c, var(--faint))", &format!("var(--{colour})"))
                        .replace("var(--c)", &format!("var(--{colour})"));
                    let _ = write!(
                        text,
                        "\n{} {{{}}}",
                        selectors.join(", "),
                        self.written(&of_class)
                    );
                }
            } else {
                let _ = write!(
                    text,
                    "\n{} {{{}}}",
                    wanted.join(", "),
                    self.written(declarations)
                );
            }
        }
        text
    }

    fn value(&self, name: &str) -> &str {
        let mut all = self.0.iter();
        all.find(|(known, _)| *known == name)
            .map_or("currentColor", |(_, value)| value)
    }

    fn written(&self, declarations: &str) -> String {
        let mut text = String::new();
        let mut parts = declarations.split("var(--");
        text.push_str(parts.next().unwrap_or_default());
        for part in parts {
            let (name, rest) = part.split_once(')').unwrap_or((part, ""));
            let _ = write!(text, "{}{rest}", self.value(name));
        }
        text
    }
}

/// Colour classes and their variables.
fn classes(rules: &str) -> Vec<(&str, &str)> {
    each_rule(rules)
        .filter_map(|(selector, declarations)| {
            let (_, class) = selector.rsplit_once('.')?;
            let colour = declarations.trim().strip_prefix("--c: var(--")?;
            Some((class, colour.split(')').next()?))
        })
        .collect()
}

/// Selectors and declarations of each top-level rule.
fn each_rule(rules: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut rest = rules;
    std::iter::from_fn(move || {
        loop {
            let (head, behind) = rest.split_once('{')?;
            let head = head.rsplit("*/").next()?.trim();
            // At-rules contain nested braces.
            let end = match head.starts_with('@') {
                true => matching(behind)?,
                false => behind.find('}')?,
            };
            rest = &behind[end + 1..];
            if !head.starts_with('@') {
                return Some((head, &behind[..end]));
            }
        }
    })
}

/// Offset of the brace that closes one opened before `text`.
fn matching(text: &str) -> Option<usize> {
    let mut depth = 1;
    for (at, letter) in text.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(at);
        }
    }
    None
}

fn is_of_charts(selector: &str) -> bool {
    let mut starts = [".chart ", ".heat ", ".edge."].iter();
    starts.any(|start| selector.starts_with(start)) && !selector.ends_with(".cursor")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Axis, Line, LineChart, Scale, Size, Stack, figure, page};

    fn chart(title: &str) -> String {
        let axis = || Axis {
            label: String::new(),
            scale: Scale::Linear(0.0, 1.0),
            ticks: vec![(0.5, "half".into())],
        };
        let line = Line {
            name: "a".into(),
            class: "o1".into(),
            is_dashed: false,
            segments: vec![vec![(0.0, 0.0), (1.0, 1.0)]],
            ranges: Vec::new(),
        };
        let plot = LineChart {
            title: title.into(),
            description: String::new(),
            x: axis(),
            y: axis(),
            lines: vec![line],
            stack: Stack::default(),
            rules: Vec::new(),
            size: Size::Small,
            x_text: |x| x.to_string(),
            y_text: |y| y.to_string(),
        };
        plot.svg()
    }

    #[test]
    fn standalone_charts_have_title_and_literal_colours() {
        let drawn = chart("a & b");
        let body = format!(
            "{}<svg class=\"mark\"></svg>{drawn}",
            figure("a", "", &drawn)
        );
        let charts = charts(&page("t", &body));
        assert_eq!(charts.len(), 2);
        assert_eq!(charts[0].0, "a &amp; b");
        let text = &charts[0].1;
        for said in [
            "<svg xmlns=",
            ".chart .line.o1 { fill: none; stroke: #1f5fd0;",
            ".chart .line.o1 { fill: none; stroke: #7aa7ff;",
            ".chart .line.fullest { fill: none; stroke: #191b1f;",
            "<rect class=\"paper\"",
            "<text class=\"name\" x=\"8\" y=\"15.0\">a &amp; b</text>",
            "<text class=\"tick\" x=\"34.0\" y=\"31.0\">a</text>",
            "</svg>",
        ] {
            assert!(text.contains(said), "{said} in {text}");
        }
        for left in ["var(", "data-hover", "tabindex", "cursor", "currentColor"] {
            assert!(!text.contains(left), "{left} in {text}");
        }
    }
}
