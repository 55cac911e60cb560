//! bpf(2): maps, programs, attaching and running them. Structures follow include/uapi/linux/bpf.h up to the last field
//! used; the kernel takes the rest as zero.

use std::ffi::{CStr, c_long};
use std::fmt;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use rustix::io::Errno;

use super::instruction::{BpfStep, assemble};
use crate::limits::{INTERRUPTED_TRIES, VERIFIER_LOG_BYTES};

/// Why frames cannot be sent or counted by XDP.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum XdpError {
    /// This process may not load BPF programs.
    NoRight,
    /// The kernel lacks this feature.
    NotInKernel(&'static str),
    /// The kernel refused a step.
    Refused {
        /// The step.
        step: &'static str,
        /// The kernel's error.
        errno: Errno,
        /// The end of the verifier's log, or empty.
        log: String,
    },
}

impl fmt::Display for XdpError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            XdpError::NoRight => out.write_str(
                "this process may not load XDP programs: run it as root, or with the capabilities CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON",
            ),
            XdpError::NotInKernel(what) => write!(out, "this kernel has no {what}"),
            XdpError::Refused { step, errno, log } => {
                write!(out, "the kernel refuses to {step}: {errno}")?;
                match log.is_empty() {
                    true => Ok(()),
                    false => write!(out, " ({log})"),
                }
            }
        }
    }
}

impl std::error::Error for XdpError {}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ProgramKind {
    Xdp,
    Tracepoint,
}

impl ProgramKind {
    /// `enum bpf_prog_type`.
    fn number(self) -> u32 {
        match self {
            ProgramKind::Xdp => 6,
            ProgramKind::Tracepoint => 17,
        }
    }
}

/// Where an interface runs its program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum AttachMode {
    /// In its driver.
    Driver,
    /// After the driver, in the network stack; works with any interface.
    Generic,
}

impl AttachMode {
    /// XDP_FLAGS_DRV_MODE and XDP_FLAGS_SKB_MODE (include/uapi/linux/if_link.h).
    fn flag(self) -> u32 {
        match self {
            AttachMode::Driver => 1 << 2,
            AttachMode::Generic => 1 << 1,
        }
    }
}

/// `enum bpf_cmd`.
#[derive(Clone, Copy)]
enum Command {
    MapCreate = 0,
    MapLookup = 1,
    MapUpdate = 2,
    ProgramLoad = 5,
    ProgramTestRun = 10,
    RawTracepointOpen = 17,
    LinkCreate = 28,
}

/// BPF_MAP_TYPE_ARRAY.
const ARRAY: u32 = 2;
/// BPF_F_TEST_XDP_LIVE_FRAMES (Linux 5.18).
const LIVE_FRAMES: u32 = 1 << 1;
/// BPF_XDP of `enum bpf_attach_type`.
const ATTACH_XDP: u32 = 37;
/// The helper functions used are not restricted to the GPL.
const LICENSE: &CStr = c"MIT OR Apache-2.0";

#[repr(C)]
struct MapCreate {
    map_type: u32,
    key_size: u32,
    value_size: u32,
    max_entries: u32,
}

#[repr(C)]
struct MapElement {
    map: u32,
    padding: u32,
    key: u64,
    value: u64,
    flags: u64,
}

#[repr(C)]
struct ProgramLoad {
    kind: u32,
    instructions: u32,
    program: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log: u64,
}

#[repr(C)]
struct ProgramTestRun {
    program: u32,
    returned: u32,
    data_in_size: u32,
    data_out_size: u32,
    data_in: u64,
    data_out: u64,
    repeat: u32,
    duration: u32,
    context_in_size: u32,
    context_out_size: u32,
    context_in: u64,
    context_out: u64,
    flags: u32,
    cpu: u32,
    batch_size: u32,
    padding: u32,
}

#[repr(C)]
struct RawTracepointOpen {
    name: u64,
    program: u32,
    padding: u32,
}

#[repr(C)]
struct LinkCreate {
    program: u32,
    interface: u32,
    attach_type: u32,
    flags: u32,
}

/// A map with one value, which consists of `numbers` numbers of 64 bits.
pub(super) struct KernelArray {
    descriptor: OwnedFd,
    numbers: usize,
}

impl KernelArray {
    pub(super) fn new(numbers: usize) -> Result<KernelArray, XdpError> {
        let attributes = MapCreate {
            map_type: ARRAY,
            key_size: size_of::<u32>() as u32,
            value_size: (numbers * size_of::<u64>()) as u32,
            max_entries: 1,
        };
        let descriptor = opened(Command::MapCreate, &attributes);
        let descriptor = descriptor.map_err(|errno| refused("make a map", errno))?;
        Ok(KernelArray {
            descriptor,
            numbers,
        })
    }

    pub(super) fn read(&self) -> Result<Vec<u64>, Errno> {
        let (key, mut value) = (0u32, vec![0u64; self.numbers]);
        let attributes = MapElement {
            map: number(&self.descriptor),
            padding: 0,
            key: address(&raw const key),
            value: value.as_mut_ptr().expose_provenance() as u64,
            flags: 0,
        };
        call(Command::MapLookup, &attributes)?;
        Ok(value)
    }

    /// Replaces the value; the length must be equal.
    pub(super) fn write(&self, value: &[u64]) -> Result<(), Errno> {
        assert_eq!(value.len(), self.numbers);
        let key = 0u32;
        let attributes = MapElement {
            map: number(&self.descriptor),
            padding: 0,
            key: address(&raw const key),
            value: address(value.as_ptr()),
            flags: 0,
        };
        call(Command::MapUpdate, &attributes).map(drop)
    }
}

