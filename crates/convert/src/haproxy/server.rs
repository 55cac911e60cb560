//! One server of a backend: its line, and the `default-server` lines before it.

use super::protocol::{AlpnOffer, ForcedProtocol, ServerProtocol, Transport};
use super::work::Context;
use crate::document::Value;
use crate::settings::unit::{bounded, haproxy_time, written};
use crate::source::directive::Directive;

/// Keys of a table of the result.
pub(super) type Keys = Vec<(&'static str, Value)>;

/// Adds a key or replaces its value.
fn put(keys: &mut Keys, key: &'static str, value: Value) {
    match keys.iter_mut().find(|(known, _)| *known == key) {
        Some((_, known)) => *known = value,
        None => keys.push((key, value)),
    }
}

#[derive(Debug)]
pub(super) struct Server<'a> {
    pub(super) line: &'a Directive,
    /// The address in the syntax of Onrush.
    pub(super) address: String,
    /// Keys of its entry in `servers`.
    pub(super) keys: Keys,
    pub(super) is_checked: bool,
    pub(super) is_disabled: bool,
    /// Whether its responses are observed for passive health checks.
    pub(super) is_observed: bool,
    pub(super) health: Keys,
    pub(super) transport: Transport,
    offer: AlpnOffer,
    forced: Option<ForcedProtocol>,
    pub(super) tls: Keys,
    has_revocation_list: bool,
    pub(super) proxy_protocol: Option<&'static str>,
    pub(super) slow_start: Option<String>,
}

