//! Plans for recorded and published machines: layouts, numbers of queues, settings and notes.

use std::fs;
use std::path::Path;

use onrush_tune::advise::{self, AcceptMode, Goal, Plan, Request, Role, Sharing};

use crate::machine::plans::{changeable, check, counted, layout, plan, plan_of, proposed, read};
use crate::machine::{Kind, Machine, RECORDED, recorded};

/// The published layouts: two nodes of 16 CPUs each, and a device of unknown node.
fn cloud(siblings: usize) -> Machine {
    Machine::new(2, 16 / siblings, siblings)
}

#[test]
fn single_queue_is_steered_to_seven_node_cpus() {
    // The interrupt was in the second node, the only hint.
    let plan = plan(&cloud(1).with("eth0", Kind::Ixgbevf, -1, 1, 16));
    assert_eq!(layout(&plan), ["16 | 17-23"]);
    assert_eq!(proposed(&plan, "rps_cpus"), ["00fe0000"]);
    assert_eq!(plan.placement.application_cpus.to_string(), "1-15,24-31");
    assert_eq!(plan.placement.system_cpus.to_string(), "0");
    assert_eq!(plan.placement.interfaces[0].numa_node, -1);
    let reasons = plan.placement.interfaces[0].reasons.join("; ");
    assert!(
        reasons.contains("does not report the device's node")
            && reasons.contains("7 were faster than 15 and 31"),
        "{reasons}"
    );
}

#[test]
fn known_numa_node_overrides_interrupt_cpu() {
    let plan = plan(&cloud(1).with("eth0", Kind::Ixgbevf, 1, 1, 3));
    assert_eq!(layout(&plan), ["16 | 17-23"]);
    assert_eq!(proposed(&plan, "smp_affinity_list"), ["16"]);
}

#[test]
fn two_queues_are_spread_over_both_nodes() {
    let plan = plan(&cloud(1).with("eth0", Kind::Ixgbevf, -1, 2, 0));
    assert_eq!(layout(&plan), ["0 | 1-7", "16 | 17-23"]);
    assert_eq!(proposed(&plan, "rps_cpus"), ["000000fe", "00fe0000"]);
    assert_eq!(plan.placement.sharing, Sharing::Nothing);
}

#[test]
fn four_queues_use_whole_machine() {
    let one = plan(&cloud(1).with("eth0", Kind::Ixgbevf, -1, 4, 0));
    assert_eq!(
        layout(&one),
        ["0 | 1-7", "16 | 17-23", "8 | 9-15", "24 | 25-31"]
    );
    assert_eq!(
        proposed(&one, "rps_cpus"),
        ["000000fe", "00fe0000", "0000fe00", "fe000000"]
    );
    let both =
        plan(
            &cloud(1)
                .with("eth0", Kind::Ixgbevf, -1, 2, 0)
                .with("eth1", Kind::Ixgbevf, -1, 2, 0),
        );
    assert_eq!(
        layout(&both),
        ["0 | 1-7", "16 | 17-23", "8 | 9-15", "24 | 25-31"]
    );
    assert_eq!(both.placement.sharing, Sharing::Steering);
    assert_eq!(
        both.placement.application_cpus.to_string(),
        "1-7,9-15,17-23,25-31"
    );
    // The server shares all CPUs to which packets are steered, so a connection belongs on the CPU of its packets.
    for plan in [one, both] {
        assert_eq!(
            plan.accept.to_string(),
            "current: accept = \"hash\" (the server also runs on CPUs that receive no packets: 1-31); planned: accept = \"cpu\" \
             (every CPU of the server receives packets)"
        );
    }
}

#[test]
fn siblings_of_interrupt_cpu_are_not_steered_to() {
    // Eight cores with two siblings each in a node: CPU 16 and 24 would be siblings if numbered as in the first test.
    let mut machine = cloud(2);
    let number = |place: usize| place / 16 * 16 + place % 2 * 8 + place % 16 / 2;
    machine.numbers = (0..32).map(number).collect();
    let plan = plan(&machine.with("eth0", Kind::Ixgbevf, -1, 1, 16));
    assert_eq!(layout(&plan), ["16 | 17-23"]);
    assert_eq!(plan.placement.system_cpus.to_string(), "24");
    assert_eq!(plan.placement.application_cpus.to_string(), "0-15,25-31");
}

