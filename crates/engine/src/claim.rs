//! The claim on an address to listen on, made once for all cores.
//!
//! Each core has its own listener on the same TCP address (SO_REUSEPORT), and the kernel distributes connections among
//! them. With that option alone, a second server of the same user would bind the address without an error and receive
//! half of the connections. So the claim first binds a socket *without* SO_REUSEPORT, which fails if the address is in
//! use, and then sets the option. The socket stays bound and never listens, so the address stays taken until the cores
//! listen. The claim also resolves port 0.

pub(crate) mod activation;
pub(crate) mod datagram;
pub(crate) mod interface;
pub(crate) mod reuseport;

mod open_sockets;

use std::collections::VecDeque;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::fs::MetadataExt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::{fs, io};

use rustix::fs::{AtFlags, Gid, Mode, OFlags, Uid, chownat, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;

use crate::address::Address;
use crate::claim::activation::PassedSocket;
use crate::claim::reuseport::{Group, Place};
use crate::error::{Error, Op};
use crate::system::identity::Identity;
use open_sockets::{claim_tcp, claim_unix, listening, set_inherited_options};

/// An address that this process listens on. Made before any core starts, so that an address in use is one error.
///
/// Dropping it removes the file of a Unix socket, unless another process has replaced the file.
#[derive(Debug)]
pub struct Claim {
    address: Address,
    /// TCP: bound and not listening, to hold the address until the cores listen on it. Unix sockets have no
    /// SO_REUSEPORT: there it is the listener that all cores share.
    socket: OwnedFd,
    /// Identity of a Unix socket's file, while this process owns it.
    file: Mutex<Option<FileId>>,
    /// The cores' listeners, if the kernel selects one by CPU.
    group: Option<Arc<Group>>,
    queues: Arc<Queues>,
    keeper: SocketOwner,
}

/// The owner of an address while no server runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SocketOwner {
    /// No owner.
    Nobody,
    /// A service manager, which has passed its socket. All cores share it, and no lasting change is made to it.
    Manager,
}

#[derive(Debug, Default)]
struct Listeners {
    /// Sockets of another process that no core has taken yet.
    inherited: VecDeque<OwnedFd>,
    /// Sockets of the cores, in the kernel's order: the core's descriptor, and a duplicate for another process.
    open: Vec<(RawFd, OwnedFd)>,
}

/// The sockets of a claim, by which [another process](Claim::inherit) listens without losing a connection.
#[derive(Debug)]
pub struct ClaimSockets {
    /// TCP: the socket that holds the address. Unix sockets, and sockets of a manager: the listener.
    pub claim: OwnedFd,
    /// TCP: one listener for each core, in the kernel's order.
    pub listeners: Vec<OwnedFd>,
    /// With [`SocketOwner::Manager`] the only socket is `claim`.
    pub keeper: SocketOwner,
}

/// The queues of a claim, shared with its listeners.
#[derive(Debug, Default)]
pub(crate) struct Queues {
    /// Another process listens with the same sockets and owns the queues.
    belong_to_other_process: AtomicBool,
    listeners: Mutex<Listeners>,
}

impl Queues {
    pub(crate) fn belong_to_other_process(&self) -> bool {
        // Pairs with the release stores in `hand_over` and `take_over`.
        self.belong_to_other_process.load(Ordering::Acquire)
    }

    /// Removes a listener that its core closes.
    pub(crate) fn close(&self, listener: &OwnedFd) {
        let closed = listener.as_raw_fd();
        self.listeners().open.retain(|(open, _)| *open != closed);
    }

    fn listeners(&self) -> MutexGuard<'_, Listeners> {
        // No code under the lock can panic.
        self.listeners
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// Device and inode of our file, to recognize a replacement.
type FileId = (u64, u64);

impl Claim {
    /// Claims `address`. Port 0 becomes a free port; see [`Claim::address`].
    ///
    /// # Errors
    /// `EADDRINUSE` when another process already listens there, for example another Onrush, with which SO_REUSEPORT
    /// alone would share the connections unnoticed. `EACCES`, `EADDRNOTAVAIL` and so on as in bind(2).
    pub fn new(address: &Address) -> Result<Self, Error> {
        let claimed = match address {
            Address::Tcp(_) => claim_tcp(address),
            Address::Unix(path) => claim_unix(path).map(|socket| (address.clone(), socket)),
        };
        let (address, socket) = claimed.map_err(|errno| Error::os(Op::Listen, errno))?;
        Ok(Self::of(address, socket, VecDeque::new()))
    }

