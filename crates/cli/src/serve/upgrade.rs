//! SIGUSR2: the program is started again, as it is on the disk by now, and takes the place of this one. It listens with the
//! same sockets, so that nobody is refused meanwhile; when it does not come to serve, nothing has changed.
//!
//! Both processes hold descriptors of the same sockets, so no queue is closed. A claim knows the owner of its queues
//! (`Queues` in the engine's `claim.rs`). A process that is not the owner drops no handshakes, attaches no program
//! and removes no file, but it accepts the waiting connections when it leaves: the kernel may have woken it for them.
//! The new process becomes the owner when it reports that it serves. Cores share queues by number and driver
//! (O_NONBLOCK belongs to the socket), so both processes need the same number of cores and the same driver.

use std::ffi::OsString;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::Sender;
use std::time::Duration;
use std::{env, io, thread};

use anyhow::Context;
use onrush_engine::{Claim, Keeper, PASSED_VARIABLES};
use onrush_serve::{Handed, Handover, Server};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

use super::admin::Place;
use super::asked::Asked;
use super::handover::{self, Beside};
use super::privileges::{Inherited, Privileges};

/// Tells a process that its standard input is a handover.
const VARIABLE: &str = "ONRUSH_HANDOVER";
const VALUE: &str = "stdin";

/// How long the next process may take nothing of the sockets.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long it may take to serve. A long configuration takes a second.
const START_PATIENCE: Duration = Duration::from_secs(60);

/// Why the next program may not be started although its user may.
const CLOSED: &str = " (Landlock confines this process to programs in /usr, /bin, /lib and the directory where its own was at its start; stop the server and start it)";

/// How this process was started.
pub(super) struct Start {
    program: PathBuf,
    arguments: Vec<OsString>,
    /// Of the admin interface, where a service manager keeps it.
    admin: Option<Handed>,
    /// What is given up, also by what is started.
    inherited: Inherited,
}

/// What a server in force gives to this process.
pub(super) struct FromPredecessor {
    pub(super) server: Handover,
    /// The address of its admin interface, where a service manager keeps it.
    pub(super) admin: Option<Claim>,
    /// What is given up already.
    pub(super) inherited: Inherited,
    /// Where it waits for an answer.
    pub(super) socket: OwnedFd,
}

impl Start {
    /// As it was, before anything has replaced the program. A name with a directory is kept: it may be a link that leads to
    /// the next version by then.
    ///
    /// # Errors
    /// When the system does not say which program this is.
    pub(super) fn of_this_process() -> io::Result<Start> {
        let mut words = env::args_os();
        let name = words.next().map(PathBuf::from).unwrap_or_default();
        let has_directory = name.components().count() > 1;
        Ok(Start {
            program: match has_directory {
                true => env::current_dir()?.join(name),
                false => env::current_exe()?,
            },
            arguments: words.collect(),
            admin: None,
            inherited: Inherited::default(),
        })
    }

    /// With what the next process has to know of this one: the socket of the admin interface, where a service manager keeps
    /// it, which it cannot bind, and what it gives up without its doing.
    ///
    /// # Errors
    /// When there are no descriptors left.
    pub(super) fn beside(self, place: &Place, privileges: &Privileges) -> anyhow::Result<Start> {
        let claim = place.claim();
        let kept = claim.filter(|claim| claim.keeper() == Keeper::Manager);
        let handed = kept.map(|claim| {
            Ok::<_, io::Error>(Handed {
                written: claim.address().to_string(),
                address: claim.address().clone(),
                sockets: claim.sockets()?,
            })
        });
        Ok(Start {
            admin: handed.transpose()?,
            inherited: privileges.inherited(),
            ..self
        })
    }

    /// The program that an upgrade starts.
    pub(super) fn program(&self) -> &Path {
        &self.program
    }

    fn not_started(&self, error: io::Error) -> anyhow::Error {
        let closed = match error.kind() == io::ErrorKind::PermissionDenied {
            true => self.inherited.landlock.map(|_| CLOSED),
            false => None,
        };
        let said = format!("cannot start {}", self.program.display());
        anyhow::Error::new(error).context(said + closed.unwrap_or_default())
    }

    /// Whether there is such a socket.
    pub(super) fn has_admin(&self) -> bool {
        self.admin.is_some()
    }

    /// Starts the next process, and has `asked` hear what comes of it.
    ///
    /// # Errors
    /// When it cannot be started, or does not take the sockets.
    pub(super) fn again(&self, server: &Server, asked: Sender<Asked>) -> anyhow::Result<u32> {
        let handover = server.handover().context("cannot give the sockets away")?;
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
            // Sockets that were passed are in the handover.
            command.env_remove(variable);
        }
        let mut child = command
            .args(&self.arguments)
            .env(VARIABLE, VALUE)
            // It says which process is meant, and that one is about to be another.
            .env_remove("WATCHDOG_PID")
            .stdin(Stdio::from(theirs))
            .spawn()
            .map_err(|error| self.not_started(error))?;
        let process = child.id();
        let beside = Beside {
            admin: self.admin.as_ref(),
            inherited: self.inherited,
        };
        if let Err(error) = handover::give(&ours, &handover, beside) {
            // It is of no use.
            let _ = child.kill();
            let _ = child.wait();
            return Err(error.context(format!("process {process}")));
        }
        let waiting = move || {
            // Whoever is not there to hear it ends.
            let _ = asked.send(outcome(child, &ours));
        };
        thread::Builder::new()
            .name("upgrade".into())
            .spawn(waiting)?;
        Ok(process)
    }
}

/// What becomes of the next process.
fn outcome(mut child: Child, socket: &OwnedFd) -> Asked {
    let process = child.id();
    let why = match handover::wait_for_confirmation(socket) {
        Ok(Some(taken)) => return Asked::HandOver { process, taken },
        Ok(None) => None,
        Err(error) => {
            let _ = child.kill();
            Some(format!("{error:#}"))
        }
    };
    let ended = child.wait();
    let ended = ended.map_or_else(|error| error.to_string(), |status| status.to_string());
    Asked::GoOn {
        process,
        why: why.unwrap_or(ended),
    }
}

/// What a server in force gives to this process; `None` when it was started by somebody else.
///
/// # Errors
/// When it is no handover.
pub(super) fn handed() -> anyhow::Result<Option<FromPredecessor>> {
    if env::var_os(VARIABLE).is_none_or(|value| value != VALUE) {
        return Ok(None);
    }
    let socket = io::stdin().as_fd().try_clone_to_owned()?;
    let (server, beside) =
        handover::take(&socket).context("cannot take the place of the server in force")?;
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
