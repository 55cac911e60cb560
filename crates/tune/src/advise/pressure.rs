//! Limits that are nearly reached although they have the value that a plan sets: the current use determines the new
//! value. Counters since boot are not enough, because they keep their value after a raise.

use super::action::{Action, Revert};
use super::request::{Request, Role};
use super::target::Target;
use crate::facts::Facts;

/// Share of a limit, in quarters, above which it is nearly reached.
const NEARLY: u64 = 3;

pub(super) fn advise(facts: &Facts, request: &Request, actions: &mut Vec<Action>) {
    let found = [
        tracked_connections(facts),
        time_wait(facts),
        accept_queue(facts, request),
        tcp_memory(facts),
    ];
    actions.extend(found.into_iter().flatten());
}

fn numbers(facts: &Facts, file: &str) -> Option<Vec<u64>> {
    let text = facts.system.setting(file)?;
    let numbers = text.split_whitespace().map(|word| word.parse().ok());
    numbers.collect()
}

fn number(facts: &Facts, file: &str) -> Option<u64> {
    numbers(facts, file)?.first().copied()
}

/// Twice the use, rounded up to a power of two, if the limit is nearly reached.
fn more(used: u64, limit: u64) -> Option<u64> {
    let is_nearly_reached = used.saturating_mul(4) > limit.saturating_mul(NEARLY);
    let more = used.checked_mul(2)?.checked_next_power_of_two()?;
    (is_nearly_reached && more > limit).then_some(more)
}

fn counted(facts: &Facts, name: &str) -> Option<u64> {
    let count = facts.counts.network.get(name).copied();
    count.filter(|count| *count > 0)
}

fn tracked_connections(facts: &Facts) -> Option<Action> {
    let file = "net/netfilter/nf_conntrack_max";
    let limit = number(facts, file)?;
    let used = number(facts, "net/netfilter/nf_conntrack_count")?;
    let more = more(used, limit)?.max(1 << 20);
    Some(action(
        facts,
        file,
        more.to_string(),
        ActionDetails {
            reason: format!(
                "{used} connections are tracked (limit {limit}): when the table is full, packets of new ones are \
                 dropped"
            ),
            source: "kernel: Documentation/networking/nf_conntrack-sysctl.rst",
            risk: "320 bytes of memory per connection; not tracking the service's connections at all is better",
            effect: "no \"table full, dropping packet\" in the kernel log",
        },
    ))
}

fn time_wait(facts: &Facts) -> Option<Action> {
    let file = "net/ipv4/tcp_max_tw_buckets";
    let overflows = counted(facts, "TcpExtTCPTimeWaitOverflow")?;
    let limit = number(facts, file)?;
    let used = *facts.system.sockets.get("TCP tw")?;
    let more = more(used, limit)?.max(262_144);
    Some(action(
        facts,
        file,
        more.to_string(),
        ActionDetails {
            reason: format!(
                "{used} connections are in TIME-WAIT (limit {limit}); {overflows} were removed too early \
                 (TCPTimeWaitOverflow)"
            ),
            source: "kernel: Documentation/networking/ip-sysctl.rst",
            risk: "256 bytes of memory per connection",
            effect: "TCPTimeWaitOverflow no longer grows",
        },
    ))
}

/// Raises somaxconn if an accept queue with a limit of 65,535 or more overflowed. The queue keeps its limit until the
/// program calls listen() again, so this limit, not somaxconn, determines the new value.
fn accept_queue(facts: &Facts, request: &Request) -> Option<Action> {
    let file = "net/core/somaxconn";
    let now = number(facts, file)?;
    let is_full = |socket: &&crate::facts::Listening| {
        socket.dropped.is_some_and(|dropped| dropped > 0)
            && socket.limit.is_some_and(|limit| limit >= 65_535)
    };
    let fullest = facts.counts.listening.iter().filter(is_full);
    let fullest = fullest.max_by_key(|socket| socket.limit)?;
    let more = fullest.limit?.checked_mul(2)?.min(i32::MAX as u64);
    (request.role != Role::Client && more > now).then(|| {
        action(facts, file, more.to_string(), ActionDetails {
            reason: format!(
                "port {} has an accept queue of {} connections, and dropped {} connections since it was opened",
                fullest.port,
                fullest.limit.unwrap_or(0),
                fullest.dropped.unwrap_or(0)
            ),
            source: "kernel: Documentation/networking/ip-sysctl.rst",
            risk: "connections wait longer instead of being refused; the program must pass as large a backlog to \
                listen(), restart, and accept faster in the long run",
            effect: "no ListenOverflows during bursts of new connections",
        })
    })
}

