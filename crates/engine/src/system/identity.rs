//! The identity of a process (user, groups and capabilities), and changing to another user for good.
//!
//! The kernel keeps an identity for each thread (credentials(7)). So a process changes it while it has one thread, and
//! all threads that it starts inherit the new one.

use std::fmt;
use std::fs;
use std::io;
use std::thread;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{
    DumpableBehavior, Gid, Uid, getegid, geteuid, getgid, getgroups, getuid, set_dumpable_behavior,
};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, clear_ambient_capability_set,
    configure_capability_in_ambient_set, no_new_privs, remove_capability_from_bounding_set,
    set_capabilities, set_keep_capabilities, set_no_new_privs, set_thread_gid, set_thread_groups,
    set_thread_res_gid, set_thread_res_uid, set_thread_uid,
};

use crate::clock::now;
use crate::limits::THREAD_END;

/// Interval of counting threads while one ends.
const THREAD_LOOK: Duration = Duration::from_millis(1);

/// A user with a primary group and supplementary groups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// User ID.
    pub user: u32,
    /// Group ID of the primary group.
    pub group: u32,
    /// Group IDs of the supplementary groups, which may include the primary one.
    pub groups: Vec<u32>,
}

/// Rights of a process after it has changed its user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rights {
    /// Whether it, and a program that it executes, may bind TCP ports below 1024 (CAP_NET_BIND_SERVICE).
    pub binds_low_ports: bool,
}

/// Why a process did not change its user. It may have lost some rights, and should exit.
#[derive(Debug)]
pub enum IdentityError {
    /// The process runs as this user, without CAP_SETUID and CAP_SETGID.
    NotPermitted(u32),
    /// The process has this number of threads; all except the calling one would keep their rights.
    Threads(usize),
    /// The kernel refused a step.
    Refused(&'static str, Errno),
    /// All steps succeeded, but the process can still do this.
    StillPermitted(&'static str),
}

impl fmt::Display for IdentityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            IdentityError::NotPermitted(user) => write!(
                f,
                "this process is user {user}, and only root (CAP_SETUID and CAP_SETGID) can become another user; start it as root, or as that user"
            ),
            IdentityError::Threads(count) => write!(
                f,
                "the process has {count} threads already, which would keep their privileges: it must change its user before it starts threads"
            ),
            IdentityError::Refused(what, errno) => {
                write!(f, "the kernel refuses {what}: {}", io::Error::from(*errno))
            }
            IdentityError::StillPermitted(what) => {
                write!(f, "{what} although the privilege was dropped")
            }
        }
    }
}

impl std::error::Error for IdentityError {}

impl Identity {
    /// Whether this process has this user and group as real and effective IDs.
    pub fn is_of_this_process(&self) -> bool {
        let users = [getuid(), geteuid()];
        let groups = [getgid(), getegid()];
        users.iter().all(|user| user.as_raw() == self.user)
            && groups.iter().all(|group| group.as_raw() == self.group)
    }

    /// Makes this the identity of the process for good: real, effective and saved IDs, supplementary groups, and no
    /// capability except CAP_NET_BIND_SERVICE if the process has it (in the ambient set, so that it survives an exec).
    /// Started programs cannot gain rights (PR_SET_NO_NEW_PRIVS), and other processes of the user cannot read the
    /// memory of this one (PR_SET_DUMPABLE). A process that already has this identity loses the same capabilities.
    ///
    /// # Errors
    /// See [`IdentityError`]; also when a check after the last step fails.
    pub fn assume(&self) -> Result<Rights, IdentityError> {
        let threads = threads();
        if threads > 1 {
            return Err(IdentityError::Threads(threads));
        }
        let before = capabilities(None).map_err(refused("to report the capabilities (capget)"))?;
        let left = before.permitted & CapabilitySet::NET_BIND_SERVICE;
        let is_other = !self.is_of_this_process();
        let needed = CapabilitySet::SETUID | CapabilitySet::SETGID;
        if is_other && !before.effective.contains(needed) {
            return Err(IdentityError::NotPermitted(geteuid().as_raw()));
        }
        if before.effective.contains(CapabilitySet::SETPCAP) {
            bound(left)?;
        }
        if is_other {
            set_keep_capabilities(!left.is_empty())
                .map_err(refused("to keep a capability (PR_SET_KEEPCAPS)"))?;
            self.apply_to_thread()?;
        }
        drop_capabilities_except(left)?;
        set_no_new_privs(true).map_err(refused("PR_SET_NO_NEW_PRIVS"))?;
        set_dumpable_behavior(DumpableBehavior::NotDumpable).map_err(refused("PR_SET_DUMPABLE"))?;
        self.verify(left)?;
        Ok(Rights {
            binds_low_ports: !left.is_empty(),
        })
    }

