//! Metrics from counters of the kernel, by their names in experiment files and results.

use super::metric_kind::{MetricKind, Unit};
use super::role::Role;

/// One number per trial, measured by a collector. A trial without these counters has no value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CollectedMetric {
    /// `ROLE.NAME`.
    OfRole(Role, RoleMetric),
    /// `machine.NAME`: all CPUs of the host of the role under test.
    OfMachine(MachineMetric),
    /// `packets_per_request`: all interfaces of the host of the role under test.
    Packets,
    /// `packets_per_request.INTERFACE`.
    PacketsOf(String),
    /// `context_switches_per_request`: the whole machine.
    ContextSwitches,
    /// `tcp.RetransSegs` and other events.
    Count(KernelEvent),
    /// `collector.cpu_share`: share of one CPU used by the measurement itself.
    CollectorShare,
}

/// Metric of one role.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RoleMetric {
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

impl RoleMetric {
    const ALL: [RoleMetric; 8] = [
        RoleMetric::User,
        RoleMetric::System,
        RoleMetric::Softirq,
        RoleMetric::RatePerCpuUsed,
        RoleMetric::RatePerCpuGiven,
        RoleMetric::Wait,
        RoleMetric::VoluntarySwitches,
        RoleMetric::InvoluntarySwitches,
    ];

    fn name(self) -> &'static str {
        match self {
            RoleMetric::User => "user_us_per_request",
            RoleMetric::System => "system_us_per_request",
            RoleMetric::Softirq => "softirq_us_per_request",
            RoleMetric::RatePerCpuUsed => "rps_per_cpu_used",
            RoleMetric::RatePerCpuGiven => "rps_per_cpu_given",
            RoleMetric::Wait => "wait_us_per_request",
            RoleMetric::VoluntarySwitches => "voluntary_switches_per_request",
            RoleMetric::InvoluntarySwitches => "involuntary_switches_per_request",
        }
    }

    fn title(self) -> &'static str {
        match self {
            RoleMetric::User => "user CPU per request",
            RoleMetric::System => "system CPU per request",
            RoleMetric::Softirq => "softirq CPU per request",
            RoleMetric::RatePerCpuUsed => "requests per second of CPU used",
            RoleMetric::RatePerCpuGiven => "requests per second per assigned CPU",
            RoleMetric::Wait => "wait for a CPU per request",
            RoleMetric::VoluntarySwitches => "voluntary switches per request",
            RoleMetric::InvoluntarySwitches => "involuntary switches per request",
        }
    }
}

/// Metric of all CPUs of a machine, per request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MachineMetric {
    /// User time.
    User,
    /// System time.
    System,
    /// Softirq and hardware interrupt time.
    Softirq,
}

impl MachineMetric {
    const ALL: [MachineMetric; 3] = [
        MachineMetric::User,
        MachineMetric::System,
        MachineMetric::Softirq,
    ];

    fn of_role(self) -> RoleMetric {
        match self {
            MachineMetric::User => RoleMetric::User,
            MachineMetric::System => RoleMetric::System,
            MachineMetric::Softirq => RoleMetric::Softirq,
        }
    }
}

/// Event counted in a window, named like the kernel's counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KernelEvent {
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

impl KernelEvent {
    const ALL: [KernelEvent; 5] = [
        KernelEvent::Retransmitted,
        KernelEvent::ListenOverflow,
        KernelEvent::ListenDrop,
        KernelEvent::SoftnetDropped,
        KernelEvent::SoftnetTimeSqueeze,
    ];

    /// Name in the totals of a trial, as `subject.counter`; the counters of softnet are sums over CPUs.
    fn name(self) -> &'static str {
        match self {
            KernelEvent::Retransmitted => "tcp.RetransSegs",
            KernelEvent::ListenOverflow => "tcp.ListenOverflows",
            KernelEvent::ListenDrop => "tcp.ListenDrops",
            KernelEvent::SoftnetDropped => "softnet.dropped",
            KernelEvent::SoftnetTimeSqueeze => "softnet.time_squeeze",
        }
    }

    fn title(self) -> &'static str {
        match self {
            KernelEvent::Retransmitted => "retransmitted segments",
            KernelEvent::ListenOverflow => "connections dropped at a full accept queue",
            KernelEvent::ListenDrop => "connections dropped by a listener",
            KernelEvent::SoftnetDropped => "packets dropped at a full backlog",
            KernelEvent::SoftnetTimeSqueeze => "softirq rounds that ended with packets left",
        }
    }
}

