//! Action of a route: exactly one of the keys that define it.

use std::num::NonZeroU32;

use toml::Spanned;
use toml::de::DeValue;

use super::files::read_files;
use super::group::Groups;
use super::kinds::parse_in_place;
use crate::diagnostic::Diagnostics;
use crate::limits;
use crate::plan::{Action, Mirror, Piece, Template, Variable};
use crate::section::{Keys, Kind, Section};
use crate::toml_values::{as_text, entries_in_order, is_true, read_texts, report_kind};
use crate::value::{self, Invalid};

/// Keys that define the action of a route.
const RESPONSES: [&str; 5] = ["respond", "redirect", "files", "synthetic", "forward"];

const EXACTLY_ONE: &str = "exactly one of respond, redirect, files, synthetic and forward";

/// Reads the action; `None` if it is missing or invalid, which has been reported.
pub(super) fn read_action(
    route: &Section<'_, '_>,
    groups: &mut Groups,
    findings: &mut Diagnostics<'_>,
) -> Option<Action> {
    if !RESPONSES
        .iter()
        .any(|key| route.is_present_or_misspelt(key))
    {
        let message = format!("this [[route]] has no response: expected {EXACTLY_ONE}");
        findings.error(route.span(), message);
    }
    let written = entries_in_order(route.table())
        .into_iter()
        .filter(|(key, _)| RESPONSES.contains(&key.get_ref().as_str()));
    let mut first: Option<(Spanned<String>, Option<Action>)> = None;
    for (key, value) in written {
        // Mistakes in further actions are reported, too.
        let action = read_response(key.get_ref(), value, route, groups, findings);
        let Some((before, _)) = &first else {
            first = Some((key, action));
            continue;
        };
        let message = format!(
            "{:?} is a second response, after {:?} in line {}: a [[route]] has {EXACTLY_ONE}",
            key.get_ref(),
            before.get_ref(),
            findings.line_of(&before.span()),
        );
        findings.error(key.span(), message);
    }
    first.and_then(|(_, action)| action)
}

fn read_response(
    key: &str,
    value: &Spanned<DeValue<'_>>,
    route: &Section<'_, '_>,
    groups: &mut Groups,
    findings: &mut Diagnostics<'_>,
) -> Option<Action> {
    match key {
        "respond" => read_respond(value, findings),
        "redirect" => read_redirect(value, findings),
        "files" => read_files(value, findings),
        "synthetic" => read_synthetic(value, findings),
        "forward" => read_forward(value, route, groups, findings),
        _ => unreachable!("{key:?} is not a response"),
    }
}

fn read_respond(value: &Spanned<DeValue<'_>>, findings: &mut Diagnostics<'_>) -> Option<Action> {
    const EXPECTED: &str = "a table such as { status = 200, body = \"ok\" }";
    const STATUS: &str = "a number such as 200";
    const KEYS: Keys = Keys::new(&["status", "body", "file", "headers"]);
    let section = Section::of("respond", value, EXPECTED, KEYS, findings)?;
    section.require("status", STATUS, findings);
    let headers = read_headers(&section, findings);
    let body = section.text("body", "text such as \"ok\"", findings);
    let written = section.number("status", STATUS, findings)?;
    let status = match value::check_status(*written.get_ref()) {
        Ok(status) => status,
        Err(invalid) => {
            findings.error(written.span(), invalid.to_string());
            return None;
        }
    };
    if let Some(body) = &body
        && let Err(invalid) = value::check_body(status, body.get_ref().as_bytes())
    {
        findings.error(body.span(), invalid.to_string());
    }
    if section.has("file") {
        return read_respond_file(status, &section, findings);
    }
    Some(Action::Respond {
        status,
        body: body.map_or(Vec::new(), |body| body.into_inner().into_bytes()),
        headers,
    })
}

fn read_respond_file(
    status: u16,
    respond: &Section<'_, '_>,
    findings: &mut Diagnostics<'_>,
) -> Option<Action> {
    let reason = "cannot be used with file: expected one of them";
    respond.report_conflict(&["body"], reason, findings);
    let reason = "cannot be used with file: expected response_headers of the [[route]]";
    respond.report_conflict(&["headers"], reason, findings);
    let file = respond.path("file", "a file such as \"sorry.html\"", findings)?;
    if let Err(invalid) = value::check_body(status, b"?") {
        findings.error(respond.place("file"), invalid.to_string());
    }
    Some(Action::RespondFile { status, file })
}

