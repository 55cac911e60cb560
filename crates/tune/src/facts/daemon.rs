//! Programs that change what a plan sets, or wake up by themselves.

use serde::Serialize;

use crate::limits::PROCESSES_MAX;
use crate::tree::Tree;

/// Programs that wake up by themselves or change what a plan sets, by their name in /proc/PID/comm (15 letters).
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

/// Why a program matters to measurements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Daemon {
    /// It changes these by itself, and may undo a plan.
    Manages(&'static str),
    /// It wakes up now and then and takes a CPU.
    Wakes,
}

pub(super) fn daemons(tree: &Tree) -> Vec<(String, Daemon)> {
    let processes = tree.numbers("/proc", "").into_iter().take(PROCESSES_MAX);
    let daemon = |process: usize| {
        let name = tree.text(&format!("/proc/{process}/comm"))?;
        DAEMONS
            .iter()
            .find(|(daemon, _)| name.starts_with(daemon))
            .copied()
    };
    let mut found: Vec<(String, Daemon)> = processes
        .filter_map(daemon)
        .map(|(name, why)| (name.to_owned(), why))
        .collect();
    found.sort_by(|one, two| one.0.cmp(&two.0));
    found.dedup();
    found
}

/// Those that some target wants, by the links that systemctl or a package has made, and that nobody has masked.
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
