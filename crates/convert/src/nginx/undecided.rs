//! An `if` whose condition Onrush cannot evaluate: variables that it sets become unknown, and if it refuses requests,
//! the result refuses all of them.

use super::map::Map;
use super::variable::{Constants, expanded, names, value_of};
use crate::source::directive::Directive;
use crate::source::guards::Guards;

/// Note on an `if` that refuses requests.
pub(super) const CLOSED: &str =
    "every request that reaches the condition is refused (--open-guards lets requests pass)";

/// State of requests inside such an `if`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct UnknownIf {
    /// Number of open blocks, from this one on.
    depth: usize,
    /// Whether it refuses requests.
    pub(super) closes: bool,
    subject: Subject,
}

/// Subject of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Subject {
    /// The identity of the client.
    Client,
    Other,
}

/// First characters of constants that mark a variable as unknown. No variable of nginx starts with them.
const UNKNOWN_CLIENT: char = '!';
const UNKNOWN_OTHER: char = '?';

/// Prefixes of variables that identify the client.
const CLIENT: [&str; 11] = [
    "auth_",
    "geoip",
    "http_authorization",
    "invalid_referer",
    "jwt_",
    "oidc_",
    "proxy_protocol_addr",
    "realip_remote_addr",
    "remote_user",
    "secure_link",
    "ssl_client_",
];

impl UnknownIf {
    /// `leads` finds rewrites that lead to a location that refuses requests.
    pub(super) fn new(
        guards: Guards,
        maps: &[Map<'_>],
        constants: &Constants,
        directive: &Directive,
        leads: &dyn Fn(&Directive) -> bool,
    ) -> UnknownIf {
        let words = directive.arguments().join(" ");
        let subject = match is_about_client(&words, constants, maps) {
            true => Subject::Client,
            false => Subject::Other,
        };
        let mut acts = directive.inside().iter();
        let is_refusal = |act: &Directive| refuses(act, subject, &words) || leads(act);
        UnknownIf {
            depth: 1,
            closes: guards == Guards::Closed && acts.any(is_refusal),
            subject,
        }
    }

    /// The state inside one more block.
    pub(super) fn inner(self) -> UnknownIf {
        UnknownIf {
            depth: self.depth + 1,
            ..self
        }
    }

    /// The state after the innermost block.
    pub(super) fn outer(self) -> Option<UnknownIf> {
        let depth = self.depth - 1;
        (depth > 0).then_some(UnknownIf { depth, ..self })
    }

    /// Marks a variable that the `if` sets as unknown.
    pub(super) fn mark(self, name: &str, constants: &mut Constants) {
        let mark = match self.subject {
            Subject::Client => UNKNOWN_CLIENT,
            Subject::Other => UNKNOWN_OTHER,
        };
        constants.push((format!("{mark}{name}"), String::new()));
    }
}

/// Whether an `if` sets variables.
pub(super) fn sets(directive: &Directive) -> bool {
    let mut inside = directive.inside().iter();
    inside.any(|inside| inside.name() == "set")
}

/// Sets a variable under a known condition. It becomes unknown if its value contains an unknown variable.
pub(super) fn set(name: &str, value: &str, constants: &mut Constants) {
    let of_value = names(value);
    let mark = of_value.iter().find_map(|name| mark_of(name, constants));
    let text = expanded(value, constants);
    constants
        .retain(|(known, _)| known.strip_prefix([UNKNOWN_CLIENT, UNKNOWN_OTHER]) != Some(name));
    constants.push((name.to_owned(), text));
    constants.extend(mark.map(|mark| (format!("{mark}{name}"), String::new())));
}

/// Why a variable is unknown, if it is.
pub(super) fn why_unknown(name: &str, constants: &Constants) -> Option<String> {
    let mark = mark_of(name, constants)?;
    Some(match value_of(&format!("{mark}{name}"), constants) {
        Some("") | None => format!("${name} is set under a condition that Onrush cannot evaluate"),
        Some(why) => why.to_owned(),
    })
}

/// Marks a variable about the client as unknown, because its value differs from nginx's.
pub(super) fn mark_client(name: &str, why: &str, constants: &mut Constants) {
    constants.push((format!("{UNKNOWN_CLIENT}{name}"), why.to_owned()));
}

fn mark_of(name: &str, constants: &Constants) -> Option<char> {
    let is_marked = |mark: &char| value_of(&format!("{mark}{name}"), constants).is_some();
    [UNKNOWN_CLIENT, UNKNOWN_OTHER].into_iter().find(is_marked)
}

/// Whether an act of the block refuses requests. A 404 for a missing file is not a refusal of the client.
fn refuses(act: &Directive, subject: Subject, words: &str) -> bool {
    let is_about_files = words.starts_with("(-") || words.starts_with("(!-");
    match (act.name(), act.argument(0).parse::<u16>()) {
        ("return", Ok(404)) => !is_about_files,
        ("return", Ok(400..=499)) => true,
        ("return" | "rewrite", _) => subject == Subject::Client,
        _ => false,
    }
}

fn is_about_client(words: &str, constants: &Constants, maps: &[Map<'_>]) -> bool {
    names(words).iter().any(|name| {
        let is_known = CLIENT.iter().any(|known| name.starts_with(known));
        if is_known || mark_of(name, constants) == Some(UNKNOWN_CLIENT) {
            return true;
        }
        if let Some(value) = value_of(name, constants) {
            let is_other = |(known, _): &&(String, String)| known != name;
            let others = constants.iter().filter(is_other).cloned().collect();
            return is_about_client(value, &others, maps);
        }
        // A map may use earlier maps.
        let Some(at) = maps.iter().position(|map| map.target() == name) else {
            return false;
        };
        is_about_client(maps[at].source(), constants, &maps[..at])
    })
}