    /// Runs `look` with the rights of this identity, on a thread of its own; the rest of the process is unchanged.
    ///
    /// # Errors
    /// When this process may not change a thread's identity, or the thread cannot be started.
    pub fn run_as<T: Send>(&self, look: impl FnOnce() -> T + Send) -> Result<T, IdentityError> {
        let looking = || {
            if !self.is_of_this_process() {
                self.apply_to_thread()?;
                drop_capabilities_except(CapabilitySet::empty())?;
            }
            Ok(look())
        };
        thread::scope(|scope| {
            let thread = thread::Builder::new().spawn_scoped(scope, looking);
            let thread = thread.map_err(|error| {
                let errno = Errno::from_io_error(&error).unwrap_or(Errno::AGAIN);
                IdentityError::Refused("a thread", errno)
            })?;
            match thread.join() {
                Ok(found) => found,
                Err(panic) => std::panic::resume_unwind(panic),
            }
        })
    }

    /// Changes this thread. Groups come first, because only root can change them.
    fn apply_to_thread(&self) -> Result<(), IdentityError> {
        let groups: Vec<Gid> = self
            .groups
            .iter()
            .map(|&group| Gid::from_raw(group))
            .collect();
        let (user, group) = (Uid::from_raw(self.user), Gid::from_raw(self.group));
        set_thread_groups(&groups)
            .map_err(refused("to set the supplementary groups (setgroups)"))?;
        set_thread_res_gid(group, group, group).map_err(refused("to set the group (setresgid)"))?;
        set_thread_res_uid(user, user, user).map_err(refused("to set the user (setresuid)"))
    }

    /// Tries actions that must now fail.
    fn verify(&self, left: CapabilitySet) -> Result<(), IdentityError> {
        let is_root_again = set_thread_uid(Uid::ROOT).is_ok()
            || set_thread_res_uid(Uid::ROOT, Uid::ROOT, Uid::ROOT).is_ok();
        if is_root_again {
            return Err(IdentityError::StillPermitted(
                "the process can become root again",
            ));
        }
        if self.group != 0 && set_thread_gid(Gid::ROOT).is_ok() {
            return Err(IdentityError::StillPermitted(
                "the process can become group 0 again",
            ));
        }
        if !self.is_of_this_process() {
            return Err(IdentityError::StillPermitted("the process is another user"));
        }
        let has_others = getgroups().is_ok_and(|groups| {
            let mut others = groups.iter().map(|group| group.as_raw());
            others.any(|group| group == 0 && self.group != 0 && !self.groups.contains(&0))
        });
        if has_others {
            return Err(IdentityError::StillPermitted(
                "the process is still in group 0",
            ));
        }
        let now = capabilities(None).map_err(refused("to report the capabilities (capget)"))?;
        if now.permitted != left || now.effective != left {
            return Err(IdentityError::StillPermitted(
                "the process still has capabilities",
            ));
        }
        match no_new_privs() {
            Ok(true) => Ok(()),
            _ => Err(IdentityError::StillPermitted(
                "execve could still gain privileges",
            )),
        }
    }
}

fn refused(what: &'static str) -> impl Fn(Errno) -> IdentityError {
    move |errno| IdentityError::Refused(what, errno)
}

/// Number of threads of this process; 1 if unknown. A joined thread is counted for a moment longer, because the kernel
/// wakes the joining thread before the other one is gone; so this waits for it.
fn threads() -> usize {
    let until = now() + THREAD_END;
    loop {
        let count = count_threads();
        if count == 1 || now() >= until {
            return count;
        }
        thread::sleep(THREAD_LOOK);
    }
}

fn count_threads() -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("Threads:"));
    let count = line.and_then(|count| count.trim().parse().ok());
    count.unwrap_or(1)
}

/// Limits the capabilities that started programs can ever have to these.
fn bound(left: CapabilitySet) -> Result<(), IdentityError> {
    for (_, capability) in CapabilitySet::all().iter_names() {
        if left.contains(capability) {
            continue;
        }
        match remove_capability_from_bounding_set(capability) {
            // An older kernel does not know the capability.
            Ok(()) | Err(Errno::INVAL) => {}
            Err(errno) => return Err(IdentityError::Refused("PR_CAPBSET_DROP", errno)),
        }
    }
    Ok(())
}

/// Gives up all capabilities of this thread except these.
fn drop_capabilities_except(left: CapabilitySet) -> Result<(), IdentityError> {
    let sets = CapabilitySets {
        effective: left,
        permitted: left,
        inheritable: left,
    };
    set_capabilities(None, sets).map_err(refused("to drop capabilities (capset)"))?;
    // Linux before 4.3 has no ambient set.
    let _ = clear_ambient_capability_set();
    if !left.is_empty() {
        // If securebits forbid it, this process has the capability but an executed program does not.
        let _ = configure_capability_in_ambient_set(left, true);
    }
    set_keep_capabilities(false).map_err(refused("PR_SET_KEEPCAPS"))
}

/// Whether this process may change its identity.
pub fn may_change_identity() -> bool {
    let needed = CapabilitySet::SETUID | CapabilitySet::SETGID;
    capabilities(None).is_ok_and(|sets| sets.effective.contains(needed))
}
