//! `files`: static files below a directory.

use toml::Spanned;
use toml::de::DeValue;

use super::compress::read_codings;
use crate::diagnostic::Diagnostics;
use crate::limits;
use crate::plan::{Action, Coding, Files};
use crate::section::{Keys, Kind, Section};
use crate::toml_values::{is_false, is_true};
use crate::value::Invalid;

pub(super) fn read_files(
    value: &Spanned<DeValue<'_>>,
    findings: &mut Diagnostics<'_>,
) -> Option<Action> {
    const EXPECTED: &str = "a table such as { root = \"/srv/www\" }";
    const ROOT: &str = "a directory such as \"/srv/www\"";
    const KEYS: Keys = Keys::new(&[
        "root",
        "index",
        "hidden",
        "precompressed",
        "listing",
        "fallback",
    ]);
    const INDEX: Kind<String> = Kind {
        expected: "a list of file names such as [\"index.html\"]",
        parse: |text| {
            if matches!(text, "" | "." | "..") || text.contains(['/', '\0']) {
                return Err(Invalid::new(format!(
                    "{text:?} is not a file name: expected one such as \"index.html\""
                )));
            }
            Ok(text.to_owned())
        },
    };
    const FALLBACK: Kind<String> = Kind {
        expected: "a file beneath root such as \"index.html\"",
        parse: |text| {
            let path = text.strip_prefix('/').unwrap_or(text);
            let is_bad = |name| matches!(name, "" | "." | "..");
            if path.split('/').any(is_bad) || path.contains('\0') {
                return Err(Invalid::new(format!(
                    "{text:?} is not a file beneath root: expected one such as \"index.html\""
                )));
            }
            Ok(path.to_owned())
        },
    };
    let section = Section::of("files", value, EXPECTED, KEYS, findings)?;
    section.require("root", ROOT, findings);
    let index = section.read_list("index", INDEX, findings);
    let hidden = section.truth("hidden", findings);
    let precompressed = read_precompressed(&section, findings);
    let listing = section.truth("listing", findings);
    let fallback = section.read("fallback", FALLBACK, findings);
    Some(Action::Files(Files {
        root: section.path("root", ROOT, findings)?,
        index: index.unwrap_or_else(limits::index_default),
        hidden: hidden.unwrap_or(false),
        precompressed,
        listing: listing.unwrap_or(false),
        fallback,
    }))
}

fn read_precompressed(files: &Section<'_, '_>, findings: &mut Diagnostics<'_>) -> Vec<Coding> {
    match files.value("precompressed") {
        None => Vec::new(),
        Some(value) if is_false(value) => Vec::new(),
        Some(value) if is_true(value) => limits::PRECOMPRESSED_CODINGS.to_vec(),
        Some(_) => read_codings(files, "precompressed", findings).unwrap_or_default(),
    }
}
