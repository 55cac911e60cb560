//! `onrush ctl connections`: filters, and a table of connections.

use std::fmt::Write;

use onrush_measure::amount::count;
use onrush_measure::table::Table;
use serde_json::Value;

use super::cell::{array_items, text_cell, time};

/// Which connections are shown.
#[derive(clap::Args)]
pub(super) struct Args {
    /// Only connections accepted by this listener
    #[arg(long, value_name = "NAME")]
    listener: Option<String>,
    /// Only clients in this address or network, as seen directly or in the PROXY header
    #[arg(long, value_name = "NETWORK")]
    client: Option<String>,
    /// Only connections in this state: introduction, handshake, idle, head, body, request, sending, tunnel or closing
    #[arg(long, value_name = "STATE")]
    state: Option<String>,
    /// Only connections older than this, such as 30s
    #[arg(long, value_name = "TIME")]
    older: Option<String>,
    /// Sort in descending order by age, idle, bytes or requests
    #[arg(long, value_name = "ORDER", default_value = "age")]
    sort: String,
    /// Show at most this many, up to 1000
    #[arg(long, value_name = "N", default_value = "100", value_parser = count)]
    limit: u64,
}

impl Args {
    /// Path and query of the request.
    pub(super) fn path(&self) -> String {
        let mut path = format!(
            "/v1/connections?sort={}&limit={}",
            encoded(&self.sort),
            self.limit
        );
        let filters = [
            ("listener", &self.listener),
            ("client", &self.client),
            ("state", &self.state),
            ("older", &self.older),
        ];
        for (name, value) in filters {
            if let Some(value) = value {
                path += &format!("&{name}={}", encoded(value));
            }
        }
        path
    }
}

/// Percent-encodes all bytes except the unreserved characters (RFC 3986 section 2.3).
fn encoded(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                out.push(byte.into());
            }
            _ => {
                let _ = write!(out, "%{byte:02X}");
            }
        }
    }
    out
}

pub(super) fn show(said: &Value) -> String {
    let head = [
        "id", "client", "state", "TLS", "age", "idle", "reqs", "in", "out",
    ];
    let mut table = Table::new(&head, 4..head.len());
    let mut more = String::new();
    for one in array_items(&said["connections"]) {
        table.push(vec![
            text_cell(&one["id"]),
            text_cell(&one["client"]),
            text_cell(&one["state"]),
            one["tls"]["version"]
                .as_str()
                .map_or("-", |version| version.trim_start_matches("TLSv"))
                .to_owned(),
            short_duration(&one["age"]),
            short_duration(&one["idle"]),
            text_cell(&one["requests"]),
            amount(&one["bytes_in"]),
            amount(&one["bytes_out"]),
        ]);
        let request = &one["request"];
        if !request.is_null() {
            more += &format!(
                "{}: {} {}, {} for {}\n",
                text_cell(&one["id"]),
                text_cell(&request["method"]),
                text_cell(&request["target"]),
                text_cell(&request["state"]),
                time(&request["age"]),
            );
        }
    }
    let open = &said["open"];
    if table.is_empty() {
        return format!("none of {open} open connections\n");
    }
    let mut text = table.text();
    text += &format!("{} of {open} open connections", said["matching"]);
    match said["not_listed"].as_u64() {
        None | Some(0) => text.push('\n'),
        Some(count) => text += &format!(", {count} of them not shown: --limit shows more\n"),
    }
    match more.is_empty() {
        true => text,
        false => format!("{text}\nrequests in flight:\n{more}"),
    }
}

/// Formats seconds in few letters, since the table has many columns.
fn short_duration(value: &Value) -> String {
    match value.as_f64() {
        None => "-".to_owned(),
        Some(seconds) if seconds < 1.0 => format!("{:.0}ms", seconds * 1e3),
        Some(seconds) if seconds < 100.0 => format!("{seconds:.1}s"),
        Some(seconds) if seconds < 6000.0 => format!("{:.0}m", seconds / 60.0),
        Some(seconds) if seconds < 360_000.0 => format!("{:.0}h", seconds / 3600.0),
        Some(seconds) => format!("{:.0}d", seconds / 86_400.0),
    }
}

/// Formats bytes in few letters, with the units of ls(1).
fn amount(value: &Value) -> String {
    let Some(mut amount) = value.as_f64() else {
        return "-".to_owned();
    };
    if amount < 1024.0 {
        return amount.to_string();
    }
    for unit in ["K", "M", "G"] {
        amount /= 1024.0;
        if amount < 1000.0 {
            return format!("{amount:.1}{unit}");
        }
    }
    format!("{:.1}T", amount / 1024.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn filters_become_query_string() {
        let args = Args {
            listener: Some("a b&c".to_owned()),
            client: Some("10.0.0.0/8".to_owned()),
            state: None,
            older: Some("10s".to_owned()),
            sort: "age".to_owned(),
            limit: 5,
        };
        let path =
            "/v1/connections?sort=age&limit=5&listener=a%20b%26c&client=10.0.0.0%2F8&older=10s";
        assert_eq!(args.path(), path);
    }

    #[test]
    fn numbers_are_abbreviated() {
        for (seconds, text) in [
            (0.25, "250ms"),
            (2.5, "2.5s"),
            (1234.5, "21m"),
            (7200.0, "2h"),
            (864_000.0, "10d"),
        ] {
            assert_eq!(short_duration(&json!(seconds)), text);
        }
        for (bytes, text) in [
            (0, "0"),
            (1023, "1023"),
            (1536, "1.5K"),
            (5_u64 << 40, "5.0T"),
        ] {
            assert_eq!(amount(&json!(bytes)), text);
        }
        assert_eq!(
            (short_duration(&Value::Null), amount(&Value::Null)),
            ("-".to_owned(), "-".to_owned())
        );
    }

    #[test]
    fn table_fits_terminal_and_reports_omitted_rows() {
        let one = json!({
            "id": "0.1234567", "client": "192.168.100.200:65535", "state": "introduction", "tls": { "version": "TLSv1.3" },
            "age": 1234.5, "idle": 0.25, "requests": 12, "bytes_in": 1000, "bytes_out": null,
            "request": { "method": "GET", "target": "/a", "state": "waiting", "age": 0.5 },
        });
        let said = json!({ "open": 12, "matching": 7, "not_listed": 6, "connections": [one] });
        let text = show(&said);
        assert!(
            text.lines().all(|line| line.chars().count() <= 80),
            "{text}"
        );
        assert!(
            text.contains("7 of 12 open connections, 6 of them not shown: --limit shows more\n"),
            "{text}"
        );
        assert!(
            text.ends_with("requests in flight:\n0.1234567: GET /a, waiting for 500.0 ms\n"),
            "{text}"
        );
        let none = json!({ "open": 3, "matching": 0, "not_listed": 0, "connections": [] });
        assert_eq!(show(&none), "none of 3 open connections\n");
    }
}
