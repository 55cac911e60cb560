//! `[upstream.NAME]`: groups of servers, and how routes refer to them.

use std::time::Duration;

use toml::Spanned;
use toml::de::DeValue;

use super::{TIMEOUT, ejection, health, is_false, is_true, parse_in_place, retries, server};
use crate::address::{ForwardTarget, is_group_name, parse_forward};
use crate::diagnostic::{Findings, Span};
use crate::limits;
use crate::nearest::nearest;
use crate::plan::{
    Action, Balance, Eject, HashKey, ProxyVersion, Reuse, Route, Server, ServerAddress, Sticky,
    Upstream, UpstreamTls, Verify,
};
use crate::section::{Keys, Kind, Section, first_of, in_order, kind_of, parsed};
use crate::value::{self, Invalid};

const KEYS: Keys = Keys::new(&[
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
    "pipeline",
    "tls",
    "proxy_protocol",
]);

/// The groups of a file, and those of single servers that routes name.
pub(super) struct Groups {
    /// The names of the first of `all`, as they were written.
    named: Vec<Spanned<String>>,
    all: Vec<Upstream>,
}

/// Each entry gives a group, even one without servers, so that routes can refer to it and the
/// mistake is reported once.
pub(super) fn read_groups(file: &Section<'_, '_>, findings: &mut Findings<'_>) -> Groups {
    let mut groups = Groups {
        named: Vec::new(),
        all: Vec::new(),
    };
    let Some(value) = file.value("upstream") else {
        return groups;
    };
    let DeValue::Table(table) = value.get_ref() else {
        let place = first_of(value);
        findings.error(
            place,
            "upstream is written [upstream.NAME], with a name that a route can forward to",
        );
        return groups;
    };
    let written = in_order(table);
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
    /// The group that `target` names; a single server becomes a group of its own, one for all
    /// routes that name it.
    pub(super) fn find(
        &mut self,
        target: &Spanned<String>,
        findings: &mut Findings<'_>,
    ) -> Option<usize> {
        let url = match parsed(target, parse_forward, findings)? {
            ForwardTarget::Group(name) => return self.find_named(&name, target.span(), findings),
            ForwardTarget::Server(url) => url,
        };
        let mut single = Upstream::of(vec![server::beneath(url.address, findings)]);
        if url.tls {
            single.tls = Some(UpstreamTls::default());
        }
        // Those with a name come first, and are their own even when they contain a single server.
        let named = self.named.len();
        let known = self.all[named..].iter().position(|known| *known == single);
        if let Some(at) = known {
            return Some(named + at);
        }
        self.all.push(single);
        Some(self.all.len() - 1)
    }

    fn find_named(&self, name: &str, span: Span, findings: &mut Findings<'_>) -> Option<usize> {
        let names = || self.named.iter().map(|name| name.get_ref().as_str());
        let found = names().position(|known| known == name);
        if found.is_none() {
            findings.error(
                span,
                match nearest(name, names()) {
                    Some(near) => format!("unknown group {name:?}; nearest: {near:?}"),
                    None => format!(
                        "unknown group {name:?}: expected an [upstream.{name}], or a single server as a URL such as \"http://10.0.0.9:8000\""
                    ),
                },
            );
        }
        found
    }

    pub(super) fn warn_of_unused(&self, routes: &[Route], findings: &mut Findings<'_>) {
        if findings.errors() > 0 {
            // A route that was left out for its error may be the one that forwards there.
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
    findings: &mut Findings<'_>,
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
        balance: read_balance(&section, findings),
        slow_start: section.read("slow_start", TIMEOUT, findings),
        sticky: read_sticky(&section, findings),
        queue_max: read_queue(&section, findings).unwrap_or(limits::QUEUE_MAX_DEFAULT),
        health: health::read_health(&section, findings),
        eject: ejection::read_eject(&section, findings),
        retries: retries::read_retries(&section, findings).unwrap_or_default(),
        connections_idle_max: section
            .count("connections_idle_max", 0..=idle_max, findings)
            .unwrap_or(limits::CONNECTIONS_IDLE_MAX_DEFAULT),
        reuse: section.read("reuse", REUSE, findings).unwrap_or_default(),
        connections_ready: section
            .count("connections_ready", 0..=idle_max, findings)
            .unwrap_or(0),
        pipeline: section.count("pipeline", 2..=limits::PIPELINE_MAX, findings),
        tls: read_tls(&section, findings),
        proxy_protocol: section.read("proxy_protocol", PROXY_VERSION, findings),
        ..Upstream::new(text.clone(), server::read_servers(&section, findings))
    };
    Some(coherent(upstream, &section, findings))
}

const REUSE: Kind<Reuse> = Kind {
    expected: "\"always\", \"safe\" or \"never\"",
    parse: |text| {
        let known = [
            ("always", Reuse::Always),
            ("safe", Reuse::Safe),
            ("never", Reuse::Never),
        ];
        value::choose("way to reuse connections", text, &known)
    },
};

const PROXY_VERSION: Kind<ProxyVersion> = Kind {
    expected: "\"v1\" or \"v2\"",
    parse: |text| {
        let known = [("v1", ProxyVersion::V1), ("v2", ProxyVersion::V2)];
        value::choose("version of the PROXY protocol", text, &known)
    },
};

const HASH_KEY: Kind<HashKey> = Kind {
    expected: "\"address\", \"path\", \"header:NAME\" or \"cookie:NAME\"",
    parse: |text| {
        if let Some(name) = text.strip_prefix("header:") {
            return value::parse_field_name(name).map(HashKey::Header);
        }
        if let Some(name) = text.strip_prefix("cookie:") {
            return parse_cookie(name).map(HashKey::Cookie);
        }
        // The last two are for the sentence: those with a name have been taken.
        let known = [
            ("address", HashKey::Address),
            ("path", HashKey::Path),
            ("header:NAME", HashKey::Path),
            ("cookie:NAME", HashKey::Path),
        ];
        value::choose("key to hash", text, &known)
    },
};

/// `None` for the consistent hash, whose key is another value.
const BALANCE: Kind<Option<Balance>> = Kind {
    expected: "a way to balance such as \"round_robin\"",
    parse: |text| {
        let known = [
            ("round_robin", Some(Balance::RoundRobin)),
            ("random", Some(Balance::Random)),
            ("power_of_two", Some(Balance::PowerOfTwo)),
            ("least_connections", Some(Balance::LeastConnections)),
            ("hash", None),
            ("peak_ewma", Some(Balance::PeakEwma)),
            ("first", Some(Balance::First)),
        ];
        value::choose("balance", text, &known)
    },
};

fn read_balance(group: &Section<'_, '_>, findings: &mut Findings<'_>) -> Balance {
    let key = group.read("hash", HASH_KEY, findings);
    let balance = group.read("balance", BALANCE, findings);
    match balance {
        Some(None) => {
            if !group.is_meant("hash") {
                let message = format!(
                    "balance \"hash\" needs a key: expected hash = {}",
                    HASH_KEY.expected
                );
                findings.error(group.place("balance"), message);
            }
            key.map_or(Balance::RoundRobin, Balance::Hash)
        }
        Some(Some(balance)) => {
            group.refuse(
                &["hash"],
                "is the key of balance = \"hash\", and here is another",
                findings,
            );
            balance
        }
        None => {
            if !group.has("balance") {
                group.refuse(
                    &["hash"],
                    "is the key of balance = \"hash\", which is missing",
                    findings,
                );
            }
            Balance::default()
        }
    }
}

/// A cookie's name is a token (RFC 6265, section 4.1.1).
fn parse_cookie(name: &str) -> Result<String, Invalid> {
    if !value::is_token(name) || name.len() > limits::COOKIE_NAME_MAX {
        return Err(Invalid::new(format!(
            "{name:?} is not the name of a cookie"
        )));
    }
    Ok(name.to_owned())
}

fn read_sticky(group: &Section<'_, '_>, findings: &mut Findings<'_>) -> Option<Sticky> {
    const COOKIE: Kind<String> = Kind {
        expected: "the name of a cookie such as \"server\"",
        parse: parse_cookie,
    };
    const AGE: Kind<Duration> = Kind {
        expected: "a duration such as \"8h\"",
        parse: |text| {
            let age = value::parse_duration(text)?;
            if age < Duration::from_secs(1) || age > limits::COOKIE_AGE_MAX {
                return Err(Invalid::new(format!(
                    "an age of {text} is out of range: expected 1s to 9600h"
                )));
            }
            Ok(age)
        },
    };
    let value = group.value("sticky")?;
    if value.get_ref().is_str() {
        let cookie = parse_in_place(value, COOKIE, findings)?;
        return Some(Sticky {
            cookie,
            age_max: None,
        });
    }
    let expected =
        "the name of a cookie, or a table such as { cookie = \"server\", age_max = \"8h\" }";
    let keys = Keys::new(&["cookie", "age_max"]);
    let section = Section::of("sticky", value, expected, keys, findings)?;
    section.require("cookie", COOKIE.expected, findings);
    let age_max = section.read("age_max", AGE, findings);
    Some(Sticky {
        cookie: section.read("cookie", COOKIE, findings)?,
        age_max,
    })
}

fn read_queue(group: &Section<'_, '_>, findings: &mut Findings<'_>) -> Option<usize> {
    let value = group.value("queue")?;
    let expected = "a table such as { max = 1000 }";
    let section = Section::of("queue", value, expected, Keys::new(&["max"]), findings)?;
    section.require("max", "a count such as 1000", findings);
    section.count("max", 0..=limits::QUEUE_MAX_MAX, findings)
}

fn read_tls(group: &Section<'_, '_>, findings: &mut Findings<'_>) -> Option<UpstreamTls> {
    const NAME: Kind<String> = Kind {
        expected: "a host name such as \"app.example.com\"",
        parse: |text| {
            if !value::is_host_name(text) {
                return Err(Invalid::new(format!(
                    "{text:?} is not a host name: expected one such as \"app.example.com\""
                )));
            }
            Ok(text.to_ascii_lowercase())
        },
    };
    const PEM: &str = "a PEM file such as \"client.pem\"";
    let value = group.value("tls")?;
    if is_true(value) {
        return Some(UpstreamTls::default());
    }
    if is_false(value) {
        return None;
    }
    let expected = "true, or a table such as { ca = \"ca.pem\", name = \"app.example.com\" }";
    let keys = Keys::new(&["verify", "ca", "name", "certificate", "key"]);
    let section = Section::of("tls", value, expected, keys, findings)?;
    let ca = section.path("ca", "a PEM file such as \"ca.pem\"", findings);
    let verify = match section.truth("verify", findings) {
        Some(false) => {
            section.refuse(
                &["ca"],
                "contradicts verify = false, which believes every certificate",
                findings,
            );
            Verify::Nothing
        }
        Some(true) | None => ca.map_or(Verify::System, Verify::File),
    };
    if section.has("certificate") != section.has("key") {
        let message =
            "certificate and key of tls come together: one without the other proves nothing";
        findings.error(section.span(), message);
    }
    let certificate = section.path("certificate", PEM, findings);
    let key = section.path("key", PEM, findings);
    Some(UpstreamTls {
        verify,
        name: section.read("name", NAME, findings),
        certificate: certificate.zip(key),
    })
}

/// What contradicts itself in a group, or says nothing.
fn coherent(
    mut upstream: Upstream,
    group: &Section<'_, '_>,
    findings: &mut Findings<'_>,
) -> Upstream {
    if upstream.proxy_protocol.is_some() {
        // Its header speaks for the whole connection, which so belongs to one client.
        group.refuse(
            &["pipeline"],
            "puts requests of many clients on one connection, and proxy_protocol says whose it is",
            findings,
        );
        group.refuse(
            &["connections_ready"],
            "opens connections before their clients are known, and proxy_protocol has to name them",
            findings,
        );
        if group.has("reuse") && upstream.reuse != Reuse::Never {
            group.refuse(
                &["reuse"],
                "can only be \"never\" with proxy_protocol, which says whose a connection is",
                findings,
            );
        }
        upstream.reuse = Reuse::Never;
    } else if upstream.reuse == Reuse::Never {
        group.refuse(
            &["pipeline", "connections_ready"],
            "needs connections that are used again, and reuse is \"never\"",
            findings,
        );
        group.warn_of_idle(
            &["connections_idle_max"],
            "when reuse is \"never\"",
            findings,
        );
    }
    if upstream.pipeline.is_some() {
        group.refuse(
            &["sticky"],
            "cannot be kept with pipeline, where requests go to the connection that has room",
            findings,
        );
    }
    if upstream.connections_ready > upstream.connections_idle_max {
        let message = format!(
            "connections_ready {} is more than connections_idle_max {}",
            upstream.connections_ready, upstream.connections_idle_max
        );
        findings.error(group.place("connections_ready"), message);
    }
    if upstream
        .servers
        .iter()
        .all(|server| server.connections_max.is_none())
    {
        group.warn_of_idle(
            &["queue"],
            "without connections_max: nothing is ever full",
            findings,
        );
    }
    let may_be_several = |server: &Server| server.address.may_be_several();
    let is_single = upstream.servers.len() == 1 && !upstream.servers.iter().any(may_be_several);
    if upstream.health.is_none() && (upstream.eject.is_none() || is_single) {
        group.warn_of_idle(
            &["slow_start"],
            "without health or eject: no server comes back",
            findings,
        );
    }
    if matches!(upstream.balance, Balance::Hash(_)) {
        group.warn_of_idle(
            &["sticky"],
            "beyond that of balance = \"hash\": both keep a client with its server",
            findings,
        );
    }
    if is_single && upstream.eject.is_some() {
        group.warn_of_idle(
            &["eject"],
            "with a single server: one always stays",
            findings,
        );
    }
    warn_of_idle_backups(&upstream, group, findings);
    check_tls_name(&upstream, group, findings);
    upstream
}

/// Backups get requests when all others are out, or a request has failed at all of them: something has to notice.
fn warn_of_idle_backups(upstream: &Upstream, group: &Section<'_, '_>, findings: &mut Findings<'_>) {
    let (backups, others): (Vec<&Server>, Vec<&Server>) =
        upstream.servers.iter().partition(|server| server.backup);
    // A name may turn out to have no address.
    let are_names = others.iter().all(|server| server.address.may_be_several());
    if backups.is_empty() || are_names || upstream.health.is_some() || upstream.retries.are_made() {
        return;
    }
    let all_may_go = |eject: &Eject| {
        eject.looks_at_failures() && eject.out_max(upstream.servers.len()) >= others.len()
    };
    if !upstream.eject.as_ref().is_some_and(all_may_go) {
        let message = format!(
            "the backup servers of {} never get a request: nothing takes all others out, and nothing is tried again; expected health, retries, or an eject with a share_max for all of them",
            group.name()
        );
        findings.warning(group.place("servers"), message);
    }
}

/// That the name in a server's certificate is known: the path of a Unix socket is none.
fn check_tls_name(upstream: &Upstream, group: &Section<'_, '_>, findings: &mut Findings<'_>) {
    let Some(tls) = &upstream.tls else {
        return;
    };
    let is_unix = |server: &Server| matches!(server.address, ServerAddress::Unix(_));
    let is_named = tls.name.is_some() || tls.verify == Verify::Nothing;
    if !is_named && upstream.servers.iter().any(is_unix) {
        findings.error(
            group.place("tls"),
            "a Unix socket has no name to verify: expected tls = { name = \"app.example.com\" }",
        );
    }
}
