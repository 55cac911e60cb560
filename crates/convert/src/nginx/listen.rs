//! `listen` of all servers, and the certificates of the listeners.

use super::clients;
use super::real_ip::{trusted, trusts_proxy_header};
use super::scope::Scope;
use super::server::Server;
use super::work::Context;
use crate::document::Value;
use crate::settings::listener_settings::{Listener, self_signed};
use crate::source::directive::Directive;

/// Role of a server at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Default,
    Other,
}

/// Adds the addresses of a server to `listeners`.
pub(super) fn gather<'a>(
    work: &mut Context<'a>,
    server: usize,
    scope: &Scope<'a>,
    directives: &'a [Directive],
    listeners: &mut Vec<Listener>,
) {
    let listed = directives
        .iter()
        .filter(|directive| directive.name() == "listen");
    let mut is_listed = false;
    for directive in listed {
        is_listed = true;
        listen(work, server, scope, directive, listeners);
    }
    if !is_listed {
        let origin = "the default of nginx without listen".to_owned();
        put(new("0.0.0.0:80", origin), server, Part::Other, listeners);
    }
}

fn new(address: &str, origin: String) -> Listener {
    Listener {
        address: address.to_owned(),
        tls: None,
        proxy_protocol: None,
        origin,
        owners: Vec::new(),
    }
}

fn put(listener: Listener, server: usize, part: Part, listeners: &mut Vec<Listener>) {
    let known = listeners
        .iter()
        .position(|known| known.address == listener.address);
    let at = known.unwrap_or_else(|| {
        listeners.push(listener.clone());
        listeners.len() - 1
    });
    let known = &mut listeners[at];
    if known.tls.is_none() {
        known.tls = listener.tls;
    }
    if known.proxy_protocol.is_none() {
        known.proxy_protocol = listener.proxy_protocol;
    }
    match part {
        _ if known.owners.contains(&server) => {}
        Part::Default => known.owners.insert(0, server),
        Part::Other => known.owners.push(server),
    }
}

fn listen<'a>(
    work: &mut Context<'a>,
    server: usize,
    scope: &Scope<'a>,
    directive: &'a Directive,
    listeners: &mut Vec<Listener>,
) {
    let address = address(directive.argument(0));
    if let Err(invalid) = onrush_config::address::parse_listen(&address) {
        return work.notes.left_out(directive, invalid.to_string());
    }
    let mut listener = new(&address, directive.origin());
    let mut part = Part::Other;
    let mut speaks_tls = scope.value("ssl") == "on";
    work.notes.carried(directive);
    for option in &directive.arguments()[1.min(directive.arguments().len())..] {
        let name = option.split('=').next().unwrap_or_default();
        match name {
            "default_server" | "default" => part = Part::Default,
            "ssl" => speaks_tls = true,
            "proxy_protocol" => {
                listener.proxy_protocol = Some(proxy_protocol(work, scope, directive));
                if trusts_proxy_header(scope) {
                    let how = "the client address comes from the PROXY header; nginx uses the address of the connection without real_ip_header proxy_protocol";
                    work.notes.approximated(directive, how);
                }
            }
            // Onrush offers HTTP/2 to every client.
            "http2" => {}
            "spdy" => work
                .notes
                .approximated(directive, "clients may use HTTP/2 or HTTP/1.1"),
            "quic" => {
                let how = "Onrush does not support HTTP/3: clients use TCP";
                return work.notes.approximated(directive, how);
            }
            "reuseport" | "backlog" | "ipv6only" | "bind" | "deferred" | "so_keepalive"
            | "fastopen" | "rcvbuf" | "sndbuf" | "setfib" | "accept_filter" | "multipath" => {}
            other => work
                .notes
                .left_out(directive, format!("the converter does not know {other:?}")),
        }
    }
    if speaks_tls {
        listener.tls = Some(Value::Table(Vec::new()));
    }
    put(listener, server, part, listeners);
}

