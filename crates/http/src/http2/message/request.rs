//! Converts the field section of a request (RFC 9113 8.3.1) to a head as in HTTP/1.

use super::{
    LATE_PSEUDO, MoreFrames, REPEATED_PSEUDO, Rejection, UNKNOWN_PSEUDO, announced, check,
    check_count, line_bytes, note_length,
};
use crate::Framing;
use crate::Header;
use crate::HeaderSlots;
use crate::Limits;
use crate::Method;
use crate::Refusal;
use crate::Version;
use crate::field;
use crate::http2::fields::FieldSection;
use crate::http2::hpack::static_table::Known;
use crate::request::{RequestHead, expectation};
use crate::target::{self, Authority, Target};

/// Request borrowed from its section.
#[derive(Clone, Copy, Debug)]
pub struct Request<'h, 'b> {
    /// Head. Pseudo-fields and Host are omitted from its fields; `authority` replaces Host. A body of unknown length
    /// has `Framing::Chunked` and ends with END_STREAM. `bytes` is the size of the section.
    pub head: RequestHead<'h, 'b>,
    /// `:scheme`; `None` for CONNECT.
    pub scheme: Option<&'b str>,
    /// `:protocol` of an extended CONNECT (RFC 8441 4).
    pub protocol: Option<&'b str>,
}

/// Whether clients may send extended CONNECT (RFC 8441), i.e. the value of SETTINGS_ENABLE_CONNECT_PROTOCOL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExtendedConnect {
    /// `:protocol` is accepted.
    Allowed,
    /// `:protocol` is refused.
    Unknown,
}

/// Converts the section of a stream's first HEADERS.
///
/// # Errors
/// [`Rejection`]: the section is malformed or refused.
#[inline]
pub fn request<'h, 'b>(
    section: &'b FieldSection,
    slots: &'h mut HeaderSlots<'b>,
    follows: MoreFrames,
    extended: ExtendedConnect,
    limits: &Limits,
) -> Result<Request<'h, 'b>, Rejection> {
    check(section, TOO_LARGE)?;
    if section.list_bytes() > limits.head_bytes_max as u64
        && line_bytes(section) > limits.head_bytes_max
    {
        return Err(TOO_LARGE.into());
    }
    let parts = Parts::of(section, extended)?;
    check_count(
        parts.fields,
        limits,
        Refusal::new(431, "too many header fields"),
    )?;
    let start = Start::of(&parts, limits)?;
    let framing = parts.framing(start.method, follows)?;
    let fields = section.entries_from(section.len() - parts.fields);
    let fields = fields.filter(|(known, _, _)| *known != Some(Known::HOST));
    let headers = slots.store(fields.map(|(_, name, value)| Header { name, value }));
    Ok(Request {
        head: RequestHead {
            method: start.method,
            method_text: start.method_text,
            target: start.target,
            path: start.path,
            query: start.query,
            authority: Some(start.authority),
            version: Version::Http2,
            headers,
            framing,
            keep_alive: true,
            expect_continue: parts.expects_continue
                && !matches!(framing, Framing::None | Framing::Length(0)),
            bytes: section.list_bytes() as usize, // within the bound of 32 bits
            sensitivity: section.sensitivity(),
        },
        scheme: start.scheme,
        protocol: start.protocol,
    })
}

const TOO_LARGE: Refusal = Refusal::new(431, "request head too large");

/// Pseudo-fields and relevant fields of a section.
#[derive(Default)]
struct Parts<'b> {
    method: Option<&'b [u8]>,
    scheme: Option<&'b [u8]>,
    authority: Option<&'b [u8]>,
    path: Option<&'b [u8]>,
    protocol: Option<&'b [u8]>,
    host: Option<&'b [u8]>,
    length: Option<u64>,
    expects_continue: bool,
    fields: usize,
}

impl<'b> Parts<'b> {
    #[inline]
    fn of(section: &'b FieldSection, extended: ExtendedConnect) -> Result<Parts<'b>, Rejection> {
        let mut parts = Parts::default();
        for (known, name, value) in section.entries() {
            let pseudo = match known {
                Some(Known::METHOD) => &mut parts.method,
                Some(Known::SCHEME) => &mut parts.scheme,
                Some(Known::AUTHORITY) => &mut parts.authority,
                Some(Known::PATH) => &mut parts.path,
                Some(Known::STATUS) => return Err(UNKNOWN_PSEUDO),
                None if name.starts_with(':') => match (name, extended) {
                    (":protocol", ExtendedConnect::Allowed) => &mut parts.protocol,
                    _ => return Err(UNKNOWN_PSEUDO),
                },
                Some(known) => {
                    parts.note(known, name, value)?;
                    continue;
                }
                None => {
                    parts.fields += 1;
                    continue;
                }
            };
            if pseudo.replace(value).is_some() {
                return Err(REPEATED_PSEUDO);
            }
            if parts.fields > 0 {
                return Err(LATE_PSEUDO);
            }
        }
        Ok(parts)
    }

    #[inline]
    fn note(&mut self, known: Known, name: &str, value: &'b [u8]) -> Result<(), Rejection> {
        self.fields += 1;
        match known {
            Known::CONTENT_LENGTH => note_length(&mut self.length, value)?,
            Known::EXPECT => {
                let header = Header { name, value };
                self.expects_continue |= expectation(&header, Version::Http2)?;
            }
            Known::HOST if self.host.replace(value).is_some() => {
                return Err(bad("repeated Host field"));
            }
            _ => {}
        }
        Ok(())
    }

    /// Framing of the body. The data of a CONNECT is not content (RFC 9110 9.3.6), so it has no length.
    fn framing(&self, method: Method, follows: MoreFrames) -> Result<Framing, Rejection> {
        match (method, self.length) {
            (Method::Connect, Some(_)) => Err(Rejection::Malformed("a CONNECT with a length")),
            (_, length) => announced(length, follows),
        }
    }
}

/// Parts of the request that HTTP/1 has in the request line and Host.
struct Start<'b> {
    method: Method,
    method_text: &'b str,
    target: &'b str,
    path: &'b str,
    query: Option<&'b str>,
    authority: &'b str,
    scheme: Option<&'b str>,
    protocol: Option<&'b str>,
}

