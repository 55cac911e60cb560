//! CPU topology: nodes, packages, cores with their SMT siblings, shared caches, kinds of cores.

use std::collections::BTreeMap;

use serde::Serialize;

use super::cgroup::{self, Allowed};
use crate::tree::Tree;
use onrush_machine::cpu_time;
use onrush_machine::cpus::CpuSet;
use onrush_machine::limits::CPUS_MAX;

const CPU: &str = "/sys/devices/system/cpu";
const NODE: &str = "/sys/devices/system/node";

/// CPUs of a machine.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Topology {
    /// Online CPUs.
    pub online: CpuSet,
    /// Offline CPUs.
    pub offline: CpuSet,
    /// CPUs that the control group allows; all online ones without a limit.
    pub allowed: CpuSet,
    /// CPUs isolated at boot (`isolcpus`, `nohz_full`), for programs that are pinned to them.
    pub isolated: CpuSet,
    /// NUMA nodes with CPUs, by number. A machine without NUMA has one.
    pub nodes: Vec<Node>,
    /// Cores with online CPUs, ordered by [`Core::place`].
    pub cores: Vec<Core>,
    /// Number of sockets.
    pub packages: usize,
}

/// A NUMA node.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Node {
    /// Number of the node.
    pub id: usize,
    /// Online CPUs.
    pub cpus: CpuSet,
    /// Distances by node, including nodes without CPUs; 10 is the node itself.
    pub distances: BTreeMap<usize, usize>,
}

/// A core: one CPU, or several SMT siblings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Core {
    /// Online CPUs.
    pub cpus: CpuSet,
    /// Position in the topology.
    pub place: CorePosition,
    /// CPUs that share the last-level cache; its own CPUs if unknown.
    pub cache: CpuSet,
    /// Relative speed on a machine with several kinds of cores; 1024 is the fastest.
    pub capacity: usize,
}

/// Position of a core, from the outermost level. Cores are ordered by position, never by CPU number, because firmware
/// assigns those arbitrarily.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct CorePosition {
    /// NUMA node; `None` if the machine has nodes but this core is in none.
    pub node: Option<usize>,
    /// Socket.
    pub package: i64,
    /// Die within the socket.
    pub die: i64,
    /// Core number within the die.
    pub core: i64,
    /// Lowest CPU, for machines that give all cores the same number.
    pub cpu: usize,
}

impl Core {
    /// CPU to use when only one sibling of the core is used.
    pub fn cpu(&self) -> usize {
        self.place.cpu
    }
}

impl Topology {
    /// Node of a CPU.
    pub fn node_of(&self, cpu: usize) -> Option<usize> {
        let node = self.nodes.iter().find(|node| node.cpus.contains(cpu))?;
        Some(node.id)
    }

    /// CPUs of a node; empty if the node does not exist.
    pub fn node_cpus(&self, id: usize) -> CpuSet {
        let node = self.nodes.iter().find(|node| node.id == id);
        node.map(|node| node.cpus.clone()).unwrap_or_default()
    }

    /// All CPUs of the cores that contain the given CPUs.
    pub fn with_siblings(&self, cpus: &CpuSet) -> CpuSet {
        let touched = self.cores.iter().filter(|core| core.cpus.intersects(cpus));
        touched.fold(cpus.clone(), |all, core| all.union(&core.cpus))
    }
}

/// Reads the topology, and the CPUs that the control group of a process, by default this one, allows. Without /sys,
/// each CPU of /proc/stat is a core.
pub(crate) fn read(tree: &Tree, process: Option<u32>) -> Topology {
    let present: CpuSet = bounded(tree.numbers(CPU, "cpu"));
    let online = online(tree, &present);
    let nodes = nodes(tree, &online);
    let cores = cores(tree, &online, &nodes);
    let mut packages: Vec<i64> = cores.iter().map(|core| core.place.package).collect();
    packages.sort_unstable();
    packages.dedup();
    let isolated = list(tree, &format!("{CPU}/isolated"))
        .unwrap_or_default()
        .union(&list(tree, &format!("{CPU}/nohz_full")).unwrap_or_default());
    Topology {
        offline: present.minus(&online),
        allowed: allowed(tree, &online, process),
        isolated: isolated.intersection(&online),
        nodes,
        cores,
        packages: packages.len(),
        online,
    }
}

