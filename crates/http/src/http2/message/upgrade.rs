//! WebSocket on a stream (RFC 8441 5): converts an extended CONNECT to the HTTP/1.1 Upgrade request (RFC 6455 4.1), so
//! that routing and forwarding handle only one form.

use super::{ExtendedConnect, MoreFrames, Rejection, request};
use crate::HeaderSlots;
use crate::Limits;
use crate::Refusal;
use crate::http2::fields::FieldSection;
use crate::http2::flaw::validate;
use crate::http2::hpack::static_table::Name;

/// The requested protocol, as determined by [`as_upgrade`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestKind {
    /// A response; the section is unchanged.
    Response,
    /// A tunnel after a successful response; the section is now a GET with Upgrade.
    Tunnel,
}

/// Converts an extended CONNECT for `websocket` to a GET with Connection, Upgrade and, as Sec-WebSocket-Key, `key`. It
/// has no body: data on its stream belongs to the tunnel. Other sections are unchanged.
///
/// # Errors
/// [`Rejection`]: a malformed extended CONNECT, or one for another protocol.
#[inline]
pub fn as_upgrade(
    section: &mut FieldSection,
    key: impl FnOnce() -> [u8; 24],
    limits: &Limits,
) -> Result<RequestKind, Rejection> {
    match section.is_connect() {
        true => convert(section, key, limits),
        false => Ok(RequestKind::Response),
    }
}

#[cold]
fn convert(
    section: &mut FieldSection,
    key: impl FnOnce() -> [u8; 24],
    limits: &Limits,
) -> Result<RequestKind, Rejection> {
    let mut slots = HeaderSlots::new();
    let allowed = ExtendedConnect::Allowed;
    let request = request(section, &mut slots, MoreFrames::More, allowed, limits)?;
    let Some(protocol) = request.protocol else {
        return Ok(RequestKind::Response);
    };
    if !protocol.eq_ignore_ascii_case("websocket") {
        return Err(Refusal::new(501, "only the protocol websocket is forwarded").into());
    }
    section.become_get();
    let mut push = |name: &[u8], value: &[u8]| {
        section.push(Name::Other(name), value, None);
    };
    push(b"connection", b"upgrade");
    push(b"upgrade", b"websocket");
    // Over HTTP/2 a client sends no key (RFC 8441 5); any that it does send was removed.
    let (name, key) = (Name::Other(b"sec-websocket-key"), key());
    section.push(name, &key, validate(name, &key));
    Ok(RequestKind::Tunnel)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Method;
    use crate::upgrade;

    const KEY: [u8; 24] = *b"dGhlIHNhbXBsZSBub25jZQ==";

    const EXTENDED: [(&str, &str); 5] = [
        (":method", "CONNECT"),
        (":protocol", "websocket"),
        (":scheme", "https"),
        (":path", "/chat?a=b"),
        (":authority", "example.org"),
    ];

    fn section(fields: &[(&str, &str)], more: &[(&str, &str)]) -> FieldSection {
        let mut section = FieldSection::default();
        section.begin(16 * 1024);
        for (name, value) in fields.iter().chain(more) {
            let name = Name::of(name.as_bytes());
            section.push(name, value.as_bytes(), validate(name, value.as_bytes()));
        }
        section.end();
        section
    }

    /// Lines of the equivalent HTTP/1 head.
    fn converted(section: &mut FieldSection) -> Result<String, Rejection> {
        let limits = Limits::DEFAULT;
        let asks = as_upgrade(section, || KEY, &limits)?;
        let follows = match asks {
            RequestKind::Response => MoreFrames::More,
            RequestKind::Tunnel => MoreFrames::Nothing,
        };
        let mut slots = HeaderSlots::new();
        let unknown = ExtendedConnect::Unknown;
        let head = request(section, &mut slots, follows, unknown, &limits)?.head;
        assert_eq!(
            upgrade::requested_protocols(&head).is_some(),
            asks == RequestKind::Tunnel,
            "{head:?}"
        );
        assert_eq!(
            head.method == Method::Connect,
            asks == RequestKind::Response
        );
        let mut text = format!("{} {}", head.method_text, head.target);
        for header in head.headers {
            text.push_str(&format!(
                "|{}: {}",
                header.name,
                header.value.escape_ascii()
            ));
        }
        Ok(text)
    }

    #[test]
    fn extended_connect_becomes_websocket_upgrade() {
        let more = [("sec-websocket-version", "13"), ("cookie", "a=1")];
        assert_eq!(
            converted(&mut section(&EXTENDED, &more)).as_deref(),
            Ok(
                "GET /chat?a=b|sec-websocket-version: 13|cookie: a=1|connection: upgrade|upgrade: websocket|sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ=="
            )
        );
        let more = [("sec-websocket-key", "its own")];
        assert_eq!(
            converted(&mut section(&EXTENDED, &more)).as_deref(),
            Ok(
                "GET /chat?a=b|connection: upgrade|upgrade: websocket|sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ=="
            )
        );
    }

    #[test]
    fn only_websocket_extended_connect_is_converted() {
        let plain = [(":method", "CONNECT"), (":authority", "example.org:443")];
        let text = converted(&mut section(&plain, &[]));
        assert_eq!(text.as_deref(), Ok("CONNECT example.org:443"));
        let mut other = EXTENDED;
        other[1].1 = "connect-udp";
        assert_eq!(
            converted(&mut section(&other, &[])),
            Err(Refusal::new(501, "only the protocol websocket is forwarded").into())
        );
    }

    #[test]
    fn invalid_extended_connect_is_malformed() {
        let without = |at: usize| {
            let mut fields = EXTENDED.to_vec();
            fields.remove(at);
            fields
        };
        let with_method = |method| {
            let mut fields = EXTENDED.to_vec();
            fields[0].1 = method;
            fields
        };
        let rows = [
            (without(2), &[][..], "no :scheme"),
            (without(3), &[], "no :path"),
            (
                EXTENDED.to_vec(),
                &[("content-length", "0")],
                "a CONNECT with a length",
            ),
            (
                EXTENDED.to_vec(),
                &[("upgrade", "websocket")],
                "a connection-specific field, which HTTP/2 forbids",
            ),
            (with_method("GET"), &[], "an unknown pseudo-field"),
        ];
        for (fields, more, reason) in rows {
            assert_eq!(
                converted(&mut section(&fields, more)),
                Err(Rejection::Malformed(reason)),
                "{fields:?}"
            );
        }
    }
}
