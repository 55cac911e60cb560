//! A timer whose due time changes with every request.

use std::pin::Pin;
use std::task::{Context, Poll};

use onrush_engine::{Core, Instant, Sleep};

/// A timer that is armed at the first poll, and rearmed if it fires too early.
#[derive(Default)]
pub(crate) struct Alarm(Option<(Instant, Sleep)>);

impl Alarm {
    /// Ready once `due` has passed; otherwise wakes the task then.
    pub(crate) fn poll(
        &mut self,
        due: Instant,
        core: &Core,
        context: &mut Context<'_>,
    ) -> Poll<()> {
        loop {
            match &mut self.0 {
                Some((at, sleep)) if *at <= due => {
                    if Pin::new(sleep).poll(context).is_pending() {
                        return Poll::Pending;
                    }
                    let is_due = *at == due;
                    self.0 = None;
                    if is_due {
                        return Poll::Ready(());
                    }
                }
                Some(_) | None => self.0 = Some((due, core.sleep_until(due))),
            }
        }
    }
}
