//! Upgrade of a connection to another protocol (RFC 9110 7.8), such as WebSocket (RFC 6455 4): reads the client's
//! request and checks the server's 101. The new protocol itself is opaque.

use crate::field::{Header, header_is, is_token, token_list};
use crate::headers::hop::connection_names;
use crate::refusal::Refusal;
use crate::request::RequestHead;
use crate::response::ResponseHead;
use crate::version::Version;
use crate::write::HeadWriter;

/// Protocols that the request asks for, as received, in the client's order of preference. `None` without the connection
/// option, since the field is then not meant for us, and in HTTP/1.0 (RFC 9110 7.8).
///
/// Not all of them should be forwarded: after a change to `h2c` a client could send requests that bypass the routes.
pub fn requested_protocols<'h, 'b>(
    head: &RequestHead<'h, 'b>,
) -> Option<impl Iterator<Item = &'b [u8]> + use<'h, 'b>> {
    // Cheapest check first: few requests have the field. In HTTP/2 the field represents an extended CONNECT.
    let asks = head.version != Version::Http10
        && protocols(head.headers).next().is_some()
        && has_option(head.headers);
    asks.then(|| protocols(head.headers))
}

/// Checks that a 101 names only protocols for which its request, with these fields, asked (RFC 9110 7.8, 15.2.2).
///
/// # Errors
/// 502, since the meaning of the bytes after the head is unknown.
pub fn judge(response: &ResponseHead<'_, '_>, request: &[Header<'_>]) -> Result<(), Refusal> {
    const NOT_ASKED: Refusal = Refusal::new(
        502,
        "it switched protocols although the request did not ask for it",
    );
    const UNNAMED: Refusal = Refusal::new(502, "it switched protocols without naming the new one");
    if !has_option(request) {
        return Err(NOT_ASKED);
    }
    if !has_option(response.headers) {
        return Err(UNNAMED);
    }
    let mut is_named = false;
    for protocol in protocols(response.headers) {
        is_named = true;
        if !protocols(request).any(|asked| asked.eq_ignore_ascii_case(protocol)) {
            return Err(NOT_ASKED);
        }
    }
    is_named.then_some(()).ok_or(UNNAMED)
}

/// Protocols named by all Upgrade fields; malformed members are skipped.
pub fn protocols<'h, 'b>(
    headers: &'h [Header<'b>],
) -> impl Iterator<Item = &'b [u8]> + use<'h, 'b> {
    headers
        .iter()
        .filter(|header| header_is(header.name, "upgrade"))
        .flat_map(|header| token_list(header.value))
        .filter(|protocol| is_well_formed(protocol))
}

/// Writes Connection and Upgrade, for a request or a 101. `options` are further members of Connection.
pub fn write<'b>(
    protocols: impl IntoIterator<Item = &'b [u8]>,
    options: &[&str],
    writer: &mut HeadWriter<'_>,
) {
    writer.raw(b"Connection: upgrade");
    for option in options {
        writer.raw(b", ").raw(option.as_bytes());
    }
    writer.raw(b"\r\nUpgrade: ");
    for (at, protocol) in protocols.into_iter().enumerate() {
        let comma: &[u8] = if at == 0 { b"" } else { b", " };
        writer.raw(comma).raw(protocol);
    }
    writer.raw(b"\r\n");
}

