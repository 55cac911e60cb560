//! CPU time given to and withheld from this process while it measured, as the kernel reports it.

pub(crate) mod ports;
mod quota;

use std::fs;
use std::path::Path;

use onrush_machine::cpu_time::{self, CpuTicks};
use onrush_machine::process;

/// Times of one thread since it was started.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct ThreadTime {
    pub(crate) cpu_ns: u64,
    /// Time ready and not on a CPU, in nanoseconds.
    pub(crate) run_delay_ns: u64,
    pub(crate) involuntary_switches: u64,
}

impl ThreadTime {
    /// Reads the times of the calling thread. Without CONFIG_SCHEDSTATS the kernel reports some as 0.
    pub(crate) fn now() -> ThreadTime {
        let schedstat = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
        let status = fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
        ThreadTime::parse(&schedstat, &status)
    }

    /// Reads the times of another thread of this process; 0 if it has ended.
    pub(crate) fn of(thread: u32) -> ThreadTime {
        let read = |file: &str| {
            let path = format!("/proc/self/task/{thread}/{file}");
            fs::read_to_string(path).unwrap_or_default()
        };
        ThreadTime::parse(&read("schedstat"), &read("status"))
    }

    /// Parses the first two of the three numbers of /proc/PID/schedstat, and the last line of proc_pid_status(5).
    fn parse(schedstat: &str, status: &str) -> ThreadTime {
        let (cpu_ns, run_delay_ns) = process::on_cpu_and_queued(schedstat).unwrap_or_default();
        let switches = process::number(status, "nonvoluntary_ctxt_switches:");
        ThreadTime {
            cpu_ns,
            run_delay_ns,
            involuntary_switches: switches.unwrap_or(0),
        }
    }

    pub(crate) fn since(self, earlier: ThreadTime) -> ThreadTime {
        ThreadTime {
            cpu_ns: self.cpu_ns.saturating_sub(earlier.cpu_ns),
            run_delay_ns: self.run_delay_ns.saturating_sub(earlier.run_delay_ns),
            involuntary_switches: self
                .involuntary_switches
                .saturating_sub(earlier.involuntary_switches),
        }
    }
}

/// Thread ID of the calling thread.
pub(crate) fn thread_number() -> Option<u32> {
    // "PID/task/NUMBER" (proc(5)).
    let link = fs::read_link("/proc/thread-self").ok()?;
    link.file_name()?.to_str()?.parse().ok()
}

/// CPU times of the machine and of this process' control group.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct HostTime {
    /// Time of all CPUs together; `None` if `/proc/stat` cannot be read.
    ticks: Option<CpuTicks>,
    /// Time throttled by a CPU quota, in microseconds; `None` without a quota.
    throttled_us: Option<u64>,
}

impl HostTime {
    pub(crate) fn now() -> HostTime {
        HostTime {
            ticks: cpu_time::of_all(&fs::read_to_string("/proc/stat").unwrap_or_default()),
            throttled_us: quota::throttled_us(Path::new("/")),
        }
    }

    /// Steal since `earlier`, as a share of all CPUs' time.
    pub(crate) fn steal_share_since(&self, earlier: &HostTime) -> Option<f64> {
        let (now, before) = (self.ticks?, earlier.ticks?);
        let passed = now.sum().saturating_sub(before.sum());
        (passed > 0).then(|| now.steal.saturating_sub(before.steal) as f64 / passed as f64)
    }

    /// Seconds for which the control group was throttled since `earlier`.
    pub(crate) fn throttled_s_since(&self, earlier: &HostTime) -> Option<f64> {
        let passed = self.throttled_us?.saturating_sub(earlier.throttled_us?);
        Some(passed as f64 / 1e6)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thread_time_is_parsed() {
        let status = "Name:\tonrush\nvoluntary_ctxt_switches:\t7\nnonvoluntary_ctxt_switches:\t5\n";
        let time = ThreadTime::parse("123 45 6\n", status);
        let expected = ThreadTime {
            cpu_ns: 123,
            run_delay_ns: 45,
            involuntary_switches: 5,
        };
        assert_eq!(time, expected);
        assert_eq!(ThreadTime::parse("", ""), ThreadTime::default());
    }

    #[test]
    fn thread_time_of_other_thread_is_read() {
        let number = thread_number().unwrap();
        let inside = ThreadTime::now();
        let outside = std::thread::spawn(move || ThreadTime::of(number));
        assert!(outside.join().unwrap().cpu_ns >= inside.cpu_ns);
    }

    #[test]
    fn steal_is_share_of_total_cpu_time() {
        let before = "cpu  10 0 10 70 0 0 0 10 5 0\ncpu0 1 2 3\n";
        let after = "cpu  20 0 20 140 0 0 0 20 9 0\n";
        let time = |stat| HostTime {
            ticks: cpu_time::of_all(stat),
            throttled_us: None,
        };
        assert_eq!(time(after).steal_share_since(&time(before)), Some(0.1));
        assert_eq!(time(before).steal_share_since(&time("")), None);
    }
}
