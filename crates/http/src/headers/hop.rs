//! Hop-by-hop fields (RFC 9110 7.6.1), and Via (RFC 9110 7.6.3).

use crate::field::{Header, header_is, token_list};
use crate::headers::forwarded::describes_client_by;

/// Whether a field is hop-by-hop even if Connection does not name it. Trailer (RFC 9110 6.6.2) and the Proxy-Auth…
/// fields (RFC 9110 11.7) no longer are.
pub fn is_hop_by_hop(name: &str) -> bool {
    match name.len() {
        2 => header_is(name, "te"),
        7 => header_is(name, "upgrade"),
        10 => header_is(name, "connection") || header_is(name, "keep-alive"),
        16 => header_is(name, "proxy-connection"),
        17 => header_is(name, "transfer-encoding"),
        _ => false,
    }
}

/// Whether a field's name differs only in punctuation from a framing field, a hop-by-hop field or a field that
/// describes the client. Servers that treat hyphens like other punctuation could mistake it for a field that a proxy
/// controls (CGI replaces both by underscores, RFC 3875 4.1.18).
pub fn is_disguised(name: &str) -> bool {
    let is_one = match name.len() {
        10 => equals_ignoring_punctuation(name, "keep-alive"),
        14 => equals_ignoring_punctuation(name, "content-length"),
        16 => equals_ignoring_punctuation(name, "proxy-connection"),
        17 => equals_ignoring_punctuation(name, "transfer-encoding"),
        _ => false,
    };
    (is_one || describes_client_by(name, equals_ignoring_punctuation))
        && name
            .bytes()
            .any(|byte| !byte.is_ascii_alphanumeric() && byte != b'-')
}

/// Whether `name` equals `known`, ignoring case and the kind of punctuation. `known` is in lower case, with hyphens.
#[inline]
pub fn equals_ignoring_punctuation(name: &str, known: &str) -> bool {
    let plain = |byte: u8| match byte.is_ascii_alphanumeric() {
        true => byte.to_ascii_lowercase(),
        false => b'-',
    };
    name.len() == known.len() && name.bytes().map(plain).eq(known.bytes())
}

/// Options in the Connection fields of a message, as received. A client may name any field here, even Host and
/// Content-Length: a proxy that removes the named fields must write its own framing.
pub fn connection_names<'h, 'b>(
    headers: &'h [Header<'b>],
) -> impl Iterator<Item = &'b [u8]> + use<'h, 'b> {
    headers
        .iter()
        .filter(|header| header_is(header.name, "connection"))
        .flat_map(|header| token_list(header.value))
}

/// [`connection_names`] without `close` and `keep-alive`, which are not fields (RFC 9112 9.3).
pub fn connection_fields<'h, 'b>(
    headers: &'h [Header<'b>],
) -> impl Iterator<Item = &'b [u8]> + use<'h, 'b> {
    connection_names(headers).filter(|name| {
        !name.eq_ignore_ascii_case(b"close") && !name.eq_ignore_ascii_case(b"keep-alive")
    })
}

/// Whether the client accepts trailers and keeps them (RFC 9110 10.1.4). TE is hop-by-hop, so a proxy that forwards
/// trailers sends its own; some servers send none without it.
pub fn accepts_trailers(headers: &[Header<'_>]) -> bool {
    headers
        .iter()
        .filter(|header| header_is(header.name, "te"))
        .flat_map(|header| token_list(header.value))
        .any(|member| member.eq_ignore_ascii_case(b"trailers"))
}

/// Number of Via members with this name (RFC 9110 7.6.3). More than one is a loop, if the name is unique. Comments are
/// not parsed: a client that puts our name into one only affects its own request.
pub fn via_count(headers: &[Header<'_>], name: &str) -> usize {
    headers
        .iter()
        .filter(|header| header_is(header.name, "via"))
        .flat_map(|header| token_list(header.value))
        .filter_map(received_by)
        .filter(|found| found.eq_ignore_ascii_case(name.as_bytes()))
        .count()
}

/// Returns the second word of `1.1 name (comment)`.
fn received_by(member: &[u8]) -> Option<&[u8]> {
    let mut words = member
        .split(|&byte| byte == b' ' || byte == b'\t')
        .filter(|word| !word.is_empty());
    words.nth(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connection_options_are_collected_from_all_fields() {
        let headers = [
            Header {
                name: "Connection",
                value: b"close, X-One",
            },
            Header {
                name: "Host",
                value: b"a",
            },
            Header {
                name: "connection",
                value: b"x-two",
            },
        ];
        let names: Vec<_> = connection_names(&headers).collect();
        assert_eq!(names, [b"close".as_slice(), b"X-One", b"x-two"]);
        let fields: Vec<_> = connection_fields(&headers).collect();
        assert_eq!(fields, [b"X-One".as_slice(), b"x-two"]);
    }

    #[test]
    fn hop_by_hop_names_are_case_insensitive() {
        for name in [
            "TE",
            "Upgrade",
            "CONNECTION",
            "Keep-Alive",
            "Proxy-Connection",
            "Transfer-Encoding",
        ] {
            assert!(is_hop_by_hop(name), "{name}");
        }
        for name in ["Host", "Trailer", "Content-Length", "Via", ""] {
            assert!(!is_hop_by_hop(name), "{name}");
        }
    }

    #[test]
    fn disguised_field_names_are_recognized() {
        for name in [
            "Content_Length",
            "content.length",
            "TRANSFER_ENCODING",
            "Keep_Alive",
            "Proxy~Connection",
            "X_Real-IP",
            "X-Real_IP",
            "x_forwarded_for",
            "X-Forwarded_For",
            "X_Forwarded-Port",
            "X-Forwarded-Client_Cert",
            "X.FORWARDED.PROTO",
            "X_Forwarded",
            "X_Original_URL",
            "x-rewrite_url",
        ] {
            assert!(is_disguised(name), "{name}");
        }
        for name in [
            "Content-Length",
            "Transfer-Encoding",
            "X-Forwarded-For",
            "X-Real-IP",
            "Content_Lengths",
            "Content_Type",
            "X_User",
            "Keep-Alive",
            "",
        ] {
            assert!(!is_disguised(name), "{name}");
        }
    }

    #[test]
    fn te_trailers_allows_trailers() {
        for (name, value, wanted) in [
            ("TE", "trailers", true),
            ("te", "gzip;q=0.5, Trailers", true),
            ("TE", "gzip", false),
            ("TE", "", false),
            ("Trailer", "trailers", false),
        ] {
            let headers = [Header {
                name,
                value: value.as_bytes(),
            }];
            assert_eq!(accepts_trailers(&headers), wanted, "{name}: {value}");
        }
    }

    #[test]
    fn via_members_are_counted_by_name() {
        let headers = [
            "1.0 fred, HTTP/1.1\tOnrush (a b),1.1 onrush",
            "",
            "1.1 onrush:80, onrush, 1.1  onrush",
        ];
        let headers = headers.map(|value| Header {
            name: "via",
            value: value.as_bytes(),
        });
        for (name, wanted) in [("onrush", 3), ("fred", 1), ("onrush:80", 1), ("1.1", 0)] {
            assert_eq!(via_count(&headers, name), wanted, "{name}");
        }
        assert_eq!(via_count(&[], "onrush"), 0);
    }
}
