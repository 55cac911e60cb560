//! Files of a directory: `root`, `alias`, `index`, `autoindex`.

use std::path::Path as FilePath;

use super::attempt::{Lookup, try_files};
use super::internal_redirect;
use super::scope::Scope;
use super::variable::expanded;
use super::work::{Context, RouteContext, State};
use crate::document::Value;
use crate::expression::condition::Path;
use crate::settings::route::Response;
use crate::source::directive::Directive;

/// Files of the location's directory, or of its subdirectory `below`.
pub(super) fn files<'a>(
    work: &mut Context<'a>,
    state: &State<'a>,
    spot: &RouteContext<'_>,
    below: Option<&str>,
) -> Response {
    let scope = &state.scope;
    let (root, alias) = (scope.one("root"), scope.own("alias"));
    let Some(directory) = directory(work, alias.or(root), spot) else {
        return Response::status(404);
    };
    let directory = match below {
        Some(below) => format!("{}{below}", directory.trim_end_matches('/')),
        None => directory,
    };
    if alias.is_some_and(|alias| is_file(work, alias)) {
        return Response::File(directory);
    }
    if let Path::Exact(_) = spot.when.path()
        && alias.is_some_and(|alias| !alias.argument(0).ends_with('/'))
    {
        return Response::File(directory);
    }
    if let Some(directive) = alias
        && let Err(why) = alias_fits(directive, spot)
    {
        work.notes.left_out(directive, why);
        return Response::status(404);
    }
    let mut keys = vec![("root".to_owned(), Value::Text(directory))];
    let tried = scope.own("try_files").map(|directive| {
        let prefix = match spot.when.path() {
            Path::Prefix(prefix) if alias.is_some() || below.is_some() => prefix,
            _ => "/",
        };
        try_files(work, state, directive, prefix)
    });
    let tried = tried.unwrap_or_default();
    let names = match tried.looks_for {
        Lookup::FilesAlone => Vec::new(),
        Lookup::Index => index(work, state, alias.or(root)),
    };
    if names != ["index.html"] {
        keys.push(("index".to_owned(), Value::texts(names)));
    }
    // nginx also serves files whose names begin with a dot.
    keys.push(("hidden".to_owned(), Value::Truth(true)));
    if let Some(directive) = scope.one("gzip_static") {
        work.notes.carried(directive);
        if directive.argument(0) != "off" {
            keys.push(("precompressed".to_owned(), Value::texts(["gzip"])));
        }
    }
    if let Some(directive) = scope.one("autoindex") {
        work.notes.carried(directive);
        if directive.argument(0) == "on" {
            keys.push(("listing".to_owned(), Value::Truth(true)));
            let how = "directory listings have Onrush's own format";
            work.notes.approximated(directive, how);
            listings(work, scope);
        }
    }
    let fallback = tried.fallback.map(Value::Text);
    keys.extend(fallback.map(|file| ("fallback".to_owned(), file)));
    Response::Files(keys)
}

/// The directory of the files; none if no file can be found.
fn directory<'a>(
    work: &mut Context<'a>,
    said: Option<&'a Directive>,
    spot: &RouteContext<'_>,
) -> Option<String> {
    let directory = match said {
        Some(directive) => {
            let text = expanded(directive.argument(0), spot.constants);
            if text.contains('$') {
                let why = "directory names cannot contain variables; the response is 404";
                work.notes.left_out(directive, why);
                return None;
            }
            work.notes.carried(directive);
            work.path(&text)
        }
        None => work.path("html"),
    };
    let is_relative = said.is_none_or(|said| !said.argument(0).starts_with('/'));
    // nginx starts without the directory, too, and finds no file there.
    let is_missing = is_relative && work.files.list(FilePath::new(&directory)).is_empty();
    (!is_missing).then_some(directory)
}

fn listings<'a>(work: &mut Context<'a>, scope: &Scope<'a>) {
    if let Some(format) = scope.one("autoindex_format") {
        match format.argument(0) {
            "html" => work.notes.carried(format),
            "json" => work.notes.approximated(
                format,
                "a directory listing is JSON for clients whose Accept prefers it",
            ),
            _ => work.notes.left_out(
                format,
                "a directory listing is HTML, or JSON for clients whose Accept prefers it",
            ),
        }
    }
    for name in ["autoindex_exact_size", "autoindex_localtime"] {
        if let Some(directive) = scope.one(name) {
            let how = "sizes and times have Onrush's own format";
            work.notes.approximated(directive, how);
        }
    }
}

/// Index files of a directory, except files that nginx handles in another location.
fn index<'a>(
    work: &mut Context<'a>,
    state: &State<'a>,
    directory: Option<&'a Directive>,
) -> Vec<String> {
    let said = state.scope.one("index");
    let default = ["index.html".to_owned()];
    let mut names = Vec::new();
    if let Some(said) = said {
        work.notes.carried(said);
    }
    for name in said.map_or(&default[..], Directive::arguments) {
        let is_name = !name.contains(['/', '$']) && !matches!(name.as_str(), "" | "." | "..");
        let other = internal_redirect::conflicting_for_index(state, name);
        let why = match other {
            _ if !is_name => "names of index files cannot contain slashes or variables".to_owned(),
            None => {
                if let Some(own) = internal_redirect::stricter_for_index(state, name) {
                    let how = format!(
                        "its settings do not apply to {name} as an index file or through try_files"
                    );
                    work.notes.approximated(own.directive, how);
                }
                names.push(name.clone());
                continue;
            }
            Some(other) => format!(
                "{name} in a directory may be matched by {}, which treats it differently: it is not used as an index file",
                other.directive.shown()
            ),
        };
        match (said, directory, other) {
            (Some(directive), _, _) | (None, Some(directive), _) => {
                work.notes.left_out(directive, why);
            }
            (None, None, Some(other)) => work.notes.approximated(other.directive, why),
            (None, None, None) => {}
        }
    }
    names
}

/// Whether an `alias` names an existing file.
fn is_file(work: &Context<'_>, alias: &Directive) -> bool {
    let name = alias.argument(0);
    let is_plain = !name.contains('$') && !name.ends_with('/');
    is_plain && work.files.read(FilePath::new(&work.path(name))).is_ok()
}

/// Checks that the path after the route's prefix is the path below the directory.
fn alias_fits(directive: &Directive, spot: &RouteContext<'_>) -> Result<(), &'static str> {
    let (Path::Prefix(prefix), true) = (spot.when.path(), spot.when.path().is_literal()) else {
        return Err(
            "Onrush finds files by the path after a prefix, and this location has none; the response is 404",
        );
    };
    let ends = |text: &str| text.ends_with('/');
    match ends(prefix) && !ends(directive.argument(0)) {
        true => Err(
            "the alias has no slash at its end, so nginx joins its last part with the path to one name; the response is 404",
        ),
        false => Ok(()),
    }
}
