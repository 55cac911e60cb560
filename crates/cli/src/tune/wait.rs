//! Waiting for programs, and for signals where something must be undone before the end.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use super::arguments::DurationSpec;

/// Polling interval while waiting for a confirmation, a signal or the end of a program.
pub(super) const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Signals that request a stop, where something must be undone first.
pub(super) struct StopSignals(Arc<AtomicBool>);

impl StopSignals {
    /// Records signals from now on instead of ending the process.
    pub(super) fn listen() -> io::Result<StopSignals> {
        let stop = StopSignals::never();
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            signal_hook::flag::register(signal, Arc::clone(&stop.0))?;
        }
        Ok(stop)
    }

    /// Leaves signals alone: there is nothing to undo.
    pub(super) fn never() -> StopSignals {
        StopSignals(Arc::new(AtomicBool::new(false)))
    }

    pub(super) fn is_asked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Waits for a time, for the end of a process, or for a command that it runs, whose exit code it returns.
pub(super) fn wait_for(lasts: &DurationSpec, stop: &StopSignals) -> anyhow::Result<ExitCode> {
    let during = match lasts {
        DurationSpec::Time(time) => {
            let deadline = Instant::now() + *time;
            while Instant::now() < deadline && !stop.is_asked() {
                thread::sleep(LOOK_EVERY.min(deadline - Instant::now()));
            }
            return Ok(ExitCode::SUCCESS);
        }
        DurationSpec::Process(number) => {
            wait_for_process(*number, stop, None)?;
            return Ok(ExitCode::SUCCESS);
        }
        DurationSpec::Command(command) => command,
    };
    // In a process group of its own, so that the whole command can be ended and nothing of it keeps running.
    let mut child = Command::new("sh")
        .arg("-c")
        .arg(during)
        .process_group(0)
        .spawn()
        .context("cannot run a shell")?;
    let mut is_told = false;
    loop {
        if let Some(status) = child.try_wait().context("cannot wait for the command")? {
            // As a shell reports a command that a signal ended.
            let code = status.code().or_else(|| Some(128 + status.signal()?));
            let code = code.and_then(|code| u8::try_from(code).ok());
            return Ok(ExitCode::from(code.unwrap_or(1)));
        }
        if stop.is_asked() && !is_told {
            is_told = true;
            tell_to_end(&child);
        }
        thread::sleep(LOOK_EVERY);
    }
}

pub(super) fn check_process(number: i32) -> anyhow::Result<()> {
    open_process(number).map(drop)
}

fn open_process(number: i32) -> anyhow::Result<OwnedFd> {
    let process = Pid::from_raw(number).filter(|_| number > 0);
    let process = process.with_context(|| format!("{number} is not a process number"))?;
    pidfd_open(process, PidfdFlags::empty()).with_context(|| {
        format!("process {number} does not exist; for a time add its unit: {number}s")
    })
}

/// Waits until a process that is not a child ends, the deadline passes, or a signal requests a stop.
pub(super) fn wait_for_process(
    number: i32,
    stop: &StopSignals,
    deadline: Option<Instant>,
) -> anyhow::Result<()> {
    let descriptor = open_process(number)?;
    let mut ended = [rustix::event::PollFd::new(
        &descriptor,
        rustix::event::PollFlags::IN,
    )];
    let timeout = LOOK_EVERY.try_into().context("100 ms fits a Timespec")?;
    let is_over = || deadline.is_some_and(|deadline| Instant::now() >= deadline);
    while !stop.is_asked() && !is_over() && ended[0].revents().is_empty() {
        match rustix::event::poll(&mut ended, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(io::Error::from(error).into()),
        }
    }
    Ok(())
}

fn tell_to_end(child: &Child) {
    if let Some(process) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        // It may have ended just now; the next check reports it.
        let _ = kill_process_group(process, Signal::TERM);
    }
}
