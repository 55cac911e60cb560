//! Active health checks of a backend.

use super::proxy::Proxy;
use super::work::Context;
use crate::document::Value;
use crate::settings::unit::{bounded, haproxy_time, written};
use crate::source::directive::Directive;

/// The check of a backend whose servers give `keys` of it.
pub(super) fn health<'a>(
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
