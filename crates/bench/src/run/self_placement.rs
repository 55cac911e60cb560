//! Pins bench itself to CPUs where it disturbs no role.

use std::path::Path;

use rustix::thread::{CpuSet, sched_setaffinity};

use crate::placement::Placement;
use crate::scenario::Role;

/// Pins this process to CPUs without a role, otherwise to the CPUs of roles other than the role under test.
///
/// Errors are ignored. Programs are not affected, because each is pinned by its own command line.
pub(super) fn pin_self(placement: &Placement, under_test: Role) {
    let taken = placement.all();
    let mut chosen: Vec<usize> = placement
        .cpus
        .iter()
        .filter(|(role, _)| **role != under_test)
        .flat_map(|(_, cpus)| cpus.iter().copied())
        .collect();
    let spare: Vec<usize> = (0..CpuSet::MAX_CPU)
        .filter(|cpu| {
            !taken.contains(cpu) && Path::new(&format!("/sys/devices/system/cpu/cpu{cpu}")).exists()
        })
        .collect();
    if !spare.is_empty() {
        chosen = spare;
    }
    let mut set = CpuSet::new();
    for cpu in chosen {
        set.set(cpu);
    }
    let _ = sched_setaffinity(None, &set);
}