#[test]
fn thirty_two_queues_use_last_quarter_of_cores() {
    let plan = plan(&Machine::new(1, 64, 1).with("ens5", Kind::Ena, 0, 32, 0));
    let placed = &plan.placement.interfaces[0];
    assert_eq!(placed.irq_cpus.to_string(), "48-63");
    assert!(placed.steering_cpus.is_empty());
    assert_eq!(plan.placement.application_cpus.to_string(), "2-47");
    assert_eq!(plan.placement.system_cpus.to_string(), "0-1");
    let accept = plan.accept.planned.to_string();
    assert_eq!(
        accept,
        "accept = \"hash\" (packets arrive on CPUs apart from the server's: 48-63)"
    );
    assert_eq!(layout(&plan)[0], "48 | ");
    assert_eq!(layout(&plan)[16], "48 | ", "two queues on each");
    assert!(
        placed
            .reasons
            .join("; ")
            .contains("a quarter of the machine's 64 cores handles interrupts")
    );
}

/// Number of queues by interface in a plan; checks all properties, and that the next plan for these queues is the same.
#[track_caller]
#[test]
#[ignore = "slow: make test-all"]
fn surplus_queues_are_removed() {
    let one = |nodes, cores, siblings, node, queues| {
        Machine::new(nodes, cores, siblings).with("eth0", Kind::Ena, node, queues, 0)
    };
    for (machine, most, expected) in [
        (one(1, 2, 2, 0, 4), 4, 4),
        (one(1, 3, 1, 0, 3), 3, 3),
        (one(1, 4, 1, 0, 4), 4, 4),
        (one(1, 4, 2, 0, 8), 8, 8),
        (one(1, 8, 1, -1, 8), 8, 8),
        (one(1, 64, 1, 0, 64), 64, 64),
        (one(1, 64, 1, 0, 32), 64, 32),
        (one(16, 8, 1, 0, 64), 64, 64),
        (one(2, 4, 1, 0, 8), 8, 8),
        (one(2, 4, 1, -1, 8), 8, 8),
        // 32 queues for a node of 16 cores, half of them a quarter of the machine.
        (one(2, 16, 1, 0, 32), 32, 8),
        (one(2, 16, 1, 0, 8), 32, 8),
        (one(1, 16, 1, 0, 20), 32, 4),
        // Cores for interrupts without a queue get one.
        (one(1, 2, 1, 0, 1), 2, 2),
        (one(1, 32, 1, 0, 1), 16, 8),
        (one(2, 16, 1, -1, 2), 4, 4),
    ] {
        assert_eq!(counted(&machine, &[most], None), [expected], "{machine:?}");
    }
    // Only the far node is allowed: its quarter counts.
    assert_eq!(counted(&one(2, 16, 1, 0, 8), &[16], Some("16-31")), [8]);
    let mut isolated = one(1, 32, 1, 0, 2);
    isolated.isolated = (8..32).collect();
    assert_eq!(counted(&isolated, &[32], None), [2], "two of eight cores");
    // Every core handles interrupts, and none is left for the application alone.
    let taken = |queues: usize| Machine::new(4, 1, 2).with("eth0", Kind::Ixgbevf, -1, queues, 3);
    assert_eq!(counted(&taken(4), &[29], None), [4]);
    assert_eq!(counted(&taken(1), &[29], None), [2], "half of the cores");
}

#[test]
fn interfaces_of_same_node_share_cores() {
    let with = |queues: &[usize]| {
        let cards = queues.iter().enumerate();
        cards.fold(Machine::new(2, 16, 1), |machine, (at, queues)| {
            machine.with(&format!("eth{at}"), Kind::Ena, 0, *queues, 0)
        })
    };
    assert_eq!(counted(&with(&[2; 4]), &[16; 4], None), [2; 4]);
    assert_eq!(counted(&with(&[1; 2]), &[16; 2], None), [4; 2]);
    assert_eq!(counted(&with(&[3, 1]), &[3, 16], None), [3, 4]);
    assert_eq!(counted(&with(&[16; 2]), &[16; 2], None), [4; 2]);
    assert_eq!(counted(&with(&[1, 32]), &[1, 32], None), [1, 4]);
}

