//! Settings of a proxy other than its rules: timeouts, compression, logs, and forwarding of the client address.

use super::proxy::{Kind, Proxy};
use super::state::State;
use super::work::Context;
use crate::document::Value;
use crate::settings::access_log::syslog;
use crate::settings::route::is_changeable;
use crate::settings::unit::haproxy_time;

/// Reads the settings: route settings into `state`, other settings into `work`.
pub(super) fn read<'a>(work: &mut Context<'_, 'a>, proxy: &Proxy<'a>, state: &mut State) {
    work.notes.carried(proxy.section);
    if let Some(line) = proxy.last(&["mode"]) {
        work.notes.carried(line);
    }
    timeouts(work, proxy);
    log(work, proxy);
    forwarded(work, proxy, state);
    compression(work, proxy, state);
    fields(work, proxy, state);
    for line in proxy.all(&["errorfile"]) {
        let how = "error responses of Onrush have the same status and a one-line body";
        work.notes.approximated(line, how);
    }
    for line in proxy.all(&["errorfiles"]) {
        let how = "error responses of Onrush have the same status and a one-line body";
        work.notes.approximated(line, how);
    }
    for name in ["errorloc", "errorloc302", "errorloc303"] {
        for line in proxy.all(&[name]) {
            work.notes
                .left_out(line, "error responses cannot be redirects");
        }
    }
    for name in ["stats", "stick-table", "stick"] {
        for line in proxy.all(&[name]) {
            let why = match name {
                "stats" => "Onrush has no statistics page",
                _ => "Onrush has no stick tables",
            };
            work.notes.left_out(line, why);
        }
    }
}

/// `log`, of the proxy itself or of `global`.
fn log<'a>(work: &mut Context<'_, 'a>, proxy: &Proxy<'a>) {
    let Some(line) = proxy
        .switch(&["log"])
        .filter(|_| proxy.kind != Kind::Backend)
    else {
        return;
    };
    let said = match line.argument(0) {
        "global" => match work.global_switch("log") {
            Some(global) => {
                work.notes.carried(line);
                global
            }
            None => return,
        },
        _ => line,
    };
    let place = match said.argument(0) {
        "stdout" => Some("stdout".to_owned()),
        server => syslog(server),
    };
    match place {
        Some(place) => work.log.set_destination(place, said, &mut work.notes),
        None => {
            let why =
                "Onrush can only log to standard output or to a syslog server at an IP address";
            work.notes.without_effect(said, why);
        }
    }
}

