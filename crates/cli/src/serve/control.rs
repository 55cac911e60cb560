//! The control loop of a running server.

use std::fmt;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

use onrush_admin::{Command, CommandResult, Phase, Readiness};
use onrush_engine::Promise;
use onrush_serve::Server;
use rustix::process::Signal;
use serde_json::json;

use super::reload::Reloader;
use super::server_command::{ServerCommand, send};
use super::supervisor;
use super::upgrade::Invocation;

/// Interval at which the memory of earlier configurations is returned to the system while any of them may be in use.
const MEMORY_RETURN_INTERVAL: Duration = Duration::from_secs(1);

pub(super) struct Control<'a> {
    pub(super) reloading: Reloader<'a>,
    pub(super) start: Invocation,
    /// For threads that send commands on behalf of this process.
    pub(super) ask: Sender<ServerCommand>,
    /// The process that is starting to replace this one, until it confirms.
    pub(super) next: Option<Successor>,
    pub(super) readiness: Readiness,
}

pub(super) struct Successor {
    process: u32,
    /// Receives the outcome, if an order of the admin interface started the upgrade.
    told: Option<Promise<CommandResult>>,
    /// A reload was requested after the process may have read its file.
    then: PendingReload,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum PendingReload {
    Nothing,
    Reload,
}

/// Why a server ends.
pub(super) enum End {
    Signal(&'static str),
    /// This process has replaced it.
    Succeeded(u32),
}

impl End {
    /// Process ID of the successor.
    pub(super) fn successor(&self) -> Option<u32> {
        match self {
            End::Signal(_) => None,
            End::Succeeded(process) => Some(*process),
        }
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            End::Signal(name) => write!(
                f,
                "{name}: no new connections, finishing requests in flight (send it again to stop at once)"
            ),
            End::Succeeded(process) => write!(
                f,
                "SIGUSR2: process {process} serves now, finishing requests in flight here (SIGTERM to stop at once)"
            ),
        }
    }
}

impl Control<'_> {
    /// Handles commands until one ends the server.
    pub(super) fn run(mut self, server: &mut Server, asked: &Receiver<ServerCommand>) -> End {
        // `self` holds a sender, so the channel is never disconnected.
        loop {
            let next = match server.has_memory_to_return() {
                true => asked.recv_timeout(MEMORY_RETURN_INTERVAL),
                false => asked.recv().map_err(RecvTimeoutError::from),
            };
            match next {
                Err(RecvTimeoutError::Timeout) => server.return_memory(),
                Ok(ServerCommand::Reload) => {
                    // The log reports the outcome.
                    let _ = self.reload(server, "SIGHUP");
                }
                Ok(ServerCommand::Reopen) => {
                    if !server.reopen_log() {
                        tracing::warn!(
                            "SIGUSR1: nothing was done: no access log is configured ([log])"
                        );
                    }
                }
                Ok(ServerCommand::Upgrade) => self.upgrade(server, None),
                Ok(ServerCommand::Order(Command::Reload, told)) => {
                    told.fulfil(self.reload(server, "ctl reload"));
                }
                Ok(ServerCommand::Order(Command::Upgrade, told)) => {
                    self.upgrade(server, Some(told))
                }
                Ok(ServerCommand::Order(Command::Stop, told)) => {
                    told.fulfil(Ok(json!({ "ends": true })));
                    return self.end("ctl stop");
                }
                Ok(ServerCommand::HandOver { process, taken }) => {
                    server.hand_over(&taken);
                    self.readiness.set(Phase::Stopping);
                    if let Some(next) = self.next {
                        if next.then == PendingReload::Reload {
                            send(process, Signal::HUP);
                        }
                        let serves = json!({ "process": process });
                        next.told
                            .into_iter()
                            .for_each(|told| told.fulfil(Ok(serves.clone())));
                    }
                    return End::Succeeded(process);
                }
                Ok(ServerCommand::GoOn { process, why }) => {
                    let why = format!(
                        "process {process} failed to start serving ({why}), this process keeps serving"
                    );
                    tracing::error!(event = "upgrade_failed", process, "SIGUSR2: {why}");
                    if let Some(next) = self.next.take() {
                        next.told
                            .into_iter()
                            .for_each(|told| told.fulfil(Err(why.clone())));
                        if next.then == PendingReload::Reload {
                            // The log reports the outcome.
                            let _ = self.reload(server, "SIGHUP");
                        }
                    }
                }
                Ok(ServerCommand::End(name)) => return self.end(name),
                Err(RecvTimeoutError::Disconnected) => unreachable!("the sender is here"),
            }
        }
    }

    fn end(self, why: &'static str) -> End {
        supervisor::stopping();
        self.readiness.set(Phase::Stopping);
        // It would keep the sockets and go on serving after this server was stopped.
        self.next
            .iter()
            .for_each(|next| send(next.process, Signal::KILL));
        End::Signal(why)
    }

    fn reload(&mut self, server: &mut Server, why: &str) -> CommandResult {
        match &mut self.next {
            None => {
                supervisor::reloading();
                let outcome = self.reloading.reload(server, why);
                supervisor::ready();
                outcome
            }
            Some(next) => {
                next.then = PendingReload::Reload;
                let said = format!(
                    "process {} is about to replace this one; the process that serves then reloads the configuration",
                    next.process
                );
                tracing::info!("{why}: {said}");
                Err(said)
            }
        }
    }

    fn upgrade(&mut self, server: &Server, told: Option<Promise<CommandResult>>) {
        let why = if told.is_some() {
            "ctl upgrade"
        } else {
            "SIGUSR2"
        };
        if let Some(Successor { process, .. }) = self.next {
            let said = format!("nothing was done: process {process} is already starting");
            tracing::warn!("{why}: {said}");
            told.into_iter()
                .for_each(|told| told.fulfil(Err(said.clone())));
            return;
        }
        match self.start.spawn_successor(server, self.ask.clone()) {
            Ok(process) => {
                self.next = Some(Successor {
                    process,
                    told,
                    then: PendingReload::Nothing,
                });
                tracing::info!(
                    event = "upgrade",
                    process,
                    "{why}: starting process {process} to replace this one"
                );
            }
            Err(error) => {
                let said = format!("{error:#}; this process keeps serving");
                tracing::error!(event = "upgrade_failed", "{why}: {said}");
                told.into_iter()
                    .for_each(|told| told.fulfil(Err(said.clone())));
            }
        }
    }
}