    /// Claims `address` with the `sockets` of another process that has claimed it. The first listeners opened use these
    /// sockets, so at least as many cores must listen as in that process, or connections wait in an unused queue. The
    /// other process keeps running, and closing a listener here does not affect it, until [`Claim::take_over`].
    pub fn inherit(address: Address, sockets: ClaimSockets) -> Self {
        let mut claim = Self::of(address, sockets.claim, sockets.listeners.into());
        claim.keeper = sockets.keeper;
        claim.release_to_other_process();
        claim
    }

    /// Claims the address of a socket that a service manager has passed. All cores share its queue, as with a Unix
    /// socket. The queue and the file still belong to the manager.
    ///
    /// # Errors
    /// When the kernel refuses an option.
    pub fn of_passed(passed: PassedSocket) -> Result<Self, Error> {
        let PassedSocket {
            address, socket, ..
        } = passed;
        let prepared = || {
            // The previous process may have used another driver.
            fcntl_setfl(&socket, fcntl_getfl(&socket)? - OFlags::NONBLOCK)?;
            match address {
                Address::Tcp(_) => set_inherited_options(&socket),
                Address::Unix(_) => Ok(()),
            }
        };
        prepared().map_err(|errno| Error::os(Op::Listen, errno))?;
        let sockets = ClaimSockets {
            claim: socket,
            listeners: Vec::new(),
            keeper: SocketOwner::Manager,
        };
        Ok(Self::inherit(address, sockets))
    }

    /// The owner of the address while no server runs.
    pub fn keeper(&self) -> SocketOwner {
        self.keeper
    }

    /// Takes ownership of inherited sockets: the process that they came from no longer uses them.
    pub fn take_over(&self) {
        if self.keeper == SocketOwner::Manager {
            return;
        }
        self.queues
            .belong_to_other_process
            .store(false, Ordering::Release);
        if let Ok(mut file) = self.file.lock() {
            *file = file_id(&self.address);
        }
    }

    fn of(address: Address, socket: OwnedFd, inherited: VecDeque<OwnedFd>) -> Self {
        Self {
            file: Mutex::new(file_id(&address)),
            address,
            socket,
            keeper: SocketOwner::Nobody,
            group: None,
            queues: Arc::new(Queues {
                belong_to_other_process: AtomicBool::new(false),
                listeners: Mutex::new(Listeners {
                    inherited,
                    open: Vec::new(),
                }),
            }),
        }
    }

    /// Duplicates the claim's sockets for another process.
    ///
    /// # Errors
    /// When no descriptors are left.
    pub fn sockets(&self) -> io::Result<ClaimSockets> {
        let listeners = self.queues.listeners();
        let listeners = listeners.open.iter().map(|(_, shared)| shared.try_clone());
        Ok(ClaimSockets {
            claim: self.socket.try_clone()?,
            listeners: listeners.collect::<Result<_, _>>()?,
            keeper: self.keeper,
        })
    }

    /// Gives the queues, and the file of a Unix socket, to another process that listens with the same sockets. From now
    /// on closing a listener leaves its queue as it is.
    pub fn release_to_other_process(&self) {
        self.queues
            .belong_to_other_process
            .store(true, Ordering::Release);
        if let Ok(mut file) = self.file.lock() {
            *file = None;
        }
    }

    /// Opens the TCP sockets of `cores` listeners before the cores exist. The cores use these, even if the process has
    /// changed its user by then, and connections wait in their queues. No effect on an address whose queue is shared.
    ///
    /// # Errors
    /// As in socket(2), bind(2) and listen(2).
    pub fn listen(&self, cores: usize) -> Result<(), Error> {
        if self.is_shared() {
            return Ok(());
        }
        let mut listeners = self.queues.listeners();
        while listeners.inherited.len() < cores {
            let socket = listening(&self.address).map_err(|errno| Error::os(Op::Listen, errno))?;
            listeners.inherited.push_back(socket);
        }
        Ok(())
    }

