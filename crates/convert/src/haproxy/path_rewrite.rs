//! Rules that change the path of forwarded requests.

use super::request_changes::RequestChanges;
use crate::expression::condition::{Atom, Path};
use crate::expression::decide::Formula;
use crate::expression::pattern::prefix_pattern;
use crate::source::directive::Directive;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PathRewrite {
    /// Replaces the prefix `from` by `to`.
    Prefix { from: String, to: String },
    /// Replaces the whole path if it fulfils the condition.
    Whole(Path, String),
}

const WHY: &str = "Onrush can only replace the start of a path";

/// The condition of a rule, combined with the path that the rule changes.
pub(super) fn narrowed(line: &Directive, formula: Formula, changed: &RequestChanges) -> Formula {
    let path = match path_rewrite(line) {
        Ok(None) => return formula,
        Ok(Some(PathRewrite::Prefix { from, .. })) => Path::Prefix(from),
        Ok(Some(PathRewrite::Whole(path, _))) => path,
        Err(why) => {
            return Formula::All(vec![formula, Formula::Unknown(why)]);
        }
    };
    if path == Path::Prefix("/".to_owned()) {
        return formula;
    }
    let path = changed.on_original(Formula::Atom(Atom::Path(path)));
    Formula::All(vec![formula, path])
}

/// The change of the path by a rule; none for other rules. Fails if Onrush has no equivalent.
pub(super) fn path_rewrite(line: &Directive) -> Result<Option<PathRewrite>, String> {
    let (pattern, target) = match (line.argument(0), line.argument(1), line.argument(2)) {
        ("replace-path" | "replace-pathq" | "replace-uri", pattern, target) => {
            (pattern.to_owned(), target.to_owned())
        }
        ("set-path", text, _) => match set(text) {
            Set::Whole(path) => {
                return Ok(Some(PathRewrite::Whole(Path::Prefix("/".to_owned()), path)));
            }
            Set::Prefixed(to) => {
                let from = "/".to_owned();
                return Ok(Some(PathRewrite::Prefix { from, to }));
            }
            Set::Other => substituted(text).ok_or(WHY)?,
        },
        ("set-pathq", text, _) => substituted(text).ok_or(WHY)?,
        ("set-uri", ..) => return Err(WHY.to_owned()),
        _ => return Ok(None),
    };
    let pattern = match pattern.starts_with('/') {
        true => format!("^{pattern}"),
        false => pattern,
    };
    let is_bad = |letter: char| matches!(letter, '%' | '\\' | '?' | '#' | ' ' | '{' | '}' | '$');
    let simple = prefix_pattern(&pattern).ok_or(WHY)?;
    let Some(target) = target.strip_suffix("\\1") else {
        let is_whole = line.argument(0) == "replace-path" && target.starts_with('/');
        return match is_whole && !target.contains(is_bad) {
            true => Ok(Some(PathRewrite::Whole(simple.path, target))),
            false => Err(WHY.to_owned()),
        };
    };
    let is_place = target.is_empty() || target.starts_with('/');
    match (simple.path, simple.captured) {
        (Path::Prefix(from), Some(begin)) if is_place && !target.contains(is_bad) => {
            let to = format!("{target}{begin}").replace("//", "/");
            Ok(Some(match (from.ends_with('/'), to.is_empty()) {
                // A path must begin with a slash.
                (false, true) => PathRewrite::Prefix {
                    from: format!("{from}/"),
                    to: "/".to_owned(),
                },
                (true, true) => PathRewrite::Prefix {
                    from,
                    to: "/".to_owned(),
                },
                (_, false) => PathRewrite::Prefix { from, to },
            }))
        }
        _ => Err(WHY.to_owned()),
    }
}

enum Set {
    Whole(String),
    /// A prefix to put before the path.
    Prefixed(String),
    Other,
}

fn set(text: &str) -> Set {
    let (text, is_prefix) = match text.strip_suffix("%[path]") {
        Some(prefix) => (prefix.trim_end_matches('/'), true),
        None => (text, false),
    };
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte);
    if !text.bytes().all(is_plain) || !(text.starts_with('/') || is_prefix && text.is_empty()) {
        return Set::Other;
    }
    match is_prefix {
        true => Set::Prefixed(format!("{text}/")),
        false => Set::Whole(text.to_owned()),
    }
}

/// Pattern and target of `%[path,regsub(…)]` in the form of `replace-path`: the rest after the match stays.
fn substituted(text: &str) -> Option<(String, String)> {
    let inner = text
        .strip_prefix("%[path,regsub(")
        .or(text.strip_prefix("%[pathq,regsub("))?;
    let (pattern, target) = inner.strip_suffix(")]")?.split_once(',')?;
    let target = target.split(',').next().unwrap_or_default();
    Some((format!("{pattern}(.*)"), format!("{target}\\1")))
}

/// Whether HAProxy searches the whole path for the expression, and Onrush only its start.
pub(super) fn is_unanchored(line: &Directive) -> bool {
    let text = line.argument(1);
    match line.argument(0).starts_with("replace") {
        true => text.starts_with('/'),
        false => substituted(text).is_some_and(|(pattern, _)| pattern.starts_with('/')),
    }
}
