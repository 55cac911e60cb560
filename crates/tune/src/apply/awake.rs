//! Keeping CPUs out of idle states that take long to leave, for as long as a program runs.

use std::fs::File;
use std::io::{self, Write};

use super::machine::Root;
use super::words;
use crate::advise::{Goal, Request, Target};
use crate::facts::Facts;

const FILE: &str = "/dev/cpu_dma_latency";

/// A limit on how long CPUs may take to wake up. It holds until the value is dropped, however the process ends: the
/// kernel forgets it with the open file (Documentation/power/pm_qos_interface.rst).
#[derive(Debug)]
pub struct Awake {
    /// Microseconds.
    pub limit: u64,
    _file: File,
}

/// Limits wake-ups to what the quickest idle state takes, where short waits are wished for and there is a slower one;
/// nothing to do otherwise. An error is a sentence.
pub fn stay_awake(
    machine: &Root,
    facts: &Facts,
    request: &Request,
) -> Option<Result<Awake, String>> {
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
        Ok(file) => Ok(Awake { limit, _file: file }),
        Err(error) => Err(format!("{FILE}: {}", words(&error, &target))),
    })
}
