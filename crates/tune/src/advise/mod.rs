//! Facts and a wish in, recommendations out. Pure: nothing is read, asked or changed here.

mod budget;
mod count;
mod floor;
mod offload;
mod placement;
mod queue;
mod seats;
mod setting;

use std::fmt;

use serde::{Deserialize, Serialize};

pub use placement::{InterfacePlacement, Placement, QueuePlacement, Sharing, place};

use crate::Error;
use crate::cpus::CpuSet;
use crate::facts::ethtool::Knob;
use crate::facts::{Facts, Interface, Purpose};

/// What matters more.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Goal {
    /// As many requests as possible.
    #[default]
    Throughput,
    /// As short a wait as possible, at the price of CPUs that look busy.
    Latency,
}

/// What the application does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Accepts connections.
    #[default]
    Server,
    /// Accepts and makes them.
    Proxy,
    /// Makes them.
    Client,
}

/// What is wished for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// What matters more.
    pub goal: Goal,
    /// What the application does.
    pub role: Role,
    /// Interfaces to plan for; a bond or VLAN stands for its devices. None are all devices that are up.
    pub interfaces: Vec<String>,
    /// Whether numbers of queues may change, which resets the interface for a moment.
    pub queues: Queues,
}

/// Whether numbers of queues may change.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Queues {
    /// They may, where the driver says how many there can be.
    #[default]
    Change,
    /// They stay.
    Keep,
}

/// What should be where, and what to change for it.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Plan {
    /// What was wished for.
    pub request: Request,
    /// CPUs by part.
    #[serde(flatten)]
    pub placement: Placement,
    /// Changes, in the order in which they are safe.
    pub actions: Vec<Action>,
    /// What is worth knowing and is not changed.
    pub notes: Vec<Note>,
}

/// One change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Action {
    /// What is changed, by names that survive a reset of the device.
    #[serde(skip)]
    pub target: Target,
    /// Where that is now: a file, `ethtool:eth0/channels/combined`, `service:irqbalance`, or `thread:77/78`.
    pub path: String,
    /// What is there now, as the kernel spells it.
    pub current: String,
    /// What should be there.
    pub proposed: String,
    /// Why, in one sentence.
    pub reason: String,
    /// Who says so.
    pub source: String,
    /// What may go wrong.
    pub risk: String,
    /// What it takes to undo it.
    pub revert: Revert,
    /// What should be seen to change.
    pub effect: String,
}

/// What it takes to undo a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Revert {
    /// Writing the old value back.
    WriteBack,
    /// Writing it back, with the interface reset for a moment.
    WriteBackWithReset,
    /// Starting the service again.
    StartService,
}

/// What is changed: device, queue and role rather than the number of an interrupt, which does not last.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Target {
    /// A number that the driver keeps.
    Driver {
        /// Whose.
        interface: String,
        /// Which.
        knob: Knob,
    },
    /// CPUs of an interrupt.
    Interrupt {
        /// Whose.
        interface: String,
        /// Of which queue.
        queue: usize,
        /// In which direction.
        purpose: Purpose,
    },
    /// CPUs that a receive queue's packets are handed to.
    Steering {
        /// Whose.
        interface: String,
        /// Which queue.
        queue: usize,
    },
    /// Entries of a receive queue's flow table.
    Flows {
        /// Whose.
        interface: String,
        /// Which queue.
        queue: usize,
    },
    /// CPUs that send through a transmit queue.
    Senders {
        /// Whose.
        interface: String,
        /// Which queue.
        queue: usize,
    },
    /// A file below /proc/sys.
    Setting {
        /// `net/core/somaxconn`.
        file: String,
    },
    /// Any other file that keeps its name.
    File {
        /// From the root.
        path: String,
    },
    /// A service that runs or does not.
    Service {
        /// `irqbalance`.
        unit: String,
    },
    /// CPUs that a thread may run on.
    Thread {
        /// Of which process.
        process: u32,
        /// Which.
        thread: u32,
        /// When it started, which tells it from another that is given its number.
        started: u64,
    },
}

