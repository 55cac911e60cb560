//! A backend as a group of servers: balancing, stickiness, health checks and retries.

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
        let health = health(work, proxy, owned(keys));
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

fn health<'a>(
    work: &mut Context<'_, 'a>,
    proxy: &Proxy<'a>,
    mut keys: Vec<(String, Value)>,
) -> Value {
    if let Some(line) = proxy.last(&["timeout", "check"]) {
        match haproxy_time(line.argument(1)) {
            Some(time) => {
                keys.push(("timeout".to_owned(), Value::Text(written(bounded(time)))));
                work.notes.carried(line);
            }
            None => work.notes.left_out(line, "expected a time such as 2s"),
        }
    }
    let others = [
        "tcp-check",
        "ssl-hello-chk",
        "mysql-check",
        "pgsql-check",
        "redis-check",
        "smtpchk",
        "ldap-check",
    ];
    for name in others {
        if let Some(line) = proxy.option(name) {
            let how = "a server is healthy if it accepts a connection";
            work.notes.approximated(line, how);
        }
    }
    let Some(option) = proxy.option("httpchk") else {
        if keys.is_empty() {
            return Value::text("tcp");
        }
        keys.insert(0, ("tcp".to_owned(), Value::Truth(true)));
        return Value::Table(keys);
    };
    let (path, host) = checked(work, proxy, option);
    keys.insert(0, ("path".to_owned(), Value::Text(path)));
    if let Some(host) = host {
        keys.insert(1, ("host".to_owned(), Value::Text(host)));
    }
    for line in proxy.all(&["http-check", "expect"]) {
        expect(work, line, &mut keys);
    }
    for line in proxy.all(&["http-check", "disable-on-404"]) {
        work.notes.approximated(line, "404 fails the check");
    }
    Value::Table(keys)
}

/// Path and host of a check.
fn checked<'a>(
    work: &mut Context<'_, 'a>,
    proxy: &Proxy<'a>,
    option: &'a Directive,
) -> (String, Option<String>) {
    const BY_GET: &str = "health checks use GET";
    let words: Vec<&str> = option.words[2..].iter().map(String::as_str).collect();
    let (mut method, mut path) = match words[..] {
        [] => ("OPTIONS", "/"),
        [path] => ("OPTIONS", path),
        [method, path, ..] => (method, path),
    };
    // Header fields may follow the version, separated by line breaks.
    let rest = words.get(2..).unwrap_or_default().join(" ");
    let host = rest.to_ascii_lowercase().find("host:").map(|at| {
        let value = rest[at + 5..].trim_start();
        value
            .split(['\r', '\n', ' ', '\\'])
            .next()
            .unwrap_or_default()
            .to_owned()
    });
    let mut host = host.filter(|host| !host.is_empty());
    work.notes.carried(option);
    for line in proxy.all(&["http-check", "send"]) {
        work.notes.carried(line);
        let mut words = line.arguments()[1..].iter().map(String::as_str);
        while let Some(word) = words.next() {
            match word {
                "meth" => method = words.next().unwrap_or(method),
                "uri" => path = words.next().unwrap_or(path),
                "ver" => drop(words.next()),
                "hdr" => {
                    let (name, value) = (words.next(), words.next());
                    match name.is_some_and(|name| name.eq_ignore_ascii_case("host")) {
                        true => host = value.map(str::to_owned),
                        false => work
                            .notes
                            .approximated(line, "health checks can only set the field Host"),
                    }
                }
                _ => work.notes.approximated(line, BY_GET),
            }
        }
        if method != "GET" {
            work.notes.approximated(line, BY_GET);
        }
    }
    if method != "GET" {
        work.notes.approximated(option, BY_GET);
    }
    let is_path = path.starts_with('/')
        && path
            .bytes()
            .all(|byte| byte.is_ascii_graphic() && byte != b'#');
    if !is_path {
        work.notes
            .left_out(option, "expected a path for the health check; / is used");
    }
    let path = if is_path { path } else { "/" };
    (path.to_owned(), host)
}

fn expect<'a>(work: &mut Context<'_, 'a>, line: &'a Directive, keys: &mut Vec<(String, Value)>) {
    let words: Vec<&str> = line.arguments()[1..].iter().map(String::as_str).collect();
    let (key, value) = match words[..] {
        ["status", text] | [.., "status", text] if !words.contains(&"!") => {
            let list = text.split(',').map(|part| match part.parse::<u64>() {
                Ok(number) => Value::Number(number),
                Err(_) => Value::text(part),
            });
            ("status", Value::List(list.collect()))
        }
        ["rstatus", pattern] => match pattern.trim_start_matches('^') {
            "2.." | "2[0-9][0-9]" | "2[0-9]{2}" => ("status", Value::text("2xx")),
            "[23].." | "[2-3].." | "(2|3)[0-9][0-9]" | "[23][0-9][0-9]" => {
                ("status", Value::texts(["2xx", "3xx"]))
            }
            _ => {
                let why = "health checks accept statuses as numbers, ranges and classes; 200 to 399 are accepted";
                return work.notes.left_out(line, why);
            }
        },
        ["string", ref text @ ..] if !text.is_empty() => (
            "body",
            Value::Text(format!("~{}", regex::escape(&text.join(" ")))),
        ),
        ["rstring", pattern] => ("body", Value::Text(format!("~{pattern}"))),
        _ => {
            let why = "health checks can test the status or the body, without negation";
            return work.notes.left_out(line, why);
        }
    };
    keys.retain(|(known, _)| known != key);
    keys.push((key.to_owned(), value));
    work.notes.carried(line);
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