fn bounded(numbers: Vec<usize>) -> CpuSet {
    numbers
        .into_iter()
        .filter(|number| *number < CPUS_MAX)
        .collect()
}

/// Parses a file with a list of CPUs. Some kernels write an empty `nohz_full` as "(null)".
fn list(tree: &Tree, path: &str) -> Option<CpuSet> {
    let text = tree.text(path).filter(|text| text.trim() != "(null)")?;
    tree.parsed_or_trouble(path, &text, CpuSet::parse_list(&text))
}

fn mask(tree: &Tree, path: &str) -> Option<CpuSet> {
    let text = tree.text(path)?;
    tree.parsed_or_trouble(path, &text, CpuSet::parse_mask(&text))
}

fn online(tree: &Tree, present: &CpuSet) -> CpuSet {
    if let Some(online) = list(tree, &format!("{CPU}/online")).filter(|online| !online.is_empty()) {
        return online;
    }
    // Before Linux 2.6.26 only each CPU's own file shows it; CPU 0, which often cannot be offline, may not have one.
    let runs = |cpu: &usize| {
        tree.text(&format!("{CPU}/cpu{cpu}/online"))
            .is_none_or(|text| text.trim() != "0")
    };
    let online: CpuSet = present.iter().filter(runs).collect();
    if !online.is_empty() {
        return online;
    }
    let stat = tree.text("/proc/stat").unwrap_or_default();
    bounded(cpu_time::by_cpu(&stat).map(|(cpu, _)| cpu).collect())
}

/// CPUs allowed by the control group, else all. The affinity of this process is not a limit of the machine: a shell
/// pinned to a few CPUs, e.g. by systemd's `CPUAffinity`, must still plan for all of them, and `isolcpus` removes from
/// every process the CPUs meant for the application. The affinity is used only if the group is not visible.
fn allowed(tree: &Tree, online: &CpuSet, process: Option<u32>) -> CpuSet {
    let limit = match cgroup::allowed(tree, process) {
        Allowed::All => None,
        Allowed::These(cpus) => Some(cpus),
        Allowed::Hidden => {
            let own = own_cpus(tree, process).filter(|cpus| !online.is_subset(cpus));
            if let Some(own) = &own {
                tree.trouble(
                    "the cpuset",
                    format!(
                        "is not mounted where this program can see it: only the CPUs that this program may run on are \
                         planned for ({own}); for the others run it where /sys/fs/cgroup is mounted"
                    ),
                );
            }
            own
        }
    };
    match limit.map(|limit| limit.intersection(online)) {
        Some(limit) if !limit.is_empty() => limit,
        _ => online.clone(),
    }
}

/// CPU affinity from `Cpus_allowed_list: 0-3` (proc_pid_status(5)), equal to sched_getaffinity(2).
fn own_cpus(tree: &Tree, process: Option<u32>) -> Option<CpuSet> {
    let name = process.map_or_else(|| "self".to_owned(), |number| number.to_string());
    let status = tree.text(&format!("/proc/{name}/status"))?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    CpuSet::parse_list(line)
}

fn nodes(tree: &Tree, online: &CpuSet) -> Vec<Node> {
    let mut nodes = Vec::new();
    let ids = tree.numbers(NODE, "node");
    for &id in &ids {
        let path = format!("{NODE}/node{id}");
        let cpus = list(tree, &format!("{path}/cpulist"))
            .or_else(|| mask(tree, &format!("{path}/cpumap")))
            .unwrap_or_else(|| bounded(tree.numbers(&path, "cpu")))
            .intersection(online);
        if cpus.is_empty() {
            continue; // has only memory
        }
        let distances = tree.text(&format!("{path}/distance")).unwrap_or_default();
        // One per online node, in order; node numbers may have gaps (node_read_distance in drivers/base/node.c).
        let distances: Option<Vec<usize>> = distances
            .split_whitespace()
            .map(|text| text.parse().ok())
            .collect();
        let distances = distances.filter(|all| all.len() == ids.len());
        let distances = ids
            .iter()
            .copied()
            .zip(distances.unwrap_or_default())
            .collect();
        nodes.push(Node {
            id,
            cpus,
            distances,
        });
    }
    if nodes.is_empty() && !online.is_empty() {
        nodes.push(Node {
            id: 0,
            cpus: online.clone(),
            distances: BTreeMap::from([(0, 10)]),
        });
    }
    nodes
}

