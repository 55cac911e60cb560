//! `/proc/stat`: use of each CPU, and counters of the whole machine.

use std::fs;
use std::sync::OnceLock;

use onrush_machine::cpu_time::CpuTicks;

use super::counters::{Count, Counters};
use crate::outcome::CpuUse;

/// CPU use between two readings. Shares are of the counted ticks, not of the elapsed time: an idle CPU without a timer
/// tick counts late.
pub fn used(cpu: usize, now: CpuTicks, before: CpuTicks) -> CpuUse {
    let part = |of: fn(&CpuTicks) -> u64| of(&now).saturating_sub(of(&before));
    let user = part(|ticks| ticks.user);
    let system = part(|ticks| ticks.system);
    let idle = part(|ticks| ticks.idle + ticks.iowait);
    let irq = part(|ticks| ticks.irq);
    let softirq = part(|ticks| ticks.softirq);
    let steal = part(|ticks| ticks.steal);
    let all = (user + system + idle + irq + softirq + steal).max(1) as f64;
    CpuUse {
        cpu,
        user: user as f64 / all,
        system: system as f64 / all,
        softirq: softirq as f64 / all,
        irq: irq as f64 / all,
        steal: steal as f64 / all,
        ksoftirqd: 0.0,
    }
}

/// CPU and thread id of the kernel's `ksoftirqd` threads, which process packets when interrupts cannot keep up. They
/// exist as long as the machine runs.
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

/// Reads the machine's counters in `/proc/stat`: context switches, interrupts, new processes, and runnable threads.
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
    use onrush_machine::cpu_time::by_cpu;

    #[test]
    fn context_switches_and_interrupts_are_counted() {
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
    fn cpu_time_shares_add_up() {
        let ticks = |stat| by_cpu(stat).next().expect("a CPU").1;
        let before = ticks("cpu  9 9 9 9\ncpu0 100 0 100 800 0 0 0 0 0 0\nintr 5\n");
        let now = ticks("cpu  9 9 9 9\ncpu0 120 5 150 810 0 5 8 2 0 0\n");
        let used = used(0, now, before);
        assert_eq!(
            (used.user, used.system, used.softirq, used.irq, used.steal),
            (0.25, 0.5, 0.08, 0.05, 0.02)
        );
        assert!((used.busy() - 0.9).abs() < 1e-9);
    }
}
