//! What is wrong with one field of a message, whatever the others are.

use super::hpack::static_table::{Known, Name};
use crate::field;

/// Why a field makes its message malformed (RFC 9113 8.2): a stream error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// A name with upper-case letters (RFC 9113 8.2.1).
    UpperCase,
    /// A name that is no token, or empty, or a pseudo-field's that has no name behind its colon.
    Name,
    /// A control byte in a value.
    Value,
    /// White space at an end of the value of a pseudo-field.
    Edge,
    /// A field that is about an HTTP/1 connection (RFC 9113 8.2.2).
    ConnectionSpecific,
    /// `te` that says something other than `trailers` (RFC 9113 8.2.2).
    Te,
}

impl Flaw {
    /// What is wrong, for logs.
    pub const fn reason(self) -> &'static str {
        match self {
            Flaw::UpperCase => "upper case in a field name",
            Flaw::Name => "malformed field name",
            Flaw::Value => "a control byte in a field value",
            Flaw::Edge => "white space at the end of a pseudo-field",
            Flaw::ConnectionSpecific => "a field that HTTP/2 connections do not have",
            Flaw::Te => "TE says something other than trailers",
        }
    }
}

/// The value that a field has: without white space at its ends, as HTTP/1 reads it. RFC 9113 8.2.1 makes such a field malformed, but
/// clients send what their users set, and Go's repeats a request whose stream is reset for it. A pseudo-field has no such white
/// space in HTTP/1, and keeps it.
#[inline]
pub(crate) fn value_of<'v>(name: Name<'_>, value: &'v [u8]) -> &'v [u8] {
    match name.is_pseudo() {
        true => value,
        false => field::trim(value),
    }
}

/// The flaw of a single field, if it has one. `value` comes from [`value_of`].
#[inline]
pub(crate) fn judge(name: Name<'_>, value: &[u8]) -> Option<Flaw> {
    judge_name(name)
        .or_else(|| judge_value(value))
        .or_else(|| judge_te(name, value))
}

/// What is wrong with a name.
#[inline]
pub(crate) fn judge_name(name: Name<'_>) -> Option<Flaw> {
    match name {
        Name::Known(Known::TRANSFER_ENCODING) => Some(Flaw::ConnectionSpecific),
        Name::Known(_) => None,
        Name::Other(text) => judge_other(text),
    }
}

/// A name that is not in the static table.
#[inline]
fn judge_other(text: &[u8]) -> Option<Flaw> {
    let token = match text {
        [b':', pseudo @ ..] => pseudo,
        text => text,
    };
    if !field::is_token(token) {
        return Some(Flaw::Name);
    }
    if text.iter().any(u8::is_ascii_uppercase) {
        return Some(Flaw::UpperCase);
    }
    match text {
        b"connection" | b"keep-alive" | b"proxy-connection" | b"upgrade" => {
            Some(Flaw::ConnectionSpecific)
        }
        _ => None,
    }
}

/// What is wrong with a value (RFC 9113 8.2.1; RFC 9110 5.5 knows more bytes that no value has).
#[inline]
fn judge_value(value: &[u8]) -> Option<Flaw> {
    if let [b' ' | b'\t', ..] | [.., b' ' | b'\t'] = value {
        return Some(Flaw::Edge);
    }
    // Without a way out in its middle the compiler makes one instruction of many bytes.
    let is_bad = value
        .iter()
        .fold(false, |is_bad, &byte| is_bad | !field::is_text(byte));
    is_bad.then_some(Flaw::Value)
}

#[inline]
fn judge_te(name: Name<'_>, value: &[u8]) -> Option<Flaw> {
    let is_te = name == Name::Other(b"te");
    (is_te && !value.eq_ignore_ascii_case(b"trailers")).then_some(Flaw::Te)
}
