//! Listening sockets: the claim on an address, made once, and each core's own listener on it.

use std::cell::Cell;
use std::fs;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};

use rustix::io::Errno;
use rustix::net::sockopt::{
    set_ipv6_v6only, set_socket_reuseaddr, set_socket_reuseport, set_tcp_nodelay,
};
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, getsockname, listen, socket_with,
};

use crate::address::Address;
use crate::core::Core;
use crate::driver::operations::Operations;
use crate::error::{Error, Op};
use crate::limits::{LISTEN_BACKLOG, UNEVEN_FOR, UNSENT_MIN};
use crate::reuseport::{Group, Outcome, Place};
use crate::socket::Socket;
use crate::socket::filter::drop_syns;
use crate::socket::key::Key;
use crate::socket::option::set_option;
use crate::state::State;
use crate::stream::Stream;

/// An address that this process listens on. Made before any core starts, so that a taken address is one clear error.
///
/// Dropping it removes the file of a Unix socket, unless somebody else's has taken its place.
#[derive(Debug)]
pub struct Claim {
    address: Address,
    /// TCP: bound and not listening, so that nobody takes the address before the cores listen on it. Unix sockets have
    /// no SO_REUSEPORT: there it is the listener that all cores share.
    socket: OwnedFd,
    /// A Unix socket's file, while it is ours.
    file: Mutex<Option<FileId>>,
    /// The cores' listeners, where the kernel is to choose among them by CPU.
    group: Option<Arc<Group>>,
}

/// Device and inode: what tells our file from one that somebody else has put in its place.
type FileId = (u64, u64);

impl Claim {
    /// Claims `address`. Port 0 becomes a free port; see [`Claim::address`].
    ///
    /// # Errors
    /// `EADDRINUSE` when anybody listens there already, also another Onrush: without this check SO_REUSEPORT would let
    /// two instances share the connections unnoticed. `EACCES`, `EADDRNOTAVAIL` and so on as in bind(2).
    pub fn new(address: &Address) -> Result<Self, Error> {
        let claimed = match address {
            Address::Tcp(_) => claim_tcp(address),
            Address::Unix(path) => claim_unix(path).map(|socket| (address.clone(), socket)),
        };
        let (address, socket) = claimed.map_err(|errno| Error::os(Op::Listen, errno))?;
        let file = Mutex::new(file_id(&address));
        Ok(Self {
            address,
            socket,
            file,
            group: None,
        })
    }

    /// Has the kernel give each connection to the core whose CPU takes its first packet, from the moment when all listen;
    /// core number `n` runs on `cpus[n]`, and each on another. Where a CPU without a core takes it, the kernel chooses by
    /// hash. So that none starves, a core that has clearly more connections than another one hands it new ones. Of a Unix
    /// socket nothing changes.
    #[must_use]
    pub fn by_cpu(mut self, cpus: &[usize]) -> Self {
        if let Address::Tcp(_) = self.address {
            self.group = Some(Group::new(cpus.to_vec()));
        }
        self
    }

    /// Why the kernel does not choose by CPU, where it was asked to and refuses: known when all cores listen. It chooses by
    /// hash then.
    pub fn by_cpu_refused(&self) -> Option<Errno> {
        self.group.as_ref()?.refused()
    }

    /// The address with the port that was chosen.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Removes the file of a Unix socket, so that nobody finds the way to it any more; those who have found it can still
    /// be accepted. Of TCP addresses nothing changes.
    pub fn withdraw(&self) {
        let ours = self.file.lock().ok().and_then(|mut file| file.take());
        if let Address::Unix(path) = &self.address
            && ours.is_some()
            && ours == file_id(&self.address)
        {
            // Gone already is as good.
            let _ = fs::remove_file(path);
        }
    }
}

fn file_id(address: &Address) -> Option<FileId> {
    let Address::Unix(path) = address else {
        return None;
    };
    let file = fs::symlink_metadata(path).ok()?;
    Some((file.dev(), file.ino()))
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.withdraw();
    }
}

fn claim_tcp(address: &Address) -> Result<(Address, OwnedFd), Errno> {
    let socket = tcp_socket(address, Sharing::Alone)?;
    // Only now: it was alone on its address when it was bound, and from here on the cores may join it.
    set_socket_reuseport(&socket, true)?;
    let bound = SocketAddr::try_from(getsockname(&socket)?);
    let bound = bound.map_err(|_| Errno::AFNOSUPPORT)?;
    Ok((Address::Tcp(bound), socket))
}

/// Who may have an address besides.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Sharing {
    Alone,
    /// Other cores (SO_REUSEPORT).
    Cores,
}

