//! Candidates by stage.

use std::collections::BTreeMap;

use crate::Error;
use crate::advise::{self, Request, Target};
use crate::facts::ethtool::DriverSetting;
use crate::facts::process::Thread;
use crate::facts::{Facts, Interface};
use onrush_machine::cpus::CpuSet;

const WAITS: [u32; 4] = [0, 20, 50, 100];

/// A change to try: values for related targets.
pub(super) struct Candidate {
    pub(super) change: String,
    pub(super) what: CandidateKind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CandidateKind {
    Values(Vec<(Target, Value)>),
    /// The threads that the application has at that time, on these CPUs.
    Application(CpuSet),
}

impl Candidate {
    pub(super) fn values(&self, facts: &Facts) -> Vec<(Target, Value)> {
        match &self.what {
            CandidateKind::Values(values) => values.clone(),
            CandidateKind::Application(cpus) => spread(&facts.application, cpus),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Value {
    /// CPUs, formatted for their target.
    Cpus(CpuSet),
    Text(String),
}

/// Function that returns candidates of one kind by the current facts.
pub(super) type Stage = fn(&Facts, &Request) -> Result<Vec<Candidate>, Error>;

/// Stages in order: settings that reset a device come first.
pub(super) const STAGES: [Stage; 6] = [
    queue_counts,
    interrupts,
    steering,
    senders,
    applications,
    waits,
];

fn interrupts(facts: &Facts, request: &Request) -> Result<Vec<Candidate>, Error> {
    planned(
        facts,
        request,
        "interrupts as planned, one CPU each",
        |target| matches!(target, Target::Interrupt { .. }),
    )
}

/// Each CPU sends through one queue, as planned.
fn senders(facts: &Facts, request: &Request) -> Result<Vec<Candidate>, Error> {
    planned(
        facts,
        request,
        "senders as planned, one queue each",
        |target| matches!(target, Target::Senders { .. }),
    )
}

fn planned(
    facts: &Facts,
    request: &Request,
    change: &str,
    is_meant: fn(&Target) -> bool,
) -> Result<Vec<Candidate>, Error> {
    let actions = advise::plan(facts, request)?.actions;
    let meant = actions
        .into_iter()
        .filter(|action| is_meant(&action.target));
    let values: Vec<_> = meant
        .map(|action| (action.target, Value::Text(action.proposed)))
        .collect();
    Ok(match values.is_empty() {
        true => Vec::new(),
        false => vec![Candidate {
            change: change.to_owned(),
            what: CandidateKind::Values(values),
        }],
    })
}

/// Packet steering to no CPU, to all, to all without interrupts, to the whole node, to the node without interrupts, and
/// to fewer and fewer CPUs of the node.
fn steering(facts: &Facts, request: &Request) -> Result<Vec<Candidate>, Error> {
    let plan = advise::plan(facts, request)?;
    let interfaces: Vec<&Interface> = plan
        .placement
        .interfaces
        .iter()
        .filter_map(|placed| facts.interface(&placed.name))
        .collect();
    let queues: Vec<Queue> = interfaces
        .iter()
        .flat_map(|interface| queues(facts, interface))
        .collect();
    let all = &facts.topology.allowed;
    let irq_cpus: CpuSet = queues.iter().filter_map(|queue| queue.cpu).collect();
    let mut candidates = vec![
        steered(&queues, "no CPU", |_| CpuSet::new()),
        steered(&queues, &format!("all {} CPUs", all.len()), |_| all.clone()),
        steered(&queues, "all CPUs except those with interrupts", |_| {
            all.minus(&irq_cpus)
        }),
        steered(&queues, "all CPUs of the interrupt's node", |queue| {
            queue.node.clone()
        }),
        steered(
            &queues,
            "all CPUs of the interrupt's node except those with interrupts",
            |queue| queue.node.minus(&irq_cpus),
        ),
    ];
    let most = queues
        .iter()
        .map(|queue| beside(facts, &queues, queue).len())
        .max()
        .unwrap_or(0);
    let mut size = most;
    // Halved from the largest, such as 15, 7 and 3, then the neighbours of each.
    let mut sizes = Vec::new();
    while size > 0 {
        sizes.push(size);
        size /= 2;
    }
    for around in sizes.clone() {
        sizes.extend([around + 2, around.saturating_sub(2)]);
    }
    let place = match irq_cpus.is_empty() {
        true => "",
        false => " of the interrupt's node except its own",
    };
    for size in sizes.into_iter().filter(|size| *size > 0 && *size <= most) {
        let cpus = if size == 1 { "CPU" } else { "CPUs" };
        candidates.push(steered(
            &queues,
            &format!("{size} {cpus}{place}"),
            |queue| {
                let beside = beside(facts, &queues, queue);
                beside.into_iter().take(size).collect()
            },
        ));
    }
    let mut different: Vec<Candidate> = Vec::new();
    for candidate in candidates {
        if different.iter().all(|known| known.what != candidate.what) {
            different.push(candidate);
        }
    }
    Ok(different)
}

struct Queue {
    interface: String,
    index: usize,
    /// `None` for a virtual device, which has no interrupts, and if the interrupt is allowed on several CPUs.
    cpu: Option<usize>,
    /// All CPUs if the node is unknown.
    node: CpuSet,
}

fn queues(facts: &Facts, interface: &Interface) -> Vec<Queue> {
    let topology = &facts.topology;
    let irq_cpu = |index: usize| {
        let irq = interface.irqs_of(index).next()?;
        // The allowed CPU is the one requested last; the effective one changes only with the next interrupt.
        let one = |cpus: &Option<CpuSet>| {
            cpus.as_ref()
                .filter(|cpus| cpus.len() == 1)
                .and_then(CpuSet::first)
        };
        one(&irq.affinity).or_else(|| one(&irq.effective))
    };
    let queue = |index: usize| {
        let cpu = irq_cpu(index);
        let node = cpu.and_then(|cpu| topology.node_of(cpu)).or(interface.node);
        let node = node.map(|node| topology.node_cpus(node).intersection(&topology.allowed));
        Queue {
            interface: interface.name.clone(),
            index,
            cpu,
            node: node.unwrap_or_else(|| topology.allowed.clone()),
        }
    };
    let indexes = interface.receive.iter().map(|known| known.index);
    indexes.map(queue).collect()
}

fn steered(queues: &[Queue], to: &str, cpus: impl Fn(&Queue) -> CpuSet) -> Candidate {
    let value = |queue: &Queue| {
        let target = Target::Steering {
            interface: queue.interface.clone(),
            queue: queue.index,
        };
        (target, Value::Cpus(cpus(queue)))
    };
    Candidate {
        change: format!("packet steering to {to}"),
        what: CandidateKind::Values(queues.iter().map(value).collect()),
    }
}

/// CPUs after a queue's own in its node, one per core, up to the next CPU that handles interrupts.
fn beside(facts: &Facts, queues: &[Queue], queue: &Queue) -> Vec<usize> {
    let irq_cpus: CpuSet = queues.iter().filter_map(|queue| queue.cpu).collect();
    let taken = facts.topology.with_siblings(&irq_cpus);
    let cores = facts
        .topology
        .cores
        .iter()
        .filter(|core| core.cpus.intersects(&queue.node));
    let order: Vec<usize> = cores.map(|core| core.cpu()).collect();
    let start = order
        .iter()
        .position(|cpu| Some(*cpu) == queue.cpu)
        .map_or(0, |at| at + 1);
    let after = order[start..]
        .iter()
        .chain(&order[..start.min(order.len())])
        .copied();
    let others = |cpu: &usize| irq_cpus.contains(*cpu) && Some(*cpu) != queue.cpu;
    after
        .take_while(|cpu| !others(cpu))
        .filter(|cpu| !taken.contains(*cpu))
        .collect()
}

/// The program on all CPUs, on CPUs without interrupts and packets, on the CPUs of the plan, and on the node of the
/// interrupts or the others.
fn applications(facts: &Facts, request: &Request) -> Result<Vec<Candidate>, Error> {
    if facts.application.is_empty() {
        return Ok(Vec::new());
    }
    let placement = advise::plan(facts, request)?.placement;
    let interfaces = placement
        .interfaces
        .iter()
        .filter_map(|placed| facts.interface(&placed.name));
    let (mut irq_cpus, mut near, mut steered) = (CpuSet::new(), CpuSet::new(), CpuSet::new());
    for interface in interfaces {
        for queue in queues(facts, interface) {
            irq_cpus.extend(queue.cpu);
            near = near.union(&queue.node);
        }
        for queue in &interface.receive {
            let cpus = queue.steering.as_deref().and_then(CpuSet::parse_mask);
            steered = steered.union(&cpus.unwrap_or_default());
        }
    }
    let all = &facts.topology.allowed;
    let beside = all.minus(&irq_cpus);
    let choices = [
        ("all", all.clone()),
        ("the CPUs without interrupts", beside.clone()),
        (
            "the CPUs without interrupts and steered packets",
            beside.minus(&steered),
        ),
        ("the CPUs of the plan", placement.application_cpus),
        ("the node of the interrupts", near.clone()),
        ("the other nodes", all.minus(&near)),
    ];
    let mut candidates: Vec<Candidate> = Vec::new();
    for (what, cpus) in choices {
        let kind = if cpus.len() == 1 { "CPU" } else { "CPUs" };
        let change = format!("application on {kind} {cpus}, {what}");
        let is_empty = cpus.is_empty();
        let what = CandidateKind::Application(cpus);
        if !is_empty && candidates.iter().all(|known| known.what != what) {
            candidates.push(Candidate { change, what });
        }
    }
    Ok(candidates)
}

/// All CPUs for each unpinned thread; threads pinned to one CPU are pinned to one of `cpus`, in the same order.
fn spread(threads: &BTreeMap<u32, Thread>, cpus: &CpuSet) -> Vec<(Target, Value)> {
    let pinned = |thread: &Thread| {
        let own = thread.allowed.first();
        own.filter(|_| thread.allowed.len() == 1)
    };
    let order: CpuSet = threads.values().filter_map(pinned).collect();
    let places: Vec<usize> = cpus.iter().collect();
    let value = |(number, thread): (&u32, &Thread)| {
        let target = target(*number, thread);
        let at = pinned(thread).and_then(|own| order.iter().position(|cpu| cpu == own));
        let cpus = match at {
            Some(at) => [places[at % places.len()]].into_iter().collect(),
            None => cpus.clone(),
        };
        (target, Value::Cpus(cpus))
    };
    threads.iter().map(value).collect()
}

pub(super) fn target(number: u32, thread: &Thread) -> Target {
    Target::Thread {
        process: thread.process,
        thread: number,
        started: thread.started,
    }
}

/// Interrupt delays, if the driver supports them.
fn waits(facts: &Facts, request: &Request) -> Result<Vec<Candidate>, Error> {
    let plan = advise::plan(facts, request)?;
    let mut candidates = Vec::new();
    for placed in &plan.placement.interfaces {
        let said = facts
            .interface(&placed.name)
            .and_then(|interface| interface.ethtool.as_ref());
        let Some(said) =
            said.filter(|said| DriverSetting::MicrosecondsReceive.value(said).is_some())
        else {
            continue;
        };
        let driver = |knob: DriverSetting| Target::Driver {
            interface: placed.name.clone(),
            knob,
        };
        if DriverSetting::AdaptiveReceive.value(said).is_some() {
            let values = vec![(
                driver(DriverSetting::AdaptiveReceive),
                Value::Text("1".to_owned()),
            )];
            candidates.push(Candidate {
                change: format!("{} adaptive-rx on", placed.name),
                what: CandidateKind::Values(values),
            });
        }
        for wait in WAITS {
            let mut values = vec![(
                driver(DriverSetting::MicrosecondsReceive),
                Value::Text(wait.to_string()),
            )];
            if DriverSetting::AdaptiveReceive.value(said).is_some() {
                values.insert(
                    0,
                    (
                        driver(DriverSetting::AdaptiveReceive),
                        Value::Text("0".to_owned()),
                    ),
                );
            }
            candidates.push(Candidate {
                change: format!("{} rx-usecs {wait}", placed.name),
                what: CandidateKind::Values(values),
            });
        }
    }
    Ok(candidates)
}

/// Numbers of queues, by doubling, if the driver supports it and the user accepts resets.
fn queue_counts(facts: &Facts, request: &Request) -> Result<Vec<Candidate>, Error> {
    let plan = advise::plan(facts, request)?;
    let mut candidates = Vec::new();
    if request.queues == advise::Queues::Keep {
        return Ok(candidates);
    }
    for placed in &plan.placement.interfaces {
        let interface = facts
            .interface(&placed.name)
            .filter(|interface| interface.is_device);
        let channels = interface.and_then(|interface| interface.ethtool.as_ref()?.channels);
        let most = channels
            .and_then(|channels| channels.combined_max)
            .unwrap_or(0);
        let mut count = 1;
        while count <= most {
            let target = Target::Driver {
                interface: placed.name.clone(),
                knob: DriverSetting::ChannelsCombined,
            };
            let change = format!("{} with {count} queues", placed.name);
            candidates.push(Candidate {
                change,
                what: CandidateKind::Values(vec![(target, Value::Text(count.to_string()))]),
            });
            count *= 2;
        }
    }
    Ok(candidates)
}
