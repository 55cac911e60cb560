//! Types of values that several sections use.

use toml::Spanned;
use toml::de::DeValue;

use crate::diagnostic::{Diagnostics, Span};
use crate::plan::{FilePath, Networks};
use crate::section::{Kind, Section};
use crate::toml_values::{as_text, parsed, path_of, read_texts};
use crate::value::{self, Invalid};

pub(super) const TIMEOUT: Kind<std::time::Duration> = Kind {
    expected: "a duration such as \"10s\"",
    parse: value::parse_timeout,
};

pub(super) const NETWORK: Kind<crate::plan::Network> = Kind {
    expected: "a network such as \"10.0.0.0/8\", or a list of them",
    parse: value::parse_network,
};

pub(super) const REQUEST_BODY_MAX: Kind<Option<u64>> = Kind {
    expected: "a size such as \"10m\", or \"off\" for no limit",
    parse: value::parse_request_body_max,
};

pub(super) const MEDIA_TYPE: Kind<String> = Kind {
    expected: "a list of media types such as [\"text/*\", \"application/json\"]",
    parse: |text| {
        let is_type = text.split_once('/').is_some_and(|(kind, subtype)| {
            value::is_token(kind)
                && !kind.contains('*')
                && (subtype == "*" || value::is_token(subtype) && !subtype.contains('*'))
        });
        if !is_type {
            return Err(Invalid::new(format!(
                "{text:?} is not a media type: expected one such as \"text/html\", or \"text/*\" for all of a kind"
            )));
        }
        Ok(text.to_ascii_lowercase())
    },
};

pub(super) fn read_networks(
    section: &Section<'_, '_>,
    key: &str,
    findings: &mut Diagnostics<'_>,
) -> Option<Networks> {
    section
        .read_nonempty_list(key, NETWORK, findings)
        .map(Networks)
}

/// Reads a path or a list of paths; empty without the key.
pub(super) fn read_paths(
    section: &Section<'_, '_>,
    key: &str,
    example: &str,
    findings: &mut Diagnostics<'_>,
) -> Vec<FilePath> {
    section.refuse_empty(key, example, findings);
    let texts = section
        .value(key)
        .and_then(|value| read_texts(key, value, example, findings));
    let texts = texts.into_iter().flatten();
    texts
        .filter_map(|text| path_of(&text, example, findings))
        .collect()
}

/// Place of a key's value, or of the table that lacks it.
pub(super) fn place_of_value(section: &Section<'_, '_>, key: &str) -> Span {
    let value = section.value(key);
    value.map_or_else(|| section.span(), Spanned::span)
}

/// Parses a string that replaces a table.
pub(super) fn parse_in_place<T>(
    value: &Spanned<DeValue<'_>>,
    kind: Kind<T>,
    findings: &mut Diagnostics<'_>,
) -> Option<T> {
    parsed(&as_text(value)?, kind.parse, findings)
}
