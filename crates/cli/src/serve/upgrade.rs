//! Upgrade (SIGUSR2): starts the program on the disk, which replaces this process. It listens on the same sockets, so
//! that no connection is refused; if it fails to start, nothing has changed.
//!
//! Both processes hold descriptors of the same sockets, so no queue is closed. A claim knows the owner of its queues
//! (`Queues` in the engine's `claim.rs`). A process that is not the owner drops no handshakes, attaches no program and
//! removes no file, but it accepts the waiting connections when it leaves: the kernel may have woken it for them. The
//! new process becomes the owner when it reports that it serves. Cores share queues by number and driver (O_NONBLOCK
//! belongs to the socket), so both processes need the same number of cores and the same driver.

use std::ffi::OsString;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::Sender;
use std::time::Duration;
use std::{env, io, thread};

use anyhow::Context;
use onrush_engine::{Claim, PASSED_VARIABLES, SocketOwner};
use onrush_serve::{HandedAddress, Handover, Server};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

use super::admin::AdminAddress;
use super::handover::{self, HandoverExtras};
use super::privileges::{Inherited, Privileges};
use super::server_command::ServerCommand;

/// Environment variable that marks standard input as a handover.
const VARIABLE: &str = "ONRUSH_HANDOVER";
const VALUE: &str = "stdin";

/// How long sending the sockets may block.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long the new process may take until it serves. A long configuration takes a second.
const START_PATIENCE: Duration = Duration::from_secs(60);

/// Why the program may fail to start although the user may run it.
const CONFINED_PROGRAM_ADVICE: &str = " (Landlock confines this process to programs in /usr, /bin, /lib and the directory of its own program at its start; restart the server)";

/// How this process was started.
pub(super) struct Invocation {
    program: PathBuf,
    arguments: Vec<OsString>,
    /// Socket of the admin interface, if a service manager keeps it.
    admin: Option<HandedAddress>,
    /// Restrictions that child processes inherit.
    inherited: Inherited,
}

/// Received from the predecessor.
pub(super) struct FromPredecessor {
    pub(super) server: Handover,
    /// Address of the admin interface, if a service manager keeps it.
    pub(super) admin: Option<Claim>,
    /// Restrictions already in force.
    pub(super) inherited: Inherited,
    /// Socket on which the predecessor waits for the confirmation.
    pub(super) socket: OwnedFd,
}

impl Invocation {
    /// Records how this process was started, before anything replaces the program. A path is kept as given: it may be a
    /// link that later leads to the next version.
    pub(super) fn of_this_process() -> io::Result<Invocation> {
        let mut words = env::args_os();
        let name = words.next().map(PathBuf::from).unwrap_or_default();
        let has_directory = name.components().count() > 1;
        Ok(Invocation {
            program: match has_directory {
                true => env::current_dir()?.join(name),
                false => env::current_exe()?,
            },
            arguments: words.collect(),
            admin: None,
            inherited: Inherited::default(),
        })
    }

    /// Adds what the next process needs to know: the socket of the admin interface if a service manager keeps it, which
    /// the process cannot bind itself, and the restrictions that it inherits.
    pub(super) fn with_inherited(
        self,
        place: &AdminAddress,
        privileges: &Privileges,
    ) -> anyhow::Result<Invocation> {
        let claim = place.claim();
        let kept = claim.filter(|claim| claim.keeper() == SocketOwner::Manager);
        let handed = kept.map(|claim| {
            Ok::<_, io::Error>(HandedAddress {
                written: claim.address().to_string(),
                address: claim.address().clone(),
                sockets: claim.sockets()?,
            })
        });
        Ok(Invocation {
            admin: handed.transpose()?,
            inherited: privileges.inherited(),
            ..self
        })
    }

    pub(super) fn program(&self) -> &Path {
        &self.program
    }

    fn not_started(&self, error: io::Error) -> anyhow::Error {
        let closed = match error.kind() == io::ErrorKind::PermissionDenied {
            true => self.inherited.landlock.map(|_| CONFINED_PROGRAM_ADVICE),
            false => None,
        };
        let said = format!("cannot start {}", self.program.display());
        anyhow::Error::new(error).context(said + closed.unwrap_or_default())
    }

    pub(super) fn has_admin(&self) -> bool {
        self.admin.is_some()
    }

    /// Starts the next process, and sends the outcome to `asked`.
    pub(super) fn spawn_successor(
        &self,
        server: &Server,
        asked: Sender<ServerCommand>,
    ) -> anyhow::Result<u32> {
        let handover = server.handover().context("cannot hand over the sockets")?;
        let (ours, theirs) = socketpair(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC,
            None,
        )
        .map_err(io::Error::from)?;
        for (direction, patience) in [(Timeout::Send, PATIENCE), (Timeout::Recv, START_PATIENCE)] {
            set_socket_timeout(&ours, direction, Some(patience)).map_err(io::Error::from)?;
        }
        let mut command = Command::new(&self.program);
        for variable in PASSED_VARIABLES {
            // Passed sockets are part of the handover.
            command.env_remove(variable);
        }
        let mut child = command
            .args(&self.arguments)
            .env(VARIABLE, VALUE)
            // It names this process, and the main process is about to change.
            .env_remove("WATCHDOG_PID")
            .stdin(Stdio::from(theirs))
            .spawn()
            .map_err(|error| self.not_started(error))?;
        let process = child.id();
        let beside = HandoverExtras {
            admin: self.admin.as_ref(),
            inherited: self.inherited,
        };
        if let Err(error) = handover::send_handover(&ours, &handover, beside) {
            // It cannot serve.
            let _ = child.kill();
            let _ = child.wait();
            return Err(error.context(format!("process {process}")));
        }
        let waiting = move || {
            // Ignore the error: the receiver may be gone.
            let _ = asked.send(outcome(child, &ours));
        };
        thread::Builder::new()
            .name("upgrade".into())
            .spawn(waiting)?;
        Ok(process)
    }
}

/// Waits for the next process to confirm or to end.
fn outcome(mut child: Child, socket: &OwnedFd) -> ServerCommand {
    let process = child.id();
    let why = match handover::wait_for_confirmation(socket) {
        Ok(Some(taken)) => return ServerCommand::HandOver { process, taken },
        Ok(None) => None,
        Err(error) => {
            let _ = child.kill();
            Some(format!("{error:#}"))
        }
    };
    let ended = child.wait();
    let ended = ended.map_or_else(|error| error.to_string(), |status| status.to_string());
    ServerCommand::GoOn {
        process,
        why: why.unwrap_or(ended),
    }
}

/// Receives the handover; `None` when this process was not started by an upgrade.
pub(super) fn receive_from_predecessor() -> anyhow::Result<Option<FromPredecessor>> {
    if env::var_os(VARIABLE).is_none_or(|value| value != VALUE) {
        return Ok(None);
    }
    let socket = io::stdin().as_fd().try_clone_to_owned()?;
    let (server, beside) =
        handover::receive_handover(&socket).context("cannot replace the running server")?;
    let admin = beside
        .admin
        .map(|handed| Claim::inherit(handed.address, handed.sockets));
    Ok(Some(FromPredecessor {
        server,
        admin,
        inherited: beside.inherited,
        socket,
    }))
}
