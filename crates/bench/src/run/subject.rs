//! What a trial is about.

use std::path::Path;
use std::time::Instant;

use super::interrupt::Interrupt;
use super::network::Made;
use super::progress::Progress;
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
    pub(super) progress: &'a mut Progress,
    pub(super) environment: &'a mut Environment,
}

/// What is measured now.
#[derive(Clone, Copy)]
pub(super) struct Subject<'a> {
    pub(super) work: &'a Work,
    pub(super) variant: &'a Variant,
    pub(super) placement: &'a Placement,
    /// Where the roles run; `None` is this machine as it is.
    pub(super) network: Option<&'a Made<'a>>,
    pub(super) round: u32,
    pub(super) rate: Option<f64>,
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
