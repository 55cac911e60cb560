//! Formats the server's JSON as text.

use onrush_measure::table::Table;
use serde_json::Value;

use super::cell::{array_items, bytes, text_cell, time};

/// A line about trace spans, if there are any, and the newline that ends the paragraph.
fn spans(said: &Value) -> String {
    let lost = said["lost"].as_object().into_iter().flatten();
    let lost: Vec<(&String, u64)> = lost
        .map(|(reason, count)| (reason, count.as_u64().unwrap_or(0)))
        .filter(|(_, count)| *count > 0)
        .collect();
    let exported = said["exported"].as_u64().unwrap_or(0);
    if exported == 0 && lost.is_empty() {
        return "\n".to_owned();
    }
    let sum: u64 = lost.iter().map(|(_, count)| count).sum();
    let reasons: Vec<String> = lost
        .iter()
        .map(|(reason, count)| format!("{count} {}", reason.replace('_', " ")))
        .collect();
    match reasons.is_empty() {
        true => format!("{exported} spans sent, none lost\n\n"),
        false => format!(
            "{exported} spans sent, {sum} lost ({})\n\n",
            reasons.join(", ")
        ),
    }
}

/// Describes the rights that the server has dropped.
fn rights(said: &Value) -> String {
    let filter = match said["seccomp"] == true {
        true => "\nseccomp filter",
        false => "",
    };
    let landlock = match said["landlock"].as_i64() {
        Some(abi) => format!("\nLandlock, ABI {abi}"),
        None => String::new(),
    };
    if said["reduced"] != true {
        return landlock + filter;
    }
    let capabilities: Vec<String> = array_items(&said["capabilities"]).map(text_cell).collect();
    let capabilities = match capabilities.is_empty() {
        true => "no capabilities".to_owned(),
        false => format!("{} only", capabilities.join(", ")),
    };
    let (user, group) = (text_cell(&said["user"]), text_cell(&said["group"]));
    format!("\nuser {user}, group {group}, {capabilities}{landlock}{filter}")
}

pub(super) fn status(said: &Value) -> String {
    let uptime = said["uptime"].as_f64().unwrap_or(0.0) as u64;
    let mut text = format!(
        "onrush {}, process {}, {}, for {} d {:02}:{:02}:{:02}\n\
         configuration {}, driver {}{}\n\
         {} requests on {} connections; {} in flight, {} connections open\n",
        text_cell(&said["version"]),
        text_cell(&said["process"]),
        text_cell(&said["phase"]),
        uptime / 86400,
        uptime / 3600 % 24,
        uptime / 60 % 60,
        uptime % 60,
        text_cell(&said["generation"]),
        text_cell(&said["driver"]),
        rights(&said["privileges"]),
        text_cell(&said["requests"]),
        text_cell(&said["connections_total"]),
        text_cell(&said["in_flight"]),
        text_cell(&said["connections"]),
    );
    for address in array_items(&said["sockets_gone"]) {
        text += &format!(
            "the socket file {} is gone: no client can connect to it; restart the server\n",
            text_cell(address)
        );
    }
    text += &spans(&said["spans"]);
    let head = [
        "core",
        "CPU",
        "CPU time",
        "waited for CPU",
        "longest turn",
        "connections",
        "in flight",
        "requests",
        "buffers",
    ];
    let mut table = Table::new(&head, 0..head.len());
    for core in array_items(&said["cores"]) {
        table.push(vec![
            text_cell(&core["core"]),
            text_cell(&core["cpu"]),
            time(&core["cpu_time"]),
            time(&core["run_queue_time"]),
            time(&core["busy_max"]),
            text_cell(&core["connections"]),
            text_cell(&core["in_flight"]),
            text_cell(&core["requests"]),
            text_cell(&core["buffers"]),
        ]);
    }
    text += &table.text();
    text
}

pub(super) fn servers(said: &Value) -> String {
    let mut text = String::new();
    for group in array_items(&said["groups"]) {
        text += &format!(
            "{}: {} requests, {} in flight, {} of {} queued, p99 {}\n",
            text_cell(&group["name"]),
            text_cell(&group["requests"]),
            text_cell(&group["in_flight"]),
            text_cell(&group["queued"]),
            text_cell(&group["queue_max"]),
            time(&group["duration"]["p99"]),
        );
        let head = [
            "server",
            "address",
            "state",
            "weight",
            "in flight",
            "idle",
            "2xx",
            "4xx",
            "5xx",
            "failed",
            "p50",
            "p99",
            "last event",
        ];
        let mut table = Table::new(&head, 3..head.len());
        for server in array_items(&group["servers"]) {
            let (state, wanted) = (text_cell(&server["state"]), text_cell(&server["wanted"]));
            let responses = &server["responses"];
            table.push(vec![
                text_cell(&server["name"]),
                text_cell(&server["address"]),
                match wanted.as_str() {
                    "up" => state,
                    wanted => format!("{wanted} by hand ({state})"),
                } + if server["backup"] == true {
                    ", backup"
                } else {
                    ""
                },
                text_cell(&server["weight"])
                    + if server["weight_is_set"] == true {
                        " by hand"
                    } else {
                        ""
                    },
                text_cell(&server["in_flight"]),
                text_cell(&server["idle_connections"]),
                text_cell(&responses["2xx"]),
                text_cell(&responses["4xx"]),
                text_cell(&responses["5xx"]),
                text_cell(&server["failures"]),
                time(&server["first_byte"]["p50"]),
                time(&server["first_byte"]["p99"]),
                last(&server["events"]),
            ]);
        }
        text += &table.text();
        text.push('\n');
    }
    match text.is_empty() {
        true => "no groups of servers\n".to_owned(),
        false => text,
    }
}