#[test]
fn small_machines_use_all_queues() {
    // One core per queue, with the application on all of them, as in a cloud.
    for (machine, expected) in [
        (Machine::new(1, 4, 1), ["0 | ", "1 | ", "2 | ", "3 | "]),
        (Machine::new(1, 2, 2), ["0 | ", "1 | ", "0 | ", "1 | "]),
    ] {
        let plan = plan(&machine.with("eth0", Kind::Virtio, -1, 4, 0));
        assert_eq!(layout(&plan), expected);
        assert_eq!(plan.placement.sharing, Sharing::Everything);
        let shares_each = plan.placement.application_cpus == plan.placement.interfaces[0].irq_cpus;
        let expected = if shares_each {
            AcceptMode::Cpu
        } else {
            AcceptMode::Hash
        };
        assert_eq!(plan.accept.planned.accept, expected);
    }
    // With fewer queues than cores, two cores are set aside, never one for several queues.
    let two = plan(&Machine::new(1, 6, 1).with("eth0", Kind::Ena, 0, 4, 0));
    assert_eq!(layout(&two), ["4 | ", "5 | ", "4 | ", "5 | "]);
    assert_eq!(two.placement.application_cpus.to_string(), "0-3");
}

#[test]
fn single_queue_is_steered_from_four_cores() {
    for (cores, expected) in [(4, "0 | 1"), (5, "0 | 1"), (6, "0 | 1-2"), (7, "0 | 1-2")] {
        let plan = plan(&Machine::new(1, cores, 1).with("eth0", Kind::Virtio, 0, 1, 0));
        assert_eq!(layout(&plan), [expected]);
        assert_eq!(plan.placement.sharing, Sharing::Nothing);
    }
}

#[test]
fn reasons_state_correct_counts() {
    let reasons = |machine: &Machine, most: usize| {
        let plan = advise::plan(&changeable(machine, &[most], None), &Request::default());
        let plan = plan.expect("a plan");
        let placed = plan
            .placement
            .interfaces
            .iter()
            .flat_map(|interface| &interface.reasons);
        let actions = plan.actions.iter().map(|action| &action.reason);
        placed.chain(actions).cloned().collect::<Vec<_>>()
    };
    let eth0 = |machine: Machine, queues| machine.with("eth0", Kind::Ena, 0, queues, 0);
    for (machine, most, expected) in [
        (
            eth0(Machine::new(1, 4, 1), 1),
            1,
            "steers packets to 1 other of",
        ),
        (
            eth0(Machine::new(1, 4, 1), 1),
            1,
            "CPU 1 of its node processes its packets, and is not a sibling",
        ),
        (
            eth0(Machine::new(1, 16, 1), 1),
            1,
            "CPUs 1-7 of its node process its packets",
        ),
        (
            eth0(Machine::new(1, 16, 1), 8),
            8,
            "node, 0, and handles the packets of 2 queues and has no other work",
        ),
        (
            eth0(Machine::new(1, 16, 1), 8),
            8,
            "few CPUs send through each queue",
        ),
        (
            eth0(Machine::new(1, 16, 1), 4),
            4,
            "node, 0, and has no other work",
        ),
        (
            eth0(Machine::new(1, 16, 1), 4),
            4,
            "each CPU sends through one queue",
        ),
        (
            eth0(Machine::new(1, 16, 1), 1),
            16,
            "supports 4 queues, one per core, instead of 1",
        ),
        (
            eth0(Machine::new(2, 16, 1), 32),
            32,
            "8 cores handle the interrupts",
        ),
        (
            eth0(Machine::new(1, 16, 1), 6),
            6,
            "6 queues on 4 cores: a quarter of the machine's 16 cores handles",
        ),
        (eth0(Machine::new(1, 16, 1), 6), 6, "up to 2 per core"),
        (
            eth0(Machine::new(8, 1, 1), 1),
            1,
            "no other core of its node could help",
        ),
        (
            eth0(Machine::new(8, 3, 1), 2),
            2,
            "2 queues on 1 core: 1 of the node's 3 cores handles interrupts",
        ),
    ] {
        let found = reasons(&machine, most);
        assert!(
            found.iter().any(|reason| reason.contains(expected)),
            "{expected}: {found:#?}"
        );
    }
}

