//! The claim on an address to listen on, made once for all cores.
//!
//! Each core has its own listener on the same TCP address (SO_REUSEPORT), and the kernel distributes connections
//! among them. With that option alone, a second server of the same user would bind the address without an error and
//! receive half of the connections. So the claim first binds a socket *without* SO_REUSEPORT, which fails if the
//! address is in use, and then sets the option. The socket stays bound and never listens, so the address stays taken
//! until the cores listen. An address in use is tried a few times within an eighth of a second, since io_uring
//! releases the sockets of a killed process late. The claim also settles port 0.

pub(crate) mod activation;
pub(crate) mod datagram;
pub(crate) mod interface;
pub(crate) mod reuseport;

mod made;

use std::collections::VecDeque;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::fs::MetadataExt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::{fs, io};

use rustix::fs::{AtFlags, Gid, Mode, OFlags, Uid, chownat, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;

use crate::address::Address;
use crate::claim::activation::Passed;
use crate::claim::reuseport::{Group, Place};
use crate::error::{Error, Op};
use crate::system::identity::Identity;
use made::{claim_tcp, claim_unix, listening, set_inherited_options};

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
    queues: Arc<Queues>,
    keeper: Keeper,
}

/// Who has an address when no server runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Keeper {
    /// Nobody.
    Nobody,
    /// A service manager, which has passed its socket: all cores share it, and nothing is done to it that would outlive them.
    Manager,
}

/// The TCP sockets that listen on an address.
#[derive(Debug, Default)]
struct Listeners {
    /// Of another process, and no core's yet.
    inherited: VecDeque<OwnedFd>,
    /// Those that cores have, in the order of the kernel: the core's descriptor, and one more for another process.
    open: Vec<(RawFd, OwnedFd)>,
}

/// The sockets of a claim: what [another process](Claim::inherit) listens on without a connection being lost.
#[derive(Debug)]
pub struct ClaimSockets {
    /// TCP: what holds the address. Unix sockets, and those of a manager: the listener.
    pub claim: OwnedFd,
    /// TCP: one listener for each core, in the order of the kernel.
    pub listeners: Vec<OwnedFd>,
    /// Of a manager there is one socket, and it is in `claim`.
    pub keeper: Keeper,
}

/// The queues of a claim's listeners, as each of these knows them.
#[derive(Debug, Default)]
pub(crate) struct Queues {
    /// They are another process's, which listens with the same sockets.
    are_anothers: AtomicBool,
    listeners: Mutex<Listeners>,
}

impl Queues {
    pub(crate) fn are_anothers(&self) -> bool {
        // Acquire, and release where it is set: who sees it sees what led to it.
        self.are_anothers.load(Ordering::Acquire)
    }

    /// A core closes its listener, which has this descriptor.
    pub(crate) fn close(&self, listener: &OwnedFd) {
        let closed = listener.as_raw_fd();
        self.listeners().open.retain(|(open, _)| *open != closed);
    }

