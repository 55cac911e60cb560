//! `try_files`: which files are looked for, and what there is where none is found.

use super::internal;
use super::work::{State, Work};
use crate::source::directive::Directive;

/// What is looked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Tried {
    pub(super) looks_for: LooksFor,
    /// The file that is served where none is found, beneath the directory.
    pub(super) fallback: Option<String>,
}

/// What a path may be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum LooksFor {
    /// A file, or a directory with an index file.
    #[default]
    Index,
    /// A file alone: a directory gets what is not found.
    FilesAlone,
}

/// What a `try_files` says; `prefix` is what the directory stands for.
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
        // What is behind a file that is there is never tried.
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
