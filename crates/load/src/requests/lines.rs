//! Requests in a file of JSON lines, with one object per line:
//!
//! ```text
//! {"url": "/", "weight": 3}
//! {"method": "POST", "url": "/login", "headers": {"Content-Type": "application/json"}, "body": "{\"id\": {{counter}}}",
//!  "expect": {"status": [200, "3xx"], "body": "welcome"}}      (on one line)
//! {"url": "/shop.Shop/Buy", "message": {"name": "tea"}}
//! ```

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::{Body, Expect, Request, Statuses, resolve_url};
use crate::limits::BODY_BYTES_MAX;
use crate::pace::target::Target;
use crate::requests::header::check_header;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    method: Option<String>,
    url: String,
    #[serde(default)]
    headers: BTreeMap<String, OneOrMore<String>>,
    body: Option<String>,
    body_file: Option<String>,
    /// gRPC message as JSON.
    message: Option<Box<RawValue>>,
    weight: Option<NonZeroU32>,
    #[serde(default)]
    expect: ExpectLine,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct ExpectLine {
    status: Option<OneOrMore<StatusText>>,
    body: Option<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMore<T> {
    One(T),
    More(Vec<T>),
}

#[derive(Deserialize)]
#[serde(untagged)]
enum StatusText {
    Number(u16),
    Text(String),
}

impl<T> OneOrMore<T> {
    fn into_vec(self) -> Vec<T> {
        match self {
            OneOrMore::One(one) => vec![one],
            OneOrMore::More(more) => more,
        }
    }
}

/// Requests of a file.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RequestsFile {
    /// Requests in the order of the file.
    pub requests: Vec<Request>,
    /// Body files that were read.
    pub files: Vec<PathBuf>,
}

/// Parses the requests in `text`, the content of the file at `path`. Empty lines are skipped, and paths of body files
/// are relative to the file. `target` is the server that connections go to.
///
/// # Errors
/// A sentence with the file and the line.
pub fn parse(text: &str, path: &Path, target: &Target) -> Result<RequestsFile, String> {
    let mut lines = RequestsFile::default();
    // Some editors write a byte order mark.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    for (index, line) in text.lines().enumerate() {
        if line.trim().is_empty() {
            continue;
        }
        let request = parse_line(line, path, target, &mut lines.files);
        lines.requests.push(request.map_err(|(column, why)| {
            let column = column.map_or(String::new(), |column| format!(":{column}"));
            format!("{}:{}{column}: {why}", path.display(), index + 1)
        })?);
    }
    if lines.requests.is_empty() {
        return Err(format!(
            "{}: no requests: expected a JSON object in each line, such as {{\"url\": \"/\"}}",
            path.display()
        ));
    }
    Ok(lines)
}

/// Column, if known, and message.
type Wrong = (Option<usize>, String);

fn parse_line(
    line: &str,
    path: &Path,
    target: &Target,
    files: &mut Vec<PathBuf>,
) -> Result<Request, Wrong> {
    let line: Line = serde_json::from_str(line).map_err(|error| {
        if let Some(mistyped) = type_error(line) {
            return (Some(error.column()), mistyped);
        }
        // serde_json's line number is always 1 here.
        let text = error.to_string();
        let what = text.split(" at line ").next().unwrap_or_default();
        (Some(error.column()), what.to_owned())
    })?;
    let wrong = |why: String| (None, why);
    let (host, target_path) = resolve_url(target, &line.url).map_err(wrong)?;
    let message = line.message.map(|message| message.get().to_owned());
    if message.is_some() && line.body.is_some() {
        return Err(wrong(
            "body and message both give a body: leave one of them out".to_owned(),
        ));
    }
    if message.is_some() && !target.scheme.is_grpc() {
        return Err(wrong(
            "message is for gRPC calls: use grpc://, or body".to_owned(),
        ));
    }
    let body = match (line.body.or(message), line.body_file) {
        (Some(_), Some(_)) => {
            return Err(wrong(
                "body and body_file both give a body: leave one of them out".to_owned(),
            ));
        }
        (Some(text), None) => Body::Text(text),
        (None, Some(file)) => {
            let file = path.with_file_name(file);
            let bytes = onrush_file::read(&file, BODY_BYTES_MAX as u64)
                .map_err(|error| wrong(format!("{}: {error}", file.display())))?;
            files.push(file);
            Body::Bytes(bytes.into())
        }
        (None, None) => Body::None,
    };
    let mut headers = Vec::new();
    for (name, values) in line.headers {
        for value in values.into_vec() {
            check_header(&name, &value).map_err(wrong)?;
            headers.push((name.clone(), value));
        }
    }
    let statuses = line.expect.status.map_or(Vec::new(), OneOrMore::into_vec);
    let statuses: Result<_, _> = statuses.into_iter().map(status).collect();
    let method = line.method.unwrap_or_else(|| method_for(&body).to_owned());
    Ok(Request {
        method,
        host,
        path: target_path,
        headers,
        body,
        weight: line.weight.unwrap_or(NonZeroU32::MIN),
        expect: Expect {
            statuses: statuses.map_err(wrong)?,
            body: line.expect.body,
        },
    })
}

