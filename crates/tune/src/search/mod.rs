//! The settings that matter, tried one change at a time against what is best so far, with a measurement that the user
//! brings.
//!
//! A candidate and the best so far are measured in turns, since machines change while one measures. It is kept when it
//! won every turn, and by more than a per cent in the middle; else what was there is put back. Five turns of five happen
//! by chance once in 32 times.

use serde::Serialize;

use crate::Error;
use crate::advise::{self, Action, Plan, Request, Revert, Spelling, Target};
use crate::apply::{self, Applied, Journal, Machine, Outcome};
use crate::cpus::CpuSet;
use crate::facts::ethtool::Knob;
use crate::facts::{Facts, Interface};

/// A difference that is worth a change.
const EFFECT_MIN: f64 = 0.01;

/// Microseconds that interrupts may wait, to try.
const WAITS: [u32; 4] = [0, 20, 50, 100];

/// What was tried, in order.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Road {
    /// What was measured before anything was changed, in the middle.
    pub start: f64,
    /// Each candidate.
    pub steps: Vec<Step>,
}

/// A candidate beside the best so far.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Step {
    /// What was changed.
    pub change: String,
    /// What was measured with it, in the middle of all turns; none when it could not be applied or measured.
    pub result: Option<f64>,
    /// By what factor it was better: the least, the middle and the most of all turns.
    pub ratio: Option<(f64, f64, f64)>,
    /// Whether it was kept.
    pub is_kept: bool,
    /// Why it could not be tried.
    pub trouble: Option<String>,
}

/// A change to try: values for some targets, that belong together.
struct Candidate {
    change: String,
    values: Vec<(Target, String)>,
}

/// Tries everything, and leaves the machine at what was best. `measure` gives a number that is better when larger.
///
/// All changes stand in the journal, so that `apply::revert` gives the machine back as it was, after a crash as well.
pub fn search(
    machine: &mut impl Machine,
    request: &Request,
    turns: usize,
    journal: &mut Journal,
    measure: &mut dyn FnMut() -> Result<f64, String>,
) -> Result<Road, Error> {
    assert!(turns > 0, "nothing can be compared without a measurement");
    let mut firsts = Vec::new();
    for _ in 0..turns {
        firsts.push(measure().map_err(Error::Request)?);
    }
    let mut road = Road {
        start: middle(&mut firsts),
        steps: Vec::new(),
    };
    // Each stage starts from the facts that the stage before has left.
    for stage in [interrupts, steering, senders, waits, queue_counts] {
        for candidate in stage(&machine.facts()?, request)? {
            let step = try_out(machine, request, &candidate, turns, journal, measure)?;
            road.steps.push(step);
        }
    }
    Ok(road)
}

fn try_out(
    machine: &mut impl Machine,
    request: &Request,
    candidate: &Candidate,
    turns: usize,
    journal: &mut Journal,
    measure: &mut dyn FnMut() -> Result<f64, String>,
) -> Result<Step, Error> {
    let mut step = Step {
        change: candidate.change.clone(),
        result: None,
        ratio: None,
        is_kept: false,
        trouble: None,
    };
    let facts = machine.facts()?;
    let (forth, back) = actions(machine, &facts, candidate);
    if forth.is_empty() {
        step.trouble = Some("is so already".to_owned());
        return Ok(step);
    }
    let mut ratios = Vec::new();
    let mut results = Vec::new();
    for _ in 0..turns {
        let best = measure();
        let refused = refusal(&swap(machine, request, &forth, journal)?);
        let result = if refused.is_none() {
            measure()
        } else {
            Ok(0.0)
        };
        swap(machine, request, &back, journal)?;
        match (refused, best, result) {
            (None, Ok(best), Ok(result)) if best > 0.0 => {
                ratios.push(result / best);
                results.push(result);
            }
            (refused, best, result) => {
                let words = refused.or(best.err()).or(result.err());
                step.trouble = Some(
                    words.unwrap_or_else(|| "the measurement gave nothing above 0".to_owned()),
                );
                return Ok(step);
            }
        }
    }
    let least = ratios.iter().copied().fold(f64::INFINITY, f64::min);
    let most = ratios.iter().copied().fold(0.0, f64::max);
    let ratio = middle(&mut ratios);
    step.result = Some(middle(&mut results));
    step.ratio = Some((least, ratio, most));
    step.is_kept = least > 1.0 && ratio > 1.0 + EFFECT_MIN;
    if step.is_kept {
        swap(machine, request, &forth, journal)?;
    }
    Ok(step)
}

fn swap(
    machine: &mut impl Machine,
    request: &Request,
    actions: &[Action],
    journal: &mut Journal,
) -> Result<Vec<Applied>, Error> {
    let plan = Plan {
        request: request.clone(),
        actions: actions.to_vec(),
        ..Plan::default()
    };
    apply::apply_actions(machine, &plan, journal)
}

