//! `bind`: listeners of a frontend, with their certificates.

use super::certificates::{Certificates, ONE_FILE};
use super::clients::{ClientOptions, RuleError, Rules, rules};
use super::proxy::Proxy;
use super::work::Context;
use crate::document::Value;
use crate::settings::client_certificates::Rule;
use crate::settings::listener_settings::{Listener, self_signed};
use crate::source::directive::Directive;
use crate::source::guards::Guards;

/// Adds the listeners of a frontend to `listeners`.
pub(super) fn gather<'a>(
    work: &mut Context<'_, 'a>,
    owner: usize,
    proxy: &Proxy<'a>,
    listeners: &mut Vec<Listener>,
) {
    for line in proxy.all(&["bind"]) {
        work.notes.carried(line);
        let options = match options(work, line) {
            Ok(options) => options,
            Err(RuleError(why)) => {
                let why = format!(
                    "{why}; the result does not listen on this address (--open-guards listens without client certificates)"
                );
                work.notes.left_out(line, why);
                continue;
            }
        };
        for text in line.argument(0).split(',') {
            for address in addresses(text, line) {
                match address {
                    Ok(address) => put(line, owner, &address, &options, listeners),
                    Err(why) => work.notes.left_out(line, why),
                }
            }
        }
    }
}

fn put(
    line: &Directive,
    owner: usize,
    address: &str,
    options: &Options,
    listeners: &mut Vec<Listener>,
) {
    if listeners.iter().any(|known| known.address == address) {
        return;
    }
    listeners.push(Listener {
        address: address.to_owned(),
        tls: options.tls.clone(),
        proxy_protocol: options.proxy_protocol.clone(),
        origin: line.origin(),
        owners: vec![owner],
    });
}

/// Addresses in the syntax of Onrush: several for a range of ports, and for IPv6 addresses that also accept IPv4.
fn addresses(text: &str, line: &Directive) -> Vec<Result<String, String>> {
    let text = text.strip_prefix("ipv4@").unwrap_or(text);
    let text = text.strip_prefix("ipv6@").unwrap_or(text);
    let unix = text
        .strip_prefix("unix@")
        .or(Some(text).filter(|text| text.starts_with('/')));
    if let Some(path) = unix {
        return vec![valid(format!("unix:{path}"))];
    }
    if text.contains('@') {
        return vec![Err(format!(
            "{text:?}: Onrush only listens on IP addresses and Unix sockets"
        ))];
    }
    let Some((host, ports)) = text.rsplit_once(':') else {
        return vec![Err(format!("{text:?}: expected an address and a port"))];
    };
    let host = match host {
        "" | "*" => "0.0.0.0".to_owned(),
        host if host.contains(':') && !host.starts_with('[') => format!("[{host}]"),
        host => host.to_owned(),
    };
    let (first, last) = ports.split_once('-').unwrap_or((ports, ports));
    let (Ok(first), Ok(last)) = (first.parse::<u16>(), last.parse::<u16>()) else {
        return vec![Err(format!("{ports:?} is not a port"))];
    };
    if last.saturating_sub(first) >= RANGE_MAX {
        return vec![Err(format!(
            "expected a range of at most {RANGE_MAX} ports"
        ))];
    }
    let takes_both = host == "[::]" && line.words.iter().any(|word| word == "v4v6");
    let mut addresses = Vec::new();
    for port in first..=last {
        addresses.push(valid(format!("{host}:{port}")));
        if takes_both {
            addresses.push(valid(format!("0.0.0.0:{port}")));
        }
    }
    addresses
}

/// A larger range would make the result unreadable.
const RANGE_MAX: u16 = 100;

fn valid(address: String) -> Result<String, String> {
    match onrush_config::address::parse_listen(&address) {
        Ok(_) => Ok(address),
        Err(invalid) => Err(invalid.to_string()),
    }
}

/// Options after the address.
#[derive(Debug, Default)]
struct Options {
    tls: Option<Value>,
    proxy_protocol: Option<Value>,
}

/// Options with a value that do not change responses.
const WITH_VALUE: [&str; 14] = [
    "backlog",
    "id",
    "label",
    "level",
    "maxconn",
    "mss",
    "name",
    "nbconn",
    "nice",
    "process",
    "severity-output",
    "shards",
    "tcp-ut",
    "thread",
];

/// TLS options with a value.
const OF_TLS: [&str; 9] = [
    "ciphers",
    "ciphersuites",
    "client-sigalgs",
    "curves",
    "ecdhe",
    "ocsp-update",
    "sigalgs",
    "ssl-max-ver",
    "tls-ticket-keys",
];

const OWN_PROFILE: &str = "Onrush's TLS profile sets versions, ciphers and session tickets";

/// Options without a value that do not change responses.
const ALONE: [&str; 14] = [
    "allow-0rtt",
    "defer-accept",
    "expose-fd",
    "listeners",
    "no-alpn",
    "no-ca-names",
    "no-sslv3",
    "no-tls-tickets",
    "no-tlsv10",
    "no-tlsv11",
    "prefer-client-ciphers",
    "tfo",
    "v4v6",
    "v6only",
];

