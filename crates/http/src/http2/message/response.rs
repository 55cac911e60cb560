//! Converts the field section of a response (RFC 9113 8.3.2) to a head.

use super::{
    LATE_PSEUDO, MoreFrames, REPEATED_PSEUDO, Rejection, UNKNOWN_PSEUDO, announced, check,
    check_count,
};
use crate::Framing;
use crate::Header;
use crate::HeaderSlots;
use crate::Limits;
use crate::Method;
use crate::Refusal;
use crate::Version;
use crate::field;
use crate::framing;
use crate::http2::fields::FieldSection;
use crate::http2::hpack::static_table::Known;
use crate::response::ResponseHead;

/// Converts a section. The method of the request decides whether there is a body. A body of unknown length has
/// `Framing::Chunked` and ends with END_STREAM. After a 1xx another section follows.
///
/// # Errors
/// [`Rejection`]: the section is malformed or exceeds a limit. Refusals carry 502.
#[inline]
pub fn response<'h, 'b>(
    section: &'b FieldSection,
    slots: &'h mut HeaderSlots<'b>,
    request_method: Method,
    follows: MoreFrames,
    limits: &Limits,
) -> Result<ResponseHead<'h, 'b>, Rejection> {
    check(section, Refusal::new(502, "response head too large"))?;
    let (mut status, mut length, mut fields) = (None, None, 0);
    let mut repeats_length = false;
    for (known, name, value) in section.entries() {
        if !name.starts_with(':') {
            fields += 1;
            if known == Some(Known::CONTENT_LENGTH) {
                let earlier = length.replace(same_length(length, value)?);
                repeats_length |= earlier.is_some() || framing::decimal(value).is_none();
            }
            continue;
        }
        if known != Some(Known::STATUS) {
            return Err(UNKNOWN_PSEUDO);
        }
        if status.replace(value).is_some() {
            return Err(REPEATED_PSEUDO);
        }
        if fields > 0 {
            return Err(LATE_PSEUDO);
        }
    }
    check_count(fields, limits, Refusal::new(502, "too many header fields"))?;
    let status = number(status)?;
    let framing = framing_of(status, request_method, length, follows)?;
    let fields = section.entries_from(section.len() - fields);
    let headers = match repeats_length {
        false => slots.store(fields.map(|(_, name, value)| Header { name, value })),
        true => slots.store(with_one_length(fields)),
    };
    Ok(ResponseHead {
        version: Version::Http2,
        status,
        reason: "",
        headers,
        framing,
        keep_alive: true,
        bytes: section.list_bytes() as usize, // within the bound of 32 bits
        sensitivity: section.sensitivity(),
    })
}

/// Common value of a Content-Length and earlier ones. Servers repeat it, in fields and in lists (RFC 9110 8.6).
#[inline]
fn same_length(earlier: Option<u64>, value: &[u8]) -> Result<u64, Rejection> {
    let length = match framing::decimal(value) {
        Some(length) => length,
        None => framing::same_decimal(value)
            .map_err(|_| Rejection::Malformed("malformed Content-Length"))?,
    };
    match earlier {
        Some(earlier) if earlier != length => {
            Err(Rejection::Malformed("different Content-Length values"))
        }
        Some(_) | None => Ok(length),
    }
}

/// Drops all but the first of several equal Content-Lengths.
#[cold]
fn with_one_length<'b>(
    fields: impl Iterator<Item = (Option<Known>, &'b str, &'b [u8])>,
) -> impl Iterator<Item = Header<'b>> {
    let mut is_seen = false;
    fields.filter_map(move |(known, name, mut value)| {
        if known == Some(Known::CONTENT_LENGTH) {
            if std::mem::replace(&mut is_seen, true) {
                return None;
            }
            value = value.split(|&byte| byte == b',').next().unwrap_or(value);
            value = field::trim(value);
        }
        Some(Header { name, value })
    })
}

/// 100 to 999 except 101, since HTTP/2 has no Upgrade (RFC 9113 8.6).
#[inline]
fn number(status: Option<&[u8]>) -> Result<u16, Rejection> {
    let Some(status) = status else {
        return Err(Rejection::Malformed("no :status"));
    };
    match *status {
        [b'1', b'0', b'1'] => Err(Rejection::Malformed("a status of 101")),
        [a @ b'1'..=b'9', b @ b'0'..=b'9', c @ b'0'..=b'9'] => {
            let [a, b, c] = [a, b, c].map(|digit| u16::from(digit - b'0'));
            Ok(a * 100 + b * 10 + c)
        }
        _ => Err(Rejection::Malformed("malformed :status")),
    }
}

/// RFC 9113 8.1 and 8.1.1; RFC 9110 6.4.1.
#[inline]
fn framing_of(
    status: u16,
    request_method: Method,
    length: Option<u64>,
    follows: MoreFrames,
) -> Result<Framing, Rejection> {
    match (status, request_method) {
        (100..=199, _) => match (length, follows) {
            (None | Some(0), MoreFrames::More) => Ok(Framing::None),
            (_, MoreFrames::Nothing) => {
                Err(Rejection::Malformed("nothing after an interim response"))
            }
            (Some(_), MoreFrames::More) => Err(Rejection::Malformed(
                "an interim response that announces a body",
            )),
        },
        // Content-Length is the length of the body that is not sent.
        (204 | 304, _) | (_, Method::Head) => Ok(Framing::None),
        (200..=299, Method::Connect) => Ok(Framing::None),
        _ => announced(length, follows),
    }
}
