//! `bind`: where a frontend listens, and the certificates that it shows there.

use super::proxy::Proxy;
use super::work::Work;
use crate::directive::Directive;
use crate::document::Value;
use crate::front::Listener;

/// Puts the places of a frontend into `listeners`.
pub(super) fn gather<'a>(
    work: &mut Work<'_, 'a>,
    owner: usize,
    proxy: &Proxy<'a>,
    listeners: &mut Vec<Listener>,
) {
    for line in proxy.all(&["bind"]) {
        work.notes.carried(line);
        let options = options(work, line);
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

/// As Onrush writes them; several for a range of ports, and where IPv4 comes by IPv6.
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
            "{text:?}: Onrush listens on addresses and Unix sockets"
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
        return vec![Err(format!("{ports:?} is no port"))];
    };
    if last.saturating_sub(first) >= RANGE_MAX {
        return vec![Err(format!("a range of more than {RANGE_MAX} ports"))];
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

/// More addresses than that are nothing that anybody reads.
const RANGE_MAX: u16 = 100;

fn valid(address: String) -> Result<String, String> {
    match onrush_config::address::parse_listen(&address) {
        Ok(_) => Ok(address),
        Err(invalid) => Err(invalid.to_string()),
    }
}

/// What the words behind the address say.
#[derive(Debug, Default)]
struct Options {
    tls: Option<Value>,
    proxy_protocol: Option<Value>,
}

/// Words that have another one behind them, without effect on what clients get.
const WITH_VALUE: [&str; 26] = [
    "backlog",
    "ciphers",
    "ciphersuites",
    "client-sigalgs",
    "curves",
    "ecdhe",
    "gid",
    "group",
    "id",
    "label",
    "level",
    "maxconn",
    "mode",
    "mss",
    "name",
    "nbconn",
    "nice",
    "process",
    "severity-output",
    "shards",
    "sigalgs",
    "ssl-max-ver",
    "tcp-ut",
    "thread",
    "tls-ticket-keys",
    "user",
];

/// Words without effect on what clients get.
const ALONE: [&str; 17] = [
    "allow-0rtt",
    "defer-accept",
    "expose-fd",
    "force-tlsv12",
    "listeners",
    "no-alpn",
    "no-ca-names",
    "no-sslv3",
    "no-tls-tickets",
    "no-tlsv10",
    "no-tlsv11",
    "no-tlsv12",
    "no-tlsv13",
    "prefer-client-ciphers",
    "tfo",
    "v4v6",
    "v6only",
];

/// Words that have another one behind them, for which Onrush has nothing.
const FOREIGN: [&str; 7] = [
    "accept-netscaler-cip",
    "ca-ignore-err",
    "ca-sign-file",
    "crl-file",
    "crt-ignore-err",
    "interface",
    "namespace",
];

fn options<'a>(work: &mut Work<'_, 'a>, line: &'a Directive) -> Options {
    let mut options = Options::default();
    let mut pairs: Vec<Value> = Vec::new();
    let mut entries: Vec<(String, Value)> = Vec::new();
    let mut speaks_tls = false;
    let mut authority = None;
    let mut verify = "none".to_owned();
    let words = line.arguments().iter().skip(1).map(String::as_str);
    let mut words = words.peekable();
    while let Some(word) = words.next() {
        match word {
            "ssl" => speaks_tls = true,
            "crt" => certificates(work, line, words.next().unwrap_or_default(), &mut pairs),
            "crt-list" => {
                let name = words.next().unwrap_or_default();
                if let Some((file, kind)) = listed(work, line, name, &mut pairs) {
                    authority.get_or_insert(file);
                    verify = kind;
                    let how = "clients show certificates for all names of this address, signed by the first authorities that are named";
                    work.notes.approximated(line, how);
                }
            }
            "ca-file" => authority = words.next().map(|name| work.path(name, "ca-base")),
            "verify" => verify = words.next().unwrap_or_default().to_owned(),
            "accept-proxy" => options.proxy_protocol = Some(Value::Truth(true)),
            "ssl-min-ver" if words.clone().next() != Some("TLSv1.3") => drop(words.next()),
            "ssl-min-ver" | "force-tlsv13" => {
                words.next_if_eq(&"TLSv1.3");
                entries.push(("profile".to_owned(), Value::text("modern")));
            }
            // Whoever offers HTTP/2 gets it.
            "alpn" | "npn" => drop(words.next()),
            "proto" => {
                if words.next().is_some_and(|list| list.contains("h2")) {
                    let how = "clients may speak HTTP/1.1 there, too";
                    work.notes.approximated(line, how);
                }
            }
            "strict-sni" => {
                let how = "a client that asks for another name is shown the first certificate";
                work.notes.approximated(line, how);
            }
            word if WITH_VALUE.contains(&word) => drop(words.next()),
            word if ALONE.contains(&word) => {}
            other => {
                if FOREIGN.contains(&other) {
                    words.next();
                }
                work.notes
                    .left_out(line, format!("Onrush has nothing for {other:?}"));
            }
        }
    }
    if let Some(authority) = authority.filter(|_| matches!(&*verify, "required" | "optional")) {
        let entry = ("client_certificates".to_owned(), Value::text(verify));
        entries.insert(0, entry);
        entries.insert(0, ("client_ca".to_owned(), Value::Text(authority)));
    }
    if speaks_tls {
        options.tls = Some(tls(work, line, pairs, entries));
    }
    options
}

fn tls<'a>(
    work: &mut Work<'_, 'a>,
    line: &'a Directive,
    pairs: Vec<Value>,
    mut entries: Vec<(String, Value)>,
) -> Value {
    match <[Value; 1]>::try_from(pairs) {
        Ok([Value::Table(pair)]) => Value::Table([pair, entries].concat()),
        Ok([other]) => other,
        Err(several) if several.is_empty() => {
            let why = "no certificate was found: the result makes one for itself";
            work.notes.left_out(line, why);
            Value::text("self-signed")
        }
        Err(several) => {
            entries.insert(0, ("certificates".to_owned(), Value::List(several)));
            Value::Table(entries)
        }
    }
}

