//! What processes used: CPU time to the nanosecond, time in the queue for a CPU, switches, memory. Pure.
//!
//! `/proc/PID/task/*/schedstat` counts nanoseconds on the CPU, user and system together, but only for threads that
//! live; `/proc/PID/stat` keeps those of threads that ended, and of a process until it is waited for, in clock ticks.
//! Servers are read by the first, clients that have ended by the second, corrected for what rounding takes away.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::counters::Count;

/// Linux counts process times in hundredths of a second towards user space (`USER_HZ`), on every architecture we know.
const TICK: Duration = Duration::from_millis(10);

/// That many ticks as a time.
pub fn time_of_ticks(ticks: u64) -> Duration {
    TICK.saturating_mul(u32::try_from(ticks).unwrap_or(u32::MAX))
}

/// What a tree of processes has used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreeUse {
    /// Time on the CPU of all threads, user and system; of those that have ended, as far as they were seen.
    pub cpu: Duration,
    /// Time for which threads could have run and waited for a CPU, seen in the same way.
    pub wait: Duration,
    /// Times that a thread gave up the CPU to wait for something, seen in the same way.
    pub voluntary_switches: u64,
    /// Times that one was taken off the CPU, seen in the same way.
    pub involuntary_switches: u64,
    /// Live threads.
    pub threads: u64,
    /// Threads that were seen and have ended.
    pub threads_ended: u64,
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
    /// What this and another tree have used together.
    pub fn with(self, other: TreeUse) -> TreeUse {
        TreeUse {
            cpu: self.cpu.saturating_add(other.cpu),
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

    /// What was used since `before`.
    ///
    /// Where threads have ended in between, what they did after they were last looked at is in no `schedstat` any more:
    /// the clock ticks of their processes are then a floor.
    pub fn since(self, before: TreeUse) -> TreeUse {
        let user_ticks = self.user_ticks.saturating_sub(before.user_ticks);
        let system_ticks = self.system_ticks.saturating_sub(before.system_ticks);
        let mut cpu = self.cpu.saturating_sub(before.cpu);
        if self.threads_ended > before.threads_ended {
            cpu = cpu.max(time_of_ticks(user_ticks + system_ticks));
        }
        TreeUse {
            cpu,
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

    /// What a role has in the rows of a second, beside its time on the CPU.
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

    /// The part of the CPU time spent in the kernel, as far as ticks tell.
    pub fn system_share(self) -> f64 {
        self.system_ticks as f64 / (self.user_ticks + self.system_ticks).max(1) as f64
    }

    /// The CPU time of a process that has ended but was not waited for.
    ///
    /// `stat` drops the started tick of user and of system time, half a tick each on average: that is added. The
    /// threads' own count, when it was last seen, is a floor: time does not run backwards.
    pub fn cpu_of_ended(self, last_seen: Duration) -> Duration {
        let counted = time_of_ticks(self.user_ticks + self.system_ticks).saturating_add(TICK);
        counted.max(last_seen)
    }
}

/// First number of `schedstat`: nanoseconds on the CPU.
pub fn time_on_cpu(schedstat: &str) -> Option<Duration> {
    let nanoseconds = schedstat.split_ascii_whitespace().next()?;
    Some(Duration::from_nanos(nanoseconds.parse().ok()?))
}

/// Second number of `schedstat`: nanoseconds in the queue for a CPU.
pub fn time_in_queue(schedstat: &str) -> Option<Duration> {
    let nanoseconds = schedstat.split_ascii_whitespace().nth(1)?;
    Some(Duration::from_nanos(nanoseconds.parse().ok()?))
}

/// Voluntary and involuntary switches of a thread, from its `status`.
pub fn switches(status: &str) -> Option<(u64, u64)> {
    Some((
        number(status, "voluntary_ctxt_switches:")?,
        number(status, "nonvoluntary_ctxt_switches:")?,
    ))
}

/// How many threads a process has, from its `status`.
pub fn thread_count(status: &str) -> Option<u64> {
    number(status, "Threads:")
}

fn number(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().parse().ok()
}

/// What a thread is called, from its `stat`.
pub fn name(stat: &str) -> Option<&str> {
    let (before, _) = stat.rsplit_once(')')?;
    Some(before.split_once('(')?.1)
}

/// `utime` and `stime` of a thread's `stat`, in ticks.
pub fn own_ticks(stat: &str) -> Option<(u64, u64)> {
    Some((field(stat, 14)?, field(stat, 15)?))
}

/// `utime + cutime` and `stime + cstime` of `/proc/PID/stat`; the name before them may hold spaces and brackets.
pub fn ticks(stat: &str) -> Option<(u64, u64)> {
    Some((
        field(stat, 14)? + field(stat, 16)?,
        field(stat, 15)? + field(stat, 17)?,
    ))
}

/// A field by its number (proc(5)); the first behind the name is 3.
fn field(stat: &str, number: usize) -> Option<u64> {
    let (_, after_name) = stat.rsplit_once(')')?;
    after_name
        .split_ascii_whitespace()
        .nth(number - 3)?
        .parse()
        .ok()
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

/// The processes that a thread started, from its `children`.
pub fn children(text: &str) -> Vec<u32> {
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
    fn queue_and_switches_of_a_thread_are_read() {
        let status = "Name:\tnginx\nThreads:\t7\nRssAnon:\t 1 kB\nvoluntary_ctxt_switches:\t2911\n\
            nonvoluntary_ctxt_switches:\t37\n";
        assert_eq!(switches(status), Some((2_911, 37)));
        assert_eq!(thread_count(status), Some(7));
        assert_eq!(switches("voluntary_ctxt_switches:\t1\n"), None);
        let queue = time_in_queue("139311 41582 1\n");
        assert_eq!(queue, Some(Duration::from_nanos(41_582)));
        let stat = "12 (a) b) S 1 12 12 0 -1 4194304 500 0 0 0 70 30 2 1 20 0 3 0 100 1 1";
        assert_eq!(own_ticks(stat), Some((70, 30)));
        assert_eq!((own_ticks("12 (a) S"), name(stat)), (None, Some("a) b")));
    }

    #[test]
    fn what_ended_threads_did_unseen_is_taken_from_the_ticks_of_their_process() {
        let ms = Duration::from_millis;
        let before = TreeUse {
            cpu: ms(1_000),
            user_ticks: 50,
            system_ticks: 50,
            ..TreeUse::default()
        };
        let mut now = TreeUse {
            cpu: ms(1_100),
            user_ticks: 60,
            system_ticks: 60,
            ..TreeUse::default()
        };
        assert_eq!(now.since(before).cpu, ms(100));
        now.threads_ended = 3;
        assert_eq!(now.since(before).cpu, ms(200));
        assert_eq!(now.since(before).threads_ended, 3);
        assert_eq!(before.since(now).cpu, Duration::ZERO);
    }
}
