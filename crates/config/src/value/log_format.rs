//! Format of the access log: `json`, `combined`, or a template.

use super::placeholders::split_placeholders;
use super::{Invalid, is_token};
use crate::plan::{LogField, LogFormat, LogPiece};
use onrush_measure::suggestion::suggestion;

const FIELDS: [(&str, LogField); 23] = [
    ("time", LogField::Time),
    ("client", LogField::Client),
    ("method", LogField::Method),
    ("target", LogField::Target),
    ("host", LogField::Host),
    ("version", LogField::Version),
    ("status", LogField::Status),
    ("bytes_sent", LogField::Sent),
    ("body_bytes_sent", LogField::BodySent),
    ("duration", LogField::Duration),
    ("first_byte", LogField::FirstByte),
    ("queue_time", LogField::Queued),
    ("connect_time", LogField::Connected),
    ("listener", LogField::Listener),
    ("route", LogField::Route),
    ("group", LogField::Group),
    ("server", LogField::Server),
    ("retries", LogField::Retries),
    ("end", LogField::End),
    ("failure", LogField::Failure),
    ("core", LogField::Core),
    ("trace_id", LogField::TraceId),
    ("span_id", LogField::SpanId),
];

impl LogField {
    /// All fields except header fields, with their names, in the order of the JSON format.
    pub fn all() -> &'static [(&'static str, LogField)] {
        &FIELDS
    }
}

/// Parses a format. In a template, `{name}` is a field, `{header:NAME}` a header field; `{{` and `}}` are braces.
pub fn parse_log_format(text: &str) -> Result<LogFormat, Invalid> {
    match text {
        "json" => return Ok(LogFormat::Json),
        "combined" => return Ok(LogFormat::Combined),
        _ => {}
    }
    if !text.contains('{') {
        return Err(Invalid::new(format!(
            "{text:?} is not a log format: expected \"json\", \"combined\", or text with fields such as \"{{client}} {{target}} {{status}}\""
        )));
    }
    if text.contains(['\n', '\r']) {
        return Err(Invalid::new("a log format cannot contain a line break"));
    }
    let field = |name: &str| parse_field(name).map(LogPiece::Field);
    split_placeholders(text, LogPiece::Text, field).map(LogFormat::Template)
}

fn parse_field(name: &str) -> Result<LogField, Invalid> {
    if let Some(header) = name.strip_prefix("header:") {
        return match is_token(header) {
            true => Ok(LogField::Header(header.to_ascii_lowercase())),
            false => Err(Invalid::new(format!(
                "{{{name}}}: {header:?} is not a header name"
            ))),
        };
    }
    if let Some((_, field)) = FIELDS.iter().find(|(known, _)| *known == name) {
        return Ok(field.clone());
    }
    let names = || FIELDS.iter().map(|(known, _)| *known);
    Err(Invalid::new(match suggestion(name, names()) {
        Some(near) => format!("unknown field {{{name}}}; nearest: {{{near}}}"),
        None => {
            let known: Vec<&str> = names().chain(["header:NAME"]).collect();
            format!(
                "unknown field {{{name}}}; expected one of: {}",
                known.join(", ")
            )
        }
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_format_is_split_into_text_and_fields() {
        let format = parse_log_format("{{{client}}} \"{target}\" {header:X-Id}!");
        let text = |text: &str| LogPiece::Text(text.to_owned());
        let expected = vec![
            text("{"),
            LogPiece::Field(LogField::Client),
            text("} \""),
            LogPiece::Field(LogField::Target),
            text("\" "),
            LogPiece::Field(LogField::Header("x-id".to_owned())),
            text("!"),
        ];
        assert_eq!(format, Ok(LogFormat::Template(expected)));
        assert_eq!(parse_log_format("json"), Ok(LogFormat::Json));
    }

    #[test]
    fn unknown_log_field_error_suggests_nearest() {
        for (text, words) in [
            ("jsno", "is not a log format"),
            ("{stauts}", "unknown field {stauts}; nearest: {status}"),
            ("{header:a b}", "is not a header name"),
            ("{client", "without a matching \"}\""),
            ("{client} }", "without a matching \"{\""),
            ("{client}\n{target}", "cannot contain a line break"),
        ] {
            let why = parse_log_format(text).expect_err(text).to_string();
            assert!(why.contains(words), "{text}: {why}");
        }
    }
}