/// Returns a message about the first key with a value of the wrong type.
fn type_error(line: &str) -> Option<String> {
    let line: Value = serde_json::from_str(line).ok()?;
    let Value::Object(keys) = &line else {
        return Some(format!(
            "found {}: expected an object such as {{\"url\": \"/\"}}",
            kind(&line)
        ));
    };
    let is_text = |value: &Value| value.is_string();
    let is_texts = |value: &Value| one_or_all(value, Value::is_string);
    let is_statuses = |value: &Value| {
        one_or_all(value, |status| {
            let number = status
                .as_u64()
                .and_then(|status| u16::try_from(status).ok());
            status.is_string() || number.is_some()
        })
    };
    let wrong = |key: &str, value: &Value, expected: &str| {
        Some(format!("{key} is {}: expected {expected}", kind(value)))
    };
    for (key, value) in keys {
        match key.as_str() {
            "method" | "url" | "body" | "body_file" if !is_text(value) && !value.is_null() => {
                return wrong(key, value, "a string");
            }
            "weight"
                if !value
                    .as_u64()
                    .is_some_and(|weight| (1..=u32::MAX.into()).contains(&weight)) =>
            {
                return wrong(key, value, "a whole number from 1 to 4294967295");
            }
            "headers" => {
                let Value::Object(fields) = value else {
                    return wrong(key, value, "an object such as {\"Accept\": \"*/*\"}");
                };
                if let Some((name, value)) = fields.iter().find(|(_, value)| !is_texts(value)) {
                    return wrong(
                        &format!("{name:?} in headers"),
                        value,
                        "a string, or a list of them",
                    );
                }
            }
            "expect" => match value {
                Value::Object(expect) => {
                    let status = expect.get("status").filter(|value| !is_statuses(value));
                    if let Some(value) = status {
                        return wrong(
                            "status in expect",
                            value,
                            "a status such as 200 or \"2xx\", or a list of them",
                        );
                    }
                    let body = expect.get("body").filter(|value| !is_text(value));
                    if let Some(value) = body {
                        return wrong("body in expect", value, "a string");
                    }
                }
                _ => return wrong(key, value, "an object such as {\"status\": 200}"),
            },
            _ => {}
        }
    }
    None
}

fn one_or_all(value: &Value, is_fit: impl Fn(&Value) -> bool) -> bool {
    match value {
        Value::Array(values) => values.iter().all(is_fit),
        value => is_fit(value),
    }
}

/// Describes a value for messages. A number is included, since it may be out of range.
fn kind(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(truth) => truth.to_string(),
        Value::Number(number) => format!("the number {number}"),
        Value::String(_) => "a string".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    }
}

fn status(text: StatusText) -> Result<Statuses, String> {
    match text {
        StatusText::Number(status) => Statuses::parse(&status.to_string()),
        StatusText::Text(text) => Statuses::parse(&text),
    }
}

