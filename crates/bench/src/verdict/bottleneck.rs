//! Finds the bottleneck of a trial.

use super::kernel_losses::losses;
use crate::outcome::{Bottleneck, BottleneckKind, CpuUse, Trial};
use crate::placement::Placement;
use crate::scenario::Role;

/// Use above which a CPU is saturated; the rest is rounding of ticks and gaps between wake-ups.
const FULL: f64 = 0.95;
/// Share of a requested rate that counts as reached, because the last requests of a window may be in flight.
pub(super) const RATE_KEPT: f64 = 0.98;
/// Share of a saturated CPU's use above which a single role is named as the cause.
const MOST: f64 = 0.80;
/// Share of time stolen by the hypervisor above which it is the bottleneck.
pub(super) const STEAL_MAX: f64 = 0.05;

/// Share of a role's CPUs used by other programs above which comparisons are distorted: by cache misses, wake-ups and
/// lost time.
pub(super) const OTHER_PROGRAMS_MAX: f64 = 0.15;

/// Finds the bottleneck from the use of CPUs and roles over a window, and adds losses.
pub fn bottleneck(trial: &Trial, placement: &Placement) -> Bottleneck {
    let mut limiter = fullest(trial, placement);
    if let Some(losses) = losses(trial).filter(|_| limiter.kind != BottleneckKind::Unknown) {
        limiter.sentence = format!("{} {losses}", limiter.sentence);
    }
    limiter
}

fn fullest(trial: &Trial, placement: &Placement) -> Bottleneck {
    let used: Vec<&CpuUse> = trial
        .cpus
        .iter()
        .filter(|cpu| placement.all().contains(&cpu.cpu))
        .collect();
    if used.is_empty() {
        return Bottleneck::default();
    }
    if let Some(cpu) = used.iter().find(|cpu| cpu.steal > STEAL_MAX) {
        return Bottleneck {
            kind: BottleneckKind::Steal,
            cpus: vec![cpu.cpu],
            roles: Vec::new(),
            advice: None,
            sentence: format!(
                "The hypervisor took {} of CPU {}.",
                percent(cpu.steal),
                cpu.cpu
            ),
        };
    }
    let fullest = fullest_share(trial, placement);
    if let Some((cpus, share)) =
        others(trial, placement).filter(|(_, share)| *share > OTHER_PROGRAMS_MAX)
    {
        return Bottleneck {
            kind: BottleneckKind::Others,
            cpus: cpus.to_vec(),
            roles: Vec::new(),
            advice: None,
            sentence: format!(
                "Other programs used the CPUs: {} of {} went to programs outside of this experiment.",
                percent(share),
                cpu_words(&cpus)
            ),
        };
    }
    match fullest {
        Some(share) if share.busy >= FULL => full(&share, trial),
        _ => not_full(trial, &used),
    }
}

/// The set of CPUs with the highest use by other programs, and that use: CPU time of no role. Kernel threads count as
/// other programs, except ksoftirqd, which processes the roles' packets.
pub(super) fn others(trial: &Trial, placement: &Placement) -> Option<(Vec<usize>, f64)> {
    let mut most: Option<(Vec<usize>, f64)> = None;
    for cpus in placement.cpus.values() {
        let Some(share) = other_programs_on(trial, placement, cpus) else {
            continue;
        };
        if most.as_ref().is_none_or(|(_, most)| share > *most) {
            most = Some((cpus.clone(), share));
        }
    }
    most
}

/// Use of a set of CPUs by other programs.
pub(super) fn other_programs_on(
    trial: &Trial,
    placement: &Placement,
    cpus: &[usize],
) -> Option<f64> {
    let mean = mean_use(&trial.cpus, cpus)?;
    let by_roles: f64 = placement
        .cpus
        .iter()
        .filter(|(_, others)| *others == cpus)
        .filter_map(|(role, _)| Some(trial.roles.get(role)?.busy))
        .sum();
    Some((mean.busy() - mean.steal - mean.ksoftirqd - by_roles).max(0.0))
}

struct Share<'a> {
    cpus: &'a [usize],
    roles: Vec<(Role, f64)>,
    busy: f64,
    mean: CpuUse,
}

