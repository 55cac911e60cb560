//! Source of facts: /proc, /sys and /etc below a root directory, or a snapshot of them in one file.
//!
//! A snapshot contains the files as read, not the interpreted facts, so that a newer program can interpret it again.
//! All paths are absolute, as in the kernel's documentation; links of a recorded machine never leave its root.

pub(crate) mod below;
mod snapshot;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use rustix::fs::{CWD, Mode, OFlags};

use crate::Error;
use crate::facts::ethtool::Ethtool;
use crate::facts::packet_rules::Rules;
use crate::facts::{Listening, Qdisc};
use crate::limits::FILE_BYTES_MAX;

use self::below::{link_below, names_in, open_below, open_root, read_below, read_bounded};
use self::snapshot::read_snapshot;
pub use snapshot::{SNAPSHOT_SCHEMA, Snapshot, write_snapshot};

/// A source of facts.
pub struct Tree {
    source: Source,
    recording: RefCell<Snapshot>,
    /// Files that exist but could not be read, with the reason.
    read_errors: RefCell<BTreeMap<String, String>>,
    records: Cell<bool>,
    driver_counters: Option<ReadDriverCounters>,
}

/// Function that reads driver-specific counters of an interface on this machine.
pub type ReadDriverCounters = fn(&str) -> io::Result<Vec<(String, u64)>>;

enum Source {
    Root { directory: OwnedFd, path: PathBuf },
    Snapshot(Box<Snapshot>),
}

impl Tree {
    /// Opens the root directory of a machine, or a snapshot.
    pub fn open(path: &Path) -> Result<Tree, Error> {
        let failed = |error: io::Error| Error::Read(path.to_owned(), error);
        if !path.metadata().map_err(failed)?.is_dir() {
            return Ok(Tree::of(Source::Snapshot(Box::new(read_snapshot(path)?))));
        }
        let directory = open_root(path).map_err(failed)?;
        Ok(Tree::of(Source::Root {
            directory,
            path: path.to_owned(),
        }))
    }

    fn of(source: Source) -> Tree {
        Tree {
            source,
            recording: RefCell::default(),
            read_errors: RefCell::default(),
            records: Cell::new(false),
            driver_counters: None,
        }
    }

    /// Sets the function that reads driver counters. Netlink has no message for them and the ioctl needs `unsafe`, so
    /// the caller provides it.
    pub fn asking(mut self, driver_counters: ReadDriverCounters) -> Tree {
        self.driver_counters = Some(driver_counters);
        self
    }

    /// Creates a tree from a snapshot in memory.
    pub fn of_snapshot(snapshot: Snapshot) -> Tree {
        Tree::of(Source::Snapshot(Box::new(snapshot)))
    }

    /// Starts recording everything read, for [`Tree::recorded`].
    pub fn record(&self) {
        self.records.set(true);
    }

    /// Everything read since [`Tree::record`].
    pub fn recorded(&self) -> Snapshot {
        Snapshot {
            onrush_snapshot: SNAPSHOT_SCHEMA,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            read_errors: self.read_errors(),
            ..self.recording.borrow().clone()
        }
    }

    /// Whether this is the machine that the program runs on, where drivers can be queried and settings changed.
    pub fn is_live(&self) -> bool {
        matches!(&self.source, Source::Root { path, .. } if path == Path::new("/"))
    }

    /// Root directory; `None` for a snapshot, in which nothing can be changed.
    pub fn root(&self) -> Option<&Path> {
        match &self.source {
            Source::Root { path, .. } => Some(path),
            Source::Snapshot(_) => None,
        }
    }

    /// Files that exist but could not be read, with the reason.
    pub fn read_errors(&self) -> BTreeMap<String, String> {
        let mut troubles = self.read_errors.borrow().clone();
        if let Source::Snapshot(snapshot) = &self.source {
            troubles.extend(snapshot.read_errors.clone());
        }
        troubles
    }

    /// Contents of a file, without trailing white space. `None` if it does not exist or cannot be read; the latter is
    /// added to [`Tree::read_errors`].
    pub fn text(&self, path: &str) -> Option<String> {
        self.lines(path, |_| true)
    }

