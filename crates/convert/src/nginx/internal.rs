//! Internal redirects of nginx: names of an index, pages of errors and the last word of `try_files` pass through the
//! locations again. Onrush serves such a file where it was asked for, which is the same only where no other location would
//! take it, or one that treats it no differently.

use regex::bytes::Regex;

use super::location::Location;
use super::scope::Scope;
use super::work::State;
use crate::condition::Path;
use crate::directive::Directive;
use crate::path::{has_top_level_choice, leading_literal};

/// What may stand in a location that serves plain files as others do.
const PLAIN: [&str; 30] = [
    "access_log",
    "add_header",
    "aio",
    "autoindex",
    "charset",
    "client_max_body_size",
    "default_type",
    "directio",
    "error_log",
    "error_page",
    "etag",
    "expires",
    "gzip",
    "gzip_comp_level",
    "gzip_disable",
    "gzip_min_length",
    "gzip_proxied",
    "gzip_static",
    "gzip_types",
    "gzip_vary",
    "if_modified_since",
    "include",
    "index",
    "internal",
    "location",
    "log_not_found",
    "open_file_cache",
    "root",
    "sendfile",
    "types",
];

/// Directives that say who is let in.
const ACCESS: [&str; 6] = [
    "allow",
    "deny",
    "auth_basic",
    "auth_basic_user_file",
    "auth_request",
    "satisfy",
];

/// The location that takes this path, and its place among the others.
pub(super) fn taker<'s, 'a>(state: &'s State<'a>, uri: &str) -> Option<(usize, &'s Location<'a>)> {
    let mut locations = state.locations.iter().enumerate();
    locations.find(|(_, location)| location.path.path.holds(uri))
}

/// Whether the location that takes `uri` is another one that does something else with it: that one.
pub(super) fn stranger<'s, 'a>(state: &'s State<'a>, uri: &str) -> Option<&'s Location<'a>> {
    taker(state, uri)
        .filter(|(_, location)| {
            !is_own(state, location) && !is_alike(&location.scope, &state.scope)
        })
        .map(|(_, location)| location)
}

/// The location that would take the index file `name` of a directory here, perhaps, and does something else with it.
pub(super) fn stranger_to_index<'s, 'a>(
    state: &'s State<'a>,
    name: &str,
) -> Option<&'s Location<'a>> {
    let own = state.captured.as_ref().map(|own| &own.path);
    // As long as the own location takes the file as well, only those before it matter.
    let (below, end) = match own {
        Some(Path::Exact(file)) if !file.ends_with('/') => return None,
        Some(Path::Exact(directory)) => return stranger(state, &format!("{directory}{name}")),
        Some(Path::Prefix(prefix)) => (prefix.as_str(), state.at),
        Some(Path::Pattern(pattern)) if has_no_directories(pattern) => return None,
        Some(Path::Pattern(pattern)) if is_open(pattern) => ("/", state.at),
        None => ("/", state.at),
        Some(_) => ("/", state.locations.len()),
    };
    let locations = state.locations[..end].iter().enumerate();
    let mut others = locations.filter(|(_, location)| !is_own(state, location));
    others
        .find(|(at, location)| {
            let may_take = match &location.path.path {
                // It would have taken the directory itself, unless it comes behind.
                Path::Prefix(path) if *at < state.at => {
                    let (_, begin) = path.rsplit_once('/').unwrap_or_default();
                    !begin.is_empty() && name.starts_with(begin)
                }
                Path::Exact(path) => path.starts_with(below) && path.ends_with(&format!("/{name}")),
                Path::Pattern(pattern) => may_match(pattern, below, name),
                _ => true,
            };
            may_take && !is_alike(&location.scope, &state.scope)
        })
        .map(|(_, location)| location)
}

/// Whether it is the location that the request is in.
fn is_own(state: &State<'_>, location: &Location<'_>) -> bool {
    let own = state.locations.get(state.at);
    own.is_some_and(|own| own.directive.number == location.directive.number)
}

/// Whether the expression is never found in a path that ends with a slash.
fn has_no_directories(pattern: &str) -> bool {
    let is_there = |regex: Regex| regex.is_match(b"/");
    pattern.ends_with('$')
        && is_of_segment(pattern.trim_start_matches("(?i)"))
        && !Regex::new(pattern).is_ok_and(is_there)
}

/// Whether the expression is found in what is longer, too.
fn is_open(pattern: &str) -> bool {
    !["$", "\\z", "\\Z", "\\b", "\\B"]
        .iter()
        .any(|edge| pattern.contains(edge))
}

/// Whether two places serve the same files to the same clients, and nothing but files.
fn is_alike(one: &Scope<'_>, other: &Scope<'_>) -> bool {
    // The same words are the same directory for one request, also with variables.
    let root = |scope: &Scope<'_>| scope.one("root").map(|root| root.arguments().to_vec());
    is_plain(one)
        && root(one) == root(other)
        && one.own("alias").is_none()
        && other.own("alias").is_none()
        && has_same_access(one, other)
}

/// Whether a location serves files and does nothing else.
pub(super) fn is_plain(scope: &Scope<'_>) -> bool {
    scope.own_level().all(|directive| {
        PLAIN.contains(&directive.name())
            || ACCESS.contains(&directive.name())
            || directive.name() == "try_files" && directive.argument(0) == "$uri"
    })
}