impl Target {
    /// The interface it is about.
    pub fn interface(&self) -> Option<&str> {
        match self {
            Target::Driver { interface, .. }
            | Target::Interrupt { interface, .. }
            | Target::Steering { interface, .. }
            | Target::Flows { interface, .. }
            | Target::Senders { interface, .. } => Some(interface),
            Target::Setting { .. }
            | Target::File { .. }
            | Target::Service { .. }
            | Target::Thread { .. } => None,
        }
    }

    /// The same of the interface as it is called now.
    pub(crate) fn rename(&mut self, name: &str) {
        match self {
            Target::Driver { interface, .. }
            | Target::Interrupt { interface, .. }
            | Target::Steering { interface, .. }
            | Target::Flows { interface, .. }
            | Target::Senders { interface, .. } => name.clone_into(interface),
            Target::Setting { .. }
            | Target::File { .. }
            | Target::Service { .. }
            | Target::Thread { .. } => {}
        }
    }

    /// The step of the safe order it belongs to. Changing the number of queues gives them other interrupts and empties
    /// their masks, so drivers come first; a program that moves interrupts stops before they are moved.
    pub fn step(&self) -> u8 {
        match self {
            Target::Driver { knob, .. } => match knob {
                Knob::ChannelsReceive | Knob::ChannelsTransmit | Knob::ChannelsCombined => 0,
                Knob::RingReceive => 1,
                Knob::AdaptiveReceive | Knob::MicrosecondsReceive => 2,
            },
            Target::Service { unit } if unit == "irqbalance" => 3,
            Target::Interrupt { .. } => 4,
            Target::Steering { .. } | Target::Flows { .. } => 5,
            Target::Senders { .. } => 6,
            Target::Setting { .. } => 7,
            Target::File { .. } => 8,
            Target::Service { .. } | Target::Thread { .. } => 9,
        }
    }
}

/// What paths of threads begin with.
pub(crate) const THREAD: &str = "thread:";

/// How a file spells its value, which decides whether two texts mean the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spelling {
    /// CPUs as a list.
    CpuList,
    /// CPUs as a mask.
    CpuMask,
    /// Words with white space between them.
    Words,
}

impl Spelling {
    /// How a place spells its value, by its path.
    pub fn of(path: &str) -> Spelling {
        match path.rsplit('/').next().unwrap_or(path) {
            _ if path.starts_with(THREAD) => Spelling::CpuList,
            "smp_affinity_list" => Spelling::CpuList,
            "smp_affinity" | "rps_cpus" | "xps_cpus" => Spelling::CpuMask,
            _ => Spelling::Words,
        }
    }

    /// Whether two texts mean the same: `0000,00000003` and `3` do as masks.
    pub fn is_same(self, one: &str, other: &str) -> bool {
        let both = |read: fn(&str) -> Option<CpuSet>| matches!((read(one), read(other)), (Some(one), Some(other)) if one == other);
        match self {
            Spelling::CpuList => both(CpuSet::parse_list),
            Spelling::CpuMask => both(CpuSet::parse_mask),
            Spelling::Words => one.split_whitespace().eq(other.split_whitespace()),
        }
    }
}

/// As a user would say it.
impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Driver { interface, knob } => write!(f, "{interface} {}", knob.name()),
            Target::Interrupt {
                interface,
                queue,
                purpose,
            } => {
                let direction = match purpose {
                    Purpose::Both => "interrupt",
                    Purpose::Receive => "receive interrupt",
                    Purpose::Transmit => "transmit interrupt",
                    Purpose::Control => "control interrupt",
                };
                write!(f, "{interface} queue {queue} {direction}")
            }
            Target::Steering { interface, queue } => {
                write!(f, "{interface} queue {queue} packet steering")
            }
            Target::Flows { interface, queue } => write!(f, "{interface} queue {queue} flow table"),
            Target::Senders { interface, queue } => {
                write!(f, "{interface} transmit queue {queue} senders")
            }
            Target::Setting { file } => f.write_str(&file.replace('/', ".")),
            Target::File { path } => f.write_str(path),
            Target::Service { unit } => write!(f, "service {unit}"),
            Target::Thread {
                process, thread, ..
            } => write!(f, "thread {thread} of process {process}"),
        }
    }
}

