//! `[upstream.NAME]`: groups of servers, and references of routes to them.

use std::time::Duration;

use toml::Spanned;
use toml::de::DeValue;

use super::kinds::TIMEOUT;
use super::upstream_tls::{check_tls_name, read_tls};
use super::{balance, ejection, health, retries, server, upstream_protocol};
use crate::address::{ForwardTarget, is_group_name, parse_forward};
use crate::diagnostic::{Diagnostics, Span};
use crate::limits;
use crate::plan::{Action, Balance, Eject, ProxyVersion, Reuse, Route, Server, Upstream};
use crate::section::{Keys, Kind, Section};
use crate::toml_values::{entries_in_order, kind_of, parsed, place_of};
use crate::value::{self, Invalid};
use onrush_measure::suggestion::suggestion;

const KEYS: Keys = Keys {
    known: &[
        "servers",
        "balance",
        "hash",
        "slow_start",
        "sticky",
        "connections_max",
        "queue",
        "health",
        "eject",
        "retries",
        "connections_idle_max",
        "reuse",
        "connections_ready",
        "protocol",
        "streams_max",
        "connections_shared_max",
        "tls",
        "proxy_protocol",
        "resolve_retry",
    ],
    of_other_versions: &[(
        "pipeline",
        "was removed: set protocol = \"h2\", which carries requests of many clients on one connection",
    )],
};

/// Named groups, followed by groups for single servers in routes.
pub(super) struct Groups {
    /// Names of the first groups in `all`, with their places.
    named: Vec<Spanned<String>>,
    all: Vec<Upstream>,
}

/// Reads all groups. An invalid entry also becomes a group, so that references to it are not reported, too.
pub(super) fn read_groups(file: &Section<'_, '_>, findings: &mut Diagnostics<'_>) -> Groups {
    let mut groups = Groups {
        named: Vec::new(),
        all: Vec::new(),
    };
    let Some(value) = file.value("upstream") else {
        return groups;
    };
    let DeValue::Table(table) = value.get_ref() else {
        let place = place_of(value);
        findings.error(
            place,
            "upstream is written [upstream.NAME], with a name that a route can forward to",
        );
        return groups;
    };
    let written = entries_in_order(table);
    if let Some((name, _)) = written.get(limits::UPSTREAMS_MAX) {
        let message = format!(
            "there are {} upstream groups: expected at most {}",
            written.len(),
            limits::UPSTREAMS_MAX
        );
        findings.error(name.span(), message);
    }
    for (name, value) in written.into_iter().take(limits::UPSTREAMS_MAX) {
        if let Some(upstream) = read_group(&name, value, findings) {
            groups.named.push(name);
            groups.all.push(upstream);
        }
    }
    groups
}

impl Groups {
    /// Finds the group of `target`. A single server becomes a group of its own, shared by all routes that name it.
    pub(super) fn find(
        &mut self,
        target: &Spanned<String>,
        findings: &mut Diagnostics<'_>,
    ) -> Option<usize> {
        let url = match parsed(target, parse_forward, findings)? {
            ForwardTarget::Group(name) => return self.find_named(&name, target.span(), findings),
            ForwardTarget::Server(url) => url,
        };
        let address = vec![server::resolve_unix_path(
            url.address,
            &target.span(),
            findings,
        )];
        let single = match url.tls {
            true => Upstream::of_tls(address),
            false => Upstream::of(address),
        };
        // Named groups are not reused, even if they contain the same single server.
        let named = self.named.len();
        let known = self.all[named..].iter().position(|known| *known == single);
        if let Some(at) = known {
            return Some(named + at);
        }
        self.all.push(single);
        Some(self.all.len() - 1)
    }

    fn find_named(&self, name: &str, span: Span, findings: &mut Diagnostics<'_>) -> Option<usize> {
        let names = || self.named.iter().map(|name| name.get_ref().as_str());
        let found = names().position(|known| known == name);
        if found.is_none() {
            findings.error(
                span,
                match suggestion(name, names()) {
                    Some(near) => format!("unknown group {name:?}; nearest: {near:?}"),
                    None => format!(
                        "unknown group {name:?}: expected an [upstream.{name}], or a single server as a URL such as \"http://10.0.0.9:8000\""
                    ),
                },
            );
        }
        found
    }

