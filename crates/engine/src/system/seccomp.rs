//! Giving up system calls that no server needs (seccomp(2)), to limit what a compromised process can do.
//!
//! The list contains refused calls, not allowed ones: an upgrade starts a program that inherits the filter, which may
//! be a later version with a later C library and make calls unknown to this one. Operations of a ring are not system
//! calls and pass every filter, but none of them does what is listed here.

use std::collections::BTreeMap;
use std::fmt;

use libc::c_long;
use rustix::thread::{SecureComputingMode, secure_computing_mode};
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, TargetArch, apply_filter};

/// Calls refused on every architecture, in the order of systemd's groups (systemd.exec(5)).
const REFUSED: &[c_long] = &[
    // @debug: access to other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_perf_event_open,
    libc::SYS_bpf,
    libc::SYS_userfaultfd,
    // @module, @reboot, @swap.
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    // @mount, and other namespaces.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_unshare,
    libc::SYS_setns,
    // @keyring.
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    // @clock, and the machine's names.
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    // Files without their paths, devices, accounting, the kernel's log.
    libc::SYS_name_to_handle_at,
    libc::SYS_open_by_handle_at,
    libc::SYS_fanotify_init,
    libc::SYS_mknodat,
    libc::SYS_quotactl,
    libc::SYS_acct,
    libc::SYS_vhangup,
    libc::SYS_syslog,
    // Memory of other processes, and execution domains.
    libc::SYS_migrate_pages,
    libc::SYS_move_pages,
    libc::SYS_personality,
];

/// Calls of one architecture only.
#[cfg(target_arch = "x86_64")]
const REFUSED_HERE: &[c_long] = &[
    libc::SYS_kexec_file_load,
    libc::SYS_iopl,
    libc::SYS_ioperm,
    libc::SYS_modify_ldt,
    libc::SYS_mknod,
    libc::SYS_uselib,
    libc::SYS_ustat,
    libc::SYS_sysfs,
];
#[cfg(not(target_arch = "x86_64"))]
const REFUSED_HERE: &[c_long] = &[];

/// Bits added to a call's number: none, and that of the x32 ABI, which a kernel may support (__X32_SYSCALL_BIT).
#[cfg(target_arch = "x86_64")]
const ABI_BITS: &[c_long] = &[0, 0x4000_0000];
#[cfg(not(target_arch = "x86_64"))]
const MANNERS: &[c_long] = &[0];

/// Reason for running without a filter.
#[derive(Debug)]
pub enum FilterError {
    /// This architecture is not supported.
    UnsupportedArchitecture(String),
    /// The kernel refused the filter.
    Refused(String),
    /// The filter was accepted, but a listed call still works.
    NotInForce,
}

impl fmt::Display for FilterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FilterError::UnsupportedArchitecture(why) => {
                write!(f, "cannot build the seccomp filter: {why}")
            }
            FilterError::Refused(why) => write!(
                f,
                "the kernel refuses the seccomp filter: {why}; it may lack CONFIG_SECCOMP_FILTER"
            ),
            FilterError::NotInForce => f.write_str("the seccomp filter is not in force"),
        }
    }
}

impl std::error::Error for FilterError {}

/// Number of refused system calls.
pub fn refused_calls() -> usize {
    REFUSED.len() + REFUSED_HERE.len()
}

/// Gives up the calls, for this thread and threads that it starts: they fail with EPERM. A call of
/// another architecture kills the process.
///
/// # Errors
/// When the filter cannot be made or installed, or a check finds that it is not in force.
pub fn refuse_calls() -> Result<(), FilterError> {
    let made =
        |error: seccompiler::BackendError| FilterError::UnsupportedArchitecture(error.to_string());
    let architecture = TargetArch::try_from(std::env::consts::ARCH).map_err(made)?;
    let calls = REFUSED.iter().chain(REFUSED_HERE);
    let numbers = calls.flat_map(|call| ABI_BITS.iter().map(move |manner| call | manner));
    let rules: BTreeMap<i64, Vec<_>> = numbers.map(|number| (number, Vec::new())).collect();
    let refused = SeccompAction::Errno(libc::EPERM.cast_unsigned());
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refused, architecture);
    let program: BpfProgram = filter.map_err(made)?.try_into().map_err(made)?;
    apply_filter(&program).map_err(|error| FilterError::Refused(error.to_string()))?;
    match are_refused() {
        true => Ok(()),
        false => Err(FilterError::NotInForce),
    }
}

/// Whether this thread has a filter that refuses the listed calls.
fn are_refused() -> bool {
    let has_filter = matches!(secure_computing_mode(), Ok(SecureComputingMode::Filter));
    // SAFETY: this value only queries the persona (personality(2)).
    let persona = unsafe { libc::personality(0xffff_ffff) };
    has_filter && persona == -1
}

#[cfg(test)]
mod tests {
    use super::*;

    /// On a separate thread, because the filter is permanent.
    #[test]
    fn listed_system_calls_are_refused() {
        let thread = std::thread::spawn(|| {
            assert!(!are_refused());
            match refuse_calls() {
                Ok(()) => {}
                Err(error) => return eprintln!("skipped: {error}"),
            }
            assert!(are_refused());
            let chrooted = rustix::process::chroot("/");
            assert_eq!(chrooted, Err(rustix::io::Errno::PERM));
            // A program started later has the filter, too, and works.
            let output = std::process::Command::new("true").status();
            assert!(output.expect("it starts").success());
        });
        thread.join().expect("nothing of this panics");
    }

    #[test]
    fn refused_system_calls_are_unique() {
        let mut all: Vec<c_long> = REFUSED.iter().chain(REFUSED_HERE).copied().collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), refused_calls());
    }
}
