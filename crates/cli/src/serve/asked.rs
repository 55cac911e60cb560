//! What a server that runs is asked for from outside.

use std::sync::mpsc::Receiver;
use std::thread;
use std::time::Duration;

use onrush_admin::{Order, Outcome};
use onrush_engine::{Handle, Promise};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

/// How long a server may take that is to end at once.
const END_PATIENCE: Duration = Duration::from_secs(10);

/// What is asked for.
pub(super) enum Asked {
    /// The end; by which signal.
    End(&'static str),
    /// The configuration is to be read again.
    Reload,
    /// The file of the access log is to be opened anew.
    Reopen,
    /// The program is to be started again, to take the place of this process.
    Upgrade,
    /// It has, and serves the addresses at these places.
    HandOver {
        /// Its number.
        process: u32,
        /// Of the handover.
        taken: Vec<usize>,
    },
    /// By the admin interface, which is told what comes of it.
    Order(Order, Promise<Outcome>),
    /// It has ended, and this process goes on.
    GoOn {
        /// Its number.
        process: u32,
        /// How it ended.
        why: String,
    },
}

/// From now on whoever asks for the end has the server end at once. Anything else is for the process that has its place; one
/// that would still take it is told to end, too.
pub(super) fn hasten(asked: Receiver<Asked>, handles: Vec<Handle>, successor: Option<u32>) {
    let hastening = move || {
        for asked in asked {
            match asked {
                Asked::End(_) => {
                    let end = |handle: &Handle| handle.stop(Duration::ZERO);
                    handles.iter().for_each(end);
                    // A file system that does not answer can still hold up the last lines of a log.
                    thread::sleep(END_PATIENCE);
                    std::process::exit(1);
                }
                Asked::HandOver { process, .. } => send(process, Signal::TERM),
                Asked::Reload => pass_on(successor, Signal::HUP),
                Asked::Upgrade => pass_on(successor, Signal::USR2),
                // This is the reply to an order: the promise is dropped.
                Asked::GoOn { .. }
                | Asked::Reopen
                | Asked::Order(Order::Reload | Order::Upgrade, _) => {}
                Asked::Order(Order::Stop, outcome) => outcome.keep(Ok(json!({ "ends": true }))),
            }
        }
    };
    // Without it a second signal does nothing, and the server still ends.
    let _ = thread::Builder::new()
        .name("hasten".into())
        .spawn(hastening);
}

fn pass_on(successor: Option<u32>, signal: Signal) {
    match successor {
        Some(process) => {
            tracing::info!("this process ends, process {process} has its place and is told");
            send(process, signal);
        }
        None => tracing::warn!("nothing was done, this process ends"),
    }
}

/// Signals a process that this one has started and not waited for.
pub(super) fn send(process: u32, signal: Signal) {
    let process = i32::try_from(process).ok().and_then(Pid::from_raw);
    // It may have ended by itself.
    let _ = process.map(|process| kill_process(process, signal));
}
