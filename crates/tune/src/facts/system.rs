//! Other facts: sysctls, clock, frequency governor, memory, limits, daemons.

use std::collections::BTreeMap;

use onrush_machine::process;
use serde::Serialize;

use super::daemon::{self, Daemon, timers};
use super::packet_filter;
use super::packet_rules::Rules;
use crate::tree::Tree;

/// Settings below /proc/sys that are read, by path.
pub const SETTINGS: &[&str] = &[
    "net/core/somaxconn",
    "net/core/netdev_max_backlog",
    "net/core/netdev_budget",
    "net/core/netdev_budget_usecs",
    "net/core/dev_weight",
    "net/core/rps_sock_flow_entries",
    "net/core/rps_default_mask",
    "net/core/busy_poll",
    "net/core/busy_read",
    "net/core/rmem_max",
    "net/core/wmem_max",
    "net/core/default_qdisc",
    "net/core/bpf_jit_enable",
    "net/ipv4/tcp_max_syn_backlog",
    "net/ipv4/tcp_syncookies",
    "net/ipv4/tcp_tw_reuse",
    "net/ipv4/tcp_tw_recycle",
    "net/ipv4/tcp_fin_timeout",
    "net/ipv4/tcp_max_tw_buckets",
    "net/ipv4/ip_local_port_range",
    "net/ipv4/ip_local_reserved_ports",
    "net/ipv4/tcp_slow_start_after_idle",
    "net/ipv4/tcp_notsent_lowat",
    "net/ipv4/tcp_rmem",
    "net/ipv4/tcp_wmem",
    "net/ipv4/tcp_mem",
    "net/ipv4/tcp_timestamps",
    "net/ipv4/tcp_sack",
    "net/ipv4/tcp_low_latency",
    "net/ipv4/tcp_fastopen",
    "net/ipv4/tcp_autocorking",
    "net/ipv4/tcp_abort_on_overflow",
    "net/ipv4/ip_forward",
    "net/ipv4/tcp_congestion_control",
    "net/ipv4/tcp_available_congestion_control",
    "net/ipv4/neigh/default/gc_thresh1",
    "net/ipv4/neigh/default/gc_thresh2",
    "net/ipv4/neigh/default/gc_thresh3",
    "net/netfilter/nf_conntrack_max",
    "net/netfilter/nf_conntrack_count",
    "net/netfilter/nf_conntrack_buckets",
    "fs/file-max",
    "fs/nr_open",
    "kernel/numa_balancing",
    "kernel/sched_autogroup_enabled",
    "kernel/sched_min_granularity_ns",
    "kernel/sched_wakeup_granularity_ns",
    "kernel/sched_migration_cost_ns",
    "kernel/nmi_watchdog",
    "kernel/timer_migration",
    "kernel/io_uring_disabled",
    "kernel/pid_max",
    "kernel/threads-max",
    "vm/stat_interval",
    "vm/swappiness",
    "vm/zone_reclaim_mode",
    "vm/max_map_count",
];

/// Facts that do not belong to a CPU or an interface.
#[derive(Debug, Clone, Default, Serialize)]
pub struct System {
    /// `uname -r`.
    pub kernel: Option<String>,
    /// Settings below /proc/sys; `None` if this kernel or network namespace does not have the setting.
    pub settings: BTreeMap<String, Option<String>>,
    /// Current clock source.
    pub clocksource: Option<String>,
    /// Available clock sources.
    pub clocksources: Vec<String>,
    /// CPU frequency governors by policy (`policy0`); empty in most virtual machines.
    pub governors: BTreeMap<String, String>,
    /// Enabled idle states with their exit latency in microseconds, without polling.
    pub idle_states: BTreeMap<String, u64>,
    /// Transparent huge pages: `always`, `madvise` or `never`.
    pub huge_pages: Option<String>,
    /// SMT: `on`, `off`, `notsupported` …
    pub siblings_control: Option<String>,
    /// Total memory in bytes.
    pub memory_bytes: Option<u64>,
    /// Vendor of a virtual machine.
    pub virtualization: Option<String>,
    /// Known daemons that are running.
    pub daemons: Vec<(String, Daemon)>,
    /// Enabled systemd timers: `apt-daily.timer`. Empty without systemd.
    pub timers: Vec<String>,
    /// Values of /proc/net/sockstat by name: `TCP tw`, `TCP mem` (pages).
    pub sockets: BTreeMap<String, u64>,
    /// Interrupts that the running irqbalance ignores.
    pub banned_interrupts: Vec<usize>,
    /// Settings in /etc/sysctl.conf and the directories of sysctl.d(5), as `(file, key, value)`, in order of
    /// application.
    pub configured: Vec<(String, String, String)>,
    /// Mitigations of CPU flaws.
    pub mitigations: BTreeMap<String, String>,
    /// Kernel command line.
    pub command_line: Option<String>,
    /// Packet sockets, which receive every packet (tcpdump, dhclient).
    pub taps: usize,
    /// Tables of legacy iptables in use: `filter`, `nat`; without nftables.
    pub packet_tables: Vec<String>,
    /// nftables rules by family and table; `None` if they cannot be counted.
    pub packet_rules: Option<Rules>,
    /// Whether this is not the initial network namespace. Facts not about the network are then shared with others.
    pub is_in_network_namespace: bool,
    /// Resource limits of the given process by name: `Max open files` with soft and hard limit.
    pub process_limits: BTreeMap<String, (String, String)>,
}

