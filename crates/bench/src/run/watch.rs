//! Observes the programs of an open window: the sampler, and perf if profiles are requested; on other machines, the
//! agents' samplers.

use std::collections::BTreeMap;
use std::path::Path;

use super::failure::Try;
use super::profiles::Profiles;
use super::recording::Recording;
use super::remote::RemoteWindow;
use super::running::Running;
use super::subject::{Context, Subject};
use crate::collect::sampler::{Sampler, Window};
use crate::collect::source::Root;
use crate::outcome::Trial;
use crate::scenario::Role;

pub(super) enum OpenWindow {
    Local(Box<Here>),
    /// On other machines, where profiles are not supported; whether they were requested.
    Remote(RemoteWindow, Option<UnsupportedProfiles>),
}

pub(super) struct UnsupportedProfiles;

pub(super) struct Here {
    sampler: Sampler,
    recording: Option<Recording>,
}

/// Process ids of local programs.
pub(super) fn ids(running: &[(Role, Running)]) -> BTreeMap<Role, u32> {
    let ids = running.iter().filter_map(|(role, running)| match running {
        Running::Local(child) => Some((*role, child.id())),
        Running::Remote(_) => None,
    });
    ids.collect()
}

impl OpenWindow {
    /// Opens a window over the running programs and the network of `root`.
    pub(super) fn start(
        context: &Context<'_>,
        subject: &Subject<'_>,
        root: &Root,
        running: &[(Role, Running)],
    ) -> Try<OpenWindow> {
        if subject.variant.remote.is_some() {
            let roles: Vec<Role> = running.iter().map(|(role, _)| *role).collect();
            let window = RemoteWindow::open(context, subject, &roles)?;
            let no_profiles = context.profiles.as_ref().map(|_| UnsupportedProfiles);
            return Ok(OpenWindow::Remote(window, no_profiles));
        }
        let profiles = context.profiles.as_ref();
        let sampler = Sampler::start(root, &ids(running), subject.variant.collect);
        let here = Here::start(sampler, profiles, context.root);
        Ok(OpenWindow::Local(Box::new(here)))
    }

    pub(super) fn join(&mut self, role: Role, running: &Running) -> Try<()> {
        match (self, running) {
            (OpenWindow::Local(here), Running::Local(child)) => here.join(role, child.id()),
            (OpenWindow::Remote(window, _), _) => window.join(role)?,
            (OpenWindow::Local(_), Running::Remote(_)) => {
                unreachable!("all roles are here or all are on other machines")
            }
        }
        Ok(())
    }

    /// Takes a sample if the interval has passed; agents do this by themselves.
    pub(super) fn poll(&mut self) {
        match self {
            OpenWindow::Local(here) => here.sampler.poll(),
            OpenWindow::Remote(..) => {}
        }
    }

    pub(super) fn finish(self) -> Try<(Window, Recorded)> {
        match self {
            OpenWindow::Local(here) => Ok(here.finish()),
            OpenWindow::Remote(window, no_profiles) => {
                let mut window = window.close()?;
                let why = "CPU profiles (roles on other machines are not profiled)";
                window.left_out.extend(no_profiles.map(|_| why.into()));
                Ok((window, Recorded(None)))
            }
        }
    }
}

impl Here {
    fn start(sampler: Sampler, profiles: Option<&Profiles>, scratch: &Path) -> Here {
        let mut recording = profiles.map(|_| Recording::new(scratch));
        if let Some(recording) = &mut recording {
            for (role, pids) in sampler.processes() {
                recording.start(role, &pids);
            }
        }
        Here { sampler, recording }
    }

    fn join(&mut self, role: Role, pid: u32) {
        self.sampler.join(role, pid);
        if let Some(recording) = &mut self.recording {
            recording.start(role, &[pid]);
        }
    }

    fn finish(mut self) -> (Window, Recorded) {
        let window = self.sampler.finish();
        if let Some(recording) = &mut self.recording {
            recording.stop();
        }
        (window, Recorded(self.recording))
    }
}

pub(super) struct Recorded(Option<Recording>);

impl Recorded {
    /// Processes them, writes profiles, and adds their paths to the trial.
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
