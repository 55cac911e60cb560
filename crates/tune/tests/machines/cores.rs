//! CPUs of the network: gradual changes with the numbers of queues and CPUs, shares by speed, link and traffic, and use
//! of nearby nodes. On many machines in memory.

use std::collections::BTreeMap;

use onrush_machine::cpus::CpuSet;
use onrush_tune::advise::{self, Goal, Placement, Request, Sharing};
use onrush_tune::facts::{Facts, Interface};
use proptest::prelude::*;

use crate::memory::{card, changeable, machine, with_queues};

fn placed(facts: &Facts) -> Placement {
    let plan = advise::plan(facts, &Request::default()).expect("a plan");
    check(facts, &plan.placement);
    plan.placement
}

/// CPUs of an interface: with interrupts, and all.
fn cpus(placement: &Placement, name: &str) -> (CpuSet, CpuSet) {
    let mut all = placement.interfaces.iter();
    let found = all
        .find(|placed| placed.name == name)
        .expect("it is planned");
    (
        found.irq_cpus.clone(),
        found.irq_cpus.union(&found.steering_cpus),
    )
}

#[track_caller]
fn check(facts: &Facts, placement: &Placement) {
    let topology = &facts.topology;
    let mut irq = CpuSet::new();
    let mut steering = CpuSet::new();
    for (interface, placed) in facts.interfaces.iter().zip(&placement.interfaces) {
        assert!(placed.queues.len() >= interface.receive.len().min(1));
        assert!(placed.queues.iter().all(|queue| queue.irq_cpu.is_some()));
        assert!(!placed.reasons.is_empty(), "{}", placed.name);
        irq = irq.union(&placed.irq_cpus);
        steering = steering.union(&placed.steering_cpus);
        for queue in &placed.queues {
            let node = queue.irq_cpu.and_then(|cpu| topology.node_of(cpu));
            let node = node
                .map(|node| topology.node_cpus(node))
                .unwrap_or_default();
            assert!(queue.steering_cpus.len() <= 7 && queue.steering_cpus.is_subset(&node));
        }
    }
    assert!(!irq.intersects(&steering), "{placement:#?}");
    assert!(!topology.with_siblings(&irq).intersects(&steering));
    assert!(irq.union(&steering).is_subset(&topology.allowed));
    assert!(!irq.union(&steering).intersects(&topology.isolated));
    assert!(!placement.system_cpus.intersects(&topology.isolated));
    assert!(!placement.application_cpus.is_empty());
    if placement.sharing == Sharing::Nothing {
        assert!(!placement.application_cpus.intersects(&irq.union(&steering)));
    }
}

/// Number of CPUs of the network, and size of the largest mask of a queue; `None` if everything is shared.
fn taken(facts: &Facts, queues: usize) -> Option<(i64, i64)> {
    let card = card("eth0", 0, queues, None);
    let placement = advise::place(facts, &[&card], &[queues], Goal::Throughput);
    let placed = &placement.interfaces[0];
    let masks = placed.queues.iter().map(|queue| queue.steering_cpus.len());
    let mask = masks.max().unwrap_or(0) as i64;
    let all = placed.irq_cpus.union(&placed.steering_cpus).len() as i64;
    (placement.sharing != Sharing::Everything).then_some((all, mask))
}

