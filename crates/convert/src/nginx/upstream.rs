//! Groups of servers, from `upstream` blocks and from single servers.

use super::balance;
use super::handler::Module;
use super::scope::Scope;
use super::target::Target;
use super::tls::tls;
use super::work::Context;
use crate::document::Value;
use crate::expression::condition::Scheme;
use crate::settings::group::{Group, server};
use crate::settings::unit::{bounded, nginx_time, written};
use crate::source::directive::Directive;

/// Adds the group to which a target belongs, and returns its name. Fails if the target is not a server, or a revocation
/// list has no equivalent.
pub(super) fn group<'a>(
    work: &mut Context<'a>,
    scope: &Scope<'a>,
    pass: &'a Directive,
    target: &Target<'_>,
) -> Result<String, String> {
    let block = work.named("upstream", target.authority);
    let mut group = match block {
        Some(block) => of_block(work, block, target.module),
        None => {
            let address = address(target.authority, port(target.scheme))?;
            Group::of(pass.origin(), vec![server(&address, vec![])])
        }
    };
    match target.module {
        Module::Proxy => {}
        Module::Grpc => group.put("protocol", Value::text("h2")),
    }
    if target.scheme == Scheme::Https {
        let tls = tls(work, scope, target.module)?;
        group.put("tls", tls);
    }
    retries(work, scope, target.module, &mut group);
    Ok(work.groups.name(target.authority, group))
}

/// Default port of a server named in a URL.
fn port(scheme: Scheme) -> u16 {
    match scheme {
        Scheme::Http => 80,
        Scheme::Https => 443,
    }
}

/// Default port of a server in a block, also with TLS.
const PORT_IN_BLOCK: u16 = 80;

/// An address in the syntax of Onrush, with a port.
fn address(authority: &str, port: u16) -> Result<String, String> {
    let has_port = authority.rsplit_once(':').is_some_and(|(_, port)| {
        !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit())
    });
    let address = match authority.strip_prefix("unix:") {
        Some(path) => format!("unix:{}", path.trim_end_matches(':')),
        None if has_port => authority.to_owned(),
        None => format!("{authority}:{port}"),
    };
    match onrush_config::address::parse_server(&address) {
        Ok(_) => Ok(address),
        Err(invalid) => Err(invalid.to_string()),
    }
}

fn of_block<'a>(work: &mut Context<'a>, block: &'a Directive, module: Module) -> Group {
    work.notes.carried(block);
    let mut servers: Vec<Value> = Vec::new();
    let mut addresses: Vec<String> = Vec::new();
    let mut failures = EjectSettings::default();
    let mut has_main = false;
    let inside = block.inside().iter();
    for directive in inside.filter(|inside| inside.name() == "server") {
        let address = match address(directive.argument(0), PORT_IN_BLOCK) {
            Ok(address) => address,
            Err(why) => {
                work.notes.left_out(directive, why);
                continue;
            }
        };
        if addresses.contains(&address) {
            let how = "the address is already in the group; set a weight to send it more requests";
            work.notes.approximated(directive, how);
            continue;
        }
        let Some((keys, role)) = server_keys(work, directive, &mut failures) else {
            continue;
        };
        has_main |= role == Role::Main;
        addresses.push(address.clone());
        servers.push(server(&address, keys));
    }
    if !has_main {
        // Onrush requires one server that is not a backup.
        servers = addresses
            .iter()
            .map(|address| server(address, vec![]))
            .collect();
    }
    if servers.is_empty() {
        work.notes
            .left_out(block, "the group has no usable server; the response is 502");
        // A group needs a server. Port 9 (discard) usually refuses connections.
        servers.push(server("127.0.0.1:9", vec![]));
    }
    let count = servers.len();
    let mut group = Group::of(block.origin(), servers);
    balance::write(work, block, &mut group);
    if let Some(eject) = failures.written(count) {
        group.put("eject", eject);
    }
    idle(work, block, module, &mut group);
    group
}

/// Idle connections: maximum number and timeout.
fn idle<'a>(work: &mut Context<'a>, block: &'a Directive, module: Module, group: &mut Group) {
    for directive in block.inside() {
        let said = directive.argument(0);
        match (directive.name(), module) {
            ("keepalive", Module::Proxy) => {
                if let Ok(count @ 0..=65_535) = said.parse::<u64>() {
                    group.put("connections_idle_max", Value::Number(count));
                    work.notes.carried(directive);
                }
            }
            ("keepalive", Module::Grpc) => {
                let why = "with grpc_pass requests share connections, so there are no idle connections to limit";
                work.notes.without_effect(directive, why);
            }
            ("keepalive_timeout", Module::Proxy | Module::Grpc) => match nginx_time(said) {
                Some(time) => work.timeouts.record("upstream_idle", time, directive),
                None => work
                    .notes
                    .left_out(directive, "expected a time such as 60s"),
            },
            _ => {}
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Main,
    Backup,
}

/// Limits after which a server counts as failed. Onrush has one setting per group.
#[derive(Debug, Default)]
struct EjectSettings {
    max: Option<u64>,
    time: Option<String>,
}

impl EjectSettings {
    /// The value of `eject` for a group of so many servers. By default nginx takes a server out after one failure,
    /// unless it is the only one.
    fn written(&self, servers: usize) -> Option<Value> {
        if self.max == Some(0) {
            return Some(Value::Truth(false));
        }
        if self.max.is_none() && self.time.is_none() && servers == 1 {
            return None;
        }
        let mut entries = vec![
            ("on".to_owned(), Value::text("connections")),
            ("failures".to_owned(), Value::Number(self.max.unwrap_or(1))),
        ];
        let time = self.time.as_ref().map(Value::text);
        entries.extend(time.map(|time| ("time".to_owned(), time)));
        Some(Value::Table(entries))
    }

    /// Takes `max_fails` of a server.
    fn set_max<'a>(&mut self, work: &mut Context<'a>, directive: &'a Directive, max: u64) {
        let is_other = self.max.is_some_and(|known| known != max);
        differ(work, directive, is_other.then_some("max_fails"));
        self.max.get_or_insert(max);
        if max > 1 {
            let how = "consecutive failures count; nginx counts failures within fail_timeout";
            work.notes.approximated(directive, how);
        }
    }

    /// Takes `fail_timeout` of a server.
    fn set_time<'a>(&mut self, work: &mut Context<'a>, directive: &'a Directive, value: &str) {
        let Some(time) = nginx_time(value) else {
            work.notes
                .left_out(directive, "expected a time such as 10s");
            return;
        };
        let time = written(bounded(time));
        let is_other = self.time.as_ref().is_some_and(|known| *known != time);
        differ(work, directive, is_other.then_some("fail_timeout"));
        self.time.get_or_insert(time);
    }
}

