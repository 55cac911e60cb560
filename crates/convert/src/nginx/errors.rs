//! `error_page` and limits on bodies: what clients get instead of what they asked for.

use super::scope::Scope;
use super::work::Work;
use crate::directive::Directive;
use crate::document::Value;
use crate::route::Route;
use crate::unit::{nginx_size, written_size};

/// Puts them into the route.
pub(super) fn write<'a>(work: &mut Work<'a>, scope: &Scope<'a>, route: &mut Route) {
    let mut pages: Vec<(String, Value)> = Vec::new();
    for directive in scope.all("error_page") {
        page(work, scope, directive, &mut pages);
    }
    if let Some(directive) = scope.one("proxy_intercept_errors") {
        work.notes.carried(directive);
        if directive.argument(0) == "on" && !pages.is_empty() {
            pages.push(("intercept".to_owned(), Value::Truth(true)));
        }
    }
    if !pages.is_empty() {
        route.put("error_pages", Value::Table(pages));
    }
    if let Some(directive) = scope.one("client_max_body_size") {
        let size = match nginx_size(directive.argument(0)) {
            Some(0) => "off".to_owned(),
            Some(bytes) => written_size(bytes),
            None => return work.notes.left_out(directive, "expected a size such as 1m"),
        };
        work.notes.carried(directive);
        route.put("request_body_max", Value::Text(size));
    }
}

fn page<'a>(
    work: &mut Work<'a>,
    scope: &Scope<'a>,
    directive: &'a Directive,
    pages: &mut Vec<(String, Value)>,
) {
    let Some((place, statuses)) = directive.arguments().split_last() else {
        return work
            .notes
            .left_out(directive, "expected statuses and a page");
    };
    let changes_status = statuses.iter().any(|status| status.starts_with('='));
    if !place.starts_with('/') || place.contains(['$', '?']) || changes_status {
        let why = "pages of errors are files, with the status of the error";
        return work.notes.left_out(directive, why);
    }
    let root = page_root(scope, place);
    let root = root.map_or("html", |root| root.argument(0));
    if root.contains('$') {
        return work
            .notes
            .left_out(directive, "a directory has no variables");
    }
    let file = format!("{}{place}", work.path(root).trim_end_matches('/'));
    for status in statuses {
        match status.parse::<u16>() {
            Ok(400..=599) => {
                if !pages.iter().any(|(known, _)| known == status) {
                    pages.push((status.clone(), Value::text(&file)));
                }
            }
            _ => work
                .notes
                .left_out(directive, "pages are for statuses from 400 to 599"),
        }
    }
    let how =
        "the page is the file itself, read at the start; fixed responses stay as they are written";
    work.notes.approximated(directive, how);
}

/// The root of the location of a page, or the one here.
fn page_root<'a>(scope: &Scope<'a>, place: &str) -> Option<&'a Directive> {
    let is_it = |location: &&Directive| {
        location
            .arguments()
            .last()
            .is_some_and(|path| path == place)
    };
    let location = scope.all("location").into_iter().find(is_it);
    let inside = location.map(Directive::inside).unwrap_or_default();
    let own = inside.iter().find(|directive| directive.name() == "root");
    own.or_else(|| scope.around("location").one("root"))
}
