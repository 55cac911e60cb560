//! `sweep` and `[[work.point]]`: the points at which a work is measured.

use std::ops::Range;

use toml::de::DeTable;

use super::scale::Scale;
use super::variant::is_reserved;
use crate::limits::{NAME_MAX, POINTS_MAX};
use crate::scenario::Point;
use crate::scenario::section::{At, Read, Section};

struct Parameter {
    name: String,
    values: Vec<String>,
    are_labels: bool,
}

/// The points of a work and their position in the file; one empty point for a work without a sweep.
pub(super) fn points(work: &Section<'_>, scale: &Scale<'_>) -> Read<(Vec<Point>, Range<usize>)> {
    let listed = work.tables("point")?;
    let Some(sweep) = work.table("sweep")? else {
        if listed.is_empty() {
            return Ok((vec![Point::default()], work.span.clone()));
        }
        let span = listed[0].span.clone();
        return Ok((listed_points(work, listed)?, span));
    };
    if !listed.is_empty() {
        return Err(work.source.mistake(
            sweep.span,
            "`sweep` generates all combinations of its values and [[work.point]] lists combinations: expected one of them",
        ));
    }
    let parameters = parameters(work, &sweep, scale)?;
    let count = parameters
        .iter()
        .try_fold(1_usize, |count, next| count.checked_mul(next.values.len()));
    if count.is_none_or(|count| count > POINTS_MAX) {
        return Err(work.source.mistake(
            sweep.span,
            format!(
                "a work has {POINTS_MAX} points at most, and these values have more combinations"
            ),
        ));
    }
    Ok((combinations(&parameters), sweep.span))
}

/// Swept parameters whose values are labels although they look like numbers: all are hexadecimal digits in quotes, such
/// as the masks "0", "3" and "ff".
pub(super) fn labels(work: &Section<'_>, scale: &Scale<'_>) -> Read<Vec<String>> {
    let Some(sweep) = work.table("sweep")? else {
        return Ok(Vec::new());
    };
    let parameters = parameters(work, &sweep, scale)?.into_iter();
    let labelled = parameters.filter(|parameter| parameter.are_labels);
    Ok(labelled.map(|parameter| parameter.name).collect())
}

/// All combinations; the first parameter changes slowest, as in nested loops.
fn combinations(parameters: &[Parameter]) -> Vec<Point> {
    let mut points = vec![Point::default()];
    for parameter in parameters {
        let longer = points.iter().flat_map(|point| {
            let values = parameter.values.iter();
            values.map(|value| point.clone().with(&parameter.name, value))
        });
        points = longer.collect();
    }
    points
}

fn parameters(
    work: &Section<'_>,
    sweep: &At<&DeTable<'_>>,
    scale: &Scale<'_>,
) -> Read<Vec<Parameter>> {
    let names = Section::names(sweep.value);
    if names.is_empty() {
        return Err(work.source.mistake(
            sweep.span.clone(),
            "a sweep has a list of values for each parameter, such as { connections = [10, 100, 1000] }",
        ));
    }
    let keys: Vec<&str> = names.iter().map(|name| name.value).collect();
    let section = Section::open(work.source, sweep.value, sweep.span.clone(), &keys)?;
    let mut parameters = Vec::new();
    for name in names {
        check_name(work, &name)?;
        let written = section.values(name.value)?.unwrap_or_default();
        let values = scale.sweep.get(name.value).cloned().unwrap_or(written);
        if values.is_empty() {
            return Err(work
                .source
                .mistake(name.span, format!("`{}` has no values", name.value)));
        }
        let is_label = |value: &At<String>| {
            let written = work.source.text.get(value.span.clone());
            let is_quoted = written.is_some_and(|text| text.starts_with(['"', '\'']));
            is_quoted && value.value.bytes().all(|byte| byte.is_ascii_hexdigit())
        };
        let are_labels = values.iter().all(is_label);
        let mut plain: Vec<String> = Vec::new();
        for value in values {
            check_value(work, &value)?;
            if plain.contains(&value.value) {
                return Err(work
                    .source
                    .mistake(value.span, format!("`{}` is listed twice", value.value)));
            }
            plain.push(value.value);
        }
        parameters.push(Parameter {
            name: name.value.into(),
            values: plain,
            are_labels,
        });
    }
    Ok(parameters)
}

/// Points as listed; all have the parameters of the first one.
fn listed_points(work: &Section<'_>, tables: Vec<At<&DeTable<'_>>>) -> Read<Vec<Point>> {
    if tables.len() > POINTS_MAX {
        return Err(work.source.mistake(
            work.span.clone(),
            format!("a work has {POINTS_MAX} points at most"),
        ));
    }
    let mut points: Vec<Point> = Vec::new();
    for table in tables {
        let names = Section::names(table.value);
        let keys: Vec<&str> = match points.first() {
            Some(first) => first
                .settings()
                .iter()
                .map(|setting| setting.parameter.as_str())
                .collect(),
            None => names.iter().map(|name| name.value).collect(),
        };
        let section = Section::open(work.source, table.value, table.span.clone(), &keys)?;
        let mut point = Point::default();
        for key in keys {
            let value = section
                .single(key)?
                .ok_or_else(|| section.missing(key, "the first point has it"))?;
            check_value(work, &value)?;
            point = point.with(key, &value.value);
        }
        for name in &names {
            check_name(work, name)?;
        }
        if point.is_empty() || points.contains(&point) {
            return Err(work.source.mistake(
                table.span,
                "empty point, or the same as an earlier one: expected different values, such as connections = 100",
            ));
        }
        points.push(point);
    }
    Ok(points)
}

/// Checks that a parameter can be used in templates and is not set by the run itself.
fn check_name(work: &Section<'_>, name: &At<&str>) -> Read<()> {
    let is_name = |text: &str| {
        let letter =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_.".contains(&byte);
        !text.is_empty() && text.len() <= NAME_MAX && text.bytes().all(letter)
    };
    if !is_name(name.value) {
        return Err(work.source.mistake(
            name.span.clone(),
            "expected a parameter of lower-case letters, digits, `_` and `.`, as in templates",
        ));
    }
    if is_reserved(name.value) {
        return Err(work.source.mistake(
            name.span.clone(),
            format!(
                "`{{{}}}` is filled in by the run and cannot be swept",
                name.value
            ),
        ));
    }
    Ok(())
}

/// Values appear in labels, tables and a column of `raw.csv`, separated by blanks.
fn check_value(work: &Section<'_>, value: &At<String>) -> Read<()> {
    let is_odd = |letter: char| letter.is_whitespace() || letter.is_control();
    let length = value.value.chars().count();
    if length == 0 || length > NAME_MAX || value.value.contains(is_odd) {
        return Err(work.source.mistake(
            value.span.clone(),
            format!("the value of a parameter has 1 to {NAME_MAX} characters and no blanks"),
        ));
    }
    Ok(())
}
