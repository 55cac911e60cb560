//! The explanation of a request, as text.

use serde_json::Value;

/// Width of the label before each line.
const LABEL: usize = 9;

pub(crate) fn show(value: &Value) -> String {
    let mut lines = Lines(String::new());
    let request = &value["request"];
    let from = request["client"].as_str().unwrap_or("a Unix socket");
    lines.put(
        "request",
        &format!(
            "{} {} of {}, by {} from {from}",
            text(&request["method"]),
            text(&request["target"]),
            text(&request["host"]),
            text(&request["scheme"]),
        ),
    );
    lines.put("listener", text(&value["listener"]));
    for note in list(&value["notes"]) {
        lines.put("note", text(note));
    }
    for passed in list(&value["passed"]) {
        let (expected, found) = (text(&passed["expected"]), text(&passed["found"]));
        let condition = text(&passed["condition"]);
        let route = route(passed);
        lines.put(
            "passed",
            &format!("{route}: {condition} is {found}, expected {expected}"),
        );
    }
    match value["route"].is_null() {
        true => lines.put("route", "none"),
        false => lines.put("route", &route(&value["route"])),
    }
    match text(&value["answer"]["kind"]) {
        "forward" => forward(&value["answer"], &mut lines),
        _ => own(&value["answer"], &mut lines),
    }
    for (label, key) in [("limits", "limits"), ("response", "response_headers")] {
        for fact in list(&value[key]) {
            let fact = format!("{} = {}", text(&fact["key"]), text(&fact["value"]));
            lines.put(label, &fact);
        }
    }
    for unknown in list(&value["unknown"]) {
        lines.put("unknown", text(unknown));
    }
    lines.0
}

struct Lines(String);

impl Lines {
    /// Adds a line; a label equal to the last one is left blank.
    fn put(&mut self, label: &str, text: &str) {
        let last = self.0.lines().rev().find(|line| !line.starts_with(' '));
        let is_repeated = last.is_some_and(|line| line.split(' ').next() == Some(label));
        let shown = if is_repeated { "" } else { label };
        self.0 += &format!("{shown:LABEL$} {text}\n");
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or("")
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn texts(value: &Value) -> String {
    list(value).map(text).collect::<Vec<_>>().join(", ")
}

fn route(value: &Value) -> String {
    let line = match (value["line"].as_u64(), value["file"].as_str()) {
        (Some(line), Some(file)) => format!(" in line {line} of {file}"),
        (Some(line), None) => format!(" in line {line}"),
        _ => String::new(),
    };
    format!(
        "[[route]] {}{line} ({})",
        value["number"],
        text(&value["name"])
    )
}

fn own(outcome: &Value, lines: &mut Lines) {
    let by = text(&outcome["by"]);
    match outcome["status"].as_u64() {
        Some(status) => lines.put("answer", &format!("{status}: {by}")),
        None => lines.put("answer", by),
    }
    if let Some(location) = outcome["location"].as_str() {
        lines.put("location", location);
    }
}

fn forward(outcome: &Value, lines: &mut Lines) {
    let groups: Vec<&Value> = list(&outcome["groups"]).collect();
    let weights: u64 = groups
        .iter()
        .filter_map(|group| group["weight"].as_u64())
        .sum();
    for group in &groups {
        let share = match groups.len() {
            1 => String::new(),
            _ => format!(" ({} of {weights} requests)", group["weight"]),
        };
        lines.put(
            "forward",
            &format!("to group {}{share}", text(&group["group"])),
        );
        let servers = texts(&group["servers"]);
        let one_of = match list(&group["servers"]).count() {
            1 => "",
            _ => "one of ",
        };
        lines.put(
            "server",
            &format!("{one_of}{servers}, by {}", text(&group["by"])),
        );
        let backups = texts(&group["backups"]);
        if !backups.is_empty() {
            lines.put("backups", &backups);
        }
        for line in list(&group["head"]) {
            lines.put("sent", text(line));
        }
    }
    if let Some(share) = outcome["mirror"]["share"].as_f64() {
        let group = text(&outcome["mirror"]["group"]);
        lines.put("mirror", &format!("{}% to group {group}", share * 100.0));
    }
}
