//! Daemons that change what a plan sets, or that wake up periodically.

use serde::Serialize;

use crate::limits::PROCESSES_MAX;
use crate::tree::Tree;

/// Known daemons, by the name in /proc/PID/comm (15 characters).
const DAEMONS: [(&str, Daemon); 20] = [
    ("irqbalance", Daemon::Manages("interrupts")),
    (
        "tuned",
        Daemon::Manages("settings, governor and interrupts"),
    ),
    ("bpftune", Daemon::Manages("settings of the network")),
    ("NetworkManager", Daemon::Manages("interfaces")),
    ("systemd-network", Daemon::Manages("interfaces")),
    (
        "google_guest_ag",
        Daemon::Manages("queues and their interrupts"),
    ),
    ("power-profiles-", Daemon::Manages("the governor")),
    ("thermald", Daemon::Manages("frequencies")),
    ("snapd", Daemon::Wakes),
    ("cron", Daemon::Wakes),
    ("crond", Daemon::Wakes),
    ("atd", Daemon::Wakes),
    ("packagekitd", Daemon::Wakes),
    ("unattended-upgr", Daemon::Wakes),
    ("auditd", Daemon::Wakes),
    ("fwupd", Daemon::Wakes),
    ("amazon-ssm-agen", Daemon::Wakes),
    ("waagent", Daemon::Wakes),
    ("dockerd", Daemon::Wakes),
    ("kubelet", Daemon::Wakes),
];

/// Why a daemon matters to measurements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Daemon {
    /// It changes these settings, and may undo a plan.
    Manages(&'static str),
    /// It wakes up periodically and uses a CPU.
    Wakes,
}

/// A running daemon: process, name, reason.
pub(super) type Running = (usize, &'static str, Daemon);

pub(super) fn running(tree: &Tree) -> Vec<Running> {
    let processes = tree.numbers("/proc", "").into_iter().take(PROCESSES_MAX);
    let daemon = |process: usize| {
        let name = tree.text(&format!("/proc/{process}/comm"))?;
        let found = DAEMONS.iter().find(|(daemon, _)| name.starts_with(daemon));
        found.map(|(name, why)| (process, *name, *why))
    };
    processes.filter_map(daemon).collect()
}

/// Names without duplicates.
pub(super) fn names(running: &[Running]) -> Vec<(String, Daemon)> {
    let named = running
        .iter()
        .map(|(_, name, why)| ((*name).to_owned(), *why));
    let mut found: Vec<(String, Daemon)> = named.collect();
    found.sort_by(|one, two| one.0.cmp(&two.0));
    found.dedup();
    found
}

/// Interrupts that the running irqbalance ignores (`--banirq=40`, `-i 40`), from its command line: a changed
/// configuration file takes effect only after a restart.
pub(super) fn banned_interrupts(tree: &Tree, running: &[Running]) -> Vec<usize> {
    let process = running.iter().find(|(_, name, _)| *name == "irqbalance");
    let text = process.and_then(|(process, ..)| tree.text(&format!("/proc/{process}/cmdline")));
    let text = text.unwrap_or_default();
    let words: Vec<&str> = text.split('\0').collect();
    let number = |at: usize| match words[at] {
        "--banirq" | "-i" => words.get(at + 1)?.parse().ok(),
        word => {
            let number = word
                .strip_prefix("--banirq=")
                .or_else(|| word.strip_prefix("-i"));
            number?.parse().ok()
        }
    };
    (0..words.len()).filter_map(number).collect()
}

/// Enabled systemd timers, by the links that systemctl or a package created, without masked ones.
pub(super) fn timers(tree: &Tree) -> Vec<String> {
    if tree.text("/proc/1/comm").as_deref() != Some("systemd") {
        return Vec::new();
    }
    const OWN: &str = "/etc/systemd/system";
    let names = tree.names(OWN).into_iter();
    let wishes = names.filter(|name| name.ends_with(".target.wants"));
    let mut places: Vec<String> = wishes.map(|name| format!("{OWN}/{name}")).collect();
    places.extend(
        ["/usr/lib", "/lib"].map(|path| format!("{path}/systemd/system/timers.target.wants")),
    );
    let is_masked = |name: &str| tree.link(&format!("{OWN}/{name}")).as_deref() == Some("null");
    let mut timers: Vec<String> = places
        .iter()
        .flat_map(|place| tree.names(place))
        .filter(|name| name.ends_with(".timer") && !is_masked(name))
        .collect();
    timers.sort_unstable();
    timers.dedup();
    timers
}
