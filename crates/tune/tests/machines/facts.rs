//! Facts of recorded and generated machines: topology compared with hwloc, interrupts by queue, and interfaces.

use std::fs;
use std::path::Path;
use std::process::Command;

use onrush_machine::cpus::CpuSet;
use onrush_tune::advise::{self, Request};
use onrush_tune::facts::{self, Facts, Purpose};

use crate::machine::plans::read;
use crate::machine::{Kind, Machine, RECORDED, recorded};

/// Output of hwloc-calc for a tree; `None` if it is not installed.
fn hwloc(root: &Path, question: &[&str]) -> Option<String> {
    let output = Command::new("hwloc-calc")
        .arg("-i")
        .arg(root)
        .args(question)
        .output();
    let Ok(output) = output else {
        eprintln!("skipped: hwloc-calc is not installed (Debian's package is hwloc)");
        return None;
    };
    Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn hwloc_cpus(root: &Path, kind: &str) -> Option<Vec<Vec<usize>>> {
    let count: usize = hwloc(root, &["--number-of", kind, "all"])?
        .parse()
        .expect("a number");
    let cpus_of = |at: usize| {
        let cpus =
            hwloc(root, &["-I", "pu", "--po", &format!("{kind}:{at}")]).expect("it ran before");
        let mut cpus: Vec<usize> = cpus
            .split(',')
            .map(|cpu| cpu.parse().expect("a number"))
            .collect();
        cpus.sort_unstable();
        cpus
    };
    let mut all: Vec<_> = (0..count).map(cpus_of).collect();
    all.sort();
    Some(all)
}

fn sorted(sets: impl Iterator<Item = onrush_machine::cpus::CpuSet>) -> Vec<Vec<usize>> {
    let mut all: Vec<Vec<usize>> = sets.map(|set| set.iter().collect()).collect();
    all.sort();
    all
}

#[track_caller]
fn check_against_hwloc(root: &Path, what: &str) {
    let facts = read(root);
    let Some(cores) = hwloc_cpus(root, "core") else {
        return;
    };
    assert_eq!(
        sorted(facts.topology.cores.iter().map(|core| core.cpus.clone())),
        cores,
        "cores of {what}"
    );
    let nodes = hwloc_cpus(root, "numanode").expect("it ran before");
    assert_eq!(
        sorted(facts.topology.nodes.iter().map(|node| node.cpus.clone())),
        nodes,
        "nodes of {what}"
    );
    let cpus = hwloc_cpus(root, "pu").expect("it ran before").concat();
    assert_eq!(
        facts.topology.online.iter().collect::<Vec<_>>(),
        cpus,
        "CPUs of {what}"
    );
    let packages = hwloc(root, &["--number-of", "package", "all"]).expect("it ran before");
    assert_eq!(
        facts.topology.packages.to_string(),
        packages,
        "packages of {what}"
    );
}

#[test]
fn recorded_topology_matches_hwloc() {
    for name in RECORDED {
        check_against_hwloc(recorded(name).path(), name);
    }
}

#[test]
fn generated_topology_matches_hwloc() {
    let mut sparse = Machine::new(2, 4, 2);
    sparse.offline = vec![0, 5, 14, 15];
    let shapes = [
        Machine::new(1, 1, 1),
        Machine::new(2, 16, 1),
        Machine::new(4, 3, 4),
        sparse,
    ];
    for machine in shapes {
        check_against_hwloc(machine.write().path(), &format!("{machine:?}"));
    }
}

#[test]
fn recorded_interfaces_have_devices_queues_and_nodes() {
    let root = recorded("32em64t-2n8c+1mic");
    let facts = read(root.path());
    let names: Vec<&str> = facts
        .interfaces
        .iter()
        .map(|interface| interface.name.as_str())
        .collect();
    assert_eq!(
        names,
        ["eth0", "eth1", "ib0"],
        "bridges and VLANs lead nowhere in this recording"
    );
    let eth0 = facts.interface("eth0").expect("eth0");
    assert_eq!(
        (
            eth0.driver.as_deref(),
            eth0.node,
            eth0.receive.len(),
            eth0.irqs.len()
        ),
        (Some("igb"), Some(0), 8, 9)
    );
    assert!(eth0.is_up() && eth0.is_device);
    // Without /proc/interrupts the queues are unknown.
    assert!(
        eth0.irqs
            .iter()
            .all(|irq| irq.queue.is_none() && irq.file.is_none())
    );
    let ib0 = facts.interface("ib0").expect("ib0");
    assert_eq!(
        (ib0.node, ib0.receive.len(), ib0.irqs.len()),
        (Some(1), 1, 128)
    );
}

#[test]
fn interrupts_are_assigned_for_every_driver() {
    // Kind, number of interrupts, of control interrupts among them, and queues of each.
    for (kind, irqs, control, queues) in [
        (Kind::Ixgbevf, 5, 1, 1),
        (Kind::Ena, 5, 1, 1),
        (Kind::Mlx5, 5, 1, 1),
        (Kind::Mlx4, 5, 1, 1),
        (Kind::Gve, 9, 1, 1),
        (Kind::Virtio, 9, 1, 1),
        (Kind::VirtioShared, 2, 1, 4),
        (Kind::GveBlock, 9, 1, 1),
        (Kind::Xen, 8, 0, 1),
        (Kind::Tg3, 5, 1, 1),
        (Kind::IcePairs, 3, 1, 2),
        (Kind::Mana, 5, 1, 1),
        (Kind::ManaVectors, 5, 1, 1),
        (Kind::Netvsc, 4, 0, 1),
    ] {
        let root = Machine::new(2, 4, 2).with("ens5", kind, 1, 4, 3).write();
        let facts = read(root.path());
        let ens5 = facts.interface("ens5").expect("ens5");
        assert_eq!((ens5.node, ens5.irqs.len()), (Some(1), irqs), "{kind:?}");
        for queue in 0..4 {
            let brings = |irq: &&facts::interface::Irq| {
                matches!(irq.purpose, Purpose::Both | Purpose::Receive)
            };
            assert_eq!(
                ens5.irqs_of(queue).filter(brings).count(),
                1,
                "{kind:?}, queue {queue}"
            );
            let irq = ens5.receive_irq(queue).expect("one");
            assert_eq!(
                (irq.queues, irq.cpus().to_string()),
                (queues, "3".to_owned())
            );
        }
        assert_eq!(
            ens5.irqs
                .iter()
                .filter(|irq| irq.purpose == Purpose::Control)
                .count(),
            control,
            "{kind:?}"
        );
        assert!(ens5.irqs_unclear.is_none() && ens5.unclear_cpus.is_empty());
        if kind != Kind::Netvsc {
            let is_its_own = |number| ens5.irqs.iter().any(|irq| irq.number == number);
            let rows = facts.interrupts.iter();
            let rows = rows.filter(|row| is_its_own(row.number));
            let cpus = rows.flat_map(|row| row.counts.iter().map(|(cpu, _)| *cpu));
            assert_eq!(cpus.collect::<CpuSet>().to_string(), "3");
        }
    }
}

#[test]
fn dpaa2_portals_cover_all_cpus() {
    let root = Machine::new(1, 4, 1)
        .with("eth0", Kind::Dpaa2, 0, 4, 3)
        .with("eth1", Kind::Dpaa2, 0, 4, 3)
        .write();
    let facts = read(root.path());
    for name in ["eth0", "eth1"] {
        let port = facts.interface(name).expect("a port");
        assert_eq!(
            port.irqs_unclear,
            Some(facts::interface::UnassignedReason::Portals)
        );
        assert_eq!(port.unclear_cpus.to_string(), "0-3");
        assert!((0..4).all(|queue| port.receive_irq(queue).is_none()));
    }
}

#[test]
fn representor_has_no_interrupts() {
    let root = Machine::new(1, 4, 1)
        .with("eth0", Kind::Mlx5, 0, 2, 3)
        .write();
    let device = root.path().join("sys/devices/pci0000:00/0000:00:01.0");
    for (name, port) in [("eth0", "p0"), ("rep0", "pf0vf0"), ("rep1", "c1pf0sf88")] {
        let path = device.join("net").join(name);
        fs::create_dir_all(path.join("queues/rx-0")).expect("a directory");
        fs::write(path.join("phys_port_name"), port).expect("written");
        let link = |from: &str, to: &str| {
            let _ = std::os::unix::fs::symlink(to, root.path().join(from));
        };
        let below = format!("sys/devices/pci0000:00/0000:00:01.0/net/{name}");
        link(
            &format!("sys/class/net/{name}"),
            &format!("../../../{below}"),
        );
        link(&format!("{below}/device"), "../../../0000:00:01.0");
    }
    let facts = read(root.path());
    let of = |name: &str| facts.interface(name).expect("an interface");
    assert!(of("eth0").is_device && of("eth0").irqs_unclear.is_none());
    assert_eq!(of("eth0").irqs.len(), 3);
    for name in ["rep0", "rep1"] {
        assert!(!of(name).is_device && of(name).irqs.is_empty(), "{name}");
    }
    let plan = advise::plan(&facts, &Request::default()).expect("a plan");
    let names = plan
        .placement
        .interfaces
        .iter()
        .map(|placed| &placed.name[..]);
    assert_eq!(names.collect::<Vec<_>>(), ["eth0"]);
}

#[test]
fn gvnic_receive_interrupts_are_second_half() {
    let root = Machine::new(1, 8, 1)
        .with("ens4", Kind::Gve, 0, 3, 3)
        .write();
    let facts = read(root.path());
    let found: Vec<_> = facts
        .interface("ens4")
        .expect("ens4")
        .irqs
        .iter()
        .map(|irq| {
            let name = irq.name.split('@').next().unwrap_or_default();
            (name, irq.purpose, irq.queue)
        })
        .collect();
    let expected = [
        ("gve-ntfy-blk3", Purpose::Receive, Some(0)),
        ("gve-ntfy-blk0", Purpose::Transmit, Some(0)),
        ("gve-ntfy-blk4", Purpose::Receive, Some(1)),
        ("gve-ntfy-blk1", Purpose::Transmit, Some(1)),
        ("gve-ntfy-blk5", Purpose::Receive, Some(2)),
        ("gve-ntfy-blk2", Purpose::Transmit, Some(2)),
        ("gve-mgmnt", Purpose::Control, None),
    ];
    assert_eq!(found, expected);
}

#[test]
fn interrupts_are_matched_by_name_without_msi_directory() {
    for kind in [
        Kind::Ixgbevf,
        Kind::Ena,
        Kind::Mlx5,
        Kind::Mlx4,
        Kind::Gve,
        Kind::Virtio,
    ] {
        let machine = Machine::new(1, 4, 1)
            .with("ens5", kind, 0, 2, 3)
            .with("ens6", kind, 0, 2, 1);
        let root = machine.write();
        let with_table = read(root.path());
        for slot in ["01", "02"] {
            let table = format!("sys/devices/pci0000:00/0000:00:{slot}.0/msi_irqs");
            fs::remove_dir_all(root.path().join(table)).expect("it was there");
        }
        let without = read(root.path());
        for name in ["ens5", "ens6"] {
            let irqs = |facts: &Facts| facts.interface(name).expect("an interface").irqs.clone();
            assert_eq!(irqs(&without), irqs(&with_table), "{kind:?}");
        }
    }
}

#[test]
fn cgroup_limits_cpus_but_own_affinity_does_not() {
    let root = Machine::new(1, 8, 1).write();
    let write = |path: &str, text: &str| {
        let path = root.path().join(path);
        fs::create_dir_all(path.parent().expect("a directory")).expect("a directory");
        fs::write(path, text).expect("written");
    };
    let allowed = || read(root.path()).topology.allowed.to_string();
    write(
        "proc/self/status",
        "Name:\tonrush\nCpus_allowed_list:\t0-1\n",
    );
    assert_eq!(allowed(), "0-7");
    write("proc/self/cgroup", "0::/machine\n");
    write("sys/fs/cgroup/machine/cpuset.cpus.effective", "2-5\n");
    assert_eq!(allowed(), "2-5");
}

#[test]
fn numa_distances_are_indexed_by_node_id() {
    let mut machine = Machine::new(4, 2, 1);
    machine.node_ids = vec![0, 3, 8, 9];
    machine.memory_nodes = vec![1, 12];
    let nodes = read(machine.write().path()).topology.nodes;
    let ids: Vec<usize> = nodes.iter().map(|node| node.id).collect();
    assert_eq!(ids, [0, 3, 8, 9]);
    let expected = [(0, 12), (1, 40), (3, 10), (8, 21), (9, 21), (12, 40)];
    assert_eq!(nodes[1].distances, expected.into());
}

#[test]
fn low_power_cores_are_not_fast() {
    let mut machine = Machine::new(1, 16, 1);
    (machine.slow_cores, machine.low_power_cores) = (10, 2);
    let cores = read(machine.write().path()).topology.cores;
    let of = |cores: &[facts::topology::Core]| {
        let all: std::collections::BTreeSet<usize> =
            cores.iter().map(|core| core.capacity).collect();
        (all.first().copied(), all.last().copied())
    };
    let (fast, efficient, tiny) = (of(&cores[..6]), of(&cores[6..14]), of(&cores[14..]));
    assert_eq!((fast.0, fast.1), (Some(1_024), Some(1_024)));
    assert!(
        efficient.1 < fast.0 && tiny.1 < efficient.0,
        "{efficient:?} {tiny:?}"
    );
}

#[test]
fn numa_node_minus_one_is_unknown() {
    let root = Machine::new(2, 2, 1)
        .with("eth0", Kind::Ena, -1, 2, 0)
        .write();
    assert_eq!(
        read(root.path()).interface("eth0").expect("eth0").node,
        None
    );
}

#[test]
fn bond_resolves_to_physical_devices() {
    let root = Machine::new(1, 4, 1)
        .with("eth0", Kind::Ena, 0, 2, 0)
        .with("eth1", Kind::Ena, 0, 2, 0)
        .write();
    for (name, lower) in [("bond0", &["eth0", "eth1"][..]), ("bond0.7", &["bond0"])] {
        let path = root.path().join("sys/devices/virtual/net").join(name);
        for lower in lower {
            fs::create_dir_all(path.join(format!("lower_{lower}"))).expect("a directory");
        }
        let link = root.path().join("sys/class/net").join(name);
        std::os::unix::fs::symlink(format!("../../devices/virtual/net/{name}"), link)
            .expect("a link");
    }
    let facts = read(root.path());
    let devices: Vec<&str> = facts
        .devices_of("bond0.7")
        .iter()
        .map(|device| device.name.as_str())
        .collect();
    assert_eq!(devices, ["eth0", "eth1"]);
}
