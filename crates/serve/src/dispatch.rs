//! Selects the action for a request: its route's response, or a refusal.

pub(crate) mod chosen;
pub(crate) mod misplaced;
pub(crate) mod objection;
