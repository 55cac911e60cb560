//! Fields of responses: `add_header` and `expires`.

use super::caching;
use super::hidden;
use super::scope::Scope;
use super::variable::{
    EMPTY, may_be_empty, question_mark_difference, template, template_differences,
};
use super::work::{Context, RouteContext};
use crate::settings::route::{EditScope, Response, Route, is_changeable};
use crate::source::directive::Directive;

/// Statuses to which `add_header` applies without `always`.
const USUAL: [u16; 10] = [200, 201, 204, 206, 301, 302, 303, 304, 307, 308];

/// Writes the edits of response fields into the route.
pub(super) fn response<'a>(
    work: &mut Context<'a>,
    scope: &Scope<'a>,
    spot: &RouteContext<'_>,
    route: &mut Route,
) {
    hidden::write(work, scope, route);
    let added = scope.all("add_header");
    let is_always = |directive: &&Directive| directive.argument(2) == "always";
    let has_always = added.iter().any(is_always);
    for directive in &added {
        if has_always && !is_always(directive) {
            let how = "the field is also added to error responses, because other fields here have `always`";
            work.notes.approximated(directive, how);
        }
        add(work, directive, spot, route);
    }
    caching::write(work, scope, spot, route);
    let is_unusual = match &route.response {
        Response::Respond { status, .. } => !USUAL.contains(status),
        Response::Forward(_) => true,
        Response::Redirect { .. } | Response::Files(_) | Response::File(_) => false,
    };
    route.response_on = match (has_always, is_unusual && !added.is_empty()) {
        (true, _) => EditScope::Always,
        (false, true) => EditScope::Statuses(USUAL.to_vec()),
        (false, false) => EditScope::Own,
    };
}

fn add<'a>(
    work: &mut Context<'a>,
    directive: &'a Directive,
    spot: &RouteContext<'_>,
    route: &mut Route,
) {
    let name = directive.argument(0);
    if !is_changeable(name) {
        let why = "Onrush writes this field itself";
        return work.notes.without_effect(directive, why);
    }
    // nginx replaces these fields, and removes them if the value is empty.
    let is_single = ["etag", "last-modified"].contains(&&*name.to_ascii_lowercase());
    let value = match template(directive.argument(1), spot.constants) {
        Ok(value) if value.is_empty() => {
            if is_single {
                route.response_headers.remove(name);
            }
            return work.notes.carried(directive);
        }
        Ok(value) => value.replace(char::is_control, " "),
        Err(variable) => {
            let why = format!("Onrush has no equivalent for {variable}");
            return work.notes.left_out(directive, why);
        }
    };
    work.notes.carried(directive);
    if may_be_empty(&value) {
        work.notes.approximated(directive, EMPTY);
    }
    let written = directive.argument(1);
    for how in template_differences(written).chain(question_mark_difference(written, &value)) {
        work.notes.approximated(directive, how);
    }
    if is_single {
        return route.response_headers.set(name, value);
    }
    // A fixed response has its own Content-Type, which is replaced.
    if let Response::Respond { fields, .. } = &mut route.response
        && name.eq_ignore_ascii_case("content-type")
        && !value.contains('{')
    {
        fields.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        fields.push((name.to_owned(), value));
        return;
    }
    route.response_headers.add(name, value);
}
