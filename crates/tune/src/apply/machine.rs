//! Locations of the values that a plan changes, and access to them.

use std::fmt;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::process::Pid;

use crate::Error;
use crate::advise::{THREAD, Target};
use crate::facts::ethtool::{self, DriverSetting};
use crate::facts::{self, Facts, process};
use crate::tree::{Tree, below};
use onrush_machine::cpus::CpuSet;

/// Location of a value.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Location {
    /// File, by its absolute path.
    File(String),
    /// Setting of a driver.
    Driver(String, DriverSetting),
    /// Service.
    Service(String),
    /// CPUs of a thread: PID, TID and start time.
    Thread(u32, u32, u64),
}

impl Location {
    /// Current location of a target, because interrupt numbers change. `None` if it is gone.
    pub fn of(target: &Target, facts: &Facts) -> Option<Location> {
        let queue_file = |interface: &str, direction: &str, queue: usize, file: &str| {
            let path = format!("/sys/class/net/{interface}/queues/{direction}-{queue}/{file}");
            facts.interface(interface).map(|_| Location::File(path))
        };
        match target {
            Target::Driver { interface, knob } => facts
                .interface(interface)
                .map(|_| Location::Driver(interface.clone(), *knob)),
            Target::Interrupt {
                interface,
                queue,
                purpose,
            } => {
                let irqs = facts.interface(interface)?;
                let irq = irqs.irqs_of(*queue).find(|irq| irq.purpose == *purpose)?;
                irq.path(interface).map(Location::File)
            }
            Target::Steering { interface, queue } => {
                queue_file(interface, "rx", *queue, "rps_cpus")
            }
            Target::Flows { interface, queue } => {
                queue_file(interface, "rx", *queue, "rps_flow_cnt")
            }
            Target::Senders { interface, queue } => queue_file(interface, "tx", *queue, "xps_cpus"),
            Target::Setting { file } => Some(Location::File(format!("/proc/sys/{file}"))),
            Target::File { path } => Some(Location::File(path.clone())),
            Target::Service { unit } => Some(Location::Service(unit.clone())),
            Target::Thread {
                process,
                thread,
                started,
            } => Some(Location::Thread(*process, *thread, *started)),
        }
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Location::File(path) => f.write_str(path),
            Location::Driver(interface, knob) => write!(f, "ethtool:{interface}/{}", knob.name()),
            Location::Service(unit) => write!(f, "service:{unit}"),
            Location::Thread(process, thread, _) => write!(f, "{THREAD}{process}/{thread}"),
        }
    }
}

/// Machine whose values can be read and changed: this one, a directory, or a model in tests.
pub trait Machine {
    /// Reads the facts.
    fn facts(&self) -> Result<Facts, Error>;
    /// Reads a value, byte for byte.
    fn get(&self, place: &Location) -> io::Result<String>;
    /// Writes a value. The kernel may keep a different one; read it with [`Machine::get`].
    fn put(&mut self, place: &Location, value: &str) -> io::Result<()>;
}

/// A machine below a root directory.
pub struct Root {
    directory: OwnedFd,
    path: PathBuf,
    process: Option<u32>,
}

impl Root {
    /// Opens the root directory. A snapshot has none and cannot be changed.
    pub fn open(path: &Path) -> Result<Root, Error> {
        if path.is_file() {
            return Err(Error::Request(format!(
                "{} is a snapshot: it can be planned for, but not changed",
                path.display()
            )));
        }
        let directory =
            below::open_root(path).map_err(|error| Error::Read(path.to_owned(), error))?;
        Ok(Root {
            directory,
            path: path.to_owned(),
            process: None,
        })
    }

    /// Sets the process whose threads belong to the facts.
    pub fn with_process(mut self, process: Option<u32>) -> Root {
        self.process = process;
        self
    }

