//! Closing a socket. Its slot lives on until the kernel has returned everything it holds.

use crate::clock::Instant;
use crate::driver::operations::{LastSend, NextData, Operations, Sender};
use crate::error::{Error, Op};
use crate::limits::DRAIN_DEFAULT;
use crate::socket::expiry::Expiry;
use crate::socket::key::Key;
use crate::state::{State, Timer};
use crate::task::id::TaskId;

impl State {
    /// Shuts down the sending side: the peer reads the end of the stream after the bytes that were sent.
    pub(crate) fn end(&mut self, key: Key) -> Result<(), Error> {
        self.driver
            .end(key, &mut self.sockets)
            .map_err(|errno| Error::os(Op::Send, errno))
    }

    /// Makes the coming close a reset: SO_LINGER with a time of zero, socket(7). Unreceived bytes are discarded.
    pub(crate) fn reset_at_close(&mut self, key: Key) {
        self.sockets[key].resets_on_close = true;
        self.driver.reset_at_close(key, &mut self.sockets);
    }

    pub(crate) fn close(&mut self, key: Key) {
        self.forget_expected(key);
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
        let waits = !is_sent && !socket.timed_out && !socket.resets_on_close;
        if !waits && socket.ring.operations == 0 {
            return match is_sent {
                true => self.release(key),
                false => self.reset_and_release(key),
            };
        }
        socket.closing = true;
        if waits {
            // The last response is still being sent: it has until its deadline, or `DRAIN_DEFAULT` if there is none.
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

    /// Performs the deferred send, on drivers where the core sends. Returns whether all bytes are sent.
    fn is_last_send_done(&mut self, key: Key) -> bool {
        match self.driver.sender() {
            Sender::Kernel => false,
            Sender::Core => {
                // The handle is gone, so an error has no receiver.
                let _ = self.flush_to_kernel(key, NextData::Nothing);
                !self.sockets[key].is_sending()
            }
        }
    }

    /// Aborts the last sends of closed sockets, because the core ends.
    pub(crate) fn abort_last_sends(&mut self) {
        let sending = self.sockets.iter_mut().enumerate();
        let sending = sending.filter(|(_, socket)| socket.closing && socket.is_sending());
        let keys: Vec<_> = sending.map(|(index, _)| Key(index as u32)).collect();
        for key in keys {
            self.close_timed_out(key);
        }
    }

    /// The last send of a closing socket did not finish in time.
    pub(crate) fn close_timed_out(&mut self, key: Key) {
        let socket = &mut self.sockets[key];
        if socket.ring.operations == 0 {
            return self.reset_and_release(key);
        }
        socket.timed_out = true;
        self.driver.cancel(key, LastSend::None, socket);
    }

    /// Resets the connection: the rest of its last send is lost, and an orderly end would look complete to the peer.
    fn reset_and_release(&mut self, key: Key) {
        self.driver.reset_at_close(key, &mut self.sockets);
        self.release(key);
    }

    pub(crate) fn release(&mut self, key: Key) {
        if let Some((timer, _)) = self.sockets[key].timer.take() {
            self.timers.cancel(timer);
        }
        self.driver.release(key, &mut self.sockets);
    }
}