impl<'a> Server<'a> {
    pub(super) fn new(line: &'a Directive) -> Server<'a> {
        Server {
            line,
            address: String::new(),
            keys: Vec::new(),
            is_checked: false,
            is_disabled: false,
            is_observed: false,
            health: Vec::new(),
            transport: Transport::default(),
            offer: AlpnOffer::default(),
            forced: None,
            tls: Vec::new(),
            has_revocation_list: false,
            proxy_protocol: None,
            slow_start: None,
        }
    }

    /// Sets the address, once all words have been read.
    pub(super) fn locate(&mut self, written: &str) -> Result<(), String> {
        self.address = address(written, self.transport)?;
        // Onrush would refuse `ca` without verification.
        if self.tls.iter().any(|(key, _)| *key == "verify") {
            self.tls.retain(|(key, _)| *key != "ca");
        }
        Ok(())
    }

    pub(super) fn is_verified(&self) -> bool {
        self.transport == Transport::Tls && !self.tls.iter().any(|(key, _)| *key == "verify")
    }

    /// Whether the certificate is checked against a revocation list, which an `[upstream]` cannot have.
    pub(super) fn may_be_revoked(&self) -> bool {
        self.is_verified() && self.has_revocation_list
    }

    /// Protocol that HAProxy uses towards the server.
    pub(super) fn spoken(&self) -> ServerProtocol {
        ServerProtocol::of(self.transport, self.forced, self.offer)
    }

    pub(super) fn is_backup(&self) -> bool {
        self.keys.iter().any(|(key, _)| *key == "backup")
    }

    /// Reads the options of its line or of a `default-server`. Later options take precedence.
    pub(super) fn read(&mut self, work: &mut Context<'_, 'a>, words: &[String]) {
        let line = self.line;
        let mut words = words.iter().map(String::as_str);
        while let Some(word) = words.next() {
            match word {
                "check" => self.is_checked = true,
                "no-check" => self.is_checked = false,
                "backup" => put(&mut self.keys, "backup", Value::Truth(true)),
                "disabled" => self.is_disabled = true,
                "weight" => self.weight(work, words.next().unwrap_or_default()),
                "maxconn" => {
                    if let Ok(most @ 1..) = words.next().unwrap_or_default().parse::<u64>() {
                        let most = Value::Number(most.min(65_535));
                        put(&mut self.keys, "connections_max", most);
                    }
                }
                "inter" | "rise" | "fall" | "port" => {
                    self.health(work, word, words.next().unwrap_or_default());
                }
                "ssl" => self.transport = Transport::Tls,
                "no-ssl" => self.transport = Transport::Clear,
                "alpn" => self.offer = AlpnOffer::of(words.next().unwrap_or_default()),
                "proto" => self.forced = words.next().map(ForcedProtocol::of),
                "verify" | "ca-file" | "crt" | "verifyhost" | "sni" | "check-sni" => {
                    self.tls(work, word, words.next().unwrap_or_default());
                }
                "send-proxy" => self.proxy_protocol = Some("v1"),
                "send-proxy-v2" | "send-proxy-v2-ssl" | "send-proxy-v2-ssl-cn" => {
                    self.proxy_protocol = Some("v2");
                }
                "no-send-proxy"
                | "no-send-proxy-v2"
                | "no-send-proxy-v2-ssl"
                | "no-send-proxy-v2-ssl-cn" => self.proxy_protocol = None,
                "slowstart" => {
                    let time = haproxy_time(words.next().unwrap_or_default());
                    self.slow_start = time.map(|time| written(bounded(time)));
                }
                "observe" => self.is_observed |= words.next() == Some("layer7"),
                "on-error" => drop(words.next()),
                "check-ssl" | "no-check-ssl" | "check-send-proxy" | "check-via-socks4" => {}
                "crl-file" => {
                    words.next();
                    self.has_revocation_list = true;
                }
                "check-alpn" | "check-proto" | "tcp-ut" | "proxy-v2-options" => drop(words.next()),
                word if OF_TLS.contains(&word) => {
                    words.next();
                    work.notes.approximated(line, OWN_PROFILE);
                }
                "force-sslv3" | "force-tlsv12" | "force-tlsv13" | "no-tlsv12" | "no-tlsv13" => {
                    work.notes.approximated(line, OWN_PROFILE);
                }
                "addr" | "track" | "source" | "redir" | "socks4" | "namespace" | "interface"
                | "usesrc" => {
                    let why = format!("Onrush has no equivalent for {word}");
                    work.notes.left_out(line, why);
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

    fn weight(&mut self, work: &mut Context<'_, 'a>, text: &str) {
        match text.parse::<u64>() {
            Ok(0) => self.is_disabled = true,
            Ok(weight) => put(&mut self.keys, "weight", Value::Number(weight.min(1000))),
            Err(_) => work
                .notes
                .left_out(self.line, "expected a number as the weight"),
        }
    }

    fn health(&mut self, work: &mut Context<'_, 'a>, word: &str, text: &str) {
        let (key, value) = match (word, text.parse::<u64>()) {
            ("inter", _) => match haproxy_time(text) {
                Some(time) => ("interval", Value::Text(written(bounded(time)))),
                None => return work.notes.left_out(self.line, "expected a time such as 2s"),
            },
            ("port", Ok(port @ 1..=65_535)) => ("port", Value::Number(port)),
            ("rise", Ok(count @ 1..=1000)) => ("rise", Value::Number(count)),
            ("fall", Ok(count @ 1..=1000)) => ("fall", Value::Number(count)),
            _ => {
                let why = format!("expected a number after {word}");
                return work.notes.left_out(self.line, why);
            }
        };
        put(&mut self.health, key, value);
    }

    fn tls(&mut self, work: &mut Context<'_, 'a>, word: &str, text: &str) {
        let tls = &mut self.tls;
        match word {
            // By default the name follows from the address.
            "sni" | "check-sni" => {
                let fixed = text.strip_prefix("str(");
                match fixed.and_then(|rest| rest.strip_suffix(')')) {
                    Some(name) => put(tls, "name", Value::text(name)),
                    None => {
                        let how = "the requested name (SNI) is the host name of the server";
                        work.notes.approximated(self.line, how);
                    }
                }
            }
            "verifyhost" => put(tls, "name", Value::text(text)),
            "ca-file" if text == "@system-ca" => tls.retain(|(key, _)| *key != "ca"),
            "ca-file" => put(tls, "ca", Value::Text(work.path(text, "ca-base"))),
            "crt" => {
                let path = work.path(text, "crt-base");
                put(tls, "certificate", Value::text(&path));
                put(tls, "key", Value::text(path));
            }
            _ if text == "none" => put(tls, "verify", Value::Truth(false)),
            _ => tls.retain(|(key, _)| *key != "verify"),
        }
    }
}

/// An address in the syntax of Onrush, with a port.
fn address(text: &str, transport: Transport) -> Result<String, String> {
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
            return Err("the port of a server cannot depend on the port of the client".to_owned());
        }
        _ => match transport {
            Transport::Clear => format!("{text}:80"),
            Transport::Tls => format!("{text}:443"),
        },
    };
    match onrush_config::address::parse_server(&address) {
        Ok(_) => Ok(address),
        Err(invalid) => Err(invalid.to_string()),
    }
}

/// TLS options with a value.
const OF_TLS: [&str; 7] = [
    "ciphers",
    "ciphersuites",
    "client-sigalgs",
    "curves",
    "sigalgs",
    "ssl-max-ver",
    "ssl-min-ver",
];

const OWN_PROFILE: &str = "connections to servers use TLS 1.2 or 1.3 with Onrush's own ciphers";

/// Options with a value that change nothing in the result.
const WITH_VALUE: [&str; 28] = [
    "agent-addr",
    "agent-inter",
    "agent-port",
    "agent-send",
    "cookie",
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
    "resolve-net",
    "resolve-opts",
    "resolve-prefer",
    "resolvers",
    "ws",
];

/// Options without a value that change nothing in the result.
const ALONE: [&str; 15] = [
    "agent-check",
    "allow-0rtt",
    "check-reuse-pool",
    "enabled",
    "no-agent-check",
    "no-backup",
    "no-ssl-reuse",
    "no-sslv3",
    "no-tls-tickets",
    "no-tlsv10",
    "no-tlsv11",
    "no-verifyhost",
    "non-stick",
    "stick",
    "tfo",
];
