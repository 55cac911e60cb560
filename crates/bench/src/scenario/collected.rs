//! Metrics from counters of the kernel, by their names in experiment files and results.

use super::nature::{Nature, Unit};
use super::role::Role;

/// One number per trial, measured by a collector. A trial without these counters has no value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Collected {
    /// `ROLE.NAME`.
    OfRole(Role, OfRole),
    /// `machine.NAME`: all CPUs of the host of the role under test.
    OfMachine(OfMachine),
    /// `packets_per_request`: all interfaces of the host of the role under test.
    Packets,
    /// `packets_per_request.INTERFACE`.
    PacketsOf(String),
    /// `context_switches_per_request`: the whole machine.
    ContextSwitches,
    /// `tcp.RetransSegs` and other events.
    Count(Event),
    /// `collector.cpu_share`: share of one CPU used by the measurement itself.
    CollectorShare,
}

/// Metric of one role.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OfRole {
    /// User time of its processes per request.
    User,
    /// System time of its processes per request.
    System,
    /// Softirq and hardware interrupt time on its CPUs per request.
    Softirq,
    /// Requests per second of CPU time used.
    RatePerCpuUsed,
    /// Requests per second per assigned CPU.
    RatePerCpuGiven,
    /// Time its threads waited for a CPU, per request.
    Wait,
    /// Voluntary context switches of its threads per request.
    VoluntarySwitches,
    /// Involuntary context switches of its threads per request.
    InvoluntarySwitches,
}

impl OfRole {
    const ALL: [OfRole; 8] = [
        OfRole::User,
        OfRole::System,
        OfRole::Softirq,
        OfRole::RatePerCpuUsed,
        OfRole::RatePerCpuGiven,
        OfRole::Wait,
        OfRole::VoluntarySwitches,
        OfRole::InvoluntarySwitches,
    ];

    fn name(self) -> &'static str {
        match self {
            OfRole::User => "user_us_per_request",
            OfRole::System => "system_us_per_request",
            OfRole::Softirq => "softirq_us_per_request",
            OfRole::RatePerCpuUsed => "rps_per_cpu_used",
            OfRole::RatePerCpuGiven => "rps_per_cpu_given",
            OfRole::Wait => "wait_us_per_request",
            OfRole::VoluntarySwitches => "voluntary_switches_per_request",
            OfRole::InvoluntarySwitches => "involuntary_switches_per_request",
        }
    }

    fn title(self) -> &'static str {
        match self {
            OfRole::User => "user CPU per request",
            OfRole::System => "system CPU per request",
            OfRole::Softirq => "softirq CPU per request",
            OfRole::RatePerCpuUsed => "requests per second of CPU used",
            OfRole::RatePerCpuGiven => "requests per second per CPU given",
            OfRole::Wait => "wait for a CPU per request",
            OfRole::VoluntarySwitches => "voluntary switches per request",
            OfRole::InvoluntarySwitches => "involuntary switches per request",
        }
    }
}

/// Metric of all CPUs of a machine, per request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OfMachine {
    /// User time.
    User,
    /// System time.
    System,
    /// Softirq and hardware interrupt time.
    Softirq,
}

impl OfMachine {
    const ALL: [OfMachine; 3] = [OfMachine::User, OfMachine::System, OfMachine::Softirq];

    fn of_role(self) -> OfRole {
        match self {
            OfMachine::User => OfRole::User,
            OfMachine::System => OfRole::System,
            OfMachine::Softirq => OfRole::Softirq,
        }
    }
}

/// Event counted in a window, named like the kernel's counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// Retransmitted segments.
    Retransmitted,
    /// Connections that arrived at a full accept queue.
    ListenOverflow,
    /// Connections dropped by a listener.
    ListenDrop,
    /// Packets dropped because the backlog of a CPU was full.
    SoftnetDropped,
    /// Times that a CPU ended a round of packet processing with packets left.
    SoftnetTimeSqueeze,
}

impl Event {
    const ALL: [Event; 5] = [
        Event::Retransmitted,
        Event::ListenOverflow,
        Event::ListenDrop,
        Event::SoftnetDropped,
        Event::SoftnetTimeSqueeze,
    ];