    pub(super) fn warn_of_unused(&self, routes: &[Route], findings: &mut Diagnostics<'_>) {
        if findings.errors() > 0 {
            // The group may be used by a route that was dropped because of an error.
            return;
        }
        let mut is_used = vec![false; self.all.len()];
        for route in routes {
            if let Action::Forward { split, mirror } = &route.action {
                split.iter().for_each(|(at, _)| is_used[*at] = true);
                mirror
                    .iter()
                    .for_each(|mirror| is_used[mirror.upstream] = true);
            }
        }
        for (name, _) in self.named.iter().zip(is_used).filter(|(_, used)| !used) {
            let message = format!("no [[route]] forwards to [upstream.{}]", name.get_ref());
            findings.warning(name.span(), message);
        }
    }

    pub(super) fn into_upstreams(self) -> Vec<Upstream> {
        self.all
    }
}

fn read_group(
    name: &Spanned<String>,
    value: &Spanned<DeValue<'_>>,
    findings: &mut Diagnostics<'_>,
) -> Option<Upstream> {
    let text = name.get_ref();
    let DeValue::Table(table) = value.get_ref() else {
        findings.error(
            name.span(),
            format!(
                "upstream is written [upstream.NAME]: {text:?} is {}, not a group",
                kind_of(value)
            ),
        );
        return None;
    };
    if !is_group_name(text) {
        findings.error(
            name.span(),
            format!("{text:?} is not a name for a group: expected letters, digits, \"-\", \"_\" and \".\""),
        );
    }
    let title = format!("[upstream.{text}]");
    let section = Section::open(title, value.span(), table, KEYS, findings);
    let idle_max = limits::CONNECTIONS_IDLE_MAX_MAX;
    let upstream = Upstream {
        balance: balance::read_balance(&section, findings),
        slow_start: section.read("slow_start", TIMEOUT, findings),
        sticky: balance::read_sticky(&section, findings),
        queue_max: read_queue(&section, findings).unwrap_or(limits::QUEUE_MAX_DEFAULT),
        health: health::read_health(&section, findings),
        eject: ejection::read_eject(&section, findings),
        retries: retries::read_retries(&section, findings).unwrap_or_default(),
        connections_idle_max: section
            .count("connections_idle_max", 0..=idle_max, findings)
            .unwrap_or(limits::CONNECTIONS_IDLE_MAX_DEFAULT),
        reuse: section.read("reuse", REUSE, findings).unwrap_or_default(),
        preconnect: section
            .count("connections_ready", 0..=idle_max, findings)
            .unwrap_or(0),
        protocol: upstream_protocol::read_protocol(&section, findings),
        tls: read_tls(&section, findings),
        proxy_protocol: section.read("proxy_protocol", PROXY_VERSION, findings),
        resolve_retry: section
            .read("resolve_retry", RESOLVE_RETRY, findings)
            .unwrap_or(limits::RESOLVE_RETRY_DEFAULT),
        ..Upstream::new(text.clone(), server::read_servers(&section, findings))
    };
    Some(check_consistency(upstream, &section, findings))
}

const REUSE: Kind<Reuse> = Kind {
    expected: "\"always\", \"safe\" or \"never\"",
    parse: |text| {
        let known = [
            ("always", Reuse::Always),
            ("safe", Reuse::Safe),
            ("never", Reuse::Never),
        ];
        value::parse_name("way to reuse connections", text, &known)
    },
};

const PROXY_VERSION: Kind<ProxyVersion> = Kind {
    expected: "\"v1\" or \"v2\"",
    parse: |text| {
        let known = [("v1", ProxyVersion::V1), ("v2", ProxyVersion::V2)];
        value::parse_name("version of the PROXY protocol", text, &known)
    },
};

/// First pause: a name server that gets more queries has no time to recover.
const RESOLVE_RETRY_MIN: Duration = Duration::from_secs(1);

const RESOLVE_RETRY: Kind<Duration> = Kind {
    expected: "a duration such as \"5s\"",
    parse: |text| match value::parse_duration(text)? {
        pause if (RESOLVE_RETRY_MIN..=limits::RESOLVE_RETRY_MAX).contains(&pause) => Ok(pause),
        _ => Err(Invalid::new(format!(
            "{text:?} is out of range: expected 1s to 5m"
        ))),
    },
};