impl<'b> Start<'b> {
    #[inline]
    fn of(parts: &Parts<'b>, limits: &Limits) -> Result<Start<'b>, Rejection> {
        let Some(method_text) = parts.method else {
            return Err(Rejection::Malformed("no :method"));
        };
        let method_text = match method_text {
            // Fast path for the usual methods, which needs no validation.
            b"GET" => "GET",
            b"POST" => "POST",
            other => token(other, "malformed :method")?,
        };
        let method = Method::of(method_text);
        if parts
            .path
            .is_some_and(|path| path.len() > limits.target_bytes_max)
        {
            return Err(Refusal::new(414, "request target too long").into());
        }
        match (method, parts.protocol) {
            (Method::Connect, None) => Start::of_connect(parts, method_text),
            (Method::Connect, Some(protocol)) => {
                let protocol = token(protocol, "malformed :protocol")?;
                let start = Start::of_others(parts, method, method_text)?;
                Ok(Start {
                    protocol: Some(protocol),
                    ..start
                })
            }
            (_, Some(_)) => Err(Rejection::Malformed(":protocol without CONNECT")),
            (_, None) => Start::of_others(parts, method, method_text),
        }
    }

    /// CONNECT (RFC 9113 8.5).
    #[cold]
    fn of_connect(parts: &Parts<'b>, method_text: &'b str) -> Result<Start<'b>, Rejection> {
        if parts.scheme.is_some() || parts.path.is_some() {
            return Err(Rejection::Malformed("a CONNECT with :scheme or :path"));
        }
        let Some(authority) = parts.authority else {
            return Err(Rejection::Malformed("a CONNECT without :authority"));
        };
        let authority = str::from_utf8(authority).map_err(|_| bad("malformed :authority"))?;
        if let Some(host) = parts.host {
            agree(authority, host, "")?;
        }
        let target = target::authority_form(authority)?;
        Ok(Start {
            method: Method::Connect,
            method_text,
            target: authority,
            path: target.path,
            query: target.query,
            authority,
            scheme: None,
            protocol: None,
        })
    }

    #[inline]
    fn of_others(
        parts: &Parts<'b>,
        method: Method,
        method_text: &'b str,
    ) -> Result<Start<'b>, Rejection> {
        let Some(scheme) = parts.scheme else {
            return Err(Rejection::Malformed("no :scheme"));
        };
        let scheme = match scheme {
            b"https" => "https",
            b"http" => "http",
            other => token(other, "malformed :scheme")?,
        };
        let Some(path) = parts.path else {
            return Err(Rejection::Malformed("no :path"));
        };
        if path.is_empty() {
            return Err(Rejection::Malformed("an empty :path"));
        }
        let target = target::pseudo_path(path)?;
        let Target { path, query, .. } = target::parse_path(method, target)?;
        let authority = authority(parts, scheme)?;
        Ok(Start {
            method,
            method_text,
            target,
            path,
            query,
            authority,
            scheme: Some(scheme),
            protocol: None,
        })
    }
}

/// `host[:port]` of `:authority`, or of Host if a proxy has not converted it. If both are present they must agree (RFC
/// 9113 8.3.1).
#[inline]
fn authority<'b>(parts: &Parts<'b>, scheme: &str) -> Result<&'b str, Rejection> {
    let Some(authority) = parts.authority.or(parts.host) else {
        return Err(bad("neither :authority nor a Host field"));
    };
    match Authority::parse(authority) {
        Some(Authority {
            host_bytes: 1.., ..
        }) => {}
        Some(_) | None => return Err(bad("malformed :authority or Host field")),
    }
    let authority = str::from_utf8(authority).expect("an authority is ASCII");
    if let Some(host) = parts.host {
        agree(authority, host, scheme)?;
    }
    Ok(authority)
}

/// Checks that both name the same host and port, since recipients may use either.
#[inline]
fn agree(authority: &str, host: &[u8], scheme: &str) -> Result<(), Rejection> {
    let is_same = authority.as_bytes().eq_ignore_ascii_case(host)
        || without_default_port(authority.as_bytes(), scheme)
            .eq_ignore_ascii_case(without_default_port(host, scheme));
    match is_same {
        true => Ok(()),
        false => Err(bad(":authority and Host differ")),
    }
}

/// Removes an empty port or the scheme's default port (RFC 3986 6.2.3).
#[cold]
fn without_default_port<'b>(authority: &'b [u8], scheme: &str) -> &'b [u8] {
    let port: &[u8] = match scheme {
        "http" => b":80",
        "https" => b":443",
        _ => b":",
    };
    let without = authority.strip_suffix(port);
    without
        .or(authority.strip_suffix(b":"))
        .unwrap_or(authority)
}

/// Validates a scheme or protocol as a token, which every scheme is (RFC 3986 3.1).
#[inline]
fn token<'b>(value: &'b [u8], reason: &'static str) -> Result<&'b str, Rejection> {
    match str::from_utf8(value) {
        Ok(text) if field::is_token(value) => Ok(text),
        Ok(_) | Err(_) => Err(Rejection::Malformed(reason)),
    }
}

const fn bad(reason: &'static str) -> Rejection {
    Rejection::Refused(Refusal::bad(reason))
}
