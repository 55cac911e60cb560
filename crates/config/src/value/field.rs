//! Names and values of header fields.

use super::Invalid;

/// Fields that the server generates in every message; a configured one would contradict them.
const OWN_FIELDS: [&str; 7] = [
    "connection",
    "content-length",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Checks name and value of a field in a fixed response (RFC 9110, sections 5.1 and 5.5). Fields that the server writes
/// itself are invalid.
pub(crate) fn check_header(name: &str, value: &str) -> Result<(), Invalid> {
    check_field(name)?;
    if name.eq_ignore_ascii_case("date") {
        return Err(own_field(name));
    }
    check_field_value(name, value)
}

/// Checks that a field of this name may be changed.
pub(crate) fn check_field(name: &str) -> Result<(), Invalid> {
    parse_field_name(name)?;
    if OWN_FIELDS.iter().any(|own| own.eq_ignore_ascii_case(name)) {
        return Err(own_field(name));
    }
    Ok(())
}

fn own_field(name: &str) -> Invalid {
    Invalid::new(format!(
        "header {name:?} is set by the server itself: leave it out"
    ))
}

pub(crate) fn parse_field_name(name: &str) -> Result<String, Invalid> {
    if !is_token(name) {
        return Err(Invalid::new(format!("{name:?} is not a header name")));
    }
    Ok(name.to_owned())
}

/// Checks that a value has no control characters, which could end the field.
pub(crate) fn check_field_value(name: &str, value: &str) -> Result<(), Invalid> {
    let is_bad = |letter: char| letter.is_control() && letter != '\t';
    if value.chars().any(is_bad) {
        return Err(Invalid::new(format!(
            "the value of header {name:?} contains a control character"
        )));
    }
    Ok(())
}

/// Whether `text` is a token (RFC 9110, section 5.6.2), as names of fields, methods and cookies are.
pub(crate) fn is_token(text: &str) -> bool {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(is_token)
}
