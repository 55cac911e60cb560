//! Properties of plans for generated machines of many shapes.

use std::collections::BTreeSet;

use onrush_machine::cpus::CpuSet;
use onrush_tune::advise::{self, Goal, Plan, Request, Role, Sharing};
use onrush_tune::facts::{self, Facts};
use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};

use crate::machine::plans::{check, counted, plan, plan_of, read, write_down};
use crate::machine::{Kind, MOVABLE, Machine};

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
fn plans_are_valid_for_many_machine_shapes() {
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
            // Some CPUs are offline, never all.
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
            // All but at least one core, from the last.
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

/// Checks that isolated CPUs belong to the application unless an unmoved interrupt is allowed there, and that the
/// application has half of the fast, not isolated cores to itself if there are several kinds.
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
#[ignore = "slow: make test-all"]
fn generated_machines_satisfy_plan_invariants() {
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

/// CPUs of a plan as positions; SMT siblings are one position, since firmware decides which has the lowest number.
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
    fn applied_plan_is_complete(machine in machines()) {
        check_whole(&machine);
    }

    #[test]
    #[ignore = "slow: make test-all"]
    fn replanning_keeps_queue_counts(
        (machine, most) in (machines(), prop::collection::vec(1usize..40, 4))
    ) {
        counted(&machine, &most, None);
    }

    #[test]
    fn renumbering_cpus_permutes_plan(
        (machine, order) in machines().prop_flat_map(|machine| {
            let cpus: Vec<usize> = (0..machine.numbers.len()).collect();
            (Just(machine), Just(cpus).prop_shuffle())
        })
    ) {
        let renumbered = machine.renumbered(&order);
        prop_assert_eq!(places(&machine, &plan(&machine)), places(&renumbered, &plan(&renumbered)));
    }

    #[test]
    #[ignore = "slow: make test-all"]
    fn additional_remote_node_does_not_change_plan(machine in machines()) {
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
        // A machine of one to three cores shares everything; with one more node it need not.
        prop_assume!(plan.placement.sharing != Sharing::Everything);
        let of_cards = |plan: &Plan| {
            let cards = plan.placement.interfaces.iter();
            let cpus = cards.map(|card| card.irq_cpus.union(&card.steering_cpus));
            cpus.fold(CpuSet::default(), |sum, cpus| sum.union(&cpus))
        };
        let (one, two) = (of_cards(&plan), of_cards(&other));
        prop_assert!(!two.intersects(&far), "{two}");
        // A quarter of a larger machine is more, half of it from the device's node. Cards that shared CPUs may
        // have fewer, but separate ones.
        prop_assert!(one.len() <= two.len(), "{one} {two}");
    }
}
