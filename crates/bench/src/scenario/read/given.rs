//! Parts of the file that works refer to.

use std::collections::BTreeMap;

use super::network::Networks;
use super::scale::Scale;
use crate::scenario::section::{Read, Section, unknown};
use crate::scenario::{Collect, Program};

/// Programs, hosts with links, the default of `collect`, and the scale.
pub(super) struct WorkContext<'a> {
    pub(super) programs: BTreeMap<String, Program>,
    pub(super) networks: Networks<'a>,
    /// Default for works.
    pub(super) collect: Collect,
    pub(super) scale: Scale<'a>,
}

/// Reads `collect`: whether counters are sampled during a window.
pub(super) fn collect(section: &Section<'_>) -> Read<Option<Collect>> {
    let Some(text) = section.text("collect")? else {
        return Ok(None);
    };
    match text.value.as_str() {
        "on" => Ok(Some(Collect::On)),
        "off" => Ok(Some(Collect::Off)),
        other => Err(section
            .source
            .mistake(text.span, unknown("collect", other, &["off", "on"]))),
    }
}