/// The set of CPUs with the highest use. Roles share either all their CPUs or none ([`crate::placement::RULE`]).
fn fullest_share<'a>(trial: &Trial, placement: &'a Placement) -> Option<Share<'a>> {
    let mut fullest: Option<Share<'a>> = None;
    for cpus in placement.cpus.values() {
        let Some(mean) = mean_use(&trial.cpus, cpus) else {
            continue;
        };
        if fullest
            .as_ref()
            .is_some_and(|share| share.busy >= mean.busy())
        {
            continue;
        }
        let mut roles: Vec<(Role, f64)> = placement
            .cpus
            .iter()
            .filter(|(_, others)| *others == cpus)
            .filter_map(|(role, _)| Some((*role, trial.roles.get(role)?.busy)))
            .collect();
        roles.sort_by(|a, b| b.1.total_cmp(&a.1));
        fullest = Some(Share {
            cpus,
            roles,
            busy: mean.busy(),
            mean,
        });
    }
    fullest
}

pub(crate) fn mean_use(all: &[CpuUse], cpus: &[usize]) -> Option<CpuUse> {
    let chosen: Vec<&CpuUse> = all.iter().filter(|cpu| cpus.contains(&cpu.cpu)).collect();
    let count = chosen.len() as f64;
    let mean = |part: fn(&CpuUse) -> f64| chosen.iter().map(|cpu| part(cpu)).sum::<f64>() / count;
    let first = chosen.first()?;
    Some(CpuUse {
        cpu: first.cpu,
        user: mean(|cpu| cpu.user),
        system: mean(|cpu| cpu.system),
        softirq: mean(|cpu| cpu.softirq),
        irq: mean(|cpu| cpu.irq),
        steal: mean(|cpu| cpu.steal),
        ksoftirqd: mean(|cpu| cpu.ksoftirqd),
    })
}

fn full(share: &Share<'_>, trial: &Trial) -> Bottleneck {
    let verb = if share.cpus.len() == 1 { "was" } else { "were" };
    let subject = format!("{} {verb}", cpu_words(share.cpus));
    let parts = format!(
        "{} user, {} system, {} softirq",
        percent(share.mean.user),
        percent(share.mean.system),
        percent(share.mean.softirq)
    );
    let who = match share.roles.first() {
        Some((role, busy)) if *busy >= MOST || share.roles.len() == 1 => {
            format!("the {}", role.name())
        }
        _ => {
            let words: Vec<_> = share
                .roles
                .iter()
                .filter(|(_, busy)| *busy >= 0.005)
                .map(|(role, busy)| format!("{} {}", role.name(), percent(*busy)))
                .collect();
            words.join(", ")
        }
    };
    let mut sentence = format!("{subject} full: {who} ({parts}).");
    if let Some(rate) = trial.rate.filter(|rate| trial.rps < rate * RATE_KEPT) {
        sentence.push_str(&format!(
            " The requested rate, {}, was not reached.",
            onrush_measure::units::rate(rate)
        ));
    }
    Bottleneck {
        kind: BottleneckKind::Cpu,
        cpus: share.cpus.to_vec(),
        roles: share.roles.iter().map(|(role, _)| *role).collect(),
        advice: None,
        sentence,
    }
}

fn not_full(trial: &Trial, used: &[&CpuUse]) -> Bottleneck {
    let busiest = used
        .iter()
        .max_by(|a, b| a.busy().total_cmp(&b.busy()))
        .map_or(String::new(), |cpu| {
            let cpus = crate::environment::cpu_list(&[cpu.cpu]);
            format!("CPU {cpus} was {} busy", percent(cpu.busy()))
        });
    let (kind, sentence) = match trial.rate {
        Some(rate) if trial.rps >= rate * RATE_KEPT => (
            BottleneckKind::Rate,
            format!(
                "The requested rate, {}, was reached; the busiest CPU, {busiest}.",
                onrush_measure::units::rate(rate)
            ),
        ),
        Some(rate) => (
            BottleneckKind::Waiting,
            format!(
                "The requested rate, {}, was not reached although no CPU was full ({busiest}): the connections waited \
                 for responses.",
                onrush_measure::units::rate(rate)
            ),
        ),
        None => (
            BottleneckKind::Waiting,
            format!(
                "No CPU was full ({busiest}): the time was spent waiting, for wake-ups or for a timer."
            ),
        ),
    };
    Bottleneck {
        kind,
        cpus: Vec::new(),
        roles: Vec::new(),
        advice: None,
        sentence,
    }
}

fn cpu_words(cpus: &[usize]) -> String {
    match cpus {
        [_] => format!("CPU {}", crate::environment::cpu_list(cpus)),
        _ => format!("CPUs {}", crate::environment::cpu_list(cpus)),
    }
}

