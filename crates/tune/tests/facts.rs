//! Facts of recorded and generated machines: the topology as hwloc sees it, interrupts by queue, and what a tree with
//! pieces missing still says.

mod machine;

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

use machine::{Kind, Machine, RECORDED, recorded};
use onrush_tune::advise::{self, Request};
use onrush_tune::facts::{self, Counts, Facts, Purpose};
use onrush_tune::tree::{self, Snapshot, Tree};
use onrush_tune::{diagnose, report, show};
use proptest::prelude::*;

fn read(root: &Path) -> Facts {
    facts::read(&Tree::open(root).expect("a root"), None).expect("facts")
}

/// What hwloc-calc answers of a tree; `None` when it is not installed.
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

/// Each object of a kind as the sorted list of its CPUs.
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

fn sorted(sets: impl Iterator<Item = onrush_tune::cpus::CpuSet>) -> Vec<Vec<usize>> {
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
fn the_topology_of_recorded_machines_is_what_hwloc_sees() {
    for name in RECORDED {
        check_against_hwloc(recorded(name).path(), name);
    }
}

#[test]
fn the_topology_of_generated_machines_is_what_hwloc_sees() {
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
fn recorded_interfaces_have_their_devices_queues_and_nodes() {
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
    // Nothing says which interrupt serves which queue without /proc/interrupts.
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
fn interrupts_are_found_by_queue_whatever_the_driver_calls_them() {
    // The kind, its interrupts, those for control among them, and the queues of each.
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
            assert_eq!(facts::taken_by(ens5, &facts.interrupts).to_string(), "3");
        }
    }
}

#[test]
fn portals_of_dpaa2_are_those_of_all_cpus() {
    let root = Machine::new(1, 4, 1)
        .with("eth0", Kind::Dpaa2, 0, 4, 3)
        .with("eth1", Kind::Dpaa2, 0, 4, 3)
        .write();
    let facts = read(root.path());
    for name in ["eth0", "eth1"] {
        let port = facts.interface(name).expect("a port");
        assert_eq!(port.irqs_unclear, Some(facts::interface::Unclear::Portals));
        assert_eq!(port.unclear_cpus.to_string(), "0-3");
        assert!((0..4).all(|queue| port.receive_irq(queue).is_none()));
    }
}

#[test]
fn representor_leaves_the_interrupts_to_its_parent() {
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
fn the_second_half_of_the_blocks_of_gvnic_receives() {
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
fn without_a_table_of_the_device_its_interrupts_are_found_by_their_names() {
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
fn a_control_group_limits_the_cpus_and_the_own_process_does_not() {
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
fn distances_are_those_of_node_numbers() {
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
fn cores_of_low_power_are_not_fast() {
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
fn node_minus_one_is_unknown() {
    let root = Machine::new(2, 2, 1)
        .with("eth0", Kind::Ena, -1, 2, 0)
        .write();
    assert_eq!(
        read(root.path()).interface("eth0").expect("eth0").node,
        None
    );
}

#[test]
fn a_bond_over_vlans_stands_on_its_devices() {
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

#[test]
fn a_snapshot_says_the_same_as_the_machine() {
    for name in RECORDED {
        let root = recorded(name);
        let live = Tree::open(root.path()).expect("a root");
        live.record();
        let facts = facts::read(&live, None).expect("facts");
        let file = root.path().join("snapshot.json");
        let output = onrush_file::Output::new(&file).expect("a place");
        tree::write_snapshot(&live.recorded(), output).expect("written");
        assert_eq!(format!("{:?}", read(&file)), format!("{facts:?}"), "{name}");
    }
}

#[test]
fn a_snapshot_of_an_older_program_lacks_what_that_did_not_ask() {
    let root = recorded(RECORDED[0]);
    let file = root.path().join("snapshot.json");
    let mut json = serde_json::to_value(sample()).expect("JSON");
    for key in ["driver_counters", "listening", "packet_rules", "qdiscs"] {
        let object = json.as_object_mut().expect("an object");
        assert!(object.remove(key).is_some(), "{key}");
    }
    fs::write(&file, json.to_string()).expect("written");
    let facts = read(&file);
    assert!(facts.counts.listening.is_empty());
    assert_eq!(facts.system.packet_rules, None);
    assert!(
        facts
            .interfaces
            .iter()
            .all(|interface| interface.qdisc.is_none())
    );
    assert!(!facts.interfaces.is_empty() && !facts.counts.cpus.is_empty());

    // What a newer one asked is passed over.
    json["of-a-newer-program"] = serde_json::json!({ "anything": [1] });
    fs::write(&file, json.to_string()).expect("written");
    assert_eq!(format!("{:?}", read(&file)), format!("{facts:?}"));
}

#[test]
fn a_snapshot_that_cannot_be_used_says_why() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("s.json");
    let whole = r#"{"onrush_snapshot":1,"version":"0","files":{},"directories":{},"links":{},"troubles":{},"ethtool":{}}"#;
    for (text, expected) in [
        (
            &whole[..60],
            "it ends in the middle; was it cut off on its way?",
        ),
        ("", "it ends in the middle; was it cut off on its way?"),
        ("hello", "it is not JSON"),
        ("{}", "it does not say `onrush_snapshot`"),
        (
            r#"{"onrush_snapshot":9,"version":"7.0"}"#,
            "its format is 9, made by onrush 7.0",
        ),
    ] {
        fs::write(&file, text).expect("written");
        let error = Tree::open(&file).err().expect("refused").to_string();
        assert!(error.contains(expected), "of {text:?}: {error}");
    }
    fs::write(&file, whole).expect("written");
    let error = facts::read(&Tree::open(&file).expect("a snapshot"), None).expect_err("no CPUs");
    assert!(
        error.to_string().contains("there are no CPUs here"),
        "{error}"
    );
}

#[test]
fn a_value_of_another_type_is_told_by_its_key_and_line() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("s.json");
    let text = serde_json::to_string_pretty(&sample()).expect("JSON");
    let whole: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    for (key, name, value, expected) in [
        (
            "files",
            "/proc/stat",
            serde_json::json!(5),
            r#"files."/proc/stat": invalid type: integer `5`, expected a string"#,
        ),
        (
            "directories",
            "/proc",
            serde_json::json!("x"),
            r#"directories."/proc": invalid type: string "x", expected a sequence"#,
        ),
        (
            "driver_counters",
            "e\u{1b}0",
            serde_json::json!({"a": -1}),
            r#"driver_counters."e\u{1b}0": invalid value: integer `-1`"#,
        ),
    ] {
        let mut changed = whole.clone();
        changed[key][name] = value;
        let text = serde_json::to_string_pretty(&changed).expect("JSON");
        fs::write(&file, &text).expect("written");
        let error = Tree::open(&file).err().expect("refused").to_string();
        assert!(error.contains(expected), "{error}");
        let quoted = serde_json::to_string(name).expect("JSON");
        let section = text.find(&format!("\"{key}\"")).expect("it is there");
        let at = section + text[section..].find(&quoted).expect("it is there");
        let line = text[..at].matches('\n').count() + 1;
        // The value may stand on the next line, in a list.
        let lines = [format!("line {line}: "), format!("line {}: ", line + 1)];
        assert!(
            lines.iter().any(|line| error.contains(line)),
            "{error}, not {lines:?}"
        );
    }
    let pipe = directory.path().join("pipe");
    let made = Command::new("mkfifo")
        .arg(&pipe)
        .status()
        .expect("mkfifo runs");
    assert!(made.success());
    let error = Tree::open(&pipe).err().expect("refused").to_string();
    assert!(error.contains("it is no regular file"), "{error}");
}

#[test]
fn links_of_a_recording_do_not_lead_out_of_it() {
    let root = Machine::new(1, 2, 1).write();
    let secret = tempfile::NamedTempFile::new().expect("a file");
    fs::write(secret.path(), "31337").expect("written");
    let link = root.path().join("proc/sys/net/core/somaxconn");
    fs::remove_file(&link).expect("it was there");
    std::os::unix::fs::symlink(secret.path(), &link).expect("a link");
    assert_eq!(read(root.path()).system.setting("net/core/somaxconn"), None);
}

/// What may stand in a file of a broken or hostile recording.
fn anything() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(String::new()),
        Just("18446744073709551615".to_owned()),
        Just("-1".to_owned()),
        Just("0-8191".to_owned()),
        Just("ffffffff,ffffffff,ffffffff".to_owned()),
        Just("CPU0 CPU1\n 40: 1 2 PCI-MSI 1-edge eth0-TxRx-99999999999\n".to_owned()),
        "[0-9,\\-: a-zA-Z\n]{0,60}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    /// Facts, plan, picture and diagnosis of a machine some of whose files say anything at all.
    #[test]
    fn no_text_in_any_file_is_more_than_a_note(
        changed in prop::collection::vec((any::<prop::sample::Index>(), anything()), 1..6)
    ) {
        let mut snapshot = sample();
        let paths: Vec<String> = snapshot.files.keys().cloned().collect();
        for (at, text) in changed {
            snapshot.files.insert(at.get(&paths).clone(), text);
        }
        let Ok(facts) = facts::read(&Tree::of_snapshot(snapshot), None) else {
            return Ok(());
        };
        let plan = advise::plan(&facts, &Request::default()).expect("a plan");
        let _ = (report::text(&plan, 80), report::script(&plan));
        let findings = diagnose::judge(&facts, &Counts::default(), &facts.counts);
        prop_assert!(!findings.is_empty());
        let _ = show::svg(&facts, &show::View::now(&facts, None), &diagnose::loads(&Counts::default(), &facts.counts));
    }
}

/// A recording of this machine's counters and of a generated machine's CPUs and interfaces.
fn sample() -> Snapshot {
    static SAMPLE: OnceLock<Snapshot> = OnceLock::new();
    let make = || {
        let root = Machine::new(2, 3, 2)
            .with("eth0", Kind::Virtio, 0, 2, 1)
            .write();
        let [generated, live] = [root.path(), Path::new("/")].map(|root| {
            let tree = Tree::open(root).expect("a root");
            tree.record();
            facts::read(&tree, None).expect("facts");
            tree.recorded()
        });
        let mut sample = generated;
        sample.listening = live.listening;
        sample.packet_rules = live.packet_rules;
        for (path, text) in live.files {
            let is_wanted = path.starts_with("/proc/net")
                || path.starts_with("/proc/s")
                || path == "/proc/meminfo";
            if is_wanted {
                sample.files.entry(path).or_insert(text);
            }
        }
        sample
    };
    SAMPLE.get_or_init(make).clone()
}

/// Every file of a generated machine is cut in half, one after the other: facts are still read, or their absence is an
/// error in words.
#[test]
fn any_file_may_be_cut_off() {
    let root = Machine::new(2, 2, 2)
        .with("eth0", Kind::Virtio, 0, 2, 1)
        .write();
    let mut files = Vec::new();
    let mut directories = vec![root.path().to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).expect("a directory") {
            let entry = entry.expect("an entry");
            let kind = entry.file_type().expect("a type");
            if kind.is_dir() {
                directories.push(entry.path());
            } else if kind.is_file() {
                files.push(entry.path());
            }
        }
    }
    assert!(files.len() > 50);
    for file in files {
        let whole = fs::read(&file).expect("read");
        for end in [0, whole.len() / 2] {
            fs::write(&file, &whole[..end]).expect("written");
            let facts = read(root.path());
            assert!(!facts.topology.online.is_empty(), "{}", file.display());
        }
        fs::write(&file, whole).expect("written");
    }
}