/// One more queue adds at most a group of 8 CPUs, or removes at most 8 CPUs, and never grows a mask. One more core
/// changes the number of CPUs and the masks by at most 2. The network never gets more than half of the CPUs, and with
/// more queues its share approaches that of many queues.
#[test]
#[ignore = "slow: make test-all"]
fn placement_changes_gradually() {
    for siblings in [1, 2] {
        let mut before: Vec<Option<(i64, i64)>> = Vec::new();
        for cores in 1..=512 / siblings {
            // Every small number, and those around the changes of layout.
            let quarter = cores / 4;
            let facts = machine(1, cores, siblings, 1);
            let is_looked_at = |queues: &usize| {
                *queues <= 24 || queues.abs_diff(quarter) <= 3 || queues.is_multiple_of(16)
            };
            let mut row: Vec<Option<(i64, i64)>> = Vec::new();
            for queues in 1..=128usize {
                if !(is_looked_at(&queues) || is_looked_at(&(queues + 1)))
                    || siblings == 2 && cores % 7 > 1
                {
                    row.push(None);
                    continue;
                }
                let now = taken(&facts, queues);
                let place = format!("{queues} queues, {cores} cores, {siblings} siblings");
                if let Some((all, mask)) = now {
                    let half = (cores * siblings / 2).max(2) as i64;
                    assert!(all <= half && mask <= 7, "{place}: {all}");
                    if queues * 4 >= cores.max(8) {
                        assert_eq!(
                            (all, mask),
                            (quarter.max(2).min(queues) as i64, 0),
                            "{place}"
                        );
                    }
                }
                let fewer = row.last().copied().flatten();
                if let (Some((all, mask)), Some((then, mask_then))) = (now, fewer) {
                    assert!(
                        (all - then).abs() <= 8 && mask <= mask_then,
                        "{place}: {then} {all}"
                    );
                }
                if let (Some((all, mask)), Some((then, mask_then))) =
                    (now, before.get(queues - 1).copied().flatten())
                {
                    let steps = ((all - then).abs(), (mask - mask_then).abs());
                    assert!(
                        steps.0 <= 2 && steps.1 <= 2,
                        "{place}: {then} {all}, {mask_then} {mask}"
                    );
                }
                row.push(now);
            }
            before = row;
        }
    }
}

#[test]
fn odd_queue_count_takes_similar_cores() {
    let facts = machine(1, 256, 1, 1);
    let all = |queues: usize| taken(&facts, queues).expect("set aside").0;
    assert_eq!([1, 8, 16, 63, 64, 65].map(all), [8, 64, 128, 65, 64, 64]);
}

#[test]
fn small_numa_node_borrows_nearby_nodes() {
    // 128 cores in 16 nodes, 8 of them in each package.
    let mut facts = machine(16, 8, 1, 8);
    facts.interfaces = vec![card("eth0", 3, 63, Some(100_000))];
    let placement = placed(&facts);
    let (irq, all) = cpus(&placement, "eth0");
    assert_eq!(irq, all);
    assert_eq!(irq.len(), 32, "a quarter of the machine");
    assert!(irq.is_subset(&(0..64).collect()), "{irq}");
    for node in 0..8 {
        assert_eq!(
            irq.intersection(&facts.topology.node_cpus(node)).len(),
            4,
            "half of each"
        );
    }
    let reasons = placement.interfaces[0].reasons.join("; ");
    assert!(
        reasons.contains("a quarter of the machine's 128 cores handles interrupts and nothing else, 28 of them in other nodes"),
        "{reasons}"
    );
    assert!(
        reasons.contains("for about 8.3 million packets per second"),
        "{reasons}"
    );
    // With one node per package, other packages are not used.
    facts = machine(16, 8, 1, 1);
    facts.interfaces = vec![card("eth0", 3, 63, Some(100_000))];
    let (irq, _) = cpus(&placed(&facts), "eth0");
    assert_eq!(irq.to_string(), "28-31");
}

/// Checks that slow or idle ports do not change the placement of a fast port.
#[track_caller]
fn check_unmoved(others: Vec<Interface>, counters: &[(&str, u64)]) {
    for queues in [1, 3, 8, 32, 64] {
        let mut facts = machine(2, 32, 1, 1);
        facts.counts.uptime = 100.0;
        let count = |(name, packets): &(&str, u64)| {
            let counters = BTreeMap::from([("rx_packets".to_owned(), *packets)]);
            ((*name).to_owned(), counters)
        };
        facts.counts.interfaces = counters.iter().map(count).collect();
        facts.interfaces = vec![changeable(card("fast", 0, queues, Some(100_000)), 64)];
        let alone = placed(&facts);
        facts.interfaces.extend(others.clone());
        let beside = placed(&facts);
        let (one, two) = (&alone.interfaces[0], &beside.interfaces[0]);
        assert_eq!(one.queues.len(), two.queues.len(), "{queues} queues");
        assert_eq!(
            cpus(&alone, "fast"),
            cpus(&beside, "fast"),
            "{queues} queues"
        );
    }
}