impl System {
    /// Setting below /proc/sys.
    pub fn setting(&self, name: &str) -> Option<&str> {
        self.settings.get(name)?.as_deref()
    }

    /// Exit latency in microseconds of the shallowest idle state, if there is a deeper one.
    pub fn quickest_idle_state(&self) -> Option<u64> {
        let quickest = self.idle_states.values().copied().min()?;
        let is_slower = |latency: &u64| *latency > quickest;
        self.idle_states.values().any(is_slower).then_some(quickest)
    }
}

pub(crate) fn read(tree: &Tree, first_cpu: usize, process: Option<u32>) -> System {
    let clock = "/sys/devices/system/clocksource/clocksource0";
    let words = |path: &str| {
        let text = tree.text(path).unwrap_or_default();
        text.split_whitespace()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let packet_tables = packet_tables(tree);
    let running = daemon::running(tree);
    System {
        kernel: tree.text("/proc/sys/kernel/osrelease"),
        settings: SETTINGS
            .iter()
            .map(|name| ((*name).to_owned(), setting(tree, name)))
            .collect(),
        clocksource: tree.text(&format!("{clock}/current_clocksource")),
        clocksources: words(&format!("{clock}/available_clocksource")),
        governors: governors(tree),
        idle_states: idle_states(tree, first_cpu),
        huge_pages: tree
            .text("/sys/kernel/mm/transparent_hugepage/enabled")
            .and_then(|text| chosen(&text)),
        siblings_control: tree.text("/sys/devices/system/cpu/smt/control"),
        memory_bytes: memory(tree),
        virtualization: virtualization(tree),
        daemons: daemon::names(&running),
        banned_interrupts: daemon::banned_interrupts(tree, &running),
        timers: timers(tree),
        sockets: sockets(tree),
        configured: configured(tree),
        mitigations: mitigations(tree),
        command_line: tree.text("/proc/cmdline"),
        taps: tree
            .text("/proc/net/packet")
            .map_or(0, |text| text.lines().count().saturating_sub(1)),
        packet_rules: packet_filter::read(tree, &packet_tables),
        packet_tables,
        is_in_network_namespace: is_in_network_namespace(tree),
        process_limits: process
            .map(|process| limits(tree, process))
            .unwrap_or_default(),
    }
}

/// Compares with process 1, which is in the initial namespace except in a container. The backlog setting exists in that
/// namespace only (net/core/sysctl_net_core.c).
fn is_in_network_namespace(tree: &Tree) -> bool {
    let namespace = |process: &str| tree.link(&format!("/proc/{process}/ns/net"));
    let is_other = namespace("self")
        .zip(namespace("1"))
        .is_some_and(|(own, first)| own != first);
    is_other
        || setting(tree, "net/core/somaxconn").is_some()
            && setting(tree, "net/core/netdev_max_backlog").is_none()
}

fn setting(tree: &Tree, name: &str) -> Option<String> {
    let text = tree.text(&format!("/proc/sys/{name}"))?;
    Some(text.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// The selected word: `always [madvise] never`.
fn chosen(text: &str) -> Option<String> {
    Some(text.split_once('[')?.1.split_once(']')?.0.to_owned())
}

fn packet_tables(tree: &Tree) -> Vec<String> {
    let tables = |family: &str| {
        let text = tree
            .text(&format!("/proc/net/{family}_tables_names"))
            .unwrap_or_default();
        let name = |line: &str| format!("{family} {}", line.trim());
        text.lines().map(name).collect::<Vec<_>>()
    };
    ["ip", "ip6"].into_iter().flat_map(tables).collect()
}

fn governors(tree: &Tree) -> BTreeMap<String, String> {
    let path = "/sys/devices/system/cpu/cpufreq";
    let policies = tree
        .names(path)
        .into_iter()
        .filter(|name| name.starts_with("policy"));
    let governor = |policy: String| {
        let governor = tree.text(&format!("{path}/{policy}/scaling_governor"))?;
        Some((policy, governor))
    };
    policies.filter_map(governor).collect()
}

fn idle_states(tree: &Tree, cpu: usize) -> BTreeMap<String, u64> {
    let path = format!("/sys/devices/system/cpu/cpu{cpu}/cpuidle");
    let state = |name: String| {
        let is_off = tree
            .text(&format!("{path}/{name}/disable"))
            .is_some_and(|text| text.trim() != "0");
        let latency = tree.value::<u64>(&format!("{path}/{name}/latency"))?;
        let label = tree.text(&format!("{path}/{name}/name"))?;
        (!is_off && latency > 0).then_some((label, latency))
    };
    tree.names(&path).into_iter().filter_map(state).collect()
}

fn memory(tree: &Tree) -> Option<u64> {
    let text = tree.text("/proc/meminfo")?;
    process::bytes(&text, "MemTotal:")
}

fn virtualization(tree: &Tree) -> Option<String> {
    let cpuinfo = tree.text("/proc/cpuinfo").unwrap_or_default();
    let flags = cpuinfo
        .lines()
        .find(|line| line.starts_with("flags"))
        .unwrap_or_default();
    let is_virtual = flags.split_whitespace().any(|flag| flag == "hypervisor");
    let kind = tree.text("/sys/hypervisor/type");
    let maker = tree.text("/sys/class/dmi/id/sys_vendor");
    let product = tree.text("/sys/class/dmi/id/product_name");
    const MAKERS: [&str; 8] = [
        "QEMU",
        "Xen",
        "Amazon EC2",
        "Google",
        "Microsoft Corporation",
        "VMware",
        "innotek",
        "OpenStack",
    ];
    let is_known = maker
        .as_deref()
        .is_some_and(|maker| MAKERS.iter().any(|known| maker.starts_with(known)))
        && !product
            .as_deref()
            .is_some_and(|product| product.contains(".metal"));
    if !is_virtual && kind.is_none() && !is_known {
        return None;
    }
    let named = [kind, maker, product]
        .into_iter()
        .flatten()
        .filter(|text| !text.is_empty());
    let words: Vec<String> = named.collect();
    Some(if words.is_empty() {
        "unnamed".to_owned()
    } else {
        words.join(", ")
    })
}

/// `TCP: inuse 5 orphan 0 tw 3 alloc 7 mem 2`
fn sockets(tree: &Tree) -> BTreeMap<String, u64> {
    let text = tree.text("/proc/net/sockstat").unwrap_or_default();
    let mut sockets = BTreeMap::new();
    for line in text.lines() {
        let Some((protocol, pairs)) = line.split_once(':') else {
            continue;
        };
        let words: Vec<&str> = pairs.split_whitespace().collect();
        for pair in words.chunks_exact(2) {
            if let Ok(count) = pair[1].parse() {
                sockets.insert(format!("{protocol} {}", pair[0]), count);
            }
        }
    }
    sockets
}

fn configured(tree: &Tree) -> Vec<(String, String, String)> {
    /// Directories of sysctl.d(5), by precedence: a file replaces files with the same name in later ones.
    const DIRECTORIES: [&str; 5] = ["/etc", "/run", "/usr/local/lib", "/usr/lib", "/lib"];
    let mut by_name: BTreeMap<String, String> = BTreeMap::new();
    for directory in DIRECTORIES.map(|directory| format!("{directory}/sysctl.d")) {
        let names = tree.names(&directory).into_iter();
        for name in names.filter(|name| name.ends_with(".conf")) {
            let path = format!("{directory}/{name}");
            by_name.entry(name).or_insert(path);
        }
    }
    let mut files: Vec<String> = by_name.into_values().collect();
    files.push("/etc/sysctl.conf".to_owned());
    let mut lines = Vec::new();
    for file in files {
        let text = tree.text(&file).unwrap_or_default();
        for line in text
            .lines()
            .map(str::trim)
            .filter(|line| !line.starts_with(['#', ';']))
        {
            if let Some((key, value)) = line.split_once('=') {
                let key = key.trim().trim_start_matches('-').replace('.', "/");
                lines.push((file.clone(), key, value.trim().to_owned()));
            }
        }
    }
    lines
}

fn mitigations(tree: &Tree) -> BTreeMap<String, String> {
    let path = "/sys/devices/system/cpu/vulnerabilities";
    let state = |name: String| {
        let text = tree.text(&format!("{path}/{name}"))?;
        text.starts_with("Mitigation").then_some((name, text))
    };
    tree.names(path).into_iter().filter_map(state).collect()
}

/// `Max open files            1024                 524288               files`: columns are at least two spaces apart.
pub(super) fn limits(tree: &Tree, process: u32) -> BTreeMap<String, (String, String)> {
    let text = tree
        .text(&format!("/proc/{process}/limits"))
        .unwrap_or_default();
    let row = |line: &str| {
        let mut columns = line
            .split("  ")
            .map(str::trim)
            .filter(|column| !column.is_empty());
        let (name, soft, hard) = (columns.next()?, columns.next()?, columns.next()?);
        Some((name.to_owned(), (soft.to_owned(), hard.to_owned())))
    };
    text.lines().skip(1).filter_map(row).collect()
}
