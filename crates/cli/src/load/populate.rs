//! Storing keys before a run.

use onrush_load::error::Error;
use onrush_load::memcached::populate_result::PopulateResult;
use onrush_load::plan::Plan;
use onrush_load::populate;

use crate::terminal::print_error;

/// Stores all keys before the run, if requested, and warns about failures.
pub(super) fn populate(plan: &mut Plan) -> Result<(), Error> {
    let filled = populate::populate(plan)?;
    if let Some(complaint) = filled.and_then(PopulateResult::failure_message) {
        print_error(format_args!("onrush load: {complaint}"));
    }
    Ok(())
}