/// A TCP socket bound to `address`.
fn tcp_socket(address: &Address, sharing: Sharing) -> Result<OwnedFd, Errno> {
    let Address::Tcp(address) = address else {
        unreachable!("the caller has matched it")
    };
    let family = if address.is_ipv4() {
        AddressFamily::INET
    } else {
        AddressFamily::INET6
    };
    let socket = socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    set_socket_reuseaddr(&socket, true)?;
    if sharing == Sharing::Cores {
        set_socket_reuseport(&socket, true)?;
    }
    if address.is_ipv6() {
        // As nginx does: "[::]:80" and "0.0.0.0:80" can both be listened on, and each means what it says.
        set_ipv6_v6only(&socket, true)?;
    }
    // Both are inherited by every accepted connection (tcp(7)). Answers are sent whole.
    set_tcp_nodelay(&socket, true)?;
    set_option(
        &socket,
        libc::IPPROTO_TCP,
        libc::TCP_NOTSENT_LOWAT,
        UNSENT_MIN.cast_signed(),
    )?;
    bind(&socket, address)?;
    Ok(socket)
}

fn claim_unix(path: &Path) -> Result<OwnedFd, Errno> {
    let address = SocketAddrUnix::new(path)?;
    let socket = socket_with(
        AddressFamily::UNIX,
        SocketType::STREAM,
        SocketFlags::CLOEXEC,
        None,
    )?;
    match bind(&socket, &address) {
        // A file without a listener is what a crash leaves behind.
        Err(Errno::ADDRINUSE) if is_abandoned(path, &address) => {
            fs::remove_file(path)
                .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::ADDRINUSE))?;
            bind(&socket, &address)?;
        }
        outcome => outcome?,
    }
    listen(&socket, LISTEN_BACKLOG)?;
    Ok(socket)
}

fn is_abandoned(path: &Path, address: &SocketAddrUnix) -> bool {
    // Connecting to a file of any other kind is refused, too, and that file is somebody's.
    let is_socket = fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket());
    if !is_socket {
        return false;
    }
    let probe = socket_with(
        AddressFamily::UNIX,
        SocketType::STREAM,
        SocketFlags::CLOEXEC,
        None,
    );
    probe.is_ok_and(|probe| rustix::net::connect(&probe, address) == Err(Errno::CONNREFUSED))
}

/// One core's listener.
pub struct Listener {
    core: Core,
    key: Key,
    /// Among those of other cores, where the kernel chooses by CPU.
    place: Option<Place>,
    /// Accepted, and to be served here or by another core.
    undecided: Cell<Option<Key>>,
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
        })
    }

    /// The next connection. A core that was asked to stop takes those that wait, and then ends with
    /// [`crate::Kind::Stopping`].
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

    fn poll_accept(&self) -> Poll<Result<Key, Error>> {
        let inner = self.core.inner();
        let mut state = inner.state.borrow_mut();
        state.poll_accept(self.key, inner.tasks.current())
    }

    /// The next connection that this core is to serve: one that another core has handed over, or one that came here and is
    /// not to be handed over. `None` when it is too early to say of the one that came last.
    fn poll_own(
        &self,
        place: &Place,
        context: &mut Context<'_>,
    ) -> Poll<Result<Option<Key>, Error>> {
        let state = &self.core.inner().state;
        let is_stopping = self.core.is_stopping();
        if is_stopping {
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
            if is_stopping {
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
    /// their kernels try again after a second.
    pub fn refuse_handshakes(&self) -> Handshakes {
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
        if let (Some(place), Some(descriptor)) = (self.place.take(), &socket.descriptor) {
            place.leave(descriptor);
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
    let live = match &claim.group {
        Some(_) => state.sockets.counted_live(),
        None => Arc::default(),
    };
    let open = || match (&claim.address, &claim.group) {
        (Address::Unix(_), _) => claim
            .socket
            .try_clone()
            .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::MFILE)),
        (Address::Tcp(_), None) => listening(&claim.address),
        (Address::Tcp(_), Some(group)) => {
            let (socket, joined) = group.join(core, live, || listening(&claim.address))?;
            place = Some(joined);
            Ok(socket)
        }
    };
    state
        .driver
        .listen(key, &claim.address, open, &mut state.sockets)?;
    Ok(place)
}

/// A TCP socket of a core's own that listens on `address`.
fn listening(address: &Address) -> Result<OwnedFd, Errno> {
    let socket = tcp_socket(address, Sharing::Cores)?;
    listen(&socket, LISTEN_BACKLOG)?;
    Ok(socket)
}