    /// Path of the root directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn open_to_write(&self, path: &str) -> io::Result<File> {
        let flags = OFlags::WRONLY | OFlags::TRUNC | OFlags::NONBLOCK;
        Ok(File::from(below::open_below(&self.directory, path, flags)?))
    }

    pub(super) fn is_live(&self) -> bool {
        self.path == Path::new("/")
    }

    /// CPU list of a thread; fails with `NotFound` if it has ended, even if another has its TID.
    fn thread_cpus(&self, process: u32, thread: u32, started: u64) -> io::Result<String> {
        let path = format!("/proc/{process}/task/{thread}");
        let read = |file: &str| match below::read_below(&self.directory, &format!("{path}/{file}"))
        {
            // The thread ended between opening and reading.
            Err(error) if Errno::from_io_error(&error) == Some(Errno::SRCH) => {
                Err(Errno::NOENT.into())
            }
            other => other,
        };
        let found = process::thread(process, &read("stat")?, &read("status")?);
        match found.ok_or_else(|| io::Error::other("its stat and status files cannot be parsed"))? {
            found if found.started == started => Ok(found.allowed.to_string()),
            _ => Err(Errno::NOENT.into()),
        }
    }

    fn only_live<T>(&self, what: &str, act: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        match self.is_live() {
            true => act(),
            false => Err(io::Error::new(
                io::ErrorKind::Unsupported,
                format!("{what} can only be changed on this machine, not below another root"),
            )),
        }
    }
}

impl Machine for Root {
    fn facts(&self) -> Result<Facts, Error> {
        facts::read(&Tree::open(&self.path)?, self.process)
    }

    fn get(&self, place: &Location) -> io::Result<String> {
        match place {
            Location::File(path) => below::read_below(&self.directory, path),
            Location::Driver(interface, knob) => self.only_live("drivers", || {
                let said = ethtool::ask(interface);
                let value = knob.value(&said).map(|value| value.to_string());
                value.ok_or_else(|| io::Error::other(said.refusals.join("; ")))
            }),
            Location::Service(unit) => self.only_live("services", || service_state(unit)),
            Location::Thread(process, thread, started) => {
                self.thread_cpus(*process, *thread, *started)
            }
        }
    }

    fn put(&mut self, place: &Location, value: &str) -> io::Result<()> {
        match place {
            Location::File(path) => {
                let mut file = self.open_to_write(path)?;
                // In one call, because the kernel parses each write as a separate value.
                match file.write(value.as_bytes())? {
                    written if written < value.len() => Err(io::Error::new(
                        io::ErrorKind::WriteZero,
                        "only a part of the value was written",
                    )),
                    _ => Ok(()),
                }
            }
            Location::Driver(interface, knob) => self.only_live("drivers", || {
                let number = value.trim().parse().map_err(io::Error::other)?;
                ethtool::set(interface, *knob, number)
            }),
            Location::Service(unit) => self.only_live("services", || {
                let verb = if value.trim() == "active" {
                    "start"
                } else {
                    "stop"
                };
                let output = Command::new("systemctl")
                    .args([verb, unit])
                    .stdin(Stdio::null())
                    .output()?;
                match output.status.success() {
                    true => Ok(()),
                    false => Err(io::Error::other(
                        String::from_utf8_lossy(&output.stderr).trim().to_owned(),
                    )),
                }
            }),
            Location::Thread(process, thread, started) => self.only_live("threads", || {
                // TIDs are reused: check that this is the same thread.
                self.thread_cpus(*process, *thread, *started)?;
                set_thread_cpus(*thread, value)
            }),
        }
    }
}

/// sched_setaffinity(2)
fn set_thread_cpus(thread: u32, list: &str) -> io::Result<()> {
    let cpus = CpuSet::parse_list(list).ok_or(Errno::INVAL)?;
    let number = i32::try_from(thread).ok().and_then(Pid::from_raw);
    let mut set = rustix::thread::CpuSet::new();
    for cpu in cpus.iter() {
        if cpu >= rustix::thread::CpuSet::MAX_CPU {
            return Err(Errno::INVAL.into());
        }
        set.set(cpu);
    }
    // 0 would mean the calling thread.
    let number = number.ok_or(Errno::SRCH)?;
    Ok(rustix::thread::sched_setaffinity(Some(number), &set)?)
}

/// `active` or `inactive`.
fn service_state(unit: &str) -> io::Result<String> {
    let output = Command::new("systemctl")
        .args(["is-active", unit])
        .stdin(Stdio::null())
        .output()?;
    let state = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    Ok(if state == "active" {
        state
    } else {
        "inactive".to_owned()
    })
}
