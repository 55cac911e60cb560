//! Commands to a running server.

use std::sync::mpsc::Receiver;
use std::thread;
use std::time::Duration;

use onrush_admin::{Command, CommandResult};
use onrush_engine::{Handle, Promise};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

/// How long a server may take to end at once.
const FORCED_EXIT_DELAY: Duration = Duration::from_secs(10);

pub(super) enum ServerCommand {
    /// End; the name of the signal.
    End(&'static str),
    /// Read the configuration again.
    Reload,
    /// Reopen the file of the access log.
    Reopen,
    /// Start the program again, to replace this process.
    Upgrade,
    /// The new process serves; it has taken the addresses at these indices.
    HandOver {
        process: u32,
        /// Indices in the handover.
        taken: Vec<usize>,
    },
    /// An order of the admin interface, which receives the outcome.
    Order(Command, Promise<CommandResult>),
    /// The new process has ended, and this one continues.
    GoOn {
        process: u32,
        /// How it ended.
        why: String,
    },
}

/// Handles commands during shutdown. A second request to end ends the server at once. Signals to reload or upgrade are
/// passed to the successor; a process that still tries to take over is ended.
pub(super) fn handle_commands_during_shutdown(
    asked: Receiver<ServerCommand>,
    handles: Vec<Handle>,
    successor: Option<u32>,
) {
    let hastening = move || {
        for asked in asked {
            match asked {
                ServerCommand::End(_) => {
                    let end = |handle: &Handle| handle.stop(Duration::ZERO);
                    handles.iter().for_each(end);
                    // A file system that does not respond can still delay the last lines of a log.
                    thread::sleep(FORCED_EXIT_DELAY);
                    std::process::exit(1);
                }
                ServerCommand::HandOver { process, .. } => send(process, Signal::TERM),
                ServerCommand::Reload => pass_on(successor, Signal::HUP),
                ServerCommand::Upgrade => pass_on(successor, Signal::USR2),
                // Dropping the promise is the reply to an order.
                ServerCommand::GoOn { .. }
                | ServerCommand::Reopen
                | ServerCommand::Order(Command::Reload | Command::Upgrade, _) => {}
                ServerCommand::Order(Command::Stop, outcome) => {
                    outcome.fulfil(Ok(json!({ "ends": true })))
                }
            }
        }
    };
    // Without the thread a second signal does nothing, and the server still ends.
    let _ = thread::Builder::new()
        .name("hasten".into())
        .spawn(hastening);
}

fn pass_on(successor: Option<u32>, signal: Signal) {
    match successor {
        Some(process) => {
            tracing::info!(
                "this process stops; process {process} has replaced it and gets the signal"
            );
            send(process, signal);
        }
        None => tracing::warn!("nothing was done: this process is stopping"),
    }
}

/// Sends a signal to a child that has not been waited for.
pub(super) fn send(process: u32, signal: Signal) {
    let process = i32::try_from(process).ok().and_then(Pid::from_raw);
    // Ignore the error: it may have ended.
    let _ = process.map(|process| kill_process(process, signal));
}
