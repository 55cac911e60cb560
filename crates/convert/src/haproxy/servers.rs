//! `server` lines of a backend: addresses, weights, checks, TLS.

use super::proxy::Proxy;
use super::work::Work;
use crate::directive::Directive;
use crate::document::Value;
use crate::group::server;
use crate::unit::{bounded, haproxy_time, written};

/// What all servers of a backend say together: Onrush says it once for a group.
#[derive(Debug, Default)]
pub(super) struct Servers {
    /// As a list of a group has them.
    pub(super) list: Vec<Value>,
    pub(super) is_checked: bool,
    /// Keys of `health`.
    pub(super) health: Vec<(String, Value)>,
    /// Keys of `tls`, where any server speaks it.
    pub(super) tls: Option<Vec<(String, Value)>>,
    pub(super) proxy_protocol: Option<&'static str>,
    pub(super) slow_start: Option<String>,
    /// Whether requests are looked at to find servers that fail.
    pub(super) is_observed: bool,
}

/// Reads the servers of a backend.
pub(super) fn read<'a>(work: &mut Work<'_, 'a>, proxy: &Proxy<'a>) -> Servers {
    let mut servers = Servers::default();
    let mut addresses: Vec<String> = Vec::new();
    let mut backups: Vec<Value> = Vec::new();
    let defaults: Vec<&Directive> = proxy.all(&["default-server"]).collect();
    for line in &defaults {
        work.notes.carried(line);
    }
    let named = ["server", "server-template"];
    for line in proxy
        .lines
        .iter()
        .filter(|line| named.contains(&line.name()))
    {
        work.notes.carried(line);
        let (written, skipped) = match line.name() {
            "server" => (line.argument(1), 2),
            _ => {
                let how = "each address of the name is a server";
                work.notes.approximated(line, how);
                (line.argument(2), 3)
            }
        };
        let mut one = One::default();
        for default in &defaults {
            one.words(work, line, default.arguments(), &mut servers);
        }
        let own = line.arguments().get(skipped..).unwrap_or_default();
        one.words(work, line, own, &mut servers);
        let address = match address(written, &one) {
            Ok(address) => address,
            Err(why) => {
                work.notes.left_out(line, why);
                continue;
            }
        };
        if one.is_disabled {
            work.notes
                .approximated(line, "it is disabled, so it is not in the group");
            continue;
        }
        if addresses.contains(&address) {
            let how = "its address is in the group already; a weight would give it more";
            work.notes.approximated(line, how);
            continue;
        }
        addresses.push(address.clone());
        let is_backup = one.keys.iter().any(|(key, _)| *key == "backup");
        let list = if is_backup {
            &mut backups
        } else {
            &mut servers.list
        };
        list.push(server(&address, one.keys));
        servers.is_checked |= one.is_checked;
    }
    if servers.list.is_empty() {
        // Onrush wants one that is no backup.
        servers.list = addresses
            .iter()
            .map(|address| server(address, vec![]))
            .collect();
    } else {
        servers.list.append(&mut backups);
    }
    servers
}

