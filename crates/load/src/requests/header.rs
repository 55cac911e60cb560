//! Fields of requests on a command line.

/// Parses a field, `Name: value`.
///
/// # Errors
/// A sentence with the mistake.
pub fn parse_header(text: &str) -> Result<(String, String), String> {
    let Some((name, value)) = text.split_once(':') else {
        return Err(format!(
            "{text:?} is not a header: expected one such as 'Accept: text/html'"
        ));
    };
    let value = value.trim_matches([' ', '\t']);
    check_header(name, value)?;
    Ok((name.to_owned(), value.to_owned()))
}

pub(crate) fn check_header(name: &str, value: &str) -> Result<(), String> {
    if !onrush_http::is_token(name.as_bytes()) {
        return Err(format!("{name:?} is not the name of a header"));
    }
    if !onrush_http::is_field_value(value.as_bytes()) {
        return Err(format!(
            "the value of {name:?} contains a control character"
        ));
    }
    Ok(())
}