/// Reads a table of header fields. A value is a string, or a list of strings for a repeated field.
fn read_headers(
    respond: &Section<'_, '_>,
    findings: &mut Diagnostics<'_>,
) -> Vec<(String, String)> {
    let Some(value) = respond.value("headers") else {
        return Vec::new();
    };
    let Some(table) = value.get_ref().as_table() else {
        let expected = "a table such as { Content-Type = \"text/plain\" }";
        report_kind("headers", value, expected, findings);
        return Vec::new();
    };
    let mut headers = Vec::new();
    for (name, value) in entries_in_order(table) {
        let what = format!("header {:?}", name.get_ref());
        let texts =
            read_texts(&what, value, "text such as \"text/plain\"", findings).unwrap_or_default();
        for text in texts {
            let (name_text, text) = (name.get_ref(), text.get_ref());
            if let Err(invalid) = value::check_header(name_text, text) {
                findings.error(name.span(), invalid.to_string());
            }
            headers.push((name_text.clone(), text.trim().to_owned()));
        }
    }
    let total: usize = headers
        .iter()
        .map(|(name, value)| name.len() + value.len())
        .sum();
    let max = limits::RESPOND_HEADERS_BYTES_MAX;
    if total > max {
        findings.error(
            value.span(),
            format!("these headers have {total} bytes: expected at most {max} together"),
        );
    }
    headers
}

fn read_redirect(value: &Spanned<DeValue<'_>>, findings: &mut Diagnostics<'_>) -> Option<Action> {
    const EXPECTED: &str = "a location such as \"https://{host}{uri}\", or a table such as { to = \"/new\", status = 308 }";
    const TO: Kind<Template> = Kind {
        expected: "a location such as \"https://{host}{uri}\"",
        parse: parse_location,
    };
    if value.get_ref().is_str() {
        return Some(Action::Redirect {
            status: limits::REDIRECT_STATUS_DEFAULT,
            location: parse_in_place(value, TO, findings)?,
        });
    }
    let keys = Keys::new(&["to", "status"]);
    let section = Section::of("redirect", value, EXPECTED, keys, findings)?;
    section.require("to", TO.expected, findings);
    let status = section.number("status", "a number such as 308", findings);
    let status = match &status {
        None => limits::REDIRECT_STATUS_DEFAULT,
        Some(status) => match *status.get_ref() {
            known @ (301 | 302 | 303 | 307 | 308) => known as u16,
            other => {
                let message = format!(
                    "status {other} is not a redirect status: expected 301, 302, 303, 307 or 308"
                );
                findings.error(status.span(), message);
                limits::REDIRECT_STATUS_DEFAULT
            }
        },
    };
    Some(Action::Redirect {
        status,
        location: section.read("to", TO, findings)?,
    })
}

/// Parses a URI reference (RFC 9110, section 10.2.2): a path, or a URL whose scheme is literal or a variable.
fn parse_location(text: &str) -> Result<Template, Invalid> {
    let template = value::parse_template(text)?;
    let is_bad = |letter: char| letter.is_control() || letter == ' ';
    let begins = text.starts_with(['/', '{']) || text.contains("://");
    if text.contains(is_bad) || !begins {
        return Err(Invalid::new(format!(
            "{text:?} is not a location: expected one such as \"https://{{host}}{{uri}}\" or \"/new\""
        )));
    }
    check_host_of_location(text, &template)?;
    for nobody in [Variable::Upstream, Variable::Server] {
        if template.0.contains(&Piece::Variable(nobody)) {
            return Err(Invalid::new(format!(
                "{text:?} uses a variable of the upstream server, and a redirect has no server"
            )));
        }
    }
    Ok(template)
}

/// Refuses a location whose host is a variable that cannot be a host.
fn check_host_of_location(text: &str, template: &Template) -> Result<(), Invalid> {
    let has_none = template.0.windows(2).any(|pair| match pair {
        [Piece::Text(before), Piece::Variable(variable)] => {
            (before == "//" || before.ends_with("://") && !before.contains(['?', '#']))
                && matches!(
                    variable,
                    Variable::Path | Variable::PathRest | Variable::Query | Variable::Uri
                )
        }
        _ => false,
    });
    if has_none {
        return Err(Invalid::new(format!(
            "{text:?} would let clients choose the host: expected a host before the path, such as \"https://{{host}}{{uri}}\""
        )));
    }
    Ok(())
}

