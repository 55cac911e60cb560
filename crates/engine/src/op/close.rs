//! Giving a socket up. What the kernel still holds decides how long its slot lives on.

use std::time::Duration;

use rustix::net::sockopt::set_socket_linger;
use rustix::net::{Shutdown, shutdown};

use crate::clock::Instant;
use crate::driver::Driver;
use crate::error::{Error, Op};
use crate::limits::DRAIN_DEFAULT;
use crate::op::send::Follows;
use crate::socket::key::Key;
use crate::state::{State, Timer};
use crate::task::id::TaskId;

impl State {
    /// Ends our side: the peer sees the end of the stream after what was sent.
    pub(crate) fn end(&mut self, key: Key) -> Result<(), Error> {
        match &mut self.driver {
            Driver::Epoll(_) | Driver::Uring(_) => {
                let descriptor = self.sockets[key].descriptor();
                shutdown(descriptor, Shutdown::Write).map_err(|errno| Error::os(Op::Send, errno))
            }
            Driver::Simulated(driver) => {
                driver.end(key, &mut self.sockets);
                Ok(())
            }
        }
    }

    /// Makes the close to come a reset: socket(7), SO_LINGER with a time of zero. It takes back what the peer has not got
    /// yet, so nothing that is on its way is waited for.
    pub(crate) fn reset_at_close(&mut self, key: Key) {
        self.sockets[key].resets = true;
        match &mut self.driver {
            Driver::Epoll(_) | Driver::Uring(_) => {
                // It cannot fail for a socket; and if it did, the close would be an ordinary one.
                let _ = set_socket_linger(self.sockets[key].descriptor(), Some(Duration::ZERO));
            }
            Driver::Simulated(driver) => driver.reset_at_close(key, &mut self.sockets),
        }
    }

    /// The handle was dropped.
    pub(crate) fn close(&mut self, key: Key) {
        let is_sent = !self.sockets[key].is_sending() || self.is_last_send_done(key);
        let State {
            driver,
            sockets,
            timers,
            now,
            ..
        } = self;
        let socket = &mut sockets[key];
        socket.recv_waiter = TaskId::NONE;
        socket.send_waiter = TaskId::NONE;
        socket.hangup_waiter = TaskId::NONE;
        let timer = socket.timer.take();
        if let Some((timer, _)) = timer {
            timers.cancel(timer);
        }
        let waits = !is_sent && !socket.timed_out && !socket.resets;
        let is_released = match driver {
            Driver::Epoll(_) | Driver::Simulated(_) => !waits,
            Driver::Uring(_) => socket.ring.operations == 0,
        };
        if is_released {
            return self.release(key);
        }
        socket.closing = true;
        if waits {
            // The last answer is on its way: it may take as long as its deadline says, but not for ever.
            let latest = *now + DRAIN_DEFAULT;
            let deadline: Instant = *socket.deadline.get_or_insert(latest);
            socket.timer = Some((timers.insert(deadline, Timer::Socket(key)), deadline));
        }
        if let Driver::Uring(driver) = driver {
            if waits {
                driver.cancel_waits(key, socket);
            } else {
                socket.timed_out = true;
                driver.cancel_all(key, socket);
            }
        }
    }

    /// Sends what was to leave at the end of the turn, where the core itself does so; whether all has been sent.
    fn is_last_send_done(&mut self, key: Key) -> bool {
        match self.driver {
            Driver::Uring(_) => false,
            Driver::Epoll(_) | Driver::Simulated(_) => {
                // How it failed is of no interest to anybody now.
                let _ = self.flush_through(key, Follows::Nothing);
                !self.sockets[key].is_sending()
            }
        }
    }

    /// A closing socket's last send did not get through in time.
    pub(crate) fn close_timed_out(&mut self, key: Key) {
        let State {
            driver: Driver::Uring(driver),
            sockets,
            ..
        } = self
        else {
            return self.release(key);
        };
        let socket = &mut sockets[key];
        socket.timed_out = true;
        driver.cancel_all(key, socket);
    }

    /// Nobody needs the socket any more.
    pub(crate) fn release(&mut self, key: Key) {
        if let Some((timer, _)) = self.sockets[key].timer.take() {
            self.timers.cancel(timer);
        }
        match &mut self.driver {
            Driver::Epoll(_) | Driver::Uring(_) => self.sockets.remove(key),
            Driver::Simulated(driver) => driver.close(key, &mut self.sockets),
        }
    }
}
