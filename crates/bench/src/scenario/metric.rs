//! Metrics that figures compare, by their names in experiment files and results.

use super::collected::CollectedMetric;
use super::metric_kind::{MetricKind, Unit};
use super::results::CountedUnit;
use super::role::Role;

/// One number per trial.
#[derive(Debug, Clone, PartialEq)]
pub enum Metric {
    /// `rps`: responses per second.
    Rate,
    /// `ROLE.cpu_us_per_request`: user and system time of the role's processes per response.
    Cpu(Role),
    /// `ROLE.memory_per_connection`: growth of resident anonymous memory per idle connection.
    Memory(Role),
    /// `latency.mean`.
    LatencyMean,
    /// `latency.pN`, such as `latency.p99.9`.
    Latency(Percentile),
    /// `control.latency.mean`: mean latency of the control client.
    ControlLatencyMean,
    /// `control.latency.pN`.
    ControlLatency(Percentile),
    /// A counter of the kernel, per trial.
    Collected(CollectedMetric),
}

/// A percentile as written in the file: the text is the key in results, its number the position on an axis.
#[derive(Debug, Clone, PartialEq)]
pub struct Percentile {
    /// For example `99.9`.
    pub text: String,
}

impl Metric {
    /// Parses the name used in files; `None` if there is no such metric.
    pub fn parse(text: &str) -> Option<Metric> {
        if text == "rps" {
            return Some(Metric::Rate);
        }
        if let Some(collected) = CollectedMetric::parse(text) {
            return Some(Metric::Collected(collected));
        }
        let (subject, rest) = text.split_once('.')?;
        if subject == "latency" {
            return match rest {
                "mean" => Some(Metric::LatencyMean),
                _ => parse_percentile(rest).map(Metric::Latency),
            };
        }
        if let Some(rest) = text.strip_prefix("control.latency.") {
            return match rest {
                "mean" => Some(Metric::ControlLatencyMean),
                _ => parse_percentile(rest).map(Metric::ControlLatency),
            };
        }
        let role = Role::ALL.into_iter().find(|role| role.name() == subject)?;
        match rest {
            "cpu_us_per_request" => Some(Metric::Cpu(role)),
            "memory_per_connection" if role.listens() => Some(Metric::Memory(role)),
            _ => None,
        }
    }

    /// The role of the metric, if it belongs to one.
    pub fn role(&self) -> Option<Role> {
        match self {
            Metric::Cpu(role) | Metric::Memory(role) => Some(*role),
            Metric::Collected(collected) => collected.role(),
            Metric::ControlLatencyMean | Metric::ControlLatency(_) => Some(Role::Control),
            Metric::Rate | Metric::LatencyMean | Metric::Latency(_) => None,
        }
    }

    /// The name used in files and results.
    pub fn name(&self) -> String {
        match self {
            Metric::Rate => "rps".into(),
            Metric::Cpu(role) => format!("{}.cpu_us_per_request", role.name()),
            Metric::Memory(role) => format!("{}.memory_per_connection", role.name()),
            Metric::LatencyMean => "latency.mean".into(),
            Metric::Latency(percentile) => format!("latency.p{}", percentile.text),
            Metric::ControlLatencyMean => "control.latency.mean".into(),
            Metric::ControlLatency(percentile) => format!("control.latency.p{}", percentile.text),
            Metric::Collected(collected) => collected.name(),
        }
    }

    /// The name used in reports.
    pub fn title(&self) -> String {
        match self {
            Metric::Rate => "requests per second".into(),
            Metric::Cpu(role) => format!("{} CPU per request", role.name()),
            Metric::Memory(_) => "user memory per idle connection".into(),
            Metric::LatencyMean => "mean latency".into(),
            Metric::Latency(percentile) => format!("latency, {} %", percentile.text),
            Metric::ControlLatencyMean => "mean latency of the control client".into(),
            Metric::ControlLatency(percentile) => {
                format!("latency of the control client, {} %", percentile.text)
            }
            Metric::Collected(collected) => collected.title(),
        }
    }

