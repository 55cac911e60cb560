//! Checks whether the control client was undisturbed; only then do its latencies describe the system.

use onrush_measure::units::plural;

use super::bottleneck::{OTHER_PROGRAMS_MAX, STEAL_MAX, mean_use, other_programs_on, percent};
use crate::outcome::Trial;
use crate::placement::Placement;
use crate::scenario::Role;

/// With fewer requests a high percentile is a single request.
const REQUESTS_MIN: u64 = 100;
/// Use above which a thread sends late.
const FULL: f64 = 0.95;
/// Maximum share of a response time in which the control client waited for its CPU; that time is its own and not the
/// system's.
const WAIT_MAX: f64 = 0.25;

/// How a control client ended, and its own report.
#[derive(Debug, Clone, Default)]
pub struct ControlEnd {
    /// Responses received, if it reported.
    pub requests: Option<u64>,
    /// Failed requests.
    pub errors: u64,
    /// Unsuccessful exit, if any.
    pub failure: Option<String>,
    /// Reasons for which it considers its own figures invalid.
    pub distrust: Vec<String>,
}

/// Fills in why the control client's figures are not usable, and adds a note.
pub fn judge_control(trial: &mut Trial, placement: &Placement, end: &ControlEnd) {
    let mut reasons: Vec<String> = end.failure.iter().cloned().collect();
    if end.errors > 0 {
        let count = onrush_measure::units::count(end.errors);
        reasons.push(format!("{count} of its requests failed"));
    }
    if let Some(requests) = end.requests.filter(|count| *count < REQUESTS_MIN) {
        let made = plural(requests, "request");
        reasons.push(format!(
            "it made {made}, at least {REQUESTS_MIN} are needed"
        ));
    }
    reasons.extend(end.distrust.iter().cloned());
    reasons.extend(lack_of_cpu(trial, placement, end.requests.unwrap_or(0)));
    if !reasons.is_empty() {
        trial.notes.push(format!(
            "the control client was disturbed, so its figures show its own limits, not the system's: {}",
            reasons.join("; ")
        ));
    }
    trial.control_disturbed = reasons;
}

/// Why it lacked CPU time; the first reason found.
fn lack_of_cpu(trial: &Trial, placement: &Placement, requests: u64) -> Option<String> {
    let cpus = placement.of(Role::Control);
    let words = crate::environment::cpu_list(cpus);
    let used = trial.roles.get(&Role::Control)?;
    if used.busy >= FULL {
        return Some(format!("it used {} of its CPU", percent(used.busy)));
    }
    let steal = mean_use(&trial.cpus, cpus).map_or(0.0, |mean| mean.steal);
    if steal > STEAL_MAX {
        let share = percent(steal);
        return Some(format!("the hypervisor took {share} of CPU {words}"));
    }
    let others = other_programs_on(trial, placement, cpus).unwrap_or(0.0);
    if others > OTHER_PROGRAMS_MAX {
        let share = percent(others);
        return Some(format!("other programs used {share} of its CPU {words}"));
    }
    let mean = trial.control_latency_us.as_ref()?.mean?;
    let wait = used.wait_s * 1e6 / requests.max(1) as f64;
    (wait > mean * WAIT_MAX).then(|| {
        format!(
            "it waited {wait:.0} µs for CPU {words} for each request, {} of its mean latency: give it a CPU of its own",
            percent(wait / mean)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::{CpuUse, Latency, RoleUse};
    use crate::placement::place;
    use Role::{Client, Control, Server};

    fn judged(change: impl Fn(&mut Trial, &mut ControlEnd)) -> Vec<String> {
        let cpu = |cpu, system| CpuUse {
            cpu,
            system,
            ..CpuUse::default()
        };
        let used = |busy: f64| RoleUse {
            busy,
            ..RoleUse::default()
        };
        let mut trial = Trial {
            cpus: vec![cpu(0, 0.5), cpu(1, 0.9), cpu(2, 0.05)],
            roles: [
                (Client, used(0.5)),
                (Server, used(0.9)),
                (Control, used(0.05)),
            ]
            .into(),
            control_latency_us: Some(Latency {
                from: Default::default(),
                mean: Some(100.0),
                max: None,
                percentiles: Vec::new(),
            }),
            ..Trial::default()
        };
        let mut end = ControlEnd {
            requests: Some(1_000),
            ..ControlEnd::default()
        };
        change(&mut trial, &mut end);
        let roles = [Client, Server, Control];
        let placement = place(&[0, 1, 2], &roles, Server, Some(1));
        assert_eq!(placement.of(Control), [2]);
        judge_control(&mut trial, &placement, &end);
        assert_eq!(trial.notes.is_empty(), trial.control_disturbed.is_empty());
        trial.control_disturbed
    }

    #[test]
    fn undelayed_control_client_is_undisturbed() {
        assert_eq!(judged(|_, _| ()), [""; 0]);
        // 20 ms of waiting over a thousand requests are 20 us per request.
        let waited = |trial: &mut Trial, seconds| {
            trial.roles.entry(Control).or_default().wait_s = seconds;
        };
        assert_eq!(judged(|trial, _| waited(trial, 0.02)), [""; 0]);
        let reasons = judged(|trial, _| waited(trial, 0.04));
        assert!(
            reasons[0].starts_with("it waited 40 µs for CPU 2"),
            "{reasons:?}"
        );
    }

    #[test]
    fn invalid_report_or_exit_disturbs_control() {
        let reasons = judged(|_, end| {
            end.failure = Some("the control ended with exit status 1".into());
            end.errors = 1_234;
            end.requests = Some(7);
            end.distrust.push("not sent: 3 % (bound: 1 %)".into());
        });
        assert_eq!(
            reasons,
            [
                "the control ended with exit status 1",
                "1,234 of its requests failed",
                "it made 7 requests, at least 100 are needed",
                "not sent: 3 % (bound: 1 %)",
            ]
        );
    }

    #[test]
    fn busy_or_stolen_control_cpu_is_reported() {
        let stolen = judged(|trial, _| trial.cpus[2].steal = 0.2);
        assert_eq!(stolen, ["the hypervisor took 20 % of CPU 2"]);
        let others = judged(|trial, _| trial.cpus[2].user = 0.3);
        assert_eq!(others, ["other programs used 30 % of its CPU 2"]);
        let full = judged(|trial, _| trial.roles.entry(Control).or_default().busy = 0.97);
        assert_eq!(full, ["it used 97 % of its CPU"]);
    }
}
