//! `try_files`.

use super::internal;
use super::work::{State, Work};
use crate::source::directive::Directive;

/// Result of a `try_files`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Tried {
    pub(super) looks_for: LooksFor,
    /// File below the directory that is served if no other is found.
    pub(super) fallback: Option<String>,
}

/// Files that a path may name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum LooksFor {
    /// A file, or a directory with an index file.
    #[default]
    Index,
    /// Only a file; a directory counts as missing.
    FilesAlone,
}

/// Reads a `try_files`; `prefix` is the path of the directory.
pub(super) fn try_files<'a>(
    work: &mut Work<'a>,
    state: &State<'a>,
    directive: &'a Directive,
    prefix: &str,
) -> Tried {
    let words: Vec<&str> = directive.arguments().iter().map(String::as_str).collect();
    let last = match words[..] {
        ["$uri", "$uri/", "=404" | "=403"] => {
            work.notes.carried(directive);
            return Tried::default();
        }
        ["$uri", "=404"] => {
            let how = "a directory is redirected to, and its index file is sent";
            work.notes.approximated(directive, how);
            return Tried::default();
        }
        ["$uri", "$uri/", last] | ["$uri", last] => last,
        // The fallback is served whenever it exists, so the status after it is unused.
        ["$uri", "$uri/", file, "=404"] | ["$uri", file, "=404"] => file,
        _ => "",
    };
    let last = last.split('?').next().unwrap_or_default();
    let last = last.trim_end_matches("$is_args$args");
    if let Some(other) = internal::stranger(state, last) {
        let why = format!(
            "{last} is {}'s, which does something else with it; what is missing is 404",
            other.directive.shown()
        );
        work.notes.left_out(directive, why);
        return Tried::default();
    }
    let file = last.strip_prefix(prefix).filter(|file| {
        !file.is_empty() && !file.contains('$') && !file.ends_with('/') && !file.ends_with(".php")
    });
    let Some(file) = file else {
        let why = "the file that was asked for is looked for, or a directory's index; what is missing is 404";
        work.notes.left_out(directive, why);
        return Tried::default();
    };
    let looks_for = match words.contains(&"$uri/") {
        true => LooksFor::Index,
        false => LooksFor::FilesAlone,
    };
    let how = match looks_for {
        LooksFor::Index => {
            "the file is served with what is said here, also where a directory has no index file"
        }
        LooksFor::FilesAlone => {
            "the file is served with what is said here; a directory without a slash behind it is redirected to the one with it"
        }
    };
    work.notes.approximated(directive, how);
    Tried {
        looks_for,
        fallback: Some(file.trim_start_matches('/').to_owned()),
    }
}
