//! `/proc/stat`: CPU time since boot, in ticks of 10 ms.

/// Ticks of one CPU, or of all CPUs. Guest time is part of user time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CpuTicks {
    /// In programs, including nice time.
    pub user: u64,
    /// In the kernel, for programs.
    pub system: u64,
    /// Idle.
    pub idle: u64,
    /// Idle while a program waited for a disk.
    pub iowait: u64,
    /// In interrupts.
    pub irq: u64,
    /// In softirqs.
    pub softirq: u64,
    /// Taken by the hypervisor.
    pub steal: u64,
}

impl CpuTicks {
    /// `user nice system idle iowait irq softirq steal guest guest_nice`; columns that an old kernel lacks are 0.
    fn read<'text>(words: impl Iterator<Item = &'text str>) -> CpuTicks {
        let mut ticks = words.map_while(|word| word.parse::<u64>().ok());
        let mut next = || ticks.next().unwrap_or(0);
        CpuTicks {
            user: next().saturating_add(next()),
            system: next(),
            idle: next(),
            iowait: next(),
            irq: next(),
            softirq: next(),
            steal: next(),
        }
    }

    /// Sum of all ticks.
    pub fn sum(self) -> u64 {
        let busy = [self.user, self.system, self.irq, self.softirq, self.steal];
        let idle = self.idle.saturating_add(self.iowait);
        busy.into_iter().fold(idle, u64::saturating_add)
    }
}

/// Ticks of each online CPU, in the order of the file.
pub fn by_cpu(stat: &str) -> impl Iterator<Item = (usize, CpuTicks)> {
    stat.lines().filter_map(|line| {
        let mut words = line.strip_prefix("cpu")?.split_ascii_whitespace();
        let cpu = line.as_bytes().get(3).filter(|byte| byte.is_ascii_digit());
        let cpu = cpu.and_then(|_| words.next()?.parse().ok())?;
        Some((cpu, CpuTicks::read(words)))
    })
}

/// Ticks of all CPUs together, from the first line.
pub fn of_all(stat: &str) -> Option<CpuTicks> {
    let line = stat.lines().next()?.strip_prefix("cpu ")?;
    Some(CpuTicks::read(line.split_ascii_whitespace()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_per_cpu_lines_are_parsed() {
        let stat = "cpu  10 2 10 70 1 0 0 10 5 0\ncpu0 120 5 150 810 3 5 8 2 0 0\ncpu2 1\nintr 5\nctxt 7\n";
        let found: Vec<_> = by_cpu(stat).collect();
        let first = CpuTicks {
            user: 125,
            system: 150,
            idle: 810,
            iowait: 3,
            irq: 5,
            softirq: 8,
            steal: 2,
        };
        let second = CpuTicks {
            user: 1,
            ..CpuTicks::default()
        };
        assert_eq!(found, [(0, first), (2, second)]);
        let all = of_all(stat).expect("its first line");
        assert_eq!((all.sum(), all.steal), (103, 10));
        assert_eq!(of_all(""), None);
    }
}
