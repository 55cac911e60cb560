//! Internal redirects of nginx: index files, error pages and the last argument of `try_files` are matched against the
//! locations again. Onrush serves the file in the original location, which is equivalent only if the file matches no
//! other location or a location with the same settings.

use super::location::Location;
use super::scope::Scope;
use super::work::State;
use crate::expression::automaton::{may_match_directory, may_match_with_name};
use crate::expression::condition::Path;
use crate::expression::pcre::with_pcre_semantics;
use crate::source::directive::Directive;

/// Directives of a location that serves plain files.
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

const ACCESS: [&str; 6] = [
    "allow",
    "deny",
    "auth_basic",
    "auth_basic_user_file",
    "auth_request",
    "satisfy",
];

/// The location that matches this path, and its index.
pub(super) fn matching_location<'s, 'a>(
    state: &'s State<'a>,
    uri: &str,
) -> Option<(usize, &'s Location<'a>)> {
    let mut locations = state.locations.iter().enumerate();
    locations.find(|(_, location)| location.path.path.holds(uri))
}

/// Returns the location that matches `uri`, if it is not the location being converted and would serve the file
/// differently.
pub(super) fn conflicting_location<'s, 'a>(
    state: &'s State<'a>,
    uri: &str,
) -> Option<&'s Location<'a>> {
    matching_location(state, uri)
        .filter(|(_, location)| {
            !is_own(state, location) && !is_alike(&location.scope, &state.scope)
        })
        .map(|(_, location)| location)
}

/// A location that may match the index file `name` of a directory here and treats it differently.
pub(super) fn conflicting_for_index<'s, 'a>(
    state: &'s State<'a>,
    name: &str,
) -> Option<&'s Location<'a>> {
    let own = state.captured.as_ref().map(|own| &own.path);
    // If the own location also matches the file, only the locations before it matter.
    let (below, end) = match own {
        Some(Path::Exact(file)) if !file.ends_with('/') => return None,
        Some(Path::Exact(directory)) => {
            return conflicting_location(state, &format!("{directory}{name}"));
        }
        Some(Path::Prefix(prefix)) => (prefix.as_str(), state.at),
        Some(Path::Pattern(pattern)) if !may_match_directory(&with_pcre_semantics(pattern)) => {
            return None;
        }
        Some(Path::Pattern(pattern)) if is_open(pattern) => ("/", state.at),
        None => ("/", state.at),
        Some(_) => ("/", state.locations.len()),
    };
    let locations = state.locations[..end].iter().enumerate();
    let mut others = locations.filter(|(_, location)| !is_own(state, location));
    others
        .find(|(at, location)| {
            let may_take = match &location.path.path {
                // An earlier prefix location would match the directory itself, unless it ends within the file name.
                Path::Prefix(path) if *at < state.at => {
                    let (_, begin) = path.rsplit_once('/').unwrap_or_default();
                    !begin.is_empty() && name.starts_with(begin)
                }
                Path::Exact(path) => path.starts_with(below) && path.ends_with(&format!("/{name}")),
                Path::Pattern(pattern) | Path::Within(_, pattern) => {
                    may_match_with_name(&with_pcre_semantics(pattern), below, name)
                }
                _ => true,
            };
            may_take && !is_alike(&location.scope, &state.scope)
        })
        .map(|(_, location)| location)
}

/// The location that matches the index file `name` of this directory and changes the response by directives of its own.
pub(super) fn stricter_for_index<'s, 'a>(
    state: &'s State<'a>,
    name: &str,
) -> Option<&'s Location<'a>> {
    const SAYS: [&str; 5] = ["add_header", "charset", "error_page", "expires", "gzip"];
    state.locations.iter().find(|location| {
        let may_take = match &location.path.path {
            Path::Exact(path) => path.ends_with(&format!("/{name}")),
            Path::Pattern(pattern) | Path::Within(_, pattern) => {
                may_match_with_name(&with_pcre_semantics(pattern), "/", name)
            }
            _ => false,
        };
        let says = |name: &&str| location.scope.own(name).is_some();
        may_take && !is_own(state, location) && SAYS.iter().any(says)
    })
}

fn is_own(state: &State<'_>, location: &Location<'_>) -> bool {
    let own = state.locations.get(state.at);
    own.is_some_and(|own| own.directive.number == location.directive.number)
}

/// Whether every path that starts with a match matches as well.
pub(super) fn is_open(pattern: &str) -> bool {
    !["$", "\\z", "\\Z", "\\b", "\\B"]
        .iter()
        .any(|edge| pattern.contains(edge))
}

/// Whether two scopes serve the same files to the same clients, and nothing else.
fn is_alike(one: &Scope<'_>, other: &Scope<'_>) -> bool {
    // Equal arguments give the same directory within one request, even with variables.
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

pub(super) fn has_same_access(one: &Scope<'_>, other: &Scope<'_>) -> bool {
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
