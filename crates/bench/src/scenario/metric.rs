//! What can be compared, by the name it has in experiment files and results.

use super::results::Counted;
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
}

/// A percentile as it is written: the text is the key in results, the number places it on an axis.
#[derive(Debug, Clone, PartialEq)]
pub struct Percentile {
    /// `99.9`.
    pub text: String,
}

/// The unit a metric is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Requests per second.
    PerSecond,
    /// Microseconds.
    Microseconds,
    /// Bytes.
    Bytes,
}

impl Unit {
    /// The symbol in tables.
    pub fn symbol(self) -> &'static str {
        match self {
            Unit::PerSecond => "/s",
            Unit::Microseconds => "µs",
            Unit::Bytes => "B",
        }
    }
}

impl Metric {
    /// Reads the name used in files; `None` when there is no such metric.
    pub fn parse(text: &str) -> Option<Metric> {
        if text == "rps" {
            return Some(Metric::Rate);
        }
        let (subject, rest) = text.split_once('.')?;
        if subject == "latency" {
            return Metric::parse_latency(rest);
        }
        let role = Role::ALL.into_iter().find(|role| role.name() == subject)?;
        match rest {
            "cpu_us_per_request" => Some(Metric::Cpu(role)),
            "memory_per_connection" if role.listens() => Some(Metric::Memory(role)),
            _ => None,
        }
    }

    fn parse_latency(rest: &str) -> Option<Metric> {
        if rest == "mean" {
            return Some(Metric::LatencyMean);
        }
        let text = rest.strip_prefix('p')?;
        let value: f64 = text.parse().ok()?;
        (value > 0.0 && value < 100.0).then(|| Metric::Latency(Percentile { text: text.into() }))
    }

    /// The role that the metric is about.
    pub fn role(&self) -> Option<Role> {
        match self {
            Metric::Cpu(role) | Metric::Memory(role) => Some(*role),
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
        }
    }

    /// The words used in reports.
    pub fn title(&self) -> String {
        match self {
            Metric::Rate => "requests per second".into(),
            Metric::Cpu(role) => format!("{} CPU per request", role.name()),
            Metric::Memory(_) => "user memory per idle connection".into(),
            Metric::LatencyMean => "mean latency".into(),
            Metric::Latency(percentile) => format!("latency, {} %", percentile.text),
        }
    }

    /// The words used in reports, where clients counted something that is no request.
    pub fn title_of(&self, counted: Counted) -> String {
        let title = self.title();
        match self {
            Metric::Rate | Metric::Cpu(_) => title
                .replace("requests", counted.plural())
                .replace("request", counted.singular()),
            Metric::Memory(_) | Metric::LatencyMean | Metric::Latency(_) => title,
        }
    }

    /// The unit of its values.
    pub fn unit(&self) -> Unit {
        match self {
            Metric::Rate => Unit::PerSecond,
            Metric::Cpu(_) | Metric::LatencyMean | Metric::Latency(_) => Unit::Microseconds,
            Metric::Memory(_) => Unit::Bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_metric_reads_back_from_its_name() {
        for name in [
            "rps",
            "server.cpu_us_per_request",
            "control.cpu_us_per_request",
            "proxy.memory_per_connection",
            "latency.mean",
            "latency.p99.99",
        ] {
            let metric = Metric::parse(name).unwrap_or_else(|| panic!("{name} is a metric"));
            assert_eq!(metric.name(), name);
        }
    }

    #[test]
    fn what_is_no_metric_is_refused() {
        for name in [
            "",
            "rp",
            "latency.p100",
            "latency.p0",
            "latency.50",
            "client.memory_per_connection",
            "nobody.cpu_us_per_request",
        ] {
            assert_eq!(Metric::parse(name), None, "{name}");
        }
    }
}
