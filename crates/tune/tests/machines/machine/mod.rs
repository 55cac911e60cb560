//! Recorded machines, and generated ones: directories with the files of /sys and /proc that facts are read from.

#![allow(dead_code)] // each test program uses its part

pub(crate) mod model;
pub(crate) mod plans;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

pub(crate) fn recorded(name: &str) -> TempDir {
    let directory = TempDir::new().expect("a temporary directory");
    let archive = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/data/{name}.tar.gz"));
    let status = Command::new("tar")
        .arg("xzf")
        .arg(&archive)
        .arg("-C")
        .arg(directory.path())
        .status()
        .expect("tar runs");
    assert!(status.success(), "cannot unpack {}", archive.display());
    directory
}

pub(crate) const RECORDED: [&str; 3] =
    ["16em64t-4s2c2t", "2pa-pcidomain32bits", "32em64t-2n8c+1mic"];

#[derive(Debug, Clone)]
pub(crate) struct Machine {
    /// CPU numbers by position: by node, then core, then SMT sibling.
    pub(crate) numbers: Vec<usize>,
    pub(crate) nodes: usize,
    pub(crate) cores: usize,
    pub(crate) siblings: usize,
    /// Positions (indexes of `numbers`) of offline CPUs.
    pub(crate) offline: Vec<usize>,
    /// Number of slow cores of each node, which are the last ones.
    pub(crate) slow_cores: usize,
    /// Number of slow cores listed as low-power cores, not by `cpu_capacity`.
    pub(crate) low_power_cores: usize,
    /// Kernel's number of each node; may have gaps.
    pub(crate) node_ids: Vec<usize>,
    /// Numbers of the nodes with memory and without CPUs.
    pub(crate) memory_nodes: Vec<usize>,
    pub(crate) isolated: Vec<usize>,
    pub(crate) interfaces: Vec<Card>,
    pub(crate) irq_first: usize,
}

#[derive(Debug, Clone)]
pub(crate) struct Card {
    pub(crate) name: String,
    /// Style of its interrupts.
    pub(crate) kind: Kind,
    /// Contents of `numa_node`.
    pub(crate) node: i64,
    pub(crate) queues: usize,
    pub(crate) irq_cpu: usize,
}

/// Names and location of an interface's interrupts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `eth0-TxRx-0`, and one for the mailbox.
    Ixgbevf,
    /// `eth0-Tx-Rx-0`, preceded by one for management.
    Ena,
    /// `mlx5_comp0@pci:…` and `mlx5_async0@pci:…`.
    Mlx5,
    /// `mlx4-1@0000:…` and `mlx4-async@pci:…`; the first vector is number 1.
    Mlx4,
    /// `gve-ntfy-blk0@pci:…`, first for all transmit queues and then for all receive queues, and `gve-mgmnt@pci:…`.
    Gve,
    /// `virtio0-input.0` and `virtio0-output.0`; the MSI table is the parent's.
    Virtio,
    /// `virtio0-virtqueues`, one for all queues.
    VirtioShared,
    /// `eth%d-ntfy-block.0` with a literal percent sign, as in gve before Linux 6.4.
    GveBlock,
    /// `vif0-q0-tx` and `vif0-q0-rx`, without an MSI table.
    Xen,
    /// `eth0-0` for the link, and `eth0-txrx-1` for queue 0.
    Tg3,
    /// `ice-eth0-TxRx-0-1`, one for two queues; `ice-eth0-TxRx-2` for a single last one.
    IcePairs,
    /// `mana_hwc@pci:…`, and `mana_q0@pci:…` for queue 0 of every port.
    Mana,
    /// `mana_hwc@pci:…`, and `mana_msi1@pci:…` for queue 0 of the only port.
    ManaVectors,
    /// No numbered interrupts, but channels with a CPU.
    Netvsc,
    /// `dpio.0`, one per CPU, shared by all interfaces; `dpni.0` is for the link.
    Dpaa2,
}