/// An address in the syntax of Onrush.
fn address(text: &str) -> String {
    if text.starts_with("unix:") {
        return text.to_owned();
    }
    let is_port = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if is_port(text) {
        return format!("0.0.0.0:{text}");
    }
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if is_port(port) && !host.is_empty() => (host, port),
        _ => (text, "80"),
    };
    let host = match host {
        "*" | "" => "0.0.0.0",
        host => host,
    };
    format!("{host}:{port}")
}

/// The value of `proxy_protocol`, limited to the networks of `set_real_ip_from`.
fn proxy_protocol<'a>(
    work: &mut Context<'a>,
    scope: &Scope<'a>,
    directive: &'a Directive,
) -> Value {
    let trusted = trusted(work, scope);
    if trusted.is_empty() {
        return Value::Truth(true);
    }
    let how = "only connections from the networks of set_real_ip_from begin with a PROXY header; nginx expects one on every connection";
    work.notes.approximated(directive, how);
    Value::table([("from", Value::texts(trusted))])
}

/// Writes the certificates of the servers into a listener with TLS.
pub(super) fn certify<'a>(work: &mut Context<'a>, listener: &mut Listener, servers: &[Server<'a>]) {
    if listener.tls.is_none() {
        return;
    }
    let mut pairs: Vec<Value> = Vec::new();
    let mut entries = Vec::new();
    for server in &listener.owners {
        let scope = &servers[*server].scope;
        let pair = scope
            .all("ssl_certificate")
            .into_iter()
            .zip(scope.all("ssl_certificate_key"));
        for (certificate, key) in pair {
            let names = [certificate.argument(0), key.argument(0)];
            if names.iter().any(|name| {
                name.contains('$') || name.starts_with("data:") || name.starts_with("engine:")
            }) {
                let why = "certificates must be files, and their names cannot contain variables";
                work.notes.left_out(certificate, why);
                continue;
            }
            work.notes.carried(certificate);
            work.notes.carried(key);
            let [certificate, key] = names.map(|name| Value::Text(work.path(name)));
            let pair = Value::table([("certificate", certificate), ("key", key)]);
            if !pairs.contains(&pair) {
                pairs.push(pair);
            }
        }
        profile(work, scope, &mut entries);
        if let Some(directive) = scope.one("ssl_reject_handshake") {
            let how = "a client that requests this name gets the first certificate, and a server with only TLS listeners responds with 421 (--open-guards serves its content)";
            work.notes.approximated(directive, how);
        }
    }
    entries.extend(clients::rules(work, &listener.owners, servers));
    listener.tls = Some(match &*pairs {
        // Without a certificate, nginx refuses every handshake.
        [] => self_signed(entries),
        [Value::Table(pair)] => Value::Table([&pair[..], &entries].concat()),
        several => {
            entries.insert(
                0,
                ("certificates".to_owned(), Value::List(several.to_vec())),
            );
            Value::Table(entries)
        }
    });
}

fn profile<'a>(work: &mut Context<'a>, scope: &Scope<'a>, entries: &mut Vec<(String, Value)>) {
    let Some(directive) = scope.one("ssl_protocols") else {
        return;
    };
    let versions = directive.arguments();
    let has = |version: &str| versions.iter().any(|known| known == version);
    if versions
        .iter()
        .any(|version| !matches!(version.as_str(), "TLSv1.2" | "TLSv1.3"))
    {
        let how = "Onrush only supports TLS 1.2 and 1.3";
        work.notes.approximated(directive, how);
    } else if has("TLSv1.2") && !has("TLSv1.3") {
        let how = "Onrush also supports TLS 1.3";
        work.notes.approximated(directive, how);
    } else {
        work.notes.carried(directive);
    }
    let is_modern = has("TLSv1.3") && versions.len() == 1;
    if is_modern && !entries.iter().any(|(key, _)| key == "profile") {
        entries.push(("profile".to_owned(), Value::text("modern")));
    }
}
