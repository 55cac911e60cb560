//! Files of certificates that change while they are in use: looked at once a second, read again when they have changed.
//!
//! Looking at a file's stamp follows the links that certbot and Kubernetes swap, and sees changes on file systems that
//! report none. A file that is still being written is left alone until it has been the same twice.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{self, JoinHandle};

use onrush_file::{Look, Stamp, stamp};

use crate::acceptor::Acceptor;
use crate::certificate::stamps::Stamps;
use crate::connector::Connector;
use crate::error::Trouble;
use crate::limits::WATCH_INTERVAL;

/// What reads files that may change.
#[derive(Clone)]
pub enum Watched {
    /// Certificates of a server, and the authorities of its clients.
    Acceptor(Arc<Acceptor>),
    /// The certificate of a client, and the authorities of its servers.
    Connector(Arc<Connector>),
}

impl Watched {
    fn stamps(&self) -> &Stamps {
        match self {
            Watched::Acceptor(acceptor) => acceptor.stamps(),
            Watched::Connector(connector) => connector.stamps(),
        }
    }

    fn reload(&self) -> Result<Vec<Trouble>, Vec<Trouble>> {
        match self {
            Watched::Acceptor(acceptor) => acceptor.reload(),
            Watched::Connector(connector) => connector.reload(),
        }
    }
}

/// What came of a change of files.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Reloaded {
    /// They are in force for new connections; and what is odd about them.
    Taken(Vec<Trouble>),
    /// They are wrong. Those before them stay in force.
    Refused(Vec<Trouble>),
    /// This process may not look at these any more, as one that has become another user: changes go unnoticed. Said once.
    Denied(Vec<PathBuf>),
}

/// A thread that watches files; dropping it ends it.
pub struct Watch {
    /// `None` while being dropped.
    stop: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    /// Watches the files of `watched` and reports each change. `None` when there are no files.
    pub fn start(
        watched: Vec<Watched>,
        report: impl Fn(Reloaded) + Send + 'static,
    ) -> Option<Watch> {
        let mut looks: Vec<(Watched, Look)> = watched
            .into_iter()
            .filter(|watched| !watched.stamps().files.is_empty())
            .map(|watched| {
                let look = Look::new(watched.stamps().read.clone());
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
                            Ok(warnings) => Reloaded::Taken(warnings),
                            Err(wrong) => Reloaded::Refused(wrong),
                        });
                    }
                }
                if denied != said {
                    said.clone_from(&denied);
                    if !denied.is_empty() {
                        report(Reloaded::Denied(denied));
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
            // It reports to nobody any more, and a panic of its own has been printed.
            let _ = thread.join();
        }
    }
}
