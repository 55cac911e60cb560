//! `real_ip_header` and `set_real_ip_from`: trusted senders of the client address.

use super::scope::Scope;
use super::undecided;
use super::variable::{Constants, REPORTED};
use super::work::Context;
use crate::expression::condition::network;
use crate::source::directive::Directive;

/// Source of the client address in nginx.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    Connection,
    ProxyHeader,
    ForwardedFor,
    /// Another field, which Onrush does not read.
    Field,
}

fn source(scope: &Scope<'_>) -> Source {
    if scope.all("set_real_ip_from").is_empty() {
        return Source::Connection;
    }
    match scope.value("real_ip_header").to_ascii_lowercase().as_str() {
        "proxy_protocol" => Source::ProxyHeader,
        "x-forwarded-for" => Source::ForwardedFor,
        _ => Source::Field,
    }
}

fn has_proxy_header(scope: &Scope<'_>) -> bool {
    let is_with = |listen: &&Directive| {
        let mut options = listen.arguments().iter();
        options.any(|option| option == "proxy_protocol")
    };
    scope.all("listen").iter().any(is_with)
}

/// Whether Onrush takes the client address from the PROXY header although nginx does not.
pub(super) fn trusts_proxy_header(scope: &Scope<'_>) -> bool {
    has_proxy_header(scope) && source(scope) != Source::ProxyHeader
}

/// Why a rule about client addresses would see a different address than in nginx, if Onrush trusts X-Forwarded-For of
/// the proxies in `trusted`.
pub(super) fn other_address(scope: &Scope<'_>, trusted: &[String]) -> Option<&'static str> {
    if trusts_proxy_header(scope) {
        return Some(
            "Onrush uses the client address in the PROXY header, and nginx another one (expected real_ip_header proxy_protocol with set_real_ip_from)",
        );
    }
    let is_same = match source(scope) {
        Source::Field => {
            return Some(
                "nginx uses the client address in a field that Onrush does not read (expected real_ip_header X-Forwarded-For)",
            );
        }
        Source::Connection | Source::ProxyHeader => trusted.is_empty(),
        Source::ForwardedFor => {
            let from = scope.all("set_real_ip_from").into_iter();
            let own: Option<Vec<String>> = from.map(|from| network(from.argument(0))).collect();
            // `trusted` contains all networks of this scope.
            own.is_some_and(|own| trusted.iter().all(|network| own.contains(network)))
        }
    };
    (!is_same).then_some(
        "Onrush trusts X-Forwarded-For of the same proxies everywhere, and nginx of other proxies here (expected the same set_real_ip_from in all servers)",
    )
}

/// Marks the variables of the client address as unknown if nginx has other values for them.
pub(super) fn mark(scope: &Scope<'_>, trusted: &[String], constants: &mut Constants) {
    let Some(why) = other_address(scope, trusted) else {
        return;
    };
    for name in ["remote_addr", "remote_port"] {
        undecided::mark_client(name, why, constants);
    }
    if !trusted.is_empty() {
        constants.push((REPORTED.to_owned(), String::new()));
    }
}

/// The networks of `set_real_ip_from`.
pub(super) fn trusted<'a>(work: &mut Context<'a>, scope: &Scope<'a>) -> Vec<String> {
    let mut networks = Vec::new();
    for directive in scope.all("set_real_ip_from") {
        match network(directive.argument(0)) {
            Some(network) => {
                work.notes.carried(directive);
                networks.push(network);
            }
            None => {
                let why = "trusted proxies must be networks, not names or sockets";
                work.notes.left_out(directive, why);
            }
        }
    }
    networks
}

/// The scope of a level, and the scopes of all locations in it.
pub(super) fn scopes<'a>(level: &'a [Directive], scope: Scope<'a>) -> Vec<Scope<'a>> {
    let locations = level.iter().filter(|inside| inside.name() == "location");
    let inner = locations.flat_map(|location| {
        let level = location.inside();
        scopes(level, scope.of_location(level))
    });
    let inner: Vec<Scope<'a>> = inner.collect();
    [vec![scope], inner].concat()
}

/// Proxies of all these scopes whose X-Forwarded-For is trusted.
pub(super) fn proxies<'a>(work: &mut Context<'a>, scopes: &[Scope<'a>]) -> Vec<String> {
    let mut networks: Vec<String> = Vec::new();
    for scope in scopes {
        let header = scope.one("real_ip_header");
        match source(scope) {
            Source::Connection => continue,
            Source::ProxyHeader => {
                if let Some(header) = header {
                    work.notes.carried(header);
                }
                continue;
            }
            Source::Field => {
                let from = scope.one("set_real_ip_from");
                let why = "Onrush takes client addresses from X-Forwarded-For or Forwarded; the default of nginx is X-Real-IP";
                if let Some(directive) = header.or(from) {
                    work.notes.left_out(directive, why);
                }
                continue;
            }
            Source::ForwardedFor => {}
        }
        for network in trusted(work, scope) {
            if !networks.contains(&network) {
                networks.push(network);
            }
        }
        let recursive = scope.one("real_ip_recursive");
        let is_on = recursive.is_some_and(|recursive| recursive.argument(0) == "on");
        for directive in [header, recursive].into_iter().flatten() {
            work.notes.carried(directive);
        }
        if let Some(directive) = recursive.or(header).filter(|_| !is_on) {
            let how = "trusted proxies in the list of addresses are skipped; nginx uses the last address of the list";
            work.notes.approximated(directive, how);
        }
    }
    let is_other = |scope: &Scope<'_>| other_address(scope, &networks).is_some();
    if !networks.is_empty() && scopes.iter().any(is_other) {
        let from = scopes
            .iter()
            .flat_map(|scope| scope.all("set_real_ip_from"));
        for directive in from {
            let how = "Onrush trusts X-Forwarded-For of these proxies everywhere, not only here";
            work.notes.approximated(directive, how);
        }
    }
    networks
}
