//! Files of a process or thread below `/proc/PID`: `stat`, `status`, `schedstat`.

/// Numeric field of `stat` (`17 (name) S …`), counted from 1 as in proc_pid_stat(5). The name may contain spaces and
/// parentheses.
pub fn field(stat: &str, number: usize) -> Option<u64> {
    let (_, after_name) = stat.rsplit_once(')')?;
    let at = number.checked_sub(3)?;
    after_name.split_ascii_whitespace().nth(at)?.parse().ok()
}

/// The name in `stat`.
pub fn name(stat: &str) -> Option<&str> {
    Some(stat.rsplit_once(')')?.0.split_once('(')?.1)
}

/// The state in `stat`: `R`, `S`, `D`, `Z` …
pub fn state(stat: &str) -> Option<char> {
    stat.rsplit_once(')')?.1.trim_start().chars().next()
}

/// Ticks of CPU time in `stat`: user and system, of a process's living threads or of one thread.
pub fn ticks(stat: &str) -> Option<(u64, u64)> {
    Some((field(stat, 14)?, field(stat, 15)?))
}

/// The text after `key`, such as `Cpus_allowed_list:`, in a file of one pair per line.
pub fn value<'text>(text: &'text str, key: &str) -> Option<&'text str> {
    let line = text.lines().find_map(|line| line.strip_prefix(key))?;
    Some(line.trim())
}

/// The number after `key`, such as `Threads:`.
pub fn number(text: &str, key: &str) -> Option<u64> {
    value(text, key)?.parse().ok()
}

/// The bytes after `key`, such as `RssAnon:` in `status` or `MemTotal:` in `/proc/meminfo`, converted from KiB.
pub fn bytes(text: &str, key: &str) -> Option<u64> {
    let kibibytes: u64 = value(text, key)?.strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes.saturating_mul(1024))
}

/// Nanoseconds on a CPU and nanoseconds in the run queue, from `schedstat` (`121979 118672 2`).
pub fn on_cpu_and_queued(schedstat: &str) -> Option<(u64, u64)> {
    let mut numbers = schedstat.split_ascii_whitespace().map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn process_name_may_contain_brackets_and_spaces() {
        let stat = "12 (a) b) S 1 12 12 0 -1 4194304 500 0 0 0 70 30 2 1 20 0 3 0 100 1 1";
        assert_eq!((name(stat), state(stat)), (Some("a) b"), Some('S')));
        assert_eq!((field(stat, 4), field(stat, 22)), (Some(1), Some(100)));
        assert_eq!(ticks(stat), Some((70, 30)));
        assert_eq!((ticks("12 (short) S 1"), field(stat, 2)), (None, None));
    }

    #[test]
    fn status_values_have_keys_and_units() {
        let status =
            "VmRSS:\t    9000 kB\nRssAnon:\t     512 kB\nThreads:\t7\nCpus_allowed_list:\t0-3\n";
        assert_eq!(bytes(status, "RssAnon:"), Some(524_288));
        assert_eq!(number(status, "Threads:"), Some(7));
        assert_eq!(value(status, "Cpus_allowed_list:"), Some("0-3"));
        assert_eq!(number(status, "RssAnon:"), None);
        assert_eq!(
            on_cpu_and_queued("139311 41582 1\n"),
            Some((139_311, 41_582))
        );
        assert_eq!(on_cpu_and_queued(""), None);
    }
}
