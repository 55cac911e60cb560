//! Resource use of processes: CPU time, run queue time, context switches, memory.
//!
//! `/proc/PID/task/*/schedstat` covers living threads only, so CPU time comes from the clock of the process
//! (clock_getcpuclockid(3)): it has nanoseconds, includes ended threads, and exists until the process is reaped. After
//! that its time is part of the parent's, in clock ticks (`/proc/PID/stat`).

use std::time::Duration;

use onrush_machine::process::{field, number, state, value};
use serde::{Deserialize, Serialize};

use super::counters::Count;

/// `USER_HZ` is 100 on every architecture that Onrush supports.
const TICK: Duration = Duration::from_millis(10);

/// Converts ticks to a duration.
pub fn time_of_ticks(ticks: u64) -> Duration {
    TICK.saturating_mul(u32::try_from(ticks).unwrap_or(u32::MAX))
}

/// Resource use of a process tree.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreeUse {
    /// CPU time of all threads, user and system, including ended ones.
    pub cpu: Duration,
    /// Failed readings of `cpu`; each makes `cpu` too small.
    pub failed: u64,
    /// Time in the run queue, over all threads.
    pub wait: Duration,
    /// Voluntary context switches, over all threads.
    pub voluntary_switches: u64,
    /// Involuntary context switches, over all threads.
    pub involuntary_switches: u64,
    /// Live threads.
    pub threads: u64,
    /// Observed threads that have ended.
    pub threads_ended: u64,
    /// User time in whole ticks.
    pub user_ticks: u64,
    /// System time in whole ticks.
    pub system_ticks: u64,
    /// Resident anonymous memory.
    pub memory_bytes: u64,
    /// Whether the first process has ended and is not reaped yet.
    pub ended: bool,
}

impl TreeUse {
    /// Sum of two trees.
    pub fn with(self, other: TreeUse) -> TreeUse {
        TreeUse {
            cpu: self.cpu.saturating_add(other.cpu),
            failed: self.failed + other.failed,
            wait: self.wait.saturating_add(other.wait),
            voluntary_switches: self.voluntary_switches + other.voluntary_switches,
            involuntary_switches: self.involuntary_switches + other.involuntary_switches,
            threads: self.threads + other.threads,
            threads_ended: self.threads_ended + other.threads_ended,
            user_ticks: self.user_ticks + other.user_ticks,
            system_ticks: self.system_ticks + other.system_ticks,
            memory_bytes: self.memory_bytes + other.memory_bytes,
            ended: self.ended || other.ended,
        }
    }

    /// Use since `before`. A time that decreased counts as a failed reading.
    pub fn since(self, before: TreeUse) -> TreeUse {
        let user_ticks = self.user_ticks.saturating_sub(before.user_ticks);
        let system_ticks = self.system_ticks.saturating_sub(before.system_ticks);
        let went_backwards = u64::from(self.cpu < before.cpu);
        TreeUse {
            cpu: self.cpu.saturating_sub(before.cpu),
            failed: self.failed.saturating_sub(before.failed) + went_backwards,
            wait: self.wait.saturating_sub(before.wait),
            voluntary_switches: self
                .voluntary_switches
                .saturating_sub(before.voluntary_switches),
            involuntary_switches: self
                .involuntary_switches
                .saturating_sub(before.involuntary_switches),
            threads_ended: self.threads_ended.saturating_sub(before.threads_ended),
            user_ticks,
            system_ticks,
            threads: self.threads,
            memory_bytes: self.memory_bytes,
            ended: self.ended,
        }
    }

