//! Listening sockets: the claim on an address, made once, and each core's own listener on it.

use std::fs;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;
use std::sync::Mutex;

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
use crate::limits::{LISTEN_BACKLOG, UNSENT_MAX};
use crate::socket::Socket;
use crate::socket::key::Key;
use crate::socket::option::set_option;
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
        })
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
        UNSENT_MAX.cast_signed(),
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
}

impl Listener {
    /// Listens on a claimed address: TCP with a socket of this core's own (SO_REUSEPORT), so that the kernel spreads
    /// connections and no core ever takes another's.
    ///
    /// # Errors
    /// As in socket(2), bind(2) and listen(2).
    pub fn new(core: &Core, claim: &Claim) -> Result<Self, Error> {
        let key = register(core, claim).map_err(|errno| Error::os(Op::Listen, errno))?;
        Ok(Self {
            core: core.clone(),
            key,
        })
    }

    /// The next connection. A core that was asked to stop takes those that wait, and then ends with
    /// [`crate::Kind::Stopping`].
    ///
    /// # Errors
    /// As in accept(2); after running out of descriptors the caller should pause before it tries again.
    /// [`crate::Kind::Full`] when somebody waits and as many connections are open as [may be](Core::bound_accepted).
    pub async fn accept(&self) -> Result<Stream, Error> {
        let inner = self.core.inner();
        let key = poll_fn(|_| {
            inner
                .state
                .borrow_mut()
                .poll_accept(self.key, inner.tasks.current())
        })
        .await?;
        Ok(Stream::new(self.core.clone(), key))
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

/// Makes the kernel drop what asks for a connection, and take what belongs to a handshake that has begun: a filter of the
/// socket (SO_ATTACH_FILTER, socket(7)), which sees segments from their TCP header on.
fn drop_syns(socket: &OwnedFd) -> Result<(), Errno> {
    const FLAGS_AT: u32 = 13;
    const SYN: u32 = 2;
    let instruction = |code: u32, k, jt, jf| libc::sock_filter {
        code: code as u16,
        jt,
        jf,
        k,
    };
    let mut program = [
        instruction(libc::BPF_LD | libc::BPF_B | libc::BPF_ABS, FLAGS_AT, 0, 0),
        instruction(libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K, SYN, 0, 1),
        instruction(libc::BPF_RET | libc::BPF_K, 0, 0, 0),
        instruction(libc::BPF_RET | libc::BPF_K, u32::MAX, 0, 0),
    ];
    let filter = libc::sock_fprog {
        len: program.len() as u16,
        filter: program.as_mut_ptr(),
    };
    // SAFETY: the kernel reads the program that `filter` describes, and both outlive the call; the descriptor is open.
    let outcome = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_ATTACH_FILTER,
            (&raw const filter).cast(),
            size_of::<libc::sock_fprog>() as libc::socklen_t,
        )
    };
    if outcome == 0 {
        return Ok(());
    }
    Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::INVAL))
}

impl Drop for Listener {
    fn drop(&mut self) {
        let state = &mut *self.core.inner().state.borrow_mut();
        state.driver.forget_listener(&state.sockets[self.key]);
        state.close(self.key);
    }
}

fn register(core: &Core, claim: &Claim) -> Result<Key, Errno> {
    let state = &mut *core.inner().state.borrow_mut();
    let key = state.sockets.insert(Socket::new(None));
    let registered = listen_on(state, claim, key);
    if registered.is_err() {
        state.sockets.remove(key);
    }
    registered.map(|()| key)
}

fn listen_on(state: &mut crate::state::State, claim: &Claim, key: Key) -> Result<(), Errno> {
    state.sockets[key].interruptible = true;
    state.sockets[key].readable = true;
    let open = || match &claim.address {
        Address::Unix(_) => claim
            .socket
            .try_clone()
            .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::MFILE)),
        Address::Tcp(_) => {
            let socket = tcp_socket(&claim.address, Sharing::Cores)?;
            listen(&socket, LISTEN_BACKLOG)?;
            Ok(socket)
        }
    };
    state
        .driver
        .listen(key, &claim.address, open, &mut state.sockets)
}
