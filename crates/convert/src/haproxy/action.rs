//! Actions of rules: `deny`, `return`, `redirect`, `set-header` and others.

use super::fields::{edit_request, edit_response, named};
use super::format::{Side, difference, template};
use super::passwords::auth;
use super::path_rewrite::{PathRewrite, is_unanchored, path_rewrite};
use super::proxy::words;
use super::request_changes::{FieldChange, Names, Part, PathState};
use super::state::State;
use super::userlist::Userlist;
use super::work::Context;
use crate::settings::route::{Response, is_changeable};
use crate::source::directive::Directive;
use crate::source::guards::Guards;

#[derive(Clone, Debug)]
pub(super) enum RuleResult {
    On,
    /// No further `http-request` rule of this proxy is evaluated.
    Allowed,
    Served(Response),
}

/// Whether a line sets a forwarding header as Onrush does by itself.
pub(super) fn sets_forwarded_field(line: &Directive) -> bool {
    let words: Vec<&str> = line.words[1..].iter().map(String::as_str).collect();
    let [action, name, value, condition @ ..] = &words[..] else {
        return false;
    };
    if !matches!(*action, "set-header" | "add-header") {
        return false;
    }
    let name = name.to_ascii_lowercase();
    match (&*name, *value) {
        ("x-forwarded-proto", "%[ssl_fc,iif(https,http)]") => condition.is_empty(),
        ("x-forwarded-proto", "https") => matches!(condition, ["if", "{", "ssl_fc", "}"]),
        ("x-forwarded-proto", "http") => {
            matches!(
                condition,
                ["if", "!{", "ssl_fc", "}"] | ["unless", "{", "ssl_fc", "}"]
            )
        }
        ("x-forwarded-for", "%[src]" | "%ci") => condition.is_empty(),
        ("x-forwarded-host", "%[req.hdr(host)]" | "%[req.hdr(Host)]" | "%[hdr(host)]") => {
            condition.is_empty()
        }
        _ => false,
    }
}

/// Records the field of such a line for later conditions.
pub(super) fn record_forwarded_field(line: &Directive, state: &mut State) {
    let value = match (
        line.argument(1).to_ascii_lowercase().as_str(),
        line.argument(3),
    ) {
        ("x-forwarded-proto", "") => FieldChange::Set("{scheme}".to_owned()),
        ("x-forwarded-host", _) => FieldChange::Set("{host}".to_owned()),
        ("x-forwarded-for", _) => FieldChange::Set("{client.address}".to_owned()),
        _ => FieldChange::Unclear,
    };
    state
        .changed
        .change(Names::One(line.argument(1).to_owned()), value);
}

/// Applies an `http-request` rule.
pub(super) fn request<'a>(
    work: &mut Context<'_, 'a>,
    line: &'a Directive,
    proxy: &str,
    userlists: &[Userlist],
    state: &mut State,
) -> RuleResult {
    match line.argument(0) {
        "allow" => {
            work.notes.carried(line);
            RuleResult::Allowed
        }
        "deny" | "reject" | "tarpit" | "silent-drop" => RuleResult::Served(denied(work, line)),
        "return" => RuleResult::Served(returned(work, line)),
        "redirect" => RuleResult::Served(redirect(work, line, 2, proxy, state)),
        "auth" => {
            auth(work, line, userlists, state);
            RuleResult::On
        }
        "set-header" | "add-header" | "del-header" => {
            edit_request(work, line, proxy, state);
            RuleResult::On
        }
        "replace-path" | "replace-pathq" | "replace-uri" | "set-path" | "set-pathq" => {
            move_path(work, line, state);
            RuleResult::On
        }
        "capture"
        | "set-log-level"
        | "set-nice"
        | "set-mark"
        | "set-tos"
        | "set-fc-mark"
        | "set-fc-tos"
        | "strict-mode"
        | "set-priority-class"
        | "set-priority-offset"
        | "disable-l7-retry" => {
            let why = "responses do not differ: it only concerns logs, packet marks, priorities or retries";
            work.notes.without_effect(line, why);
            RuleResult::On
        }
        "set-var" | "set-var-fmt" | "unset-var" => {
            work.notes.without_effect(
                line,
                "variables have no equivalent; rules that use them have their own notes",
            );
            RuleResult::On
        }
        "normalize-uri" => {
            let how = "paths are always normalized for comparison; servers receive them as the client sent them";
            work.notes.approximated(line, how);
            RuleResult::On
        }
        "use-service" => {
            let why = "Onrush has no equivalent; the response is 501";
            work.notes.left_out(line, why);
            RuleResult::Served(Response::status(501))
        }
        action if action.starts_with("track-sc") || action.starts_with("sc-") => {
            let why = "Onrush has no stick tables; rate_limit limits requests per client address";
            work.notes.left_out(line, why);
            RuleResult::On
        }
        action => note_unknown_action(work, line, action, state),
    }
}