/// Kinds whose interrupts have known queues and can be moved.
pub(crate) const MOVABLE: [Kind; 14] = [
    Kind::Ixgbevf,
    Kind::Ena,
    Kind::Mlx5,
    Kind::Mlx4,
    Kind::Gve,
    Kind::Virtio,
    Kind::VirtioShared,
    Kind::GveBlock,
    Kind::Xen,
    Kind::Tg3,
    Kind::IcePairs,
    Kind::Mana,
    Kind::ManaVectors,
    Kind::Netvsc,
];

impl Machine {
    /// CPUs numbered by position, except that the second siblings of all cores follow the first ones, as usual.
    pub(crate) fn new(nodes: usize, cores: usize, siblings: usize) -> Machine {
        let number = |place: usize| {
            let (core, sibling) = (place / siblings, place % siblings);
            sibling * nodes * cores + core
        };
        Machine {
            numbers: (0..nodes * cores * siblings).map(number).collect(),
            nodes,
            cores,
            siblings,
            offline: Vec::new(),
            slow_cores: 0,
            low_power_cores: 0,
            node_ids: (0..nodes).collect(),
            memory_nodes: Vec::new(),
            isolated: Vec::new(),
            interfaces: Vec::new(),
            irq_first: 40,
        }
    }

    pub(crate) fn with(
        mut self,
        name: &str,
        kind: Kind,
        node: i64,
        queues: usize,
        irq_cpu: usize,
    ) -> Machine {
        let name = name.to_owned();
        self.interfaces.push(Card {
            name,
            kind,
            node,
            queues,
            irq_cpu,
        });
        self
    }

    /// Changes the CPU numbers: `n` becomes `renumbered[n]`.
    pub(crate) fn renumbered(&self, renumbered: &[usize]) -> Machine {
        let mut other = self.clone();
        for number in other.numbers.iter_mut().chain(&mut other.isolated) {
            *number = renumbered[*number];
        }
        for card in &mut other.interfaces {
            card.irq_cpu = renumbered[card.irq_cpu];
        }
        other
    }

    pub(crate) fn write(&self) -> TempDir {
        let directory = TempDir::new().expect("a temporary directory");
        let root = Root(directory.path().to_owned());
        self.write_cpus(&root);
        self.write_interfaces(&root);
        for (file, value) in [
            ("net/core/somaxconn", "4096"),
            ("net/core/netdev_max_backlog", "1000"),
            ("net/core/rps_sock_flow_entries", "0"),
            ("net/ipv4/tcp_max_syn_backlog", "2048"),
            ("net/ipv4/tcp_slow_start_after_idle", "1"),
            ("net/ipv4/ip_local_port_range", "32768\t60999"),
            ("net/ipv4/tcp_tw_reuse", "2"),
            ("kernel/numa_balancing", "1"),
            ("kernel/osrelease", "6.12.0"),
        ] {
            root.write(&format!("proc/sys/{file}"), value);
        }
        directory
    }

    pub(crate) fn node_cpus(&self, node: usize) -> Vec<usize> {
        let size = self.cores * self.siblings;
        let places = node * size..(node + 1) * size;
        places
            .filter(|place| !self.offline.contains(place))
            .map(|place| self.numbers[place])
            .collect()
    }

    pub(crate) fn cpus(&self) -> Vec<usize> {
        (0..self.nodes)
            .flat_map(|node| self.node_cpus(node))
            .collect()
    }

    /// SMT siblings of a CPU, including itself.
    pub(crate) fn siblings_of(&self, cpu: usize) -> Vec<usize> {
        let place = self
            .numbers
            .iter()
            .position(|number| *number == cpu)
            .expect("a CPU of the machine");
        let first = place / self.siblings * self.siblings;
        (first..first + self.siblings)
            .map(|place| self.numbers[place])
            .collect()
    }

    /// Formats a mask; all have the same width.
    fn mask(&self, cpus: &[usize]) -> String {
        let bits = |word: usize| {
            let here = cpus.iter().filter(move |cpu| **cpu / 32 == word);
            here.map(|cpu| 1u32 << (cpu % 32)).sum::<u32>()
        };
        let words = (0..self.numbers.len().div_ceil(32)).rev();
        words
            .map(|word| format!("{:08x}", bits(word)))
            .collect::<Vec<_>>()
            .join(",")
    }