fn cores(tree: &Tree, online: &CpuSet, nodes: &[Node]) -> Vec<Core> {
    let node_of = |cpu: usize| {
        nodes
            .iter()
            .find(|node| node.cpus.contains(cpu))
            .map(|node| node.id)
    };
    let kinds = capacities(tree, online);
    let mut seen = CpuSet::new();
    let mut caches: Vec<CpuSet> = Vec::new();
    let mut cores = Vec::new();
    for cpu in online.iter() {
        if seen.contains(cpu) {
            continue;
        }
        let path = format!("{CPU}/cpu{cpu}/topology");
        let siblings = list(tree, &format!("{path}/core_cpus_list"))
            .or_else(|| list(tree, &format!("{path}/thread_siblings_list")))
            .or_else(|| mask(tree, &format!("{path}/thread_siblings")))
            .unwrap_or_default();
        let mut cpus = siblings.intersection(online).minus(&seen);
        cpus.insert(cpu);
        seen = seen.union(&cpus);
        let number = |name: &str| {
            tree.text(&format!("{path}/{name}"))
                .and_then(|text| text.trim().parse().ok())
        };
        let place = CorePosition {
            node: node_of(cpu),
            package: number("physical_package_id").unwrap_or(0),
            die: number("die_id").unwrap_or(0),
            core: number("core_id").unwrap_or(0),
            cpu,
        };
        let cache = caches.iter().find(|cache| cache.contains(cpu)).cloned();
        let cache = cache.unwrap_or_else(|| {
            let cache = last_cache(tree, cpu)
                .unwrap_or_default()
                .intersection(online)
                .union(&cpus);
            caches.push(cache.clone());
            cache
        });
        let capacity = kinds.get(&cpu).copied().unwrap_or(1_024);
        cores.push(Core {
            cpus,
            place,
            cache,
            capacity,
        });
    }
    cores.sort_unstable_by_key(|core| core.place);
    cores
}

/// CPUs that share the last-level cache, usually index 3.
fn last_cache(tree: &Tree, cpu: usize) -> Option<CpuSet> {
    let path = format!("{CPU}/cpu{cpu}/cache");
    let level = |index: &usize| tree.value::<usize>(&format!("{path}/index{index}/level"));
    let indexes = tree.numbers(&path, "index");
    let highest = indexes.into_iter().max_by_key(|index| level(index))?;
    list(tree, &format!("{path}/index{highest}/shared_cpu_list"))
        .or_else(|| mask(tree, &format!("{path}/index{highest}/shared_cpu_map")))
}

/// Relative speeds of the CPUs, if they differ: Arm reports them, x86 by kinds of performance counters.
fn capacities(tree: &Tree, online: &CpuSet) -> BTreeMap<usize, usize> {
    let mut capacities = BTreeMap::new();
    // Efficient cores, and low-power cores, which some kernels list separately (intel_hybrid_pmu_type_map in
    // arch/x86/events/intel/core.c). The exact numbers do not matter, only that they are lower.
    for (kind, capacity) in [("cpu_atom", 512), ("cpu_lowpower", 256)] {
        if let Some(slow) = list(tree, &format!("/sys/devices/{kind}/cpus")) {
            capacities.extend(slow.iter().map(|cpu| (cpu, capacity)));
        }
    }
    if !capacities.is_empty() {
        return capacities;
    }
    let first = online.first().unwrap_or(0);
    if tree
        .text(&format!("{CPU}/cpu{first}/cpu_capacity"))
        .is_none()
    {
        return capacities;
    }
    let capacity = |cpu: usize| Some((cpu, tree.value(&format!("{CPU}/cpu{cpu}/cpu_capacity"))?));
    capacities.extend(online.iter().filter_map(capacity));
    capacities
}