    /// Measures of a role in the rows per second, besides CPU time.
    pub fn counts(self) -> [(&'static str, Count); 7] {
        [
            ("user", Count::Time(time_of_ticks(self.user_ticks))),
            ("system", Count::Time(time_of_ticks(self.system_ticks))),
            ("wait", Count::Time(self.wait)),
            ("voluntary_switches", Count::Total(self.voluntary_switches)),
            (
                "involuntary_switches",
                Count::Total(self.involuntary_switches),
            ),
            ("threads", Count::Gauge(self.threads as f64)),
            ("threads_ended", Count::Total(self.threads_ended)),
        ]
    }

    /// Share of CPU time spent in the kernel, with the precision of ticks.
    pub fn system_share(self) -> f64 {
        self.system_ticks as f64 / (self.user_ticks + self.system_ticks).max(1) as f64
    }
}

/// Voluntary and involuntary context switches of a thread, from its `status`.
pub fn switches(status: &str) -> Option<(u64, u64)> {
    Some((
        number(status, "voluntary_ctxt_switches:")?,
        number(status, "nonvoluntary_ctxt_switches:")?,
    ))
}

/// `utime + cutime` and `stime + cstime` of `/proc/PID/stat`; the name before them may contain spaces and parentheses.
pub fn ticks(stat: &str) -> Option<(u64, u64)> {
    Some((
        field(stat, 14)? + field(stat, 16)?,
        field(stat, 15)? + field(stat, 17)?,
    ))
}

/// `cutime + cstime` of `/proc/PID/stat`: ticks of reaped children.
pub fn reaped_children_ticks(stat: &str) -> Option<u64> {
    Some(field(stat, 16)? + field(stat, 17)?)
}

/// Parent of a process, from its `stat`.
pub fn parent(stat: &str) -> Option<u32> {
    field(stat, 4)?.try_into().ok()
}

/// Whether a process ignores SIGCHLD, from its `status`. The kernel then drops the time of its ended children.
pub fn ignores_children(status: &str) -> bool {
    const SIGCHLD: u64 = 1 << 16;
    let mask = value(status, "SigIgn:").and_then(|mask| u64::from_str_radix(mask, 16).ok());
    mask.is_some_and(|mask| mask & SIGCHLD != 0)
}

/// Whether a process has ended: its state in `/proc/PID/stat` is `Z` until it is reaped.
pub fn has_ended(stat: &str) -> bool {
    state(stat) == Some('Z')
}

/// Child processes of a thread, from its `children`.
pub fn children(text: &str) -> Vec<u32> {
    text.split_ascii_whitespace()
        .filter_map(|pid| pid.parse().ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stat_name_may_contain_parentheses_and_spaces() {
        let stat = "12 (a) b) S 1 12 12 0 -1 4194304 500 0 0 0 70 30 2 1 20 0 3 0 100 1 1";
        assert_eq!(ticks(stat), Some((72, 31)));
        assert_eq!(ticks("12 (short) S 1"), None);
        assert!(!has_ended(stat) && has_ended("12 (Z) (b) Z 1 12"));
    }

    #[test]
    fn parent_and_run_queue_wait_are_read() {
        let stat = "12 (a) b) S 7 12 12 0 -1 4194304 500 0 0 0 70 30 2 1 20 0 3 0 100 1 1";
        assert_eq!(
            (parent(stat), reaped_children_ticks(stat)),
            (Some(7), Some(3))
        );
        assert_eq!(
            (parent("12 (a)"), reaped_children_ticks("12 (a) S 7")),
            (None, None)
        );
        assert!(ignores_children("SigIgn:\t0000000000011000\n"));
        assert!(!ignores_children(
            "SigIgn:\t0000000000001000\nSigCgt:\t0000000000010000\n"
        ));
    }

    #[test]
    fn context_switches_of_thread_are_read() {
        let status = "Name:\tnginx\nThreads:\t7\nRssAnon:\t 1 kB\nvoluntary_ctxt_switches:\t2911\n\
            nonvoluntary_ctxt_switches:\t37\n";
        assert_eq!(switches(status), Some((2_911, 37)));
        assert_eq!(switches("voluntary_ctxt_switches:\t1\n"), None);
    }

    #[test]
    fn decreasing_cpu_time_is_a_failed_reading() {
        let before = TreeUse {
            cpu: Duration::from_millis(1_000),
            failed: 1,
            ..TreeUse::default()
        };
        let now = TreeUse {
            cpu: Duration::from_millis(1_100),
            failed: 3,
            ..TreeUse::default()
        };
        let used = now.since(before);
        assert_eq!((used.cpu.as_millis(), used.failed), (100, 2));
        let used = before.since(now);
        assert_eq!((used.cpu.as_millis(), used.failed), (0, 1));
    }
}