/// One server.
#[derive(Debug, Default)]
struct One {
    keys: Vec<(&'static str, Value)>,
    is_checked: bool,
    is_disabled: bool,
    speaks_tls: bool,
}

fn address(text: &str, one: &One) -> Result<String, String> {
    let text = text.strip_prefix("ipv4@").unwrap_or(text);
    let text = text.strip_prefix("ipv6@").unwrap_or(text);
    let unix = text
        .strip_prefix("unix@")
        .or(Some(text).filter(|text| text.starts_with('/')));
    if let Some(path) = unix {
        return Ok(format!("unix:{path}"));
    }
    let is_port = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let address = match text.rsplit_once(':') {
        Some((host, port)) if is_port(port) => match host.contains(':') && !host.starts_with('[') {
            true => format!("[{host}]:{port}"),
            false => text.to_owned(),
        },
        Some((_, port)) if port.starts_with(['+', '-']) => {
            return Err("the port of a server does not depend on the client's".to_owned());
        }
        _ => format!("{text}:{}", if one.speaks_tls { 443 } else { 80 }),
    };
    match onrush_config::address::parse_server(&address) {
        Ok(_) => Ok(address),
        Err(invalid) => Err(invalid.to_string()),
    }
}

/// Words with another one behind them that change nothing here.
const WITH_VALUE: [&str; 34] = [
    "agent-addr",
    "agent-inter",
    "agent-port",
    "agent-send",
    "alpn",
    "ciphers",
    "ciphersuites",
    "cookie",
    "crl-file",
    "curves",
    "downinter",
    "error-limit",
    "fastinter",
    "guid",
    "hash-key",
    "id",
    "init-addr",
    "init-state",
    "log-proto",
    "max-reuse",
    "maxqueue",
    "minconn",
    "npn",
    "on-marked-down",
    "on-marked-up",
    "pool-low-conn",
    "pool-max-conn",
    "pool-purge-delay",
    "proto",
    "resolve-net",
    "resolve-opts",
    "resolve-prefer",
    "resolvers",
    "ws",
];

/// Words that change nothing here.
const ALONE: [&str; 21] = [
    "agent-check",
    "allow-0rtt",
    "check-reuse-pool",
    "enabled",
    "force-sslv3",
    "force-tlsv12",
    "force-tlsv13",
    "no-agent-check",
    "no-backup",
    "no-send-proxy",
    "no-ssl-reuse",
    "no-sslv3",
    "no-tls-tickets",
    "no-tlsv10",
    "no-tlsv11",
    "no-tlsv12",
    "no-tlsv13",
    "no-verifyhost",
    "non-stick",
    "stick",
    "tfo",
];

impl One {
    fn words<'a>(
        &mut self,
        work: &mut Work<'_, 'a>,
        line: &'a Directive,
        words: &[String],
        all: &mut Servers,
    ) {
        let mut words = words.iter().map(String::as_str);
        while let Some(word) = words.next() {
            match word {
                "check" => self.is_checked = true,
                "no-check" => self.is_checked = false,
                "backup" => self.put("backup", Value::Truth(true)),
                "disabled" => self.is_disabled = true,
                "weight" => self.weight(work, line, words.next().unwrap_or_default()),
                "maxconn" => {
                    if let Ok(most @ 1..) = words.next().unwrap_or_default().parse::<u64>() {
                        self.put("connections_max", Value::Number(most.min(65_535)));
                    }
                }
                "inter" | "rise" | "fall" | "port" => {
                    health(work, line, word, words.next().unwrap_or_default(), all);
                }
                "ssl" => {
                    self.speaks_tls = true;
                    all.tls.get_or_insert_default();
                }
                "no-ssl" => self.speaks_tls = false,
                "verify" | "ca-file" | "crt" | "verifyhost" | "sni" | "check-sni" => {
                    tls(work, line, word, words.next().unwrap_or_default(), all);
                }
                "send-proxy" => all.proxy_protocol = Some("v1"),
                "send-proxy-v2" | "send-proxy-v2-ssl" | "send-proxy-v2-ssl-cn" => {
                    all.proxy_protocol = Some("v2");
                }
                "slowstart" => {
                    let time = haproxy_time(words.next().unwrap_or_default());
                    all.slow_start = time.map(|time| written(bounded(time)));
                }
                "observe" => all.is_observed |= words.next() == Some("layer7"),
                "on-error" => drop(words.next()),
                "check-ssl" | "no-check-ssl" | "check-send-proxy" | "check-via-socks4" => {}
                "ssl-min-ver" | "ssl-max-ver" | "check-alpn" | "check-proto" | "tcp-ut"
                | "proxy-v2-options" => {
                    words.next();
                }
                "addr" | "track" | "source" | "redir" | "socks4" | "namespace" | "interface"
                | "usesrc" => {
                    work.notes
                        .left_out(line, format!("Onrush has nothing for {word}"));
                    words.next();
                }
                word if WITH_VALUE.contains(&word) => drop(words.next()),
                word if ALONE.contains(&word) => {}
                other => work
                    .notes
                    .left_out(line, format!("the converter does not know {other:?}")),
            }
        }
    }

    fn put(&mut self, key: &'static str, value: Value) {
        self.keys.retain(|(known, _)| *known != key);
        self.keys.push((key, value));
    }

    fn weight<'a>(&mut self, work: &mut Work<'_, 'a>, line: &'a Directive, text: &str) {
        match text.parse::<u64>() {
            Ok(0) => self.is_disabled = true,
            Ok(weight) => self.put("weight", Value::Number(weight.min(1000))),
            Err(_) => work.notes.left_out(line, "expected a number as weight"),
        }
    }
}

/// What checks do, which a group says for all of its servers.
fn health<'a>(
    work: &mut Work<'_, 'a>,
    line: &'a Directive,
    word: &str,
    text: &str,
    all: &mut Servers,
) {
    let (key, value) = match word {
        "inter" => match haproxy_time(text) {
            Some(time) => ("interval", Value::Text(written(bounded(time)))),
            None => return work.notes.left_out(line, "expected a time such as 2s"),
        },
        _ => match text.parse::<u64>() {
            Ok(count @ 1..=65_535) if word == "port" => ("port", Value::Number(count)),
            Ok(count @ 1..=1000) => (
                if word == "rise" { "rise" } else { "fall" },
                Value::Number(count),
            ),
            _ => {
                return work
                    .notes
                    .left_out(line, format!("expected a number behind {word}"));
            }
        },
    };
    match all.health.iter().find(|(known, _)| known == key) {
        None => all.health.push((key.to_owned(), value)),
        Some((_, known)) if *known == value => {}
        Some(_) => {
            let how = format!("{word} holds for all servers of the group: that of the first");
            work.notes.approximated(line, how);
        }
    }
}

fn tls<'a>(
    work: &mut Work<'_, 'a>,
    line: &'a Directive,
    word: &str,
    text: &str,
    all: &mut Servers,
) {
    let entries = match word {
        // Which name is asked for follows from the address, unless it is fixed here.
        "sni" | "check-sni" => {
            let fixed = text
                .strip_prefix("str(")
                .and_then(|rest| rest.strip_suffix(')'));
            match fixed {
                Some(name) => vec![("name", Value::text(name))],
                None => {
                    let how = "the name that a server is asked for (SNI) is its own host";
                    return work.notes.approximated(line, how);
                }
            }
        }
        "verifyhost" => vec![("name", Value::text(text))],
        "ca-file" if text == "@system-ca" => vec![],
        "ca-file" => vec![("ca", Value::Text(work.path(text, "ca-base")))],
        "crt" => {
            let path = work.path(text, "crt-base");
            vec![
                ("certificate", Value::text(&path)),
                ("key", Value::text(path)),
            ]
        }
        _ if text == "none" => vec![("verify", Value::Truth(false))],
        _ => vec![],
    };
    let tls = all.tls.get_or_insert_default();
    for (key, value) in entries {
        if !tls.iter().any(|(known, _)| known == key) {
            tls.push((key.to_owned(), value));
        }
    }
}
