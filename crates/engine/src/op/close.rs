//! Giving a socket up. What the kernel still holds decides how long its slot lives on.

use crate::clock::Instant;
use crate::driver::operations::{Follows, LastSend, Operations, Sender};
use crate::error::{Error, Op};
use crate::limits::DRAIN_DEFAULT;
use crate::socket::expiry::Expiry;
use crate::socket::key::Key;
use crate::state::{State, Timer};
use crate::task::id::TaskId;

impl State {
    /// Ends our side: the peer sees the end of the stream after what was sent.
    pub(crate) fn end(&mut self, key: Key) -> Result<(), Error> {
        self.driver
            .end(key, &mut self.sockets)
            .map_err(|errno| Error::os(Op::Send, errno))
    }

    /// Makes the close to come a reset: socket(7), SO_LINGER with a time of zero. It takes back what the peer has not got
    /// yet, so nothing that is on its way is waited for.
    pub(crate) fn reset_at_close(&mut self, key: Key) {
        self.sockets[key].resets = true;
        self.driver.reset_at_close(key, &mut self.sockets);
    }

    /// The handle was dropped.
    pub(crate) fn close(&mut self, key: Key) {
        self.expect_no_more(key);
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
        if !waits && socket.ring.operations == 0 {
            return match is_sent {
                true => self.release(key),
                false => self.cut_off(key),
            };
        }
        socket.closing = true;
        if waits {
            // The last response is on its way: it may take as long as its deadline says, but not for ever.
            let latest = *now + DRAIN_DEFAULT;
            let deadline: Instant = *socket.deadline.get_or_insert(latest);
            let timer = timers.insert(deadline, Timer::Socket(key));
            socket.timer = Some((timer, Expiry::of(deadline, *now)));
        }
        let last = match waits {
            true => LastSend::Finishes,
            false => LastSend::None,
        };
        socket.timed_out |= !waits;
        driver.cancel(key, last, socket);
    }

    /// Sends what was to leave at the end of the turn, where the core itself does so; whether all has been sent.
    fn is_last_send_done(&mut self, key: Key) -> bool {
        match self.driver.sender() {
            Sender::Kernel => false,
            Sender::Core => {
                // How it failed is of no interest to anybody now.
                let _ = self.flush_through(key, Follows::Nothing);
                !self.sockets[key].is_sending()
            }
        }
    }

    /// The core ends: nobody carries out the last sends that are still under way.
    pub(crate) fn cut_off_last_sends(&mut self) {
        let sending = self.sockets.iter_mut().enumerate();
        let sending = sending.filter(|(_, socket)| socket.closing && socket.is_sending());
        let keys: Vec<_> = sending.map(|(index, _)| Key(index as u32)).collect();
        for key in keys {
            self.close_timed_out(key);
        }
    }

    /// A closing socket's last send did not get through in time.
    pub(crate) fn close_timed_out(&mut self, key: Key) {
        let socket = &mut self.sockets[key];
        if socket.ring.operations == 0 {
            return self.cut_off(key);
        }
        socket.timed_out = true;
        self.driver.cancel(key, LastSend::None, socket);
    }

    /// What is left of a socket's last send is lost: an orderly end would say that there was no more.
    fn cut_off(&mut self, key: Key) {
        self.driver.reset_at_close(key, &mut self.sockets);
        self.release(key);
    }

    /// Nobody needs the socket any more.
    pub(crate) fn release(&mut self, key: Key) {
        if let Some((timer, _)) = self.sockets[key].timer.take() {
            self.timers.cancel(timer);
        }
        self.driver.release(key, &mut self.sockets);
    }
}
