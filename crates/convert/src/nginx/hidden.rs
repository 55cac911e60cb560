//! Fields of upstream responses that nginx hides, by default and by `proxy_hide_header`.

use super::handler::Module;
use super::scope::Scope;
use super::work::Context;
use crate::document::Value;
use crate::settings::route::{Response, Route};

/// Key of a route and of the top of the file.
pub(super) const KEY: &str = "upstream_headers";

/// Fields that nginx hides by default.
const USUAL: [&str; 8] = [
    "Date",
    "Server",
    "X-Pad",
    "X-Accel-Buffering",
    "X-Accel-Charset",
    "X-Accel-Expires",
    "X-Accel-Limit-Rate",
    "X-Accel-Redirect",
];

/// A field that asks for an internal redirect, which Onrush does not support.
const REDIRECT: &str = "X-Accel-Redirect";

/// The table for routes without directives about upstream fields.
pub(super) fn usual() -> Value {
    table(USUAL.map(str::to_owned).into(), vec![REDIRECT.to_owned()])
}

fn table(hide: Vec<String>, refuse: Vec<String>) -> Value {
    let entries = [("hide", hide), ("refuse", refuse)].into_iter();
    let entries = entries.filter(|(_, names)| !names.is_empty());
    let entries = entries.map(|(key, names)| (key.to_owned(), Value::texts(names)));
    Value::Table(entries.collect())
}

/// Writes the fields that a location hides, if they differ from the default.
pub(super) fn write<'a>(work: &mut Context<'a>, scope: &Scope<'a>, route: &mut Route) {
    let Response::Forward(_) = route.response else {
        return;
    };
    let module = Module::of(scope);
    let mut hide: Vec<String> = USUAL.map(str::to_owned).into();
    for directive in scope.all(&module.directive("hide_header")) {
        let name = directive.argument(0);
        let is_date = name.eq_ignore_ascii_case("date");
        if !is_date && !crate::settings::route::is_changeable(name) {
            work.notes
                .without_effect(directive, "Onrush writes this field itself");
            continue;
        }
        work.notes.carried(directive);
        if !hide.iter().any(|known| known.eq_ignore_ascii_case(name)) {
            hide.push(name.to_owned());
        }
    }
    for directive in scope.all(&module.directive("pass_header")) {
        work.notes.carried(directive);
        hide.retain(|known| !known.eq_ignore_ascii_case(directive.argument(0)));
    }
    let ignored = scope.one(&module.directive("ignore_headers"));
    let mut ignored = ignored.iter().flat_map(|directive| directive.arguments());
    let refuse = match ignored.any(|name| name.eq_ignore_ascii_case(REDIRECT)) {
        true => Vec::new(),
        false => vec![REDIRECT.to_owned()],
    };
    let own = table(hide, refuse);
    if own != usual() {
        route.put(KEY, own);
    }
}
