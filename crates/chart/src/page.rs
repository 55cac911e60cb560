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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_fetches_nothing_and_escapes_its_title() {
        let page = page("<b> & co", "<p>body</p>");
        assert!(page.contains("<title>&lt;b&gt; &amp; co</title>") && page.contains("<p>body</p>"));
        for reference in ["http://", "https://", "src=", "@import", "url("] {
            assert!(!page.contains(reference), "{reference}");
        }
    }
}
