//! Settings that were once recommended and are now obsolete.

use super::action::Note;
use crate::facts::Facts;

/// Widespread advice, useless or harmful today: file below /proc/sys, value (any, if empty), and explanation.
pub(super) const OBSOLETE: &[(&str, &str, &str)] = &[
    (
        "net/ipv4/tcp_tw_recycle",
        "",
        "was removed in Linux 4.12: it dropped connections of clients behind one address. tcp_tw_reuse is for who connects; \
         who accepts needs nothing",
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
        "turning time stamps off saves 12 bytes a packet and breaks tcp_tw_reuse, the protection against old packets, and \
         good round trip times",
    ),
    (
        "net/ipv4/tcp_sack",
        "0",
        "turning selective acknowledgement off makes every loss cost a round trip more",
    ),
    (
        "net/ipv4/tcp_fin_timeout",
        "",
        "does not shorten TIME_WAIT, which is 60 seconds always; it is about connections that wait for the other side's end",
    ),
    (
        "net/ipv4/tcp_syncookies",
        "0",
        "without cookies a flood of handshakes shuts out everybody; with them they cost nothing until one comes",
    ),
    (
        "net/ipv4/tcp_abort_on_overflow",
        "1",
        "answers a burst with resets where waiting a moment would do; raise the accept queue instead",
    ),
    (
        "kernel/sched_min_granularity_ns",
        "",
        "is no sysctl since Linux 5.13, and the scheduler it was for is gone since 6.6",
    ),
    (
        "kernel/sched_wakeup_granularity_ns",
        "",
        "is no sysctl since Linux 5.13, and the scheduler it was for is gone since 6.6",
    ),
    (
        "kernel/sched_migration_cost_ns",
        "",
        "is no sysctl since Linux 5.13",
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
