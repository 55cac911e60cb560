//! Watches certificate files: checks them once a second, and reads them again when they have changed.
//!
//! Checking stamps follows the symbolic links that certbot and Kubernetes swap, and works on file systems without
//! change notifications. A file that is still being written is not read until its stamp has been the same twice.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{self, JoinHandle};

use onrush_file::{ChangeDetector, Stamp, stamp};

use crate::acceptor::Acceptor;
use crate::certificate::stamps::Stamps;
use crate::connector::Connector;
use crate::error::Problem;
use crate::limits::WATCH_INTERVAL;

/// Configuration whose files are watched.
#[derive(Clone)]
pub enum WatchedConfig {
    /// Certificates of a server, and the authorities of its clients.
    Acceptor(Arc<Acceptor>),
    /// Certificate of a client, and the authorities of its servers.
    Connector(Arc<Connector>),
}

impl WatchedConfig {
    fn stamps(&self) -> &Stamps {
        match self {
            WatchedConfig::Acceptor(acceptor) => acceptor.stamps(),
            WatchedConfig::Connector(connector) => connector.stamps(),
        }
    }

    fn reload(&self) -> Result<Vec<Problem>, Vec<Problem>> {
        match self {
            WatchedConfig::Acceptor(acceptor) => acceptor.reload(),
            WatchedConfig::Connector(connector) => connector.reload(),
        }
    }
}

/// Result of a change of files.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ReloadResult {
    /// The files are used for new connections; the warnings are about accepted problems.
    Applied(Vec<Problem>),
    /// The files are invalid. The previous ones stay in force.
    Refused(Vec<Problem>),
    /// The process may no longer read these files, for example as another user: changes go unnoticed. Reported once.
    Denied(Vec<PathBuf>),
}

/// Thread that watches files; dropping this stops it.
pub struct Watch {
    /// `None` while being dropped.
    stop: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    /// Watches the files of `watched` and reports each change. Returns `None` if there are no files.
    pub fn start(
        watched: Vec<WatchedConfig>,
        report: impl Fn(ReloadResult) + Send + 'static,
    ) -> Option<Watch> {
        let mut looks: Vec<(WatchedConfig, ChangeDetector)> = watched
            .into_iter()
            .filter(|watched| !watched.stamps().files.is_empty())
            .map(|watched| {
                let look = ChangeDetector::new(watched.stamps().read.clone());
                (watched, look)
            })
            .collect();
        if looks.is_empty() {
            return None;
        }
        let (stop, stopped) = mpsc::channel::<()>();
        let watch = move || {
            let mut said = Vec::new();
            while stopped.recv_timeout(WATCH_INTERVAL) == Err(RecvTimeoutError::Timeout) {
                let mut denied = Vec::new();
                for (watched, look) in &mut looks {
                    let files = &watched.stamps().files;
                    let now: Vec<Stamp> = files.iter().map(|file| stamp(file)).collect();
                    let stamped = files.iter().zip(&now);
                    let unseen = stamped.filter(|(_, stamp)| stamp.is_denied());
                    denied.extend(unseen.map(|(file, _)| file.clone()));
                    if look.has_changed(now) {
                        report(match watched.reload() {
                            Ok(warnings) => ReloadResult::Applied(warnings),
                            Err(wrong) => ReloadResult::Refused(wrong),
                        });
                    }
                }
                if denied != said {
                    said.clone_from(&denied);
                    if !denied.is_empty() {
                        report(ReloadResult::Denied(denied));
                    }
                }
            }
        };
        let thread = thread::Builder::new()
            .name("certificates".into())
            .spawn(watch)
            .ok()?;
        Some(Watch {
            stop: Some(stop),
            thread: Some(thread),
        })
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has already been printed.
            let _ = thread.join();
        }
    }
}