    fn write_cpus(&self, root: &Root) {
        let size = self.cores * self.siblings;
        for (place, cpu) in self.numbers.iter().enumerate() {
            let path = format!("sys/devices/system/cpu/cpu{cpu}");
            root.write(&format!("{path}/crash_notes"), "0");
            if self.offline.contains(&place) {
                continue;
            }
            let core = place / self.siblings;
            let first = core * self.siblings;
            let runs = |place: &usize| !self.offline.contains(place);
            let siblings: Vec<usize> = (first..first + self.siblings)
                .filter(runs)
                .map(|place| self.numbers[place])
                .collect();
            root.write(
                &format!("{path}/topology/thread_siblings"),
                &self.mask(&siblings),
            );
            root.write(
                &format!("{path}/topology/thread_siblings_list"),
                &list(siblings),
            );
            root.write(
                &format!("{path}/topology/core_siblings"),
                &self.mask(&self.node_cpus(place / size)),
            );
            root.write(
                &format!("{path}/topology/physical_package_id"),
                &(place / size).to_string(),
            );
            root.write(
                &format!("{path}/topology/core_id"),
                &(core % self.cores).to_string(),
            );
            root.write(&format!("{path}/cache/index3/level"), "3");
            root.write(
                &format!("{path}/cache/index3/shared_cpu_list"),
                &list(self.node_cpus(place / size)),
            );
            if self.slow_cores > 0 && self.low_power_cores == 0 {
                let is_slow = core % self.cores >= self.cores - self.slow_cores;
                root.write(
                    &format!("{path}/cpu_capacity"),
                    if is_slow { "446" } else { "1024" },
                );
            }
        }
        root.write("sys/devices/system/cpu/online", &list(self.cpus()));
        if !self.isolated.is_empty() {
            root.write(
                "sys/devices/system/cpu/isolated",
                &list(self.isolated.iter().copied()),
            );
        }
        self.write_kinds(root);
        self.write_nodes(root);
    }

    /// Writes the kinds of cores like the PMUs of Intel's hybrid processors.
    fn write_kinds(&self, root: &Root) {
        if self.low_power_cores == 0 {
            return;
        }
        let (slow, tiny) = (self.slow_cores, self.low_power_cores);
        let bounds = [0, self.cores - slow, self.cores - tiny, self.cores];
        let kinds = ["cpu_core", "cpu_atom", "cpu_lowpower"];
        for (kind, bounds) in kinds.iter().zip(bounds.windows(2)) {
            let is_of_kind = |place: &usize| {
                let core = place / self.siblings % self.cores;
                (bounds[0]..bounds[1]).contains(&core) && !self.offline.contains(place)
            };
            let places = (0..self.numbers.len()).filter(is_of_kind);
            let cpus = list(places.map(|place| self.numbers[place]));
            root.write(&format!("sys/devices/{kind}/cpus"), &cpus);
        }
    }

    /// Writes the nodes. Nodes in the same half of the machine are nearer to each other than to the other half;
    /// memory-only nodes are the farthest.
    fn write_nodes(&self, root: &Root) {
        let mut ids: Vec<usize> = [&self.node_ids[..], &self.memory_nodes].concat();
        ids.sort_unstable();
        let half = |node: usize| 2 * node / self.nodes;
        for id in &ids {
            let at = |id: &usize| self.node_ids.iter().position(|known| known == id);
            let distance = |other: &usize| match (at(id), at(other)) {
                _ if other == id => "10",
                (Some(one), Some(two)) if half(one) == half(two) => "12",
                (Some(_), Some(_)) => "21",
                _ => "40",
            };
            let distances: Vec<&str> = ids.iter().map(distance).collect();
            let cpus = at(id).map_or_else(Vec::new, |node| self.node_cpus(node));
            let path = format!("sys/devices/system/node/node{id}");
            root.write(&format!("{path}/cpumap"), &self.mask(&cpus));
            root.write(&format!("{path}/cpulist"), &list(cpus));
            root.write(&format!("{path}/distance"), &distances.join(" "));
        }
    }

