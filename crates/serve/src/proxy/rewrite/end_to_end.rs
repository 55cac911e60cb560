//! End-to-end fields of a head.

use onrush_http::hop::{connection_fields, is_hop_by_hop};
use onrush_http::{Header, header_is};

/// Calls `put` with the end-to-end fields, unless `dropped`. Returns whether Connection names any fields.
pub(super) fn fields(
    headers: &[Header<'_>],
    mut dropped: impl FnMut(&str) -> bool,
    mut put: impl FnMut(&Header<'_>),
) -> bool {
    let mut names_more = false;
    for header in headers {
        names_more |= header_is(header.name, "connection")
            && connection_fields(std::slice::from_ref(header))
                .next()
                .is_some();
    }
    for header in headers {
        if is_hop_by_hop(header.name) || dropped(header.name) {
            continue;
        }
        if names_more && is_named(header.name, headers) {
            continue;
        }
        put(header);
    }
    names_more
}

/// Whether Connection names the field. Content-Length cannot be removed this way.
pub(super) fn is_named(name: &str, headers: &[Header<'_>]) -> bool {
    !header_is(name, "content-length")
        && connection_fields(headers).any(|named| named.eq_ignore_ascii_case(name.as_bytes()))
}