#[test]
fn recorded_machines_have_plans() {
    for name in RECORDED {
        let root = recorded(name);
        let facts = read(root.path());
        for (goal, role) in [
            (Goal::Throughput, Role::Server),
            (Goal::Latency, Role::Proxy),
        ] {
            let plan = advise::plan(
                &facts,
                &Request {
                    goal,
                    role,
                    ..Request::default()
                },
            )
            .expect("a plan");
            check(&facts, &plan);
        }
    }
    let root = recorded("32em64t-2n8c+1mic");
    let irq_cpus = |plan: &Plan| {
        let interfaces = plan.placement.interfaces.iter();
        interfaces
            .map(|interface| format!("{} {}", interface.numa_node, interface.irq_cpus))
            .collect::<Vec<_>>()
    };
    let plan = plan_of(root.path(), &Request::default());
    assert_eq!(
        irq_cpus(&plan),
        ["0 ", "1 "],
        "eth1 is down; without /proc/interrupts nothing says whose interrupts are whose"
    );
    name_interrupts(root.path());
    let plan = plan_of(root.path(), &Request::default());
    check(&read(root.path()), &plan);
    assert_eq!(
        irq_cpus(&plan),
        ["0 6-7", "1 8"],
        "two of eight cores for 8 queues; one queue with steering"
    );
}

/// Adds driver-like names to the interrupts of a recording.
fn name_interrupts(root: &Path) {
    let mut text = "           CPU0\n".to_owned();
    for interface in &read(root).interfaces {
        for (at, irq) in interface.irqs.iter().enumerate() {
            let name = match at < interface.receive.len() {
                true => format!("{}-TxRx-{at}", interface.name),
                false => format!("{}-misc", interface.name),
            };
            text.push_str(&format!("{}: 1 PCI-MSI 1-edge {name}\n", irq.number));
            let path = root.join(format!("proc/irq/{}", irq.number));
            fs::create_dir_all(&path).expect("a directory");
            fs::write(path.join("smp_affinity_list"), "0\n").expect("written");
        }
    }
    fs::create_dir_all(root.join("proc")).expect("a directory");
    fs::write(root.join("proc/interrupts"), text).expect("written");
}

#[test]
fn bond_is_planned_through_its_devices() {
    let root = cloud(1)
        .with("eth0", Kind::Ena, 0, 2, 0)
        .with("eth1", Kind::Ena, 1, 2, 0)
        .write();
    let bond = root.path().join("sys/class/net/bond0");
    fs::create_dir_all(bond.join("lower_eth1")).expect("a directory");
    let request = |name: &str| Request {
        interfaces: vec![name.to_owned()],
        ..Request::default()
    };
    let plan = plan_of(root.path(), &request("bond0"));
    let names: Vec<&str> = plan
        .placement
        .interfaces
        .iter()
        .map(|interface| interface.name.as_str())
        .collect();
    assert_eq!(names, ["eth1"]);
    let error = advise::plan(&read(root.path()), &request("eth7")).expect_err("there is none");
    assert_eq!(
        error.to_string(),
        "interface eth7 not found: expected one of bond0, eth0, eth1"
    );
}

#[test]
fn obsolete_advice_is_noted_and_never_proposed() {
    let root = cloud(1).write();
    fs::create_dir_all(root.path().join("etc/sysctl.d")).expect("a directory");
    fs::write(
        root.path().join("etc/sysctl.d/99-tuning.conf"),
        "# found somewhere\nnet.ipv4.tcp_tw_recycle = 1\nnet.ipv4.tcp_timestamps=0\nnet.core.somaxconn=1024\n",
    )
    .expect("written");
    let plan = plan_of(root.path(), &Request::default());
    let about: Vec<&str> = plan.notes.iter().map(|note| note.about.as_str()).collect();
    assert!(
        about.contains(&"net.ipv4.tcp_tw_recycle") && about.contains(&"net.ipv4.tcp_timestamps"),
        "{about:?}"
    );
    assert!(!about.contains(&"net.ipv4.tcp_sack"));
    assert!(
        !plan
            .actions
            .iter()
            .any(|action| action.path.contains("tcp_tw_recycle"))
    );
}

