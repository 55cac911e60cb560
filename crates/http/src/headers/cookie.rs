//! Cookies (RFC 6265) for a load balancer: finds one in a request, and sets the one for session persistence.

use crate::field::{Header, header_is, trim};
use crate::write::HeadWriter;

/// Value of the first cookie called `name` (case-sensitive), as received, including quotes. Parses the Cookie fields as
/// clients send them (RFC 6265 4.2.1, 5.4), pairs separated by semicolons; anything else is skipped.
pub fn find<'b>(headers: &[Header<'b>], name: &str) -> Option<&'b [u8]> {
    headers
        .iter()
        .filter(|header| header_is(header.name, "cookie"))
        .flat_map(|header| header.value.split(|&byte| byte == b';'))
        .filter_map(pair)
        .find(|(found, _)| *found == name.as_bytes())
        .map(|(_, value)| value)
}

/// Session cookie for all paths of the host, not accessible to scripts.
#[derive(Clone, Copy, Debug)]
pub struct StickyCookie<'b> {
    /// A token.
    pub name: &'b str,
    /// Visible ASCII without quotes, commas, semicolons and backslashes (RFC 6265 4.1.1).
    pub value: &'b str,
    /// Whether it is sent over TLS only.
    pub is_secure: bool,
}

impl StickyCookie<'_> {
    /// Writes Set-Cookie (RFC 6265 4.1). SameSite=Lax, the default of some browsers, is written for the others.
    pub fn write(&self, writer: &mut HeadWriter<'_>) {
        writer
            .raw(b"Set-Cookie: ")
            .raw(self.name.as_bytes())
            .raw(b"=")
            .raw(self.value.as_bytes())
            .raw(b"; Path=/; HttpOnly; SameSite=Lax");
        if self.is_secure {
            writer.raw(b"; Secure");
        }
        writer.raw(b"\r\n");
    }
}

fn pair(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let equals = memchr::memchr(b'=', text)?;
    Some((trim(&text[..equals]), trim(&text[equals + 1..])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cookie_is_found_by_exact_name() {
        let fields = [
            (
                "Cookie",
                "a=1; b=two; c=\"3\";d=e=f; =nameless;lone; b=later;g=; h = spaced ;;",
            ),
            ("X-Cookie", "x=1"),
            ("cookie", "i=\u{e9}"),
        ];
        let headers = fields.map(|(name, value)| Header {
            name,
            value: value.as_bytes(),
        });
        let rows = [
            ("a", Some("1")),
            ("b", Some("two")),
            ("c", Some("\"3\"")),
            ("d", Some("e=f")),
            ("g", Some("")),
            ("h", Some("spaced")),
            ("i", Some("\u{e9}")),
            ("A", None),
            ("lone", None),
            ("x", None),
            ("e", None),
        ];
        for (name, wanted) in rows {
            assert_eq!(find(&headers, name), wanted.map(str::as_bytes), "{name}");
        }
    }

    #[test]
    fn sticky_cookie_round_trips() {
        let rows = [
            (
                false,
                "Set-Cookie: server=s1; Path=/; HttpOnly; SameSite=Lax\r\n",
            ),
            (
                true,
                "Set-Cookie: server=s1; Path=/; HttpOnly; SameSite=Lax; Secure\r\n",
            ),
        ];
        for (is_secure, wanted) in rows {
            let mut out = [0; 128];
            let mut writer = HeadWriter::new(&mut out);
            let cookie = StickyCookie {
                name: "server",
                value: "s1",
                is_secure,
            };
            cookie.write(&mut writer);
            let bytes = writer.finish().expect("128 bytes are enough");
            assert_eq!(str::from_utf8(&out[..bytes]), Ok(wanted));
        }
    }
}
