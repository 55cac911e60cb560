//! The action of a request's route, or the reason for a refusal.

pub(crate) mod chosen;
pub(crate) mod misplaced;
pub(crate) mod objection;