#[test]
fn higher_settings_are_unchanged() {
    let root = cloud(1).write();
    fs::write(root.path().join("proc/sys/net/core/somaxconn"), "1000000\n").expect("written");
    let plan = plan_of(root.path(), &Request::default());
    assert_eq!(proposed(&plan, "somaxconn"), [""; 0]);
    assert_eq!(proposed(&plan, "tcp_max_syn_backlog"), ["65536"]);
}

#[test]
fn packet_filter_tables_are_noted() {
    let root = cloud(1).write();
    let notes = |root: &Path| {
        let plan = plan_of(root, &Request::default());
        let about = plan
            .notes
            .into_iter()
            .filter(|note| note.about == "netfilter");
        about.map(|note| note.text).collect::<Vec<_>>()
    };
    assert_eq!(notes(root.path()), [""; 0]);
    let directory = root.path().join("proc/net");
    fs::create_dir_all(&directory).expect("a directory");
    fs::write(directory.join("ip_tables_names"), "nat\nfilter\n").expect("written");
    fs::write(directory.join("ip6_tables_names"), "filter\n").expect("written");
    let found = notes(root.path());
    assert!(
        found.len() == 1 && found[0].contains("(ip nat, ip filter, ip6 filter)"),
        "{found:?}"
    );
}

#[test]
fn systemd_timers_are_noted_once() {
    let root = cloud(1).write();
    let unit = |name: &str, target: &str| {
        let path = root.path().join(name);
        fs::create_dir_all(path.parent().expect("a directory")).expect("a directory");
        std::os::unix::fs::symlink(target, path).expect("a link");
    };
    let own = "etc/systemd/system";
    for wish in [
        "timers.target.wants/apt-daily.timer",
        "timers.target.wants/man-db.timer",
        "multi-user.target.wants/nightly.timer",
        "multi-user.target.wants/nginx.service",
    ] {
        let name = wish.rsplit('/').next().expect("a name");
        unit(
            &format!("{own}/{wish}"),
            &format!("/lib/systemd/system/{name}"),
        );
    }
    // Two enabled by systemd's own packages, one of them masked.
    for (place, name) in [
        ("usr/lib", "systemd-tmpfiles-clean"),
        ("lib", "fstrim"),
        ("lib", "man-db"),
    ] {
        let wish = format!("{place}/systemd/system/timers.target.wants/{name}.timer");
        unit(&wish, &format!("../{name}.timer"));
    }
    unit(&format!("{own}/fstrim.timer"), "/dev/null");
    let notes = || {
        let plan = plan_of(root.path(), &Request::default());
        let about = plan
            .notes
            .into_iter()
            .filter(|note| note.about.contains("timer"));
        about.map(|note| note.text).collect::<Vec<_>>()
    };
    let process = root.path().join("proc/1");
    fs::create_dir_all(&process).expect("a directory");
    fs::write(process.join("comm"), "init\n").expect("written");
    assert_eq!(notes(), [""; 0]);
    fs::write(process.join("comm"), "systemd\n").expect("written");
    let names = "(apt-daily.timer, man-db.timer, nightly.timer, systemd-tmpfiles-clean.timer)";
    assert!(
        notes().len() == 1 && notes()[0].contains(names),
        "{:?}",
        notes()
    );
}

#[test]
fn json_keys_match_documentation() {
    let plan = plan(&cloud(1).with("eth0", Kind::Ixgbevf, -1, 1, 16));
    let json = serde_json::to_value(&plan).expect("JSON");
    let eth0 = &json["interfaces"][0];
    assert_eq!(eth0["name"], "eth0");
    assert_eq!(eth0["numa_node"], -1);
    assert_eq!(eth0["irq_cpus"], serde_json::json!([16]));
    assert_eq!(
        eth0["steering_cpus"],
        serde_json::json!([17, 18, 19, 20, 21, 22, 23])
    );
    assert!(json["application_cpus"].is_array() && json["system_cpus"].is_array());
    for key in [
        "path", "current", "proposed", "reason", "source", "risk", "revert",
    ] {
        assert!(json["actions"][0][key].is_string(), "{key}");
    }
}
