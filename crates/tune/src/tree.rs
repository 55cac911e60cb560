//! Where facts are read: /proc, /sys and /etc below a root directory, or the recording of such a reading in one file.
//!
//! A snapshot is what was read, file by file, not what was understood of it: whoever receives one can read it again
//! with a newer program. All paths here are absolute, as the kernel's documents spell them; links of a recorded machine
//! never lead out of its root.

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

/// A place to read facts from.
pub struct Tree {
    source: Source,
    recording: RefCell<Snapshot>,
    /// Files that exist and could not be read, each once, with the reason.
    troubles: RefCell<BTreeMap<String, String>>,
    records: Cell<bool>,
    driver_counters: Option<AskCounters>,
}

/// What asks a driver of this machine for the counters it has by names of its own.
pub type AskCounters = fn(&str) -> io::Result<Vec<(String, u64)>>;

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
            troubles: RefCell::default(),
            records: Cell::new(false),
            driver_counters: None,
        }
    }

    /// With a way to ask drivers for their counters. Netlink has no message for them and the ioctl takes `unsafe`, so who
    /// opens the tree brings it.
    pub fn asking(mut self, driver_counters: AskCounters) -> Tree {
        self.driver_counters = Some(driver_counters);
        self
    }

    /// A snapshot in memory, as if it had been read from a file.
    pub fn of_snapshot(snapshot: Snapshot) -> Tree {
        Tree::of(Source::Snapshot(Box::new(snapshot)))
    }

    /// From now on everything that is read is kept for [`Tree::recorded`].
    pub fn record(&self) {
        self.records.set(true);
    }

    /// What was read since [`Tree::record`].
    pub fn recorded(&self) -> Snapshot {
        Snapshot {
            onrush_snapshot: SNAPSHOT_SCHEMA,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            troubles: self.troubles(),
            ..self.recording.borrow().clone()
        }
    }

    /// Whether this is the machine the program runs on: drivers can be asked, and settings changed.
    pub fn is_live(&self) -> bool {
        matches!(&self.source, Source::Root { path, .. } if path == Path::new("/"))
    }

    /// The root directory; none for a snapshot, in which nothing can be changed.
    pub fn root(&self) -> Option<&Path> {
        match &self.source {
            Source::Root { path, .. } => Some(path),
            Source::Snapshot(_) => None,
        }
    }

    /// Files that exist and could not be read, with the reason.
    pub fn troubles(&self) -> BTreeMap<String, String> {
        let mut troubles = self.troubles.borrow().clone();
        if let Source::Snapshot(snapshot) = &self.source {
            troubles.extend(snapshot.troubles.clone());
        }
        troubles
    }

    /// The text of a file without white space at its end; `None` when there is none, or when it cannot be read, which
    /// is then one of the [`Tree::troubles`].
    pub fn text(&self, path: &str) -> Option<String> {
        self.lines(path, |_| true)
    }

    /// The same of a file of which only some lines are anybody's business: no others are recorded.
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

    /// The value of a file that holds one; a text that is none is one of the [`Tree::troubles`].
    pub fn value<T: FromStr>(&self, path: &str) -> Option<T> {
        let text = self.text(path)?;
        self.understood(path, &text, text.trim().parse().ok())
    }

    /// `understood`, or a trouble that says what is there instead.
    pub fn understood<T>(&self, path: &str, text: &str, understood: Option<T>) -> Option<T> {
        if understood.is_none() {
            let start: String = text.chars().take(40).collect();
            let why = match start.is_empty() {
                true => "is empty; was it cut off?".to_owned(),
                false => format!("says {start:?}, which has no meaning here; was it cut off?"),
            };
            self.trouble(path, why);
        }
        understood
    }

    /// The names in a directory, sorted, with numbers in them in the order of numbers; empty when there is none.
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

    /// On this machine the root of another process is another mount namespace, behind a link that is not followed below a
    /// root (openat2(2), RESOLVE_IN_ROOT).
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

    /// The numbers behind a prefix in the names of a directory, ascending: `cpu` of `cpu0`, `cpu12`, `cpufreq` gives 0
    /// and 12.
    pub fn numbers(&self, path: &str, prefix: &str) -> Vec<usize> {
        let number = |name: &String| name.strip_prefix(prefix)?.parse().ok();
        let mut numbers: Vec<usize> = self.names(path).iter().filter_map(number).collect();
        numbers.sort_unstable();
        numbers
    }

    /// The last part of what a symbolic link leads to.
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

    /// What drivers say of an interface: of this machine from the kernel, of a recorded one from the snapshot.
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

    /// What a driver counts by names of its own: of this machine from the driver, of a recorded one from the snapshot.
    /// Nothing where it cannot be asked.
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

    /// The sockets that wait for connections: of this machine from the kernel, of a recorded one from the snapshot.
    pub fn listening(
        &self,
        ask: impl FnOnce() -> Option<Vec<Listening>>,
    ) -> Option<Vec<Listening>> {
        self.answer(ask, |snapshot| &snapshot.listening, |to| &mut to.listening)
    }

    /// How many rules packet filters have: of this machine from the kernel, of a recorded one from the snapshot.
    pub fn packet_rules(&self, ask: impl FnOnce() -> Option<Rules>) -> Option<Rules> {
        self.answer(
            ask,
            |snapshot| &snapshot.packet_rules,
            |to| &mut to.packet_rules,
        )
    }

    /// How packets wait to be sent, by interface: of this machine from the kernel, of a recorded one from the snapshot.
    pub fn qdiscs(
        &self,
        ask: impl FnOnce() -> Option<BTreeMap<String, Qdisc>>,
    ) -> Option<BTreeMap<String, Qdisc>> {
        self.answer(ask, |snapshot| &snapshot.qdiscs, |to| &mut to.qdiscs)
    }

    /// What only the kernel of this machine can be asked, and where that is in a snapshot.
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

    /// Notes what could not be found out, and why.
    pub(crate) fn trouble(&self, about: &str, why: String) {
        self.troubles.borrow_mut().insert(about.to_owned(), why);
    }

    fn note_trouble(&self, path: &str, error: &io::Error) {
        // What is not there is a fact. Files of a device that is down, or has no such property, say so by these.
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

/// A name with its trailing number apart, so that `rx-10` comes after `rx-9`.
fn number_order(name: &str) -> (String, u64) {
    let stem = name.trim_end_matches(|letter: char| letter.is_ascii_digit());
    (stem.to_owned(), name[stem.len()..].parse().unwrap_or(0))
}
