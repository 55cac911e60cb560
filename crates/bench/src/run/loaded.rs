//! Builds a trial from a window with load: the clients' reports and the roles' resource use.

use std::collections::BTreeMap;

use super::cost;
use super::subject::Subject;
use super::window_metrics;
use crate::collect::client::ClientReport;
use crate::collect::sampler::Window;
use crate::outcome::{RoleUse, Trial};
use crate::scenario::{Metric, Role};

/// A trial with the figures of a window, before any verdict.
pub(super) fn loaded_trial(
    subject: &Subject<'_>,
    window: Window,
    report: ClientReport,
    control: Option<ClientReport>,
) -> Trial {
    let control_requests = control.as_ref().map_or(0, |control| control.requests);
    let mut metrics = BTreeMap::from([(Metric::Rate.name(), report.rps)]);
    let roles = role_uses(subject, &window, &report, control.as_ref(), &mut metrics);
    let seen_by_control = control
        .as_ref()
        .and_then(|control| control.latency.as_ref());
    for (prefix, latency) in [("", report.latency.as_ref()), ("control.", seen_by_control)] {
        let Some(latency) = latency else {
            continue;
        };
        if let Some(mean) = latency.mean {
            metrics.insert(format!("{prefix}latency.mean"), mean);
        }
        for value in &latency.percentiles {
            metrics.insert(format!("{prefix}latency.p{}", value.percentile), value.us);
        }
    }
    let requests = report.requests + control_requests;
    if let Some(cpu) = subject.placement.of(subject.under_test()).first() {
        metrics.extend(cost::of_machine(&window, *cpu, requests));
    }
    let distrust = report.invalid_reasons.iter();
    let invalid =
        distrust.map(|why| format!("the client reports its own figures as invalid: {why}"));
    let invalid = invalid.chain(cost::unknown(&window)).collect();
    let mut trial = Trial {
        round: subject.round,
        rate: subject.rate,
        counted: report.counted,
        requests: report.requests,
        errors: report.errors,
        rps: report.rps,
        bytes_per_s: report.bytes_per_s,
        statuses: report.statuses,
        invalid,
        latency_us: report.latency,
        control_latency_us: control.and_then(|control| control.latency),
        seconds: report.seconds,
        roles,
        metrics,
        notes: report
            .warnings
            .into_iter()
            .map(|warning| format!("warning of the client: {warning}"))
            .chain(report.notes)
            .collect(),
        ..Trial::default()
    };
    window_metrics::collected(&mut trial, window, requests);
    trial
}

fn role_uses(
    subject: &Subject<'_>,
    window: &Window,
    report: &ClientReport,
    control: Option<&ClientReport>,
    metrics: &mut BTreeMap<String, f64>,
) -> BTreeMap<Role, RoleUse> {
    let (control_requests, control_rps) =
        control.map_or((0, 0.0), |control| (control.requests, control.rps));
    let window_s = window.length.as_secs_f64();
    let mut roles = BTreeMap::new();
    for (role, used) in &window.roles {
        // The server handles the control client's requests too.
        let (requests, rps) = match role {
            Role::Client | Role::Proxy => (report.requests, report.rps),
            Role::Server => (report.requests + control_requests, report.rps + control_rps),
            Role::Control => (control_requests, control_rps),
        };
        let part = cost::RoleWindow {
            role: *role,
            used,
            cpus: subject.placement.of(*role),
            requests,
            rps,
        };
        metrics.extend(cost::of_role(&part, window));
        let cpu_us_per_request = metrics.get(&Metric::Cpu(*role).name()).copied();
        let cpus = subject.placement.of(*role).len().max(1) as f64;
        let role_use = RoleUse {
            cpu_s: used.cpu.as_secs_f64(),
            system_share: used.system_share(),
            busy: used.cpu.as_secs_f64() / window_s.max(1e-9) / cpus,
            cpu_us_per_request,
            memory_bytes: used.memory_bytes,
            wait_s: used.wait.as_secs_f64(),
            voluntary_switches: used.voluntary_switches,
            involuntary_switches: used.involuntary_switches,
            threads_ended: used.threads_ended,
        };
        roles.insert(*role, role_use);
    }
    roles
}
