//! Plans for recorded, generated and published machines, and what must hold for every plan.

mod machine;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use machine::{Kind, MOVABLE, Machine, RECORDED, recorded};
use onrush_tune::advise::{self, By, Goal, Plan, Request, Role, Sharing, Spelling};
use onrush_tune::cpus::CpuSet;
use onrush_tune::facts::ethtool::{Channels, Ethtool};
use onrush_tune::facts::interface::AffinityFile;
use onrush_tune::facts::{self, Facts};
use onrush_tune::tree::Tree;
use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};

fn read(root: &Path) -> Facts {
    facts::read(&Tree::open(root).expect("a root"), None).expect("facts")
}

fn plan_of(root: &Path, request: &Request) -> Plan {
    advise::plan(&read(root), request).expect("a plan")
}

fn plan(machine: &Machine) -> Plan {
    plan_of(machine.write().path(), &Request::default())
}

/// `irq | steering` of each queue of each interface, in order.
fn layout(plan: &Plan) -> Vec<String> {
    let queues = plan
        .placement
        .interfaces
        .iter()
        .flat_map(|interface| &interface.queues);
    let cpu = |cpu: Option<usize>| cpu.map_or("-".to_owned(), |cpu| cpu.to_string());
    queues
        .map(|queue| format!("{} | {}", cpu(queue.irq_cpu), queue.steering_cpus))
        .collect()
}

/// The values proposed for files with a name, in the order of the plan.
fn proposed(plan: &Plan, name: &str) -> Vec<String> {
    let with_name = plan
        .actions
        .iter()
        .filter(|action| action.path.ends_with(name));
    with_name.map(|action| action.proposed.clone()).collect()
}

/// Seed of the layouts: two nodes of 16 CPUs each, whose machine does not say where its device is.
fn cloud(siblings: usize) -> Machine {
    Machine::new(2, 16 / siblings, siblings)
}

#[test]
fn one_queue_interrupts_one_cpu_and_is_steered_to_seven_of_its_node() {
    // The interrupt was found in the second node; that is all there is to go by.
    let plan = plan(&cloud(1).with("eth0", Kind::Ixgbevf, -1, 1, 16));
    assert_eq!(layout(&plan), ["16 | 17-23"]);
    assert_eq!(proposed(&plan, "rps_cpus"), ["00fe0000"]);
    assert_eq!(plan.placement.application_cpus.to_string(), "1-15,24-31");
    assert_eq!(plan.placement.system_cpus.to_string(), "0");
    assert_eq!(plan.placement.interfaces[0].numa_node, -1);
    let reasons = plan.placement.interfaces[0].reasons.join("; ");
    assert!(
        reasons.contains("does not say which node") && reasons.contains("7 were best"),
        "{reasons}"
    );
}

#[test]
fn a_known_node_beats_where_the_interrupt_is() {
    let plan = plan(&cloud(1).with("eth0", Kind::Ixgbevf, 1, 1, 3));
    assert_eq!(layout(&plan), ["16 | 17-23"]);
    assert_eq!(proposed(&plan, "smp_affinity_list"), ["16"]);
}

#[test]
fn two_queues_of_an_unknown_node_are_spread_over_both() {
    let plan = plan(&cloud(1).with("eth0", Kind::Ixgbevf, -1, 2, 0));
    assert_eq!(layout(&plan), ["0 | 1-7", "16 | 17-23"]);
    assert_eq!(proposed(&plan, "rps_cpus"), ["000000fe", "00fe0000"]);
    assert_eq!(plan.placement.sharing, Sharing::Nothing);
}

#[test]
fn four_queues_in_one_interface_or_two_use_the_whole_machine() {
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
    // The server shares all CPUs that packets are handed to, so that a connection belongs on the one that takes its own.
    for plan in [one, both] {
        assert_eq!(
            plan.accept.to_string(),
            "accept = \"hash\" (the server is on CPUs without packets, too: 1-31), as it is; accept = \"cpu\" (each CPU of \
             the server takes packets), as planned"
        );
    }
}

#[test]
fn siblings_of_an_interrupted_cpu_are_not_steered_to() {
    // Eight cores with two siblings each in a node: CPU 16 and 24 were siblings if numbered as in the first test.
    let mut machine = cloud(2);
    let number = |place: usize| place / 16 * 16 + place % 2 * 8 + place % 16 / 2;
    machine.numbers = (0..32).map(number).collect();
    let plan = plan(&machine.with("eth0", Kind::Ixgbevf, -1, 1, 16));
    assert_eq!(layout(&plan), ["16 | 17-23"]);
    assert_eq!(plan.placement.system_cpus.to_string(), "24");
    assert_eq!(plan.placement.application_cpus.to_string(), "0-15,25-31");
}