fn read_queue(group: &Section<'_, '_>, findings: &mut Diagnostics<'_>) -> Option<usize> {
    let value = group.value("queue")?;
    let expected = "a table such as { max = 1000 }";
    let section = Section::of("queue", value, expected, Keys::new(&["max"]), findings)?;
    section.require("max", "a count such as 1000", findings);
    section.count("max", 0..=limits::QUEUE_MAX_MAX, findings)
}

/// Reports contradictions in a group and settings without effect.
fn check_consistency(
    mut upstream: Upstream,
    group: &Section<'_, '_>,
    findings: &mut Diagnostics<'_>,
) -> Upstream {
    upstream_protocol::agree_on_protocol(&upstream, group, findings);
    agree_on_reuse(&mut upstream, group, findings);
    if upstream.preconnect > upstream.connections_idle_max {
        let message = format!(
            "connections_ready {} is more than connections_idle_max {}",
            upstream.preconnect, upstream.connections_idle_max
        );
        findings.error(group.place("connections_ready"), message);
    }
    warn_of_keys_without_effect(&upstream, group, findings);
    warn_of_unused_backups(&upstream, group, findings);
    check_tls_name(&upstream, group, findings);
    upstream
}

/// Sets and checks the reuse of connections.
fn agree_on_reuse(
    upstream: &mut Upstream,
    group: &Section<'_, '_>,
    findings: &mut Diagnostics<'_>,
) {
    if upstream.proxy_protocol.is_some() {
        // The PROXY header applies to the whole connection, which therefore belongs to one client.
        group.report_conflict(
            &["connections_ready"],
            "opens connections before their clients are known, but proxy_protocol sends the address of the client first",
            findings,
        );
        if group.has("reuse") && upstream.reuse != Reuse::Never {
            group.report_conflict(
                &["reuse"],
                "must be \"never\" with proxy_protocol, which ties a connection to one client",
                findings,
            );
        }
        upstream.reuse = Reuse::Never;
    } else if upstream.reuse == Reuse::Never {
        group.report_conflict(
            &["connections_ready"],
            "needs connections that are reused, but reuse is \"never\"",
            findings,
        );
        group.warn_ignored(
            &["connections_idle_max"],
            "when reuse is \"never\"",
            findings,
        );
    }
}

/// Warns of keys that have no effect in combination with others.
fn warn_of_keys_without_effect(
    upstream: &Upstream,
    group: &Section<'_, '_>,
    findings: &mut Diagnostics<'_>,
) {
    if upstream
        .servers
        .iter()
        .all(|server| server.connections_max.is_none())
    {
        group.warn_ignored(
            &["queue"],
            "without connections_max: no server is ever full",
            findings,
        );
    }
    let may_be_several = |server: &Server| server.address.is_resolved_by_name();
    let is_single = upstream.servers.len() == 1 && !upstream.servers.iter().any(may_be_several);
    if upstream.health.is_none() && (upstream.eject.is_none() || is_single) {
        group.warn_ignored(
            &["slow_start"],
            "without health or eject: no server is ever taken out and put back",
            findings,
        );
    }
    if matches!(upstream.balance, Balance::Hash(_)) {
        group.warn_ignored(
            &["sticky"],
            "beyond that of balance = \"hash\": both keep a client with its server",
            findings,
        );
    }
    if is_single && upstream.eject.is_some() {
        group.warn_ignored(
            &["eject"],
            "with a single server: the last server is never taken out",
            findings,
        );
    }
}

/// Warns of backups that never receive a request: there are no health checks, no retries, and no ejection that may
/// remove all other servers.
fn warn_of_unused_backups(
    upstream: &Upstream,
    group: &Section<'_, '_>,
    findings: &mut Diagnostics<'_>,
) {
    let (backups, others): (Vec<&Server>, Vec<&Server>) =
        upstream.servers.iter().partition(|server| server.backup);
    // A name may resolve to no address.
    let are_names = others
        .iter()
        .all(|server| server.address.is_resolved_by_name());
    if backups.is_empty()
        || are_names
        || upstream.health.is_some()
        || upstream.retries.are_enabled()
    {
        return;
    }
    let all_may_go = |eject: &Eject| {
        eject.counts_failures() && eject.max_ejected(upstream.servers.len()) >= others.len()
    };
    if !upstream.eject.as_ref().is_some_and(all_may_go) {
        let message = format!(
            "the backup servers of {} never get a request: no check can take out all the others, and requests are not retried; expected health, retries, or eject with a share_max that allows all the others",
            group.name()
        );
        findings.warning(group.place("servers"), message);
    }
}
