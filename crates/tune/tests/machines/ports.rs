//! Interrupts of several queues or ports, and interrupts that are not moved.

use std::fs;
use std::path::Path;

use onrush_tune::advise::{Request, Sharing};
use onrush_tune::apply::{self, Force, Journal, Reverted, Root};

use crate::machine::plans::{check, layout, plan, plan_of, proposed, read, write_down};
use crate::machine::{Kind, Machine};

/// Two interfaces of one device, with the interrupts of both in each table.
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
fn shared_device_interrupts_are_assigned_by_interface_name() {
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

/// Checks the notes about interrupts that are not moved.
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
fn ambiguous_interrupts_are_not_moved() {
    check_unmoved(
        ports(Kind::Mlx5).path(),
        0,
        &["eth0", "eth1"],
        "whose names do not show which interface they belong to",
    );
    // Only the CPUs of these interrupts are set aside.
    let plan_of_ports = plan_of(ports(Kind::Mlx5).path(), &Request::default());
    for placed in &plan_of_ports.placement.interfaces {
        assert_eq!(
            (placed.irq_cpus.to_string(), placed.steering_cpus.len()),
            ("3".to_owned(), 0)
        );
        let reasons = placed.reasons.join("; ");
        assert!(reasons.contains("not moved run on CPU 3"), "{reasons}");
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

#[test]
fn queues_sharing_interrupt_are_placed_together() {
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
fn vmbus_channels_are_moved_by_cpu_file() {
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
fn immovable_interrupts_on_all_cpus_make_all_cpus_shared() {
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

/// Ports of one MANA device: eth0 with the device's interrupts and four queues, and eth1 with some.
fn ports_of_mana(kind: Kind, queues: usize) -> tempfile::TempDir {
    let machine = Machine::new(1, 16, 1)
        .with("eth0", kind, 0, 4, 3)
        .with("eth1", kind, 0, queues, 3);
    let root = machine.write();
    let pci = root.path().join("sys/devices/pci0000:00");
    for (name, slot, index) in [("eth0", "01", "2"), ("eth1", "02", "3")] {
        let port = pci.join(format!("0000:00:{slot}.0/net/{name}"));
        fs::write(port.join("ifindex"), index).expect("written");
        fs::remove_file(port.join("device")).expect("it was there");
        std::os::unix::fs::symlink("../../../0000:00:01.0", port.join("device")).expect("a link");
    }
    root
}

#[test]
fn mana_ports_share_queue_interrupts() {
    for queues in [4, 2] {
        let root = ports_of_mana(Kind::Mana, queues);
        let facts = read(root.path());
        for (name, queues) in [("eth0", 4), ("eth1", queues)] {
            let port = facts.interface(name).expect("a port");
            assert_eq!(port.irqs_unclear, None);
            // Interrupt 40 is for control.
            let irq = |queue| port.receive_irq(queue).expect("one").number;
            assert!(
                (0..queues).all(|queue| irq(queue) == 41 + queue),
                "{port:#?}"
            );
        }
        let plan = plan_of(root.path(), &Request::default());
        check(&facts, &plan);
        assert_eq!(
            proposed(&plan, "smp_affinity_list"),
            ["12", "13", "14", "15"]
        );
        let placed = &plan.placement.interfaces;
        assert_eq!(placed[0].queues[..queues], placed[1].queues[..]);
        let reasons = placed[1].reasons.join("; ");
        assert!(
            reasons.contains("share the interrupts of eth0"),
            "{reasons}"
        );
        write_down(root.path(), &plan);
        assert_eq!(plan_of(root.path(), &Request::default()).actions, []);
    }
}

#[test]
fn reasons_mention_port_with_shared_interrupts() {
    let root = ports_of_mana(Kind::Mana, 2);
    for (asked, other) in [("eth1", "eth0"), ("eth0", "eth1")] {
        let request = Request {
            interfaces: vec![asked.to_owned()],
            ..Request::default()
        };
        let plan = plan_of(root.path(), &request);
        let words = format!("{other} uses the same interrupt");
        let actions = plan.actions.iter();
        let moved = actions.filter(|action| action.path.starts_with("/proc/irq/"));
        let mut named = 0;
        for action in moved {
            // eth1 has two queues.
            let is_shared = ["/41/", "/42/"].iter().any(|irq| action.path.contains(irq));
            assert_eq!(action.reason.contains(&words), is_shared, "{action:#?}");
            named += usize::from(is_shared);
        }
        assert!(named > 0, "{:#?}", plan.actions);
    }
}

#[test]
fn revert_restores_interrupts_of_all_ports() {
    let root = ports_of_mana(Kind::Mana, 2);
    let values = || {
        (41..45).map(|irq| {
            root.path()
                .join(format!("proc/irq/{irq}/smp_affinity_list"))
        })
    };
    let values = || values().map(|path| fs::read_to_string(path).expect("read"));
    let before: Vec<String> = values().collect();
    let mut machine = Root::open(root.path()).expect("a root");
    let journal = || {
        Journal::open(&Journal::path_below(root.path()).expect("a place"), "").expect("a journal")
    };
    apply::apply(&mut machine, &Request::default(), &mut journal()).expect("applied");
    assert_ne!(values().collect::<Vec<_>>(), before);
    let reverted = apply::revert(&mut machine, journal(), Force::Leave).expect("reverted");
    assert!(reverted.iter().all(Reverted::is_settled), "{reverted:#?}");
    assert_eq!(values().collect::<Vec<_>>(), before);
}

#[test]
fn mana_port_with_most_queues_is_primary() {
    let root = ports_of_mana(Kind::Mana, 2);
    for (one, other) in [("eth0", "z"), ("eth1", "eth0"), ("z", "eth1")] {
        let net = root.path().join("sys/class/net");
        fs::rename(net.join(one), net.join(other)).expect("renamed");
    }
    let facts = read(root.path());
    let plan = plan_of(root.path(), &Request::default());
    check(&facts, &plan);
    assert_eq!(
        proposed(&plan, "smp_affinity_list"),
        ["12", "13", "14", "15"]
    );
    let placed = &plan.placement.interfaces;
    let sizes: Vec<usize> = placed.iter().map(|placed| placed.queues.len()).collect();
    assert_eq!(sizes, [2, 4]);
    assert_eq!(placed[1].queues[..2], placed[0].queues[..]);
}

#[test]
fn mana_vectors_are_known_for_single_port() {
    let one = Machine::new(1, 16, 1).with("eth0", Kind::ManaVectors, 0, 4, 3);
    let facts = read(one.write().path());
    let eth0 = facts.interface("eth0").expect("eth0");
    for queue in 0..4 {
        let name = &eth0.receive_irq(queue).expect("one").name;
        assert!(
            name.starts_with(&format!("mana_msi{}@", queue + 1)),
            "{name}"
        );
    }
    assert_eq!(layout(&plan(&one)), ["12 | ", "13 | ", "14 | ", "15 | "]);
    check_unmoved(
        ports_of_mana(Kind::ManaVectors, 4).path(),
        0,
        &["eth0", "eth1"],
        "whose names do not show which interface they belong to",
    );
}

/// Checks the number of interrupts with known queues after renaming two of them.
#[track_caller]
fn check_ranges(names: [&str; 2], known: usize) {
    let root = Machine::new(1, 16, 1)
        .with("eth0", Kind::IcePairs, 0, 5, 3)
        .write();
    let path = root.path().join("proc/interrupts");
    let text = fs::read_to_string(&path).expect("read");
    let [from, to] = names;
    assert!(text.contains(from), "{text}");
    fs::write(&path, text.replace(from, to)).expect("written");
    let facts = read(root.path());
    let eth0 = facts.interface("eth0").expect("eth0");
    let found = eth0.irqs.iter().filter(|irq| irq.queue.is_some());
    assert_eq!(found.count(), known, "{eth0:#?}");
    assert_eq!(eth0.unclear_cpus.is_empty(), known == 3, "{eth0:#?}");
}

#[test]
fn ice_queue_ranges_are_inclusive_and_disjoint() {
    let pairs = Machine::new(1, 16, 1).with("eth0", Kind::IcePairs, 0, 5, 3);
    let facts = read(pairs.write().path());
    let eth0 = facts.interface("eth0").expect("eth0");
    let of = |queue| eth0.receive_irq(queue).map(|irq| (irq.queue, irq.queues));
    let found: Vec<_> = (0..5).filter_map(of).collect();
    let expected = [
        (Some(0), 2),
        (Some(0), 2),
        (Some(2), 2),
        (Some(2), 2),
        (Some(4), 1),
    ];
    assert_eq!(found, expected);
    check_ranges(["TxRx-2-3", "TxRx-2-3"], 3);
    // Two interrupts claim queue 2, or queues 2 and 3.
    check_ranges(["TxRx-0-1", "TxRx-0-2"], 1);
    check_ranges(["TxRx-0-1", "TxRx-0-3"], 1);
    check_ranges(["TxRx-2-3", "TxRx-3-2"], 2);
}
