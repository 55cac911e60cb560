//! Keeps CPUs out of deep idle states while a program runs.

use std::fs::File;
use std::io::{self, Write};

use super::machine::Root;
use super::words;
use crate::advise::{Goal, Request, Target};
use crate::facts::Facts;

const FILE: &str = "/dev/cpu_dma_latency";

/// Limit on the CPU wake-up latency. It ends when the value is dropped or the process ends, since the kernel ties it to
/// the open file (Documentation/power/pm_qos_interface.rst).
#[derive(Debug)]
pub struct CpuLatencyLimit {
    /// Limit in microseconds.
    pub limit: u64,
    _file: File,
}

/// Limits the latency to that of the shallowest idle state; `None` unless the goal is latency and there is a deeper
/// one.
pub fn limit_cpu_latency(
    machine: &Root,
    facts: &Facts,
    request: &Request,
) -> Option<Result<CpuLatencyLimit, String>> {
    let limit = facts
        .system
        .quickest_idle_state()
        .filter(|_| request.goal == Goal::Latency)?;
    let hold = || -> io::Result<File> {
        let mut file = machine.open_to_write(FILE)?;
        let microseconds = i32::try_from(limit).map_err(io::Error::other)?;
        file.write_all(&microseconds.to_ne_bytes())?;
        Ok(file)
    };
    let target = Target::File {
        path: FILE.to_owned(),
    };
    Some(match hold() {
        Ok(file) => Ok(CpuLatencyLimit { limit, _file: file }),
        Err(error) => Err(format!("{FILE}: {}", words(&error, &target))),
    })
}