    /// Returns the title used in reports, in which "request" is replaced by the unit that the clients counted.
    pub fn title_of(&self, counted: CountedUnit) -> String {
        let title = self.title();
        match self.metric_kind() {
            MetricKind::Rate | MetricKind::Cost => title
                .replace("requests", counted.plural())
                .replace("request", counted.singular()),
            MetricKind::Memory | MetricKind::Latency | MetricKind::Count => title,
        }
    }

    /// Kind of number, which determines what invalidates it.
    pub fn metric_kind(&self) -> MetricKind {
        match self {
            Metric::Rate => MetricKind::Rate,
            Metric::Cpu(_) => MetricKind::Cost,
            Metric::Memory(_) => MetricKind::Memory,
            Metric::LatencyMean
            | Metric::Latency(_)
            | Metric::ControlLatencyMean
            | Metric::ControlLatency(_) => MetricKind::Latency,
            Metric::Collected(collected) => collected.metric_kind(),
        }
    }

    /// Whether higher is better.
    pub fn is_better_high(&self) -> bool {
        match self {
            Metric::Rate => true,
            Metric::Cpu(_)
            | Metric::Memory(_)
            | Metric::LatencyMean
            | Metric::Latency(_)
            | Metric::ControlLatencyMean
            | Metric::ControlLatency(_) => false,
            Metric::Collected(collected) => collected.is_better_high(),
        }
    }

    /// Whether it only explains other figures, as collected counters and the latency of the control client do. Two runs
    /// are compared by such a metric only if it is named in full.
    pub fn is_secondary(&self) -> bool {
        match self {
            Metric::Rate
            | Metric::Cpu(_)
            | Metric::Memory(_)
            | Metric::LatencyMean
            | Metric::Latency(_) => false,
            Metric::ControlLatencyMean | Metric::ControlLatency(_) | Metric::Collected(_) => true,
        }
    }

    /// Unit of its values.
    pub fn unit(&self) -> Unit {
        match self {
            Metric::Rate => Unit::PerSecond,
            Metric::Cpu(_)
            | Metric::LatencyMean
            | Metric::Latency(_)
            | Metric::ControlLatencyMean
            | Metric::ControlLatency(_) => Unit::Microseconds,
            Metric::Memory(_) => Unit::Bytes,
            Metric::Collected(collected) => collected.unit(),
        }
    }
}

/// Parses `p99.9`.
fn parse_percentile(text: &str) -> Option<Percentile> {
    let text = text.strip_prefix('p')?;
    let value: f64 = text.parse().ok()?;
    (value > 0.0 && value < 100.0).then(|| Percentile { text: text.into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metric_names_round_trip() {
        for name in [
            "rps",
            "server.cpu_us_per_request",
            "control.cpu_us_per_request",
            "proxy.memory_per_connection",
            "latency.mean",
            "latency.p99.99",
            "control.latency.mean",
            "control.latency.p99.9",
            "server.user_us_per_request",
            "proxy.softirq_us_per_request",
            "client.rps_per_cpu_used",
            "server.rps_per_cpu_given",
            "server.wait_us_per_request",
            "control.involuntary_switches_per_request",
            "machine.system_us_per_request",
            "packets_per_request",
            "packets_per_request.left:eth0",
            "context_switches_per_request",
            "tcp.RetransSegs",
            "softnet.time_squeeze",
            "collector.cpu_share",
        ] {
            let metric = Metric::parse(name).unwrap_or_else(|| panic!("{name} is a metric"));
            assert_eq!(metric.name(), name);
        }
    }

    #[test]
    fn invalid_metric_names_are_rejected() {
        for name in [
            "",
            "rp",
            "latency.p100",
            "latency.p0",
            "control.latency.p100",
            "server.latency.p50",
            "latency.50",
            "client.memory_per_connection",
            "nobody.cpu_us_per_request",
            "packets_per_request.",
            "machine.rps_per_cpu_used",
            "server.packets_per_request",
            "tcp.NoSuchCounter",
        ] {
            assert_eq!(Metric::parse(name), None, "{name}");
        }
    }
}
