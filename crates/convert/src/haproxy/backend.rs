//! A backend as a group of servers: balancing, stickiness and retries.

use super::health_check;
use super::protocol::Protocol;
use super::proxy::Proxy;
use super::server::Keys;
use super::servers;
use super::work::Context;
use crate::document::Value;
use crate::settings::group::Group;
use crate::settings::route::{FieldEdits, escaped, is_changeable};
use crate::settings::unit::{bounded, haproxy_time, written};
use crate::source::directive::Directive;

/// Adds the group of a backend and returns its name; none if it has no servers.
pub(super) fn group<'a>(work: &mut Context<'_, 'a>, proxy: &Proxy<'a>) -> Option<String> {
    let servers = servers::read(work, proxy);
    if servers.list.is_empty() {
        return None;
    }
    let mut group = Group::of(proxy.section.origin(), servers.list);
    balance(work, proxy, &mut group);
    cookie(work, proxy, &mut group);
    if let Some(keys) = servers.health {
        let health = health_check::health(work, proxy, owned(keys));
        group.put("health", health);
    }
    if servers.is_observed {
        group.put("eject", Value::Truth(true));
    }
    retries(work, proxy, &mut group);
    match servers.protocol {
        Protocol::Http1 => {}
        Protocol::Http2 => group.put("protocol", Value::text("h2")),
    }
    match servers.proxy_protocol {
        None => reuse(work, proxy, servers.protocol, &mut group),
        Some(_) => {
            if let Some(line) = proxy.last(&["http-reuse"]) {
                let how = "connections are not reused, because their PROXY header names one client";
                work.notes.approximated(line, how);
            }
        }
    }
    if let Some(tls) = servers.tls {
        let tls = match tls.is_empty() {
            true => Value::Truth(true),
            false => Value::Table(owned(tls)),
        };
        group.put("tls", tls);
    }
    if let Some(version) = servers.proxy_protocol {
        group.put("proxy_protocol", Value::text(version));
    }
    if let Some(time) = servers.slow_start {
        group.put("slow_start", Value::Text(time));
    }
    Some(work.groups.name(proxy.name(), group))
}

/// `http-send-name-header`: a field of the request with the name of the server.
pub(super) fn name_server<'a>(
    work: &mut Context<'_, 'a>,
    proxy: &Proxy<'a>,
    edits: &mut FieldEdits,
) {
    let Some(line) = proxy.last(&["http-send-name-header"]) else {
        return;
    };
    let name = line.argument(0);
    if !is_changeable(name) || name.eq_ignore_ascii_case("host") {
        let why = format!("{name:?} is not a field that Onrush can set to the name of a server");
        return work.notes.left_out(line, why);
    }
    let servers: Vec<&Directive> = proxy.all(&["server"]).collect();
    let has_template = proxy.last(&["server-template"]).is_some();
    match &servers[..] {
        [one] if !has_template => {
            edits.set(name, escaped(one.argument(0)));
            work.notes.carried(line);
        }
        _ => {
            edits.remove(name);
            let why = "the field is removed: all servers of a group get the same request, so it cannot contain the name of the server";
            work.notes.left_out(line, why);
        }
    }
}

fn owned(keys: Keys) -> Vec<(String, Value)> {
    let keys = keys.into_iter();
    keys.map(|(key, value)| (key.to_owned(), value)).collect()
}

/// Whether requests of several clients share a connection.
fn reuse<'a>(work: &mut Context<'_, 'a>, proxy: &Proxy<'a>, protocol: Protocol, group: &mut Group) {
    let Some(line) = proxy.last(&["http-reuse"]) else {
        return;
    };
    match (protocol, line.argument(0)) {
        (Protocol::Http1, mode @ ("never" | "always" | "safe")) => {
            group.put("reuse", Value::text(mode));
            work.notes.carried(line);
        }
        (Protocol::Http1, _) => {
            group.put("reuse", Value::text("safe"));
            work.notes.approximated(line, "treated as safe");
        }
        (Protocol::Http2, "always") => work.notes.carried(line),
        (Protocol::Http2, _) => {
            let how = "requests of all clients share HTTP/2 connections";
            work.notes.approximated(line, how);
        }
    }
}