    /// Lines of a file that satisfy `is_meant`; others are not recorded either.
    pub fn lines(&self, path: &str, is_meant: impl Fn(&str) -> bool) -> Option<String> {
        let text = match &self.source {
            Source::Snapshot(snapshot) => snapshot.files.get(path).cloned(),
            Source::Root { directory, .. } => match self.read(directory, path) {
                Ok(text) => Some(text),
                Err(error) => {
                    self.note_trouble(path, &error);
                    None
                }
            },
        }?;
        let meant: String = text
            .split_inclusive('\n')
            .filter(|line| is_meant(line))
            .collect();
        let text = meant.trim_end().to_owned();
        if self.records.get() {
            self.recording
                .borrow_mut()
                .files
                .insert(path.to_owned(), text.clone());
        }
        Some(text)
    }

    /// Parsed value of a file; an invalid one is added to [`Tree::read_errors`].
    pub fn value<T: FromStr>(&self, path: &str) -> Option<T> {
        let text = self.text(path)?;
        self.parsed_or_trouble(path, &text, text.trim().parse().ok())
    }

    /// Returns `understood`; if it is `None`, adds the contents to [`Tree::read_errors`].
    pub fn parsed_or_trouble<T>(&self, path: &str, text: &str, understood: Option<T>) -> Option<T> {
        if understood.is_none() {
            let start: String = text.chars().take(40).collect();
            let why = match start.is_empty() {
                true => "is empty; was it truncated?".to_owned(),
                false => format!("contains {start:?}, which cannot be parsed; was it truncated?"),
            };
            self.trouble(path, why);
        }
        understood
    }

    /// Names in a directory, sorted with embedded numbers in numeric order; empty if it does not exist.
    pub fn names(&self, path: &str) -> Vec<String> {
        let mut names = match &self.source {
            Source::Snapshot(snapshot) => {
                snapshot.directories.get(path).cloned().unwrap_or_default()
            }
            Source::Root { directory, .. } => match self.list(directory, path) {
                Ok(names) => names,
                Err(error) => {
                    self.note_trouble(path, &error);
                    return Vec::new();
                }
            },
        };
        names.sort_by_cached_key(|name| number_order(name));
        if self.records.get() && !names.is_empty() {
            self.recording
                .borrow_mut()
                .directories
                .insert(path.to_owned(), names.clone());
        }
        names
    }

    /// Whether a path of this machine is below another process's root. That is another mount namespace, reached through
    /// a link that openat2(2) does not follow with RESOLVE_IN_ROOT.
    fn is_of_another_root(&self, path: &str) -> bool {
        let behind = path.strip_prefix("/proc/");
        let behind = behind.and_then(|behind| behind.split_once('/'));
        self.is_live() && behind.is_some_and(|(_, behind)| behind.starts_with("root/"))
    }

    fn read(&self, directory: &OwnedFd, path: &str) -> io::Result<String> {
        if !self.is_of_another_root(path) {
            return read_below(directory, path);
        }
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = rustix::fs::openat(CWD, path, flags, Mode::empty())?;
        read_bounded(File::from(file), FILE_BYTES_MAX)
    }

