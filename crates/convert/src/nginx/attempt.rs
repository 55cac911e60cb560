//! `try_files`.

use super::internal_redirect;
use super::work::{Context, State};
use crate::source::directive::Directive;

/// Result of a `try_files`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct TryFiles {
    pub(super) looks_for: Lookup,
    /// File below the directory that is served if no other is found.
    pub(super) fallback: Option<String>,
}

/// Files that a path may name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Lookup {
    /// A file, or a directory with an index file.
    #[default]
    Index,
    /// Only a file; a directory counts as missing.
    FilesAlone,
}

/// Reads a `try_files`; `prefix` is the path of the directory.
pub(super) fn try_files<'a>(
    work: &mut Context<'a>,
    state: &State<'a>,
    directive: &'a Directive,
    prefix: &str,
) -> TryFiles {
    let words: Vec<&str> = directive.arguments().iter().map(String::as_str).collect();
    let last = match words[..] {
        ["$uri", "$uri/", "=404" | "=403"] => {
            work.notes.carried(directive);
            return TryFiles::default();
        }
        ["$uri", "=404"] => {
            let how =
                "a directory is redirected to the path with a slash, and its index file is sent";
            work.notes.approximated(directive, how);
            return TryFiles::default();
        }
        ["$uri", "$uri/", last] | ["$uri", last] => last,
        // The fallback is served whenever it exists, so the status after it is unused.
        ["$uri", "$uri/", file, "=404"] | ["$uri", file, "=404"] => file,
        _ => "",
    };
    let last = last.split('?').next().unwrap_or_default();
    let last = last.trim_end_matches("$is_args$args");
    if let Some(other) = internal_redirect::conflicting_location(state, last) {
        let why = format!(
            "{last} is matched by {}, which treats it differently; the response is 404 if no file is found",
            other.directive.shown()
        );
        work.notes.left_out(directive, why);
        return TryFiles::default();
    }
    let file = last.strip_prefix(prefix).filter(|file| {
        !file.is_empty() && !file.contains('$') && !file.ends_with('/') && !file.ends_with(".php")
    });
    let Some(file) = file else {
        let why = "only the requested file, or the index file of a directory, is searched for; the response is 404 if no file is found";
        work.notes.left_out(directive, why);
        return TryFiles::default();
    };
    let looks_for = match words.contains(&"$uri/") {
        true => Lookup::Index,
        false => Lookup::FilesAlone,
    };
    let how = match looks_for {
        Lookup::Index => {
            "the file is served with the settings of this location, also if a directory has no index file"
        }
        Lookup::FilesAlone => {
            "the file is served with the settings of this location; a directory without a slash at its end is redirected to the path with the slash"
        }
    };
    work.notes.approximated(directive, how);
    TryFiles {
        looks_for,
        fallback: Some(file.trim_start_matches('/').to_owned()),
    }
}