#[test]
fn idle_ports_get_no_cores() {
    let slow = |name: &str| changeable(card(name, 0, 8, Some(1_000)), 8);
    check_unmoved(vec![slow("a"), slow("b")], &[]);
    // The fast port is busy, or the only traffic is noise.
    check_unmoved(
        vec![slow("a"), slow("b")],
        &[("fast", 10_000_000), ("a", 90)],
    );
    check_unmoved(vec![slow("a"), slow("b")], &[("fast", 20), ("a", 90)]);
    let idle = |name: &str| changeable(card(name, 0, 16, Some(100_000)), 64);
    let down = |name: &str| Interface {
        state: Some("down".to_owned()),
        ..idle(name)
    };
    check_unmoved(vec![down("a"), down("b")], &[]);
}

#[test]
fn idle_standby_interface_gets_one_sixteenth_of_cores() {
    let mut facts = machine(1, 64, 1, 1);
    facts.counts.uptime = 100.0;
    let packets = BTreeMap::from([("rx_packets".to_owned(), 10_000_000)]);
    facts.counts.interfaces.insert("busy".to_owned(), packets);
    facts.interfaces = ["busy", "idle"]
        .map(|name| changeable(card(name, 0, 1, Some(100_000)), 64))
        .into();
    let placement = placed(&facts);
    assert_eq!(placement.interfaces[0].queues.len(), 15);
    assert_eq!(cpus(&placement, "busy").0.len(), 15);
}

#[test]
fn virtual_functions_do_not_reduce_parent_cores() {
    let function = |at: usize| Interface {
        physical_function: Some("0000:fast".to_owned()),
        ..changeable(card(&format!("v{at}"), 0, 8, Some(100_000)), 8)
    };
    check_unmoved((0..16).map(function).collect(), &[]);
    check_unmoved((0..16).map(function).collect(), &[("fast", 10_000_000)]);
}

#[test]
fn single_core_node_is_shared_with_neighbour() {
    let mut facts = machine(8, 1, 1, 8);
    facts.interfaces = vec![
        card("fast", 0, 8, Some(100_000)),
        card("slow", 1, 3, Some(100)),
    ];
    let placement = placed(&facts);
    assert!(cpus(&placement, "slow").0.len() <= 1);
    assert_eq!(
        cpus(&placement, "fast").0.len(),
        2,
        "a quarter of the machine"
    );
}

#[test]
fn traffic_outweighs_link_speed() {
    let mut facts = machine(1, 64, 1, 1);
    facts.counts.uptime = 100.0;
    let packets = BTreeMap::from([("rx_packets".to_owned(), 90_000_000)]);
    facts.counts.interfaces.insert("busy".to_owned(), packets);
    facts.interfaces = vec![
        card("busy", 0, 64, Some(10_000)),
        card("idle", 0, 1, Some(100_000)),
    ];
    let placement = placed(&facts);
    let (busy, idle) = (
        cpus(&placement, "busy").1.len(),
        cpus(&placement, "idle").1.len(),
    );
    assert!(busy >= 14 && idle <= 3, "{busy} {idle}");
}

#[test]
fn link_cores_are_limited_by_packet_rate() {
    let mut facts = machine(1, 128, 1, 1);
    for (speed, cores) in [(1_000, 6), (10, 1), (100_000, 32)] {
        facts.interfaces = vec![card("eth0", 0, 64, Some(speed))];
        assert_eq!(cpus(&placed(&facts), "eth0").0.len(), cores, "{speed} Mb/s");
    }
}

#[test]
fn netvsc_and_its_virtual_function_share_cpus() {
    let mut facts = machine(1, 16, 1, 1);
    let mut netvsc = card("eth0", 0, 8, Some(50_000));
    netvsc.lower = vec!["enP1".to_owned()];
    facts.interfaces = vec![card("enP1", 0, 8, Some(50_000)), netvsc];
    for wish in [vec![], vec!["eth0".to_owned()]] {
        let request = Request {
            interfaces: wish,
            ..Request::default()
        };
        let plan = advise::plan(&facts, &request).expect("a plan");
        check(&facts, &plan.placement);
        let both = ["enP1", "eth0"].map(|name| cpus(&plan.placement, name).0.to_string());
        assert_eq!(both, ["12-15", "12-15"]);
    }
}

