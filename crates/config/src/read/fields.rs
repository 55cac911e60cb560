//! `request_headers` and `response_headers`: changes of header fields.

use toml::Spanned;

use super::{status, upstream_headers};
use crate::diagnostic::Diagnostics;
use crate::plan::{Edits, FieldEdits, Piece, ResponseFilter, Template, UpstreamHeaders, Variable};
use crate::section::{Keys, Kind, Section};
use crate::toml_values::{entries_in_order, parsed, read_texts};
use crate::value::{self, Invalid};

/// Reads all changes; `upstream` applies if the route has no `upstream_headers`.
pub(super) fn read_edits(
    route: &Section<'_, '_>,
    upstream: &UpstreamHeaders,
    findings: &mut Diagnostics<'_>,
) -> Edits {
    let request = section_of(route, REQUEST, findings);
    let response = section_of(route, RESPONSE, findings);
    Edits {
        allow_underscores: request
            .as_ref()
            .and_then(|section| section.truth("underscores", findings))
            .unwrap_or(false),
        response_on: response
            .as_ref()
            .and_then(|section| read_on(section, findings))
            .unwrap_or_default(),
        upstream: upstream_headers::read(route, findings).unwrap_or_else(|| upstream.clone()),
        request: read_field_edits(request, REQUEST, findings),
        response: read_field_edits(response, RESPONSE, findings),
    }
}

/// Kind of message whose fields are changed, with its rules.
#[derive(Clone, Copy)]
struct EditedMessage {
    key: &'static str,
    known: &'static [&'static str],
    check: fn(&Template) -> Result<(), Invalid>,
    /// Field that must be present exactly once.
    only: Option<&'static str>,
}

const REQUEST: EditedMessage = EditedMessage {
    key: "request_headers",
    known: &["set", "add", "remove", "underscores"],
    check: check_server_unknown,
    only: Some("host"),
};

const RESPONSE: EditedMessage = EditedMessage {
    key: "response_headers",
    known: &["set", "add", "remove", "on"],
    check: |_| Ok(()),
    only: None,
};

/// Refuses `{server}` in a template that is used before the server is chosen.
fn check_server_unknown(template: &Template) -> Result<(), Invalid> {
    if template.0.contains(&Piece::Variable(Variable::Server)) {
        return Err(Invalid::new(
            "{server} is available in responses only: a request may be sent to several servers",
        ));
    }
    Ok(())
}

/// Checks that a template is a valid Host (RFC 3986, section 3.2), or can be with suitable variables; the result is
/// checked per request.
fn check_host(text: &str, template: &Template) -> Result<(), Invalid> {
    let can_be_host = match template.as_text() {
        Some(text) => is_host(text),
        None => template.0.iter().all(|piece| match piece {
            Piece::Text(text) => text.chars().all(is_of_host),
            Piece::Variable(_) => true,
        }),
    };
    if !can_be_host {
        return Err(Invalid::new(format!(
            "{text:?} is not a Host: expected a host name or an address, with or without a port, such as \"app.internal:8080\" or \"{{host}}\""
        )));
    }
    Ok(())
}

/// Whether a character is allowed in a host with port.
fn is_of_host(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || "-._~%!$&'()*+,;=:[]".contains(letter)
}

fn is_host(text: &str) -> bool {
    let end = match text.find(']') {
        Some(bracket) => bracket + 1,
        None => text.find(':').unwrap_or(text.len()),
    };
    let (host, port) = text.split_at(end);
    let is_literal = host.starts_with('[') && host.ends_with(']') && host.len() > 3;
    let is_name = !host.is_empty() && !host.contains(['[', ']']);
    let is_port = port.is_empty()
        || port
            .strip_prefix(':')
            .is_some_and(|port| port.parse::<u16>().is_ok());
    host.chars().all(is_of_host) && (is_literal || is_name) && is_port
}

const NAME: Kind<String> = Kind {
    expected: "the name of a header, or a list of them",
    parse: |name| value::check_field(name).map(|()| name.to_owned()),
};

fn section_of<'file, 'text>(
    route: &Section<'file, 'text>,
    message: EditedMessage,
    findings: &mut Diagnostics<'_>,
) -> Option<Section<'file, 'text>> {
    const EXPECTED: &str = "a table such as { set = { X-Name = \"value\" }, remove = [\"X-Old\"] }";
    let value = route.value(message.key)?;
    let keys = Keys::new(message.known);
    Section::of(message.key, value, EXPECTED, keys, findings)
}

