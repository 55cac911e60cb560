//! One row per second of a window: CPUs, roles, interfaces.

use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant};

use super::cpu::{CpuTicks, cpu_ticks, ksoftirqd};
use super::interface::{InterfaceCounters, interfaces};
use super::process::{TreeUse, time_on_cpu, tree};
use crate::limits::SAMPLE_EVERY;
use crate::outcome::{CpuUse, Sample};
use crate::scenario::Role;

/// Everything read at one moment.
#[derive(Debug, Clone)]
struct Reading {
    at: Instant,
    cpus: Vec<CpuTicks>,
    /// Time on the CPU of each CPU's `ksoftirqd`.
    ksoftirqd: BTreeMap<usize, Duration>,
    interfaces: BTreeMap<String, InterfaceCounters>,
    roles: BTreeMap<Role, TreeUse>,
}

impl Reading {
    /// `seen` is what each role had used when it was last looked at: a process that has ended forgets its threads.
    fn now(pids: &BTreeMap<Role, u32>, seen: &BTreeMap<Role, Duration>) -> Reading {
        let role = |(role, pid): (&Role, &u32)| {
            let mut used = tree(*pid);
            if used.ended {
                used.cpu = used.cpu_of_ended(seen.get(role).copied().unwrap_or_default());
            }
            (*role, used)
        };
        let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
        Reading {
            at: Instant::now(),
            cpus: cpu_ticks(&text("/proc/stat")),
            ksoftirqd: ksoftirqd()
                .iter()
                .filter_map(|(cpu, pid)| {
                    let used = time_on_cpu(&text(&format!("/proc/{pid}/schedstat")))?;
                    Some((*cpu, used))
                })
                .collect(),
            interfaces: interfaces(&text("/proc/net/dev")),
            roles: pids.iter().map(role).collect(),
        }
    }

    fn cpu_uses_since(&self, before: &Reading) -> Vec<CpuUse> {
        let pairs = self.cpus.iter().filter_map(|now| {
            let then = before.cpus.iter().find(|then| then.cpu == now.cpu)?;
            let mut used = now.since(*then);
            if let (Some(now), Some(then)) = (
                self.ksoftirqd.get(&used.cpu),
                before.ksoftirqd.get(&used.cpu),
            ) {
                let span = (self.at - before.at).as_secs_f64().max(1e-9);
                used.ksoftirqd = now.saturating_sub(*then).as_secs_f64() / span;
            }
            Some(used)
        });
        pairs.collect()
    }

    fn sample_since(&self, before: &Reading, start: Instant) -> Sample {
        let span = self.at - before.at;
        let role = |(role, now): (&Role, &TreeUse)| {
            let before = before.roles.get(role).copied().unwrap_or_default();
            let share = now.since(before).cpu.as_secs_f64() / span.as_secs_f64().max(1e-9);
            (*role, share)
        };
        let interface = |(name, now): (&String, &InterfaceCounters)| {
            let before = before.interfaces.get(name).copied().unwrap_or_default();
            Some((name.clone(), now.since(before, span)?))
        };
        Sample {
            t: (self.at - start).as_secs_f64(),
            span_s: span.as_secs_f64(),
            cpus: self.cpu_uses_since(before),
            roles: self.roles.iter().map(role).collect(),
            interfaces: self.interfaces.iter().filter_map(interface).collect(),
        }
    }
}

/// What was sampled in a window.
#[derive(Debug, Clone)]
pub struct Window {
    /// Its length.
    pub length: Duration,
    /// One row per second.
    pub samples: Vec<Sample>,
    /// Mean use of every CPU.
    pub cpus: Vec<CpuUse>,
    /// What each role used.
    pub roles: BTreeMap<Role, TreeUse>,
}

/// Takes the samples of one window.
#[derive(Debug)]
pub struct Sampler {
    pids: BTreeMap<Role, u32>,
    /// CPU time of the roles that joined, when they were last looked at.
    seen: BTreeMap<Role, Duration>,
    first: Reading,
    last: Reading,
    samples: Vec<Sample>,
}

impl Sampler {
    /// Opens a window over the processes that already run.
    pub fn start(pids: BTreeMap<Role, u32>) -> Sampler {
        let first = Reading::now(&pids, &BTreeMap::new());
        Sampler {
            last: first.clone(),
            first,
            pids,
            seen: BTreeMap::new(),
            samples: Vec::new(),
        }
    }

    /// Adds a process that started after the window did; all it uses is of this window.
    pub fn join(&mut self, role: Role, pid: u32) {
        self.pids.insert(role, pid);
        self.seen.insert(role, Duration::ZERO);
    }

    /// Looks at the roles that joined, and takes a sample when one is due.
    pub fn poll(&mut self) {
        for (role, seen) in &mut self.seen {
            let used = tree(self.pids[role]);
            if !used.ended {
                *seen = (*seen).max(used.cpu);
            }
        }
        if self.last.at.elapsed() >= SAMPLE_EVERY {
            self.take();
        }
    }

    fn take(&mut self) {
        let now = Reading::now(&self.pids, &self.seen);
        self.samples
            .push(now.sample_since(&self.last, self.first.at));
        self.last = now;
    }

    /// How long the window has been open.
    pub fn elapsed(&self) -> Duration {
        self.first.at.elapsed()
    }

    /// Closes the window. A last part shorter than half a sample is left out of the rows, not of the totals.
    pub fn finish(mut self) -> Window {
        let now = Reading::now(&self.pids, &self.seen);
        if now.at - self.last.at >= SAMPLE_EVERY / 2 {
            self.samples
                .push(now.sample_since(&self.last, self.first.at));
        }
        let role = |(role, end): (&Role, &TreeUse)| {
            let before = self.first.roles.get(role).copied().unwrap_or_default();
            (*role, end.since(before))
        };
        Window {
            length: now.at - self.first.at,
            cpus: now.cpu_uses_since(&self.first),
            roles: now.roles.iter().map(role).collect(),
            samples: self.samples,
        }
    }
}
