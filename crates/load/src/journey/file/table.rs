//! Tables of a journeys file, and parsers of their values.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use memchr::memmem::Finder;
use regex::bytes::{Regex, RegexBuilder};
use serde::Deserialize;
use toml::Value;

use crate::journey::check::{Check, Condition, Severity, Test};
use crate::journey::extract::Source;
use crate::limits::REGEX_BYTES_MAX;
use crate::requests::Statuses;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FileTable {
    pub(super) connection: Option<String>,
    #[serde(default)]
    pub(super) setup: Vec<StepTable>,
    #[serde(default)]
    pub(super) journey: Vec<JourneyTable>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct JourneyTable {
    pub(super) name: String,
    pub(super) weight: Option<NonZeroU32>,
    #[serde(default)]
    pub(super) step: Vec<StepTable>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StepTable {
    pub(super) name: String,
    pub(super) url: String,
    pub(super) method: Option<String>,
    #[serde(default)]
    pub(super) headers: BTreeMap<String, Value>,
    pub(super) body: Option<String>,
    pub(super) body_file: Option<String>,
    pub(super) think: Option<String>,
    pub(super) redirects: Option<u8>,
    pub(super) connection: Option<String>,
    #[serde(default)]
    pub(super) take: BTreeMap<String, TakeTable>,
    #[serde(default)]
    pub(super) check: Vec<CheckTable>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TakeTable {
    header: Option<String>,
    cookie: Option<String>,
    json: Option<String>,
    regex: Option<String>,
    pub(super) default: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CheckTable {
    name: String,
    status: Option<Value>,
    header: Option<String>,
    json: Option<String>,
    equals: Option<Value>,
    contains: Option<String>,
    matches: Option<String>,
    #[serde(default)]
    required: bool,
}

/// Checks a name that reports print in tables.
pub(super) fn checked_name(name: String, whose: &str) -> Result<String, String> {
    const LENGTH_MAX: usize = 80;
    let is_fit = !name.trim().is_empty()
        && name.chars().count() <= LENGTH_MAX
        && !name.chars().any(char::is_control);
    match is_fit {
        true => Ok(name),
        false => Err(format!(
            "{name:?} is not a valid name for {whose}: expected 1 to {LENGTH_MAX} characters on one line"
        )),
    }
}

/// Parses the source of an extracted value.
pub(super) fn source(table: &TakeTable) -> Result<Source, String> {
    let TakeTable {
        header,
        cookie,
        json,
        regex: expression,
        ..
    } = table;
    match (header, cookie, json, expression) {
        (Some(name), None, None, None) => Ok(Source::Header(name.clone())),
        (None, Some(name), None, None) => Ok(Source::Cookie(name.clone())),
        (None, None, Some(text), None) => pointer(text).map(Source::Json),
        (None, None, None, Some(text)) => regex(text).map(Source::Regex),
        _ => Err(
            "expected one of header = \"NAME\", cookie = \"NAME\", json = \"/POINTER\" or regex = \"EXPRESSION\""
                .to_owned(),
        ),
    }
}

pub(super) fn check(table: &CheckTable) -> Result<Check, String> {
    let name = checked_name(table.name.clone(), "a check")?;
    let test = test(table).map_err(|why| format!("check {name:?}: {why}"))?;
    Ok(Check {
        name,
        severity: match table.required {
            true => Severity::Required,
            false => Severity::Optional,
        },
        test,
    })
}

fn test(table: &CheckTable) -> Result<Test, String> {
    let condition = condition(table)?;
    match (&table.status, &table.header, &table.json, condition) {
        (Some(status), None, None, Condition::Exists) => {
            let statuses = strings(status).map_err(|why| format!("status {why}"))?;
            let statuses = statuses.iter().map(|text| Statuses::parse_http(text));
            Ok(Test::Status(statuses.collect::<Result<_, _>>()?))
        }
        (Some(_), None, None, _) => Err(
            "a check of a status has no equals, contains or matches: write status = 200, \"2xx\" or a list of them"
                .to_owned(),
        ),
        (None, Some(name), None, condition) => Ok(Test::Header(name.clone(), condition)),
        (None, None, Some(text), condition) => Ok(Test::Json(pointer(text)?, condition)),
        (None, None, None, Condition::Exists) => Err(
            "nothing to check: expected status, header or json, or for the body equals, contains or matches"
                .to_owned(),
        ),
        (None, None, None, condition) => Ok(Test::Body(condition)),
        _ => Err("status, header and json need separate checks: leave all but one out".to_owned()),
    }
}

fn condition(table: &CheckTable) -> Result<Condition, String> {
    match (&table.equals, &table.contains, &table.matches) {
        (None, None, None) => Ok(Condition::Exists),
        (Some(value), None, None) => {
            if contains_date(value) {
                return Err("equals is a date: write it in quotes".to_owned());
            }
            let value = serde_json::to_value(value);
            let value = value.map_err(|error| format!("equals cannot be compared: {error}"))?;
            if table.json.is_none() && !value.is_string() {
                return Err("equals is compared with a string here: write it in quotes".to_owned());
            }
            Ok(Condition::Equals(value))
        }
        (None, Some(text), None) => Ok(Condition::Contains(Box::new(
            Finder::new(text).into_owned(),
        ))),
        (None, None, Some(text)) => regex(text).map(Condition::Matches),
        _ => Err(
            "equals, contains and matches need separate checks: leave all but one out".to_owned(),
        ),
    }
}

/// Whether `value` contains a date, which JSON cannot represent.
fn contains_date(value: &Value) -> bool {
    match value {
        Value::Datetime(_) => true,
        Value::Array(values) => values.iter().any(contains_date),
        Value::Table(table) => table.iter().any(|(_, value)| contains_date(value)),
        Value::String(_) | Value::Integer(_) | Value::Float(_) | Value::Boolean(_) => false,
    }
}

/// Converts a string, an integer or a list of them to strings.
pub(super) fn strings(value: &Value) -> Result<Vec<String>, String> {
    match value {
        Value::String(text) => Ok(vec![text.clone()]),
        Value::Integer(number) => Ok(vec![number.to_string()]),
        Value::Array(values)
            if values
                .iter()
                .all(|value| value.is_str() || value.is_integer()) =>
        {
            values
                .iter()
                .map(strings)
                .collect::<Result<Vec<_>, _>>()
                .map(|all| all.concat())
        }
        Value::Array(_)
        | Value::Float(_)
        | Value::Boolean(_)
        | Value::Datetime(_)
        | Value::Table(_) => Err(format!(
            "is {}: expected a string or an integer, or a list of them",
            value.type_str()
        )),
    }
}

/// Checks the syntax of a JSON pointer (RFC 6901 section 3).
fn pointer(text: &str) -> Result<String, String> {
    let is_escaped = |part: &str| part.starts_with(['0', '1']);
    let is_right =
        (text.is_empty() || text.starts_with('/')) && text.split('~').skip(1).all(is_escaped);
    match is_right {
        true => Ok(text.to_owned()),
        false => Err(format!(
            "{text:?} is not a JSON pointer (RFC 6901): expected one such as /items/0/id, with ~0 for ~ and ~1 for / in a name"
        )),
    }
}

fn regex(text: &str) -> Result<Regex, String> {
    let built = RegexBuilder::new(text).size_limit(REGEX_BYTES_MAX).build();
    built.map_err(|error| {
        // The error shows the expression on lines of its own; only its last line is the reason.
        let error = error.to_string();
        let why = error.lines().last().unwrap_or_default();
        format!(
            "{text:?} is not a regular expression: {}",
            why.trim_start_matches("error: ")
        )
    })
}