/// Reads which responses are changed; `None` without the key, or if it is invalid.
fn read_on(section: &Section<'_, '_>, findings: &mut Diagnostics<'_>) -> Option<ResponseFilter> {
    const EXPECTED: &str =
        "\"always\", or statuses such as 200, \"200-299\" or \"2xx\", one or a list";
    let value = section.value("on")?;
    if value.get_ref().as_str() == Some("always") {
        return Some(ResponseFilter::Always);
    }
    let statuses = status::read_statuses(section, "on", EXPECTED, findings)?;
    (!statuses.is_empty()).then_some(ResponseFilter::Statuses(statuses))
}

fn read_field_edits(
    section: Option<Section<'_, '_>>,
    message: EditedMessage,
    findings: &mut Diagnostics<'_>,
) -> FieldEdits {
    let Some(section) = section else {
        return FieldEdits::default();
    };
    let remove = section.read_list("remove", NAME, findings);
    check_set_once(&section, remove.as_deref().unwrap_or_default(), findings);
    let edits = FieldEdits {
        remove: remove.unwrap_or_default(),
        set: read_templates(&section, "set", message, findings),
        add: read_templates(&section, "add", message, findings),
    };
    let added = edits.add.iter().map(|(name, _)| name);
    let mut touched = edits.remove.iter().chain(added);
    if touched.any(|name| {
        message
            .only
            .is_some_and(|only| name.eq_ignore_ascii_case(only))
    }) {
        findings.error(
            section.span(),
            "a request has one Host field (RFC 9112, section 3.2): it can be set, not removed or added",
        );
    }
    edits
}

/// Checks that a field is set only once, and warns if it is also removed.
fn check_set_once(edits: &Section<'_, '_>, remove: &[String], findings: &mut Diagnostics<'_>) {
    let Some(set) = edits.value("set").and_then(|set| set.get_ref().as_table()) else {
        return;
    };
    let mut before: Vec<Spanned<String>> = Vec::new();
    for (name, _) in entries_in_order(set) {
        let is_it = |other: &str| other.eq_ignore_ascii_case(name.get_ref());
        if let Some(first) = before.iter().find(|before| is_it(before.get_ref())) {
            let message = format!(
                "header {:?} is set twice, here and as {:?} in line {}: leave one of them out",
                name.get_ref(),
                first.get_ref(),
                findings.line_of(&first.span()),
            );
            findings.error(name.span(), message);
        }
        if remove.iter().any(|removed| is_it(removed)) {
            let message = format!(
                "header {:?} is set here and removed in line {}: set wins, because it replaces earlier values; remove the header from set or from remove",
                name.get_ref(),
                findings.line_of(&edits.place("remove")),
            );
            findings.warning(name.span(), message);
        }
        before.push(name);
    }
}

fn read_templates(
    edits: &Section<'_, '_>,
    key: &str,
    message: EditedMessage,
    findings: &mut Diagnostics<'_>,
) -> Vec<(String, Template)> {
    let Some(value) = edits.value(key) else {
        return Vec::new();
    };
    let Some(table) = value.get_ref().as_table() else {
        edits.report_kind(key, "a table such as { X-Name = \"value\" }", findings);
        return Vec::new();
    };
    let mut all = Vec::new();
    for (name, value) in entries_in_order(table) {
        let known = parsed(&name, value::check_field, findings);
        let what = format!("header {:?}", name.get_ref());
        let expected = "text such as \"value\" or \"{client.address}\"";
        let texts = read_texts(&what, value, expected, findings).unwrap_or_default();
        if key == "set" && texts.len() > 1 {
            let message = format!("{what} is set once: expected one string, or add for several");
            findings.error(value.span(), message);
        }
        for text in texts {
            let template = read_template(name.get_ref(), &text, message, findings);
            let name = known.map(|()| name.get_ref().clone());
            all.extend(name.zip(template));
        }
    }
    all
}

fn read_template(
    name: &str,
    text: &Spanned<String>,
    message: EditedMessage,
    findings: &mut Diagnostics<'_>,
) -> Option<Template> {
    let parse = |text: &str| {
        value::check_field_value(name, text)?;
        let template = value::parse_template(text.trim())?;
        (message.check)(&template)?;
        if message
            .only
            .is_some_and(|only| name.eq_ignore_ascii_case(only))
        {
            check_host(text, &template)?;
        }
        Ok(template)
    };
    parsed(text, parse, findings)
}