fn timeouts<'a>(work: &mut Context<'_, 'a>, proxy: &Proxy<'a>) {
    let has = |name: &str| proxy.last(&["timeout", name]).is_some();
    let is_front = proxy.kind != Kind::Backend;
    let is_back = proxy.kind != Kind::Frontend;
    // HAProxy's fallbacks: `client` for a missing `http-request`, both for `http-keep-alive`, `connect` for `queue`.
    let mut client = vec!["client_body", "client_send"];
    if !has("http-request") {
        client.push("client_head");
    }
    let mut head = vec!["client_head"];
    if !has("http-keep-alive") {
        match has("http-request") {
            true => head.push("client_idle"),
            false => client.push("client_idle"),
        }
    }
    let mut connect = vec!["connect"];
    if !has("queue") {
        connect.push("queue");
    }
    // Without server-fin, HAProxy applies this time to half-closed tunnels, too.
    let mut tunnel = vec!["tunnel_idle"];
    if !has("server-fin") {
        tunnel.push("tunnel_fin");
    }
    let lists: [(&str, bool, &[&'static str]); 8] = [
        ("client", is_front, &client),
        ("http-request", is_front, &head),
        ("http-keep-alive", is_front, &["client_idle"]),
        ("connect", is_back, &connect),
        ("queue", is_back, &["queue"]),
        ("server", is_back, &["upstream_first_byte", "upstream_body"]),
        ("tunnel", is_back, &tunnel),
        // Applies after the client has closed its side, while HAProxy waits for the server.
        ("server-fin", is_back, &["tunnel_fin"]),
    ];
    for (name, is_here, keys) in lists {
        let Some(line) = proxy.last(&["timeout", name]).filter(|_| is_here) else {
            continue;
        };
        match haproxy_time(line.argument(1)) {
            Some(time) => {
                for key in keys {
                    work.timeouts.record(key, time, line);
                }
            }
            None => work.notes.left_out(line, "expected a time such as 30s"),
        }
    }
    if let Some(line) = proxy.last(&["timeout", "client-fin"]).filter(|_| is_front) {
        let why = "HAProxy applies it when a server has closed its side of a tunnel and nothing more is forwarded; when the client has closed its side, timeout server-fin applies";
        work.notes.without_effect(line, why);
    }
}

/// `option forwardfor` and `option forwarded`.
fn forwarded<'a>(work: &mut Context<'_, 'a>, proxy: &Proxy<'a>, state: &mut State) {
    if let Some(line) = proxy.option("forwardfor") {
        let words = &line.words[2..];
        let header = words.iter().position(|word| word == "header");
        match header.and_then(|at| words.get(at + 1)) {
            Some(name) if !name.eq_ignore_ascii_case("x-forwarded-for") => {
                state.request.set(name, "{client.address}");
                work.notes.carried(line);
            }
            _ => {
                work.forwards_clients = true;
                state.is_forwarded = true;
                let how = "[forwarded] applies to all requests and also sends X-Forwarded-Proto and X-Forwarded-Host; fields of clients are only accepted from proxies in trust";
                work.notes.approximated(line, how);
            }
        }
    }
    if let Some(line) = proxy.option("forwarded") {
        work.forwards_clients = true;
        let how = "[forwarded] sends X-Forwarded-For; set send = \"forwarded\" to send Forwarded";
        work.notes.approximated(line, how);
    }
}

/// Media types that HAProxy compresses without `compression type`: all but multipart.
const ALL_TYPES: [&str; 6] = [
    "application/*",
    "audio/*",
    "font/*",
    "image/*",
    "text/*",
    "video/*",
];

fn compression<'a>(work: &mut Context<'_, 'a>, proxy: &Proxy<'a>, state: &mut State) {
    let Some(line) = proxy.last(&["compression", "algo"]) else {
        return;
    };
    if !line.arguments().iter().any(|word| word == "gzip") {
        return work.notes.left_out(line, "Onrush only supports gzip");
    }
    work.notes.carried(line);
    let mut entries = vec![
        ("codings".to_owned(), Value::texts(["gzip"])),
        // HAProxy has no minimum size.
        ("size_min".to_owned(), Value::Number(1)),
    ];
    if let Some(line) = proxy.last(&["compression", "type"]) {
        work.notes.carried(line);
        let types = line.arguments()[1..].iter();
        let mut types: Vec<String> = types
            .filter(|kind| kind.contains('/'))
            .map(|kind| match kind.strip_suffix('/') {
                Some(kind) => format!("{kind}/*"),
                None => kind.to_ascii_lowercase(),
            })
            .collect();
        types.sort_unstable();
        types.dedup();
        if !types.is_empty() {
            entries.push(("types".to_owned(), Value::texts(types)));
        }
    } else {
        entries.push(("types".to_owned(), Value::texts(ALL_TYPES)));
        let how = "responses without Content-Type are not compressed";
        work.notes.approximated(line, how);
    }
    if let Some(line) = proxy.last(&["compression", "offload"]) {
        work.notes.carried(line);
        state.request.remove("Accept-Encoding");
    }
    state.compress = Some(Value::Table(entries));
}

/// `option http-restrict-req-hdr-names` and `unique-id-header`.
fn fields<'a>(work: &mut Context<'_, 'a>, proxy: &Proxy<'a>, state: &mut State) {
    if let Some(line) = proxy.option("http-restrict-req-hdr-names") {
        match line.argument(1) {
            "preserve" => work.notes.carried(line),
            _ => {
                let why = "fields with characters other than letters, digits and hyphens in their names are forwarded";
                work.notes.left_out(line, why);
            }
        }
    }
    let (Some(format), Some(line)) = (
        proxy.last(&["unique-id-format"]),
        proxy.last(&["unique-id-header"]),
    ) else {
        return;
    };
    if proxy.kind == Kind::Backend {
        return;
    }
    let name = line.argument(0);
    if !is_changeable(name) {
        let why = format!("{name:?} is not a field that a route can set");
        return work.notes.left_out(line, why);
    }
    state.last.add(name, "{request_id}");
    work.notes.carried(line);
    let how = "a request ID has 32 hexadecimal digits, not this format";
    work.notes.approximated(format, how);
}
