//! The thread that writes the access log.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use onrush_config::plan::LogTarget;
use onrush_engine::Instant;
use onrush_engine::clock::now;

use super::lines::{Lines, Waiting, Wakeup};
use super::output::Output;

/// Larger buffers are freed after use.
const ROOM_KEPT: usize = 1024 * 1024;

/// Minimum time from a failure to the message that the output works again, so that an intermittent failure does not
/// flood the error log.
const NEWS: Duration = Duration::from_secs(1);

/// Handle of the thread. Dropping it does not wait for the thread.
pub(super) struct Writer {
    /// Disconnected when the thread ends.
    ended: Mutex<Receiver<()>>,
}

/// Result of waiting for the thread.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum WaitOutcome {
    Ended,
    /// The thread is blocked by an output that no process reads.
    TimedOut,
}

/// State of the output.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Health {
    Works,
    /// Number of lines lost before the failure was logged.
    Fails {
        lost_before: u64,
        since: Instant,
    },
}

impl Writer {
    /// Opens the output and starts the thread, which writes `lines` until they end.
    /// Fails if the output cannot be opened or the thread cannot be created.
    pub(super) fn start(target: &LogTarget, lines: &Arc<Lines>) -> io::Result<Writer> {
        let output = Output::open(target)?;
        let lines = Arc::clone(lines);
        let (end, ended) = mpsc::channel();
        thread::Builder::new()
            .name("access-log".into())
            .spawn(move || {
                write_all(output, &lines);
                drop(end);
            })?;
        Ok(Writer {
            ended: Mutex::new(ended),
        })
    }

    pub(super) fn wait(&self, patience: Duration) -> WaitOutcome {
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        // Nothing is ever sent: either the channel disconnects or the wait times out.
        match ended.recv_timeout(patience) {
            Err(RecvTimeoutError::Timeout) => WaitOutcome::TimedOut,
            _ => WaitOutcome::Ended,
        }
    }
}

fn write_all(mut output: Output, lines: &Lines) {
    let mut room = Waiting::default();
    let mut health = Health::Works;
    loop {
        let call = lines.wait();
        for core in 0..lines.cores() {
            lines.take(core, &mut room);
            if !room.text.is_empty() {
                lines.set_writing(room.count);
                let written = output.write(&room.text, || lines.has_ended());
                lines.set_writing(0);
                health = said(written, health, &output, lines);
            }
            if room.text.capacity() > ROOM_KEPT {
                room.text = Vec::new();
            }
        }
        match call {
            Wakeup::Lines => {}
            Wakeup::Reopen => match output.reopen() {
                Ok(()) => tracing::info!("{output} was reopened"),
                Err(error) => {
                    tracing::error!(
                        "cannot reopen {output}, so the old file is still written: {error}"
                    );
                }
            },
            Wakeup::End => return,
        }
    }
}

/// Logs when the output fails and when it works again.
fn said(
    written: Result<(), (u64, io::Error)>,
    health: Health,
    output: &Output,
    lines: &Lines,
) -> Health {
    match (written, health) {
        (Ok(()), Health::Works) => Health::Works,
        (Ok(()), Health::Fails { lost_before, since }) => {
            if now().since(since) < NEWS {
                return health;
            }
            let lost = lines.lost() - lost_before;
            tracing::warn!(
                event = "log_works",
                lost,
                "{output} is writable again; {lost} lines were lost"
            );
            Health::Works
        }
        (Err((lost, error)), health) => {
            let lost_before = lines.lost();
            lines.lose(lost);
            if health == Health::Works {
                tracing::error!(
                    event = "log_fails",
                    "cannot write {output}, lines are lost meanwhile: {error}"
                );
                let since = now();
                return Health::Fails { lost_before, since };
            }
            health
        }
    }
}