    /// Changes the owner of a Unix socket's file to this identity, which may then connect to it.
    ///
    /// # Errors
    /// As in chown(2).
    pub fn give_file_to(&self, identity: &Identity) -> io::Result<()> {
        let Address::Unix(path) = &self.address else {
            return Ok(());
        };
        let ours = *self.file.lock().unwrap_or_else(PoisonError::into_inner);
        // A process that may write to the directory may have replaced the file.
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::open(path, flags, Mode::empty())?;
        let found = rustix::fs::fstat(&file)?;
        if ours != Some((found.st_dev, found.st_ino)) {
            return Ok(());
        }
        let (user, group) = (Uid::from_raw(identity.user), Gid::from_raw(identity.group));
        let flags = AtFlags::EMPTY_PATH;
        Ok(chownat(&file, "", Some(user), Some(group), flags)?)
    }

    fn is_shared(&self) -> bool {
        matches!(self.address, Address::Unix(_)) || self.keeper == SocketOwner::Manager
    }

    pub(crate) fn queues(&self) -> Arc<Queues> {
        Arc::clone(&self.queues)
    }

    /// The next TCP listener of the address: an inherited one if any is left.
    fn next_listener(&self) -> Result<OwnedFd, Errno> {
        let mut listeners = self.queues.listeners();
        let socket = match listeners.inherited.pop_front() {
            Some(inherited) => inherited,
            None => listening(&self.address)?,
        };
        let shared = clone_descriptor(&socket)?;
        listeners.open.push((socket.as_raw_fd(), shared));
        Ok(socket)
    }

    /// Makes the kernel give each connection to the core on the CPU that processes its first packet, once all cores
    /// listen. Core number `n` runs on `cpus[n]`; no two cores share a CPU. For a CPU without a core the kernel selects
    /// by hash. A core that has clearly more connections than another hands it new ones. No effect on a shared queue.
    #[must_use]
    pub fn by_cpu(mut self, cpus: &[usize]) -> Self {
        if !self.is_shared() {
            self.group = Some(Group::new(cpus.to_vec()));
        }
        self
    }

    /// The error with which the kernel refused to select by CPU, known once all cores listen. It then selects by hash.
    pub fn by_cpu_refused(&self) -> Option<Errno> {
        self.group.as_ref()?.refused()
    }

    /// The address, with the actual port.
    pub fn address(&self) -> &Address {
        &self.address
    }

    pub(crate) fn is_by_cpu(&self) -> bool {
        self.group.is_some()
    }

    /// The socket of core number `core`, which has `live` connections, and its place in the group, if there is one.
    pub(crate) fn open(
        &self,
        core: usize,
        live: Arc<AtomicUsize>,
    ) -> Result<(OwnedFd, Option<Place>), Errno> {
        match &self.group {
            _ if self.is_shared() => Ok((clone_descriptor(&self.socket)?, None)),
            None => Ok((self.next_listener()?, None)),
            Some(group) => {
                let (socket, place) = group.join(core, live, || self.next_listener())?;
                Ok((socket, Some(place)))
            }
        }
    }

    /// Whether the file of our Unix socket is gone or was replaced. A file that cannot be examined counts as present.
    pub fn has_lost_file(&self) -> bool {
        let (Address::Unix(path), Ok(ours)) = (&self.address, self.file.lock()) else {
            return false;
        };
        let Some(ours) = *ours else {
            return false;
        };
        match fs::symlink_metadata(path) {
            Ok(found) => (found.dev(), found.ino()) != ours,
            Err(error) => error.kind() == io::ErrorKind::NotFound,
        }
    }

    /// Removes the file of a Unix socket: no new client can connect, but queued connections can be accepted.
    pub fn withdraw(&self) {
        let ours = self.file.lock().ok().and_then(|mut file| file.take());
        if let Address::Unix(path) = &self.address
            && ours.is_some()
            && ours == file_id(&self.address)
        {
            // A missing file is fine.
            let _ = fs::remove_file(path);
        }
    }
}

fn clone_descriptor(socket: &OwnedFd) -> Result<OwnedFd, Errno> {
    let cloned = socket.try_clone();
    cloned.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::MFILE))
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
