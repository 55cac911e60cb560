//! `error_pages` of the whole configuration and of routes.

use std::time::Duration;

use toml::Spanned;
use toml::de::DeValue;

use crate::diagnostic::Diagnostics;
use crate::plan::{ErrorPage, ErrorPages, PageContent};
use crate::section::{Keys, Kind, Section};
use crate::toml_values::{entries_in_order, parsed};
use crate::value::{self, Invalid};

const EXPECTED: &str = "a table such as { 404 = \"404.html\", 5xx = \"sorry.html\" }";
const FILE: &str = "a file such as \"404.html\"";
const INTERCEPT: &str = "intercept";

const CONTENT_TYPE_DEFAULT: &str = "text/html; charset=utf-8";

/// Reads `error_pages` and appends the pages of `whole`; `None` without the key.
pub(super) fn read_error_pages(
    section: &Section<'_, '_>,
    whole: Option<&ErrorPages>,
    findings: &mut Diagnostics<'_>,
) -> Option<ErrorPages> {
    let value = section.value("error_pages")?;
    let section = Section::open_with_any_keys("error_pages", value, EXPECTED, findings)?;
    let mut pages = Vec::new();
    for (key, value) in entries_in_order(section.table()) {
        if key.get_ref() == INTERCEPT {
            continue;
        }
        let statuses = parsed(&key, parse_statuses, findings);
        let page = read_page(&section, &key, value, findings);
        if let (Some(statuses), Some(page)) = (statuses, page) {
            pages.push(ErrorPage { statuses, ..page });
        }
    }
    pages.sort_by_key(|page| page.statuses.1 - page.statuses.0);
    let intercept = section.truth(INTERCEPT, findings);
    let pages = ErrorPages {
        pages,
        intercept: intercept.unwrap_or(whole.is_some_and(|whole| whole.intercept)),
    };
    Some(match whole {
        Some(whole) => pages.before(whole),
        None => pages,
    })
}

fn parse_statuses(text: &str) -> Result<(u16, u16), Invalid> {
    let statuses = value::parse_statuses(text).map_err(|_| {
        Invalid::new(format!(
            "unknown key {text:?} in error_pages: expected a status such as 404, a class such as 5xx, a range such as \"500-503\", or {INTERCEPT}"
        ))
    })?;
    if statuses.0 < 400 {
        return Err(Invalid::new(format!(
            "{text:?} is not an error: expected statuses from 400 to 599"
        )));
    }
    Ok(statuses)
}

/// Reads a page; its statuses are set by the caller.
fn read_page(
    pages: &Section<'_, '_>,
    key: &Spanned<String>,
    value: &Spanned<DeValue<'_>>,
    findings: &mut Diagnostics<'_>,
) -> Option<ErrorPage> {
    const KEYS: Keys = Keys::new(&["file", "body", "content_type", "retry_after"]);
    const PAGE: &str = "a file such as \"404.html\", or a table such as { body = \"…\" }";
    let of = |content| ErrorPage {
        statuses: (0, 0),
        content,
        retry_after: None,
    };
    if value.get_ref().as_str().is_some() {
        let file = pages.path(key.get_ref(), FILE, findings)?;
        let content_type = None;
        return Some(of(Some(PageContent::File { file, content_type })));
    }
    let name = format!("{} in error_pages", key.get_ref());
    let section = Section::of(&name, value, PAGE, KEYS, findings)?;
    let content_type = section.read("content_type", CONTENT_TYPE, findings);
    let retry_after = section.read("retry_after", RETRY_AFTER, findings);
    let content = if section.has("file") {
        let reason = "cannot be used with file: expected one of them";
        section.report_conflict(&["body"], reason, findings);
        let file = section.path("file", FILE, findings)?;
        Some(PageContent::File { file, content_type })
    } else if section.has("body") {
        let text = section.text("body", "text such as \"<h1>Sorry</h1>\"", findings)?;
        Some(PageContent::Body {
            text: text.into_inner(),
            content_type: content_type.unwrap_or_else(|| CONTENT_TYPE_DEFAULT.to_owned()),
        })
    } else {
        let reason = "without file or body";
        section.warn_ignored(&["content_type"], reason, findings);
        None
    };
    let says_something =
        ["file", "body", "retry_after"].map(|key| section.is_present_or_misspelt(key));
    if says_something == [false; 3] {
        section.require("file", "file, body or retry_after", findings);
    }
    Some(ErrorPage {
        retry_after,
        ..of(content)
    })
}

const CONTENT_TYPE: Kind<String> = Kind {
    expected: "a media type such as \"text/html; charset=utf-8\"",
    parse: |text| {
        value::check_header("Content-Type", text)?;
        Ok(text.trim().to_owned())
    },
};

const RETRY_AFTER: Kind<Duration> = Kind {
    expected: "a duration such as \"120s\"",
    parse: |text| {
        let duration = value::parse_duration(text)?;
        if duration < Duration::from_secs(1) {
            return Err(Invalid::new(format!(
                "retry_after {text} is too short: expected 1s or more"
            )));
        }
        Ok(duration)
    },
};
