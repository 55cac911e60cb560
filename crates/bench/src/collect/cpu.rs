//! `/proc/stat`: what every CPU did, and what the machine counts as a whole. The readers are pure, but for the one that
//! looks for the kernel's packet threads.

use std::fs;
use std::sync::OnceLock;

use super::counters::{Count, Counters};
use crate::outcome::CpuUse;

/// Clock ticks of one CPU since the machine started (proc(5), `cpuN` lines of /proc/stat).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CpuTicks {
    /// Its number.
    pub cpu: usize,
    user: u64,
    system: u64,
    idle: u64,
    irq: u64,
    softirq: u64,
    steal: u64,
}

impl CpuTicks {
    /// What the CPU did since `before`. The parts are shares of all ticks that were counted, not of the time that
    /// passed: an idle CPU with its tick stopped counts late, and shares stay shares.
    pub fn since(self, before: CpuTicks) -> CpuUse {
        let user = self.user.saturating_sub(before.user);
        let system = self.system.saturating_sub(before.system);
        let idle = self.idle.saturating_sub(before.idle);
        let irq = self.irq.saturating_sub(before.irq);
        let softirq = self.softirq.saturating_sub(before.softirq);
        let steal = self.steal.saturating_sub(before.steal);
        let all = (user + system + idle + irq + softirq + steal).max(1) as f64;
        CpuUse {
            cpu: self.cpu,
            user: user as f64 / all,
            system: system as f64 / all,
            softirq: softirq as f64 / all,
            irq: irq as f64 / all,
            steal: steal as f64 / all,
            ksoftirqd: 0.0,
        }
    }
}

/// The kernel threads that process packets when interrupts cannot keep up, one per CPU: the CPU and the thread's id.
/// They live as long as the machine runs.
pub fn ksoftirqd() -> &'static [(usize, u32)] {
    static FOUND: OnceLock<Vec<(usize, u32)>> = OnceLock::new();
    FOUND.get_or_init(|| {
        let threads = fs::read_dir("/proc").into_iter().flatten().flatten();
        let found = threads.filter_map(|entry| {
            let pid = entry.file_name().to_str()?.parse().ok()?;
            let name = fs::read_to_string(entry.path().join("comm")).ok()?;
            Some((ksoftirqd_cpu(&name)?, pid))
        });
        found.collect()
    })
}

fn ksoftirqd_cpu(name: &str) -> Option<usize> {
    name.trim_end().strip_prefix("ksoftirqd/")?.parse().ok()
}

/// Reads the `cpuN` lines of `/proc/stat`.
pub fn cpu_ticks(stat: &str) -> Vec<CpuTicks> {
    let mut cpus = Vec::new();
    for line in stat.lines() {
        let mut words = line.split_ascii_whitespace();
        let Some(number) = words.next().and_then(|word| word.strip_prefix("cpu")) else {
            continue;
        };
        let Ok(cpu) = number.parse() else {
            continue;
        };
        let ticks: Vec<u64> = words.filter_map(|word| word.parse().ok()).collect();
        let tick = |index: usize| ticks.get(index).copied().unwrap_or(0);
        cpus.push(CpuTicks {
            cpu,
            user: tick(0) + tick(1),
            system: tick(2),
            idle: tick(3) + tick(4),
            irq: tick(5),
            softirq: tick(6),
            steal: tick(7),
        });
    }
    cpus
}

/// Reads what `/proc/stat` counts for the whole machine: context switches, interrupts, new processes, and how many
/// threads run or wait for a CPU now.
pub fn machine(stat: &str, counters: &mut Counters) {
    let values = stat.lines().filter_map(|line| {
        let mut words = line.split_ascii_whitespace();
        let (name, value) = (words.next()?, words.next()?.parse().ok()?);
        match name {
            "ctxt" => Some(("context_switches", Count::Total(value))),
            "intr" => Some(("interrupts", Count::Total(value))),
            "processes" => Some(("forks", Count::Total(value))),
            "procs_running" => Some(("runnable_threads", Count::Gauge(value as f64))),
            _ => None,
        }
    });
    counters.add("machine", values);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_counts_switches_and_interrupts() {
        let stat = "cpu  1 2 3 4\ncpu0 1 2 3 4\nintr 219385 0 38 5\nctxt 877465\nbtime 1795498039\n\
            processes 32071\nprocs_running 3\nprocs_blocked 0\nsoftirq 5 0 1\n";
        let mut counters = Counters::default();
        machine(stat, &mut counters);
        let at = |measure| counters.at("machine", measure);
        assert_eq!(at("context_switches"), Some(Count::Total(877_465)));
        assert_eq!(at("interrupts"), Some(Count::Total(219_385)));
        assert_eq!(at("forks"), Some(Count::Total(32_071)));
        assert_eq!(at("runnable_threads"), Some(Count::Gauge(3.0)));
        assert_eq!(at("btime"), None);
    }

    #[test]
    fn shares_of_a_cpu_add_up_to_its_time() {
        let before = cpu_ticks("cpu  9 9 9 9\ncpu0 100 0 100 800 0 0 0 0 0 0\nintr 5\n");
        let now = cpu_ticks("cpu  9 9 9 9\ncpu0 120 5 150 810 0 5 8 2 0 0\n");
        assert_eq!(before.len(), 1);
        let used = now[0].since(before[0]);
        assert_eq!(
            (used.user, used.system, used.softirq, used.irq, used.steal),
            (0.25, 0.5, 0.08, 0.05, 0.02)
        );
        assert!((used.busy() - 0.9).abs() < 1e-9);
    }
}
