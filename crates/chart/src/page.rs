//! The page around charts: one file that opens offline. Everything on it is inline; nothing is fetched.

use crate::escape;

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");

/// A whole page with this title around `body`, which is markup.
pub fn page(title: &str, body: &str) -> String {
    let title = escape(title);
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{title}</title>\n\
         <style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n{body}</main>\n\
         <div id=\"tip\" role=\"status\" hidden></div>\n<script>\n{SCRIPT}</script>\n</body>\n</html>\n"
    )
}

/// A chart with its caption.
pub fn figure(title: &str, subtitle: &str, svg: &str) -> String {
    format!(
        "<figure><figcaption><b>{}</b><span>{}</span></figcaption>{svg}</figure>\n",
        escape(title),
        escape(subtitle)
    )
}

/// The charts of a page as files of their own: the title of each, and an SVG that brings its style sheet.
pub fn charts(page: &str) -> Vec<(String, String)> {
    const BEGIN: &str = "<svg class=\"chart\"";
    const END: &str = "</svg>";
    let parts = page.split(BEGIN).skip(1);
    let charts = parts.filter_map(|part| {
        let (body, _) = part.split_once(END)?;
        let (_, titled) = body.split_once("<title>")?;
        let (title, _) = titled.split_once("</title>")?;
        let (attributes, content) = body.split_once('>')?;
        let svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"chart\"{attributes}><style>{STYLE}\n\
             :root {{ background: var(--paper); font-family: system-ui, sans-serif; }}</style>{content}{END}\n"
        );
        Some((title.to_owned(), svg))
    });
    charts.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn charts_are_files_with_a_title_and_a_style_sheet() {
        let svg = "<svg class=\"chart\" viewBox=\"0 0 1 1\"><title>a &amp; b</title><line/></svg>";
        let page = page(
            "t",
            &format!("{}<svg class=\"mark\"></svg>{}", figure("a", "", svg), svg),
        );
        let charts = charts(&page);
        assert_eq!(charts.len(), 2);
        assert_eq!(charts[0].0, "a &amp; b");
        let text = &charts[0].1;
        assert!(
            text.contains("xmlns=") && text.contains("<style>") && text.contains("<line/></svg>")
        );
    }

    #[test]
    fn a_page_fetches_nothing_and_escapes_its_title() {
        let page = page("<b> & co", "<p>body</p>");
        assert!(page.contains("<title>&lt;b&gt; &amp; co</title>") && page.contains("<p>body</p>"));
        for reference in ["http://", "https://", "src=", "@import", "url("] {
            assert!(!page.contains(reference), "{reference}");
        }
    }
}