#[test]
fn thirty_two_queues_on_64_cores_interrupt_the_last_sixteen() {
    let plan = plan(&Machine::new(1, 64, 1).with("ens5", Kind::Ena, 0, 32, 0));
    let placed = &plan.placement.interfaces[0];
    assert_eq!(placed.irq_cpus.to_string(), "48-63");
    assert!(placed.steering_cpus.is_empty());
    assert_eq!(plan.placement.application_cpus.to_string(), "2-47");
    assert_eq!(plan.placement.system_cpus.to_string(), "0-1");
    let accept = plan.accept.planned.to_string();
    assert_eq!(
        accept,
        "accept = \"hash\" (packets have CPUs of their own: 48-63)"
    );
    assert_eq!(layout(&plan)[0], "48 | ");
    assert_eq!(layout(&plan)[16], "48 | ", "two queues on each");
    assert!(
        placed
            .reasons
            .join("; ")
            .contains("a quarter of the machine's 64 cores takes interrupts")
    );
}

/// Facts of a machine whose drivers can have so many queues, by interface; with CPUs that its control group allows.
fn changeable(machine: &Machine, most: &[usize], allowed: Option<&str>) -> Facts {
    let mut facts = read(machine.write().path());
    for (card, most) in machine.interfaces.iter().zip(most) {
        let found = facts
            .interfaces
            .iter_mut()
            .find(|interface| interface.name == card.name);
        let channels = Channels {
            combined: Some(card.queues as u32),
            combined_max: Some(*most as u32),
            ..Channels::default()
        };
        found.expect("its card").ethtool = Some(Ethtool {
            channels: Some(channels),
            ..Ethtool::default()
        });
    }
    if let Some(allowed) = allowed {
        facts.topology.allowed = CpuSet::parse_list(allowed).expect("a list");
    }
    facts
}

/// The queues a plan is for, by interface; every property holds, and with these queues the next plan is for the same.
#[track_caller]
fn counted(machine: &Machine, most: &[usize], allowed: Option<&str>) -> Vec<usize> {
    let counts = |machine: &Machine| {
        let facts = changeable(machine, most, allowed);
        let plan = advise::plan(&facts, &Request::default()).expect("a plan");
        check(&facts, &plan);
        let interfaces = plan.placement.interfaces.iter();
        interfaces
            .map(|interface| interface.queues.len())
            .collect::<Vec<_>>()
    };
    let first = counts(machine);
    let mut changed = machine.clone();
    for (card, queues) in changed.interfaces.iter_mut().zip(&first) {
        card.queues = *queues;
    }
    assert_eq!(
        counts(&changed),
        first,
        "the next plan has the same number of queues"
    );
    first
}

#[test]
fn queues_are_taken_away_only_where_they_were_made_for_cpus_that_they_do_not_go_to() {
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
        // 32 queues for a node of 16 cores, half of which are a quarter of the machine.
        (one(2, 16, 1, 0, 32), 32, 8),
        (one(2, 16, 1, 0, 8), 32, 8),
        (one(1, 16, 1, 0, 20), 32, 4),
        // Cores that would take interrupts and have none get queues.
        (one(1, 2, 1, 0, 1), 2, 2),
        (one(1, 32, 1, 0, 1), 16, 8),
        (one(2, 16, 1, -1, 2), 4, 4),
    ] {
        assert_eq!(counted(&machine, &[most], None), [expected], "{machine:?}");
    }
    // Only the far node may be used: its quarter is what counts.
    assert_eq!(counted(&one(2, 16, 1, 0, 8), &[16], Some("16-31")), [8]);
    let mut isolated = one(1, 32, 1, 0, 2);
    isolated.isolated = (8..32).collect();
    assert_eq!(counted(&isolated, &[32], None), [2], "two of eight cores");
    // Every core takes interrupts: nothing is left for anybody alone.
    let taken = |queues: usize| Machine::new(4, 1, 2).with("eth0", Kind::Ixgbevf, -1, queues, 3);
    assert_eq!(counted(&taken(4), &[29], None), [4]);
    assert_eq!(counted(&taken(1), &[29], None), [2], "half of the cores");
}