const PACKETS: &str = "packets_per_request";
const CONTEXT_SWITCHES: &str = "context_switches_per_request";
const COLLECTOR_SHARE: &str = "collector.cpu_share";
const MACHINE: &str = "machine";

impl CollectedMetric {
    /// Parses the name used in files; `None` if no such metric is collected.
    pub(super) fn parse(text: &str) -> Option<CollectedMetric> {
        let plain = [
            CollectedMetric::Packets,
            CollectedMetric::ContextSwitches,
            CollectedMetric::CollectorShare,
        ];
        let events = KernelEvent::ALL.map(CollectedMetric::Count);
        let machine = MachineMetric::ALL.map(CollectedMetric::OfMachine);
        let mut known = plain.into_iter().chain(events).chain(machine);
        if let Some(found) = known.find(|collected| collected.name() == text) {
            return Some(found);
        }
        let (subject, rest) = text.split_once('.')?;
        if subject == PACKETS {
            return (!rest.is_empty()).then(|| CollectedMetric::PacketsOf(rest.into()));
        }
        let role = Role::ALL.into_iter().find(|role| role.name() == subject)?;
        let of_role = RoleMetric::ALL.into_iter().find(|of| of.name() == rest)?;
        Some(CollectedMetric::OfRole(role, of_role))
    }

    pub(super) fn role(&self) -> Option<Role> {
        match self {
            CollectedMetric::OfRole(role, _) => Some(*role),
            CollectedMetric::OfMachine(_)
            | CollectedMetric::Packets
            | CollectedMetric::PacketsOf(_)
            | CollectedMetric::ContextSwitches
            | CollectedMetric::Count(_)
            | CollectedMetric::CollectorShare => None,
        }
    }

    /// The name used in files and results.
    pub fn name(&self) -> String {
        match self {
            CollectedMetric::OfRole(role, of) => format!("{}.{}", role.name(), of.name()),
            CollectedMetric::OfMachine(of) => format!("{MACHINE}.{}", of.of_role().name()),
            CollectedMetric::Packets => PACKETS.into(),
            CollectedMetric::PacketsOf(interface) => format!("{PACKETS}.{interface}"),
            CollectedMetric::ContextSwitches => CONTEXT_SWITCHES.into(),
            CollectedMetric::Count(event) => event.name().into(),
            CollectedMetric::CollectorShare => COLLECTOR_SHARE.into(),
        }
    }

    pub(super) fn title(&self) -> String {
        match self {
            CollectedMetric::OfRole(role, of) => format!("{} {}", role.name(), of.title()),
            CollectedMetric::OfMachine(of) => format!("{MACHINE} {}", of.of_role().title()),
            CollectedMetric::Packets => "packets per request".into(),
            CollectedMetric::PacketsOf(interface) => format!("packets per request on {interface}"),
            CollectedMetric::ContextSwitches => "context switches per request".into(),
            CollectedMetric::Count(event) => event.title().into(),
            CollectedMetric::CollectorShare => "share of one CPU used by the measurement".into(),
        }
    }

    pub(super) fn metric_kind(&self) -> MetricKind {
        match self {
            CollectedMetric::OfRole(_, RoleMetric::RatePerCpuGiven) => MetricKind::Rate,
            CollectedMetric::OfRole(_, _)
            | CollectedMetric::OfMachine(_)
            | CollectedMetric::Packets
            | CollectedMetric::PacketsOf(_)
            | CollectedMetric::ContextSwitches => MetricKind::Cost,
            CollectedMetric::Count(_) | CollectedMetric::CollectorShare => MetricKind::Count,
        }
    }

    pub(super) fn is_better_high(&self) -> bool {
        matches!(
            self,
            CollectedMetric::OfRole(_, RoleMetric::RatePerCpuUsed | RoleMetric::RatePerCpuGiven)
        )
    }

    pub(super) fn unit(&self) -> Unit {
        match self {
            CollectedMetric::OfRole(_, of) => match of {
                RoleMetric::User | RoleMetric::System | RoleMetric::Softirq | RoleMetric::Wait => {
                    Unit::Microseconds
                }
                RoleMetric::RatePerCpuUsed | RoleMetric::RatePerCpuGiven => Unit::PerSecond,
                RoleMetric::VoluntarySwitches | RoleMetric::InvoluntarySwitches => Unit::Number,
            },
            CollectedMetric::OfMachine(_) => Unit::Microseconds,
            CollectedMetric::Packets
            | CollectedMetric::PacketsOf(_)
            | CollectedMetric::ContextSwitches
            | CollectedMetric::Count(_)
            | CollectedMetric::CollectorShare => Unit::Number,
        }
    }
}
