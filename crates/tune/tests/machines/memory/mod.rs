//! Machines in memory, for tests with many machines.

use onrush_machine::cpus::CpuSet;
use onrush_tune::facts::ethtool::{Channels, Ethtool};
use onrush_tune::facts::interface::{AffinityFile, Irq, ReceiveQueue};
use onrush_tune::facts::topology::{Core, CorePosition, Node};
use onrush_tune::facts::{Facts, Interface, Purpose, Topology};

/// A machine with nodes of a number of cores each, grouped into packages; CPUs numbered by position.
pub(crate) fn machine(
    nodes: usize,
    cores: usize,
    siblings: usize,
    nodes_per_package: usize,
) -> Facts {
    let node_cpus = |node: usize| node * cores * siblings..(node + 1) * cores * siblings;
    let all: CpuSet = (0..nodes * cores * siblings).collect();
    let core = |at: usize| {
        let node = at / cores;
        Core {
            cpus: (at * siblings..(at + 1) * siblings).collect(),
            place: CorePosition {
                node: Some(node),
                package: (node / nodes_per_package) as i64,
                die: 0,
                core: (at % cores) as i64,
                cpu: at * siblings,
            },
            cache: node_cpus(node).collect(),
            capacity: 1_024,
        }
    };
    let node = |id: usize| Node {
        id,
        cpus: node_cpus(id).collect(),
        distances: (0..nodes)
            .map(|other| match other {
                _ if other == id => (other, 10),
                _ if other / nodes_per_package == id / nodes_per_package => {
                    (other, 11 + other.abs_diff(id))
                }
                _ => (other, 32),
            })
            .collect(),
    };
    Facts {
        topology: Topology {
            online: all.clone(),
            allowed: all,
            nodes: (0..nodes).map(node).collect(),
            cores: (0..nodes * cores).map(core).collect(),
            packages: nodes.div_ceil(nodes_per_package),
            ..Topology::default()
        },
        ..Facts::default()
    }
}

pub(crate) fn card(name: &str, node: usize, queues: usize, speed_mbps: Option<u64>) -> Interface {
    let card = Interface {
        name: name.to_owned(),
        is_device: true,
        state: Some("up".to_owned()),
        speed_mbps,
        node: Some(node),
        device: Some(format!("0000:{name}")),
        ..Interface::default()
    };
    with_queues(card, queues)
}

/// Sets the number of queues, each with an interrupt.
pub(crate) fn with_queues(mut card: Interface, queues: usize) -> Interface {
    let queue = |index: usize| ReceiveQueue {
        index,
        ..ReceiveQueue::default()
    };
    let irq = |queue: usize| Irq {
        number: 100 + queue,
        name: format!("{}-TxRx-{queue}", card.name),
        purpose: Purpose::Both,
        queue: Some(queue),
        queues: 1,
        affinity: None,
        effective: None,
        file: Some(AffinityFile::List(String::new())),
    };
    card.irqs = (0..queues).map(irq).collect();
    card.receive = (0..queues).map(queue).collect();
    card
}

/// Sets the maximum number of queues of the driver.
pub(crate) fn changeable(mut card: Interface, most: u32) -> Interface {
    let channels = Channels {
        combined: Some(card.receive.len() as u32),
        combined_max: Some(most),
        ..Channels::default()
    };
    card.ethtool = Some(Ethtool {
        channels: Some(channels),
        ..Ethtool::default()
    });
    card
}