/// Returns the default method, as in curl.
pub fn method_for(body: &Body) -> &'static str {
    match body {
        Body::None => "GET",
        Body::Text(_) | Body::Bytes(_) => "POST",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Vec<Request>, String> {
        parse(
            text,
            Path::new("/nowhere/r.jsonl"),
            &Target::parse("http://a:81/").unwrap(),
        )
        .map(|lines| lines.requests)
    }

    #[test]
    fn json_lines_become_requests() {
        let text = r#"{"url": "/a"}

{"url": "http://a:81/b", "method": "PUT", "body": "x", "weight": 3, "headers": {"A": "b", "C": ["d", "e"]}, "expect": {"status": [200, "3xx"], "body": "y"}}
{"url": "/c", "body": "", "expect": {"status": 404}}"#;
        let requests = parsed(text).unwrap();
        let [plain, full, posted] = &requests[..] else {
            panic!("{requests:?}");
        };
        assert_eq!(
            (&*plain.method, &*plain.path, &*plain.host),
            ("GET", "/a", "a:81")
        );
        assert_eq!((&*full.method, full.weight.get()), ("PUT", 3));
        assert_eq!(full.body, Body::Text("x".to_owned()));
        let fields: Vec<String> = full
            .headers
            .iter()
            .map(|(name, value)| format!("{name}: {value}"))
            .collect();
        assert_eq!(fields, ["A: b", "C: d", "C: e"]);
        assert_eq!(full.expect.statuses.len(), 2);
        assert_eq!(posted.method, "POST");
        assert_eq!(posted.expect.statuses, [Statuses { from: 404, to: 404 }]);
    }

    #[test]
    fn invalid_lines_are_reported_with_position() {
        for (text, parts) in [
            ("", ["r.jsonl: ", "no requests: expected"]),
            (
                "{\"url\": \"/\"}\n{\"ulr\": \"/\"}",
                ["r.jsonl:2:6: ", "unknown field `ulr`"],
            ),
            ("{", ["r.jsonl:1:1: ", "EOF"]),
            ("{}", ["r.jsonl:1:2: ", "missing field `url`"]),
            (r#"{"url": "http://b/"}"#, ["r.jsonl:1: ", "another server"]),
            (
                r#"{"url": "/", "weight": 0}"#,
                [
                    "r.jsonl:1:24: ",
                    "weight is the number 0: expected a whole number from 1",
                ],
            ),
            (
                r#"{"url": "/", "weight": "3"}"#,
                [
                    "r.jsonl:1:26: ",
                    "weight is a string: expected a whole number",
                ],
            ),
            (
                "{\"url\": \"/\"}\n{\"url\": 5}",
                ["r.jsonl:2:9: ", "url is the number 5: expected a string"],
            ),
            (
                r#"{"url": "/", "headers": {"A": 1}}"#,
                [
                    "r.jsonl:1:",
                    "\"A\" in headers is the number 1: expected a string",
                ],
            ),
            (
                r#"{"url": "/", "headers": []}"#,
                ["r.jsonl:1:", "headers is a list: expected an object"],
            ),
            (
                r#"{"url": "/", "expect": {"status": true}}"#,
                ["r.jsonl:1:", "status in expect is true: expected a status"],
            ),
            (
                r#"{"url": "/", "expect": 200}"#,
                ["r.jsonl:1:", "expect is the number 200: expected an object"],
            ),
            ("[]", ["r.jsonl:1:", "found a list: expected an object"]),
            (
                r#"{"url": "/", "headers": {"a b": "c"}}"#,
                ["r.jsonl:1: ", "is not the name"],
            ),
            (
                r#"{"url": "/", "body": "a", "body_file": "b"}"#,
                ["r.jsonl:1: ", "both give a body"],
            ),
            (
                r#"{"url": "/", "body_file": "b"}"#,
                ["r.jsonl:1: ", "/nowhere/b: No such file"],
            ),
            (
                r#"{"url": "/", "expect": {"status": "x"}}"#,
                ["r.jsonl:1: ", "is not a response status"],
            ),
        ] {
            let error = parsed(text).unwrap_err();
            assert!(
                parts.iter().all(|part| error.contains(part)),
                "{text}: {error}"
            );
        }
    }
}