fn balance<'a>(work: &mut Context<'_, 'a>, proxy: &Proxy<'a>, group: &mut Group) {
    let Some(line) = proxy.last(&["balance"]) else {
        return;
    };
    let (name, argument) = (line.argument(0), line.argument(1));
    let (name, in_parentheses) = match name.split_once('(') {
        Some((name, rest)) => (name, rest.trim_end_matches(')')),
        None => (name, argument),
    };
    let hash = match name {
        "roundrobin" | "static-rr" => return work.notes.carried(line),
        "leastconn" => {
            group.put("balance", Value::text("least_connections"));
            return work.notes.carried(line);
        }
        "first" => {
            group.put("balance", Value::text("first"));
            return work.notes.carried(line);
        }
        // HAProxy draws two servers unless another number is given.
        "random" => {
            let balance = if in_parentheses == "1" {
                "random"
            } else {
                "power_of_two"
            };
            group.put("balance", Value::text(balance));
            return work.notes.carried(line);
        }
        "source" => "address".to_owned(),
        "uri" => "path".to_owned(),
        "hdr" if !in_parentheses.is_empty() => format!("header:{in_parentheses}"),
        "hash" if argument == "src" => "address".to_owned(),
        "hash" if argument == "path" => "path".to_owned(),
        _ => {
            let why = "Onrush can hash addresses, paths, fields and cookies; requests are balanced round-robin instead";
            return work.notes.left_out(line, why);
        }
    };
    group.put("balance", Value::text("hash"));
    group.put("hash", Value::Text(hash));
    let how = "the same key selects the same server, but by Onrush's own consistent hash";
    work.notes.approximated(line, how);
}

fn cookie<'a>(work: &mut Context<'_, 'a>, proxy: &Proxy<'a>, group: &mut Group) {
    let Some(line) = proxy.last(&["cookie"]) else {
        return;
    };
    let words = line.arguments();
    let has = |word: &str| words.iter().any(|known| known == word);
    if has("rewrite") || has("prefix") || !has("insert") {
        let why = "Onrush only supports cookie insert, with a cookie of its own";
        return work.notes.left_out(line, why);
    }
    let life = words.iter().position(|word| word == "maxlife");
    let life = life.and_then(|at| haproxy_time(words.get(at + 1)?));
    let name = Value::text(line.argument(0));
    let value = match life {
        Some(time) => Value::table([
            ("cookie", name),
            ("age_max", Value::Text(written(bounded(time)))),
        ]),
        None => name,
    };
    group.put("sticky", value);
    let how = "cookie values are Onrush's own, so clients with a HAProxy cookie get a new one; the cookie is HttpOnly, SameSite=Lax, and Secure over https";
    work.notes.approximated(line, how);
    let has_value = |server: &Directive| server.words.iter().any(|word| word == "cookie");
    if !proxy.all(&["server"]).all(has_value) {
        let how = "servers without a cookie value also get one";
        work.notes.approximated(line, how);
    }
    if has("indirect") {
        work.notes
            .approximated(line, "the cookie is forwarded to servers");
    }
    if has("nocache") {
        let how = "responses that set the cookie have no Cache-Control: private";
        work.notes.approximated(line, how);
    }
    for word in [
        "domain", "postonly", "preserve", "maxidle", "dynamic", "attr",
    ] {
        if has(word) {
            let why = match word {
                "domain" => "the cookie is only valid for the host that set it".to_owned(),
                word => format!("Onrush has no equivalent for {word}"),
            };
            work.notes.left_out(line, why);
        }
    }
}

fn retries<'a>(work: &mut Context<'_, 'a>, proxy: &Proxy<'a>, group: &mut Group) {
    let count = proxy.last(&["retries"]);
    let on = proxy.last(&["retry-on"]);
    let number = count.and_then(|line| {
        work.notes.carried(line);
        line.argument(0).parse::<u64>().ok()
    });
    let number = number.map(|number| number.min(10));
    let Some(line) = on else {
        if let Some(number) = number {
            group.put("retries", Value::Number(number));
        }
        return;
    };
    work.notes.carried(line);
    let mut kinds: Vec<&str> = Vec::new();
    let mut statuses = Vec::new();
    for word in line.arguments() {
        match word.as_str() {
            "none" => return group.put("retries", Value::Number(0)),
            "conn-failure" => kinds.push("connect"),
            "empty-response" | "0rtt-rejected" => kinds.push("reset"),
            "junk-response" => kinds.push("garbage"),
            "response-timeout" => kinds.push("timeout"),
            "all-retryable-errors" => {
                kinds.extend(["connect", "reset", "timeout", "garbage"]);
                statuses.extend([500, 502, 503, 504].map(Value::Number));
            }
            word => match word.parse::<u64>() {
                Ok(status @ 400..=599) => statuses.push(Value::Number(status)),
                _ => work
                    .notes
                    .left_out(line, format!("Onrush has no equivalent for {word}")),
            },
        }
    }
    let mut known: Vec<&str> = Vec::new();
    kinds.retain(|kind| {
        let is_new = !known.contains(kind);
        known.push(kind);
        is_new
    });
    let mut entries = Vec::new();
    entries.extend(number.map(|number| ("count".to_owned(), Value::Number(number))));
    entries.push(("on".to_owned(), Value::texts(kinds)));
    if !statuses.is_empty() {
        entries.push(("statuses".to_owned(), Value::List(statuses)));
    }
    group.put("retries", Value::Table(entries));
}