/// Keys and role of a server; none if it is down.
fn server_keys<'a>(
    work: &mut Context<'a>,
    directive: &'a Directive,
    failures: &mut EjectSettings,
) -> Option<(Vec<(&'static str, Value)>, Role)> {
    let mut keys = Vec::new();
    let mut role = Role::Main;
    work.notes.carried(directive);
    for argument in &directive.arguments()[1..] {
        let (name, value) = argument.split_once('=').unwrap_or((argument, ""));
        let number = value.parse::<u64>();
        match (name, number) {
            ("weight", Ok(weight @ 1..=1000)) => keys.push(("weight", Value::Number(weight))),
            ("weight", Ok(_)) => {
                keys.push(("weight", Value::Number(1000)));
                work.notes
                    .approximated(directive, "the weight is limited to 1000");
            }
            ("max_conns", Ok(0)) => {}
            ("max_conns", Ok(most)) => {
                keys.push(("connections_max", Value::Number(most.min(65_535))));
            }
            ("backup", _) => {
                role = Role::Backup;
                keys.push(("backup", Value::Truth(true)));
            }
            ("down", _) => {
                let how = "not in the group, because the server is down";
                work.notes.approximated(directive, how);
                return None;
            }
            ("max_fails", Ok(max @ 0..=1000)) => failures.set_max(work, directive, max),
            ("fail_timeout", _) => failures.set_time(work, directive, value),
            ("resolve", _) => {}
            ("slow_start" | "route" | "service" | "drain", _) => {
                work.notes.left_out(
                    directive,
                    format!("Onrush has no equivalent for {name} of a server"),
                );
            }
            _ => work.notes.left_out(
                directive,
                format!("Onrush has no equivalent for {argument}"),
            ),
        }
    }
    Some((keys, role))
}

fn differ<'a>(work: &mut Context<'a>, directive: &'a Directive, what: Option<&str>) {
    if let Some(what) = what {
        let how = format!("{what} is set per group: the first value applies");
        work.notes.approximated(directive, how);
    }
}

/// `proxy_next_upstream` or `grpc_next_upstream`, and the limits on attempts.
fn retries<'a>(work: &mut Context<'a>, scope: &Scope<'a>, module: Module, group: &mut Group) {
    if let Some(directive) = scope.one(&module.directive("next_upstream_timeout")) {
        match directive.argument(0) {
            "0" => work.notes.carried(directive),
            _ => work.notes.approximated(
                directive,
                "the number of attempts is limited, not their time",
            ),
        }
    }
    let tries = scope.one(&module.directive("next_upstream_tries"));
    let count = tries.and_then(|tries| tries.argument(0).parse::<u64>().ok());
    let count = count
        .filter(|count| *count > 0)
        .map(|count| (count - 1).min(10));
    if let Some(tries) = tries {
        work.notes.carried(tries);
    }
    let Some(directive) = scope.one(&module.directive("next_upstream")) else {
        if let Some(count) = count {
            group.put("retries", Value::Number(count));
        }
        return;
    };
    work.notes.carried(directive);
    let mut on: Vec<&str> = Vec::new();
    let mut statuses = Vec::new();
    for word in directive.arguments() {
        match word.as_str() {
            "off" => return group.put("retries", Value::Number(0)),
            "error" => on.extend(["connect", "reset"]),
            "timeout" => on.push("timeout"),
            "invalid_header" => on.push("garbage"),
            "non_idempotent" => work.notes.left_out(
                directive,
                "requests that are not idempotent are only retried if no part of them was sent",
            ),
            word => match word
                .strip_prefix("http_")
                .and_then(|status| status.parse::<u64>().ok())
            {
                Some(status @ 400..=599) => statuses.push(Value::Number(status)),
                _ => work
                    .notes
                    .left_out(directive, format!("Onrush has no equivalent for {word}")),
            },
        }
    }
    let mut entries = Vec::new();
    entries.extend(count.map(|count| ("count".to_owned(), Value::Number(count))));
    entries.push(("on".to_owned(), Value::texts(on)));
    if !statuses.is_empty() {
        let how = "a response with this status does not count as a failure of the server";
        work.notes.approximated(directive, how);
        entries.push(("statuses".to_owned(), Value::List(statuses)));
    }
    group.put("retries", Value::Table(entries));
}
