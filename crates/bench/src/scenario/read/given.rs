//! What works are made of that stands elsewhere in the file.

use std::collections::BTreeMap;

use super::network::Networks;
use super::scale::Scale;
use crate::scenario::Program;

/// Programs, hosts with links, and the scale.
pub(super) struct Given<'a> {
    pub(super) programs: BTreeMap<String, Program>,
    pub(super) networks: Networks<'a>,
    pub(super) scale: Scale<'a>,
}
