//! `proxy_pass` and `grpc_pass`, and the other directives of their modules.

use super::handler::Module;
use super::scope::Scope;
use super::target::{self, Target};
use super::upstream;
use super::variable::{
    EMPTY, expanded, may_be_empty, question_mark_difference, template, template_differences,
};
use super::work::{Context, RouteContext, State};
use crate::document::Value;
use crate::expression::condition::Path;
use crate::settings::route::{FieldEdits, Response, Route, is_changeable};
use crate::settings::unit::nginx_time;
use crate::source::directive::Directive;

/// Makes a route forward.
pub(super) fn pass<'a>(
    work: &mut Context<'a>,
    state: &State<'a>,
    spot: &RouteContext<'_>,
    module: Module,
    directive: &'a Directive,
    route: &mut Route,
) {
    let scope = &state.scope;
    let written = expanded(directive.argument(0), spot.constants);
    let found = target::parse(module, &written).and_then(|target| {
        let group = upstream::group(work, scope, directive, &target)?;
        Ok((target, group))
    });
    let (target, group) = match found {
        Ok(found) => found,
        Err(why) => {
            let why = format!("{why}; the response is 502");
            work.notes.left_out(directive, why);
            route.response = Response::status(502);
            return;
        }
    };
    work.notes.carried(directive);
    work.passes.get_or_insert(directive);
    route.response = Response::Forward(group);
    path(work, state, spot, directive, target.uri, route);
    request_fields(work, scope, spot, &target, route);
    timeouts(work, scope, module, route);
    match module {
        Module::Proxy => {
            note_default_redirect(work, scope, directive, &target);
            settings(work, scope);
        }
        // `grpc_pass` has no `proxy_redirect` and none of the other settings.
        Module::Grpc => {}
    }
    bind(work, scope, module);
}

/// Notes that nginx rewrites `Location` by default (`proxy_redirect default`), which Onrush does not.
fn note_default_redirect<'a>(
    work: &mut Context<'a>,
    scope: &Scope<'a>,
    directive: &'a Directive,
    target: &Target<'_>,
) {
    let fields = scope.all("proxy_set_header");
    let says_host = |field: &&Directive| field.argument(0).eq_ignore_ascii_case("host");
    if scope.one("proxy_redirect").is_none() && !fields.iter().any(says_host) {
        let how = format!(
            "a Location with {} in a server's response is not changed; nginx replaces it by the address of this location",
            target.authority
        );
        work.notes.approximated(directive, how);
    }
}

/// Writes the change of the path in forwarded requests.
fn path<'a>(
    work: &mut Context<'a>,
    state: &State<'a>,
    spot: &RouteContext<'_>,
    directive: &'a Directive,
    uri: Option<&str>,
    route: &mut Route,
) {
    let location = match spot.when.path() {
        Path::Prefix(path) | Path::Exact(path) => Some(path),
        _ => None,
    };
    if let Some((pattern, to)) = &state.rewritten {
        let rule = [("match", Value::text(pattern)), ("to", Value::text(to))];
        return route.put("rewrite", Value::table(rule));
    }
    // nginx forwards the path that `rewrite` has made and ignores the path of proxy_pass.
    let moved = state.moved.clone();
    let moved = moved.or_else(|| {
        let stripped = state.captured.as_ref().and_then(|own| match &own.path {
            Path::Prefix(path) | Path::Exact(path) => Some(path.clone()),
            _ => None,
        });
        Some((stripped.or(location.cloned())?, uri?.to_owned()))
    });
    let Some((stripped, target)) = moved else {
        if uri.is_some() {
            let why = "the path in the URL replaces a prefix, and this location has none";
            work.notes.left_out(directive, why);
        }
        return;
    };
    if route.replace_prefix(&stripped, &target).is_err() {
        let why = "the path in the URL replaces a prefix, and this location has none";
        return work.notes.left_out(directive, why);
    }
    if stripped.ends_with('/') != target.ends_with('/')
        && matches!(spot.when.path(), Path::Prefix(_))
    {
        let how = "there is exactly one slash between the path in the URL and the rest of the client's path";
        work.notes.approximated(directive, how);
    }
}

fn request_fields<'a>(
    work: &mut Context<'a>,
    scope: &Scope<'a>,
    spot: &RouteContext<'_>,
    target: &Target<'_>,
    route: &mut Route,
) {
    let own = match target.authority.starts_with("unix:") {
        true => "localhost",
        false => target.authority,
    };
    let edits = &mut route.request_headers;
    // The default of nginx.
    edits.set("Host", crate::settings::route::escaped(own));
    for directive in scope.all(&target.module.directive("set_header")) {
        let (name, written) = (directive.argument(0), directive.argument(1));
        let lower = name.to_ascii_lowercase();
        if is_written_by_onrush(work, directive, &lower) {
            continue;
        }
        if !is_changeable(name) {
            work.notes
                .without_effect(directive, "Onrush writes this field itself");
            continue;
        }
        let Some(value) = request_field(work, directive, spot, own, edits) else {
            continue;
        };
        match may_be_empty(&value) {
            true if is_own_field(name, &value) => {
                // nginx omits empty fields, so the client's field can stay as it is.
                work.notes.carried(directive);
                edits.forget(name);
                continue;
            }
            true => work.notes.approximated(directive, EMPTY),
            false => work.notes.carried(directive),
        }
        for how in template_differences(written).chain(question_mark_difference(written, &value)) {
            work.notes.approximated(directive, how);
        }
        match (&*lower, &*value) {
            // The client's own value.
            ("host", "{host}") => edits.forget("Host"),
            ("host", "") => edits.forget("Host"),
            ("host", value) if value.contains("{host.name}:") => edits.forget("Host"),
            (_, "") => edits.remove(name),
            (_, value) => edits.set(name, value),
        }
    }
}