/// Notes an action that Onrush does not have.
fn note_unknown_action<'a>(
    work: &mut Context<'_, 'a>,
    line: &'a Directive,
    action: &str,
    state: &mut State,
) -> RuleResult {
    if action.starts_with("lua.") && work.guards == Guards::Closed {
        let why = "Onrush does not run Lua, and the script may refuse requests; the response is 501 (--open-guards lets requests pass)";
        work.notes.left_out(line, why);
        return RuleResult::Served(Response::status(501));
    }
    work.notes
        .left_out(line, format!("Onrush has no equivalent for {action}"));
    mark_unknown(line, state);
    RuleResult::On
}

fn move_path<'a>(work: &mut Context<'_, 'a>, line: &'a Directive, state: &mut State) {
    match path_rewrite(line) {
        Ok(Some(PathRewrite::Prefix { from, to })) => state.changed.move_path(&from, &to),
        Ok(Some(PathRewrite::Whole(_, path))) => state.changed.path = PathState::Constant(path),
        Ok(None) | Err(_) => return,
    }
    work.notes.carried(line);
    if is_unanchored(line) {
        let how = "only the start of a path is changed; HAProxy searches the whole path for the expression";
        work.notes.approximated(line, how);
    }
}

/// Marks the parts of a request that a rule may have changed as unknown.
pub(super) fn mark_unknown(line: &Directive, state: &mut State) {
    let changed = &mut state.changed;
    match line.argument(0) {
        "set-header" | "add-header" | "replace-header" | "replace-value" => {
            changed.change(
                Names::One(line.argument(1).to_owned()),
                FieldChange::Unclear,
            );
        }
        "del-header" => changed.change(named(line), FieldChange::Unclear),
        "set-path" | "replace-path" => changed.path = PathState::Unclear,
        "set-pathq" | "replace-pathq" | "set-uri" | "replace-uri" | "set-query" => {
            changed.path = PathState::Unclear;
            changed.mark_unknown(Part::Query);
        }
        "set-method" => changed.mark_unknown(Part::Method),
        "set-src" | "set-src-port" => changed.mark_unknown(Part::Client),
        "set-dst" | "set-dst-port" => changed.mark_unknown(Part::Port),
        action if action.starts_with("lua.") => changed.mark_all_unknown(),
        _ => {}
    }
}

/// The status after one of these words.
pub(super) fn status_of(words: &[&str], names: &[&str], default: u16) -> u16 {
    let at = words.iter().position(|word| names.contains(word));
    let status = at.and_then(|at| words.get(at + 1)?.parse().ok());
    status
        .filter(|status| (200..=599).contains(status))
        .unwrap_or(default)
}

fn denied<'a>(work: &mut Context<'_, 'a>, line: &'a Directive) -> Response {
    let words = words(line, 2);
    let default = match line.argument(0) {
        "tarpit" => 500,
        _ => 403,
    };
    let status = status_of(&words, &["deny_status", "status"], default);
    let how = match line.argument(0) {
        "tarpit" => "the response is sent at once, with an empty body",
        "silent-drop" => "the response is an empty 403; HAProxy sends nothing",
        _ => "the body is empty; HAProxy sends an error page",
    };
    if words
        .iter()
        .any(|word| matches!(*word, "string" | "lf-string" | "file" | "lf-file"))
    {
        return fixed(work, line, &words, status);
    }
    work.notes.approximated(line, how);
    Response::status(status)
}

fn returned<'a>(work: &mut Context<'_, 'a>, line: &'a Directive) -> Response {
    let words = words(line, 2);
    let status = status_of(&words, &["status"], 200);
    fixed(work, line, &words, status)
}

