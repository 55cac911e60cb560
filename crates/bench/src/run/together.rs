//! Synchronized start of clients on several machines.

use std::time::{Duration, Instant};

use super::child::nap;
use super::failure::{Failure, Try};
use super::remote::now;
use super::subject::{Context, Subject};
use crate::limits::POLL;
use crate::scenario::Role;

/// Delay of the start, in which programs start on all machines and open their connections.
const AHEAD: Duration = Duration::from_secs(3);
/// Time before the start at which the window is opened, because agents are called one after the other.
const EARLY: Duration = Duration::from_millis(50);

/// Start time of a client with `{start_at}` in its command line, in seconds since 1970; `None` if the client starts
/// immediately.
pub(super) fn moment(context: &Context<'_>, subject: &Subject<'_>) -> Option<f64> {
    subject.variant.remote.as_ref()?;
    let program = subject.program(context.experiment, Role::Client)?;
    let begins_by_clock = program.names("start_at");
    begins_by_clock.then(|| now() + AHEAD.as_secs_f64())
}

/// Waits until the window for this start time should be opened.
pub(super) fn wait_for(context: &Context<'_>, moment: f64) -> Try<()> {
    let left = (moment - now()).max(0.0);
    let deadline = Instant::now() + Duration::from_secs_f64(left).saturating_sub(EARLY);
    while Instant::now() < deadline {
        if context.interrupt.is_asked() {
            return Err(Failure::Interrupted);
        }
        context.hosts.check()?;
        nap(POLL, deadline);
    }
    Ok(())
}
