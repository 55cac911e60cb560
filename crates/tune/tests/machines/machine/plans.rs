//! Plans of machines, and properties of all plans.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use onrush_machine::cpus::CpuSet;
use onrush_tune::advise::{self, Plan, Request, Sharing, ValueFormat};
use onrush_tune::facts::ethtool::{Channels, Ethtool};
use onrush_tune::facts::interface::AffinityFile;
use onrush_tune::facts::{self, Facts};
use onrush_tune::tree::Tree;

use super::Machine;

pub(crate) fn read(root: &Path) -> Facts {
    facts::read(&Tree::open(root).expect("a root"), None).expect("facts")
}

pub(crate) fn plan_of(root: &Path, request: &Request) -> Plan {
    advise::plan(&read(root), request).expect("a plan")
}

pub(crate) fn plan(machine: &Machine) -> Plan {
    plan_of(machine.write().path(), &Request::default())
}

/// `irq | steering` of each queue in order.
pub(crate) fn layout(plan: &Plan) -> Vec<String> {
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

/// Proposed values of files with a name, in the order of the plan.
pub(crate) fn proposed(plan: &Plan, name: &str) -> Vec<String> {
    let with_name = plan
        .actions
        .iter()
        .filter(|action| action.path.ends_with(name));
    with_name.map(|action| action.proposed.clone()).collect()
}

/// CPUs that handle packet interrupts of an interface after the plan is applied.
pub(crate) fn interrupted(facts: &Facts, plan: &Plan, name: &str) -> CpuSet {
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

#[track_caller]
pub(crate) fn check(facts: &Facts, plan: &Plan) {
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
            !ValueFormat::of(&action.path).is_same(&action.current, &action.proposed),
            "{action:?} changes nothing"
        );
    }
}

/// Checks that every CPU listed with interrupts handles some. New queues have none yet.
#[track_caller]
pub(crate) fn check_interrupted(facts: &Facts, plan: &Plan) {
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

pub(crate) fn check_locality(facts: &Facts, placed: &advise::InterfacePlacement) {
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

/// Writes the proposed values into the files, like a kernel that accepts everything.
pub(crate) fn write_down(root: &Path, plan: &Plan) {
    for action in &plan.actions {
        if let Some(path) = action.path.strip_prefix('/') {
            let text = format!("{}\n", action.proposed);
            fs::write(root.join(path), &text).expect("written");
            // The kernel moves the interrupt to the allowed CPU.
            if let Some(place) = path.strip_suffix("/smp_affinity_list") {
                fs::write(root.join(place).join("effective_affinity_list"), text).expect("written");
            }
        }
    }
}

/// Facts of a machine with a maximum number of queues per interface, and optionally CPUs allowed by the control group.
pub(crate) fn changeable(machine: &Machine, most: &[usize], allowed: Option<&str>) -> Facts {
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

pub(crate) fn counted(machine: &Machine, most: &[usize], allowed: Option<&str>) -> Vec<usize> {
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
