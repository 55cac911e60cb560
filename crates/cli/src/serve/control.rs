//! The control loop of a running server.

use std::fmt;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

use onrush_admin::{Order, Outcome, Phase, Readiness};
use onrush_engine::Promise;
use onrush_serve::Server;
use rustix::process::Signal;
use serde_json::json;

use super::asked::{Asked, send};
use super::reload::Reloading;
use super::supervisor;
use super::upgrade::Start;

/// Interval at which the memory of earlier configurations is returned to the system while any of them may be in use.
const MEMORY_RETURN_INTERVAL: Duration = Duration::from_secs(1);

pub(super) struct Control<'a> {
    pub(super) reloading: Reloading<'a>,
    pub(super) start: Start,
    /// For threads that send commands on behalf of this process.
    pub(super) ask: Sender<Asked>,
    /// The process that is starting to replace this one, until it confirms.
    pub(super) next: Option<Next>,
    pub(super) readiness: Readiness,
}

pub(super) struct Next {
    process: u32,
    /// Receives the outcome, if an order of the admin interface started the upgrade.
    told: Option<Promise<Outcome>>,
    /// A reload was requested after the process may have read its file.
    then: Then,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Then {
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
    pub(super) fn until_the_end(mut self, server: &mut Server, asked: &Receiver<Asked>) -> End {
        // `self` holds a sender, so the channel is never disconnected.
        loop {
            let next = match server.has_memory_to_return() {
                true => asked.recv_timeout(MEMORY_RETURN_INTERVAL),
                false => asked.recv().map_err(RecvTimeoutError::from),
            };
            match next {
                Err(RecvTimeoutError::Timeout) => server.return_memory(),
                Ok(Asked::Reload) => {
                    // The log reports the outcome.
                    let _ = self.reload(server, "SIGHUP");
                }
                Ok(Asked::Reopen) => {
                    if !server.reopen_log() {
                        tracing::warn!(
                            "SIGUSR1: nothing was done: no access log is configured ([log])"
                        );
                    }
                }
                Ok(Asked::Upgrade) => self.upgrade(server, None),
                Ok(Asked::Order(Order::Reload, told)) => {
                    told.keep(self.reload(server, "ctl reload"));
                }
                Ok(Asked::Order(Order::Upgrade, told)) => self.upgrade(server, Some(told)),
                Ok(Asked::Order(Order::Stop, told)) => {
                    told.keep(Ok(json!({ "ends": true })));
                    return self.end("ctl stop");
                }
                Ok(Asked::HandOver { process, taken }) => {
                    server.hand_over(&taken);
                    self.readiness.set(Phase::Stopping);
                    if let Some(next) = self.next {
                        if next.then == Then::Reload {
                            send(process, Signal::HUP);
                        }
                        let serves = json!({ "process": process });
                        next.told
                            .into_iter()
                            .for_each(|told| told.keep(Ok(serves.clone())));
                    }
                    return End::Succeeded(process);
                }
                Ok(Asked::GoOn { process, why }) => {
                    let why = format!(
                        "process {process} failed to start serving ({why}), this process keeps serving"
                    );
                    tracing::error!(event = "upgrade_failed", process, "SIGUSR2: {why}");
                    if let Some(next) = self.next.take() {
                        next.told
                            .into_iter()
                            .for_each(|told| told.keep(Err(why.clone())));
                        if next.then == Then::Reload {
                            // The log reports the outcome.
                            let _ = self.reload(server, "SIGHUP");
                        }
                    }
                }
                Ok(Asked::End(name)) => return self.end(name),
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

    fn reload(&mut self, server: &mut Server, why: &str) -> Outcome {
        match &mut self.next {
            None => {
                supervisor::reloading();
                let outcome = self.reloading.reload(server, why);
                supervisor::ready();
                outcome
            }
            Some(next) => {
                next.then = Then::Reload;
                let said = format!(
                    "process {} is about to replace this one; the process that serves then reloads the configuration",
                    next.process
                );
                tracing::info!("{why}: {said}");
                Err(said)
            }
        }
    }

    fn upgrade(&mut self, server: &Server, told: Option<Promise<Outcome>>) {
        let why = if told.is_some() {
            "ctl upgrade"
        } else {
            "SIGUSR2"
        };
        if let Some(Next { process, .. }) = self.next {
            let said = format!("nothing was done: process {process} is already starting");
            tracing::warn!("{why}: {said}");
            told.into_iter()
                .for_each(|told| told.keep(Err(said.clone())));
            return;
        }
        match self.start.again(server, self.ask.clone()) {
            Ok(process) => {
                self.next = Some(Next {
                    process,
                    told,
                    then: Then::Nothing,
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
                    .for_each(|told| told.keep(Err(said.clone())));
            }
        }
    }
}
