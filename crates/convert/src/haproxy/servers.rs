//! The servers of a backend. Many options are set per server in HAProxy and per group in Onrush.

use super::protocol::{Protocol, ServerFit, ServerProtocol, Transport};
use super::proxy::Proxy;
use super::server::{Keys, Server};
use super::work::Context;
use crate::document::Value;
use crate::settings::group;
use crate::source::directive::Directive;
use crate::source::guards::Guards;

/// Contents of a group.
#[derive(Debug)]
pub(super) struct Servers {
    pub(super) list: Vec<Value>,
    pub(super) protocol: Protocol,
    /// Keys of `health`, if any server is checked.
    pub(super) health: Option<Keys>,
    /// Keys of `tls`, if any server uses it.
    pub(super) tls: Option<Keys>,
    pub(super) proxy_protocol: Option<&'static str>,
    pub(super) slow_start: Option<String>,
    /// Whether responses are observed for passive health checks.
    pub(super) is_observed: bool,
}

pub(super) fn read<'a>(work: &mut Context<'_, 'a>, proxy: &Proxy<'a>) -> Servers {
    let mut servers = in_service(work, proxy);
    let protocol = protocol(work, &mut servers);
    Servers {
        protocol,
        health: health(work, &servers),
        tls: tls(work, &servers),
        proxy_protocol: proxy_protocol(work, &servers, protocol),
        slow_start: slow_start(work, &servers),
        is_observed: servers.iter().any(|server| server.is_observed),
        list: list(servers),
    }
}

/// The usable servers of a backend, each address once.
fn in_service<'a>(work: &mut Context<'_, 'a>, proxy: &Proxy<'a>) -> Vec<Server<'a>> {
    let mut servers: Vec<Server<'a>> = Vec::new();
    let defaults: Vec<&Directive> = proxy.all(&["default-server"]).collect();
    for line in &defaults {
        work.notes.carried(line);
    }
    let named = ["server", "server-template"];
    let lines = proxy.lines.iter();
    for line in lines.filter(|line| named.contains(&line.name())) {
        work.notes.carried(line);
        let (written, skipped) = match line.name() {
            "server" => (line.argument(1), 2),
            _ => {
                let how = "each address of the name becomes a server";
                work.notes.approximated(line, how);
                (line.argument(2), 3)
            }
        };
        let mut server = Server::new(line);
        if let Some(global) = work.global("ssl-server-verify") {
            work.notes.carried(global);
            server.read(work, &["verify".to_owned(), global.argument(0).to_owned()]);
        }
        for default in &defaults {
            server.read(work, default.arguments());
        }
        server.read(work, line.arguments().get(skipped..).unwrap_or_default());
        if let Err(why) = server.locate(written) {
            work.notes.left_out(line, why);
            continue;
        }
        if server.may_be_revoked() && work.guards == Guards::Closed {
            let why = "not in the group, because groups have no revocation lists (--open-guards accepts revoked certificates)";
            work.notes.left_out(line, why);
            continue;
        }
        if server.may_be_revoked() {
            work.notes
                .left_out(line, "revoked certificates are accepted");
        }
        if server.is_disabled {
            let how = "not in the group, because the server is disabled";
            work.notes.approximated(line, how);
            continue;
        }
        if servers.iter().any(|known| known.address == server.address) {
            let how = "the address is already in the group; set a weight to send it more requests";
            work.notes.approximated(line, how);
            continue;
        }
        servers.push(server);
    }
    servers
}

/// Backups come after the others. If all servers are backups, they become main servers, because Onrush requires one.
fn list(servers: Vec<Server<'_>>) -> Vec<Value> {
    let (backups, main): (Vec<_>, Vec<_>) = servers.into_iter().partition(Server::is_backup);
    if main.is_empty() {
        let alone = |server: Server<'_>| group::server(&server.address, vec![]);
        return backups.into_iter().map(alone).collect();
    }
    let all = main.into_iter().chain(backups);
    all.map(|server| group::server(&server.address, server.keys))
        .collect()
}

/// Determines the protocol of the group and removes servers that cannot support it.
fn protocol<'a>(work: &mut Context<'_, 'a>, servers: &mut Vec<Server<'a>>) -> Protocol {
    let spoken: Vec<ServerProtocol> = servers.iter().map(Server::spoken).collect();
    let protocol = Protocol::of_all(&spoken);
    servers.retain(|server| match protocol.fit(server.spoken()) {
        ServerFit::Same => true,
        ServerFit::Near(how) => {
            work.notes.approximated(server.line, how);
            true
        }
        ServerFit::Apart(why) => {
            work.notes.left_out(server.line, why);
            true
        }
        ServerFit::Out(why) => {
            work.notes.left_out(server.line, why);
            false
        }
    });
    protocol
}

fn health<'a>(work: &mut Context<'_, 'a>, servers: &[Server<'a>]) -> Option<Keys> {
    let mut checked = servers.iter().filter(|server| server.is_checked);
    let first = checked.next()?;
    for other in checked.filter(|other| !is_same(&other.health, &first.health)) {
        let how = "inter, rise, fall and port are set per group: the values of the first checked server apply";
        work.notes.approximated(other.line, how);
    }
    Some(first.health.clone())
}

fn tls<'a>(work: &mut Context<'_, 'a>, servers: &[Server<'a>]) -> Option<Keys> {
    let mut speakers = servers
        .iter()
        .filter(|server| server.transport == Transport::Tls);
    // Take the strictest server, so that no server is verified less than its line requires.
    let first = match servers.iter().find(|server| server.is_verified()) {
        Some(verified) => verified,
        None => speakers.next()?,
    };
    for other in servers {
        let why = match other.transport {
            Transport::Clear => {
                "TLS is set per group: connections to this server also use TLS, because another server has ssl"
            }
            Transport::Tls if !is_same(&other.tls, &first.tls) => {
                "TLS options are set per group: the options of the first server with a verified certificate apply, or of the first server with ssl"
            }
            Transport::Tls => continue,
        };
        work.notes.left_out(other.line, why);
    }
    Some(first.tls.clone())
}

fn proxy_protocol<'a>(
    work: &mut Context<'_, 'a>,
    servers: &[Server<'a>],
    protocol: Protocol,
) -> Option<&'static str> {
    let version = servers.iter().find_map(|server| server.proxy_protocol)?;
    if protocol == Protocol::Http2 {
        for server in servers.iter().filter(|one| one.proxy_protocol.is_some()) {
            let why =
                "HTTP/2 connections carry requests of many clients, so they have no PROXY header";
            work.notes.left_out(server.line, why);
        }
        return None;
    }
    for other in servers {
        if other.proxy_protocol != Some(version) {
            let why = format!(
                "the PROXY protocol is set per group: the version of the first server that has one applies ({version})"
            );
            work.notes.left_out(other.line, why);
        }
    }
    Some(version)
}

fn slow_start<'a>(work: &mut Context<'_, 'a>, servers: &[Server<'a>]) -> Option<String> {
    let time = servers
        .iter()
        .find_map(|server| server.slow_start.as_ref())?;
    for other in servers {
        if other.slow_start.as_ref() != Some(time) {
            let how = format!("slowstart is set per group: {time}");
            work.notes.approximated(other.line, how);
        }
    }
    Some(time.clone())
}

/// Whether two tables are equal, in any order.
fn is_same(one: &Keys, other: &Keys) -> bool {
    one.len() == other.len() && one.iter().all(|entry| other.contains(entry))
}
