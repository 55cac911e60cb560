//! Accepting connections: each core's own listener on a claimed address.

use std::cell::Cell;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use rustix::io::Errno;
use rustix::net::getsockname;

use crate::claim::reuseport::{Outcome, Place};
use crate::claim::{Claim, Queues};
use crate::core::Core;
use crate::driver::operations::Operations;
use crate::error::{Error, Op};
use crate::limits::IMBALANCE_DURATION;
use crate::socket::Socket;
use crate::socket::filter::drop_syns;
use crate::socket::key::Key;
use crate::state::State;
use crate::stream::Stream;

/// One core's listener.
pub struct Listener {
    core: Core,
    key: Key,
    /// Position among the listeners of other cores, if the kernel selects the listener by CPU.
    place: Option<Place>,
    /// A connection that was accepted and not yet assigned to this or another core.
    unassigned: Cell<Option<Key>>,
    queues: Arc<Queues>,
}

impl Listener {
    /// Listens on a claimed address. With TCP each core has its own socket (SO_REUSEPORT), so that the kernel
    /// distributes connections and cores do not compete for them.
    ///
    /// # Errors
    /// As in socket(2), bind(2) and listen(2).
    pub fn new(core: &Core, claim: &Claim) -> Result<Self, Error> {
        let registered = register(core, claim);
        let (key, place) = registered.map_err(|errno| Error::os(Op::Listen, errno))?;
        Ok(Self {
            core: core.clone(),
            key,
            place,
            unassigned: Cell::new(None),
            queues: claim.queues(),
        })
    }

    /// Returns the next connection. When the core is asked to stop or the listener [ends](Listener::end), it first
    /// accepts the queued connections and then fails with [`crate::Kind::Stopping`].
    ///
    /// # Errors
    /// As in accept(2); on running out of descriptors the caller should pause before it tries again.
    /// [`crate::Kind::Full`] when a connection is waiting at the [bound](Core::bound_accepted) on open ones.
    pub async fn accept(&self) -> Result<Stream, Error> {
        let Some(place) = &self.place else {
            let key = poll_fn(|_| self.poll_accept()).await?;
            return Ok(Stream::new(self.core.clone(), key));
        };
        loop {
            if let Some(key) = poll_fn(|context| self.poll_own(place, context)).await? {
                return Ok(Stream::new(self.core.clone(), key));
            }
            self.core.sleep_unless_stopping(IMBALANCE_DURATION).await;
            place.note_lasting_imbalance(self.core.now());
        }
    }

    /// Stops accepting after the connections that are queued now: [`Listener::accept`] then fails with
    /// [`crate::Kind::Stopping`], as on a core that was asked to stop.
    pub fn end(&self) {
        let inner = self.core.inner();
        let socket = &mut inner.state.borrow_mut().sockets[self.key];
        socket.is_unwanted = true;
        inner.tasks.wake_once(&mut socket.recv_waiter);
    }

    fn is_ending(&self) -> bool {
        let is_unwanted = self.core.inner().state.borrow().sockets[self.key].is_unwanted;
        is_unwanted || self.core.is_stopping()
    }

    fn poll_accept(&self) -> Poll<Result<Key, Error>> {
        let inner = self.core.inner();
        let mut state = inner.state.borrow_mut();
        state.poll_accept(self.key, &self.queues, inner.tasks.current())
    }

    /// Returns the next connection for this core, handed over by another core or accepted here and kept. `None`
    /// while the last accepted one is undecided.
    fn poll_own(
        &self,
        place: &Place,
        context: &mut Context<'_>,
    ) -> Poll<Result<Option<Key>, Error>> {
        let state = &self.core.inner().state;
        let is_ending = self.is_ending();
        if is_ending {
            place.close_handoff_queue();
        }
        loop {
            let key = match self.unassigned.take() {
                Some(key) => key,
                None => {
                    if let Poll::Ready(connection) = place.poll_handed(context.waker()) {
                        return Poll::Ready(state.borrow_mut().adopt(connection).map(Some));
                    }
                    ready!(self.poll_accept())?
                }
            };
            if is_ending {
                return Poll::Ready(Ok(Some(key)));
            }
            match place.decide(self.core.now(), || state.borrow_mut().hand_out(key)) {
                Outcome::Kept => return Poll::Ready(Ok(Some(key))),
                Outcome::HandedOver => {}
                Outcome::Undecided => {
                    self.unassigned.set(Some(key));
                    return Poll::Ready(Ok(None));
                }
            }
        }
    }

    /// Makes the kernel ignore new handshakes on this listener; returns how far away unfinished ones can be.
    ///
    /// Closing a listener resets its unfinished handshakes. To lose no connection that a client considers open, a
    /// caller first calls this, waits for a round trip and then accepts what has arrived. Clients that connect
    /// meanwhile get no reply, and their kernels retry after a second. No effect if another process has the queue.
    pub fn refuse_handshakes(&self) -> Handshakes {
        if self.queues.belong_to_other_process() {
            return Handshakes::None;
        }
        let state = &*self.core.inner().state.borrow();
        let Some(socket) = &state.sockets[self.key].descriptor else {
            return Handshakes::None;
        };
        let address = getsockname(socket).ok();
        let Some(address) = address.and_then(|address| SocketAddr::try_from(address).ok()) else {
            return Handshakes::None;
        };
        match drop_syns(socket) {
            // Without the filter new handshakes would go on indefinitely.
            Err(_) => Handshakes::None,
            Ok(()) if address.ip().to_canonical().is_loopback() => Handshakes::Local,
            Ok(()) => Handshakes::Remote,
        }
    }
}

/// How far away the peers of a listener's unfinished handshakes can be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Handshakes {
    /// No handshakes: a Unix socket.
    None,
    /// On this machine.
    Local,
    /// On any machine.
    Remote,
}

impl Drop for Listener {
    fn drop(&mut self) {
        let state = &mut *self.core.inner().state.borrow_mut();
        if let Some(undecided) = self.unassigned.take() {
            state.close(undecided);
        }
        let socket = &state.sockets[self.key];
        if let Some(descriptor) = &socket.descriptor {
            match self.place.take() {
                Some(place) if !self.queues.belong_to_other_process() => place.leave(descriptor),
                _ => {}
            }
            self.queues.close(descriptor);
        }
        state.driver.forget(socket);
        state.close(self.key);
    }
}

fn register(core: &Core, claim: &Claim) -> Result<(Key, Option<Place>), Errno> {
    let state = &mut *core.inner().state.borrow_mut();
    let key = state.sockets.insert(Socket::new(None));
    let registered = listen_on(state, claim, key, core.id());
    if registered.is_err() {
        state.sockets.remove(key);
    }
    registered.map(|place| (key, place))
}

fn listen_on(
    state: &mut State,
    claim: &Claim,
    key: Key,
    core: usize,
) -> Result<Option<Place>, Errno> {
    state.sockets[key].interruptible = true;
    state.sockets[key].readable = true;
    let mut place = None;
    let live = match claim.is_by_cpu() {
        true => state.sockets.live_counter(),
        false => Arc::default(),
    };
    let open = || {
        let (socket, joined) = claim.open(core, live)?;
        place = joined;
        Ok(socket)
    };
    state
        .driver
        .listen(key, claim.address(), open, &mut state.sockets)?;
    state.sockets.note_listener(key);
    Ok(place)
}
