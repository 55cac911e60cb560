//! Busy polling between two looks at the kernel: the socket that the next bytes are expected from is asked itself, again and
//! again. What comes is so received by the call that finds it; a look at the driver would say that it is there, and cost a
//! call more.
//!
//! ```text
//!   look at the driver ──> ask, ask, ask … ──> look at the driver
//!                                  └─ something has come: its task goes on, and the core has its next turn at once
//! ```
//!
//! To ask is to let the task that waits for the bytes go on, which receives. Where nothing has come it waits again, and
//! what that took counts as the wait that it is.

use std::sync::atomic::Ordering;

use super::{Core, Inner};
use crate::limits::{ASKS_PER_LOOK, STALL_MIN};
use crate::task::profile::Work;

impl Core {
    /// Asks the socket that the next bytes are expected from, if there is one, until something has come of it or something
    /// else may be due.
    pub(super) fn spin(&self) {
        let Inner { tasks, state, .. } = &*self.0;
        let Some(key) = state.borrow_mut().expect() else {
            return;
        };
        let _here = tasks.are_here();
        for _ in 0..ASKS_PER_LOOK {
            let begun = self.0.clock.now();
            let before = begun.since(self.0.now.get());
            if before > STALL_MIN {
                // The thread had no CPU: the turn to come sees for how long.
                break;
            }
            self.note_lateness(before);
            self.0.now.set(begun);
            let asked = {
                let state = &mut *state.borrow_mut();
                state.now = begun;
                let is_due = state.timers.next().is_some_and(|next| next <= begun);
                match is_due || self.is_wanted() {
                    true => None,
                    false => state.ask(key),
                }
            };
            let Some(task) = asked else { break };
            let received = state.borrow().expected.received;
            let work = tasks.step(task);
            // Before anything is noted: the peer waits for it. It counts as work of the task.
            state.borrow_mut().send_due(tasks);
            let has_come = state.borrow().expected.received != received;
            if has_come || tasks.has_ready() {
                self.0.has_work.set(true);
                tasks.profiler.did_until(Work::WAIT, begun);
                tasks.profiler.ran(work.unwrap_or(Work::TASK), begun);
                return;
            }
        }
        tasks.profiler.did(Work::WAIT);
    }

    /// Whether another thread wants something of the core.
    fn is_wanted(&self) -> bool {
        self.0.notifier.is_filled() || self.0.shared.stop.load(Ordering::Acquire) != 0
    }
}
