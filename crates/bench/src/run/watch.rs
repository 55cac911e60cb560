//! What looks at the programs of a window while it is open: the sampler, and perf where profiles are made.

use std::collections::BTreeMap;
use std::path::Path;

use super::failure::Try;
use super::profiles::Profiles;
use super::recording::Recording;
use super::subject::{Context, Subject};
use crate::collect::sampler::{Sampler, Window};
use crate::collect::source::Root;
use crate::outcome::Trial;
use crate::scenario::Role;

/// An open window.
pub(super) struct Watch {
    sampler: Sampler,
    recording: Option<Recording>,
}

impl Watch {
    /// Opens a window over the programs that already run, and over the network of `root`.
    pub(super) fn start(
        root: &Root,
        pids: &BTreeMap<Role, u32>,
        profiles: Option<&Profiles>,
        scratch: &Path,
    ) -> Watch {
        let sampler = Sampler::start(root, pids);
        let mut recording = profiles.map(|_| Recording::new(scratch));
        if let Some(recording) = &mut recording {
            for (role, pids) in sampler.processes() {
                recording.start(role, &pids);
            }
        }
        Watch { sampler, recording }
    }

    /// Adds a program that has just been started.
    pub(super) fn join(&mut self, role: Role, pid: u32) {
        self.sampler.join(role, pid);
        if let Some(recording) = &mut self.recording {
            recording.start(role, &[pid]);
        }
    }

    /// Takes a sample when one is due.
    pub(super) fn poll(&mut self) {
        self.sampler.poll();
    }

    /// Closes the window.
    pub(super) fn finish(mut self) -> (Window, Recorded) {
        let window = self.sampler.finish();
        if let Some(recording) = &mut self.recording {
            recording.stop();
        }
        (window, Recorded(self.recording))
    }
}

/// The samples of perf, not yet read.
pub(super) struct Recorded(Option<Recording>);

impl Recorded {
    /// Reads them, writes profiles, and tells the trial where they are.
    pub(super) fn write(
        self,
        context: &mut Context<'_>,
        subject: &Subject<'_>,
        trial: &mut Trial,
    ) -> Try<()> {
        match (self.0, &mut context.profiles) {
            (Some(recording), Some(profiles)) => {
                recording.write(profiles, subject, context.interrupt, trial)
            }
            (None, _) | (Some(_), None) => Ok(()),
        }
    }
}
