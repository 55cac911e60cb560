//! `--watch`: reloads when a file of the configuration changes, when a file that matches an include pattern appears or
//! goes, or when a file changes that the configuration names and that is read once, such as passwords or an error page.

use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use onrush_config::Plan;
use onrush_config::plan::Admin;
use onrush_file::{ChangeDetector, Stamp};

use super::config_files::WatchedPath;
use super::config_source::ConfigSource;
use super::server_command::ServerCommand;

/// Interval of the checks. Two in a row must find the same, so that no half-written file is read.
const INTERVAL: Duration = Duration::from_millis(500);

/// Handle of the watching thread; each configuration sets what is watched.
pub(super) struct Watch(Sender<WatchedFiles>);

/// Files with their latest stamps, at first those from before they were read.
pub(super) struct WatchedFiles(Vec<(WatchedPath, Vec<Stamp>)>);

impl WatchedFiles {
    /// Files that were read for the configuration.
    pub(super) fn of(written: &ConfigSource) -> WatchedFiles {
        WatchedFiles(written.looked().to_vec())
    }

    /// Adds the files that `plan` names, before they are read. Certificates are reloaded anyway.
    pub(super) fn with(mut self, plan: &Plan) -> WatchedFiles {
        for file in plan.startup_files() {
            let file = WatchedPath::File(file.to_path_buf());
            let stamps = file.stamps().unwrap_or_default();
            self.0.push((file, stamps));
        }
        if let Admin::Tcp { token_file, .. } = &plan.admin {
            let file = WatchedPath::File(token_file.clone());
            let stamps = file.stamps().unwrap_or_default();
            self.0.push((file, stamps));
        }
        self
    }

    fn stamps(&self) -> Vec<Stamp> {
        let stamps = self.0.iter().flat_map(|(_, stamps)| stamps);
        stamps.copied().collect()
    }

    /// Current stamps, and the files that this process may not look at; those keep their last stamps.
    fn look(&mut self) -> (Vec<Stamp>, Vec<PathBuf>) {
        let mut denied = Vec::new();
        for (looked, last) in &mut self.0 {
            let now = looked.stamps();
            let may_look = |stamps: &Vec<Stamp>| !stamps.iter().any(|stamp| stamp.is_denied());
            if !now.as_ref().is_some_and(may_look) {
                denied.push(looked.path());
            }
            if let Some(now) = now {
                *last = now;
            }
        }
        (self.stamps(), denied)
    }
}

impl Watch {
    /// Starts a thread that requests a reload whenever a file has changed.
    pub(super) fn start(watched: WatchedFiles, asked: Sender<ServerCommand>) -> io::Result<Watch> {
        let (others, changes) = mpsc::channel();
        let watching = move || look_at(watched, &changes, &asked);
        thread::Builder::new()
            .name("watch".into())
            .spawn(watching)?;
        Ok(Watch(others))
    }

    /// Replaces the watched files after a reload.
    pub(super) fn change(&self, watched: WatchedFiles) {
        // The thread ends only with the server.
        let _ = self.0.send(watched);
    }
}

fn look_at(
    mut watched: WatchedFiles,
    changes: &Receiver<WatchedFiles>,
    asked: &Sender<ServerCommand>,
) {
    let mut look = ChangeDetector::new(watched.stamps());
    let mut said: Vec<PathBuf> = Vec::new();
    loop {
        match changes.recv_timeout(INTERVAL) {
            Ok(others) => {
                look = ChangeDetector::new(others.stamps());
                watched = others;
            }
            Err(RecvTimeoutError::Timeout) => {
                let (now, denied) = watched.look();
                say_denied(denied.iter().filter(|path| !said.contains(path)));
                said = denied;
                if look.has_changed(now) && asked.send(ServerCommand::Reload).is_err() {
                    return;
                }
            }
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

/// Warns that changes of these files go unnoticed.
fn say_denied<'a>(mut denied: impl Iterator<Item = &'a PathBuf>) {
    let Some(first) = denied.next() else {
        return;
    };
    let others = match denied.count() {
        0 => String::new(),
        several => format!(" and {several} more"),
    };
    tracing::warn!(
        event = "watch_denied",
        "--watch cannot access {}{others} (permission denied): changes there are not noticed; allow the user of this process to enter its directory",
        first.display()
    );
}