    fn list(&self, directory: &OwnedFd, path: &str) -> io::Result<Vec<String>> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = match self.is_of_another_root(path) {
            true => rustix::fs::openat(CWD, path, flags, Mode::empty())?,
            false => open_below(directory, path, flags)?,
        };
        names_in(opened)
    }

    /// Numbers after a prefix in the names of a directory, ascending: `cpu` in `cpu0`, `cpu12`, `cpufreq` gives 0 and
    /// 12.
    pub fn numbers(&self, path: &str, prefix: &str) -> Vec<usize> {
        let number = |name: &String| name.strip_prefix(prefix)?.parse().ok();
        let mut numbers: Vec<usize> = self.names(path).iter().filter_map(number).collect();
        numbers.sort_unstable();
        numbers
    }

    /// Last component of a symbolic link's target.
    pub fn link(&self, path: &str) -> Option<String> {
        let target = match &self.source {
            Source::Snapshot(snapshot) => snapshot.links.get(path).cloned(),
            Source::Root { directory, .. } => link_below(directory, path).ok(),
        }?;
        if self.records.get() {
            self.recording
                .borrow_mut()
                .links
                .insert(path.to_owned(), target.clone());
        }
        target.rsplit('/').next().map(str::to_owned)
    }

    /// Ethtool settings of an interface, from the kernel or the snapshot.
    pub fn ethtool(&self, interface: &str, ask: impl FnOnce(&str) -> Ethtool) -> Option<Ethtool> {
        let answer = match &self.source {
            Source::Snapshot(snapshot) => snapshot.ethtool.get(interface).cloned(),
            Source::Root { .. } => self.is_live().then(|| ask(interface)),
        }?;
        if self.records.get() {
            self.recording
                .borrow_mut()
                .ethtool
                .insert(interface.to_owned(), answer.clone());
        }
        Some(answer)
    }

    /// Driver-specific counters of an interface, from the driver or the snapshot; empty if unavailable.
    pub fn driver_counters(&self, interface: &str) -> BTreeMap<String, u64> {
        let counters: BTreeMap<String, u64> = match &self.source {
            Source::Snapshot(snapshot) => snapshot.driver_counters.get(interface).cloned(),
            Source::Root { .. } => self
                .driver_counters
                .filter(|_| self.is_live())
                .and_then(|ask| ask(interface).ok())
                .map(|counters| counters.into_iter().collect()),
        }
        .unwrap_or_default();
        if self.records.get() && !counters.is_empty() {
            self.recording
                .borrow_mut()
                .driver_counters
                .insert(interface.to_owned(), counters.clone());
        }
        counters
    }

    /// Listening sockets, from the kernel or the snapshot.
    pub fn listening(
        &self,
        ask: impl FnOnce() -> Option<Vec<Listening>>,
    ) -> Option<Vec<Listening>> {
        self.answer(ask, |snapshot| &snapshot.listening, |to| &mut to.listening)
    }

    /// Numbers of packet filter rules, from the kernel or the snapshot.
    pub fn packet_rules(&self, ask: impl FnOnce() -> Option<Rules>) -> Option<Rules> {
        self.answer(
            ask,
            |snapshot| &snapshot.packet_rules,
            |to| &mut to.packet_rules,
        )
    }

    /// Queueing disciplines by interface, from the kernel or the snapshot.
    pub fn qdiscs(
        &self,
        ask: impl FnOnce() -> Option<BTreeMap<String, Qdisc>>,
    ) -> Option<BTreeMap<String, Qdisc>> {
        self.answer(ask, |snapshot| &snapshot.qdiscs, |to| &mut to.qdiscs)
    }

    /// Asks the kernel of this machine, or reads the answer from the snapshot.
    fn answer<T: Clone>(
        &self,
        ask: impl FnOnce() -> Option<T>,
        said: impl Fn(&Snapshot) -> &Option<T>,
        place: impl Fn(&mut Snapshot) -> &mut Option<T>,
    ) -> Option<T> {
        let answer = match &self.source {
            Source::Snapshot(snapshot) => said(snapshot).clone(),
            Source::Root { .. } => self.is_live().then(ask).flatten(),
        };
        if self.records.get() {
            *place(&mut self.recording.borrow_mut()) = answer.clone();
        }
        answer
    }

    /// Records that something could not be determined, and why.
    pub(crate) fn trouble(&self, about: &str, why: String) {
        self.read_errors.borrow_mut().insert(about.to_owned(), why);
    }

    fn note_trouble(&self, path: &str, error: &io::Error) {
        // A missing file is a fact. The other errors are returned for devices that are down or lack the property.
        let is_fact = matches!(
            rustix::io::Errno::from_io_error(error),
            Some(
                rustix::io::Errno::NOENT
                    | rustix::io::Errno::NOTDIR
                    | rustix::io::Errno::INVAL
                    | rustix::io::Errno::OPNOTSUPP
                    | rustix::io::Errno::NODEV
                    | rustix::io::Errno::SRCH
            )
        );
        if !is_fact {
            self.trouble(path, error.to_string());
        }
    }
}

/// Splits off the trailing number, so that `rx-10` sorts after `rx-9`.
fn number_order(name: &str) -> (String, u64) {
    let stem = name.trim_end_matches(|letter: char| letter.is_ascii_digit());
    (stem.to_owned(), name[stem.len()..].parse().unwrap_or(0))
}
