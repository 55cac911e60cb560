//! What a request gets: the action of its route, or the reason why it gets none.

pub(crate) mod chosen;
pub(crate) mod misplaced;
pub(crate) mod objection;