#[test]
fn isolated_sibling_is_not_used() {
    let mut facts = machine(1, 16, 2, 1);
    facts.topology.isolated = (0..32).filter(|cpu| cpu % 2 == 1).collect();
    facts.interfaces = vec![card("eth0", 0, 16, None)];
    let placement = placed(&facts);
    assert!(!placement.interfaces[0].irq_cpus.is_empty());
    assert!(!placement.system_cpus.is_empty());
}

#[test]
fn small_capacity_differences_are_ignored() {
    let mut facts = machine(1, 16, 1, 1);
    facts.interfaces = vec![card("eth0", 0, 16, None)];
    let of_one = cpus(&placed(&facts), "eth0").0;
    for (at, core) in facts.topology.cores.iter_mut().enumerate() {
        core.capacity = if at % 3 == 0 { 1_024 } else { 980 };
    }
    assert_eq!(cpus(&placed(&facts), "eth0").0, of_one);
    for core in &mut facts.topology.cores[8..] {
        core.capacity = 600;
    }
    assert_eq!(cpus(&placed(&facts), "eth0").0.to_string(), "4-7");
}

fn sizes(cores: usize, queues: usize) -> (i64, i64) {
    let mut facts = machine(1, cores, 1, 1);
    facts.interfaces = vec![card("eth0", 0, queues, None)];
    let placement = placed(&facts);
    let irq = placement.interfaces[0].irq_cpus.len() as i64;
    (irq, placement.application_cpus.len() as i64)
}

#[test]
fn placement_changes_gradually_on_small_machines() {
    assert_eq!(
        [6, 7, 8, 9, 11, 12].map(|cores| sizes(cores, cores).0),
        [6, 7, 6, 5, 3, 3]
    );
    let check = |one: (usize, usize), two: (usize, usize)| {
        let (a, b) = (sizes(one.0, one.1), sizes(two.0, two.1));
        let steps = ((a.0 - b.0).abs(), (a.1 - b.1).abs());
        assert!(
            steps.0 <= 3 && steps.1 <= 3,
            "cores and queues {one:?}, {two:?}: {a:?}, {b:?}"
        );
    };
    for cores in 4..20 {
        check((cores, cores), (cores + 1, cores + 1));
        for queues in cores / 2..cores + 2 {
            check((cores, queues), (cores, queues + 1));
            check((cores, queues), (cores + 1, queues));
        }
    }
}

#[test]
fn isolated_cpus_belong_to_application() {
    for (cores, siblings, shared) in [
        (16, 1, 1),
        (16, 1, 2),
        (16, 1, 3),
        (16, 2, 2),
        (8, 1, 4),
        (8, 1, 3),
        (64, 1, 6),
        (64, 2, 16),
    ] {
        for queues in [1, 2, 4, 8, 16] {
            let mut facts = machine(1, cores, siblings, 1);
            facts.topology.isolated = (shared * siblings..cores * siblings).collect();
            facts.interfaces = vec![card("eth0", 0, queues, None)];
            let placement = placed(&facts);
            let place = format!("{cores} cores, {shared} shared, {queues} queues: {placement:#?}");
            assert_eq!(placement.sharing, Sharing::Nothing, "{place}");
            let own = &placement.application_cpus;
            assert!(facts.topology.isolated.is_subset(own), "{place}");
            let network = placement.interfaces[0]
                .irq_cpus
                .union(&placement.interfaces[0].steering_cpus);
            let shared_cpus = facts.topology.allowed.minus(&facts.topology.isolated);
            assert!(
                !network.is_empty() && network.is_subset(&shared_cpus),
                "{place}"
            );
            assert!(network.len() * 2 <= (shared * siblings).max(2), "{place}");
        }
    }
}

/// CPUs of cores that are nearly as fast as the fastest.
fn fast(facts: &Facts) -> CpuSet {
    let cores = &facts.topology.cores;
    let fastest = cores.iter().map(|core| core.capacity).max().unwrap_or(0);
    let fast = cores
        .iter()
        .filter(|core| core.capacity * 100 >= fastest * 90);
    let cpus = fast.fold(CpuSet::new(), |all, core| all.union(&core.cpus));
    cpus.intersection(&facts.topology.allowed)
}