fn refusal(applied: &[Applied]) -> Option<String> {
    applied.iter().find_map(|change| match &change.outcome {
        Outcome::Refused(why) => Some(format!("{}: {why}", change.path)),
        Outcome::Done | Outcome::Adjusted(_) => None,
    })
}

/// The changes to a candidate and back from it; nothing for values that are so already.
fn actions(
    machine: &impl Machine,
    facts: &Facts,
    candidate: &Candidate,
) -> (Vec<Action>, Vec<Action>) {
    let mut forth = Vec::new();
    let mut back = Vec::new();
    for (target, value) in &candidate.values {
        let Some(place) = apply::Place::of(target, facts) else {
            continue;
        };
        let (path, Ok(now)) = (place.to_string(), machine.get(&place)) else {
            continue;
        };
        let spelling = Spelling::of(&path);
        let value = match (spelling, CpuSet::parse_list(value)) {
            (Spelling::CpuMask, Some(cpus)) => cpus.mask_like(&now),
            _ => value.clone(),
        };
        if spelling.is_same(&now, &value) {
            continue;
        }
        let action = |current: &str, proposed: &str| Action {
            target: target.clone(),
            path: path.clone(),
            current: current.trim().to_owned(),
            proposed: proposed.trim().to_owned(),
            reason: candidate.change.clone(),
            source: "measured here".to_owned(),
            risk: "none beyond the measurement".to_owned(),
            revert: Revert::WriteBack,
            effect: "the measurement".to_owned(),
        };
        forth.push(action(&now, &value));
        back.push(action(&value, &now));
    }
    (forth, back)
}

/// The value in the middle; of an even number the lower of both, so that it is one that was measured.
fn middle(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[(values.len() - 1) / 2]
}

/// The interrupts where the plan would have them.
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
    let spelt = |action: Action| {
        // Lists are understood for every file of CPUs; masks would be taken for lists.
        let list = match Spelling::of(&action.path) {
            Spelling::CpuMask => CpuSet::parse_mask(&action.proposed).map(|cpus| cpus.to_string()),
            Spelling::CpuList | Spelling::Words => None,
        };
        (action.target, list.unwrap_or(action.proposed))
    };
    let values: Vec<_> = meant.map(spelt).collect();
    Ok(match values.is_empty() {
        true => Vec::new(),
        false => vec![Candidate {
            change: change.to_owned(),
            values,
        }],
    })
}

/// Packet steering to no CPU, all, all but those with interrupts, the whole node, the node without them, and then to
/// fewer and fewer of the node.
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
    let irq_cpus: CpuSet = queues.iter().map(|queue| queue.cpu).collect();
    let mut candidates = vec![
        steered(&queues, "no CPU", |_| CpuSet::new()),
        steered(&queues, &format!("all {} CPUs", all.len()), |_| all.clone()),
        steered(&queues, "all but those with interrupts", |_| {
            all.minus(&irq_cpus)
        }),
        steered(&queues, "all of the interrupt's node", |queue| {
            queue.node.clone()
        }),
        steered(&queues, "that node without CPUs with interrupts", |queue| {
            queue.node.minus(&irq_cpus)
        }),
    ];
    let most = queues
        .iter()
        .map(|queue| beside(facts, &queues, queue).len())
        .max()
        .unwrap_or(0);
    let mut size = most;
    // From 15 to 7 and 3 by halves, and then the neighbours of the best.
    let mut sizes = Vec::new();
    while size > 0 {
        sizes.push(size);
        size /= 2;
    }
    for around in sizes.clone() {
        sizes.extend([around + 2, around.saturating_sub(2)]);
    }
    let mut seen = Vec::new();
    for size in sizes.into_iter().filter(|size| *size > 0 && *size <= most) {
        if !seen.contains(&size) {
            seen.push(size);
            let name = format!("{size} CPUs of that node beside the interrupt's");
            candidates.push(steered(&queues, &name, |queue| {
                beside(facts, &queues, queue)
                    .into_iter()
                    .take(size)
                    .collect()
            }));
        }
    }
    Ok(candidates)
}

/// A receive queue and the CPU that takes its interrupts now.
struct Queue {
    interface: String,
    index: usize,
    cpu: usize,
    node: CpuSet,
}