/// Kind and time of a server's latest event.
fn last(events: &Value) -> String {
    let Some(event) = events.as_array().and_then(|events| events.last()) else {
        return "-".to_owned();
    };
    let kind = event["event"].as_str().unwrap_or("");
    let kind = kind.strip_prefix("server_").unwrap_or(kind);
    format!("{kind} {}", text_cell(&event["time"]))
}

pub(super) fn events(list: &Value) -> String {
    match array_items(list).map(event).collect::<String>() {
        text if text.is_empty() => "no events yet\n".to_owned(),
        text => text,
    }
}

pub(super) fn event(event: &Value) -> String {
    format!(
        "{} {:5} {}\n",
        text_cell(&event["time"]),
        text_cell(&event["level"]),
        text_cell(&event["message"])
    )
}

/// Table of listeners or routes.
pub(super) fn traffic(list: &Value, what: &str) -> String {
    let head = [
        what, "requests", "2xx", "3xx", "4xx", "5xx", "given up", "sent", "p50", "p90", "p99",
        "p99.9",
    ];
    let mut table = Table::new(&head, 1..head.len());
    for one in array_items(list) {
        let (responses, duration) = (&one["responses"], &one["duration"]);
        table.push(vec![
            text_cell(&one["name"]),
            text_cell(&one["requests"]),
            text_cell(&responses["2xx"]),
            text_cell(&responses["3xx"]),
            text_cell(&responses["4xx"]),
            text_cell(&responses["5xx"]),
            text_cell(&one["given_up_by_clients"]),
            bytes(&one["bytes_sent"]),
            time(&duration["p50"]),
            time(&duration["p90"]),
            time(&duration["p99"]),
            time(&duration["p99.9"]),
        ]);
    }
    table.text()
}

pub(super) fn requests(said: &Value) -> String {
    let mut table = Table::new(
        &["age", "state", "client", "core", "server", "request"],
        6..6,
    );
    for one in array_items(&said["requests"]) {
        table.push(vec![
            time(&one["age"]),
            text_cell(&one["state"]),
            text_cell(&one["client"]),
            text_cell(&one["core"]),
            text_cell(&one["server"]),
            format!(
                "{} {}",
                text_cell(&one["method"]),
                text_cell(&one["target"])
            ),
        ]);
    }
    if table.is_empty() {
        return "no requests in flight\n".to_owned();
    }
    let mut text = table.text();
    if said["not_listed"] != 0 {
        text += &format!("and {} newer requests\n", said["not_listed"]);
    }
    text
}

pub(super) fn configuration(said: &Value) -> String {
    match (&said["file"], said["text"].as_str()) {
        (Value::String(file), Some(text)) => {
            let first = format!(
                "# {file}, in force as generation {}\n{text}",
                said["generation"]
            );
            let included = array_items(&said["included"]).map(|included| {
                let text = included["text"].as_str().unwrap_or_default();
                format!("\n# {}, included\n{text}", text_cell(&included["file"]))
            });
            std::iter::once(first).chain(included).collect()
        }
        _ => {
            let words: Vec<String> = array_items(&said["command_line"]).map(text_cell).collect();
            format!("onrush {}\n", words.join(" "))
        }
    }
}

pub(super) fn reload(said: &Value) -> String {
    let mut text = format!("generation {} is in force\n", said["generation"]);
    let changes: Vec<String> = array_items(&said["changes"]).map(text_cell).collect();
    match changes.is_empty() {
        true => text += "no changes in the file; the files that it names were read again\n",
        false => changes
            .iter()
            .for_each(|change| text += &format!("  {change}\n")),
    }
    if said["changes_not_shown"] != 0 {
        text += &format!("  and {} more\n", said["changes_not_shown"]);
    }
    for address in array_items(&said["listening"]) {
        text += &format!("  listening on {}\n", text_cell(address));
    }
    for address in array_items(&said["listening_no_more"]) {
        text += &format!("  no longer listening on {}\n", text_cell(address));
    }
    let used: Vec<String> = array_items(&said["generations_in_use"])
        .map(text_cell)
        .collect();
    if !used.is_empty() {
        text += &format!(
            "requests in flight keep their configuration: generation {}\n",
            used.join(", ")
        );
    }
    text
}