    /// Name in the totals of a trial, as `subject.counter`; the counters of softnet are sums over CPUs.
    fn name(self) -> &'static str {
        match self {
            Event::Retransmitted => "tcp.RetransSegs",
            Event::ListenOverflow => "tcp.ListenOverflows",
            Event::ListenDrop => "tcp.ListenDrops",
            Event::SoftnetDropped => "softnet.dropped",
            Event::SoftnetTimeSqueeze => "softnet.time_squeeze",
        }
    }

    fn title(self) -> &'static str {
        match self {
            Event::Retransmitted => "retransmitted segments",
            Event::ListenOverflow => "connections at a full accept queue",
            Event::ListenDrop => "connections dropped by a listener",
            Event::SoftnetDropped => "packets dropped at a full backlog",
            Event::SoftnetTimeSqueeze => "packet rounds that ended with packets left",
        }
    }
}

const PACKETS: &str = "packets_per_request";
const CONTEXT_SWITCHES: &str = "context_switches_per_request";
const COLLECTOR_SHARE: &str = "collector.cpu_share";
const MACHINE: &str = "machine";

impl Collected {
    /// Parses the name used in files; `None` if no such metric is collected.
    pub(super) fn parse(text: &str) -> Option<Collected> {
        let plain = [
            Collected::Packets,
            Collected::ContextSwitches,
            Collected::CollectorShare,
        ];
        let events = Event::ALL.map(Collected::Count);
        let machine = OfMachine::ALL.map(Collected::OfMachine);
        let mut known = plain.into_iter().chain(events).chain(machine);
        if let Some(found) = known.find(|collected| collected.name() == text) {
            return Some(found);
        }
        let (subject, rest) = text.split_once('.')?;
        if subject == PACKETS {
            return (!rest.is_empty()).then(|| Collected::PacketsOf(rest.into()));
        }
        let role = Role::ALL.into_iter().find(|role| role.name() == subject)?;
        let of_role = OfRole::ALL.into_iter().find(|of| of.name() == rest)?;
        Some(Collected::OfRole(role, of_role))
    }

    pub(super) fn role(&self) -> Option<Role> {
        match self {
            Collected::OfRole(role, _) => Some(*role),
            Collected::OfMachine(_)
            | Collected::Packets
            | Collected::PacketsOf(_)
            | Collected::ContextSwitches
            | Collected::Count(_)
            | Collected::CollectorShare => None,
        }
    }

    /// The name used in files and results.
    pub fn name(&self) -> String {
        match self {
            Collected::OfRole(role, of) => format!("{}.{}", role.name(), of.name()),
            Collected::OfMachine(of) => format!("{MACHINE}.{}", of.of_role().name()),
            Collected::Packets => PACKETS.into(),
            Collected::PacketsOf(interface) => format!("{PACKETS}.{interface}"),
            Collected::ContextSwitches => CONTEXT_SWITCHES.into(),
            Collected::Count(event) => event.name().into(),
            Collected::CollectorShare => COLLECTOR_SHARE.into(),
        }
    }

    pub(super) fn title(&self) -> String {
        match self {
            Collected::OfRole(role, of) => format!("{} {}", role.name(), of.title()),
            Collected::OfMachine(of) => format!("{MACHINE} {}", of.of_role().title()),
            Collected::Packets => "packets per request".into(),
            Collected::PacketsOf(interface) => format!("packets per request on {interface}"),
            Collected::ContextSwitches => "context switches per request".into(),
            Collected::Count(event) => event.title().into(),
            Collected::CollectorShare => "share of one CPU used by the measurement".into(),
        }
    }

    pub(super) fn nature(&self) -> Nature {
        match self {
            Collected::OfRole(_, OfRole::RatePerCpuGiven) => Nature::Rate,
            Collected::OfRole(_, _)
            | Collected::OfMachine(_)
            | Collected::Packets
            | Collected::PacketsOf(_)
            | Collected::ContextSwitches => Nature::Cost,
            Collected::Count(_) | Collected::CollectorShare => Nature::Count,
        }
    }

    pub(super) fn is_better_high(&self) -> bool {
        matches!(
            self,
            Collected::OfRole(_, OfRole::RatePerCpuUsed | OfRole::RatePerCpuGiven)
        )
    }

    pub(super) fn unit(&self) -> Unit {
        match self {
            Collected::OfRole(_, of) => match of {
                OfRole::User | OfRole::System | OfRole::Softirq | OfRole::Wait => {
                    Unit::Microseconds
                }
                OfRole::RatePerCpuUsed | OfRole::RatePerCpuGiven => Unit::PerSecond,
                OfRole::VoluntarySwitches | OfRole::InvoluntarySwitches => Unit::Number,
            },
            Collected::OfMachine(_) => Unit::Microseconds,
            Collected::Packets
            | Collected::PacketsOf(_)
            | Collected::ContextSwitches
            | Collected::Count(_)
            | Collected::CollectorShare => Unit::Number,
        }
    }
}