/// A fixed response with the status, fields and body of the line.
fn fixed<'a>(
    work: &mut Context<'_, 'a>,
    line: &'a Directive,
    words: &[&str],
    status: u16,
) -> Response {
    let mut body = None;
    let mut fields = Vec::new();
    work.notes.carried(line);
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let mut value = || words.next().copied().unwrap_or_default();
        match *word {
            "content-type" => fields.insert(0, ("Content-Type".to_owned(), value().to_owned())),
            "string" => body = Some(value().to_owned()),
            "lf-string" => {
                let text = value();
                match text.contains('%') {
                    true => work
                        .notes
                        .left_out(line, "a fixed response cannot contain samples"),
                    false => body = Some(text.to_owned()),
                }
            }
            "file" | "lf-file" => {
                let path = work.directory.join(value());
                match work.files.read(&path) {
                    Ok(text) => body = Some(text),
                    Err(why) => {
                        let why = format!("cannot read {}: {why}", path.display());
                        work.notes.left_out(line, why);
                    }
                }
            }
            "hdr" => {
                let (name, text) = (value(), words.next().copied().unwrap_or_default());
                match is_changeable(name) && !text.contains('%') {
                    true => fields.push((name.to_owned(), text.to_owned())),
                    false => work.notes.left_out(
                        line,
                        format!("field {name:?} is not supported in a fixed response"),
                    ),
                }
            }
            "errorfile" | "errorfiles" => {
                value();
                let how = "the body is empty";
                work.notes.approximated(line, how);
            }
            "status" | "deny_status" => drop(value()),
            _ => {}
        }
    }
    let body = body.filter(|body| !body.is_empty() && !matches!(status, 204 | 205 | 304));
    Response::Respond {
        status,
        body,
        fields,
    }
}

/// A redirect whose words start at index `begin` of the line.
pub(super) fn redirect<'a>(
    work: &mut Context<'_, 'a>,
    line: &'a Directive,
    begin: usize,
    proxy: &str,
    state: &mut State,
) -> Response {
    let words = words(line, begin);
    let status = match status_of(&words, &["code"], 302) {
        status @ (301 | 302 | 303 | 307 | 308) => status,
        _ => 302,
    };
    let drops_query = words.contains(&"drop-query");
    let side = Side::Request(&state.changed, proxy);
    let rest = template(if drops_query { "%[path]" } else { "%[url]" }, side);
    let kinds = ["scheme", "prefix", "location"];
    let at = words.iter().position(|word| kinds.contains(word));
    let text = at.and_then(|at| words.get(at + 1)).copied();
    let text = text.unwrap_or_default();
    let to = match at.map(|at| words[at]) {
        Some("scheme") => template(text, side).and_then(|scheme| {
            let host = template("%[req.hdr(host)]", side)?;
            Ok(format!("{scheme}://{host}{}", rest?))
        }),
        Some("prefix") => match text {
            "/" => rest,
            text => template(text, side).and_then(|prefix| Ok(format!("{prefix}{}", rest?))),
        },
        Some("location") => template(text, side),
        _ => Err("a redirect without a location".to_owned()),
    };
    if let Some(how) = difference(text) {
        work.notes.approximated(line, how);
    }
    for word in ["ignore-empty", "clear-cookie"] {
        if words.contains(&word) {
            work.notes
                .left_out(line, format!("Onrush has no equivalent for {word}"));
        }
    }
    if let Some(at) = words.iter().position(|word| *word == "set-cookie") {
        let cookie = words.get(at + 1).copied().unwrap_or_default();
        state.redirect_cookie = Some(format!("{cookie}; path=/;"));
    }
    let is_place = |to: &String| {
        let begins = to.starts_with(['/', '{']) || to.contains("://");
        begins && !to.contains(char::is_whitespace) && !to.contains("://{uri}")
    };
    match to {
        Ok(to) if is_place(&to) => {
            work.notes.carried(line);
            Response::Redirect { to, status }
        }
        Ok(to) => {
            let why = format!("{to:?} is not a valid location; the response is 404");
            work.notes.left_out(line, why);
            Response::status(404)
        }
        Err(sample) => {
            let why = format!("Onrush has no equivalent for {sample}; the response is 404");
            work.notes.left_out(line, why);
            Response::status(404)
        }
    }
}

/// Applies a rule for responses.
pub(super) fn response<'a>(work: &mut Context<'_, 'a>, line: &'a Directive, state: &mut State) {
    match line.argument(0) {
        "set-header" | "add-header" | "del-header" => match line.name() {
            "http-after-response" => edit_response(work, line, &mut state.after),
            _ => edit_response(work, line, &mut state.response),
        },
        "deny" | "reject" | "silent-drop" => {
            let words = words(line, 2);
            let status = status_of(&words, &["deny_status", "status"], 502);
            state.refused_response = Some(status);
            let how = "the body is empty, and the request is not forwarded to a server";
            work.notes.approximated(line, how);
        }
        "allow" => {
            state.allowed.push(match line.name() {
                "http-response" => "http-response",
                _ => "http-after-response",
            });
            work.notes.carried(line);
        }
        "set-log-level" | "capture" | "set-nice" | "set-mark" | "set-tos" | "set-var"
        | "strict-mode" => {
            work.notes.without_effect(line, "responses do not differ");
        }
        action => work.notes.left_out(
            line,
            format!("Onrush has no equivalent for {action} of responses"),
        ),
    }
}
