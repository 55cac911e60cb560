//! Recommended settings below /proc/sys by role and goal.
//!
//! Limits are only raised: an old recommendation may be below today's default.

use super::action::{Action, Note, Revert};
use super::placement::Placement;
use super::ports::RANGE;
use super::request::{Goal, Request, Role};
use super::target::Target;
use crate::facts::Facts;

/// A setting with its recommended value.
struct SysctlRule {
    file: &'static str,
    value: Value,
    roles: &'static [Role],
    goals: &'static [Goal],
    /// Whether it is useful on this machine.
    when: fn(&Facts, &Placement) -> bool,
    reason: &'static str,
    source: &'static str,
    risk: &'static str,
    effect: &'static str,
}

enum Value {
    /// Limit that is raised if it is lower.
    AtLeast(u64),
    /// `min default max`; the last is a limit.
    LastAtLeast(u64),
    /// Range that must include this one.
    Range(u64, u64),
    Switch(&'static str),
}

const ALL: &[Role] = &[Role::Server, Role::Proxy, Role::Client];
const ACCEPTS: &[Role] = &[Role::Server, Role::Proxy];
const CONNECTS: &[Role] = &[Role::Proxy, Role::Client];
const ANY: &[Goal] = &[Goal::Throughput, Goal::Latency];
const THROUGHPUT: &[Goal] = &[Goal::Throughput];
const LATENCY: &[Goal] = &[Goal::Latency];

const IP_SYSCTL: &str = "kernel: Documentation/networking/ip-sysctl.rst";
const NET_SYSCTL: &str = "kernel: Documentation/admin-guide/sysctl/net.rst";
const KERNEL_SYSCTL: &str = "kernel: Documentation/admin-guide/sysctl/kernel.rst";

const SYSCTL_RULES: &[SysctlRule] = &[
    SysctlRule {
        file: "net/core/somaxconn",
        value: Value::AtLeast(65_535),
        roles: ACCEPTS,
        goals: ANY,
        when: always,
        reason: "when the accept queue is full, connections are dropped, and arrive again a second later",
        source: "The Low Latency Web 2012 (nginx); kernel: Documentation/networking/ip-sysctl.rst",
        risk: "none; programs must pass as large a backlog to listen()",
        effect: "no ListenOverflows during bursts of new connections",
    },
    SysctlRule {
        file: "net/ipv4/tcp_max_syn_backlog",
        value: Value::AtLeast(65_536),
        roles: ACCEPTS,
        goals: ANY,
        // With SYN cookies the length of the SYN queue is the backlog given to listen(), and this setting is ignored
        // (tcp_conn_request in net/ipv4/tcp_input.c).
        when: |facts, _| {
            facts
                .system
                .setting("net/ipv4/tcp_syncookies")
                .is_none_or(|value| value == "0")
        },
        reason: "without SYN cookies, handshakes are dropped when the number in progress comes near this limit",
        source: "The Low Latency Web 2012 (nginx); kernel: Documentation/networking/ip-sysctl.rst",
        risk: "300 bytes of memory per handshake in progress",
        effect: "no TCPReqQFullDrop during bursts of new connections",
    },
    SysctlRule {
        file: "net/ipv4/tcp_slow_start_after_idle",
        value: Value::Switch("0"),
        roles: ACCEPTS,
        goals: ANY,
        when: always,
        reason: "an idle keep-alive connection would start its next large response in slow start",
        source: "TuneD, profile network-throughput; kernel: Documentation/networking/ip-sysctl.rst",
        risk: "a burst into a path that lost bandwidth while the connection was idle",
        effect: "large responses on keep-alive connections take fewer round trips",
    },
    SysctlRule {
        file: "net/ipv4/ip_local_port_range",
        value: Value::Range(RANGE.0, RANGE.1),
        roles: CONNECTS,
        goals: ANY,
        when: always,
        reason: "each connection to the same server needs its own local port",
        source: IP_SYSCTL,
        risk: "a service that starts later may find its port above 10000 in use; ip_local_reserved_ports reserves it",
        effect: "55,536 connections to one address instead of 28,232 before connect() fails",
    },
    SysctlRule {
        file: "net/ipv4/tcp_tw_reuse",
        value: Value::Switch("1"),
        roles: CONNECTS,
        goals: ANY,
        when: always,
        reason: "ports in TIME-WAIT can be used again for new outgoing connections",
        source: IP_SYSCTL,
        risk: "none with TCP timestamps on, the default; no effect on accepted connections",
        effect: "new connections do not run out of local ports",
    },
    SysctlRule {
        file: "net/ipv4/tcp_max_tw_buckets",
        value: Value::AtLeast(262_144),
        roles: ALL,
        goals: ANY,
        when: |facts, _| counted(facts, "TcpExtTCPTimeWaitOverflow"),
        reason: "connections in TIME-WAIT were removed too early because the limit was reached (TCPTimeWaitOverflow)",
        source: IP_SYSCTL,
        risk: "64 MB of memory if all are in use",
        effect: "TCPTimeWaitOverflow no longer grows",
    },
    SysctlRule {
        file: "net/ipv4/tcp_wmem",
        value: Value::LastAtLeast(16 << 20),
        roles: ACCEPTS,
        goals: THROUGHPUT,
        when: always,
        reason: "a connection over a long path cannot have more bytes in flight than its buffer holds",
        source: "TuneD, profile network-throughput",
        risk: "memory, for clients that read large responses slowly",
        effect: "large responses over long paths; nothing for small ones",
    },
    SysctlRule {
        file: "net/ipv4/tcp_rmem",
        value: Value::LastAtLeast(16 << 20),
        roles: ALL,
        goals: THROUGHPUT,
        when: always,
        reason: "a connection over a long path cannot have more bytes in flight than its buffer holds",
        source: "TuneD, profile network-throughput",
        risk: "memory, for programs that read slowly",
        effect: "large bodies over long paths; nothing for small ones",
    },
    SysctlRule {
        file: "net/core/netdev_max_backlog",
        value: Value::AtLeast(16_384),
        roles: ALL,
        goals: ANY,
        when: |facts, _| facts.counts.softnet.values().any(|row| row.dropped > 0),
        reason: "CPUs dropped packets that other CPUs had steered to them (second column of /proc/net/softnet_stat)",
        source: NET_SYSCTL,
        risk: "packets may wait longer instead of being dropped",
        effect: "the second column of softnet_stat no longer grows",
    },
    SysctlRule {
        file: "net/core/netdev_budget",
        value: Value::AtLeast(600),
        roles: ALL,
        goals: THROUGHPUT,
        when: is_squeezed,
        reason: "CPUs ran out of budget with packets left more than once in 10,000 (third column of \
            /proc/net/softnet_stat)",
        source: NET_SYSCTL,
        risk: "programs on CPUs that handle interrupts wait longer",
        effect: "the third column of softnet_stat grows more slowly",
    },
    SysctlRule {
        file: "net/core/rmem_max",
        value: Value::AtLeast(8 << 20),
        roles: ALL,
        goals: ANY,
        when: |facts, _| counted(facts, "UdpRcvbufErrors"),
        reason: "datagrams were dropped because their socket's receive buffer was full (UdpRcvbufErrors), and QUIC \
            servers may not request a larger buffer than this",
        source: "quic-go: UDP Buffer Sizes; kernel: Documentation/admin-guide/sysctl/net.rst",
        risk: "memory, for programs that request a buffer of this size (SO_RCVBUF) and read slowly",
        effect: "UdpRcvbufErrors no longer grows once the program requests a larger buffer",
    },
    SysctlRule {
        file: "fs/nr_open",
        value: Value::AtLeast(1 << 20),
        roles: ALL,
        goals: ANY,
        when: always,
        reason: "each connection is an open file, two in a proxy, and this is the limit of every process",
        source: "kernel: Documentation/admin-guide/sysctl/fs.rst",
        risk: "none; the limit of each process still has to be raised",
        effect: "the limits of processes can be raised up to it",
    },
    SysctlRule {
        file: "fs/file-max",
        value: Value::AtLeast(1 << 20),
        roles: ALL,
        goals: ANY,
        when: always,
        reason: "each connection is an open file, two in a proxy, and this is the limit of the machine",
        source: "kernel: Documentation/admin-guide/sysctl/fs.rst",
        risk: "one kilobyte of memory per open file",
        effect: "no \"too many open files in system\"",
    },
    SysctlRule {
        file: "kernel/numa_balancing",
        value: Value::Switch("0"),
        roles: ALL,
        goals: ANY,
        when: |facts, _| facts.topology.nodes.len() > 1,
        reason: "pinned programs gain nothing from page migration, and pay for its page faults",
        source: KERNEL_SYSCTL,
        risk: "programs that are not pinned keep their memory in the wrong node",
        effect: "fewer page faults in the kernel's profile",
    },
    SysctlRule {
        file: "net/core/busy_poll",
        value: Value::AtLeast(50),
        roles: ALL,
        goals: LATENCY,
        when: |_, placement| placement.sharing == super::Sharing::Nothing,
        reason: "a program that waits in poll() or epoll_wait() polls the device queue itself for 50 microseconds \
            before it sleeps",
        source: "TuneD, profile network-latency; kernel: Documentation/networking/napi.rst",
        risk: "CPUs look busy while they wait, and a fully loaded machine loses throughput",
        effect: "about 10 microseconds less at low load",
    },
    SysctlRule {
        file: "net/core/busy_read",
        value: Value::AtLeast(50),
        roles: ALL,
        goals: LATENCY,
        when: |_, placement| placement.sharing == super::Sharing::Nothing,
        reason: "a program that waits in read() or recv() polls the device queue itself for 50 microseconds before it \
            sleeps",
        source: "TuneD, profile network-latency; kernel: Documentation/networking/napi.rst",
        risk: "CPUs look busy while they wait, and a fully loaded machine loses throughput",
        effect: "about 10 microseconds less at low load for programs that block",
    },
    SysctlRule {
        file: "kernel/nmi_watchdog",
        value: Value::Switch("0"),
        roles: ALL,
        goals: LATENCY,
        when: always,
        reason: "the watchdog interrupts every CPU and uses a performance counter",
        source: "TuneD, profile network-latency",
        risk: "a CPU that hangs in the kernel is not reported",
        effect: "a few microseconds, rarely",
    },
    SysctlRule {
        file: "vm/stat_interval",
        value: Value::AtLeast(10),
        roles: ALL,
        goals: LATENCY,
        when: always,
        reason: "every CPU wakes up once in this many seconds to sum up memory counters",
        source: "TuneD, profile network-latency",
        risk: "/proc/vmstat is updated less often",
        effect: "fewer wake-ups of CPUs that are set aside",
    },
];

fn always(_: &Facts, _: &Placement) -> bool {
    true
}

fn counted(facts: &Facts, name: &str) -> bool {
    facts
        .counts
        .network
        .get(name)
        .is_some_and(|count| *count > 0)
}

fn is_squeezed(facts: &Facts, _: &Placement) -> bool {
    let rows = facts.counts.softnet.values();
    let (squeezed, processed) = rows.fold((0.0, 0.0), |sum, row| {
        (sum.0 + row.squeezed as f64, sum.1 + row.processed as f64)
    });
    squeezed * 10_000.0 > processed
}

pub(super) fn advise(
    facts: &Facts,
    placement: &Placement,
    request: &Request,
    actions: &mut Vec<Action>,
    notes: &mut Vec<Note>,
) {
    for wish in SYSCTL_RULES {
        let is_asked = wish.roles.contains(&request.role) && wish.goals.contains(&request.goal);
        if !is_asked || !(wish.when)(facts, placement) {
            continue;
        }
        let Some(current) = facts.system.setting(wish.file) else {
            notes.push(Note::of_setting(
                wish.file,
                "is absent here: this kernel or network namespace does not have it, or it cannot be read",
            ));
            continue;
        };
        let target = Target::Setting {
            file: wish.file.to_owned(),
        };
        let is_raised_further = actions.iter().any(|action| action.target == target);
        let proposed = wish.value.beyond(current).filter(|_| !is_raised_further);
        let Some(proposed) = proposed else {
            continue;
        };
        actions.push(Action {
            target,
            path: format!("/proc/sys/{}", wish.file),
            current: current.to_owned(),
            proposed,
            reason: wish.reason.to_owned(),
            source: wish.source.to_owned(),
            risk: wish.risk.to_owned(),
            revert: Revert::WriteBack,
            effect: wish.effect.to_owned(),
        });
    }
}

impl Value {
    /// Value to write; `None` if the current value suffices or cannot be parsed.
    fn beyond(&self, current: &str) -> Option<String> {
        let numbers: Option<Vec<u64>> = current
            .split_whitespace()
            .map(|word| word.parse().ok())
            .collect();
        match (self, numbers?.as_slice()) {
            (Value::AtLeast(least), [now]) => (now < least).then(|| least.to_string()),
            (Value::LastAtLeast(least), [first, middle, last]) => {
                (last < least).then(|| format!("{first} {middle} {least}"))
            }
            (Value::Range(low, high), [first, last]) => (first > low || last < high)
                .then(|| format!("{} {}", first.min(low), last.max(high))),
            (Value::Switch(wished), [now]) => {
                (now.to_string() != *wished).then(|| (*wished).to_owned())
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advise::Sharing;
    use crate::advise::obsolete::OBSOLETE;

    #[test]
    fn limits_are_never_lowered() {
        for (value, current, expected) in [
            (Value::AtLeast(4_096), "128", Some("4096")),
            (Value::AtLeast(4_096), "4096", None),
            (Value::AtLeast(4_096), "65535", None),
            (Value::AtLeast(4_096), "9223372036854775807", None),
            (Value::AtLeast(4_096), "many", None),
            (Value::LastAtLeast(100), "4 10 50", Some("4 10 100")),
            (Value::LastAtLeast(100), "4 10 200", None),
            (
                Value::Range(10_000, 65_535),
                "32768 60999",
                Some("10000 65535"),
            ),
            (
                Value::Range(10_000, 65_535),
                "1024 60999",
                Some("1024 65535"),
            ),
            (Value::Range(10_000, 65_535), "1024 65535", None),
            (Value::Switch("0"), "1", Some("0")),
            (Value::Switch("0"), "0", None),
        ] {
            assert_eq!(value.beyond(current).as_deref(), expected, "{current}");
        }
    }

    /// Checks the proposed value and reason for a setting that is 0 now; `None` if nothing is proposed.
    #[track_caller]
    fn check(
        file: &str,
        counters: &[(&str, u64)],
        sharing: Sharing,
        goal: Goal,
        expected: Option<(&str, &str)>,
    ) {
        let mut facts = Facts::default();
        let settings = [(file.to_owned(), Some("0".to_owned()))];
        facts.system.settings = settings.into();
        for (name, count) in counters {
            facts.counts.network.insert((*name).to_owned(), *count);
        }
        let placement = Placement {
            sharing,
            ..Placement::default()
        };
        let request = Request {
            goal,
            ..Request::default()
        };
        let mut actions = Vec::new();
        advise(&facts, &placement, &request, &mut actions, &mut Vec::new());
        let found = actions.first().map(|action| &action.proposed[..]);
        assert_eq!(found, expected.map(|(value, _)| value), "{actions:#?}");
        for (action, (_, words)) in actions.iter().zip(expected) {
            assert!(action.reason.contains(words), "{action:#?}");
        }
    }

    #[test]
    fn datagram_buffer_is_raised_only_after_dropped_datagrams() {
        let rmem = |counters: &[(&str, u64)], expected| {
            let file = "net/core/rmem_max";
            check(file, counters, Sharing::Nothing, Goal::Throughput, expected);
        };
        rmem(
            &[("UdpRcvbufErrors", 1)],
            Some(("8388608", "UdpRcvbufErrors")),
        );
        rmem(
            &[("UdpRcvbufErrors", 0), ("UdpInDatagrams", 9_000_000)],
            None,
        );
        rmem(&[("UdpInErrors", 7), ("UdpSndbufErrors", 7)], None);
        rmem(&[], None);
    }

    #[test]
    fn busy_polling_requires_latency_goal_and_dedicated_cpus() {
        for (file, words) in [
            ("net/core/busy_read", "read() or recv()"),
            ("net/core/busy_poll", "poll() or epoll_wait()"),
        ] {
            let expected = Some(("50", words));
            check(file, &[], Sharing::Nothing, Goal::Latency, expected);
            check(file, &[], Sharing::Nothing, Goal::Throughput, None);
            check(file, &[], Sharing::Steering, Goal::Latency, None);
            check(file, &[], Sharing::Everything, Goal::Latency, None);
        }
    }

    #[test]
    fn sysctl_rules_exclude_obsolete_settings() {
        for wish in SYSCTL_RULES {
            assert!(
                !OBSOLETE.iter().any(|(file, ..)| *file == wish.file),
                "{}",
                wish.file
            );
            assert!(
                crate::facts::system::SETTINGS.contains(&wish.file),
                "{} is never read",
                wish.file
            );
        }
    }
}
