//! Accepting connections.
//!
//! Listeners are edge-triggered: without free descriptors a level-triggered listener would be reported in every turn.
//! Closing a listener resets the connections in its queue, so a core that stops accepts the whole queue first.

use std::sync::Arc;
use std::task::Poll;

use rustix::io::Errno;

use crate::claim::Queues;
use crate::driver::operations::{ListenerState, Operations};
use crate::error::{Error, Kind, Op};
use crate::socket::key::Key;
use crate::socket::note::CoarseInstant;
use crate::state::State;
use crate::system::allowance::{Allowance, AllowanceGuard, HandedConnection};
use crate::task::id::TaskId;

impl State {
    pub(crate) fn poll_accept(
        &mut self,
        listener: Key,
        queues: &Queues,
        task: TaskId,
    ) -> Poll<Result<Key, Error>> {
        let is_ending = self.stopping || self.sockets[listener].is_unwanted;
        let accepting = match is_ending {
            true if queues.belong_to_other_process() => ListenerState::Leaving,
            true => ListenerState::Ending,
            false => ListenerState::Ongoing,
        };
        let accepted = match self.driver.take_accepted(listener, &mut self.sockets) {
            // An accepted connection already has its descriptor, so it is taken even at the bound.
            Some(accepted) => accepted,
            None if self.has_no_room() => {
                match self.driver.is_waited_for(listener, &mut self.sockets) {
                    true => return Poll::Ready(Err(Error::new(Op::Accept, Kind::Full))),
                    false => Err(Errno::AGAIN),
                }
            }
            None => self.driver.accept(listener, accepting, &mut self.sockets),
        };
        match accepted {
            Ok(key) => {
                self.note_accepted(key);
                Poll::Ready(Ok(key))
            }
            // An armed accept of io_uring may still complete with a connection that it has taken from the queue.
            Err(Errno::AGAIN)
                if is_ending
                    && self.sockets[listener].interruptible
                    && !self.sockets[listener].ring.armed =>
            {
                Poll::Ready(Err(Error::new(Op::Accept, Kind::Stopping)))
            }
            Err(Errno::AGAIN) => {
                self.sockets[listener].recv_waiter = task;
                Poll::Pending
            }
            Err(errno) => Poll::Ready(Err(Error::os(Op::Accept, errno))),
        }
    }

    fn has_no_room(&self) -> bool {
        let is_used_up = |allowance: &Arc<Allowance>| allowance.is_used_up();
        self.sockets.allowance.as_ref().is_some_and(is_used_up)
    }

    fn note_accepted(&mut self, key: Key) {
        let number = self.sockets.accepted.wrapping_add(1);
        self.sockets.accepted = number;
        let socket = &mut self.sockets[key];
        socket.is_accepted = true;
        socket.number = number;
        socket.accepted_at = CoarseInstant::of(self.now);
        if let Some(allowance) = &self.sockets.allowance {
            allowance.take();
        }
        self.sockets.count_live();
    }

    /// Releases a connection that was just accepted, so that another core can [adopt](State::adopt) it.
    pub(crate) fn hand_out(&mut self, key: Key) -> HandedConnection {
        let counted = self.sockets.allowance.as_ref().map(AllowanceGuard::new);
        self.driver.forget(&self.sockets[key]);
        let connection = self.sockets[key].descriptor.take();
        self.sockets.remove(key);
        HandedConnection {
            connection: connection.expect("only listeners of the kernel hand connections over"),
            counted,
        }
    }

    /// Takes over a connection that another core has accepted and handed out.
    pub(crate) fn adopt(&mut self, handed: HandedConnection) -> Result<Key, Error> {
        let key = self.driver.adopt(handed.connection, &mut self.sockets);
        let key = key.map_err(|errno| Error::os(Op::Accept, errno))?;
        self.note_accepted(key);
        // The connection now counts as a socket of this core.
        drop(handed.counted);
        Ok(key)
    }
}
