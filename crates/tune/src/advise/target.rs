//! What an action changes: a device, a queue and a role, never the number of an interrupt.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::facts::Purpose;
use crate::facts::ethtool::Knob;
use onrush_machine::cpus::CpuSet;

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
