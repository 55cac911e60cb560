//! CPU time per request: user, system and packets, of roles and of the whole host, and requests per CPU.

use crate::collect::process::TreeUse;
use crate::collect::sampler::Window;
use crate::limits::CPUS_OF_HOST_MAX;
use crate::outcome::CpuUse;
use crate::scenario::{CollectedMetric, MachineMetric, Metric, Role, RoleMetric};

pub(super) struct RoleWindow<'a> {
    pub(super) role: Role,
    pub(super) used: &'a TreeUse,
    pub(super) cpus: &'a [usize],
    /// Requests that the role handled, and their rate.
    pub(super) requests: u64,
    pub(super) rps: f64,
}

/// Metrics of a role; empty if it handled no requests.
pub(super) fn of_role(part: &RoleWindow<'_>, window: &Window) -> Vec<(String, f64)> {
    if part.requests == 0 {
        return Vec::new();
    }
    let requests = part.requests as f64;
    let mut metrics = of_cpu_time(part, requests);
    let mut add = |of: RoleMetric, value: f64| {
        metrics.push((CollectedMetric::OfRole(part.role, of).name(), value))
    };
    let seconds = window.length.as_secs_f64();
    if let Some(share) = sum(&window.cpus, |cpu| part.cpus.contains(&cpu.cpu), packets) {
        add(RoleMetric::Softirq, share * seconds * 1e6 / requests);
    }
    if !part.cpus.is_empty() {
        add(
            RoleMetric::RatePerCpuGiven,
            part.rps / part.cpus.len() as f64,
        );
    }
    metrics
}

/// Metrics of a role's CPU time; empty if that is unknown.
fn of_cpu_time(part: &RoleWindow<'_>, requests: f64) -> Vec<(String, f64)> {
    if part.used.failed > 0 {
        return Vec::new();
    }
    let cpu_us = part.used.cpu.as_secs_f64() * 1e6 / requests;
    let mut metrics = vec![(Metric::Cpu(part.role).name(), cpu_us)];
    let mut add = |of: RoleMetric, value: f64| {
        metrics.push((CollectedMetric::OfRole(part.role, of).name(), value))
    };
    // Clock ticks give the proportions, nanoseconds the total.
    if part.used.user_ticks + part.used.system_ticks > 0 {
        let system = part.used.system_share();
        add(RoleMetric::User, cpu_us * (1.0 - system));
        add(RoleMetric::System, cpu_us * system);
    }
    if cpu_us > 0.0 {
        add(RoleMetric::RatePerCpuUsed, 1e6 / cpu_us);
    }
    metrics
}

/// Reasons why a trial is invalid: unknown CPU time of a role.
pub(super) fn unknown(window: &Window) -> impl Iterator<Item = String> {
    let failed = window.roles.iter().filter(|(_, used)| used.failed > 0);
    failed.map(|(role, used)| {
        format!(
            "the CPU time of the {} is unknown: {} readings failed, for example of a process whose exit status was not \
             collected",
            role.name(),
            used.failed
        )
    })
}

type Share = fn(&CpuUse) -> f64;

/// Metrics over all CPUs of the host of the role under test, to which `cpu` belongs; `requests` is the sum over
/// all clients.
pub(super) fn of_machine(window: &Window, cpu: usize, requests: u64) -> Vec<(String, f64)> {
    if requests == 0 {
        return Vec::new();
    }
    let host = cpu / CPUS_OF_HOST_MAX;
    let is_of_host = |used: &CpuUse| used.cpu / CPUS_OF_HOST_MAX == host;
    let kinds: [(MachineMetric, Share); 3] = [
        (MachineMetric::User, |used| used.user),
        (MachineMetric::System, |used| used.system),
        (MachineMetric::Softirq, packets),
    ];
    let seconds = window.length.as_secs_f64();
    let metrics = kinds.into_iter().filter_map(|(of, share)| {
        let share = sum(&window.cpus, is_of_host, share)?;
        let us = share * seconds * 1e6 / requests as f64;
        Some((CollectedMetric::OfMachine(of).name(), us))
    });
    metrics.collect()
}