fn has_option(headers: &[Header<'_>]) -> bool {
    connection_names(headers).any(|name| name.eq_ignore_ascii_case(b"upgrade"))
}

/// `name` or `name/version`, both tokens.
fn is_well_formed(protocol: &[u8]) -> bool {
    let mut parts = protocol.splitn(2, |&byte| byte == b'/');
    parts.all(is_token)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::HeaderSlots;
    use crate::Limits;
    use crate::Method;
    use crate::Parsed;
    use crate::request;
    use crate::response;

    fn asked_by(version: &str, fields: &str) -> Option<Vec<String>> {
        let text = format!("GET / HTTP/{version}\r\nHost: a\r\n{fields}\r\n");
        let mut slots = HeaderSlots::new();
        let Parsed::Complete(head) = request::parse(text.as_bytes(), &mut slots, &Limits::DEFAULT)
        else {
            panic!("no request: {text}");
        };
        let protocols =
            requested_protocols(&head)?.map(|protocol| String::from_utf8_lossy(protocol).into());
        Some(protocols.collect())
    }

    fn judged(request_fields: &str, response_fields: &str) -> Result<(), &'static str> {
        let request = format!("GET / HTTP/1.1\r\nHost: a\r\n{request_fields}\r\n");
        let response = format!("HTTP/1.1 101 Switching Protocols\r\n{response_fields}\r\n");
        let (mut slots, mut response_slots) = (HeaderSlots::new(), HeaderSlots::new());
        let request = request::parse(request.as_bytes(), &mut slots, &Limits::DEFAULT);
        let response = response::parse(
            response.as_bytes(),
            &mut response_slots,
            Method::Get,
            &Limits::DEFAULT,
        );
        match (request, response) {
            (Parsed::Complete(request), Parsed::Complete(response)) => {
                judge(&response, request.headers).map_err(|refusal| refusal.reason)
            }
            _ => panic!("not complete: {request_fields} {response_fields}"),
        }
    }

    #[test]
    fn upgrade_requires_connection_option() {
        let rows: [(&str, Option<&[&str]>); 9] = [
            (
                "Connection: Upgrade\r\nUpgrade: websocket\r\n",
                Some(&["websocket"]),
            ),
            (
                "Connection: keep-alive, upgrade\r\nUpgrade: WebSocket\r\n",
                Some(&["WebSocket"]),
            ),
            (
                "Connection: x\r\nConnection: UPGRADE\r\nUpgrade: a/1, b\r\nupgrade: c\r\n",
                Some(&["a/1", "b", "c"]),
            ),
            (
                "Connection: upgrade\r\nUpgrade: a b, c/d/e, /1, f/\r\n",
                None,
            ),
            ("Connection: upgrade\r\nUpgrade: a b, c\r\n", Some(&["c"])),
            ("Connection: upgrade\r\nUpgrade:\r\n", None),
            ("Connection: upgrade\r\n", None),
            ("Upgrade: websocket\r\n", None),
            ("Connection: upgrades\r\nUpgrade: websocket\r\n", None),
        ];
        for (fields, wanted) in rows {
            let wanted = wanted.map(|names| names.iter().map(|&name| name.into()).collect());
            assert_eq!(asked_by("1.1", fields), wanted, "{fields}");
            assert_eq!(asked_by("1.0", fields), None, "{fields}");
        }
    }

    #[test]
    fn upgrade_headers_round_trip() {
        let mut out = [0; 128];
        let mut writer = HeadWriter::new(&mut out);
        write([b"a/2".as_slice(), b"websocket"], &["TE"], &mut writer);
        let bytes = writer.finish().expect("128 bytes are enough");
        let fields = str::from_utf8(&out[..bytes]).expect("it is ASCII");
        assert_eq!(
            fields,
            "Connection: upgrade, TE\r\nUpgrade: a/2, websocket\r\n"
        );
        let wanted = ["a/2", "websocket"].map(String::from).to_vec();
        assert_eq!(asked_by("1.1", fields), Some(wanted));
    }

    #[test]
    fn switching_protocols_must_match_request() {
        let asked = "Connection: upgrade\r\nUpgrade: a/2, websocket\r\n";
        let not_asked = Err("it switched protocols although the request did not ask for it");
        let unnamed = Err("it switched protocols without naming the new one");
        let rows = [
            (
                asked,
                "Connection: Upgrade\r\nUpgrade: WebSocket\r\n",
                Ok(()),
            ),
            (
                asked,
                "Connection: upgrade\r\nUpgrade: websocket, a/2\r\n",
                Ok(()),
            ),
            (asked, "Connection: upgrade\r\nUpgrade: h2c\r\n", not_asked),
            (
                asked,
                "Connection: upgrade\r\nUpgrade: websocket, h2c\r\n",
                not_asked,
            ),
            (asked, "Connection: upgrade\r\nUpgrade: a/1\r\n", not_asked),
            (asked, "Upgrade: websocket\r\n", unnamed),
            (asked, "Connection: upgrade\r\n", unnamed),
            (asked, "Connection: upgrade\r\nUpgrade: a b\r\n", unnamed),
            (
                "",
                "Connection: upgrade\r\nUpgrade: websocket\r\n",
                not_asked,
            ),
            (
                "Upgrade: websocket\r\n",
                "Connection: upgrade\r\nUpgrade: websocket\r\n",
                not_asked,
            ),
        ];
        for (request, response, wanted) in rows {
            assert_eq!(
                judged(request, response),
                wanted,
                "{request:?} {response:?}"
            );
        }
    }
}
