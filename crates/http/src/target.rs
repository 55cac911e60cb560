//! Request targets in their four forms (RFC 9112 3.2), and authorities, `host[:port]` (RFC 3986 3.2).

use crate::method::Method;
use crate::refusal::Refusal;

pub(crate) struct Target<'b> {
    pub(crate) path: &'b str,
    pub(crate) query: Option<&'b str>,
    /// Set by the absolute and authority forms.
    pub(crate) authority: Option<&'b str>,
}

const MALFORMED: Refusal = Refusal::bad("malformed request target");

/// RFC 9112 3.2 allows only ASCII.
const NOT_ASCII: Refusal = Refusal::bad("a byte that is not ASCII in the request target");

/// Parses a target. Percent signs and characters that RFC 3986 requires to be encoded (`|`, `"`, `{` …, which browsers
/// do send) are accepted; they cannot move a message boundary.
#[inline]
pub(crate) fn parse(method: Method, target: &str) -> Result<Target<'_>, Refusal> {
    if !target.is_ascii() {
        return Err(NOT_ASCII);
    }
    if method == Method::Connect {
        return authority_form(target);
    }
    if target.starts_with('/') {
        return origin_form(target, None);
    }
    if target == "*" {
        return asterisk_form(method);
    }
    absolute_form(method, target)
}

/// Converts the `:path` of HTTP/2 (RFC 9113 8.3.1) to text. It has not passed a tokenizer, so characters that would end
/// a target in HTTP/1 are refused here.
#[inline]
pub(crate) fn pseudo_path(path: &[u8]) -> Result<&str, Refusal> {
    // Without an early exit the compiler vectorizes the loop.
    let is_visible = |visible: bool, byte: &u8| visible & byte.is_ascii_graphic();
    if path.iter().fold(true, is_visible) {
        return Ok(str::from_utf8(path).expect("visible characters are ASCII"));
    }
    Err(match path.is_ascii() {
        true => MALFORMED,
        false => NOT_ASCII,
    })
}

/// Parses a result of [`pseudo_path`]: the origin form or the asterisk form.
#[inline]
pub(crate) fn parse_path(method: Method, target: &str) -> Result<Target<'_>, Refusal> {
    match target.as_bytes() {
        [b'/', ..] => origin_form(target, None),
        b"*" => asterisk_form(method),
        _ => Err(MALFORMED),
    }
}

/// `/path?query` (RFC 9112 3.2.1), also the end of the absolute form.
#[inline]
fn origin_form<'b>(text: &'b str, authority: Option<&'b str>) -> Result<Target<'b>, Refusal> {
    let Some(at) = memchr::memchr2(b'?', b'#', text.as_bytes()) else {
        return Ok(Target {
            path: text,
            query: None,
            authority,
        });
    };
    let (path, query) = (&text[..at], &text[at + 1..]);
    if text.as_bytes()[at] == b'#' || memchr::memchr(b'#', query.as_bytes()).is_some() {
        return Err(Refusal::bad("a fragment in the request target"));
    }
    Ok(Target {
        path,
        query: Some(query),
        authority,
    })
}

/// `host:port`, for CONNECT only (RFC 9112 3.2.3); the port is mandatory.
#[cold]
pub(crate) fn authority_form(target: &str) -> Result<Target<'_>, Refusal> {
    match Authority::parse(target.as_bytes()) {
        Some(Authority {
            host_bytes: 1..,
            port: Some(_),
        }) => Ok(Target {
            path: "",
            query: None,
            authority: Some(target),
        }),
        _ => Err(MALFORMED),
    }
}

/// `*`, for OPTIONS only (RFC 9112 3.2.4).
#[cold]
fn asterisk_form<'b>(method: Method) -> Result<Target<'b>, Refusal> {
    match method {
        Method::Options => Ok(Target {
            path: "*",
            query: None,
            authority: None,
        }),
        _ => Err(MALFORMED),
    }
}

