//! Checks of a response.

use memchr::memmem::Finder;
use regex::bytes::Regex;
use serde_json::Value;
use serde_json::value::RawValue;

use super::json;
use super::response::Response;
use crate::requests::Statuses;

#[derive(Clone, Debug)]
pub(crate) struct Check {
    pub(crate) name: String,
    pub(crate) severity: Severity,
    pub(crate) test: Test,
}

/// Effect of a failed check on the journey.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Severity {
    /// The journey ends.
    Required,
    /// The failure is counted and the journey continues.
    Optional,
}

/// Tested part of the response, and its condition.
#[derive(Clone, Debug)]
pub(crate) enum Test {
    Status(Box<[Statuses]>),
    /// First header field with this name.
    Header(String, Condition),
    /// Value at a JSON pointer in the body (RFC 6901).
    Json(String, Condition),
    Body(Condition),
}

#[derive(Clone, Debug)]
pub(crate) enum Condition {
    /// The field or value is present.
    Exists,
    /// Equal to a string or, in JSON, to any value.
    Equals(Value),
    Contains(Box<Finder<'static>>),
    Matches(Regex),
}

impl Test {
    /// Whether the test needs the body.
    pub(crate) fn needs_body(&self) -> bool {
        match self {
            Test::Json(..) | Test::Body(_) => true,
            Test::Status(_) | Test::Header(..) => false,
        }
    }

    pub(crate) fn tests_status(&self) -> bool {
        matches!(self, Test::Status(_))
    }

    /// Whether `response` passes the test.
    pub(crate) fn passes(&self, response: &Response) -> bool {
        match self {
            Test::Status(statuses) => {
                let is_one = |of: &Statuses| (of.from..=of.to).contains(&response.status);
                statuses.iter().any(is_one)
            }
            Test::Header(name, condition) => {
                let field = response.fields(name).next();
                field.is_some_and(|value| condition.holds(value))
            }
            Test::Json(pointer, condition) => {
                let found = json::find(response.body(), pointer);
                found.is_some_and(|value| condition.holds_of_json(value))
            }
            Test::Body(condition) => condition.holds(response.body()),
        }
    }
}

impl Condition {
    fn holds(&self, bytes: &[u8]) -> bool {
        match self {
            Condition::Exists => true,
            Condition::Equals(value) => text(value).is_some_and(|text| text.as_bytes() == bytes),
            Condition::Contains(finder) => finder.find(bytes).is_some(),
            Condition::Matches(regex) => regex.is_match(bytes),
        }
    }

    fn holds_of_json(&self, written: &RawValue) -> bool {
        match self {
            Condition::Exists => true,
            Condition::Equals(expected) => {
                let value: Result<Value, _> = serde_json::from_str(written.get());
                value.is_ok_and(|value| are_equal(expected, &value))
            }
            Condition::Contains(_) | Condition::Matches(_) => {
                json::text(written).is_some_and(|text| self.holds(text.as_bytes()))
            }
        }
    }
}

/// Compares integers exactly, and otherwise by value: 1 equals 1.0 (RFC 8259 section 6 leaves this to the
/// implementation).
fn are_equal(expected: &Value, value: &Value) -> bool {
    let are_floats = expected.is_f64() || value.is_f64();
    match (expected.as_f64(), value.as_f64()) {
        (Some(expected), Some(value)) if are_floats => expected == value,
        _ => expected == value,
    }
}

/// String form of `value` for a comparison with text: a string without quotes, other values as JSON. `None` for `null`.
fn text(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            Some(value.to_string())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn checks_match_status_header_or_body() {
        let body = br#"{"count": 3, "list": ["a"], "name": "shop", "none": null}"#;
        let response = Response::of(201, &[("Content-Type", "application/json")], body);
        let statuses = |texts: &[&str]| {
            let parsed = texts.iter().map(|text| Statuses::parse(text).unwrap());
            Test::Status(parsed.collect())
        };
        let contains = |text: &str| Condition::Contains(Box::new(Finder::new(text).into_owned()));
        let matches = |text: &str| Condition::Matches(Regex::new(text).unwrap());
        let header = |name: &str, condition| Test::Header(name.to_owned(), condition);
        let json = |pointer: &str, condition| Test::Json(pointer.to_owned(), condition);
        for (test, expected) in [
            (statuses(&["200", "201"]), true),
            (statuses(&["2xx"]), true),
            (statuses(&["200"]), false),
            (header("content-type", Condition::Exists), true),
            (header("etag", Condition::Exists), false),
            (header("content-type", contains("json")), true),
            (
                header("content-type", Condition::Equals(json!("application/json"))),
                true,
            ),
            (
                header("content-type", Condition::Equals(json!("json"))),
                false,
            ),
            (json("/count", Condition::Equals(json!(3.0))), true),
            (json("/count", Condition::Equals(json!("3"))), false),
            (json("/list", Condition::Equals(json!(["a"]))), true),
            (json("/name", matches("^sh")), true),
            (json("/none", Condition::Exists), true),
            (json("/none", contains("n")), false),
            (json("/absent", Condition::Exists), false),
            (Test::Body(contains("\"list\"")), true),
            (Test::Body(matches("^shop")), false),
        ] {
            assert_eq!(test.passes(&response), expected, "{test:?}");
        }
    }
}
