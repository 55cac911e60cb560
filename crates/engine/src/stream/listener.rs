//! Accepting connections: each core's own listener on an address that is claimed.

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
use crate::limits::UNEVEN_FOR;
use crate::socket::Socket;
use crate::socket::filter::drop_syns;
use crate::socket::key::Key;
use crate::state::State;
use crate::stream::Stream;

/// One core's listener.
pub struct Listener {
    core: Core,
    key: Key,
    /// Among those of other cores, where the kernel chooses by CPU.
    place: Option<Place>,
    /// Accepted, and to be served here or by another core.
    undecided: Cell<Option<Key>>,
    queues: Arc<Queues>,
}

impl Listener {
    /// Listens on a claimed address: TCP with a socket of this core's own (SO_REUSEPORT), so that the kernel spreads
    /// connections and no core ever takes another's.
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
            undecided: Cell::new(None),
            queues: claim.queues(),
        })
    }

    /// The next connection. A core that was asked to stop takes those that wait, and then ends with
    /// [`crate::Kind::Stopping`]; so does one whose listener [ends](Listener::end).
    ///
    /// # Errors
    /// As in accept(2); after running out of descriptors the caller should pause before it tries again.
    /// [`crate::Kind::Full`] when somebody waits and as many connections are open as [may be](Core::bound_accepted).
    pub async fn accept(&self) -> Result<Stream, Error> {
        let Some(place) = &self.place else {
            let key = poll_fn(|_| self.poll_accept()).await?;
            return Ok(Stream::new(self.core.clone(), key));
        };
        loop {
            if let Some(key) = poll_fn(|context| self.poll_own(place, context)).await? {
                return Ok(Stream::new(self.core.clone(), key));
            }
            self.core.sleep_unless_stopping(UNEVEN_FOR).await;
            place.settle(self.core.now());
        }
    }

    /// Accepts those who wait, and then nobody: [`Listener::accept`] ends with [`crate::Kind::Stopping`] from then on, as on
    /// a core that was asked to stop.
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

    /// The next connection that this core is to serve: one that another core has handed over, or one that came here and is
    /// not to be handed over. `None` when it is too early to say of the one that came last.
    fn poll_own(
        &self,
        place: &Place,
        context: &mut Context<'_>,
    ) -> Poll<Result<Option<Key>, Error>> {
        let state = &self.core.inner().state;
        let is_ending = self.is_ending();
        if is_ending {
            place.close_desk();
        }
        loop {
            let key = match self.undecided.take() {
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
                    self.undecided.set(Some(key));
                    return Poll::Ready(Ok(None));
                }
            }
        }
    }

    /// Lets the kernel begin no more handshakes here, and returns how far away those are who have begun one.
    ///
    /// Closing a listener resets what is under way. Whoever first does this, waits for a round trip and then accepts what
    /// has come leaves no client with a connection that it believes to have. Those who begin meanwhile hear nothing, and
    /// their kernels try again after a second. Where another process has the queue nothing is closed, and nothing refused.
    pub fn refuse_handshakes(&self) -> Handshakes {
        if self.queues.are_anothers() {
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
            // Others would begin for ever.
            Err(_) => Handshakes::None,
            Ok(()) if address.ip().to_canonical().is_loopback() => Handshakes::Near,
            Ok(()) => Handshakes::Far,
        }
    }
}

/// Where the other ends are of handshakes that a listener may have under way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Handshakes {
    /// There are none: Unix sockets know none.
    None,
    /// On this machine.
    Near,
    /// Anywhere.
    Far,
}

impl Drop for Listener {
    fn drop(&mut self) {
        let state = &mut *self.core.inner().state.borrow_mut();
        if let Some(undecided) = self.undecided.take() {
            state.close(undecided);
        }
        let socket = &state.sockets[self.key];
        if let Some(descriptor) = &socket.descriptor {
            match self.place.take() {
                Some(place) if !self.queues.are_anothers() => place.leave(descriptor),
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
        true => state.sockets.counted_live(),
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
