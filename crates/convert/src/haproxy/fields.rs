//! Rules that change header fields of requests and responses.

use super::format::{Side, difference, template};
use super::request_changes::{FieldChange, Names};
use super::state::State;
use super::work::Context;
use crate::expression::dialect::translate;
use crate::settings::route::{FieldEdits, is_changeable};
use crate::source::directive::Directive;

pub(super) fn edit_request<'a>(
    work: &mut Context<'_, 'a>,
    line: &'a Directive,
    proxy: &str,
    state: &mut State,
) {
    let change = match line.argument(0) {
        "del-header" => Ok(FieldChange::Removed),
        action => {
            let side = Side::Request(&state.changed, proxy);
            let value = template(line.argument(2), side);
            let is_set = action == "set-header" || line.argument(1).eq_ignore_ascii_case("host");
            value.map(|value| match is_set {
                true => FieldChange::Set(value),
                false => FieldChange::Add(value),
            })
        }
    };
    let names = named(line);
    edit(work, line, &change, &mut state.request);
    let change = change.unwrap_or(FieldChange::Unclear);
    state.changed.change(names.clone(), change);
    if state.is_doubtful {
        state.changed.change(names, FieldChange::Unclear);
    }
}

/// Adds a change of a field to `edits`.
fn edit<'a>(
    work: &mut Context<'_, 'a>,
    line: &'a Directive,
    change: &Result<FieldChange, String>,
    edits: &mut FieldEdits,
) {
    let name = line.argument(1);
    if !is_changeable(name) {
        let why = "Onrush writes this field itself";
        return work.notes.without_effect(line, why);
    }
    let value = |value: &String| value.replace(char::is_control, " ");
    match change {
        Ok(FieldChange::Removed) => match line.argument(2) {
            "" | "if" | "unless" if !name.eq_ignore_ascii_case("host") => edits.remove(name),
            _ => {
                let why =
                    "fields can only be removed by their full names, and Host cannot be removed";
                return work.notes.left_out(line, why);
            }
        },
        Ok(FieldChange::Set(text)) => edits.set(name, value(text)),
        Ok(FieldChange::Add(text)) => edits.add(name, value(text)),
        Ok(FieldChange::Unclear) => {}
        // The server must not take the client's own value for the rule's.
        Err(sample) if line.argument(0) == "set-header" && !name.eq_ignore_ascii_case("host") => {
            edits.remove(name);
            let why = format!("Onrush has no equivalent for {sample}; the field is removed");
            return work.notes.left_out(line, why);
        }
        Err(sample) => {
            let why = format!("Onrush has no equivalent for {sample}");
            return work.notes.left_out(line, why);
        }
    }
    work.notes.carried(line);
    if let Some(how) = difference(line.argument(2)) {
        work.notes.approximated(line, how);
    }
}

pub(super) fn edit_response<'a>(
    work: &mut Context<'_, 'a>,
    line: &'a Directive,
    edits: &mut FieldEdits,
) {
    let value = || template(line.argument(2), Side::Response);
    let change = match line.argument(0) {
        "del-header" => Ok(FieldChange::Removed),
        "add-header" => value().map(FieldChange::Add),
        _ => value().map(FieldChange::Set),
    };
    edit(work, line, &change, edits);
}

/// The fields that a `del-header` removes.
pub(super) fn named(line: &Directive) -> Names {
    let name = line.argument(1);
    let text = regex::escape(&name.to_ascii_lowercase());
    let pattern = match (line.argument(2), line.argument(3)) {
        ("-m", "beg") => format!("^{text}"),
        ("-m", "end") => format!("{text}$"),
        ("-m", "sub") => text,
        ("-m", "reg") => match translate(&format!("(?i){name}")) {
            Ok(pattern) => pattern,
            Err(_) => return Names::All,
        },
        _ => return Names::One(name.to_owned()),
    };
    regex::Regex::new(&pattern).map_or(Names::All, Names::Matching)
}