fn has_same_access(one: &Scope<'_>, other: &Scope<'_>) -> bool {
    let said = |scope: &Scope<'_>, name: &str| -> Vec<(String, Vec<String>)> {
        let names: &[&str] = match name {
            "allow" | "deny" => &["allow", "deny"],
            _ => &[name],
        };
        let all = scope.all_of(names).into_iter();
        all.map(|directive: &Directive| {
            (directive.name().to_owned(), directive.arguments().to_vec())
        })
        .collect()
    };
    ACCESS
        .iter()
        .all(|name| said(one, name) == said(other, name))
}

/// Whether an expression may be found in the path of an index file beneath `below`, though not in that of its directory.
/// When in doubt, it may.
fn may_match(pattern: &str, below: &str, name: &str) -> bool {
    let bare = pattern.trim_start_matches("(?i)");
    if let Some((prefix, found)) = in_prefix(bare) {
        return !are_apart(&prefix, below) && may_match(found, below, name);
    }
    // With the slash it would be found in the directory.
    let ended = ["(/|$)", "(?:/|$)", "($|/)", "(?:$|/)"]
        .iter()
        .find_map(|end| bare.strip_suffix(end));
    let whole = ended.map_or(bare.to_owned(), |begin| format!("{begin}$"));
    if is_of_segment(&whole) {
        let regex = Regex::new(&format!("(?i){whole}"));
        return regex.is_ok_and(|regex| regex.is_match(format!("/{name}").as_bytes()));
    }
    if has_top_level_choice(&whole) {
        return true;
    }
    let (below, name) = (
        below.to_ascii_lowercase(),
        format!("/{name}").to_ascii_lowercase(),
    );
    if let Some(rest) = whole.strip_prefix('^') {
        let literal = leading_literal(rest).to_ascii_lowercase();
        let is_elsewhere = are_apart(&literal, &below);
        // What lies in a directory of this name is found with its directory.
        let is_directory = literal.ends_with('/') && literal.len() == rest.len();
        if is_elsewhere || is_directory {
            return false;
        }
    }
    match whole.strip_suffix('$').filter(|rest| !rest.ends_with('\\')) {
        Some(rest) => {
            let tail = trailing_literal(rest).to_ascii_lowercase();
            name.ends_with(&tail) || tail.ends_with(&name)
        }
        None => true,
    }
}

/// The prefix of a location and an expression that is found behind it, of what [`Path::and`] makes of the two.
fn in_prefix(pattern: &str) -> Option<(String, &str)> {
    let (prefix, found) = pattern.strip_prefix('^')?.split_once("(?s-u:.*)(?")?;
    let literal = leading_literal(prefix);
    let (_, expression) = found.strip_suffix(')')?.split_once(':')?;
    (regex::escape(&literal) == prefix).then_some((literal, expression))
}

/// Whether no path begins with both.
fn are_apart(one: &str, other: &str) -> bool {
    let [one, other] = [one, other].map(str::to_ascii_lowercase);
    !one.starts_with(&other) && !other.starts_with(&one)
}

/// Whether all that the expression matches is in one part of a path, with the slash before it at most.
fn is_of_segment(pattern: &str) -> bool {
    let rest = pattern.strip_prefix('/').unwrap_or(pattern);
    let rest = rest.replace("[^/]", "x");
    let mut letters = rest.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '.' | '/' | '^' => return false,
            '[' if letters.peek() == Some(&'^') => return false,
            // Classes and edges may be anything.
            '\\' if letters.next().is_none_or(|escaped| {
                escaped == '/' || escaped.is_ascii_alphanumeric() && !matches!(escaped, 'd' | 'w')
            }) =>
            {
                return false;
            }
            _ => {}
        }
    }
    true
}

/// What every text that the expression matches ends with, as far as that is easily seen.
fn trailing_literal(pattern: &str) -> String {
    let mut tail: Vec<char> = Vec::new();
    let letters: Vec<char> = pattern.chars().collect();
    let mut at = letters.len();
    while at > 0 {
        let letter = letters[at - 1];
        let is_escaped = at > 1 && letters[at - 2] == '\\';
        match letter {
            _ if is_escaped && !letter.is_ascii_alphanumeric() => at -= 2,
            _ if is_escaped => break,
            'a'..='z' | 'A'..='Z' | '0'..='9' | '-' | '_' | '/' => at -= 1,
            _ => break,
        }
        tail.push(letter);
    }
    tail.iter().rev().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_may_be_found_in_an_index_file() {
        for (pattern, below, name, expected) in [
            (r"\.php$", "/", "index.php", true),
            (r"\.php$", "/", "index.html", false),
            (r"(?i)\.PHP$", "/", "index.php", true),
            (r"[^/]\.php(/|$)", "/", "index.html", false),
            (r"[^/]\.php(/|$)", "/", "index.php", true),
            (r"/\.(git|ht)", "/", "index.html", false),
            (r"(?i)\.(jpe?g|png)$", "/", "index.html", false),
            (r"^/admin/.*\.html$", "/", "index.html", true),
            (r"^/admin/.*\.html$", "/files/", "index.html", false),
            (r"^/admin/.*\.php$", "/", "index.html", false),
            (r"^/u/", "/", "index.html", false),
            (r"^/(a|b)/", "/", "index.html", true),
            (r"x|^/", "/", "index.html", true),
            (r"^/a/(?s-u:.*)(?:\.(sql|bak)$)", "/", "index.html", false),
            (r"^/a\-b/(?s-u:.*)(?i:\.PHP$)", "/", "index.php", true),
            (r"^/a/(?s-u:.*)(?:\.php$)", "/b/", "index.php", false),
        ] {
            assert_eq!(
                may_match(pattern, below, name),
                expected,
                "{pattern} {name}"
            );
        }
    }
}
