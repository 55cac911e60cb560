//! `upstream_headers`: fields of upstream responses that are not relayed to clients.

use crate::diagnostic::Diagnostics;
use crate::plan::UpstreamHeaders;
use crate::section::{Keys, Kind, Section};
use crate::value;

pub(super) const KEY: &str = "upstream_headers";

pub(super) fn read(
    at: &Section<'_, '_>,
    findings: &mut Diagnostics<'_>,
) -> Option<UpstreamHeaders> {
    const EXPECTED: &str =
        "a table such as { hide = [\"X-Powered-By\"], refuse = [\"X-Accel-Redirect\"] }";
    let value = at.value(KEY)?;
    let section = Section::of(
        KEY,
        value,
        EXPECTED,
        Keys::new(&["hide", "refuse"]),
        findings,
    )?;
    let hide = section.read_list("hide", HIDDEN, findings);
    let refuse = section.read_list("refuse", NAME, findings);
    Some(UpstreamHeaders {
        hide: hide.unwrap_or_default(),
        refuse: refuse.unwrap_or_default(),
    })
}

const NAME: Kind<String> = Kind {
    expected: "the name of a header, or a list of them",
    parse: value::parse_field_name,
};

/// The server manages framing and connection fields itself, but `Date` may be replaced.
const HIDDEN: Kind<String> = Kind {
    expected: NAME.expected,
    parse: |name| {
        if !name.eq_ignore_ascii_case("date") {
            value::check_field(name)?;
        }
        Ok(name.to_owned())
    },
};
