//! Synchronized start of clients on several machines.

use std::time::{Duration, Instant};

use super::child::sleep_until_at_most;
use super::failure::{Failure, Try};
use super::remote::now;
use super::subject::{Context, Subject};
use crate::limits::POLL;
use crate::scenario::Role;

/// Delay of the start, in which programs start on all machines and open their connections.
const START_DELAY: Duration = Duration::from_secs(3);
/// Time before the start at which the window is opened, because agents are called one after the other.
const WINDOW_LEAD: Duration = Duration::from_millis(50);

/// Start time of a client with `{start_at}` in its command line, in seconds since 1970; `None` if the client starts
/// immediately.
pub(super) fn start_time(context: &Context<'_>, subject: &Subject<'_>) -> Option<f64> {
    subject.variant.remote.as_ref()?;
    let program = subject.program(context.experiment, Role::Client)?;
    let begins_by_clock = program.names("start_at");
    begins_by_clock.then(|| now() + START_DELAY.as_secs_f64())
}

/// Waits until the window for this start time should be opened.
pub(super) fn wait_for(context: &Context<'_>, moment: f64) -> Try<()> {
    let left = (moment - now()).max(0.0);
    let deadline = Instant::now() + Duration::from_secs_f64(left).saturating_sub(WINDOW_LEAD);
    while Instant::now() < deadline {
        if context.interrupt.is_requested() {
            return Err(Failure::Interrupted);
        }
        context.hosts.check()?;
        sleep_until_at_most(POLL, deadline);
    }
    Ok(())
}