    fn write_interfaces(&self, root: &Root) {
        let mut online = self.cpus();
        online.sort_unstable();
        let header: String = online
            .iter()
            .map(|cpu| format!("       CPU{cpu}"))
            .collect();
        let mut interrupts = format!("    {header}\n");
        let mut number = self.irq_first;
        for (at, card) in self.interfaces.iter().enumerate() {
            let device = card.device(at);
            let holder = match card.kind {
                Kind::Virtio | Kind::VirtioShared => format!("{device}/virtio{at}"),
                _ => device.clone(),
            };
            let driver = match card.kind {
                Kind::Tg3 => Some("tg3"),
                Kind::Dpaa2 => Some("fsl_dpaa2_eth"),
                _ => None,
            };
            if let Some(driver) = driver {
                root.link(&format!("{holder}/driver"), &format!("../drivers/{driver}"));
            }
            if card.kind == Kind::Netvsc {
                for queue in 0..card.queues {
                    // Channels are numbered across the whole machine.
                    let channel = format!("{holder}/channels/{}", 20 + 3 * queue);
                    root.write(&format!("{channel}/cpu"), &card.irq_cpu.to_string());
                    root.write(&format!("{channel}/subchannel_id"), &queue.to_string());
                }
            }
            root.write(&format!("{device}/numa_node"), &card.node.to_string());
            let path = format!("{holder}/net/{}", card.name);
            root.write(&format!("{path}/operstate"), "up");
            root.link(
                &format!("sys/class/net/{}", card.name),
                &format!("../../../{path}"),
            );
            let holder = holder.rsplit('/').next().expect("a path");
            root.link(&format!("{path}/device"), &format!("../../../{holder}"));
            let mask = mask_of_zeros(self.numbers.len());
            for queue in 0..card.queues {
                root.write(&format!("{path}/queues/rx-{queue}/rps_cpus"), &mask);
                root.write(&format!("{path}/queues/rx-{queue}/rps_flow_cnt"), "0");
                root.write(&format!("{path}/queues/tx-{queue}/xps_cpus"), &mask);
            }
            for name in card.interrupts(at) {
                if card.kind != Kind::Xen {
                    fs::create_dir_all(root.0.join(format!("{device}/msi_irqs/{number}")))
                        .expect("a directory");
                }
                let chip = match card.kind {
                    Kind::Xen => "xen-dyn    -event".to_owned(),
                    _ => format!("PCI-MSIX-0000:00:{at:02x}.0 {number}-edge"),
                };
                let row = root.write_interrupt(number, card.irq_cpu, &online);
                interrupts.push_str(&format!("{row}   {chip}      {name}\n"));
                number += 1;
            }
        }
        if self.interfaces.iter().any(|card| card.kind == Kind::Dpaa2) {
            for cpu in &online {
                let row = root.write_interrupt(number, *cpu, &online);
                interrupts.push_str(&format!("{row}   ITS-fMSI {number} Edge      dpio.{cpu}\n"));
                number += 1;
            }
        }
        root.write("proc/interrupts", &interrupts);
    }
}

impl Card {
    fn device(&self, at: usize) -> String {
        match self.kind {
            Kind::Xen => format!("sys/devices/vif-{at}"),
            Kind::Netvsc => format!("sys/devices/f8615163-df3e-46c5-913f-f2d2f965ed{at:02x}"),
            Kind::Dpaa2 => format!("sys/devices/dpni.{at}"),
            _ => format!("sys/devices/pci0000:00/0000:00:{:02x}.0", at + 1),
        }
    }

