//! Responses of `return` and `rewrite`: fixed responses and redirects.

use super::variable::{Piece, expanded, pieces, template, template_differences};
use super::work::{Context, State};
use crate::expression::condition::Path;
use crate::expression::decide::KnownRequests;
use crate::expression::pattern::{PrefixPattern, prefix_pattern};
use crate::settings::route::{Response, escaped};
use crate::source::directive::Directive;

/// The response of a `return`.
pub(super) fn returned<'a>(
    work: &mut Context<'a>,
    directive: &'a Directive,
    state: &State<'a>,
    given: &KnownRequests,
) -> Response {
    let (first, text) = (directive.argument(0), directive.argument(1));
    let has_text = directive.arguments().len() > 1;
    let status = match first.parse::<u16>() {
        Ok(status) => status,
        // A URL without a status is a redirect.
        Err(_) => return redirect(work, directive, first, 302, state, given),
    };
    if has_text && matches!(status, 301 | 302 | 303 | 307 | 308) {
        return redirect(work, directive, text, status, state, given);
    }
    if status == 444 {
        let how = "the response is an empty 403; nginx closes the connection without a response";
        work.notes.approximated(directive, how);
        return Response::status(403);
    }
    if !(200..=599).contains(&status) {
        let how = "expected a status from 200 to 599; the response is 500";
        work.notes.approximated(directive, how);
        return Response::status(500);
    }
    work.notes.carried(directive);
    let text = expanded(text, &state.constants);
    let mut literal = String::new();
    for piece in pieces(&text) {
        match piece {
            Piece::Text(text) => literal += &text,
            Piece::Variable(name) => {
                let why = format!("a fixed response cannot contain variables: ${name} is omitted");
                work.notes.left_out(directive, why);
            }
        }
    }
    if !has_text && status >= 300 {
        let how = "the body is empty; nginx sends an error page";
        work.notes.approximated(directive, how);
    }
    if literal.is_empty() || matches!(status, 204 | 205 | 304) {
        return Response::status(status);
    }
    let kind = kind_of_text(work, state, given);
    Response::Respond {
        status,
        body: Some(literal),
        fields: vec![("Content-Type".to_owned(), kind)],
    }
}

/// Content-Type of a fixed response: by the extension of an exact path, otherwise `default_type`.
fn kind_of_text<'a>(work: &mut Context<'a>, state: &State<'a>, given: &KnownRequests) -> String {
    if let Path::Exact(path) = given.condition.path()
        && let Some((_, ending)) = path
            .rsplit('/')
            .next()
            .and_then(|name| name.rsplit_once('.'))
    {
        let types = state.scope.all("types");
        let mut entries = types.iter().flat_map(|types| types.inside());
        let known = entries.find(|entry| entry.arguments().iter().any(|known| known == ending));
        if let Some(entry) = known {
            return entry.name().to_owned();
        }
    }
    let Some(kind) = state.scope.one("default_type") else {
        return "text/plain".to_owned();
    };
    work.notes.carried(kind);
    kind.argument(0).to_owned()
}

/// A redirect to a text with variables, or 404 if Onrush has no equivalent.
fn redirect<'a>(
    work: &mut Context<'a>,
    directive: &'a Directive,
    written: &str,
    status: u16,
    state: &State<'a>,
    given: &KnownRequests,
) -> Response {
    match location(written, state, given) {
        Ok(to) => {
            if to.contains("&{query}") {
                let how = "without a query in the request the location ends with &";
                work.notes.approximated(directive, how);
            }
            for how in template_differences(written) {
                work.notes.approximated(directive, how);
            }
            if to.contains("?{query}") {
                let how = "without a query in the request the location ends with ?";
                work.notes.approximated(directive, how);
            }
            work.notes.carried(directive);
            Response::Redirect { to, status }
        }
        Err(why) => {
            let why = format!("Onrush has no equivalent for {why}; the response is 404");
            work.notes.left_out(directive, why);
            Response::status(404)
        }
    }
}

/// The location of a redirect in the syntax of Onrush.
fn location(to: &str, state: &State<'_>, given: &KnownRequests) -> Result<String, String> {
    let to = expanded(to, &state.constants);
    let mut out = String::new();
    let pieces = pieces(&to);
    let mut plain = String::new();
    for piece in &pieces {
        match piece {
            Piece::Variable(name) if name == "1" => {
                out += &template(&plain, &state.constants)?;
                plain.clear();
                let captured = state.captured.as_ref().ok_or("$1 of this expression")?;
                push_captured(&mut out, captured, given)?;
            }
            Piece::Variable(name) => plain += &format!("${{{name}}}"),
            Piece::Text(text) => plain += text,
        }
    }
    out += &template(&plain, &state.constants)?;
    let out = out.replace("{path}?{query}", "{uri}");
    // nginx turns a path into an absolute URL; browsers do that themselves.
    let begins = out.starts_with(['/', '{']) || out.contains("://");
    if !begins || out.contains(char::is_whitespace) {
        return Err(format!("{out:?}, which is not a valid location"));
    }
    let behind_scheme = out.split_once("://").map(|(_, behind)| behind);
    let is_open = |text: &str| {
        ["{path", "{query}", "{uri}"]
            .iter()
            .any(|variable| text.starts_with(variable))
    };
    match behind_scheme.is_some_and(is_open) {
        true => Err(format!("{out:?}, which has no host")),
        false => Ok(out),
    }
}

/// Appends the text of `$1`.
fn push_captured(
    out: &mut String,
    captured: &PrefixPattern,
    given: &KnownRequests,
) -> Result<(), String> {
    let none = || "$1 of this expression".to_owned();
    let begin = captured.captured.as_ref().ok_or_else(none)?;
    let Path::Prefix(prefix) = &captured.path else {
        return Err(none());
    };
    if prefix == "/" {
        // The value of the path starts with a slash itself.
        match (begin.is_empty(), out.ends_with('/')) {
            (true, true) => drop(out.pop()),
            (true, false) => return Err(none()),
            (false, _) => {}
        }
        *out += "{path}";
        return Ok(());
    }
    let Path::Prefix(route) = given.condition.path() else {
        return Err(none());
    };
    // The route's prefix may be longer than the matched prefix.
    let more = route.strip_prefix(prefix.as_str()).ok_or_else(none)?;
    *out += &format!("{}{}{{path.rest}}", escaped(begin), escaped(more));
    Ok(())
}

/// Whether the replacement is a URL, which makes any `rewrite` a redirect.
pub(super) fn is_url(replacement: &str) -> bool {
    let mut begins = ["http://", "https://", "$scheme"].iter();
    begins.any(|begin| replacement.starts_with(begin))
}

/// The redirect of a `rewrite`; none if the rewrite is internal.
pub(super) fn redirected<'a>(
    work: &mut Context<'a>,
    directive: &'a Directive,
    state: &State<'a>,
    given: &KnownRequests,
) -> Option<Response> {
    let (replacement, flag) = (directive.argument(1), directive.argument(2));
    let status = match flag {
        "permanent" => 301,
        "redirect" => 302,
        _ if is_url(replacement) => 302,
        _ => return None,
    };
    // nginx appends the query of the client, unless the replacement ends with `?`.
    let to = match replacement.strip_suffix('?') {
        Some(to) => to.to_owned(),
        None if replacement.contains('?') => format!("{replacement}&$args"),
        None if replacement.ends_with("$request_uri") => replacement.to_owned(),
        None => format!("{replacement}$is_args$args"),
    };
    let state = State {
        captured: prefix_pattern(directive.argument(0)),
        ..state.clone()
    };
    Some(redirect(work, directive, &to, status, &state, given))
}
