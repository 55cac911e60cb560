//! Trailers (RFC 9113 8.1): fields behind a body. What must not be one is treated as in HTTP/1, since it may go on as that.

use super::{Rejection, check, line_bytes};
use crate::Limits;
use crate::Refusal;
use crate::body::is_forbidden;
use crate::framing::Sender;
use crate::http2::fields::FieldSection;

/// The fields of a section behind the body of a request.
///
/// # Errors
/// [`Rejection`]: pseudo-fields, what is malformed, what must not be a trailer (RFC 9110 6.5.1), and more than we take.
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

/// The fields of a section behind the body of a response, without those that must not be trailers (RFC 9110 6.5.1).
///
/// # Errors
/// [`Rejection`]: pseudo-fields, what is malformed, and more than we take.
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
