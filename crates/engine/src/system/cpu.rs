//! The CPUs that this process may use, and pinning a thread to one.

use std::path::Path;

use rustix::io::Errno;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The CPUs the calling thread may run on, in ascending order. Reflects taskset, cpusets and containers.
pub fn allowed() -> Vec<usize> {
    let Ok(set) = sched_getaffinity(None) else {
        // Fails only on a kernel with more CPUs than the set holds; CPU 0 certainly exists.
        return vec![0];
    };
    (0..CpuSet::MAX_CPU)
        .filter(|&cpu| set.is_set(cpu))
        .collect()
}

/// Checks that the process may use all of `cpus`.
///
/// # Errors
/// A sentence with the first CPU that it may not use, whether the machine has it, and the allowed ones.
pub fn check(cpus: &[usize]) -> Result<(), String> {
    let allowed = allowed();
    let Some(cpu) = cpus.iter().find(|cpu| !allowed.contains(cpu)) else {
        return Ok(());
    };
    let is_there = Path::new(&format!("/sys/devices/system/cpu/cpu{cpu}")).exists();
    let why = match is_there {
        true => format!(
            "this process may not use CPU {cpu} (restricted by taskset, a cpuset or a container)"
        ),
        false => format!("this machine has no CPU {cpu}"),
    };
    Err(format!("{why}: expected some of {}", list(&allowed)))
}

/// Numbers in ascending order as a list of ranges, such as `0,2-3`.
fn list(cpus: &[usize]) -> String {
    let ranges = cpus.chunk_by(|before, after| before + 1 == *after);
    let range = |range: &[usize]| match range {
        [] => String::new(),
        [one] => one.to_string(),
        [first, .., last] => format!("{first}-{last}"),
    };
    ranges.map(range).collect::<Vec<_>>().join(",")
}

/// Pins the calling thread to one CPU.
///
/// # Errors
/// `EINVAL` when the CPU does not exist or may not be used.
pub fn pin(cpu: usize) -> Result<(), Errno> {
    if cpu >= CpuSet::MAX_CPU {
        return Err(Errno::INVAL);
    }
    let mut set = CpuSet::new();
    set.set(cpu);
    sched_setaffinity(None, &set)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_list_uses_ranges() {
        for (cpus, text) in [
            (&[0][..], "0"),
            (&[0, 1], "0-1"),
            (&[0, 2, 3, 4, 7], "0,2-4,7"),
            (&[], ""),
        ] {
            assert_eq!(list(cpus), text);
        }
    }

    #[test]
    fn missing_cpu_error_lists_allowed_cpus() {
        assert_eq!(check(&allowed()), Ok(()));
        let said = check(&[CpuSet::MAX_CPU - 1]).expect_err("no machine has so many");
        let beginning = format!(
            "this machine has no CPU {}: expected some of ",
            CpuSet::MAX_CPU - 1
        );
        assert_eq!(said, beginning + &list(&allowed()));
    }
}