/// The value of a field; none if Onrush has no equivalent.
fn request_field<'a>(
    work: &mut Context<'a>,
    directive: &'a Directive,
    spot: &RouteContext<'_>,
    own: &str,
    edits: &mut FieldEdits,
) -> Option<String> {
    let (name, written) = (directive.argument(0), directive.argument(1));
    match template(written, spot.constants) {
        // The server is selected later.
        Ok(value) if value.contains("{server}") => {
            let why = "the field is removed, because a request may be sent to several servers";
            work.notes.left_out(directive, why);
            edits.remove(name);
            None
        }
        Ok(value) => Some(value.replace(char::is_control, " ")),
        Err(variable) => {
            // Clients must not be able to set the value that nginx would have written.
            let how = match name.eq_ignore_ascii_case("host") {
                true => format!("the server gets {own}"),
                false => {
                    edits.remove(name);
                    "the field is removed".to_owned()
                }
            };
            let why = format!("Onrush has no equivalent for {variable}; {how}");
            work.notes.left_out(directive, why);
            None
        }
    }
}

/// Whether the value is the client's own field of this name.
fn is_own_field(name: &str, value: &str) -> bool {
    let own = value.strip_prefix("{header:");
    own.and_then(|own| own.strip_suffix('}'))
        .is_some_and(|own| own.eq_ignore_ascii_case(name))
}

/// Whether Onrush writes this field itself, about connections and clients.
fn is_written_by_onrush<'a>(work: &mut Context<'a>, directive: &'a Directive, name: &str) -> bool {
    let value = directive.argument(1);
    match name {
        "connection" if value == "close" => {
            let how = "connections to servers are reused";
            work.notes.approximated(directive, how);
            true
        }
        "connection" | "upgrade" => {
            work.notes.carried(directive);
            true
        }
        name if is_forwarded_field(name, value) => {
            work.forwards_clients = true;
            let how = "[forwarded] applies to all requests; fields of clients are only accepted from proxies in trust";
            work.notes.approximated(directive, how);
            true
        }
        _ => false,
    }
}

/// Whether the field is about the client and Onrush writes it itself.
fn is_forwarded_field(name: &str, value: &str) -> bool {
    match name {
        "x-forwarded-for" => {
            value.contains("$proxy_add_x_forwarded_for")
                || matches!(value, "$remote_addr" | "$http_x_forwarded_for")
        }
        "x-forwarded-proto" => matches!(value, "$scheme" | "$http_x_forwarded_proto"),
        "x-forwarded-host" => matches!(value, "$host" | "$http_host" | "$host:$server_port"),
        _ => false,
    }
}

fn timeouts<'a>(work: &mut Context<'a>, scope: &Scope<'a>, module: Module, route: &mut Route) {
    const KEYS: [(&str, &[&str]); 3] = [
        ("connect_timeout", &["connect"]),
        ("read_timeout", &["upstream_first_byte", "upstream_body"]),
        ("send_timeout", &["upstream_body"]),
    ];
    for (name, keys) in KEYS {
        let Some(directive) = scope.one(&module.directive(name)) else {
            continue;
        };
        match nginx_time(directive.argument(0)) {
            Some(time) => {
                for key in keys {
                    work.timeouts.record(key, time, directive);
                    route.set_timeout(key, time);
                }
            }
            None => work
                .notes
                .left_out(directive, "expected a time such as 60s"),
        }
    }
}

/// Notes on settings that only `proxy_pass` has and that are not written into the result.
fn settings<'a>(work: &mut Context<'a>, scope: &Scope<'a>) {
    for name in ["proxy_buffering", "proxy_request_buffering"] {
        if let Some(directive) = scope.one(name) {
            let why = "bodies are streamed in both directions and never buffered as a whole";
            work.notes.without_effect(directive, why);
        }
    }
    if let Some(directive) = scope.one("proxy_http_version") {
        match directive.argument(0) {
            "1.1" => work.notes.carried(directive),
            _ => work
                .notes
                .approximated(directive, "requests to servers use HTTP/1.1"),
        }
    }
    if let Some(directive) = scope.one("proxy_redirect") {
        match directive.argument(0) {
            "off" => work.notes.carried(directive),
            "default" => work
                .notes
                .approximated(directive, "Location fields of servers are not changed"),
            _ => work
                .notes
                .left_out(directive, "Location fields of servers are not changed"),
        }
    }
    for name in [
        "proxy_cookie_path",
        "proxy_cookie_domain",
        "proxy_method",
        "proxy_set_body",
        "proxy_pass_request_body",
        "proxy_pass_request_headers",
    ] {
        for directive in scope.all(name) {
            match directive.argument(0) {
                "off" if name.starts_with("proxy_cookie") => work.notes.carried(directive),
                "on" if name.starts_with("proxy_pass_") => work.notes.carried(directive),
                _ => work.notes.left_out(directive, "Onrush has no equivalent"),
            }
        }
    }
}

/// `proxy_bind` and `grpc_bind`: Onrush cannot choose the local address of connections to servers.
fn bind<'a>(work: &mut Context<'a>, scope: &Scope<'a>, module: Module) {
    if let Some(directive) = scope.one(&module.directive("bind")) {
        match directive.argument(0) {
            "off" => work.notes.carried(directive),
            _ => work.notes.left_out(directive, "Onrush has no equivalent"),
        }
    }
}
