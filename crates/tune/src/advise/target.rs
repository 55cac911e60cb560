//! Targets of changes.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::facts::Purpose;
use crate::facts::ethtool::DriverSetting;
use onrush_machine::cpus::CpuSet;

/// Target of a change. Interrupts are identified by device, queue and purpose, because their numbers change.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Target {
    /// Driver setting.
    Driver {
        /// Interface.
        interface: String,
        /// Setting.
        knob: DriverSetting,
    },
    /// CPUs of an interrupt.
    Interrupt {
        /// Interface.
        interface: String,
        /// Queue.
        queue: usize,
        /// Direction.
        purpose: Purpose,
    },
    /// RPS mask of a receive queue.
    Steering {
        /// Interface.
        interface: String,
        /// Queue.
        queue: usize,
    },
    /// Size of a receive queue's flow table.
    Flows {
        /// Interface.
        interface: String,
        /// Queue.
        queue: usize,
    },
    /// XPS mask of a transmit queue.
    Senders {
        /// Interface.
        interface: String,
        /// Queue.
        queue: usize,
    },
    /// File below /proc/sys.
    Setting {
        /// Path, e.g. `net/core/somaxconn`.
        file: String,
    },
    /// Any other file with a constant path.
    File {
        /// Absolute path.
        path: String,
    },
    /// Whether a service runs.
    Service {
        /// Unit, e.g. `irqbalance`.
        unit: String,
    },
    /// CPU affinity of a thread.
    Thread {
        /// PID.
        process: u32,
        /// TID.
        thread: u32,
        /// Start time, to detect reuse of the TID.
        started: u64,
    },
}

impl Target {
    /// Interface of the target, if any.
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

    /// Position in a safe order of changes. Changing the number of queues changes their interrupts and clears their
    /// masks, so drivers come first; a service that moves interrupts is stopped before they are moved.
    pub fn step(&self) -> u8 {
        match self {
            Target::Driver { knob, .. } => match knob {
                DriverSetting::ChannelsReceive
                | DriverSetting::ChannelsTransmit
                | DriverSetting::ChannelsCombined => 0,
                DriverSetting::RingReceive => 1,
                DriverSetting::AdaptiveReceive | DriverSetting::MicrosecondsReceive => 2,
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

pub(crate) const THREAD: &str = "thread:";

/// Format of a value, which determines when two strings are equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueFormat {
    /// CPU list.
    CpuList,
    /// CPU mask.
    CpuMask,
    /// Words separated by white space.
    Words,
}

impl ValueFormat {
    /// Format of the value at a path.
    pub fn of(path: &str) -> ValueFormat {
        match path.rsplit('/').next().unwrap_or(path) {
            _ if path.starts_with(THREAD) => ValueFormat::CpuList,
            "smp_affinity_list" => ValueFormat::CpuList,
            "smp_affinity" | "rps_cpus" | "xps_cpus" => ValueFormat::CpuMask,
            _ => ValueFormat::Words,
        }
    }

    /// Whether two strings have the same meaning: `0000,00000003` and `3` do as masks.
    pub fn is_same(self, one: &str, other: &str) -> bool {
        let both = |read: fn(&str) -> Option<CpuSet>| matches!((read(one), read(other)), (Some(one), Some(other)) if one == other);
        match self {
            ValueFormat::CpuList => both(CpuSet::parse_list),
            ValueFormat::CpuMask => both(CpuSet::parse_mask),
            ValueFormat::Words => one.split_whitespace().eq(other.split_whitespace()),
        }
    }
}

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
