//! Local ports of outgoing connections: a wide range contains ports of services, which connections must not take.

use super::action::{Action, Revert};
use super::request::{Request, Role};
use super::target::Target;
use crate::facts::Facts;

const RESERVED: &str = "net/ipv4/ip_local_reserved_ports";

/// Range of local ports that [`super::setting`] sets.
pub(super) const RANGE: (u64, u64) = (10_000, 65_535);

/// NodePorts of Kubernetes (the default of `--service-node-port-range`). kube-proxy need not listen on them, so only a
/// reservation protects them.
const NODE_PORTS: (u64, u64) = (30_000, 32_767);

pub(super) fn advise(facts: &Facts, request: &Request, actions: &mut Vec<Action>) {
    let Some(current) = facts.system.setting(RESERVED) else {
        return;
    };
    let (Role::Proxy | Role::Client) = request.role else {
        return;
    };
    let Some(reserved) = parsed(current) else {
        return;
    };
    let mut wished = reserved.clone();
    if request.role == Role::Proxy {
        wished.push(NODE_PORTS);
    }
    let listening = facts.counts.listening.iter();
    let listening = listening.map(|socket| u64::from(socket.port));
    wished.extend(
        listening
            .filter(|port| *port >= RANGE.0)
            .map(|port| (port, port)),
    );
    let (reserved, wished) = (merged(reserved), merged(wished));
    if reserved == wished {
        return;
    }
    actions.push(Action {
        target: Target::Setting {
            file: RESERVED.to_owned(),
        },
        path: format!("/proc/sys/{RESERVED}"),
        current: current.to_owned(),
        proposed: spelt(&wished),
        reason: "outgoing connections use any local port of the range that is not reserved: the ports of services, and \
            Kubernetes' NodePorts (30000-32767) beside a proxy, are reserved"
            .to_owned(),
        source: "kernel: Documentation/networking/ip-sysctl.rst; Kubernetes: --service-node-port-range".to_owned(),
        risk: "a few thousand fewer ports for connections; bind() to a fixed port still works".to_owned(),
        revert: Revert::WriteBack,
        effect: "no service finds its port in use when it starts".to_owned(),
    });
}

/// `80,30000-32767`
fn parsed(text: &str) -> Option<Vec<(u64, u64)>> {
    let parts = text.trim().split(',').filter(|part| !part.is_empty());
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some((first.trim().parse().ok()?, last.trim().parse().ok()?))
    };
    parts.map(range).collect()
}

/// Sorted ranges, with overlapping and adjacent ones merged.
fn merged(mut ranges: Vec<(u64, u64)>) -> Vec<(u64, u64)> {
    ranges.sort_unstable();
    let mut all: Vec<(u64, u64)> = Vec::new();
    for (first, last) in ranges {
        match all.last_mut() {
            Some(before) if first <= before.1 + 1 => before.1 = before.1.max(last),
            _ => all.push((first, last)),
        }
    }
    all
}

/// Formats ranges like the kernel.
fn spelt(ranges: &[(u64, u64)]) -> String {
    let range = |(first, last): &(u64, u64)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    };
    ranges.iter().map(range).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::Listening;

    #[test]
    fn service_ports_remain_reserved() {
        let proposed = |role: Role, reserved: &str, listening: &[u16]| {
            let mut facts = Facts::default();
            let value = Some(reserved.to_owned());
            facts.system.settings.insert(RESERVED.to_owned(), value);
            let socket = |port: &u16| Listening {
                port: *port,
                ..Listening::default()
            };
            facts.counts.listening = listening.iter().map(socket).collect();
            let request = Request {
                role,
                ..Request::default()
            };
            let mut actions = Vec::new();
            advise(&facts, &request, &mut actions);
            actions.pop().map(|action| action.proposed)
        };
        let check = |role, reserved, listening: &[u16], expected: Option<&str>| {
            assert_eq!(proposed(role, reserved, listening).as_deref(), expected);
        };
        check(Role::Server, "", &[15_432], None);
        check(Role::Client, "", &[80], None);
        check(Role::Client, "", &[15_432, 80], Some("15432"));
        check(Role::Proxy, "", &[], Some("30000-32767"));
        check(Role::Proxy, "30000-32767", &[], None);
        check(Role::Proxy, "30000-32767", &[31_000], None);
        check(
            Role::Proxy,
            "8080,30000-30010",
            &[15_432, 32_768, 15_433],
            Some("8080,15432-15433,30000-32768"),
        );
    }
}