/// Options with a value that Onrush does not have.
const FOREIGN: [&str; 12] = [
    "accept-netscaler-cip",
    "ca-ignore-err",
    "ca-sign-file",
    "ca-sign-pass",
    "crt-ignore-err",
    "gid",
    "group",
    "interface",
    "mode",
    "namespace",
    "uid",
    "user",
];

fn options<'a>(work: &mut Context<'_, 'a>, line: &'a Directive) -> Result<Options, RuleError> {
    let mut options = Options::default();
    let mut certificates = Certificates::default();
    let mut asked = ClientOptions::default();
    let mut speaks_tls = false;
    let words = line.arguments().iter().skip(1).map(String::as_str);
    let mut words = words.peekable();
    while let Some(word) = words.next() {
        let value = words.peek().copied().unwrap_or_default();
        if asked.read(work, word, value) {
            words.next();
            continue;
        }
        match word {
            "ssl" => speaks_tls = true,
            "crt" => certificates.add(work, line, words.next().unwrap_or_default()),
            "crt-list" => certificates.add_list(work, line, words.next().unwrap_or_default()),
            "accept-proxy" => options.proxy_protocol = Some(Value::Truth(true)),
            "ssl-min-ver" => drop(words.next()),
            "force-tlsv13" | "no-tlsv12" => {}
            "force-tlsv12" | "no-tlsv13" => work.notes.approximated(line, OWN_PROFILE),
            // Onrush offers HTTP/2 to every TLS client.
            "alpn" | "npn" => drop(words.next()),
            "proto" => {
                if words.next().is_some_and(|list| list.contains("h2")) {
                    let how = "clients may also use HTTP/1.1";
                    work.notes.approximated(line, how);
                }
            }
            "strict-sni" => {
                let how = "a client that requests an unknown name gets the first certificate";
                work.notes.approximated(line, how);
            }
            word if WITH_VALUE.contains(&word) => drop(words.next()),
            word if OF_TLS.contains(&word) => {
                words.next();
                work.notes.approximated(line, OWN_PROFILE);
            }
            word if ALONE.contains(&word) => {}
            other => {
                if FOREIGN.contains(&other) {
                    words.next();
                }
                work.notes
                    .left_out(line, format!("Onrush has no equivalent for {other:?}"));
            }
        }
    }
    if speaks_tls {
        let mut entries = clients(work, line, &asked, &certificates)?;
        if is_modern(work, line) {
            entries.push(("profile".to_owned(), Value::text("modern")));
        }
        options.tls = Some(tls(work, line, certificates.pairs, entries));
    }
    Ok(options)
}

/// Rules for client certificates.
fn clients<'a>(
    work: &mut Context<'_, 'a>,
    line: &'a Directive,
    asked: &ClientOptions,
    certificates: &Certificates,
) -> Result<Rule, RuleError> {
    if asked.has_both() {
        work.notes.left_out(line, ONE_FILE);
    }
    match (rules(asked, &certificates.shown), work.guards) {
        (Ok(Rules::Whole(rule)), _) => Ok(rule),
        (Ok(Rules::Wider(rule)), _) => {
            let how = "clients are asked for a certificate for all names of this address";
            work.notes.approximated(line, how);
            Ok(rule)
        }
        (Err(closed), Guards::Closed) => Err(closed),
        (Err(RuleError(why)), Guards::Open) => {
            work.notes.left_out(
                line,
                format!("{why}: clients are not asked for a certificate"),
            );
            Ok(Rule::new())
        }
    }
}

/// Whether clients must use TLS 1.3, by the line or by `ssl-default-bind-options`.
fn is_modern<'a>(work: &mut Context<'_, 'a>, line: &'a Directive) -> bool {
    let global = work.global("ssl-default-bind-options");
    let of_lines = |words: &[String]| {
        let least = words.iter().rposition(|word| word == "ssl-min-ver");
        match least {
            Some(at) => Some(words.get(at + 1).is_some_and(|least| least == "TLSv1.3")),
            None => words
                .iter()
                .any(|word| word == "force-tlsv13" || word == "no-tlsv12")
                .then_some(true),
        }
    };
    let of_global = global.and_then(|global| of_lines(&global.words));
    of_lines(&line.words).or(of_global).unwrap_or(false)
}

fn tls<'a>(
    work: &mut Context<'_, 'a>,
    line: &'a Directive,
    pairs: Vec<Value>,
    mut entries: Rule,
) -> Value {
    match <[Value; 1]>::try_from(pairs) {
        Ok([Value::Table(pair)]) => Value::Table([pair, entries].concat()),
        Ok([other]) => other,
        Err(several) if several.is_empty() => {
            let why = "no certificate found: the server generates a self-signed one";
            work.notes.left_out(line, why);
            self_signed(entries)
        }
        Err(several) => {
            entries.insert(0, ("certificates".to_owned(), Value::List(several)));
            Value::Table(entries)
        }
    }
}