fn queues(facts: &Facts, interface: &Interface) -> Vec<Queue> {
    let queue = |index: usize| {
        let irq = interface.irqs_of(index).next()?;
        // What it may go to is what was asked for last; what is in effect may lag behind until the next interrupt.
        let one = |cpus: &Option<CpuSet>| {
            cpus.as_ref()
                .filter(|cpus| cpus.len() == 1)
                .and_then(CpuSet::first)
        };
        let cpu = one(&irq.affinity).or_else(|| one(&irq.effective))?;
        let node = facts.topology.node_of(cpu)?;
        let node = facts
            .topology
            .node_cpus(node)
            .intersection(&facts.topology.allowed);
        Some(Queue {
            interface: interface.name.clone(),
            index,
            cpu,
            node,
        })
    };
    interface
        .receive
        .iter()
        .filter_map(|known| queue(known.index))
        .collect()
}

fn steered(queues: &[Queue], to: &str, cpus: impl Fn(&Queue) -> CpuSet) -> Candidate {
    let value = |queue: &Queue| {
        let target = Target::Steering {
            interface: queue.interface.clone(),
            queue: queue.index,
        };
        (target, cpus(queue).to_string())
    };
    Candidate {
        change: format!("packet steering to {to}"),
        values: queues.iter().map(value).collect(),
    }
}

/// The CPUs after a queue's own in its node, one for each core, up to the next CPU that takes interrupts.
fn beside(facts: &Facts, queues: &[Queue], queue: &Queue) -> Vec<usize> {
    let irq_cpus: CpuSet = queues.iter().map(|queue| queue.cpu).collect();
    let taken = facts.topology.with_siblings(&irq_cpus);
    let cores = facts
        .topology
        .cores
        .iter()
        .filter(|core| core.cpus.intersects(&queue.node));
    let order: Vec<usize> = cores.map(|core| core.cpu()).collect();
    let start = order
        .iter()
        .position(|cpu| *cpu == queue.cpu)
        .map_or(0, |at| at + 1);
    let after = order[start..]
        .iter()
        .chain(&order[..start.min(order.len())])
        .copied();
    let others = |cpu: &usize| irq_cpus.contains(*cpu) && *cpu != queue.cpu;
    after
        .take_while(|cpu| !others(cpu))
        .filter(|cpu| !taken.contains(*cpu))
        .collect()
}

/// How long interrupts wait for more packets, where drivers let that be set.
fn waits(facts: &Facts, request: &Request) -> Result<Vec<Candidate>, Error> {
    let plan = advise::plan(facts, request)?;
    let mut candidates = Vec::new();
    for placed in &plan.placement.interfaces {
        let said = facts
            .interface(&placed.name)
            .and_then(|interface| interface.ethtool.as_ref());
        let Some(said) = said.filter(|said| Knob::MicrosecondsReceive.value(said).is_some()) else {
            continue;
        };
        let driver = |knob: Knob| Target::Driver {
            interface: placed.name.clone(),
            knob,
        };
        if Knob::AdaptiveReceive.value(said).is_some() {
            let values = vec![(driver(Knob::AdaptiveReceive), "1".to_owned())];
            candidates.push(Candidate {
                change: format!("{} adaptive-rx on", placed.name),
                values,
            });
        }
        for wait in WAITS {
            let mut values = vec![(driver(Knob::MicrosecondsReceive), wait.to_string())];
            if Knob::AdaptiveReceive.value(said).is_some() {
                values.insert(0, (driver(Knob::AdaptiveReceive), "0".to_owned()));
            }
            candidates.push(Candidate {
                change: format!("{} rx-usecs {wait}", placed.name),
                values,
            });
        }
    }
    Ok(candidates)
}

/// Other numbers of queues, by doubling, where drivers let that be set and the user does not mind the resets.
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
                knob: Knob::ChannelsCombined,
            };
            let change = format!("{} with {count} queues", placed.name);
            candidates.push(Candidate {
                change,
                values: vec![(target, count.to_string())],
            });
            count *= 2;
        }
    }
    Ok(candidates)
}

/// The road as a table.
pub fn table(road: &Road) -> String {
    let mut out = format!("{:<64} {:>12}\n", "as it was", figure(road.start));
    for step in &road.steps {
        let verdict = match (&step.trouble, step.is_kept) {
            (Some(trouble), _) => format!("not tried: {trouble}"),
            (None, true) => "kept".to_owned(),
            (None, false) => "put back".to_owned(),
        };
        let percent = |ratio: f64| (ratio - 1.0) * 100.0;
        let change = step.ratio.map(|(least, ratio, most)| {
            format!(
                "{:+.1} % ({:+.1} to {:+.1})",
                percent(ratio),
                percent(least),
                percent(most)
            )
        });
        let result = step.result.map(figure).unwrap_or_default();
        out.push_str(&format!(
            "{:<64} {result:>12}  {:<28} {verdict}\n",
            step.change,
            change.unwrap_or_default()
        ));
    }
    out
}

fn figure(value: f64) -> String {
    if value.abs() >= 1_000.0 {
        format!("{value:.0}")
    } else {
        format!("{value:.3}")
    }
}
