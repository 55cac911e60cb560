//! Decides whether a trial is valid, and adds notes.

use super::advice::advice;
use super::bottleneck;
use super::bottleneck::{OTHER_PROGRAMS_MAX, RATE_KEPT, others, percent};
use super::stall::judge_stall;
use super::steady::trend;
use crate::environment::cpu_list;
use crate::outcome::{BottleneckKind, Trial};
use crate::placement::Placement;
use crate::scenario::Role;

/// With fewer requests the start-up affects the mean.
const REQUESTS_MIN: u64 = 1_000;
/// Share of the window below which a client ended too early.
const WINDOW_SHARE_MIN: f64 = 0.90;
/// Minimum of the reported duration as a share of the window. Clients start to measure when they are connected, and
/// some exclude a ramp-up, which may be most of a window.
const REPORTED_SHARE_MIN: f64 = 0.1;
/// Maximum of the reported duration as a share of the window: a client cannot have measured for longer than it ran.
const REPORTED_SHARE_MAX: f64 = 1.1;
/// Maximum of the reported duration relative to the requested one. Above it, the client did something else, or stood
/// still.
const ASKED_SHARE_MAX: f64 = 1.1;
/// Time in seconds for requests in flight at the end; `onrush load` waits for half a second.
const ENDING_S: f64 = 1.0;
/// Use above which a client thread cannot send faster.
const CLIENT_FULL: f64 = 0.95;
/// Share of a role's CPUs used by other programs above which a note is added.
const OTHER_PROGRAMS_NOTED: f64 = 0.05;

/// Fills in the bottleneck, whether the client was it, reasons for an invalid trial, and notes.
///
/// `asked_s` is the requested length of the window. It is `None` for idle trials: memory does not depend on CPU use.
pub fn judge(trial: &mut Trial, placement: &Placement, under_test: Role, asked_s: Option<f64>) {
    if let Some(asked_s) = asked_s {
        trial.limiter = bottleneck(trial, placement);
        trial.limiter.advice = advice(trial, placement, under_test);
        judge_load(trial, asked_s);
        judge_report(trial, under_test);
        judge_length(trial, asked_s);
        judge_stall(trial);
        judge_client(trial, placement, under_test);
        judge_others(trial, placement);
        judge_steadiness(trial);
    }
    if trial.errors > 0 {
        let count = onrush_measure::units::count(trial.errors);
        let what = trial.counted.plural();
        trial.invalid.push(format!("{count} {what} failed"));
    }
}

fn judge_load(trial: &mut Trial, asked_s: f64) {
    if trial.requests < REQUESTS_MIN {
        trial.invalid.push(format!(
            "too short: {} {}, at least {REQUESTS_MIN} are needed",
            trial.requests,
            trial.counted.plural()
        ));
    }
    if trial.window_s < asked_s * WINDOW_SHARE_MIN {
        trial.invalid.push(format!(
            "too short: the client ended after {:.1} s of {asked_s:.0} s",
            trial.window_s
        ));
    }
}

/// Checks that the report is consistent with the window: the duration follows from responses and rate, and the program
/// that responded used CPU time.
fn judge_report(trial: &mut Trial, under_test: Role) {
    let seconds = trial.requests as f64 / trial.rps.max(1e-9);
    let is_of_window = (trial.window_s * REPORTED_SHARE_MIN..=trial.window_s * REPORTED_SHARE_MAX)
        .contains(&seconds);
    if trial.requests >= REQUESTS_MIN && !is_of_window {
        trial.invalid.push(format!(
            "the report contradicts itself: {} {} at {:.0}/s take {seconds:.1} s, but the window had {:.1} s",
            trial.requests,
            trial.counted.plural(),
            trial.rps,
            trial.window_s
        ));
    }
    let used = trial.roles.get(&under_test).map(|used| used.cpu_s);
    if trial.requests >= REQUESTS_MIN && used == Some(0.0) {
        trial.invalid.push(format!(
            "the {} used no CPU time for {} {}",
            under_test.name(),
            trial.requests,
            trial.counted.plural()
        ));
    }
}

/// Invalidates a trial whose client measured for longer than requested, and notes a client that ran for longer.
fn judge_length(trial: &mut Trial, asked_s: f64) {
    let seconds = trial.requests as f64 / trial.rps.max(1e-9);
    let longest = asked_s * ASKED_SHARE_MAX + ENDING_S;
    let is_of_window = seconds <= trial.window_s * REPORTED_SHARE_MAX;
    if trial.requests >= REQUESTS_MIN && seconds > longest && is_of_window {
        trial.invalid.push(format!(
            "the client measured for {seconds:.1} s, but {asked_s:.0} s were requested"
        ));
    } else if trial.window_s > longest {
        trial.notes.push(format!(
            "the client took {:.1} s for a window of {asked_s:.0} s",
            trial.window_s
        ));
    }
}

/// The client is the bottleneck if its CPUs are saturated, the role under test's are not, and it did not reach a
/// requested rate.
fn judge_client(trial: &mut Trial, placement: &Placement, under_test: Role) {
    let busy = |role| trial.roles.get(&role).map_or(0.0, |used| used.busy);
    let cpu_full = trial.limiter.kind == BottleneckKind::Cpu
        && trial.limiter.roles.contains(&Role::Client)
        && trial.limiter.cpus != placement.of(under_test);
    let thread_full = busy(Role::Client) >= CLIENT_FULL;
    let room_left = busy(under_test) < CLIENT_FULL;
    let kept_rate = trial.rate.is_some_and(|rate| trial.rps >= rate * RATE_KEPT);
    trial.client_is_limit =
        under_test != Role::Client && (thread_full || cpu_full) && room_left && !kept_rate;
    if trial.client_is_limit {
        trial.notes.push(format!(
            "the client was the limit (the {} used {} of its CPU): rate and latency are the client's, CPU per request \
             is valid",
            under_test.name(),
            percent(busy(under_test))
        ));
    }
}