/// Something worth knowing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Note {
    /// A setting, an interface, a program.
    pub about: String,
    /// What about it, as the rest of a sentence.
    pub text: String,
}

impl Note {
    fn new(about: &str, text: &str) -> Note {
        Note {
            about: about.to_owned(),
            text: text.to_owned(),
        }
    }
}

/// Makes a plan. An interface that was asked for and is not there is an error.
pub fn plan(facts: &Facts, request: &Request) -> Result<Plan, Error> {
    let interfaces = chosen(facts, request)?;
    let counts = count::queues(facts, &interfaces, request);
    let placement = place(facts, &interfaces, &counts, request.goal);
    let mut actions = Vec::new();
    let mut notes = Vec::new();
    for (interface, placed) in interfaces.iter().zip(&placement.interfaces) {
        queue::advise(
            facts,
            interface,
            placed,
            &placement,
            request,
            &mut actions,
            &mut notes,
        );
        offload::advise(facts, interface, request, &mut notes);
    }
    setting::advise(facts, &placement, request, &mut actions, &mut notes);
    queue::files(facts, request, &mut actions, &mut notes);
    setting::obsolete(facts, &mut notes);
    surroundings(facts, &interfaces, &mut actions, &mut notes);
    actions.sort_by_key(|action| action.target.step());
    if facts.system.is_in_network_namespace {
        notes.extend(beyond_namespace(&actions));
    }
    Ok(Plan {
        request: request.clone(),
        placement,
        actions,
        notes,
    })
}

/// The devices to plan for, each once.
fn chosen<'facts>(
    facts: &'facts Facts,
    request: &Request,
) -> Result<Vec<&'facts Interface>, Error> {
    if request.interfaces.is_empty() {
        let is_meant = |interface: &&Interface| interface.is_device && interface.is_up();
        return Ok(facts.interfaces.iter().filter(is_meant).collect());
    }
    let mut chosen: Vec<&Interface> = Vec::new();
    for name in &request.interfaces {
        let devices = facts.devices_of(name);
        if devices.is_empty() {
            let names: Vec<&str> = facts
                .interfaces
                .iter()
                .map(|interface| interface.name.as_str())
                .collect();
            return Err(Error::Request(match names.is_empty() {
                true => format!("there is no interface {name}: there is none at all here"),
                false => format!(
                    "there is no interface {name}; there are {}",
                    names.join(", ")
                ),
            }));
        }
        for device in devices {
            if !chosen.iter().any(|known| known.name == device.name) {
                chosen.push(device);
            }
        }
    }
    Ok(chosen)
}

/// Open files that a server for thirty thousand connections, or a proxy for half as many, needs.
const FILES_MIN: u64 = 32_768;

/// Programs that would work against the plan, and limits that no plan can move.
fn surroundings(
    facts: &Facts,
    interfaces: &[&Interface],
    actions: &mut Vec<Action>,
    notes: &mut Vec<Note>,
) {
    use crate::facts::system::Daemon;
    let moves_interrupts = actions
        .iter()
        .any(|action| matches!(action.target, Target::Interrupt { .. }));
    for (name, why) in &facts.system.daemons {
        match why {
            Daemon::Manages(_) if name == "irqbalance" && moves_interrupts => actions.push(stop(name)),
            Daemon::Manages(what) => {
                notes.push(Note::new(name, &format!("is running: it changes {what} by itself and may undo this plan")));
            }
            Daemon::Wakes => notes.push(Note::new(
                name,
                "is running: each time it wakes up shows in the slowest answers; stop it during measurements",
            )),
        }
    }
    if !facts.system.timers.is_empty() {
        let text = format!(
            "start programs by themselves ({}): each shows in the slowest answers; stop them during measurements",
            facts.system.timers.join(", ")
        );
        notes.push(Note::new("timers of systemd", &text));
    }
    if facts
        .interfaces
        .iter()
        .all(|interface| !interface.is_device)
    {
        notes.push(Note::new(
            "interfaces",
            "there is none with a device of its own; name one to plan for it",
        ));
    }
    for interface in interfaces {
        if let Some(slot) = &interface.slot_downgrade {
            let text = format!(
                "its slot runs at {slot}: another slot, or a cable, may double what it can do"
            );
            notes.push(Note::new(&interface.name, &text));
        }
    }
    notes.extend(quota(facts));
    // A connection is an open file, two in a proxy; `unlimited` is no number.
    if let Some((soft, hard)) = facts.system.process_limits.get("Max open files")
        && soft.parse::<u64>().is_ok_and(|soft| soft < FILES_MIN)
    {
        let text = format!(
            "may have {soft} files open, and could be given {hard}: LimitNOFILE in its unit, or ulimit -n before it"
        );
        notes.push(Note::new("the process", &text));
    }
    filters(facts, notes);
    for (path, why) in &facts.troubles {
        notes.push(Note::new(path, why));
    }
}

