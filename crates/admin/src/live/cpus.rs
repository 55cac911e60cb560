//! Time of each CPU in soft interrupts (`/proc/stat`, proc_stat(5)).

use std::fs;

/// Ticks of a CPU since boot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Ticks {
    softirq: u64,
    all: u64,
}

/// Ticks of each CPU by number; empty if `/proc/stat` cannot be read.
pub(crate) fn ticks() -> Vec<(usize, Ticks)> {
    parse(&fs::read_to_string("/proc/stat").unwrap_or_default())
}

fn parse(text: &str) -> Vec<(usize, Ticks)> {
    let lines = text.lines().filter_map(|line| {
        let (name, numbers) = line.split_once(' ')?;
        let number = name.strip_prefix("cpu")?.parse().ok()?;
        let numbers: Vec<u64> = numbers
            .split_whitespace()
            .map_while(|word| word.parse().ok())
            .collect();
        // Fields: user, nice, system, idle, iowait, irq, softirq, steal; guest times are included in user and nice.
        let softirq = *numbers.get(6)?;
        let all = numbers.iter().take(8).sum();
        Some((number, Ticks { softirq, all }))
    });
    lines.collect()
}

/// Share of a CPU's time spent in soft interrupts between two samples.
pub(crate) fn softirq(
    cpu: usize,
    before: &[(usize, Ticks)],
    now: &[(usize, Ticks)],
) -> Option<f64> {
    let of = |all: &[(usize, Ticks)]| all.iter().find(|(it, _)| *it == cpu).map(|(_, it)| *it);
    let (before, now) = (of(before)?, of(now)?);
    let all = now.all.checked_sub(before.all).filter(|&all| all > 0)?;
    Some(now.softirq.saturating_sub(before.softirq) as f64 / all as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn softirq_share_is_computed_per_interval() {
        let before = parse("cpu  9 9 9 9 9 9 9 9 0 0\ncpu0 10 0 10 70 5 0 5 0 0 0\nintr 5\n");
        let now = parse("cpu  9 9 9 9 9 9 9 9 0 0\ncpu0 20 0 20 80 5 0 25 0 20 0\nintr 5\n");
        assert_eq!(before.len(), 1);
        assert_eq!(softirq(0, &before, &now), Some(0.4));
        assert_eq!(softirq(0, &now, &now), None);
        assert_eq!(softirq(1, &before, &now), None);
    }
}