/// Checks that half or more of the fast cores are for the application only, if the machine has cores of several kinds.
#[track_caller]
fn check_fast_half(facts: &Facts, placement: &Placement) {
    let fast = fast(facts);
    let is_mixed = fast.len() < facts.topology.allowed.len();
    if !is_mixed || placement.sharing == Sharing::Everything {
        return;
    }
    let network = placement.interfaces.iter().fold(CpuSet::new(), |all, one| {
        all.union(&one.irq_cpus).union(&one.steering_cpus)
    });
    let network = facts.topology.with_siblings(&network);
    let cores = facts.topology.cores.iter();
    let cores = cores.filter(|core| core.cpus.intersects(&fast));
    let (mut all, mut own) = (0, 0);
    for core in cores {
        all += 1;
        let cpus = core.cpus.intersection(&facts.topology.allowed);
        own +=
            usize::from(cpus.is_subset(&placement.application_cpus) && !cpus.intersects(&network));
    }
    assert!(own * 2 >= all, "{own} of {all} fast cores: {placement:#?}");
}

#[test]
fn application_keeps_half_of_fast_cores() {
    for (fast, efficient, tiny) in [
        (2, 8, 2),
        (4, 4, 0),
        (4, 8, 2),
        (6, 8, 2),
        (8, 16, 0),
        (1, 3, 4),
        (2, 6, 0),
        (3, 13, 0),
        (5, 3, 1),
        (8, 4, 0),
    ] {
        for siblings in [1, 2] {
            for queues in [1, 2, 3, 4, 8, 16, 32] {
                let mut facts = machine(1, fast + efficient + tiny, siblings, 1);
                let cores = facts.topology.cores.iter_mut();
                for (at, core) in cores.enumerate() {
                    core.capacity = match at {
                        _ if at < fast => 1_024,
                        _ if at < fast + efficient => 512,
                        _ => 256,
                    };
                }
                facts.interfaces = vec![card("eth0", 0, queues, None), card("eth1", 0, 1, None)];
                let placement = placed(&facts);
                assert_ne!(placement.sharing, Sharing::Everything);
                check_fast_half(&facts, &placement);
            }
        }
    }
}

fn cards() -> impl Strategy<Value = Vec<Interface>> {
    let speeds = prop_oneof![
        Just(None),
        Just(Some(1_000)),
        Just(Some(10_000)),
        Just(Some(100_000))
    ];
    let states = prop_oneof![4 => Just("up"), 1 => Just("unknown")];
    let one = (
        speeds,
        states,
        0usize..4,
        1usize..40,
        1u32..65,
        any::<bool>(),
    );
    prop::collection::vec(one, 1..7).prop_map(|all| {
        type Drawn<'a> = (Option<u64>, &'a str, usize, usize, u32, bool);
        let drawn = |(at, (speed, state, node, queues, most, is_function)): (usize, Drawn)| {
            let parent = (is_function && at > 0).then(|| "0000:e0".to_owned());
            let most = most.max(queues as u32);
            Interface {
                state: Some(state.to_owned()),
                physical_function: parent,
                ..changeable(card(&format!("e{at}"), node, queues, speed), most)
            }
        };
        all.into_iter().enumerate().map(drawn).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_placements_satisfy_invariants(
        (nodes, cores, siblings, packages) in (1usize..5, 1usize..20, 1usize..3, 1usize..3),
        cards in cards(),
        traffic in prop::collection::vec(0u64..40, 7),
        isolated in any::<u64>(),
    ) {
        let mut facts = machine(nodes, cores, siblings, packages);
        facts.counts.uptime = 100.0;
        for (card, exponent) in cards.iter().zip(traffic) {
            let packets = BTreeMap::from([("rx_packets".to_owned(), 1 << exponent)]);
            facts.counts.interfaces.insert(card.name.clone(), packets);
        }
        let is_isolated = |cpu: &usize| isolated.rotate_left(*cpu as u32) % 9 == 0;
        facts.topology.isolated = facts.topology.online.iter().filter(is_isolated).collect();
        prop_assume!(facts.topology.isolated != facts.topology.online);
        facts.interfaces = cards;
        let first = placed(&facts);
        // With the planned number of queues, the next plan is the same.
        for (card, placed) in facts.interfaces.iter_mut().zip(&first.interfaces) {
            let most = card.ethtool.as_ref().and_then(|said| said.channels?.combined_max).unwrap_or(1);
            *card = changeable(with_queues(card.clone(), placed.queues.len()), most);
        }
        prop_assert_eq!(placed(&facts), first);
    }
}