    fn interrupts(&self, at: usize) -> Vec<String> {
        let name = &self.name;
        let address = format!("@pci:0000:00:{:02x}.0", at + 1);
        let each = |name: &dyn Fn(usize) -> String| (0..self.queues).map(name).collect::<Vec<_>>();
        match self.kind {
            Kind::Ixgbevf => [
                each(&|queue| format!("{name}-TxRx-{queue}")),
                vec![format!("{name}:mbx")],
            ]
            .concat(),
            Kind::Ena => [
                vec![format!("ena-mgmnt{address}")],
                each(&|queue| format!("{name}-Tx-Rx-{queue}")),
            ]
            .concat(),
            Kind::Mlx5 => [
                vec![format!("mlx5_async0{address}")],
                each(&|queue| format!("mlx5_comp{queue}{address}")),
            ]
            .concat(),
            Kind::Mlx4 => [
                vec![format!("mlx4-async{address}")],
                each(&|queue| format!("mlx4-{}@0000:00:{:02x}.0", queue + 1, at + 1)),
            ]
            .concat(),
            Kind::Gve => {
                let block = |block: usize| format!("gve-ntfy-blk{block}{address}");
                let mut names: Vec<String> = (0..2 * self.queues).map(block).collect();
                names.push(format!("gve-mgmnt{address}"));
                names
            }
            Kind::VirtioShared => {
                vec![
                    format!("virtio{at}-config"),
                    format!("virtio{at}-virtqueues"),
                ]
            }
            Kind::GveBlock => {
                let block = |block: usize| format!("eth%d-ntfy-block.{block}");
                let mut names: Vec<String> = (0..2 * self.queues).map(block).collect();
                names.push("eth%d-mgmnt".to_owned());
                names
            }
            Kind::Xen => [
                each(&|queue| format!("vif{at}-q{queue}-tx")),
                each(&|queue| format!("vif{at}-q{queue}-rx")),
            ]
            .concat(),
            Kind::Tg3 => [
                vec![format!("{name}-0")],
                each(&|queue| format!("{name}-txrx-{}", queue + 1)),
            ]
            .concat(),
            Kind::IcePairs => {
                let vector = |first: usize| match first + 1 < self.queues {
                    true => format!("ice-{name}-TxRx-{first}-{}", first + 1),
                    false => format!("ice-{name}-TxRx-{first}"),
                };
                let mut names: Vec<String> = (0..self.queues).step_by(2).map(vector).collect();
                names.push(format!("ice-0000:00:{:02x}.0:misc", at + 1));
                names
            }
            Kind::Mana => [
                vec![format!("mana_hwc{address}")],
                each(&|queue| format!("mana_q{queue}{address}")),
            ]
            .concat(),
            Kind::ManaVectors => [
                vec![format!("mana_hwc{address}")],
                each(&|queue| format!("mana_msi{}{address}", queue + 1)),
            ]
            .concat(),
            Kind::Netvsc => Vec::new(),
            Kind::Dpaa2 => vec![format!("dpni.{at}")],
            Kind::Virtio => {
                let pair = |queue: usize| {
                    [
                        format!("virtio{at}-input.{queue}"),
                        format!("virtio{at}-output.{queue}"),
                    ]
                };
                [
                    vec![format!("virtio{at}-config")],
                    (0..self.queues).flat_map(pair).collect(),
                ]
                .concat()
            }
        }
    }
}

struct Root(PathBuf);

impl Root {
    /// Writes the files of an interrupt on one CPU, and returns its row in /proc/interrupts without names.
    fn write_interrupt(&self, number: usize, irq_cpu: usize, online: &[usize]) -> String {
        for file in ["smp_affinity_list", "effective_affinity_list"] {
            self.write(&format!("proc/irq/{number}/{file}"), &irq_cpu.to_string());
        }
        let counts = online
            .iter()
            .map(|cpu| format!(" {:>10}", if *cpu == irq_cpu { 1000 } else { 0 }));
        format!("{number:>4}:{}", counts.collect::<String>())
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().expect("below the root")).expect("a directory");
        fs::write(path, format!("{text}\n")).expect("a file");
    }

    fn link(&self, path: &str, target: &str) {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().expect("below the root")).expect("a directory");
        std::os::unix::fs::symlink(target, path).expect("a link");
    }
}

/// Formats a list like the kernel: ascending, with ranges.
fn list(cpus: impl IntoIterator<Item = usize>) -> String {
    cpus.into_iter()
        .collect::<onrush_machine::cpus::CpuSet>()
        .to_string()
}

fn mask_of_zeros(bits: usize) -> String {
    let words = bits.div_ceil(32);
    let first = "0".repeat((bits - (words - 1) * 32).div_ceil(4));
    [vec![first], vec!["00000000".to_owned(); words - 1]]
        .concat()
        .join(",")
}
