//! `compress` of the whole configuration and of routes, and lists of codings.

use toml::Spanned;
use toml::de::DeValue;

use super::kinds::MEDIA_TYPE;
use crate::diagnostic::Diagnostics;
use crate::plan::{Coding, Compress};
use crate::section::{Keys, Kind, Section};
use crate::toml_values::{is_false, is_true};
use crate::value;

const CODING: Kind<Coding> = Kind {
    expected: "a list of \"zstd\", \"br\" and \"gzip\"",
    parse: |text| {
        let known = [
            ("zstd", Coding::Zstd),
            ("br", Coding::Brotli),
            ("gzip", Coding::Gzip),
        ];
        value::parse_name("coding", text, &known)
    },
};

const SIZE: Kind<u64> = Kind {
    expected: "a size such as \"1k\"",
    parse: value::parse_size,
};

/// Reads `[compress]`, for routes without their own settings.
pub(super) fn read_default(
    file: &Section<'_, '_>,
    findings: &mut Diagnostics<'_>,
) -> Option<Compress> {
    read_compress("[compress]", file.value("compress")?, None, findings)
}

pub(super) fn read_of_route(
    route: &Section<'_, '_>,
    default: Option<&Compress>,
    findings: &mut Diagnostics<'_>,
) -> Option<Compress> {
    match route.value("compress") {
        Some(value) => read_compress("compress", value, default, findings),
        None => default.cloned(),
    }
}

/// Reads a value; keys missing from a table are taken from `default`.
fn read_compress(
    name: &str,
    value: &Spanned<DeValue<'_>>,
    default: Option<&Compress>,
    findings: &mut Diagnostics<'_>,
) -> Option<Compress> {
    const EXPECTED: &str =
        "true, false, or a table such as { types = [\"text/*\"], size_min = \"1k\" }";
    let default = default.cloned().unwrap_or_default();
    if is_true(value) {
        return Some(default);
    }
    if is_false(value) {
        return None;
    }
    let keys = Keys::new(&["codings", "types", "size_min"]);
    let section = Section::of(name, value, EXPECTED, keys, findings)?;
    Some(Compress {
        codings: read_codings(&section, "codings", findings).unwrap_or(default.codings),
        types: section
            .read_nonempty_list("types", MEDIA_TYPE, findings)
            .unwrap_or(default.types),
        size_min: section
            .read_number("size_min", SIZE, findings)
            .unwrap_or(default.size_min),
    })
}

/// Reads codings in order of preference, without duplicates.
pub(super) fn read_codings(
    section: &Section<'_, '_>,
    key: &str,
    findings: &mut Diagnostics<'_>,
) -> Option<Vec<Coding>> {
    let codings = section.read_nonempty_list(key, CODING, findings)?;
    let is_twice = |at: usize| codings[..at].contains(&codings[at]);
    if (0..codings.len()).any(is_twice) {
        let message = format!("{key} in {} has a coding twice", section.name());
        findings.error(section.place(key), message);
    }
    Some(codings)
}
