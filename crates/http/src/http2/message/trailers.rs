//! Trailers (RFC 9113 8.1). Forbidden ones are treated as in HTTP/1, to which the message may be forwarded.

use super::{Rejection, check, line_bytes};
use crate::Limits;
use crate::Refusal;
use crate::body::is_forbidden;
use crate::framing::Sender;
use crate::http2::fields::FieldSection;

/// Trailer fields of a request.
///
/// # Errors
/// [`Rejection`]: pseudo-fields, malformed or forbidden fields (RFC 9110 6.5.1), or an exceeded limit.
pub fn request_trailers<'b>(
    section: &'b FieldSection,
    limits: &Limits,
) -> Result<impl Iterator<Item = (&'b str, &'b [u8])> + use<'b>, Rejection> {
    let fields = trailers(section, limits)?;
    let is_refused = |(name, _): (&str, _)| is_forbidden(name.as_bytes(), Sender::Client);
    if section.iter().any(is_refused) {
        return Err(Refusal::bad("a field that must not be a trailer").into());
    }
    if line_bytes(section) > limits.trailer_bytes_max {
        return Err(TOO_LARGE.into());
    }
    Ok(fields)
}

/// Trailer fields of a response, without forbidden ones (RFC 9110 6.5.1).
///
/// # Errors
/// [`Rejection`]: pseudo-fields, malformed fields, or an exceeded limit.
pub fn response_trailers<'b>(
    section: &'b FieldSection,
    limits: &Limits,
) -> Result<impl Iterator<Item = (&'b str, &'b [u8])> + use<'b>, Rejection> {
    let fields = trailers(section, limits)?;
    Ok(fields.filter(|(name, _)| !is_forbidden(name.as_bytes(), Sender::Server)))
}

const TOO_LARGE: Refusal = Refusal::new(431, "trailers too large");

fn trailers<'b>(
    section: &'b FieldSection,
    limits: &Limits,
) -> Result<impl Iterator<Item = (&'b str, &'b [u8])> + use<'b>, Rejection> {
    check(section, TOO_LARGE)?;
    if section.iter().any(|(name, _)| name.starts_with(':')) {
        return Err(Rejection::Malformed("a pseudo-field in trailers"));
    }
    match section.len() <= usize::from(limits.trailers_max) {
        true => Ok(section.iter()),
        false => Err(Refusal::new(431, "too many trailers").into()),
    }
}
