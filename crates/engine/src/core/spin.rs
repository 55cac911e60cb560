//! Busy polling between two looks at the kernel: the core receives directly from the socket on which it expects the
//! next bytes. A look at the driver would cost one system call more.
//!
//! ```text
//!   look at the driver ──> receive, receive … ──> look at the driver
//!                                  └─ bytes have arrived: their task continues, and the next turn begins at once
//! ```
//!
//! To receive, the core polls the task that waits for the bytes. If nothing has arrived the task waits again, and the
//! time counts as waiting.

use std::sync::atomic::Ordering;

use super::{Core, Inner};
use crate::limits::{DIRECT_POLLS_PER_LOOK, STALL_MIN};
use crate::task::profile::Work;

impl Core {
    /// Polls the task of the expected socket, if there is one, until bytes arrive or other work may be due.
    pub(super) fn busy_poll_once(&self) {
        let Inner { tasks, state, .. } = &*self.0;
        let Some(key) = state.borrow_mut().expected_socket() else {
            return;
        };
        let _here = tasks.enter_thread();
        for _ in 0..DIRECT_POLLS_PER_LOOK {
            let begun = self.0.clock.now();
            let before = begun.since(self.0.now.get());
            if before > STALL_MIN {
                // The thread had no CPU: the next turn measures for how long.
                break;
            }
            self.note_lateness(before);
            self.0.now.set(begun);
            let asked = {
                let state = &mut *state.borrow_mut();
                state.now = begun;
                let is_due = state.timers.next().is_some_and(|next| next <= begun);
                match is_due || self.is_requested() {
                    true => None,
                    false => state.take_direct_receiver(key),
                }
            };
            let Some(task) = asked else { break };
            let received = state.borrow().expected.received;
            let work = tasks.poll_task(task);
            // Sent before the accounts are updated, because the peer waits for it. The send counts as work of the task.
            state.borrow_mut().send_due(tasks);
            let has_come = state.borrow().expected.received != received;
            if has_come || tasks.has_ready() {
                self.0.has_work.set(true);
                tasks.profiler.end_interval_at(Work::WAIT, begun);
                tasks.profiler.end_poll(work.unwrap_or(Work::TASK), begun);
                return;
            }
        }
        tasks.profiler.end_interval(Work::WAIT);
    }

    /// Whether another thread has work for the core, or asks it to stop.
    fn is_requested(&self) -> bool {
        self.0.notifier.is_filled() || self.0.shared.stop.load(Ordering::Acquire) != 0
    }
}