pub(super) fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::RoleUse;
    use crate::placement::place;
    use Role::{Client, Control, Proxy, Server};

    fn cpu(cpu: usize, user: f64, system: f64, softirq: f64) -> CpuUse {
        CpuUse {
            cpu,
            user,
            system,
            softirq,
            ..CpuUse::default()
        }
    }

    fn trial(cpus: &[CpuUse], roles: &[(Role, f64)]) -> Trial {
        let role_use = |(role, busy): &(Role, f64)| {
            let used = RoleUse {
                busy: *busy,
                ..RoleUse::default()
            };
            (*role, used)
        };
        Trial {
            cpus: cpus.to_vec(),
            roles: roles.iter().map(role_use).collect(),
            rps: 100_000.0,
            ..Trial::default()
        }
    }

    #[test]
    fn saturated_cpu_reports_role_and_time_split() {
        let placement = place(&[0, 1], &[Client, Server], Server, None);
        let trial = trial(
            &[cpu(0, 0.2, 0.5, 0.1), cpu(1, 0.1, 0.75, 0.14)],
            &[(Client, 0.8), (Server, 0.98)],
        );
        let found = bottleneck(&trial, &placement);
        assert_eq!(found.kind, BottleneckKind::Cpu);
        assert_eq!(
            found.sentence,
            "CPU 1 was full: the server (10 % user, 75 % system, 14 % softirq)."
        );
    }

    #[test]
    fn saturated_shared_cpu_lists_roles_by_usage() {
        let placement = place(&[0, 1], &[Client, Proxy, Server, Control], Proxy, None);
        let trial = trial(
            &[cpu(0, 0.3, 0.6, 0.1), cpu(1, 0.1, 0.7, 0.1)],
            &[
                (Client, 0.51),
                (Server, 0.46),
                (Control, 0.02),
                (Proxy, 0.9),
            ],
        );
        let found = bottleneck(&trial, &placement);
        assert_eq!(found.roles, [Client, Server, Control]);
        assert!(
            found
                .sentence
                .starts_with("CPU 0 was full: client 51 %, server 46 %, control 2 %"),
            "{}",
            found.sentence
        );
    }

    #[test]
    fn cpu_used_by_other_programs_is_reported() {
        let placement = place(&[0, 1], &[Client, Server], Server, None);
        let trial = trial(
            &[cpu(0, 0.9, 0.1, 0.0), cpu(1, 0.1, 0.3, 0.0)],
            &[(Client, 0.3), (Server, 0.4)],
        );
        assert_eq!(bottleneck(&trial, &placement).kind, BottleneckKind::Others);
    }

    #[test]
    fn losses_are_listed_after_bottleneck() {
        let placement = place(&[0, 1], &[Client, Server], Server, None);
        let mut trial = trial(
            &[cpu(0, 0.2, 0.2, 0.0), cpu(1, 0.2, 0.3, 0.0)],
            &[(Client, 0.4), (Server, 0.5)],
        );
        let overflows = [("ListenOverflows".to_owned(), 5.0)];
        trial.totals.insert("tcp".into(), overflows.into());
        let found = bottleneck(&trial, &placement);
        assert!(
            found.sentence.ends_with(
                "for wake-ups or for a timer. In the window: 5 connections dropped at a full accept queue \
                 (ListenOverflows)."
            ),
            "{}",
            found.sentence
        );
        trial.cpus.clear();
        assert_eq!(bottleneck(&trial, &placement), Bottleneck::default());
    }

    #[test]
    fn target_rate_and_steal_time_are_limits() {
        let placement = place(&[0, 1], &[Client, Server], Server, None);
        let mut paced = trial(
            &[cpu(0, 0.2, 0.2, 0.0), cpu(1, 0.2, 0.3, 0.0)],
            &[(Client, 0.4), (Server, 0.5)],
        );
        assert_eq!(bottleneck(&paced, &placement).kind, BottleneckKind::Waiting);
        paced.rate = Some(100_500.0);
        assert_eq!(bottleneck(&paced, &placement).kind, BottleneckKind::Rate);
        paced.rate = Some(200_000.0);
        assert_eq!(bottleneck(&paced, &placement).kind, BottleneckKind::Waiting);
        paced.cpus[1].steal = 0.2;
        assert_eq!(bottleneck(&paced, &placement).kind, BottleneckKind::Steal);
    }
}
