//! Header of a standalone chart: title and legend. On a page both are outside of the chart.

use std::fmt::Write;

use super::mark::mark;

/// Prefix that [`series`] writes before a name.
const BEGIN: &str = "<g class=\"series\" data-name=\"";
/// Approximate width of a legend's character, in units of the drawing.
const LETTER: f64 = 5.8;
/// Width of the line sample and mark before a name.
const SAMPLE: f64 = 26.0;
const LEFT: f64 = 8.0;
const RIGHT: f64 = 372.0;
const ROW: f64 = 15.0;
const TITLE: f64 = 20.0;
/// Maximum length of a title line in characters.
const TITLE_LINE: usize = 56;

/// Groups the elements of one line or area under its name. `name` must be escaped.
pub(crate) fn series(name: &str, drawn: &str) -> String {
    format!("{BEGIN}{name}\">{drawn}</g>")
}

/// A line or an area in the legend.
struct Entry<'a> {
    name: &'a str,
    class: &'a str,
    kind: Kind,
}

#[derive(Clone, Copy)]
enum Kind {
    Line,
    Dashed,
    Area,
}

/// Header with title and legend of `content`, and its height. Names and title are already escaped.
pub(crate) fn head(title: &str, content: &str) -> (String, f64) {
    let mut svg = String::new();
    let mut y = 0.0;
    for line in lines(title) {
        y += TITLE;
        let _ = write!(
            svg,
            "<text class=\"name\" x=\"{LEFT}\" y=\"{:.1}\">{line}</text>",
            y - 5.0
        );
    }
    let mut x = LEFT;
    y += ROW - 4.0;
    for entry in entries(content) {
        let width = SAMPLE + entry.name.chars().count() as f64 * LETTER + 14.0;
        if x > LEFT && x + width > RIGHT {
            x = LEFT;
            y += ROW;
        }
        entry.draw(&mut svg, x, y);
        x += width;
    }
    (svg, y + 6.0)
}

fn lines(title: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in title.split(' ') {
        let last = lines.len() - 1;
        let length = lines[last].chars().count();
        if length > 0 && length + 1 + word.chars().count() > TITLE_LINE {
            lines.push(word.to_owned());
            continue;
        }
        if length > 0 {
            lines[last].push(' ');
        }
        lines[last].push_str(word);
    }
    lines
}

/// The series of a chart, each name once.
fn entries(content: &str) -> Vec<Entry<'_>> {
    let mut entries: Vec<Entry<'_>> = Vec::new();
    for part in content.split(BEGIN).skip(1) {
        let Some((name, drawn)) = part.split_once("\">") else {
            continue;
        };
        let drawn = drawn.split("</g>").next().unwrap_or_default();
        let of = |begin: &str| {
            let (_, classes) = drawn.split_once(begin)?;
            classes.split(['"', ' ']).next()
        };
        let (class, kind) = match (of("class=\"line "), of("class=\"area ")) {
            (Some(class), _) if drawn.contains(" dashed\"") => (class, Kind::Dashed),
            (Some(class), _) => (class, Kind::Line),
            (None, Some(class)) => (class, Kind::Area),
            (None, None) => continue,
        };
        if !entries.iter().any(|known| known.name == name) {
            entries.push(Entry { name, class, kind });
        }
    }
    entries
}

impl Entry<'_> {
    /// `y` is the baseline of the text.
    fn draw(&self, svg: &mut String, x: f64, y: f64) {
        let class = self.class;
        let middle = y - 4.0;
        match self.kind {
            Kind::Line | Kind::Dashed => {
                let dashed = match self.kind {
                    Kind::Dashed => " dashed",
                    Kind::Line | Kind::Area => "",
                };
                let _ = write!(
                    svg,
                    "<polyline class=\"line {class}{dashed}\" points=\"{x:.1},{middle:.1} {:.1},{middle:.1}\"/>{}",
                    x + 20.0,
                    mark(class, x + 10.0, middle)
                );
            }
            Kind::Area => {
                let _ = write!(
                    svg,
                    "<path class=\"area {class}\" d=\"M{x:.1} {:.1}h20v9h-20Z\"/>",
                    middle - 4.5
                );
            }
        }
        let _ = write!(
            svg,
            "<text class=\"tick\" x=\"{:.1}\" y=\"{y:.1}\">{}</text>",
            x + SAMPLE,
            self.name
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn legend_lists_each_series_once_with_line_style() {
        let line = "<polyline class=\"line t1\" points=\"0,0 1,1\"/>";
        let dashed = "<polyline class=\"line t1 dashed\" points=\"0,0 1,1\"/>";
        let content = [
            series("nginx", line),
            series("nginx", line),
            series("nginx, tls", dashed),
            series("user", "<path class=\"area user\" d=\"M0 0\"/>"),
        ]
        .concat();
        let (svg, height) = head("Rate", &content);
        assert_eq!(svg.matches("<text").count(), 4, "{svg}");
        assert_eq!(svg.matches(" dashed\"").count(), 1);
        assert!(svg.contains("class=\"area user\""));
        assert!(height < 45.0, "{height}");
    }

    #[test]
    fn long_titles_and_legends_wrap() {
        let name = "a rather long name of a variant";
        let content: String = (0..4)
            .map(|number| series(&format!("{name} {number}"), "<p class=\"line o1\"/>"))
            .collect();
        let (_, few) = head("Rate", &series(name, "<p class=\"line o1\"/>"));
        let (svg, many) = head(&"word ".repeat(30), &content);
        assert!(many > few + 3.0 * ROW, "{many} {few}");
        assert!(svg.matches("class=\"name\"").count() >= 3);
    }
}
