//! Which CPUs this process may use, and pinning a thread to one.

use rustix::io::Errno;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The CPUs the calling thread may run on, in ascending order. Reflects taskset, cpusets and containers.
pub fn allowed() -> Vec<usize> {
    let Ok(set) = sched_getaffinity(None) else {
        // Only a kernel with more CPUs than the set holds refuses this; CPU 0 is then the one that surely exists.
        return vec![0];
    };
    (0..CpuSet::MAX_CPU)
        .filter(|&cpu| set.is_set(cpu))
        .collect()
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
