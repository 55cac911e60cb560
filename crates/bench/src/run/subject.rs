//! Parameters of a trial.

use std::path::Path;
use std::time::Instant;

use super::interrupt::Interrupt;
use super::network::NetworkNamespaces;
use super::profiles::Profiles;
use super::progress::Progress;
use super::remote::Hosts;
use crate::environment::Environment;
use crate::placement::Placement;
use crate::scenario::{Experiment, Program, Role, Variant, Work};

/// State shared by all trials.
pub(super) struct Context<'a> {
    pub(super) experiment: &'a Experiment,
    pub(super) onrush: &'a Path,
    pub(super) root: &'a Path,
    pub(super) open_files_max: u64,
    pub(super) interrupt: &'a Interrupt,
    pub(super) hosts: &'a Hosts,
    pub(super) progress: &'a mut Progress,
    pub(super) environment: &'a mut Environment,
    /// Writer of CPU profiles, if requested.
    pub(super) profiles: Option<Profiles>,
}

#[derive(Clone, Copy)]
pub(super) struct Subject<'a> {
    pub(super) work: &'a Work,
    pub(super) variant: &'a Variant,
    pub(super) placement: &'a Placement,
    /// Namespaces of the roles; `None` if roles run in the default namespace or on other machines.
    pub(super) network: Option<&'a NetworkNamespaces<'a>>,
    pub(super) round: u32,
    pub(super) rate: Option<f64>,
    /// Start time of clients on several machines, in seconds since 1970 by the local clock.
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
