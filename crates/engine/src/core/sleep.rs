//! Sleeping tasks.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use super::Core;
use crate::clock::Instant;
use crate::state::{SleepState, Timer};
use crate::timer::TimerId;

impl Core {
    /// Sleeps for at least `duration`.
    pub fn sleep(&self, duration: Duration) -> Sleep {
        self.sleep_until(self.now_exact() + duration)
    }

    /// Sleeps until `when` or later. Afterwards [`Core::now`] is not before `when`, so a loop that compares the two
    /// ends. If only the exact time has reached `when`, the task continues in the next turn.
    pub fn sleep_until(&self, when: Instant) -> Sleep {
        Sleep {
            core: self.clone(),
            when,
            timer: None,
        }
    }

    /// Sleeps for at least `duration`, or until the core is asked to stop.
    pub async fn sleep_unless_stopping(&self, duration: Duration) {
        let mut sleep = self.sleep(duration);
        let mut stopped = self.stopped();
        poll_fn(|context| {
            if Pin::new(&mut stopped).poll(context).is_ready() {
                return Poll::Ready(());
            }
            Pin::new(&mut sleep).poll(context)
        })
        .await;
    }
}

/// A sleep of a task. Dropping it cancels its timer.
pub struct Sleep {
    core: Core,
    when: Instant,
    timer: Option<(TimerId, u32)>,
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        let core = self.core.clone();
        let state = &mut *core.0.state.borrow_mut();
        let task = core.0.tasks.current();
        if let Some((_, index)) = self.timer {
            return match state.sleeps[index as usize] {
                // A timer beyond the wheel's range expires early and is set again.
                SleepState::Over if self.when > state.now => {
                    state.sleeps[index as usize] = SleepState::Waiting(task);
                    let timer = state.timers.insert(self.when, Timer::Sleep(index));
                    self.timer = Some((timer, index));
                    Poll::Pending
                }
                SleepState::Over => Poll::Ready(()),
                SleepState::Waiting(_) | SleepState::Unused => {
                    state.sleeps[index as usize] = SleepState::Waiting(task);
                    Poll::Pending
                }
            };
        }
        if self.when <= core.now() {
            return Poll::Ready(());
        }
        let index = state.sleeps_unused.pop().unwrap_or_else(|| {
            state.sleeps.push(SleepState::Unused);
            (state.sleeps.len() - 1) as u32
        });
        state.sleeps[index as usize] = SleepState::Waiting(task);
        self.timer = Some((state.timers.insert(self.when, Timer::Sleep(index)), index));
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        let Some((timer, index)) = self.timer else {
            return;
        };
        let state = &mut *self.core.0.state.borrow_mut();
        if matches!(state.sleeps[index as usize], SleepState::Waiting(_)) {
            state.timers.cancel(timer);
        }
        state.sleeps[index as usize] = SleepState::Unused;
        state.sleeps_unused.push(index);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::choice::Io;
    use crate::driver::simulation::Simulation;

    #[test]
    fn sleep_ends_at_turn_time() {
        let core = Core::new(0, Io::Epoll).expect("epoll is there");
        let sleeping = core.clone();
        core.spawn(async move {
            let when = sleeping.now_exact() + Duration::from_micros(100);
            while sleeping.now_exact() < when {}
            assert!(sleeping.now() < when, "the turn began before");
            sleeping.sleep_until(when).await;
            assert!(sleeping.now() >= when);
            sleeping.stop(Duration::ZERO);
        });
        assert_eq!(core.run(), 0);
    }

    #[test]
    fn sleep_may_exceed_timer_wheel_range() {
        let core = Core::simulated(Simulation::with_seed(1));
        let (sleeping, begun) = (core.clone(), core.now());
        let (months, for_ever) = (Duration::from_secs(100 * 24 * 3600), Duration::MAX);
        core.spawn(async move {
            sleeping.sleep(months).await;
            assert!(sleeping.now().since(begun) >= months);
            sleeping.stop(Duration::ZERO);
        });
        let sleeping = core.clone();
        core.spawn(async move { sleeping.sleep(for_ever).await });
        assert_eq!(core.run(), 1, "one sleeps for ever");
        assert!(core.now().since(begun) < 2 * months);
    }
}
