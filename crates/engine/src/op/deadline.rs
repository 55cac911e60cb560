//! Deadlines of sockets. Setting one is a store; the timer wheel changes only when a wait would outlast the timer.
//!
//! A timer is set when a task actually waits and the socket has no earlier timer; if it expires and the deadline has
//! moved, it is set again. So a busy connection uses the wheel about once per timeout, not once per request. A send has
//! a patience instead: each byte taken moves the deadline, so only a stalled peer is closed, not a slow one.

use std::time::Duration;

use crate::clock::Instant;
use crate::error::{Error, Kind, Op};
use crate::socket::expiry::Expiry;
use crate::socket::key::Key;
use crate::state::{State, Timer};
use crate::task::Tasks;

impl State {
    pub(crate) fn set_deadline(&mut self, key: Key, deadline: Option<Instant>) {
        let socket = &mut self.sockets[key];
        socket.deadline = deadline;
        socket.patience = 0;
        socket.timed_out = false;
    }

    pub(crate) fn set_send_patience(&mut self, key: Key, patience: Duration) {
        self.set_deadline(key, Some(self.now + patience));
        self.sockets[key].patience = u32::try_from(patience.as_millis()).unwrap_or(u32::MAX);
    }

    /// Makes sure that a wait on this socket ends by its deadline.
    ///
    /// # Errors
    /// [`Kind::TimedOut`] when the deadline has already passed.
    pub(crate) fn wait_until_deadline(&mut self, key: Key, op: Op) -> Result<(), Error> {
        let State {
            sockets,
            timers,
            now,
            ..
        } = self;
        let socket = &mut sockets[key];
        if socket.timed_out {
            return Err(Error::new(op, Kind::TimedOut));
        }
        let Some(deadline) = socket.deadline else {
            return Ok(());
        };
        if let Some((timer, expires)) = socket.timer {
            // An earlier timer finds that the deadline has moved and is set again, instead of one timer per request.
            if expires.is_certainly_before(deadline, *now) {
                return Ok(());
            }
            timers.cancel(timer);
        }
        let timer = timers.insert(deadline, Timer::Socket(key));
        socket.timer = Some((timer, Expiry::of(deadline, *now)));
        Ok(())
    }

    /// The socket's timer has expired. The deadline may have moved to a later time.
    pub(crate) fn socket_timer_expired(&mut self, key: Key, tasks: &Tasks) {
        let State {
            sockets,
            timers,
            now,
            ..
        } = self;
        let socket = &mut sockets[key];
        socket.timer = None;
        let Some(deadline) = socket.deadline else {
            return;
        };
        if deadline > *now {
            let timer = timers.insert(deadline, Timer::Socket(key));
            socket.timer = Some((timer, Expiry::of(deadline, *now)));
            return;
        }
        if socket.closing {
            self.close_timed_out(key);
            return;
        }
        socket.timed_out = true;
        tasks.wake_once(&mut socket.recv_waiter);
        tasks.wake_once(&mut socket.send_waiter);
    }
}