fn read_synthetic(value: &Spanned<DeValue<'_>>, findings: &mut Diagnostics<'_>) -> Option<Action> {
    if !is_true(value) {
        findings.error(
            value.span(),
            "synthetic can only be true; leave it out for another response",
        );
        return None;
    }
    Some(Action::Synthetic)
}

fn read_forward(
    value: &Spanned<DeValue<'_>>,
    route: &Section<'_, '_>,
    groups: &mut Groups,
    findings: &mut Diagnostics<'_>,
) -> Option<Action> {
    const EXPECTED: &str = "a group's name or a URL such as \"http://10.0.0.9:8000\"";
    let mirror = read_mirror(route, groups, findings);
    let split = match value.get_ref() {
        DeValue::Array(_) => read_split(route, groups, findings)?,
        _ => {
            let target = route.text("forward", EXPECTED, findings)?;
            vec![(groups.find(&target, findings)?, NonZeroU32::MIN)]
        }
    };
    Some(Action::Forward { split, mirror })
}

/// Reads groups with weights: at least one, without duplicates.
fn read_split(
    route: &Section<'_, '_>,
    groups: &mut Groups,
    findings: &mut Diagnostics<'_>,
) -> Option<Vec<(usize, NonZeroU32)>> {
    const EXPECTED: &str =
        "a list such as [{ to = \"app\", weight = 95 }, { to = \"canary\", weight = 5 }]";
    let value = route.value("forward")?;
    let DeValue::Array(array) = value.get_ref() else {
        return None;
    };
    route.refuse_empty("forward", EXPECTED, findings);
    let mut split: Vec<(usize, NonZeroU32)> = Vec::new();
    for value in array.iter() {
        let Some((target, weight)) = read_part(value, findings) else {
            continue;
        };
        let Some(upstream) = groups.find(&target, findings) else {
            continue;
        };
        if split.iter().any(|(known, _)| *known == upstream) {
            let message = format!(
                "{:?} is already in this list: give it a weight instead",
                target.get_ref()
            );
            findings.error(target.span(), message);
        }
        split.push((upstream, weight));
    }
    (!split.is_empty()).then_some(split)
}

fn read_part(
    value: &Spanned<DeValue<'_>>,
    findings: &mut Diagnostics<'_>,
) -> Option<(Spanned<String>, NonZeroU32)> {
    const EXPECTED: &str = "a group's name, or a table such as { to = \"app\", weight = 95 }";
    if let Some(target) = as_text(value) {
        return Some((target, NonZeroU32::MIN));
    }
    let keys = Keys::new(&["to", "weight"]);
    let section = Section::of("part of forward", value, EXPECTED, keys, findings)?;
    section.require("to", "a group's name such as \"app\"", findings);
    let weight = section.count("weight", 1..=limits::WEIGHT_MAX, findings);
    let target = section.text("to", "a group's name such as \"app\"", findings)?;
    Some((target, weight.unwrap_or(NonZeroU32::MIN)))
}

fn read_mirror(
    route: &Section<'_, '_>,
    groups: &mut Groups,
    findings: &mut Diagnostics<'_>,
) -> Option<Mirror> {
    const EXPECTED: &str =
        "a group's name, or a table such as { to = \"shadow\", share = \"10%\" }";
    const SHARE: Kind<u16> = Kind {
        expected: "a share such as \"10%\"",
        parse: value::parse_share,
    };
    let value = route.value("mirror")?;
    if let Some(target) = as_text(value) {
        let upstream = groups.find(&target, findings)?;
        return Some(Mirror {
            upstream,
            share: 10_000,
        });
    }
    let keys = Keys::new(&["to", "share"]);
    let section = Section::of("mirror", value, EXPECTED, keys, findings)?;
    section.require("to", "a group's name such as \"shadow\"", findings);
    let share = section.read("share", SHARE, findings);
    let target = section.text("to", "a group's name such as \"shadow\"", findings)?;
    Some(Mirror {
        upstream: groups.find(&target, findings)?,
        share: share.unwrap_or(10_000),
    })
}
