//! Fields that are meant for one connection and not forwarded (RFC 9110 7.6.1).

use crate::field::{Header, header_is, token_list};

/// Whether a field always stays on its connection, named in Connection or not. Trailer is not one of them any more
/// (RFC 9110 6.6.2), nor are the Proxy-Auth… fields (RFC 9110 11.7).
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

/// The fields a message's Connection fields say are for this connection, as received. A client may name any field
/// here, Host and Content-Length too: who removes what is named must write its own framing.
pub fn connection_names<'h, 'b>(
    headers: &'h [Header<'b>],
) -> impl Iterator<Item = &'b [u8]> + use<'h, 'b> {
    headers
        .iter()
        .filter(|header| header_is(header.name, "connection"))
        .flat_map(|header| token_list(header.value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connection_names_are_gathered_from_all_its_fields() {
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
    }

    #[test]
    fn fields_of_a_connection_are_known_in_any_case() {
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
}
