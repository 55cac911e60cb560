//! Validation of a single field, independent of the others.

use super::hpack::static_table::{Known, Name};
use crate::field;

/// Why a field makes its message malformed (RFC 9113 8.2): a stream error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldError {
    /// A name with upper-case letters (RFC 9113 8.2.1).
    UpperCase,
    /// A name that is not a token, or a pseudo-field name with no token after its colon.
    Name,
    /// A control character in a value.
    Value,
    /// White space at the start or end of a pseudo-field's value.
    Edge,
    /// A field of an HTTP/1 connection (RFC 9113 8.2.2).
    ConnectionSpecific,
    /// `te` with a value other than `trailers` (RFC 9113 8.2.2).
    Te,
}

impl FieldError {
    /// Description, for logs.
    pub const fn reason(self) -> &'static str {
        match self {
            FieldError::UpperCase => "upper case in a field name",
            FieldError::Name => "malformed field name",
            FieldError::Value => "a control byte in a field value",
            FieldError::Edge => "white space at the end of a pseudo-field",
            FieldError::ConnectionSpecific => "a connection-specific field, which HTTP/2 forbids",
            FieldError::Te => "TE with a value other than trailers",
        }
    }
}

/// Trims a value, as HTTP/1 does. RFC 9113 8.2.1 declares such a field malformed, but clients send what their users
/// set, and Go's client repeats a request whose stream was reset for it. Pseudo-fields are not trimmed, since HTTP/1
/// allows no white space in their place.
#[inline]
pub(crate) fn value_of<'v>(name: Name<'_>, value: &'v [u8]) -> &'v [u8] {
    match name.is_pseudo() {
        true => value,
        false => field::trim(value),
    }
}

/// Flaw of a single field, if any. `value` is the result of [`value_of`].
#[inline]
pub(crate) fn validate(name: Name<'_>, value: &[u8]) -> Option<FieldError> {
    validate_name(name)
        .or_else(|| judge_value(value))
        .or_else(|| judge_te(name, value))
}

#[inline]
pub(crate) fn validate_name(name: Name<'_>) -> Option<FieldError> {
    match name {
        Name::Known(Known::TRANSFER_ENCODING) => Some(FieldError::ConnectionSpecific),
        Name::Known(_) => None,
        Name::Other(text) => judge_other(text),
    }
}

/// Validates a name that is not in the static table.
#[inline]
fn judge_other(text: &[u8]) -> Option<FieldError> {
    let token = match text {
        [b':', pseudo @ ..] => pseudo,
        text => text,
    };
    if !field::is_token(token) {
        return Some(FieldError::Name);
    }
    if text.iter().any(u8::is_ascii_uppercase) {
        return Some(FieldError::UpperCase);
    }
    match text {
        b"connection" | b"keep-alive" | b"proxy-connection" | b"upgrade" => {
            Some(FieldError::ConnectionSpecific)
        }
        _ => None,
    }
}

/// Validates a value (RFC 9113 8.2.1; RFC 9110 5.5 excludes further characters).
#[inline]
fn judge_value(value: &[u8]) -> Option<FieldError> {
    if let [b' ' | b'\t', ..] | [.., b' ' | b'\t'] = value {
        return Some(FieldError::Edge);
    }
    // Without an early exit the compiler vectorizes the loop.
    let is_bad = value
        .iter()
        .fold(false, |is_bad, &byte| is_bad | !field::is_text(byte));
    is_bad.then_some(FieldError::Value)
}

#[inline]
fn judge_te(name: Name<'_>, value: &[u8]) -> Option<FieldError> {
    let is_te = name == Name::Other(b"te");
    (is_te && !value.eq_ignore_ascii_case(b"trailers")).then_some(FieldError::Te)
}
