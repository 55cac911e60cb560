//! `error_page` and `client_max_body_size`.

use super::handler::Module;
use super::internal_redirect;
use super::scope::Scope;
use super::work::{Context, State};
use crate::document::Value;
use crate::settings::route::Route;
use crate::settings::unit::{nginx_size, written_size};
use crate::source::directive::Directive;

pub(super) fn write<'a>(work: &mut Context<'a>, state: &State<'a>, route: &mut Route) {
    let scope = &state.scope;
    let mut pages: Vec<(String, Value)> = Vec::new();
    for directive in scope.all("error_page") {
        page(work, state, directive, &mut pages);
    }
    if let Some(directive) = scope.one(&Module::of(scope).directive("intercept_errors")) {
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

/// Notes the error page that nginx sends instead of a fixed response with this status.
pub(super) fn note_fixed<'a>(work: &mut Context<'a>, scope: &Scope<'a>, status: u16) {
    let status = status.to_string();
    let has_status = |page: &&'a Directive| page.arguments().contains(&status);
    let Some(directive) = scope.all("error_page").into_iter().find(has_status) else {
        return;
    };
    match is_file(directive) {
        true => work.notes.approximated(directive, AS_FILE),
        false => {
            let why = format!("a fixed response keeps its status ({status}) and body");
            work.notes.left_out(directive, why);
        }
    }
}

const AS_FILE: &str =
    "the page is a file that is read at startup; fixed responses keep their bodies";

/// Whether an error page is a file that has the status of the error.
fn is_file(directive: &Directive) -> bool {
    let arguments = directive.arguments();
    let place = arguments.last().map_or("", String::as_str);
    let changes_status = arguments.iter().any(|status| status.starts_with('='));
    place.starts_with('/') && !place.contains(['$', '?']) && !changes_status
}

fn page<'a>(
    work: &mut Context<'a>,
    state: &State<'a>,
    directive: &'a Directive,
    pages: &mut Vec<(String, Value)>,
) {
    let Some((place, statuses)) = directive.arguments().split_last() else {
        return work
            .notes
            .left_out(directive, "expected statuses and a page");
    };
    if !is_file(directive) {
        let why = "error pages must be files, with the status of the error";
        return work.notes.left_out(directive, why);
    }
    let file = match file(work, state, place) {
        Ok(file) => file,
        Err(why) => return work.notes.left_out(directive, why),
    };
    let is_guarded = is_guarded(state, place);
    if is_guarded && !internal_redirect::has_same_access(scope_of(state, place), &state.scope) {
        let why = "access rules of the page may refuse the client, so its errors have no page";
        return work.notes.left_out(directive, why);
    }
    for status in statuses {
        match status.parse::<u16>() {
            Ok(401 | 403) if is_guarded => work.notes.left_out(
                directive,
                "access rules of the page refuse the same clients, so there is no page for 401 and 403",
            ),
            Ok(400..=599) => {
                if !pages.iter().any(|(known, _)| known == status) {
                    pages.push((status.clone(), Value::text(&file)));
                }
            }
            _ => work
                .notes
                .left_out(directive, "expected statuses from 400 to 599"),
        }
    }
    work.notes.approximated(directive, AS_FILE);
}

/// The file of a page, if the location that matches it serves files.
fn file(work: &Context<'_>, state: &State<'_>, place: &str) -> Result<String, String> {
    let scope = scope_of(state, place);
    if let Some((_, location)) = internal_redirect::matching_location(state, place)
        && (!internal_redirect::is_plain(scope) || scope.own("alias").is_some())
    {
        let shown = location.directive.shown();
        return Err(format!(
            "{place} is matched by {shown}, which treats it differently"
        ));
    }
    let root = scope.one("root").map_or("html", |root| root.argument(0));
    match root.contains('$') {
        true => Err("directory names cannot contain variables".to_owned()),
        false => Ok(format!("{}{place}", work.path(root).trim_end_matches('/'))),
    }
}

/// Scope of the location in which nginx looks up a page.
fn scope_of<'s, 'a>(state: &'s State<'a>, place: &str) -> &'s Scope<'a> {
    internal_redirect::matching_location(state, place)
        .map_or(&state.server, |(_, location)| &location.scope)
}

/// Whether access rules apply to a page.
fn is_guarded(state: &State<'_>, place: &str) -> bool {
    let scope = scope_of(state, place);
    let first = scope.all_of(&["allow", "deny"]).into_iter().next();
    let is_open = first.is_none_or(|first| first.name() == "allow" && first.argument(0) == "all");
    let password = scope.one("auth_basic");
    !is_open || password.is_some_and(|realm| realm.argument(0) != "off")
}
