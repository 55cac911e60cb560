//! The HTML page around charts: a single file with everything inline, which works offline.

use crate::escape;

pub(crate) const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");

const KEYS: &str = "<p class=\"keys\">To read the values of a chart, point at it, or select it with Tab and use the arrow keys.</p>\n";

/// Builds a page with this title around `body`, which is HTML.
pub fn page(title: &str, body: &str) -> String {
    let title = escape(title);
    let keys = if body.contains("data-hover") {
        KEYS
    } else {
        ""
    };
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{title}</title>\n\
         <style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n{body}{keys}</main>\n\
         <div id=\"tip\" role=\"status\" hidden></div>\n<script>\n{SCRIPT}</script>\n</body>\n</html>\n"
    )
}

/// A chart with a caption.
pub fn figure(title: &str, subtitle: &str, svg: &str) -> String {
    format!(
        "<figure><figcaption><b>{}</b><span>{}</span></figcaption>{svg}</figure>\n",
        escape(title),
        escape(subtitle)
    )
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn page_is_self_contained_and_title_is_escaped() {
        let page = page("<b> & co", "<p>body</p>");
        assert!(page.contains("<title>&lt;b&gt; &amp; co</title>") && page.contains("<p>body</p>"));
        for reference in ["http://", "https://", "src=", "@import", "url("] {
            assert!(!page.contains(reference), "{reference}");
        }
    }
    fn colours(text: &'static str) -> BTreeMap<&'static str, [f64; 3]> {
        let variable = |declaration: &'static str| {
            let (name, value) = declaration.trim().split_once(": #")?;
            let number = u32::from_str_radix(value, 16).ok()?;
            let part = |shift: u32| f64::from(number >> shift & 0xff) / 255.0;
            let name = name.rsplit("--").next()?;
            Some((name, [part(16), part(8), part(0)]))
        };
        text.split(';').filter_map(variable).collect()
    }

    /// Contrast ratio from relative luminances (WCAG 2.2).
    fn contrast(a: [f64; 3], b: [f64; 3]) -> f64 {
        let linear = |part: f64| match part {
            ..=0.04045 => part / 12.92,
            _ => ((part + 0.055) / 1.055).powf(2.4),
        };
        let luminance =
            |[r, g, b]: [f64; 3]| 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
        let (a, b) = (luminance(a) + 0.05, luminance(b) + 0.05);
        a.max(b) / a.min(b)
    }

    #[test]
    fn colours_have_enough_contrast() {
        let (light, rest) = STYLE.split_once("@media screen").expect("a dark part");
        let (dark, _) = rest.split_once("\n}\n").expect("its end");
        for colours in [colours(light), colours(dark)] {
            let mut pairs = Vec::new();
            for text in ["ink", "soft", "faint", "blue"] {
                pairs.extend(["paper", "card", "wash"].map(|behind| (text, behind, 4.5)));
            }
            let washes = [
                ("good", "good-wash", 4.5),
                ("bad", "bad-wash", 4.5),
                ("doubt", "doubt-wash", 4.5),
            ];
            pairs.extend(washes);
            for state in ["good", "bad", "doubt"] {
                pairs.push((state, "paper", 4.5));
            }
            let lines = [
                "blue", "teal", "indigo", "sky", "cyan", "leaf", "amber", "plum", "grey", "rust",
                "moss", "rose", "dark",
            ];
            pairs.extend(lines.map(|line| (line, "paper", 3.0)));
            for (text, behind, least) in pairs {
                let found = contrast(colours[text], colours[behind]);
                assert!(found >= least, "{text} on {behind}: {found:.2}");
            }
        }
    }

    #[test]
    fn page_explains_keyboard_use() {
        let keys = |body: &str| page("t", body).contains("class=\"keys\"");
        assert!(keys("<svg data-hover=\"[]\"></svg>") && !keys("<p>no chart</p>"));
        assert!(SCRIPT.contains("keydown") && SCRIPT.contains("\"focus\""));
    }
}