/// `http://authority/path?query` (RFC 9112 3.2.2).
#[cold]
fn absolute_form(method: Method, target: &str) -> Result<Target<'_>, Refusal> {
    let Some(rest) = after_scheme(target) else {
        return Err(MALFORMED);
    };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, tail) = rest.split_at(end);
    // RFC 9110 4.2.1 and 4.2.4: no empty host, no user information.
    match Authority::parse(authority.as_bytes()) {
        Some(Authority {
            host_bytes: 1.., ..
        }) => {}
        _ => return Err(MALFORMED),
    }
    if tail.is_empty() {
        // RFC 9112 3.2.4: OPTIONS for the whole server in absolute form.
        let path = if method == Method::Options { "*" } else { "/" };
        return Ok(Target {
            path,
            query: None,
            authority: Some(authority),
        });
    }
    let mut parsed = origin_form(tail, Some(authority))?;
    if parsed.path.is_empty() {
        parsed.path = "/";
    }
    Ok(parsed)
}

fn after_scheme(target: &str) -> Option<&str> {
    ["http://", "https://"]
        .iter()
        .find(|scheme| {
            target
                .get(..scheme.len())
                .is_some_and(|start| start.eq_ignore_ascii_case(scheme))
        })
        .map(|scheme| &target[scheme.len()..])
}

/// Parts of a well-formed authority.
pub(crate) struct Authority {
    pub(crate) host_bytes: usize,
    /// `None` without digits, also for `host:` (RFC 3986 3.2.3).
    pub(crate) port: Option<u16>,
}

impl Authority {
    /// Parses `host[:port]` without user information; `None` if it is malformed. The host may be empty, as in the Host
    /// field of a request whose target has no authority (RFC 9110 7.2).
    #[inline]
    pub(crate) fn parse(text: &[u8]) -> Option<Authority> {
        let host_bytes = match text.first() {
            Some(b'[') => ip_literal_bytes(text)?,
            _ => text
                .iter()
                .position(|&byte| !REG_NAME[byte as usize])
                .unwrap_or(text.len()),
        };
        let port = match text[host_bytes..] {
            [] | [b':'] => None,
            [b':', ref digits @ ..] => Some(port(digits)?),
            _ => return None,
        };
        Some(Authority { host_bytes, port })
    }
}

/// Whether `text` is `host[:port]`, with a non-empty host and without user information.
pub fn is_authority(text: &[u8]) -> bool {
    Authority::parse(text).is_some_and(|authority| authority.host_bytes > 0)
}

/// Length of `[2001:db8::1]`. Only the characters of the address are checked.
#[cold]
fn ip_literal_bytes(text: &[u8]) -> Option<usize> {
    let end = memchr::memchr(b']', text)?;
    let address = &text[1..end];
    let plausible = address.len() >= 2
        && address
            .iter()
            .all(|b| b.is_ascii_hexdigit() || matches!(b, b':' | b'.'));
    plausible.then_some(end + 1)
}

#[inline]
fn port(digits: &[u8]) -> Option<u16> {
    if digits.len() > 5 {
        return None;
    }
    let mut number = 0u32;
    for &byte in digits {
        if !byte.is_ascii_digit() {
            return None;
        }
        number = number * 10 + u32::from(byte - b'0');
    }
    u16::try_from(number).ok()
}

/// Characters of a registered name or IPv4 address: unreserved, sub-delims and the percent sign (RFC 3986 3.2.2).
static REG_NAME: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 128 {
        let c = byte as u8;
        table[byte] = c.is_ascii_alphanumeric()
            || matches!(c, b'-' | b'.' | b'_' | b'~' | b'%')
            || matches!(
                c,
                b'!' | b'$' | b'&' | b'\'' | b'(' | b')' | b'*' | b'+' | b',' | b';' | b'='
            );
        byte += 1;
    }
    table
};
