//! Names listed in a message's `Connection` field, kept for its trailers: those are hop-by-hop too (RFC 9110 7.6.1),
//! and arrive after the head is released.

use onrush_http::Header;
use onrush_http::hop::{connection_fields, is_hop_by_hop};

/// Names of hop-by-hop fields; nearly always empty.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ConnectionFields {
    /// Each followed by a comma, which no name contains. Bounded by the length of `Connection`.
    names: Option<Box<[u8]>>,
}

impl ConnectionFields {
    /// The names in `Connection`, without names that are always hop-by-hop.
    pub(crate) fn of(headers: &[Header<'_>]) -> Self {
        let is_always = |name: &&[u8]| str::from_utf8(name).is_ok_and(is_hop_by_hop);
        let mut names = Vec::new();
        for name in connection_fields(headers).filter(|name| !is_always(name)) {
            names.extend_from_slice(name);
            names.push(b',');
        }
        Self {
            names: (!names.is_empty()).then(|| names.into()),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.names.is_none()
    }

    /// Whether a trailer of this name is hop-by-hop: listed, or always so.
    pub(crate) fn contain(&self, name: &[u8]) -> bool {
        let mut named = self
            .names
            .iter()
            .flat_map(|names| names.split(|&byte| byte == b','));
        str::from_utf8(name).is_ok_and(is_hop_by_hop)
            || named.any(|named| named.eq_ignore_ascii_case(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connection_header_options_apply_to_trailers() {
        let of = |value: &'static str| {
            ConnectionFields::of(&[Header {
                name: "Connection",
                value: value.as_bytes(),
            }])
        };
        for nothing in ["close", "keep-alive, TE", "Upgrade", ""] {
            assert!(of(nothing).is_empty(), "{nothing}");
        }
        let fields = of("close, X-Sum, te, x-b");
        for (name, is_one) in [
            ("x-sum", true),
            ("X-B", true),
            ("TE", true),
            ("Proxy-Connection", true),
            ("X-Su", false),
            ("X-", false),
        ] {
            assert_eq!(fields.contain(name.as_bytes()), is_one, "{name}");
        }
    }
}
