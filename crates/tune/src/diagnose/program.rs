//! CPU time of the given process against that of other programs.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use super::busy::FULL;
use super::{Case, Confidence, Finding, Limiter, finding, named};
use onrush_machine::cpus::CpuSet;

/// Share of time on a run queue above which a thread waits for CPUs.
const DELAYED: f64 = 0.1;
/// Share of the CPU time on full CPUs above which the process fills them itself.
const OWN: f64 = 0.5;
/// Programs named in a finding.
const PROGRAMS_SHOWN: usize = 3;
/// CPU use below which a program is not named.
const SHOWN: f64 = 0.05;

impl Case<'_> {
    /// CPUs of the process that other programs fill while its threads wait for them.
    pub(super) fn other_programs(&self) -> Option<Finding> {
        let process = self.after.process.as_ref()?;
        let allowed = self.allowed();
        let load = |cpu: usize| self.loads.get(&cpu).copied().unwrap_or_default();
        let is_full = |cpu: usize| {
            let load = load(cpu);
            load.busy - load.steal - load.interrupts >= FULL
        };
        (!allowed.is_empty() && allowed.iter().all(is_full) && !self.is_own(&allowed))
            .then_some(())?;
        let delayed = self.delayed();
        // Threads that are never on a run queue do not wait for CPUs.
        let confidence = match delayed {
            Some(share) if share < DELAYED => return None,
            Some(_) => self.fullness(&allowed),
            None => Confidence::Medium,
        };
        let waited = match delayed {
            Some(share) => format!(
                "a thread waited on a run queue for {:.0} % of the time",
                share * 100.0
            ),
            None => "its time on run queues is not known (schedstat)".to_owned(),
        };
        finding(
            Limiter::OtherPrograms,
            confidence,
            format!(
                "other programs fill {}, on which {} may run: it used {:.2} CPUs, and {waited}{}",
                named(&allowed),
                process.name,
                self.own_cpus(),
                self.busiest_programs("; the largest are ")
            ),
            "fewer other programs on its CPUs, CPUs of its own (CPUAffinity in its unit, cpusets), or more weight \
             (CPUWeight, nice)",
        )
    }

    /// The CPUs that the process may run on; all CPUs if unknown.
    fn allowed(&self) -> CpuSet {
        let all: CpuSet = self.loads.keys().copied().collect();
        match &self.after.process {
            Some(process) if !process.allowed.is_empty() => all.minus(&all.minus(&process.allowed)),
            _ => all,
        }
    }

    /// Whether the given process fills these CPUs itself; true without a process.
    pub(super) fn is_own(&self, cpus: &CpuSet) -> bool {
        let (Some(_), Some(_)) = (&self.before.process, &self.after.process) else {
            return true;
        };
        let work = |cpu: usize| {
            let load = self.loads.get(&cpu).copied().unwrap_or_default();
            load.busy - load.steal - load.interrupts
        };
        let used: f64 = cpus.iter().map(work).sum();
        self.own_cpus() >= used * OWN
    }

    pub(super) fn own_cpus(&self) -> f64 {
        let (Some(then), Some(now)) = (&self.before.process, &self.after.process) else {
            return 0.0;
        };
        // A new thread used all its time since the first reading.
        let ticks = now.threads.iter().map(|(number, thread)| {
            let before = then.threads.get(number).map_or(0, |thread| thread.ticks);
            thread.ticks.saturating_sub(before)
        });
        let ticks = ticks.fold(0, u64::saturating_add);
        match self.seconds() > 0.0 {
            true => ticks as f64 / 100.0 / self.seconds(),
            false => 0.0,
        }
    }

    /// The largest share of time that a thread spent on a run queue.
    pub(super) fn delayed(&self) -> Option<f64> {
        let (then, now) = (self.before.process.as_ref()?, self.after.process.as_ref()?);
        (self.seconds() > 0.0).then_some(())?;
        let share = |(number, thread): (&u32, &crate::facts::process::Thread)| {
            let before = then
                .threads
                .get(number)
                .map_or(Some(0), |thread| thread.delayed)?;
            Some(thread.delayed?.saturating_sub(before) as f64 / 1e9 / self.seconds())
        };
        now.threads.iter().filter_map(share).max_by(f64::total_cmp)
    }

    /// `cc1 (4711) 1.20 CPUs`: the busiest programs except the given process; empty when not read.
    pub(super) fn busiest_programs(&self, front: &str) -> String {
        let (Some(then), Some(now)) = (&self.before.programs, &self.after.programs) else {
            return String::new();
        };
        let own: BTreeSet<u32> = match &self.after.process {
            Some(process) => process
                .threads
                .values()
                .map(|thread| thread.process)
                .collect(),
            None => BTreeSet::new(),
        };
        let used = |(number, program): (&u32, &crate::facts::Program)| {
            let before = then
                .get(number)
                .filter(|before| before.started == program.started)
                .map_or(0, |before| before.ticks);
            let cpus = program.ticks.saturating_sub(before) as f64 / 100.0 / self.seconds();
            (cpus >= SHOWN && !own.contains(number)).then(|| (cpus, program.name.clone(), *number))
        };
        let mut used: Vec<_> = now.iter().filter_map(used).collect();
        used.sort_by_key(|(cpus, ..)| Reverse((cpus * 100.0) as u64));
        let words = used
            .iter()
            .take(PROGRAMS_SHOWN)
            .map(|(cpus, name, number)| format!("{name} ({number}) {cpus:.2} CPUs"));
        match words.collect::<Vec<_>>() {
            words if words.is_empty() => String::new(),
            words => format!("{front}{}", words.join(", ")),
        }
    }
}
