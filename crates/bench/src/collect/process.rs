//! What a process and its descendants used: CPU time to the nanosecond, and memory. The readers are pure.
//!
//! `/proc/PID/task/*/schedstat` counts nanoseconds on the CPU, user and system together, but only for threads that
//! live; `/proc/PID/stat` keeps those of threads that ended, and of a process until it is waited for, in clock ticks.
//! Servers are read by the first, clients that have ended by the second, corrected for what rounding takes away.

use std::fs;
use std::time::Duration;

/// Linux counts process times in hundredths of a second towards user space (`USER_HZ`), on every architecture we know.
const TICK: Duration = Duration::from_millis(10);

/// What a tree of processes has used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TreeUse {
    /// Time on the CPU of all live threads, user and system.
    pub cpu: Duration,
    /// User time in whole ticks.
    pub user_ticks: u64,
    /// System time in whole ticks.
    pub system_ticks: u64,
    /// Resident anonymous memory.
    pub memory_bytes: u64,
    /// Whether the first process has ended and waits to be waited for.
    pub ended: bool,
}

impl TreeUse {
    /// What was used since `before`.
    pub fn since(self, before: TreeUse) -> TreeUse {
        TreeUse {
            cpu: self.cpu.saturating_sub(before.cpu),
            user_ticks: self.user_ticks.saturating_sub(before.user_ticks),
            system_ticks: self.system_ticks.saturating_sub(before.system_ticks),
            memory_bytes: self.memory_bytes,
            ended: self.ended,
        }
    }

    /// The part of the CPU time spent in the kernel, as far as ticks tell.
    pub fn system_share(self) -> f64 {
        self.system_ticks as f64 / (self.user_ticks + self.system_ticks).max(1) as f64
    }

    /// The CPU time of a process that has ended but was not waited for.
    ///
    /// `stat` drops the started tick of user and of system time, half a tick each on average: that is added. The
    /// threads' own count, when it was last seen, is a floor: time does not run backwards.
    pub fn cpu_of_ended(self, last_seen: Duration) -> Duration {
        let ticks = u32::try_from(self.user_ticks + self.system_ticks).unwrap_or(u32::MAX);
        let counted = TICK.saturating_mul(ticks).saturating_add(TICK);
        counted.max(last_seen)
    }
}

/// Reads a process and all its descendants; what has vanished counts as nothing.
pub fn tree(pid: u32) -> TreeUse {
    let mut total = TreeUse {
        ended: fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| has_ended(&stat)),
        ..TreeUse::default()
    };
    let mut waiting = vec![pid];
    while let Some(pid) = waiting.pop() {
        let directory = format!("/proc/{pid}");
        let text =
            |name: &str| fs::read_to_string(format!("{directory}/{name}")).unwrap_or_default();
        let (user, system) = ticks(&text("stat")).unwrap_or((0, 0));
        total.user_ticks += user;
        total.system_ticks += system;
        total.memory_bytes += anonymous_memory(&text("status")).unwrap_or(0);
        for thread in threads(&directory) {
            let text =
                |name: &str| fs::read_to_string(format!("{thread}/{name}")).unwrap_or_default();
            total.cpu += time_on_cpu(&text("schedstat")).unwrap_or_default();
            waiting.extend(children(&text("children")));
        }
    }
    total
}

fn threads(directory: &str) -> Vec<String> {
    let Ok(entries) = fs::read_dir(format!("{directory}/task")) else {
        return Vec::new();
    };
    entries
        .flatten()
        .map(|entry| entry.path().display().to_string())
        .collect()
}

/// First number of `schedstat`: nanoseconds on the CPU.
pub fn time_on_cpu(schedstat: &str) -> Option<Duration> {
    let nanoseconds = schedstat.split_ascii_whitespace().next()?;
    Some(Duration::from_nanos(nanoseconds.parse().ok()?))
}

/// `utime + cutime` and `stime + cstime` of `/proc/PID/stat`; the name before them may hold spaces and brackets.
pub fn ticks(stat: &str) -> Option<(u64, u64)> {
    let (_, after_name) = stat.rsplit_once(')')?;
    // After the name comes field 3; utime, stime, cutime, cstime are 14 to 17 (proc(5)).
    let fields: Vec<&str> = after_name.split_ascii_whitespace().collect();
    let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
    Some((field(14)? + field(16)?, field(15)? + field(17)?))
}

/// Field 3 of `/proc/PID/stat` is `Z` from the end of a process until it is waited for.
pub fn has_ended(stat: &str) -> bool {
    stat.rsplit_once(')')
        .is_some_and(|(_, after_name)| after_name.trim_start().starts_with('Z'))
}

/// `RssAnon` of `/proc/PID/status`.
pub fn anonymous_memory(status: &str) -> Option<u64> {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("RssAnon:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

fn children(text: &str) -> Vec<u32> {
    text.split_ascii_whitespace()
        .filter_map(|pid| pid.parse().ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_with_brackets_and_spaces_does_not_shift_the_fields() {
        let stat = "12 (a) b) S 1 12 12 0 -1 4194304 500 0 0 0 70 30 2 1 20 0 3 0 100 1 1";
        assert_eq!(ticks(stat), Some((72, 31)));
        assert_eq!(ticks("12 (short) S 1"), None);
        assert!(!has_ended(stat) && has_ended("12 (Z) (b) Z 1 12"));
    }

    #[test]
    fn memory_and_time_are_read_in_bytes_and_nanoseconds() {
        let status = "VmRSS:\t    9000 kB\nRssAnon:\t     512 kB\nRssFile:\t 1 kB\n";
        assert_eq!(anonymous_memory(status), Some(524_288));
        assert_eq!(
            time_on_cpu("139311 41582 1\n"),
            Some(Duration::from_nanos(139_311))
        );
        assert_eq!(time_on_cpu(""), None);
    }

    #[test]
    fn time_of_an_ended_process_is_never_less_than_what_was_seen() {
        let used = TreeUse {
            user_ticks: 30,
            system_ticks: 70,
            ..TreeUse::default()
        };
        let ms = Duration::from_millis;
        assert_eq!(used.cpu_of_ended(ms(900)), ms(1_010));
        assert_eq!(used.cpu_of_ended(ms(1_015)), ms(1_015));
    }

    #[test]
    fn this_process_has_used_time_and_memory() {
        let used = tree(std::process::id());
        assert!(used.cpu > Duration::ZERO && used.memory_bytes > 0);
    }
}