#[test]
fn interfaces_of_one_node_share_its_cores() {
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
fn small_machines_use_all_their_queues() {
    // A core each, and the application on all of them: what a cloud delivers.
    for (machine, expected) in [
        (Machine::new(1, 4, 1), ["0 | ", "1 | ", "2 | ", "3 | "]),
        (Machine::new(1, 2, 2), ["0 | ", "1 | ", "0 | ", "1 | "]),
    ] {
        let plan = plan(&machine.with("eth0", Kind::Virtio, -1, 4, 0));
        assert_eq!(layout(&plan), expected);
        assert_eq!(plan.placement.sharing, Sharing::Everything);
        let shares_each = plan.placement.application_cpus == plan.placement.interfaces[0].irq_cpus;
        let expected = if shares_each { By::Cpu } else { By::Hash };
        assert_eq!(plan.accept.planned.accept, expected);
    }
    // Fewer queues than cores: two cores are set aside, never one for several queues.
    let two = plan(&Machine::new(1, 6, 1).with("eth0", Kind::Ena, 0, 4, 0));
    assert_eq!(layout(&two), ["4 | ", "5 | ", "4 | ", "5 | "]);
    assert_eq!(two.placement.application_cpus.to_string(), "0-3");
}

#[test]
fn a_single_queue_is_steered_from_four_cores_on() {
    for (cores, expected) in [(4, "0 | 1"), (5, "0 | 1"), (6, "0 | 1-2"), (7, "0 | 1-2")] {
        let plan = plan(&Machine::new(1, cores, 1).with("eth0", Kind::Virtio, 0, 1, 0));
        assert_eq!(layout(&plan), [expected]);
        assert_eq!(plan.placement.sharing, Sharing::Nothing);
    }
}

#[test]
fn reasons_count_what_is_there() {
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
            "hands packets to 1 other of",
        ),
        (
            eth0(Machine::new(1, 4, 1), 1),
            1,
            "CPU 1 of its node takes the packets from it, and is no sibling",
        ),
        (
            eth0(Machine::new(1, 16, 1), 1),
            1,
            "CPUs 1-7 of its node take the packets from it",
        ),
        (
            eth0(Machine::new(1, 16, 1), 8),
            8,
            "node, 0, and takes the packets of 2 queues and nothing else",
        ),
        (
            eth0(Machine::new(1, 16, 1), 8),
            8,
            "few CPUs send through each queue",
        ),
        (
            eth0(Machine::new(1, 16, 1), 4),
            4,
            "node, 0, and takes nothing else",
        ),
        (
            eth0(Machine::new(1, 16, 1), 4),
            4,
            "each CPU sends through one queue",
        ),
        (
            eth0(Machine::new(1, 16, 1), 1),
            16,
            "can have 4 queues, each with a core of its own, instead of 1",
        ),
        (
            eth0(Machine::new(2, 16, 1), 32),
            32,
            "8 cores take its interrupts",
        ),
        (
            eth0(Machine::new(1, 16, 1), 6),
            6,
            "6 queues on 4 cores: a quarter of the machine's 16 cores takes",
        ),
        (eth0(Machine::new(1, 16, 1), 6), 6, "up to 2 on each"),
        (
            eth0(Machine::new(8, 1, 1), 1),
            1,
            "none of its node could help it",
        ),
        (
            eth0(Machine::new(8, 3, 1), 2),
            2,
            "2 queues on 1 core: 1 of the node's 3 cores takes interrupts",
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

/// Gives the interrupts of a recording the names that a driver would use.
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

/// The CPUs that take interrupts for packets of an interface once a plan is carried out.
fn interrupted(facts: &Facts, plan: &Plan, name: &str) -> CpuSet {
    let interface = facts.interface(name).expect("an interface");
    let mut all = interface.unclear_cpus.clone();
    for irq in interface.irqs.iter().filter(|irq| irq.queue.is_some()) {
        let path = irq.path(name);
        let action = plan
            .actions
            .iter()
            .find(|action| Some(&action.path) == path.as_ref());
        let moved = action.map(|action| match irq.file {
            Some(AffinityFile::Mask(_)) => CpuSet::parse_mask(&action.proposed),
            _ => CpuSet::parse_list(&action.proposed),
        });
        all = all.union(&moved.map_or_else(|| irq.cpus(), |cpus| cpus.expect("CPUs")));
    }
    all
}

/// Checks that every CPU listed with interrupts gets some. New queues have none yet.
#[track_caller]
fn check_interrupted(facts: &Facts, plan: &Plan) {
    for placed in &plan.placement.interfaces {
        let interface = facts.interface(&placed.name).expect("an interface");
        if !interface.is_device || placed.queues.len() != interface.receive.len() {
            continue;
        }
        let interrupted = interrupted(facts, plan, &placed.name);
        assert!(
            placed.irq_cpus.is_subset(&interrupted),
            "{} gets interrupts on {interrupted}: {placed:#?}",
            placed.name
        );
        let says_more = |reason: &String| reason.contains("interrupts and nothing else");
        if placed.irq_cpus.is_empty() {
            assert!(!placed.reasons.iter().any(says_more), "{placed:#?}");
        }
    }
}

/// What holds for every plan.
#[track_caller]
fn check(facts: &Facts, plan: &Plan) {
    check_interrupted(facts, plan);
    let topology = &facts.topology;
    let placement = &plan.placement;
    let sum = |part: fn(&advise::InterfacePlacement) -> &CpuSet| {
        placement
            .interfaces
            .iter()
            .fold(CpuSet::new(), |all, interface| all.union(part(interface)))
    };
    let (irq, steering) = (
        sum(|interface| &interface.irq_cpus),
        sum(|interface| &interface.steering_cpus),
    );
    let (application, system) = (&placement.application_cpus, &placement.system_cpus);
    assert!(!application.is_empty(), "the application has CPUs");
    assert!(
        irq.union(&steering)
            .union(application)
            .union(system)
            .is_subset(&topology.allowed),
        "only allowed CPUs"
    );
    // Interrupts that are not moved may be anywhere.
    let moved: CpuSet = placement
        .interfaces
        .iter()
        .flat_map(|interface| &interface.queues)
        .filter_map(|queue| queue.irq_cpu)
        .collect();
    if topology.allowed != topology.isolated {
        assert!(
            !moved.union(&steering).intersects(&topology.isolated),
            "isolated CPUs are left alone"
        );
    }
    assert!(
        !topology.with_siblings(&irq).intersects(&steering),
        "no sibling of an interrupted CPU is steered to"
    );
    for core in &topology.cores {
        assert!(
            core.cpus.intersection(&moved).len() <= 1,
            "one interrupted CPU for each core"
        );
        assert!(
            core.cpus.intersection(&steering).len() <= 1,
            "one steered CPU for each core"
        );
    }
    assert!(
        !system.intersects(application)
            && !system.intersects(&irq)
            && !system.intersects(&steering)
    );
    match placement.sharing {
        Sharing::Nothing => {
            assert!(!application.intersects(&irq.union(&steering)));
            assert!(!application.intersects(&topology.with_siblings(&irq)));
        }
        Sharing::Steering => assert!(!application.intersects(&irq)),
        Sharing::Everything => {}
    }
    for placed in &placement.interfaces {
        check_locality(facts, placed);
    }
    let targets: BTreeSet<_> = plan.actions.iter().map(|action| &action.target).collect();
    let paths: BTreeSet<_> = plan.actions.iter().map(|action| &action.path).collect();
    assert_eq!(
        (targets.len(), paths.len()),
        (plan.actions.len(), plan.actions.len()),
        "nothing is changed twice: {:#?}",
        plan.actions
    );
    for action in &plan.actions {
        assert!(!action.reason.is_empty() && !action.source.is_empty() && !action.risk.is_empty());
        assert!(
            !Spelling::of(&action.path).is_same(&action.current, &action.proposed),
            "{action:?} changes nothing"
        );
    }
}

fn check_locality(facts: &Facts, placed: &advise::InterfacePlacement) {
    let interface = facts.interface(&placed.name).expect("an interface");
    let local = interface
        .node
        .map(|node| facts.topology.node_cpus(node))
        .unwrap_or_default();
    let usable = local
        .intersection(&facts.topology.allowed)
        .minus(&facts.topology.isolated);
    if !usable.is_empty() {
        assert!(
            placed
                .irq_cpus
                .minus(&interface.unclear_cpus)
                .union(&placed.steering_cpus)
                .is_subset(&local),
            "{placed:?} is in its node"
        );
    }
    for queue in &placed.queues {
        let Some(cpu) = queue.irq_cpu else {
            continue;
        };
        let node = facts
            .topology
            .node_of(cpu)
            .map(|node| facts.topology.node_cpus(node))
            .unwrap_or_default();
        assert!(
            queue.steering_cpus.is_subset(&node),
            "steering stays in the node of the interrupt: {queue:?}"
        );
        assert!(queue.steering_cpus.len() <= 7);
    }
}

/// Two interfaces of one device: each has the interrupts of both in its table.
fn ports(kind: Kind) -> tempfile::TempDir {
    let machine = Machine::new(1, 16, 1)
        .with("eth0", kind, 0, 2, 3)
        .with("eth1", kind, 0, 2, 3);
    let root = machine.write();
    let table = |slot: &str| {
        root.path()
            .join(format!("sys/devices/pci0000:00/0000:00:{slot}.0/msi_irqs"))
    };
    for (from, to) in [("01", "02"), ("02", "01")] {
        for entry in fs::read_dir(table(from)).expect("a table") {
            fs::create_dir_all(table(to).join(entry.expect("an entry").file_name()))
                .expect("a directory");
        }
    }
    root
}

#[test]
fn interfaces_of_one_device_get_the_interrupts_that_have_their_name() {
    let root = ports(Kind::Ixgbevf);
    let facts = read(root.path());
    for (name, numbers) in [("eth0", [40, 41, 42]), ("eth1", [43, 44, 45])] {
        let irqs = &facts.interface(name).expect("a port").irqs;
        assert_eq!(
            irqs.iter().map(|irq| irq.number).collect::<Vec<_>>(),
            numbers
        );
    }
    let plan = plan_of(root.path(), &Request::default());
    check(&facts, &plan);
    assert_eq!(proposed(&plan, "smp_affinity_list").len(), 4);
    write_down(root.path(), &plan);
    assert_eq!(plan_of(root.path(), &Request::default()).actions, []);
}

/// What a plan says of interrupts that it does not move.
#[track_caller]
fn check_unmoved(root: &Path, moved: usize, about: &[&str], text: &str) {
    let facts = read(root);
    let plan = plan_of(root, &Request::default());
    check(&facts, &plan);
    assert_eq!(
        proposed(&plan, "smp_affinity_list").len(),
        moved,
        "{:#?}",
        plan.actions
    );
    let notes = plan.notes.iter().filter(|note| note.text.contains(text));
    assert_eq!(
        notes.map(|note| note.about.as_str()).collect::<Vec<_>>(),
        about,
        "{:#?}",
        plan.notes
    );
}

#[test]
fn interrupts_that_may_be_of_several_interfaces_or_queues_stay_where_they_are() {
    check_unmoved(
        ports(Kind::Mlx5).path(),
        0,
        &["eth0", "eth1"],
        "whose names do not say whose they are",
    );
    // The CPUs of these interrupts are set aside, and no others are reported to be.
    let plan_of_ports = plan_of(ports(Kind::Mlx5).path(), &Request::default());
    for placed in &plan_of_ports.placement.interfaces {
        assert_eq!(
            (placed.irq_cpus.to_string(), placed.steering_cpus.len()),
            ("3".to_owned(), 0)
        );
        let reasons = placed.reasons.join("; ");
        assert!(reasons.contains("not moved go to CPU 3"), "{reasons}");
    }
    assert_eq!(
        plan_of_ports.placement.application_cpus.to_string(),
        "1-2,4-15"
    );
    let root = Machine::new(1, 16, 1)
        .with("eth0", Kind::Ixgbevf, 0, 3, 3)
        .write();
    let path = root.path().join("proc/interrupts");
    let text = fs::read_to_string(&path).expect("read");
    fs::write(&path, text.replace("eth0-TxRx-2", "eth0-TxRx-1")).expect("written");
    check_unmoved(
        root.path(),
        1,
        &["eth0"],
        "several interrupts for one queue",
    );
}

/// Writes what a plan proposes into its files, as a kernel that takes everything would.
fn write_down(root: &Path, plan: &Plan) {
    for action in &plan.actions {
        if let Some(path) = action.path.strip_prefix('/') {
            let text = format!("{}\n", action.proposed);
            fs::write(root.join(path), &text).expect("written");
            // The kernel moves the interrupt where it may go.
            if let Some(place) = path.strip_suffix("/smp_affinity_list") {
                fs::write(root.join(place).join("effective_affinity_list"), text).expect("written");
            }
        }
    }
}

#[track_caller]
fn check_whole(machine: &Machine) {
    let root = machine.write();
    for (goal, role) in [
        (Goal::Throughput, Role::Server),
        (Goal::Latency, Role::Client),
    ] {
        let request = Request {
            goal,
            role,
            ..Request::default()
        };
        let facts = read(root.path());
        let first = advise::plan(&facts, &request).expect("a plan");
        check(&facts, &first);
        write_down(root.path(), &first);
        let again = plan_of(root.path(), &request);
        assert_eq!(again.actions, [], "nothing is left to do on {machine:?}");
        assert_eq!(again.placement, first.placement);
    }
}

#[test]
fn machines_of_many_shapes_have_plans_that_hold() {
    let mut hybrid = Machine::new(1, 14, 1).with("eth0", Kind::Virtio, 0, 2, 0);
    hybrid.slow_cores = 8;
    let mut sparse = Machine::new(2, 8, 2).with("eth0", Kind::Mlx5, 1, 4, 0);
    sparse.offline = vec![0, 1, 2, 9, 17, 30];
    let mut isolated = Machine::new(1, 16, 1).with("eth0", Kind::Ena, 0, 2, 0);
    isolated.isolated = (8..16).collect();
    let mut few_shared = Machine::new(1, 32, 1).with("eth0", Kind::Ena, 0, 2, 0);
    few_shared.isolated = (8..32).collect();
    let shapes = [
        Machine::new(1, 1, 1).with("eth0", Kind::Virtio, 0, 1, 0),
        Machine::new(1, 2, 1).with("eth0", Kind::Virtio, -1, 2, 0),
        Machine::new(1, 1, 4).with("eth0", Kind::Virtio, -1, 2, 0),
        Machine::new(1, 4, 1).with("eth0", Kind::Ena, 0, 4, 0),
        Machine::new(1, 8, 2).with("eth0", Kind::Ena, 0, 8, 0),
        Machine::new(1, 2, 2).with("eth0", Kind::Virtio, -1, 4, 0),
        Machine::new(1, 3, 1).with("eth0", Kind::Virtio, 0, 3, 0),
        Machine::new(1, 4, 2).with("eth0", Kind::Ena, 0, 8, 0),
        Machine::new(1, 5, 1).with("eth0", Kind::Virtio, 0, 1, 0),
        Machine::new(1, 7, 2).with("eth0", Kind::Ena, 0, 3, 0),
        Machine::new(2, 3, 1).with("eth0", Kind::Ena, 1, 2, 0),
        Machine::new(8, 2, 2).with("eth0", Kind::Mlx5, 3, 1, 0),
        Machine::new(16, 8, 1).with("eth0", Kind::Mlx5, 0, 64, 0),
        (0..4).fold(Machine::new(1, 16, 1), |machine, at| {
            machine.with(&format!("eth{at}"), Kind::Ixgbevf, 0, 2, 0)
        }),
        few_shared,
        Machine::new(2, 8, 2).with("eth0", Kind::Gve, 0, 16, 0),
        Machine::new(2, 1, 1).with("eth0", Kind::Ena, -1, 2, 0),
        Machine::new(2, 10, 2)
            .with("eth0", Kind::Mlx5, 0, 40, 0)
            .with("eth1", Kind::Mlx5, 1, 1, 5),
        Machine::new(4, 8, 2)
            .with("eth0", Kind::Ixgbevf, -1, 8, 0)
            .with("eth1", Kind::Ena, 3, 2, 9),
        Machine::new(8, 8, 4).with("eth0", Kind::Mlx5, 7, 64, 0),
        Machine::new(8, 1, 1).with("eth0", Kind::Mlx5, 2, 1, 0),
        Machine::new(1, 128, 2)
            .with("eth0", Kind::Ena, 0, 1, 0)
            .with("eth1", Kind::Ena, 0, 3, 0),
        Machine::new(2, 16, 1).with("eth0", Kind::Ixgbevf, 5, 2, 0),
        Machine::new(2, 12, 1),
        hybrid,
        sparse,
        isolated,
    ];
    for machine in shapes {
        check_whole(&machine);
    }
}

fn machines() -> impl Strategy<Value = Machine> {
    let kinds = prop_oneof![
        Just(Kind::Ixgbevf),
        Just(Kind::Ena),
        Just(Kind::Mlx5),
        Just(Kind::Gve),
        Just(Kind::Virtio)
    ];
    let card = (kinds, -1i64..4, 1usize..20);
    let cards = prop::collection::vec(card, 0..4);
    (1usize..5, 1usize..13, 1usize..5, cards, any::<u64>()).prop_map(
        |(nodes, cores, siblings, cards, seed)| {
            let mut machine = Machine::new(nodes, cores, siblings);
            let cpus = nodes * cores * siblings;
            for (at, (kind, node, queues)) in cards.into_iter().enumerate() {
                let node = if node < nodes as i64 { node } else { -1 };
                machine = machine.with(
                    &format!("eth{at}"),
                    kind,
                    node,
                    queues,
                    (seed as usize + at) % cpus,
                );
            }
            // A few places do not run; never all of them.
            machine.offline = (1..cpus)
                .filter(|place| seed.rotate_left(*place as u32) % 11 == 0)
                .collect();
            let online = machine.cpus();
            for card in &mut machine.interfaces {
                card.irq_cpu = online[card.irq_cpu % online.len()];
            }
            machine
        },
    )
}

/// Machines with several kinds of cores, gaps in the node numbers, memory-only nodes, isolated CPUs, and interrupts of every
/// driver.
fn uneven_machines() -> impl Strategy<Value = Machine> {
    let card = (0..=MOVABLE.len(), any::<usize>(), 1usize..13);
    let cards = prop::collection::vec(card, 1..4);
    let shape = (1usize..4, 1usize..11, 1usize..3);
    (shape, cards, any::<[u8; 4]>()).prop_map(|((nodes, cores, siblings), cards, seed)| {
        let [mixed, tiny, isolated, gaps] = seed.map(usize::from);
        let mut machine = Machine::new(nodes, cores, siblings);
        if mixed % 2 == 0 && cores > 1 {
            machine.slow_cores = 1 + mixed / 2 % (cores - 1);
            machine.low_power_cores = tiny % (machine.slow_cores + 1);
        }
        if gaps % 2 == 0 {
            let id = |node: usize| 2 * node + gaps / 2 % 3;
            machine.node_ids = (0..nodes).map(id).collect();
            machine.memory_nodes = vec![id(0) + 1, id(nodes)];
        }
        let cpus = machine.cpus();
        if isolated % 2 == 0 {
            // Up to all but one core, from the last.
            let left = siblings * (1 + isolated / 2 % (nodes * cores));
            machine.isolated = cpus[left.min(cpus.len())..].to_vec();
        }
        for (at, (kind, place, queues)) in cards.into_iter().enumerate() {
            let kind = MOVABLE.get(kind).copied().unwrap_or(Kind::Dpaa2);
            let node = machine.node_ids.get(place % (nodes + 1));
            let node = node.map_or(-1, |id| *id as i64);
            let name = format!("eth{at}");
            machine = machine.with(&name, kind, node, queues, cpus[place % cpus.len()]);
        }
        machine
    })
}

/// The same machine with node numbers without gaps, and without memory-only nodes.
fn dense(machine: &Machine) -> Machine {
    let mut dense = machine.clone();
    for card in &mut dense.interfaces {
        let at = machine
            .node_ids
            .iter()
            .position(|id| *id as i64 == card.node);
        card.node = at.map_or(-1, |at| at as i64);
    }
    dense.node_ids = (0..machine.nodes).collect();
    dense.memory_nodes = Vec::new();
    dense
}

/// Checks that isolated CPUs belong to the application unless an unmoved interrupt may go there, and that the application has half
/// of the fast, not isolated cores for itself if there are several kinds.
#[track_caller]
fn check_uneven(facts: &Facts, plan: &Plan) {
    let topology = &facts.topology;
    let placement = &plan.placement;
    let cpus =
        |interface: &advise::InterfacePlacement| interface.irq_cpus.union(&interface.steering_cpus);
    let interfaces = placement.interfaces.iter();
    let network = interfaces.fold(CpuSet::new(), |all, one| all.union(&cpus(one)));
    let network = topology.with_siblings(&network);
    let own = placement.application_cpus.minus(&network);
    let has_others = topology.isolated != topology.allowed;
    let stays = facts
        .interfaces
        .iter()
        .any(|one| !one.unclear_cpus.is_empty());
    if has_others && !topology.isolated.is_empty() && !stays {
        assert_eq!(placement.sharing, Sharing::Nothing);
        assert!(
            topology.isolated.minus(&network).is_subset(&own),
            "{placement:#?}"
        );
    }
    if placement.sharing == Sharing::Everything {
        return;
    }
    let usable = |cpu: &usize| !has_others || !topology.isolated.contains(*cpu);
    for node in &topology.nodes {
        let cores = topology.cores.iter().filter(|core| {
            core.place.node == Some(node.id) && core.cpus.iter().any(|cpu| usable(&cpu))
        });
        let cores: Vec<_> = cores.collect();
        let fastest = cores.iter().map(|core| core.capacity).max().unwrap_or(0);
        let is_fast = |core: &&&facts::topology::Core| core.capacity * 100 >= fastest * 90;
        let fast: Vec<_> = cores.iter().filter(is_fast).collect();
        let kept = fast
            .iter()
            .filter(|core| core.cpus.intersects(&own))
            .count();
        let is_mixed = fast.len() < cores.len();
        assert!(
            !is_mixed || kept * 2 >= fast.len(),
            "{kept} of {}: {placement:#?}",
            fast.len()
        );
    }
}

/// 200 machines, the same in each run.
#[test]
fn plans_of_generated_machines_keep_their_properties() {
    let config = ProptestConfig {
        cases: 200,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let seed = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(config, seed);
    let outcome = runner.run(&uneven_machines(), |machine| {
        let root = machine.write();
        let facts = read(root.path());
        let first = advise::plan(&facts, &Request::default()).expect("a plan");
        check(&facts, &first);
        check_uneven(&facts, &first);
        prop_assert_eq!(&first.placement.interfaces.len(), &machine.interfaces.len());
        write_down(root.path(), &first);
        let again = plan_of(root.path(), &Request::default());
        prop_assert_eq!(&again.actions, &[], "nothing is left to do");
        prop_assert_eq!(&again.placement, &first.placement);
        let same = plan(&dense(&machine));
        prop_assert_eq!(places(&machine, &first), places(&machine, &same));
        Ok(())
    });
    outcome.expect("every property holds");
}

/// The CPUs of a plan as places of the machine, where a CPU and its siblings are one place: which of them has the lowest
/// number is the firmware's choice.
fn places(machine: &Machine, plan: &Plan) -> Vec<Vec<BTreeSet<usize>>> {
    let core = |cpu: usize| {
        machine
            .numbers
            .iter()
            .position(|number| *number == cpu)
            .expect("a CPU")
            / machine.siblings
    };
    let cores = |cpus: &CpuSet| cpus.iter().map(core).collect::<BTreeSet<usize>>();
    let interfaces = plan.placement.interfaces.iter();
    let mut all: Vec<_> = interfaces
        .map(|interface| {
            let queues = interface.queues.iter();
            queues
                .flat_map(|queue| {
                    [
                        cores(&queue.irq_cpu.into_iter().collect()),
                        cores(&queue.steering_cpus),
                    ]
                })
                .collect()
        })
        .collect();
    all.push(vec![
        cores(&plan.placement.application_cpus),
        cores(&plan.placement.system_cpus),
    ]);
    all
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 10, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_plan_holds_and_is_done_when_it_is_done(machine in machines()) {
        check_whole(&machine);
    }

    #[test]
    fn queues_that_a_plan_asks_for_are_those_that_the_next_one_keeps(
        (machine, most) in (machines(), prop::collection::vec(1usize..40, 4))
    ) {
        counted(&machine, &most, None);
    }

    #[test]
    fn renumbering_cpus_permutes_the_plan(
        (machine, order) in machines().prop_flat_map(|machine| {
            let cpus: Vec<usize> = (0..machine.numbers.len()).collect();
            (Just(machine), Just(cpus).prop_shuffle())
        })
    ) {
        let renumbered = machine.renumbered(&order);
        prop_assert_eq!(places(&machine, &plan(&machine)), places(&renumbered, &plan(&renumbered)));
    }

    #[test]
    fn a_far_node_takes_no_packet_and_no_cpu(machine in machines()) {
        let mut machine = machine;
        let nodes = machine.nodes as i64;
        for card in &mut machine.interfaces {
            card.node = card.node.max(0) % nodes;
        }
        let node_ids = (0..=machine.nodes).collect();
        let mut larger = Machine { nodes: machine.nodes + 1, node_ids, ..machine.clone() };
        let first = machine.numbers.len();
        larger.numbers.extend(first..first + machine.cores * machine.siblings);
        let (plan, other) = (plan(&machine), plan(&larger));
        let far: CpuSet = larger.node_cpus(machine.nodes).into_iter().collect();
        // A machine of one to three cores shares everything; with a node more it no longer has to.
        prop_assume!(plan.placement.sharing != Sharing::Everything);
        let of_cards = |plan: &Plan| {
            let cards = plan.placement.interfaces.iter();
            let cpus = cards.map(|card| card.irq_cpus.union(&card.steering_cpus));
            cpus.fold(CpuSet::default(), |sum, cpus| sum.union(&cpus))
        };
        let (one, two) = (of_cards(&plan), of_cards(&other));
        prop_assert!(!two.intersects(&far), "{two}");
        // A quarter of a larger machine is more, of which the device's node gives half. Cards that shared CPUs may have fewer, of their own.
        prop_assert!(one.len() <= two.len(), "{one} {two}");
    }
}

#[test]
fn a_bond_is_planned_by_its_devices_and_an_unknown_name_is_an_error() {
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
        "there is no interface eth7; there are bond0, eth0, eth1"
    );
}

#[test]
fn old_advice_is_recognised_and_never_proposed() {
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
fn settings_that_are_high_already_are_left_alone() {
    let root = cloud(1).write();
    fs::write(root.path().join("proc/sys/net/core/somaxconn"), "1000000\n").expect("written");
    let plan = plan_of(root.path(), &Request::default());
    assert_eq!(proposed(&plan, "somaxconn"), [""; 0]);
    assert_eq!(proposed(&plan, "tcp_max_syn_backlog"), ["65536"]);
}

#[test]
fn queues_with_one_interrupt_are_placed_together() {
    let shared = plan(&Machine::new(1, 16, 1).with("eth0", Kind::VirtioShared, 0, 4, 5));
    assert_eq!(layout(&shared), ["0 | 1-7"; 4]);
    assert_eq!(proposed(&shared, "smp_affinity_list"), ["0"]);
    let pairs = plan(&Machine::new(1, 16, 1).with("eth0", Kind::IcePairs, 0, 8, 5));
    assert_eq!(
        layout(&pairs),
        [
            "12 | ", "12 | ", "13 | ", "13 | ", "14 | ", "14 | ", "15 | ", "15 | "
        ]
    );
    assert_eq!(
        proposed(&pairs, "smp_affinity_list"),
        ["12", "13", "14", "15"]
    );
}

#[test]
fn channels_are_moved_by_their_cpu() {
    let machine = Machine::new(1, 16, 1).with("eth0", Kind::Netvsc, 0, 4, 5);
    let plan = plan(&machine);
    assert_eq!(layout(&plan), ["12 | ", "13 | ", "14 | ", "15 | "]);
    let paths = plan
        .actions
        .iter()
        .filter(|action| action.path.ends_with("/cpu"));
    let paths: Vec<(&str, &str)> = paths
        .map(|action| (&action.path[..], &action.proposed[..]))
        .collect();
    assert_eq!(
        paths[0],
        ("/sys/class/net/eth0/device/channels/20/cpu", "12")
    );
    assert_eq!(
        paths[3],
        ("/sys/class/net/eth0/device/channels/29/cpu", "15")
    );
}

#[test]
fn interrupts_of_all_cpus_that_stay_are_shared_by_all() {
    let machine = Machine::new(1, 16, 1)
        .with("eth0", Kind::Dpaa2, 0, 8, 3)
        .with("eth1", Kind::Ena, 0, 2, 3);
    let root = machine.write();
    let plan = plan_of(root.path(), &Request::default());
    check(&read(root.path()), &plan);
    assert_eq!(plan.placement.sharing, Sharing::Everything);
    assert_eq!(plan.placement.interfaces[0].irq_cpus.to_string(), "0-15");
    assert_eq!(plan.placement.application_cpus.to_string(), "0-15");
    let reasons = plan.placement.interfaces[0].reasons.join("; ");
    assert!(reasons.contains("more than half of the cores"), "{reasons}");
    let notes = plan.notes.iter().filter(|note| note.about == "eth0");
    assert!(
        notes.clone().any(|note| note.text.contains("portals")),
        "{:?}",
        plan.notes
    );
}

#[test]
fn tables_of_packet_filters_are_noted() {
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
fn timers_of_systemd_are_one_note_where_systemd_runs() {
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
    // Two that the packages of systemd itself want, one of which somebody has masked.
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
fn keys_of_the_json_are_those_that_are_documented() {
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