fn judge_others(trial: &mut Trial, placement: &Placement) {
    let Some((cpus, share)) =
        others(trial, placement).filter(|(_, share)| *share > OTHER_PROGRAMS_NOTED)
    else {
        return;
    };
    let words = format!(
        "other programs used {} of CPU {}",
        percent(share),
        cpu_list(&cpus)
    );
    trial.notes.push(words);
    trial.disturbed = (share > OTHER_PROGRAMS_MAX).then_some(share);
}

fn judge_steadiness(trial: &mut Trial) {
    trial.unsteady = trend(&trial.seconds);
    if let Some(change) = trial.unsteady {
        trial.notes.push(unsteady_in_words(change));
    }
}

pub(super) fn unsteady_in_words(change: f64) -> String {
    let direction = if change > 0.0 { "rose" } else { "fell" };
    let share = percent(change.abs());
    format!("not steady: the rate {direction} by {share} within the window")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::{CpuUse, RoleUse};
    use crate::placement::place;
    use Role::{Client, Server};

    fn judged(client: f64, server: f64, change: impl Fn(&mut Trial)) -> Trial {
        let cpu = |cpu, system| CpuUse {
            cpu,
            system,
            ..CpuUse::default()
        };
        let used = |busy: f64| RoleUse {
            busy,
            cpu_s: busy * 2.0,
            ..RoleUse::default()
        };
        let mut trial = Trial {
            requests: 100_000,
            rps: 50_000.0,
            window_s: 2.0,
            cpus: vec![cpu(0, client), cpu(1, server)],
            roles: [(Client, used(client)), (Server, used(server))].into(),
            ..Trial::default()
        };
        change(&mut trial);
        let placement = place(&[0, 1], &[Client, Server], Server, None);
        judge(&mut trial, &placement, Server, Some(2.0));
        trial
    }

    #[test]
    fn saturated_server_is_a_valid_limit() {
        let trial = judged(0.9, 0.99, |_| ());
        assert!(!trial.client_is_limit && trial.invalid.is_empty() && trial.notes.is_empty());
    }

    #[test]
    fn saturated_client_with_idle_server_is_limit() {
        let trial = judged(0.99, 0.7, |_| ());
        assert!(trial.client_is_limit && trial.invalid.is_empty());
        assert!(trial.notes[0].contains("70 %"), "{:?}", trial.notes);
    }

    #[test]
    fn saturated_client_at_target_rate_is_not_limit() {
        let kept = judged(0.99, 0.7, |trial| trial.rate = Some(50_200.0));
        assert!(!kept.client_is_limit);
        let not_kept = judged(0.99, 0.7, |trial| trial.rate = Some(80_000.0));
        assert!(not_kept.client_is_limit);
    }

    #[test]
    fn implausible_report_is_invalid() {
        let trial = judged(0.5, 0.5, |trial| trial.requests = 99_999_999_999);
        let said = &trial.invalid[0];
        assert!(
            said.starts_with("the report contradicts itself: 99999999999 requests"),
            "{said}"
        );
        let trial = judged(0.5, 0.5, |trial| trial.rps = 5_000_000.0);
        assert_eq!(trial.invalid.len(), 1, "{:?}", trial.invalid);
        let trial = judged(0.5, 0.0, |_| {});
        assert_eq!(
            trial.invalid,
            ["the server used no CPU time for 100000 requests"]
        );
    }

    #[test]
    fn errors_and_short_runs_are_invalid() {
        let failed = judged(0.9, 0.99, |trial| trial.errors = 3);
        assert_eq!(failed.invalid, ["3 requests failed"]);
        let few = judged(0.9, 0.99, |trial| trial.requests = 10);
        assert!(few.invalid[0].starts_with("too short"));
        let early = judged(0.9, 0.99, |trial| trial.window_s = 1.0);
        assert!(early.invalid[0].starts_with("too short"));
    }

    #[test]
    fn overlong_measurement_is_invalid() {
        let longer = judged(0.9, 0.99, |trial| {
            trial.window_s = 5.0;
            trial.rps = 20_000.0;
        });
        let reason = "the client measured for 5.0 s, but 2 s were requested";
        assert_eq!(longer.invalid, [reason]);
        let slow_to_end = judged(0.9, 0.99, |trial| trial.window_s = 4.0);
        assert!(slow_to_end.invalid.is_empty());
        assert_eq!(
            slow_to_end.notes,
            ["the client took 4.0 s for a window of 2 s"]
        );
    }

    #[test]
    fn heavy_load_of_other_programs_disturbs() {
        let some = judged(0.9, 0.8, |trial| trial.cpus[1].user = 0.1);
        assert_eq!(some.notes, ["other programs used 10 % of CPU 1"]);
        let many = judged(0.9, 0.7, |trial| trial.cpus[1].user = 0.2);
        assert_eq!(many.notes, ["other programs used 20 % of CPU 1"]);
        assert!(some.disturbed.is_none() && many.disturbed.is_some());
    }
}
