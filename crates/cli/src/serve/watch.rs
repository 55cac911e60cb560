//! `--watch`: the configuration is read again when one of its files has changed, when one has come that a pattern includes
//! or has gone, or when one has changed that it names and that is read once: of passwords, or of an error page.

use std::io;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use onrush_config::Plan;
use onrush_file::{Look, Stamp};

use super::asked::Asked;
use super::disk::Looked;
use super::written::Written;

/// How often the files are looked at. Two looks in a row must find the same, so that no half of a file is read.
const INTERVAL: Duration = Duration::from_millis(500);

/// What is watched changes with the configuration.
pub(super) struct Watch(Sender<Watched>);

/// Files, and how they were before they were read.
pub(super) struct Watched {
    files: Vec<Looked>,
    read: Vec<Stamp>,
}

impl Watched {
    /// What was looked at to read the configuration.
    pub(super) fn of(written: &Written) -> Watched {
        let looked = written.looked().iter();
        let (files, read): (_, Vec<_>) = looked.cloned().unzip();
        Watched {
            files,
            read: read.concat(),
        }
    }

    /// And the files that `plan` names, before they are read. Certificates are followed anyway.
    pub(super) fn with(mut self, plan: &Plan) -> Watched {
        for file in plan.files_read() {
            let file = Looked::File(file.to_path_buf());
            self.read.extend(file.stamps());
            self.files.push(file);
        }
        self
    }
}

impl Watch {
    /// Asks for a reload whenever a file has changed.
    ///
    /// # Errors
    /// When the system has no thread.
    pub(super) fn start(watched: Watched, asked: Sender<Asked>) -> io::Result<Watch> {
        let (others, changes) = mpsc::channel();
        let watching = move || look_at(watched, &changes, &asked);
        thread::Builder::new()
            .name("watch".into())
            .spawn(watching)?;
        Ok(Watch(others))
    }

    /// Another configuration is in force.
    pub(super) fn change(&self, watched: Watched) {
        // It ends with the server only.
        let _ = self.0.send(watched);
    }
}

fn look_at(mut watched: Watched, changes: &Receiver<Watched>, asked: &Sender<Asked>) {
    let mut look = Look::new(watched.read.clone());
    loop {
        match changes.recv_timeout(INTERVAL) {
            Ok(others) => {
                look = Look::new(others.read.clone());
                watched = others;
            }
            Err(RecvTimeoutError::Timeout) => {
                let now = watched.files.iter().flat_map(Looked::stamps).collect();
                if look.has_changed(now) && asked.send(Asked::Reload).is_err() {
                    return;
                }
            }
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}