fn tcp_memory(facts: &Facts) -> Option<Action> {
    /// Page size of most kernels; with larger pages the limit is only lower.
    const PAGE: u64 = 4_096;
    let file = "net/ipv4/tcp_mem";
    let pressures = counted(facts, "TcpExtTCPMemoryPressures")?;
    let [low, pressure, high] = numbers(facts, file)?[..] else {
        return None;
    };
    let used = *facts.system.sockets.get("TCP mem")?;
    let most = facts.system.memory_bytes? / PAGE / 4;
    let wished = (high * 2).min(most);
    if used.saturating_mul(4) <= pressure.saturating_mul(NEARLY) || wished <= high {
        return None;
    }
    let part =
        |value: u64| (u128::from(value) * u128::from(wished) / u128::from(high.max(1))) as u64;
    let proposed = format!("{} {} {wished}", part(low), part(pressure));
    Some(action(
        facts,
        file,
        proposed,
        ActionDetails {
            reason: format!(
                "TCP buffers use {used} pages; above {pressure} the kernel keeps them small, which happened \
                 {pressures} times"
            ),
            source: "kernel: Documentation/networking/ip-sysctl.rst; Seastar perftune.py",
            risk: "socket buffers may use up to a quarter of the memory",
            effect: "TCPMemoryPressures no longer grows",
        },
    ))
}

/// Remaining fields of an action.
struct ActionDetails {
    reason: String,
    source: &'static str,
    risk: &'static str,
    effect: &'static str,
}

fn action(facts: &Facts, file: &str, proposed: String, why: ActionDetails) -> Action {
    Action {
        target: Target::Setting {
            file: file.to_owned(),
        },
        path: format!("/proc/sys/{file}"),
        current: facts.system.setting(file).unwrap_or_default().to_owned(),
        proposed,
        reason: why.reason,
        source: why.source.to_owned(),
        risk: why.risk.to_owned(),
        revert: Revert::WriteBack,
        effect: why.effect.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::Listening;

    fn facts(
        settings: &[(&str, &str)],
        counters: &[(&str, u64)],
        sockets: &[(&str, u64)],
    ) -> Facts {
        let mut facts = Facts::default();
        for (file, value) in settings {
            let value = Some((*value).to_owned());
            facts.system.settings.insert((*file).to_owned(), value);
        }
        let named = |all: &[(&str, u64)]| {
            let all = all.iter();
            all.map(|(name, count)| ((*name).to_owned(), *count))
                .collect()
        };
        facts.counts.network = named(counters);
        facts.system.sockets = named(sockets);
        facts.system.memory_bytes = Some(16 << 30);
        facts
    }

    /// Checks the only proposed value, and that nothing is proposed after it is written.
    #[track_caller]
    fn check(mut facts: Facts, expected: Option<&str>) {
        let proposed = |facts: &Facts| {
            let mut actions = Vec::new();
            advise(facts, &Request::default(), &mut actions);
            assert!(actions.len() <= 1, "{actions:#?}");
            actions.pop()
        };
        let action = proposed(&facts);
        assert_eq!(action.as_ref().map(|action| &action.proposed[..]), expected);
        let Some(action) = action else {
            return;
        };
        let Target::Setting { file } = action.target else {
            panic!("{action:?}");
        };
        facts.system.settings.insert(file, Some(action.proposed));
        assert_eq!(proposed(&facts), None, "it is enough");
    }

    #[test]
    fn exhausted_limits_are_raised() {
        let conntrack = |count: &str, max: &str| {
            let files = [
                "net/netfilter/nf_conntrack_count",
                "net/netfilter/nf_conntrack_max",
            ];
            facts(&[(files[0], count), (files[1], max)], &[], &[])
        };
        check(conntrack("1048570", "1048576"), Some("2097152"));
        check(conntrack("500000", "1048576"), None);
        check(conntrack("250000", "262144"), Some("1048576"));
        let time_wait = |count, used| {
            let counter = ("TcpExtTCPTimeWaitOverflow", count);
            let setting = ("net/ipv4/tcp_max_tw_buckets", "262144");
            facts(&[setting], &[counter], &[("TCP tw", used)])
        };
        check(time_wait(9, 262_140), Some("524288"));
        check(time_wait(9, 100), None);
        check(time_wait(0, 262_140), None);
        let memory = |count, used| {
            let setting = ("net/ipv4/tcp_mem", "100000 133334 200000");
            let counter = ("TcpExtTCPMemoryPressures", count);
            facts(&[setting], &[counter], &[("TCP mem", used)])
        };
        check(memory(3, 120_000), Some("200000 266668 400000"));
        check(memory(3, 90_000), None);
        check(memory(0, 120_000), None);
        let listening = |limit, dropped| {
            let mut facts = facts(&[("net/core/somaxconn", "65535")], &[], &[]);
            facts.counts.listening = vec![Listening {
                port: 80,
                limit: Some(limit),
                dropped: Some(dropped),
                ..Listening::default()
            }];
            facts
        };
        check(listening(65_535, 30), Some("131070"));
        check(listening(65_535, 0), None);
        // The program's listen() limited the queue, not the setting.
        check(listening(511, 30), None);
    }
}
