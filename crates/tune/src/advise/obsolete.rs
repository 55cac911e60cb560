//! Settings that were once recommended and are now obsolete.

use super::action::Note;
use crate::facts::Facts;

/// Widespread advice, useless or harmful today: file below /proc/sys, value (any, if empty), and explanation.
pub(super) const OBSOLETE: &[(&str, &str, &str)] = &[
    (
        "net/ipv4/tcp_tw_recycle",
        "",
        "was removed in Linux 4.12: it dropped connections of clients behind one NAT address. For outgoing connections \
         use tcp_tw_reuse; incoming connections need nothing",
    ),
    (
        "net/ipv4/tcp_low_latency",
        "",
        "has had no effect since Linux 4.14",
    ),
    (
        "net/ipv4/tcp_fack",
        "",
        "has had no effect since Linux 4.15",
    ),
    (
        "net/ipv4/tcp_adv_win_scale",
        "",
        "is obsolete since Linux 6.6: the kernel measures the overhead of buffers itself",
    ),
    (
        "net/ipv4/tcp_timestamps",
        "0",
        "turning TCP timestamps off saves 12 bytes per packet, but breaks tcp_tw_reuse, the protection against old \
         packets (PAWS), and accurate round-trip times",
    ),
    (
        "net/ipv4/tcp_sack",
        "0",
        "without selective acknowledgements every loss costs one more round trip",
    ),
    (
        "net/ipv4/tcp_fin_timeout",
        "",
        "does not shorten TIME_WAIT, which always takes 60 seconds; it limits FIN_WAIT_2, the wait for the peer's FIN",
    ),
    (
        "net/ipv4/tcp_syncookies",
        "0",
        "without SYN cookies a SYN flood blocks all clients; SYN cookies cost nothing until a flood arrives",
    ),
    (
        "net/ipv4/tcp_abort_on_overflow",
        "1",
        "resets connections during a burst where a short wait would do; raise the accept queue instead",
    ),
    (
        "kernel/sched_min_granularity_ns",
        "",
        "is not a sysctl since Linux 5.13, and its scheduler was removed in 6.6",
    ),
    (
        "kernel/sched_wakeup_granularity_ns",
        "",
        "is not a sysctl since Linux 5.13, and its scheduler was removed in 6.6",
    ),
    (
        "kernel/sched_migration_cost_ns",
        "",
        "is not a sysctl since Linux 5.13",
    ),
];

/// Notes about obsolete advice found in configuration files or in the running kernel.
pub(super) fn advise(facts: &Facts, notes: &mut Vec<Note>) {
    for (file, advice, truth) in OBSOLETE {
        let is_advice = |value: &str| advice.is_empty() || value == *advice;
        for (place, key, value) in &facts.system.configured {
            if key == file && is_advice(value) {
                notes.push(Note::of_setting(
                    file,
                    &format!("is set to {value} in {place}, but {truth}"),
                ));
            }
        }
        // The existence of a setting means nothing; only its value does.
        if let Some(value) = facts.system.setting(file).filter(|value| value == advice) {
            notes.push(Note::of_setting(file, &format!("is {value}, but {truth}")));
        }
    }
    if let Some("1") = facts.system.setting("net/ipv4/tcp_tw_recycle") {
        notes.push(Note::of_setting(
            "net/ipv4/tcp_tw_recycle",
            "is 1: connections of clients behind one address are dropped; turn it off",
        ));
    }
}