pub(super) struct Program(OwnedFd);

impl Program {
    /// Loads a program that uses `map`.
    pub(super) fn load(
        kind: ProgramKind,
        steps: &[BpfStep],
        map: &KernelArray,
    ) -> Result<Program, XdpError> {
        let program = assemble(steps, map.descriptor.as_raw_fd());
        let mut log = vec![0u8; VERIFIER_LOG_BYTES];
        let mut attributes = ProgramLoad {
            kind: kind.number(),
            instructions: program.len() as u32,
            program: address(program.as_ptr()),
            license: address(LICENSE.as_ptr()),
            log_level: 0,
            log_size: 0,
            log: 0,
        };
        let mut loaded = opened(Command::ProgramLoad, &attributes);
        for _ in 1..INTERRUPTED_TRIES {
            // The verifier was interrupted by a signal or by work for this thread, possibly of its ring.
            if !matches!(loaded, Err(Errno::AGAIN)) {
                break;
            }
            loaded = opened(Command::ProgramLoad, &attributes);
        }
        let errno = match loaded {
            Ok(descriptor) => return Ok(Program(descriptor)),
            Err(errno) => errno,
        };
        // Loads it again for the verifier's log.
        attributes.log_level = 1;
        attributes.log_size = log.len() as u32;
        attributes.log = log.as_mut_ptr().expose_provenance() as u64;
        let _ = opened(Command::ProgramLoad, &attributes);
        Err(match errno {
            Errno::PERM | Errno::ACCESS if log[0] == 0 => XdpError::NoRight,
            _ => XdpError::Refused {
                step: "load a program",
                errno,
                log: last_lines(&log),
            },
        })
    }

    /// Runs it on `count` copies of `frame`, `batch` at a time (Linux's Documentation/bpf/bpf_prog_run.rst).
    pub(super) fn run_live(&self, frame: &[u8], count: u32, batch: u32) -> Result<(), Errno> {
        let attributes = ProgramTestRun {
            program: number(&self.0),
            returned: 0,
            data_in_size: frame.len() as u32,
            data_out_size: 0,
            data_in: address(frame.as_ptr()),
            data_out: 0,
            repeat: count,
            duration: 0,
            context_in_size: 0,
            context_out_size: 0,
            context_in: 0,
            context_out: 0,
            flags: LIVE_FRAMES,
            cpu: 0,
            batch_size: batch,
            padding: 0,
        };
        call(Command::ProgramTestRun, &attributes).map(drop)
    }

    /// Attaches the program to a tracepoint until the returned descriptor is closed.
    pub(super) fn trace(&self, tracepoint: &CStr) -> Result<OwnedFd, XdpError> {
        let attributes = RawTracepointOpen {
            name: address(tracepoint.as_ptr()),
            program: number(&self.0),
            padding: 0,
        };
        opened(Command::RawTracepointOpen, &attributes).map_err(|errno| match errno {
            Errno::NOENT => XdpError::NotInKernel(
                "XDP tracepoints for BPF programs (CONFIG_BPF_EVENTS), which report the frames sent",
            ),
            _ => refused("attach a program to an XDP tracepoint", errno),
        })
    }

    /// Attaches the program to an interface's received packets until the returned descriptor is closed.
    pub(super) fn attach(&self, interface: u32, mode: AttachMode) -> Result<OwnedFd, Errno> {
        let attributes = LinkCreate {
            program: number(&self.0),
            interface,
            attach_type: ATTACH_XDP,
            flags: mode.flag(),
        };
        opened(Command::LinkCreate, &attributes)
    }
}

/// The error of a step that needs rights.
pub(super) fn refused(step: &'static str, errno: Errno) -> XdpError {
    match errno {
        Errno::PERM | Errno::ACCESS => XdpError::NoRight,
        Errno::NOSYS => XdpError::NotInKernel("BPF programs (CONFIG_BPF_SYSCALL)"),
        _ => XdpError::Refused {
            step,
            errno,
            log: String::new(),
        },
    }
}

/// The last lines of the verifier's log, which contain the reason, joined to one line.
fn last_lines(log: &[u8]) -> String {
    let end = log.iter().position(|byte| *byte == 0).unwrap_or(log.len());
    let text = String::from_utf8_lossy(&log[..end]);
    let lines: Vec<&str> = text.lines().collect();
    let shown = &lines[lines.len().saturating_sub(4)..];
    shown.join("; ")
}

fn number(descriptor: &OwnedFd) -> u32 {
    descriptor.as_raw_fd().cast_unsigned()
}

fn address<T>(pointer: *const T) -> u64 {
    pointer.expose_provenance() as u64
}

fn opened<Attributes>(command: Command, attributes: &Attributes) -> Result<OwnedFd, Errno> {
    let descriptor: RawFd = call(command, attributes)?;
    // SAFETY: the kernel has just opened it for this call, and it has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

fn call<Attributes>(command: Command, attributes: &Attributes) -> Result<RawFd, Errno> {
    // SAFETY: the kernel reads the given number of bytes of `attributes`. Addresses in them are of memory that the
    // callers above keep for the call, with its length; memory that the kernel writes is borrowed mutably.
    let outcome = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            command as c_long,
            &raw const *attributes,
            size_of::<Attributes>(),
        )
    };
    match RawFd::try_from(outcome) {
        Ok(value) if value >= 0 => Ok(value),
        _ => {
            let error = std::io::Error::last_os_error();
            Err(Errno::from_io_error(&error).unwrap_or(Errno::IO))
        }
    }
}
