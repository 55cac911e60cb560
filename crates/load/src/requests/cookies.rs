//! Cookies of one connection, which represents a user (RFC 6265, limited to one server). A cookie is returned with
//! every request, regardless of its path, until the server deletes it or it has expired.

use std::time::UNIX_EPOCH;

use onrush_engine::clock;

/// Names and values, in the order in which they were set.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct CookieJar(Vec<(Vec<u8>, Vec<u8>)>);

/// Parsed value of a Set-Cookie field.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Cookie {
    name: Vec<u8>,
    value: Vec<u8>,
    is_deleted: bool,
}

impl Cookie {
    /// Parses the value of a Set-Cookie field (RFC 6265 section 5.2); `None` without a name or `=`.
    pub(crate) fn parse(field: &[u8]) -> Option<Cookie> {
        let mut parts = field.split(|&byte| byte == b';');
        let first = parts.next()?;
        let (name, value) = pair(first);
        if name.is_empty() || !first.contains(&b'=') {
            return None;
        }
        // Max-Age takes precedence over Expires (RFC 6265 section 5.3), and the last attribute of a name applies
        // (section 5.2).
        let (mut by_age, mut by_date) = (None, None);
        for part in parts {
            let (attribute, value) = pair(part);
            if attribute.eq_ignore_ascii_case(b"max-age") && is_age(value) {
                by_age = Some(value.starts_with(b"-") || value.iter().all(|byte| *byte == b'0'));
            } else if attribute.eq_ignore_ascii_case(b"expires") {
                by_date = Some(has_passed(value));
            }
        }
        let is_gone = by_age.or(by_date).unwrap_or(false);
        Some(Cookie {
            name: name.to_vec(),
            value: value.to_vec(),
            is_deleted: is_gone,
        })
    }

    pub(crate) fn name(&self) -> &[u8] {
        &self.name
    }

    pub(crate) fn value(&self) -> &[u8] {
        &self.value
    }
}

/// Whether a Max-Age is a number; other values are ignored (RFC 6265 section 5.2.2).
fn is_age(value: &[u8]) -> bool {
    let digits = value.strip_prefix(b"-").unwrap_or(value);
    !digits.is_empty() && digits.iter().all(u8::is_ascii_digit)
}

impl CookieJar {
    pub(crate) fn store(&mut self, cookie: &Cookie) {
        let found = self.0.iter().position(|(name, _)| *name == cookie.name);
        match (found, cookie.is_deleted) {
            (Some(at), true) => drop(self.0.remove(at)),
            (Some(at), false) => self.0[at].1.clone_from(&cookie.value),
            (None, true) => {}
            (None, false) => self.0.push((cookie.name.clone(), cookie.value.clone())),
        }
    }

    /// Appends the Cookie field to `out`, unless the jar is empty.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        for (index, (name, value)) in self.0.iter().enumerate() {
            out.extend_from_slice(if index == 0 { b"Cookie: " } else { b"; " });
            out.extend_from_slice(name);
            out.push(b'=');
            out.extend_from_slice(value);
        }
        if !self.0.is_empty() {
            out.extend_from_slice(b"\r\n");
        }
    }
}

/// Splits `name=value` and trims both; without `=` the value is empty.
fn pair(text: &[u8]) -> (&[u8], &[u8]) {
    match memchr::memchr(b'=', text) {
        Some(at) => (text[..at].trim_ascii(), text[at + 1..].trim_ascii()),
        None => (text.trim_ascii(), &[]),
    }
}

/// Whether an Expires date is in the past. Servers delete a cookie with such a date; a future date is not checked again
/// later.
fn has_passed(date: &[u8]) -> bool {
    let date = std::str::from_utf8(date).ok();
    let date = date.and_then(|date| httpdate::parse_http_date(&date.replace('-', " ")).ok());
    date.is_some_and(|date| date <= UNIX_EPOCH + clock::unix_time())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent_back(fields: &[&str]) -> String {
        let mut jar = CookieJar::default();
        for field in fields {
            if let Some(cookie) = Cookie::parse(field.as_bytes()) {
                jar.store(&cookie);
            }
        }
        let mut out = Vec::new();
        jar.write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn cookies_are_returned_until_deleted() {
        for (fields, expected) in [
            (&[][..], ""),
            (&["a=1; Path=/; HttpOnly"], "Cookie: a=1\r\n"),
            (&["a=1", "b=2", "a=3"], "Cookie: a=3; b=2\r\n"),
            (&[" a = x=y "], "Cookie: a=x=y\r\n"),
            (&["a=1", "a=; Max-Age=0"], ""),
            (&["a=1", "a=; max-age=-1"], ""),
            (&["a=1; Max-Age=60"], "Cookie: a=1\r\n"),
            (
                &["a=1; Max-Age=60; Expires=Thu, 01 Jan 1970 00:00:00 GMT"],
                "Cookie: a=1\r\n",
            ),
            (
                &["a=1; Expires=Fri, 01 Jan 2100 00:00:00 GMT; Max-Age=0"],
                "",
            ),
            (&["a=1; Max-Age=x"], "Cookie: a=1\r\n"),
            (&["a=1", "a=; Expires=Thu, 01 Jan 1970 00:00:00 GMT"], ""),
            (&["a=1", "a=; Expires=Thu, 01-Jan-1970 00:00:00 GMT"], ""),
            (&["=1", ""], ""),
            (&["a", "a; Path=/", "b=; c=1"], "Cookie: b=\r\n"),
        ] {
            assert_eq!(sent_back(fields), expected, "{fields:?}");
        }
    }
}