/// Hard interrupts count as packet work, like softirqs.
fn packets(used: &CpuUse) -> f64 {
    used.softirq + used.irq
}

fn sum(
    cpus: &[CpuUse],
    is_one: impl Fn(&CpuUse) -> bool,
    share: impl Fn(&CpuUse) -> f64,
) -> Option<f64> {
    let mut some = cpus.iter().filter(|cpu| is_one(cpu)).peekable();
    some.peek()?;
    Some(some.map(share).sum())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use super::*;

    fn window() -> Window {
        let cpu = |cpu, user, softirq| CpuUse {
            cpu,
            user,
            system: 0.5,
            softirq,
            irq: 0.05,
            ..CpuUse::default()
        };
        Window {
            length: Duration::from_secs(2),
            cpus: vec![cpu(0, 0.1, 0.2), cpu(1, 0.3, 0.1), cpu(10_000, 0.4, 0.0)],
            ..Window::default()
        }
    }

    fn metrics(requests: u64, ticks: u64) -> BTreeMap<String, f64> {
        let used = TreeUse {
            cpu: Duration::from_millis(1_500),
            user_ticks: ticks,
            system_ticks: ticks * 2,
            ..TreeUse::default()
        };
        let part = RoleWindow {
            role: Role::Server,
            used: &used,
            cpus: &[0, 1],
            requests,
            rps: requests as f64 / 2.0,
        };
        of_role(&part, &window()).into_iter().collect()
    }

    fn close(metrics: &BTreeMap<String, f64>, name: &str, expected: f64) {
        let value = metrics[name];
        assert!((value - expected).abs() < 1e-9, "{name}: {value}");
    }

    #[test]
    fn failed_reading_leaves_no_cpu_time() {
        let used = TreeUse {
            cpu: Duration::from_micros(20),
            failed: 1,
            ..TreeUse::default()
        };
        let part = RoleWindow {
            role: Role::Server,
            used: &used,
            cpus: &[0],
            requests: 1_000,
            rps: 500.0,
        };
        let names: Vec<String> = of_role(&part, &window())
            .into_iter()
            .map(|(name, _)| name)
            .collect();
        assert_eq!(
            names,
            ["server.softirq_us_per_request", "server.rps_per_cpu_given"]
        );
        let mut window = window();
        assert_eq!(unknown(&window).count(), 0);
        window.roles.insert(Role::Server, used);
        let why: Vec<String> = unknown(&window).collect();
        assert!(
            matches!(&why[..], [one] if one.starts_with("the CPU time of the server is unknown")),
            "{why:?}"
        );
    }

    #[test]
    fn cpu_time_splits_into_user_and_system() {
        let metrics = metrics(100_000, 50);
        close(&metrics, "server.cpu_us_per_request", 15.0);
        close(&metrics, "server.user_us_per_request", 5.0);
        close(&metrics, "server.system_us_per_request", 10.0);
        // 0.25 and 0.15 of two seconds.
        close(&metrics, "server.softirq_us_per_request", 8.0);
        close(&metrics, "server.rps_per_cpu_used", 1e5 / 1.5);
        close(&metrics, "server.rps_per_cpu_given", 25_000.0);
    }

    #[test]
    fn uncounted_metrics_are_absent() {
        let metrics = metrics(100_000, 0);
        assert!(!metrics.contains_key("server.user_us_per_request"));
        assert!(self::metrics(0, 50).is_empty());
        assert!(of_machine(&Window::default(), 0, 5).is_empty());
        assert!(of_machine(&window(), 0, 0).is_empty());
    }

    #[test]
    fn machine_metrics_use_host_of_tested_role() {
        let here: BTreeMap<String, f64> = of_machine(&window(), 1, 100_000).into_iter().collect();
        close(&here, "machine.user_us_per_request", 8.0);
        close(&here, "machine.softirq_us_per_request", 8.0);
        let there: BTreeMap<String, f64> =
            of_machine(&window(), 10_003, 100_000).into_iter().collect();
        close(&there, "machine.user_us_per_request", 8.0);
        close(&there, "machine.system_us_per_request", 10.0);
    }
}
