//! What a trial is about.

use std::path::Path;
use std::time::Instant;

use super::interrupt::Interrupt;
use super::network::Made;
use super::profiles::Profiles;
use super::progress::Progress;
use super::remote::Hosts;
use crate::environment::Environment;
use crate::placement::Placement;
use crate::scenario::{Experiment, Program, Role, Variant, Work};

/// What all trials share.
pub(super) struct Context<'a> {
    pub(super) experiment: &'a Experiment,
    pub(super) onrush: &'a Path,
    pub(super) root: &'a Path,
    pub(super) open_files_max: u64,
    pub(super) interrupt: &'a Interrupt,
    /// Other machines that were reached.
    pub(super) hosts: &'a Hosts,
    pub(super) progress: &'a mut Progress,
    pub(super) environment: &'a mut Environment,
    /// Where CPU profiles go, when they are made.
    pub(super) profiles: Option<Profiles>,
}

/// What is measured now.
#[derive(Clone, Copy)]
pub(super) struct Subject<'a> {
    pub(super) work: &'a Work,
    pub(super) variant: &'a Variant,
    pub(super) placement: &'a Placement,
    /// The namespaces in which the roles run; `None` is this machine as it is, or other machines.
    pub(super) network: Option<&'a Made<'a>>,
    pub(super) round: u32,
    pub(super) rate: Option<f64>,
    /// When clients on several machines begin together, seconds since 1970 by our clock.
    pub(super) start_at: Option<f64>,
    pub(super) run_started: Instant,
}

impl<'a> Subject<'a> {
    pub(super) fn program<'e>(
        &self,
        experiment: &'e Experiment,
        role: Role,
    ) -> Option<&'e Program> {
        experiment.programs.get(self.variant.roles.get(&role)?)
    }

    pub(super) fn under_test(&self) -> Role {
        self.work.under_test(self.variant)
    }
}