/// A file with certificate and key, or all of a directory.
fn certificates<'a>(
    work: &mut Work<'_, 'a>,
    line: &'a Directive,
    name: &str,
    pairs: &mut Vec<Value>,
) {
    let path = work.path(name, "crt-base");
    let mut inside = work.files.list(std::path::Path::new(&path));
    if inside.is_empty() {
        if path.ends_with('/') {
            work.notes.left_out(
                line,
                format!("{path} cannot be looked into for its certificates"),
            );
            return;
        }
        return pairs.push(pair(&path));
    }
    inside.sort_unstable();
    let is_pair = |name: &&String| {
        let is_part = [".issuer", ".ocsp", ".sctl", ".key"]
            .iter()
            .any(|end| name.ends_with(end));
        !is_part && !name.starts_with('.')
    };
    let path = path.trim_end_matches('/');
    let found = inside.iter().filter(is_pair);
    pairs.extend(found.map(|name| pair(&format!("{path}/{name}"))));
    let how = "those that are there now, each chosen by the names in it";
    work.notes.approximated(line, how);
}

/// Reads a list of certificates. Returns its first `ca-file` and `verify`.
fn listed<'a>(
    work: &mut Work<'_, 'a>,
    line: &'a Directive,
    name: &str,
    pairs: &mut Vec<Value>,
) -> Option<(String, String)> {
    let mut authority = None;
    match work.lines_of(name) {
        Ok(lines) => {
            for entry in lines {
                let options = entry
                    .split_once('[')
                    .and_then(|(_, rest)| rest.split_once(']'));
                let options: Vec<&str> = options
                    .map_or("", |(options, _)| options)
                    .split_whitespace()
                    .collect();
                let after = |word: &str| {
                    let at = options.iter().position(|known| *known == word)?;
                    options.get(at + 1).map(|value| (*value).to_owned())
                };
                if authority.is_none()
                    && let (Some(file), Some(kind)) = (after("ca-file"), after("verify"))
                    && kind != "none"
                {
                    authority = Some((work.path(&file, "ca-base"), kind));
                }
                let name = entry.split_whitespace().next().unwrap_or_default();
                pairs.push(pair(&work.path(name, "crt-base")));
            }
            let how = "each certificate is chosen by the names in it";
            work.notes.approximated(line, how);
        }
        Err(why) => work.notes.left_out(line, why),
    }
    authority
}

fn pair(path: &str) -> Value {
    Value::table([
        ("certificate", Value::text(path)),
        ("key", Value::text(path)),
    ])
}
