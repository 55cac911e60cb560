//! Detects programs that stood still during a window: stopped by a signal, frozen in a control group, or on a suspended
//! machine. Their rate refers to less time than the window.

use crate::outcome::{Sample, Trial};
use crate::scenario::Role;

/// Use below which a role may be idle for a second.
const BUSY_MIN: f64 = 0.02;
/// Samples are one second apart. A longer interval means that the sampler did not run.
const LATE_S: f64 = 2.0;

/// Marks a trial as invalid if something stood still for a second or longer.
pub(super) fn judge_stall(trial: &mut Trial) {
    let roles: Vec<Role> = trial.roles.keys().copied().collect();
    let still = roles.into_iter().filter_map(|role| {
        let seconds = stalled_s(&trial.samples, role);
        (seconds > 0.0).then(|| {
            format!(
                "the {} was stalled for {seconds:.0} s of the window: it used no CPU time at all",
                role.name()
            )
        })
    });
    let late = trial.samples.iter().filter(|row| row.span_s >= LATE_S);
    let late = late.map(|row| {
        let missed = row.span_s - 1.0;
        format!("no samples for {missed:.1} s: this machine or bench itself was stalled")
    });
    let reasons: Vec<String> = still.chain(late).collect();
    trial.invalid.extend(reasons);
}

/// Seconds without CPU time of a role that is otherwise busy. The first and the last row, in which it may have started
/// or ended, are ignored.
fn stalled_s(samples: &[Sample], role: Role) -> f64 {
    let Some(inner) = samples
        .len()
        .checked_sub(2)
        .map(|count| &samples[1..=count])
    else {
        return 0.0;
    };
    let uses: Vec<(f64, f64)> = inner
        .iter()
        .filter_map(|row| Some((row.span_s, *row.roles.get(&role)?)))
        .collect();
    let length: f64 = uses.iter().map(|(span, _)| span).sum();
    let used: f64 = uses.iter().map(|(span, share)| span * share).sum();
    if used < length * BUSY_MIN {
        return 0.0;
    }
    let idle = uses.iter().filter(|(_, share)| *share <= 0.0);
    idle.map(|(span, _)| span).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn judged(uses: &[f64]) -> Vec<String> {
        let row = |share: &f64| Sample {
            t: 0.0,
            span_s: 1.0,
            cpus: Vec::new(),
            roles: [(Role::Server, *share)].into(),
            interfaces: BTreeMap::new(),
            counters: BTreeMap::new(),
        };
        let mut trial = Trial {
            samples: uses.iter().map(row).collect(),
            roles: [(Role::Server, Default::default())].into(),
            ..Trial::default()
        };
        judge_stall(&mut trial);
        trial.invalid
    }

    #[test]
    fn seconds_without_cpu_time_are_a_stall() {
        let said = judged(&[0.5, 0.6, 0.0, 0.0, 0.6, 0.5]);
        let reason = "the server was stalled for 2 s of the window: it used no CPU time at all";
        assert_eq!(said, [reason]);
        assert!(judged(&[0.5, 0.6, 0.0001, 0.6, 0.5]).is_empty());
    }

    #[test]
    fn idle_or_starting_role_is_not_stalled() {
        assert!(judged(&[0.0, 0.5, 0.5, 0.0]).is_empty());
        assert!(judged(&[0.0, 0.01, 0.0, 0.02, 0.0]).is_empty());
        assert!(judged(&[]).is_empty() && judged(&[0.0]).is_empty());
    }

    #[test]
    fn missing_samples_invalidate_trial() {
        let mut trial = Trial::default();
        trial.samples.push(Sample {
            t: 3.5,
            span_s: 3.5,
            cpus: Vec::new(),
            roles: BTreeMap::new(),
            interfaces: BTreeMap::new(),
            counters: BTreeMap::new(),
        });
        judge_stall(&mut trial);
        let reason = "no samples for 2.5 s: this machine or bench itself was stalled";
        assert_eq!(trial.invalid, [reason]);
    }
}
