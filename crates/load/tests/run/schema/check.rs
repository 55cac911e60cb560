//! Validates results against the shipped schemas, for the keywords of JSON Schema that these use.

use std::fs;

use regex::Regex;
use serde_json::{Map, Value};

/// Supported keywords; the last four need no check.
const KEYWORDS: [&str; 15] = [
    "$ref",
    "type",
    "enum",
    "minimum",
    "items",
    "minItems",
    "maxItems",
    "required",
    "properties",
    "additionalProperties",
    "patternProperties",
    "$schema",
    "title",
    "description",
    "$defs",
];

fn read(name: &str) -> Value {
    let path = format!("{}/../../docs/{name}", env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Panics if `value` does not conform to the schema with this file name.
#[track_caller]
pub(crate) fn conforms(value: &Value, name: &str) {
    let schema = read(name);
    check(value, &schema, (&schema, name));
}

/// Panics if `value` at `place` does not conform to `schema`, a part of `whole`, or if a keyword is unsupported.
#[track_caller]
pub(crate) fn check(value: &Value, schema: &Value, (whole, place): (&Value, &str)) {
    let keywords = schema.as_object().expect("a schema is an object").keys();
    for keyword in keywords {
        assert!(KEYWORDS.contains(&keyword.as_str()), "{place}: {keyword}");
    }
    if let Some(reference) = schema["$ref"].as_str() {
        let (file, path) = reference.split_once('#').expect("a reference has a path");
        let other = (!file.is_empty()).then(|| read(file));
        let whole = other.as_ref().unwrap_or(whole);
        let part = whole.pointer(path).unwrap_or_else(|| panic!("{reference}"));
        return check(value, part, (whole, place));
    }
    let types = match &schema["type"] {
        Value::Array(types) => types.clone(),
        Value::Null => Vec::new(),
        single => vec![single.clone()],
    };
    assert!(
        types.is_empty() || types.iter().any(|wanted| is_of_type(value, wanted)),
        "{place} is {value}, expected {types:?}"
    );
    if let Some(allowed) = schema["enum"].as_array() {
        assert!(allowed.contains(value), "{place} is {value}");
    }
    if let (Some(minimum), Some(number)) = (schema["minimum"].as_f64(), value.as_f64()) {
        assert!(number >= minimum, "{place} is {number}");
    }
    if let Some(items) = value.as_array() {
        let bound = |keyword: &str| schema[keyword].as_u64();
        let count = items.len() as u64;
        let is_within = bound("minItems").is_none_or(|least| count >= least)
            && bound("maxItems").is_none_or(|most| count <= most);
        assert!(is_within, "{place} has {count} items");
        for (at, item) in items.iter().enumerate() {
            check(item, &schema["items"], (whole, &format!("{place}[{at}]")));
        }
    }
    if let Some(object) = value.as_object() {
        check_object(object, schema, (whole, place));
    }
}

fn is_of_type(value: &Value, wanted: &Value) -> bool {
    match wanted.as_str().unwrap() {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        other => panic!("the check does not know the type {other}"),
    }
}

fn check_object(object: &Map<String, Value>, schema: &Value, (whole, place): (&Value, &str)) {
    for required in schema["required"].as_array().into_iter().flatten() {
        let required = required.as_str().unwrap();
        assert!(object.contains_key(required), "{place} lacks {required}");
    }
    for (key, value) in object {
        let place = format!("{place}.{key}");
        let known = &schema["properties"][key];
        if !known.is_null() {
            check(value, known, (whole, &place));
            continue;
        }
        // Keys not listed in the schema.
        if schema["additionalProperties"].is_object() {
            check(value, &schema["additionalProperties"], (whole, &place));
            continue;
        }
        let patterns = schema["patternProperties"].as_object();
        let fits = |pattern: &str| Regex::new(pattern).unwrap().is_match(key);
        let mut patterns = patterns.into_iter().flatten();
        let Some((_, pattern)) = patterns.find(|(pattern, _)| fits(pattern)) else {
            panic!("{place} is not in the schema");
        };
        check(value, pattern, (whole, &place));
    }
}
