//! What a server says of itself, for people: tables as wide as they have to be.

use serde_json::Value;

/// A table with a head; numbers stand to the right.
struct Table {
    rows: Vec<Vec<String>>,
    /// Columns of text, from the left.
    texts: usize,
}

impl Table {
    fn new(texts: usize, head: &[&str]) -> Table {
        Table {
            rows: vec![head.iter().map(|&word| word.to_owned()).collect()],
            texts,
        }
    }

    fn text(&self) -> String {
        let columns = self.rows[0].len();
        let width = |column: usize| {
            let cells = self.rows.iter().map(|row| row[column].chars().count());
            cells.max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let mut text = String::new();
        for row in &self.rows {
            let cells = row.iter().zip(&widths).enumerate();
            let cells = cells.map(|(column, (cell, &width))| match column < self.texts {
                true => format!("{cell:<width$}"),
                false => format!("{cell:>width$}"),
            });
            let line = cells.collect::<Vec<_>>().join("  ");
            text += line.trim_end();
            text.push('\n');
        }
        text
    }
}

fn word(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Seconds with a unit that suits them.
fn time(value: &Value) -> String {
    match value.as_f64() {
        None => "-".to_owned(),
        Some(seconds) if seconds < 1e-3 => format!("{:.0} us", seconds * 1e6),
        Some(seconds) if seconds < 1.0 => format!("{:.1} ms", seconds * 1e3),
        Some(seconds) => format!("{seconds:.2} s"),
    }
}

fn bytes(value: &Value) -> String {
    let mut amount = value.as_f64().unwrap_or(0.0);
    for unit in ["B", "KiB", "MiB", "GiB"] {
        if amount < 1024.0 {
            return match unit {
                "B" => format!("{amount} B"),
                unit => format!("{amount:.1} {unit}"),
            };
        }
        amount /= 1024.0;
    }
    format!("{amount:.1} TiB")
}

/// What there is of a list.
fn all(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

pub(super) fn status(said: &Value) -> String {
    let uptime = said["uptime"].as_f64().unwrap_or(0.0) as u64;
    let mut text = format!(
        "onrush {}, process {}, {}, for {} d {:02}:{:02}:{:02}\n\
         configuration {}, driver {}\n\
         {} requests on {} connections; {} in flight, {} connections open\n\n",
        word(&said["version"]),
        word(&said["process"]),
        word(&said["phase"]),
        uptime / 86400,
        uptime / 3600 % 24,
        uptime / 60 % 60,
        uptime % 60,
        word(&said["generation"]),
        word(&said["driver"]),
        word(&said["requests"]),
        word(&said["connections_total"]),
        word(&said["in_flight"]),
        word(&said["connections"]),
    );
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
    let mut table = Table::new(0, &head);
    for core in all(&said["cores"]) {
        table.rows.push(vec![
            word(&core["core"]),
            word(&core["cpu"]),
            time(&core["cpu_time"]),
            time(&core["run_queue_time"]),
            time(&core["busy_max"]),
            word(&core["connections"]),
            word(&core["in_flight"]),
            word(&core["requests"]),
            word(&core["buffers"]),
        ]);
    }
    text += &table.text();
    text
}

pub(super) fn servers(said: &Value) -> String {
    let mut text = String::new();
    for group in all(&said["groups"]) {
        text += &format!(
            "{}: {} requests, {} in flight, {} of {} queued, p99 {}\n",
            word(&group["name"]),
            word(&group["requests"]),
            word(&group["in_flight"]),
            word(&group["queued"]),
            word(&group["queue_max"]),
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
        let mut table = Table::new(3, &head);
        for server in all(&group["servers"]) {
            let (state, wanted) = (word(&server["state"]), word(&server["wanted"]));
            let responses = &server["responses"];
            table.rows.push(vec![
                word(&server["name"]),
                word(&server["address"]),
                match wanted.as_str() {
                    "up" => state,
                    wanted => format!("{wanted} by hand ({state})"),
                } + if server["backup"] == true {
                    ", backup"
                } else {
                    ""
                },
                word(&server["weight"])
                    + if server["weight_is_set"] == true {
                        " by hand"
                    } else {
                        ""
                    },
                word(&server["in_flight"]),
                word(&server["idle_connections"]),
                word(&responses["2xx"]),
                word(&responses["4xx"]),
                word(&responses["5xx"]),
                word(&server["failures"]),
                time(&server["first_byte"]["p50"]),
                time(&server["first_byte"]["p99"]),
                last(&server["events"]),
            ]);
        }
        text += &table.text();
        text.push('\n');
    }
    match text.is_empty() {
        true => "there are no groups of servers\n".to_owned(),
        false => text,
    }
}

/// The last of a server's events.
fn last(events: &Value) -> String {
    let Some(event) = events.as_array().and_then(|events| events.last()) else {
        return "-".to_owned();
    };
    let kind = event["event"].as_str().unwrap_or("");
    let kind = kind.strip_prefix("server_").unwrap_or(kind);
    format!("{kind} {}", word(&event["time"]))
}

pub(super) fn events(list: &Value) -> String {
    match all(list).map(event).collect::<String>() {
        text if text.is_empty() => "nothing has happened yet\n".to_owned(),
        text => text,
    }
}

/// A line about something that happened.
pub(super) fn event(event: &Value) -> String {
    format!(
        "{} {:5} {}\n",
        word(&event["time"]),
        word(&event["level"]),
        word(&event["message"])
    )
}

/// Of listeners or routes.
pub(super) fn traffic(list: &Value, what: &str) -> String {
    let head = [
        what, "requests", "2xx", "3xx", "4xx", "5xx", "given up", "sent", "p50", "p90", "p99",
        "p99.9",
    ];
    let mut table = Table::new(1, &head);
    for one in all(list) {
        let (responses, duration) = (&one["responses"], &one["duration"]);
        table.rows.push(vec![
            word(&one["name"]),
            word(&one["requests"]),
            word(&responses["2xx"]),
            word(&responses["3xx"]),
            word(&responses["4xx"]),
            word(&responses["5xx"]),
            word(&one["given_up_by_clients"]),
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
    let mut table = Table::new(6, &["age", "state", "client", "core", "server", "request"]);
    for one in all(&said["requests"]) {
        table.rows.push(vec![
            time(&one["age"]),
            word(&one["state"]),
            word(&one["client"]),
            word(&one["core"]),
            word(&one["server"]),
            format!("{} {}", word(&one["method"]), word(&one["target"])),
        ]);
    }
    if table.rows.len() == 1 {
        return "no request is under way\n".to_owned();
    }
    let mut text = table.text();
    if said["not_listed"] != 0 {
        text += &format!("and {} younger ones\n", said["not_listed"]);
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
            let included = all(&said["included"]).map(|included| {
                let text = word(&included["text"]);
                format!("\n# {}, included\n{text}", word(&included["file"]))
            });
            std::iter::once(first).chain(included).collect()
        }
        _ => {
            let words: Vec<String> = all(&said["command_line"]).map(word).collect();
            format!("onrush {}\n", words.join(" "))
        }
    }
}

pub(super) fn reload(said: &Value) -> String {
    let mut text = format!("generation {} is in force\n", said["generation"]);
    let changes: Vec<String> = all(&said["changes"]).map(word).collect();
    match changes.is_empty() {
        true => {
            text += "nothing in the file has changed; the files that it names were read again\n"
        }
        false => changes
            .iter()
            .for_each(|change| text += &format!("  {change}\n")),
    }
    if said["changes_not_shown"] != 0 {
        text += &format!("  and {} more\n", said["changes_not_shown"]);
    }
    for address in all(&said["listening"]) {
        text += &format!("  listening on {}\n", word(address));
    }
    for address in all(&said["listening_no_more"]) {
        text += &format!("  listening no more on {}\n", word(address));
    }
    let used: Vec<String> = all(&said["generations_in_use"]).map(word).collect();
    if !used.is_empty() {
        text += &format!(
            "requests that have not ended are served as they began, by generation {}\n",
            used.join(", ")
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn numbers_have_units_that_suit_them() {
        for (seconds, text) in [(0.000_012, "12 us"), (0.012_34, "12.3 ms"), (2.5, "2.50 s")] {
            assert_eq!(time(&json!(seconds)), text);
        }
        assert_eq!(time(&Value::Null), "-");
        for (count, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1536, "1.5 KiB"),
            (5_u64 << 30, "5.0 GiB"),
        ] {
            assert_eq!(bytes(&json!(count)), text);
        }
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut table = Table::new(1, &["name", "n"]);
        table.rows.push(vec!["a".into(), "100".into()]);
        assert_eq!(table.text(), "name    n\na     100\n");
    }
}