/// What of a plan in a network namespace reaches beyond it.
fn beyond_namespace(actions: &[Action]) -> Option<Note> {
    let is_beyond = |target: &&Target| match target {
        Target::Setting { file } => !file.starts_with("net/"),
        Target::Interrupt { .. } | Target::File { .. } | Target::Service { .. } => true,
        Target::Driver { .. }
        | Target::Steering { .. }
        | Target::Flows { .. }
        | Target::Senders { .. }
        | Target::Thread { .. } => false,
    };
    let mut names: Vec<String> = Vec::new();
    for target in actions
        .iter()
        .map(|action| &action.target)
        .filter(is_beyond)
    {
        let name = match target {
            Target::Interrupt { interface, .. } => format!("interrupts of {interface}"),
            other => other.to_string(),
        };
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let text = format!(
        "is changed by what this plan sets outside of its network namespace: {}",
        names.join(", ")
    );
    (!names.is_empty()).then(|| Note::new(THE_MACHINE, &text))
}

/// What the note of what reaches beyond a network namespace is about.
pub const THE_MACHINE: &str = "the whole machine";

/// The tightest of the quotas from the process up to the root: the others never come to bear.
fn quota(facts: &Facts) -> Option<Note> {
    let limited = facts.counts.groups.iter();
    let (cpus, group) = limited
        .filter_map(|group| Some((group.cpus()?, group)))
        .min_by(|one, two| one.0.total_cmp(&two.0))?;
    let text = format!(
        "may use {cpus:.2} CPUs ({}): when that is used up, everything in it stops until the next period",
        group.quota_files()
    );
    Some(Note::new(&format!("control group {}", group.path), &text))
}

/// What sees each packet before the program does.
fn filters(facts: &Facts, notes: &mut Vec<Note>) {
    if !facts.system.packet_tables.is_empty() {
        let text = format!(
            "has tables of rules ({}): each packet goes through the rules of its chains, so accept what matters first, and \
             do not track what needs no state",
            facts.system.packet_tables.join(", ")
        );
        notes.push(Note::new("netfilter", &text));
    }
    if let Some(rules) = facts
        .system
        .packet_rules
        .as_ref()
        .filter(|rules| !rules.is_empty())
    {
        let tables = rules
            .iter()
            .map(|(table, rules)| format!("{table} {rules}"));
        let text = format!(
            "has {} rules ({}): each packet goes through those of its chains, so accept what matters first, and do not track \
             what needs no state",
            rules.values().sum::<u64>(),
            tables.collect::<Vec<_>>().join(", ")
        );
        notes.push(Note::new("nftables", &text));
    }
    if facts.system.taps > 0 {
        notes.push(Note::new(
            "packet sockets",
            &format!(
                "there are {} (tcpdump, DHCP clients …): each sees every packet first",
                facts.system.taps
            ),
        ));
    }
}

fn stop(unit: &str) -> Action {
    Action {
        target: Target::Service {
            unit: unit.to_owned(),
        },
        path: format!("service:{unit}"),
        current: "active".to_owned(),
        proposed: "inactive".to_owned(),
        reason: "it moves interrupts every ten seconds and would undo their placement".to_owned(),
        source: "irqbalance(1); Intel set_irq_affinity refuses to run beside it".to_owned(),
        risk: "a device that is reset while it is stopped may get all its interrupts on one CPU"
            .to_owned(),
        revert: Revert::StartService,
        effect: "interrupts stay where they were put".to_owned(),
    }
}