    fn listeners(&self) -> MutexGuard<'_, Listeners> {
        // Nothing that runs under the lock can panic.
        self.listeners
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
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
        Ok(Self::of(address, socket, VecDeque::new()))
    }

    /// Claims `address`, which another process has claimed and whose `sockets` are these: listeners of it that are opened
    /// first are theirs. As many cores must listen as did there, or connections wait where nobody accepts them. Until it is
    /// [taken over](Claim::take_over) the other process goes on, and nothing that is closed here disturbs it.
    pub fn inherit(address: Address, sockets: ClaimSockets) -> Self {
        let mut claim = Self::of(address, sockets.claim, sockets.listeners.into());
        claim.keeper = sockets.keeper;
        claim.hand_over();
        claim
    }

    /// Claims the address of a socket that a service manager has passed. All cores share its queue, as they do that of a Unix
    /// socket. Its queue and its file remain the manager's.
    ///
    /// # Errors
    /// When the kernel refuses an option.
    pub fn of_passed(passed: Passed) -> Result<Self, Error> {
        let Passed {
            address, socket, ..
        } = passed;
        let prepared = || {
            // Whoever has had it before may have used another driver.
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
            keeper: Keeper::Manager,
        };
        Ok(Self::inherit(address, sockets))
    }

    /// Who has the address when no server runs.
    pub fn keeper(&self) -> Keeper {
        self.keeper
    }

    /// The process that it was inherited from has nothing to do with it any more.
    pub fn take_over(&self) {
        if self.keeper == Keeper::Manager {
            return;
        }
        self.queues.are_anothers.store(false, Ordering::Release);
        if let Ok(mut file) = self.file.lock() {
            *file = file_id(&self.address);
        }
    }

    fn of(address: Address, socket: OwnedFd, inherited: VecDeque<OwnedFd>) -> Self {
        Self {
            file: Mutex::new(file_id(&address)),
            address,
            socket,
            keeper: Keeper::Nobody,
            group: None,
            queues: Arc::new(Queues {
                are_anothers: AtomicBool::new(false),
                listeners: Mutex::new(Listeners {
                    inherited,
                    open: Vec::new(),
                }),
            }),
        }
    }

    /// Its sockets, as descriptors of their own.
    ///
    /// # Errors
    /// When there are no descriptors left.
    pub fn sockets(&self) -> io::Result<ClaimSockets> {
        let listeners = self.queues.listeners();
        let listeners = listeners.open.iter().map(|(_, shared)| shared.try_clone());
        Ok(ClaimSockets {
            claim: self.socket.try_clone()?,
            listeners: listeners.collect::<Result<_, _>>()?,
            keeper: self.keeper,
        })
    }

    /// Another process listens with the same sockets from now on: who waits to be accepted is its, and a Unix socket's file
    /// as well. Listeners that end or are closed leave the queues as they are.
    pub fn hand_over(&self) {
        self.queues.are_anothers.store(true, Ordering::Release);
        if let Ok(mut file) = self.file.lock() {
            *file = None;
        }
    }

    /// Opens the TCP sockets that so many cores listen with, before there are cores: they get these, also when the process
    /// is another user by then. Whoever connects waits. Of a Unix socket nothing changes.
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

    /// Makes the file of a Unix socket one of this identity, which may connect to it then. Of TCP addresses nothing changes.
    ///
    /// # Errors
    /// As in chown(2).
    pub fn give_file_to(&self, identity: &Identity) -> io::Result<()> {
        let Address::Unix(path) = &self.address else {
            return Ok(());
        };
        let ours = *self.file.lock().unwrap_or_else(PoisonError::into_inner);
        // Whoever may write to the directory may have put something else in its place.
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

    /// Whether all cores share one queue.
    fn is_shared(&self) -> bool {
        matches!(self.address, Address::Unix(_)) || self.keeper == Keeper::Manager
    }

    pub(crate) fn queues(&self) -> Arc<Queues> {
        Arc::clone(&self.queues)
    }

    /// The next TCP socket that listens on the address: an inherited one as long as there are some.
    fn next_listener(&self) -> Result<OwnedFd, Errno> {
        let mut listeners = self.queues.listeners();
        let socket = match listeners.inherited.pop_front() {
            Some(inherited) => inherited,
            None => listening(&self.address)?,
        };
        let shared = cloned(&socket)?;
        listeners.open.push((socket.as_raw_fd(), shared));
        Ok(socket)
    }

    /// Has the kernel give each connection to the core whose CPU takes its first packet, from the moment when all listen;
    /// core number `n` runs on `cpus[n]`, and each on another. Where a CPU without a core takes it, the kernel chooses by
    /// hash. So that none starves, a core that has clearly more connections than another one hands it new ones. Where
    /// cores share a queue nothing changes.
    #[must_use]
    pub fn by_cpu(mut self, cpus: &[usize]) -> Self {
        if !self.is_shared() {
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

    /// Whether the kernel is to choose among the cores by CPU.
    pub(crate) fn is_by_cpu(&self) -> bool {
        self.group.is_some()
    }

    /// The socket of core number `core`, which has `live` connections, and its place among those of other cores where the
    /// kernel chooses by CPU.
    pub(crate) fn open(
        &self,
        core: usize,
        live: Arc<AtomicUsize>,
    ) -> Result<(OwnedFd, Option<Place>), Errno> {
        match &self.group {
            _ if self.is_shared() => Ok((cloned(&self.socket)?, None)),
            None => Ok((self.next_listener()?, None)),
            Some(group) => {
                let (socket, place) = group.join(core, live, || self.next_listener())?;
                Ok((socket, Some(place)))
            }
        }
    }

    /// Whether the file of a Unix socket that is ours has gone, or another one has its name. What this process may not look at
    /// is taken to be there.
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

fn cloned(socket: &OwnedFd) -> Result<OwnedFd, Errno> {
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
