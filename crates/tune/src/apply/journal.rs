//! Write-ahead journal of changes, so that they can be undone after a crash at any moment.
//!
//! One line of JSON per event, in a file that disappears at reboot together with the changes. A line is on disk before
//! the change is made, and a line that could not be written completely is removed. So a journal that is empty, lacks
//! its first line or ends with half a line is damaged; it is renamed when the rest is undone.

mod guard;
mod history;
mod identity;
mod journal_file;
mod name_map;
mod run_copy;
mod runs;
mod summary;

use std::fs::{self, File};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use self::history::{Line, SCHEMA, changes};
use self::name_map::NameMap;
use super::journal_scope::JournalScope;
use crate::Error;
use crate::advise::{Request, Target};
use crate::facts::Facts;
use crate::tree::below;

pub use guard::Guard;
pub use history::{Change, Run, UnreadableLine};
pub use run_copy::RunCopy;
pub use summary::JournalSummary;

const LOST_TEXT_MAX: usize = 120;

/// Journal of a machine or network namespace. Other processes wait in `open` while it is held.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
    lines: Vec<Line>,
    /// Interfaces of the names in `lines`.
    interface_identities: NameMap,
    /// Set if the first line is missing.
    missing_first_line: Option<UnreadableLine>,
    /// Whether the last line is truncated, so that the next one starts with a newline.
    is_cut: bool,
    /// Directory that was created for the journal and is removed with it.
    made: Option<PathBuf>,
    /// Process that undoes runs started from now on.
    guard: Option<Guard>,
}

/// First line, in the journals of all versions.
#[derive(Deserialize)]
struct First {
    begin: Begun,
}

#[derive(Deserialize)]
struct Begun {
    schema: u32,
    version: String,
}

impl Journal {
    /// Path of the journal below a root; symbolic links stay below it. Network namespaces share /run but not
    /// interfaces, so each has its own journal.
    pub fn path_below(root: &Path) -> Result<PathBuf, Error> {
        let directory =
            below::open_root(root).map_err(|error| Error::Read(root.to_owned(), error))?;
        let namespace = below::link_below(&directory, "/proc/self/ns/net").unwrap_or_default();
        let digits: String = namespace.chars().filter(char::is_ascii_digit).collect();
        let name = match digits.is_empty() {
            true => "onrush-tune.journal".to_owned(),
            false => format!("onrush-tune.{digits}.journal"),
        };
        below::resolve_below(root, &format!("run/{name}"))
    }

    /// Opens or creates the journal. One from another boot or network namespace is obsolete and replaced.
    pub fn open(path: &Path, life: impl Into<JournalScope>) -> Result<Journal, Error> {
        Journal::open_with_notice(path, life, || {})
    }

    /// Same as [`Journal::open`]; calls `waits` before it waits for another process.
    pub fn open_with_notice(
        path: &Path,
        life: impl Into<JournalScope>,
        waits: impl FnOnce(),
    ) -> Result<Journal, Error> {
        let life = life.into();
        let failed = |error: io::Error| Error::Write(path.to_owned(), error);
        let directory = path
            .parent()
            .filter(|directory| !directory.as_os_str().is_empty() && !directory.exists());
        if let Some(directory) = directory {
            fs::create_dir(directory).map_err(failed)?;
        }
        let made = directory.map(Path::to_owned);
        let first = life.first_line(made.as_ref()).map_err(failed)?;
        let file = journal_file::open_or_begin(path, &first, waits).map_err(failed)?;
        let mut journal = Journal::read(path, file)?;
        if !journal.is_of(&life) {
            let file = journal_file::begin_anew(path, &first).map_err(failed)?;
            journal = Journal::read(path, file)?;
        }
        if let Some(Line::Begin { made, .. }) = journal.lines.first() {
            journal.made = made.clone();
        }
        Ok(journal)
    }

    /// Opens the journal for undoing; `None` if there is none for this boot and namespace. If it cannot be written it
    /// is opened read-only, so that the changes can be undone nevertheless.
    pub fn open_to_undo(
        path: &Path,
        life: impl Into<JournalScope>,
        waits: impl FnOnce(),
    ) -> Result<Option<Journal>, Error> {
        let failed = |error: io::Error| Error::Write(path.to_owned(), error);
        let Some(file) = journal_file::open_to_undo(path, waits).map_err(failed)? else {
            return Ok(None);
        };
        let mut journal = Journal::read(path, file)?;
        if !journal.is_of(&life.into()) {
            // Obsolete. If it cannot be removed, the next run replaces it.
            let _ = journal.remove();
            return Ok(None);
        }
        if let Some(Line::Begin { made, .. }) = journal.lines.first() {
            journal.made = made.clone();
        }
        Ok(Some(journal))
    }

    fn read(path: &Path, file: File) -> Result<Journal, Error> {
        let mut journal = Journal {
            path: path.to_owned(),
            file,
            lines: Vec::new(),
            interface_identities: NameMap::default(),
            missing_first_line: None,
            is_cut: false,
            made: None,
            guard: None,
        };
        journal.load()?;
        Ok(journal)
    }

    /// Reads the lines, also of a damaged journal.
    fn load(&mut self) -> Result<(), Error> {
        let failed = |error: io::Error| Error::Read(self.path.clone(), error);
        let mut bytes = Vec::new();
        self.file.seek(io::SeekFrom::Start(0)).map_err(failed)?;
        self.file.read_to_end(&mut bytes).map_err(failed)?;
        // Incomplete writes are removed at once, so half a line means damage.
        self.is_cut = bytes.last().is_some_and(|byte| *byte != b'\n');
        let mut lines = bytes.split_inclusive(|byte| *byte == b'\n').peekable();
        // Only the first line is the same in all versions; others may be of unknown kinds.
        if let Some(first) = lines.peek().copied().map(serde_json::from_slice::<First>)
            && let Ok(First { begin }) = first
            && !(1..=SCHEMA).contains(&begin.schema)
        {
            return Err(Error::Request(format!(
                "the journal {} was written by onrush {} in a format that this version cannot read: run revert with \
                 that version",
                self.path.display(),
                begin.version
            )));
        }
        for (at, text) in lines.enumerate() {
            // An unreadable line must not prevent undoing the others.
            let whole = text.strip_suffix(b"\n").map(serde_json::from_slice);
            let line = whole.and_then(Result::ok).unwrap_or_else(|| {
                let text = String::from_utf8_lossy(text);
                Line::Lost(UnreadableLine {
                    number: at + 1,
                    text: text.trim_end().chars().take(LOST_TEXT_MAX).collect(),
                })
            });
            if let Line::Bearer { name, identity } = &line {
                self.interface_identities
                    .record_name(name, identity, &mut self.lines);
            }
            self.lines.push(line);
        }
        let missing = match self.lines.first() {
            Some(Line::Begin { .. } | Line::Lost(_)) => return Ok(()),
            Some(_) => {
                "its first line, which identifies the boot of the machine, is missing, and perhaps more"
            }
            None => "the file is empty: its first line is missing, and perhaps more",
        };
        self.missing_first_line = Some(UnreadableLine {
            number: 1,
            text: missing.to_owned(),
        });
        Ok(())
    }

    fn is_of(&self, life: &JournalScope) -> bool {
        match self.lines.first() {
            Some(Line::Begin {
                boot, namespace, ..
            }) => life.is_of(boot, *namespace),
            // Damaged. The file disappears at reboot, and its name contains the number of this namespace.
            Some(_) | None => true,
        }
    }

    fn add(&mut self, line: Line) -> io::Result<()> {
        let mut text = line.text()?;
        if self.is_cut {
            text.insert(0, '\n');
        }
        let length = self.file.metadata()?.len();
        let mut written = self.file.write_all(text.as_bytes());
        written = written.and_then(|()| self.file.sync_data());
        if written.is_err() {
            // Remove the partial line that a full disk leaves.
            let _ = self.file.set_len(length);
        }
        written?;
        self.is_cut = false;
        self.lines.push(line);
        Ok(())
    }

    fn append(&mut self, line: Line) -> Result<(), Error> {
        self.add(line)
            .map_err(|error| Error::Write(self.path.clone(), error))
    }

    /// Uses the names of interfaces in these facts from now on, also for earlier changes.
    pub fn follow(&mut self, facts: &Facts) {
        self.interface_identities.follow(facts, &mut self.lines);
    }

    /// Unreadable lines.
    pub fn lost(&self) -> impl Iterator<Item = UnreadableLine> {
        self.missing_first_line
            .clone()
            .into_iter()
            .chain(history::lost(&self.lines))
    }

    /// Path of the journal.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Records the interface of a target, unless the journal contains it.
    fn record_interface(&mut self, target: &Target) -> Result<(), Error> {
        let stranger = target
            .interface()
            .and_then(|name| self.interface_identities.unrecorded(name));
        let Some((name, identity)) = stranger else {
            return Ok(());
        };
        self.interface_identities
            .record_name(&name, &identity, &mut self.lines);
        self.append(Line::Bearer { name, identity })
    }

    /// Begins a run and records its request.
    pub fn record_request(&mut self, request: &Request) -> Result<(), Error> {
        self.append(Line::Wish {
            request: request.clone(),
            run: Run(u64::from(std::process::id()) << 32 | self.lines.len() as u64),
        })?;
        self.note_guard()
    }

    /// Records that the run waits for confirmation.
    pub fn wait(&mut self) -> Result<(), Error> {
        self.append(Line::Waits)
    }

    /// Whether the last run waits for confirmation.
    pub fn is_waiting(&self) -> bool {
        let mut lines = self.lines.iter().rev();
        let last =
            lines.find(|line| matches!(line, Line::Waits | Line::Confirmed | Line::Wish { .. }));
        matches!(last, Some(Line::Waits))
    }

    /// Records a change about to be made.
    pub fn change(&mut self, target: &Target, before: &str, wrote: &str) -> Result<(), Error> {
        self.record_interface(target)?;
        self.append(Line::Change {
            target: target.clone(),
            before: before.to_owned(),
            wrote: wrote.to_owned(),
        })
    }

    /// Records a value that a reset of the device is about to lose.
    pub fn keep(&mut self, target: &Target, before: &str) -> Result<(), Error> {
        self.record_interface(target)?;
        self.append(Line::Keep {
            target: target.clone(),
            before: before.to_owned(),
        })
    }

    /// Records the value that the kernel kept after a change.
    pub fn kept(&mut self, target: &Target, kept: &str) -> Result<(), Error> {
        self.append(Line::Kept {
            target: target.clone(),
            kept: kept.to_owned(),
        })
    }

    /// Records that the kernel refused a change.
    pub fn refused(&mut self, target: &Target) -> Result<(), Error> {
        self.append(Line::Refused {
            target: target.clone(),
        })
    }

    /// Records that the changes are confirmed.
    pub fn confirm(&mut self) -> Result<(), Error> {
        self.append(Line::Confirmed)
    }

    /// Whether the last run is confirmed.
    pub fn is_confirmed(&self) -> bool {
        let mut lines = self.lines.iter().rev();
        lines.find_map(|line| match line {
            Line::Confirmed => Some(true),
            Line::Wish { .. } => Some(false),
            _ => None,
        }) == Some(true)
    }

    /// Changes in order of their first change, without refused ones.
    pub fn changes(&self) -> Vec<Change> {
        changes(&self.lines)
    }

    /// Removes the journal if later changes have undone all earlier ones.
    pub fn remove_if_undone(self) -> Result<(), Error> {
        let is_undone = |change: &Change| {
            change.is_seen
                && change
                    .ours
                    .as_ref()
                    .is_some_and(|ours| ours.trim() == change.before.trim())
        };
        match self.changes().iter().all(is_undone) && self.lost().next().is_none() {
            true => self.remove(),
            false => Ok(()),
        }
    }

    /// Renames a journal with unreadable lines, for examination, after the others are undone. Returns the new path.
    pub fn put_aside(self) -> Result<PathBuf, Error> {
        let failed = |error: io::Error| Error::Write(self.path.clone(), error);
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        let aside = |at: usize| self.path.with_file_name(format!("{name}.damaged-{at}"));
        // Earlier ones are kept.
        let mut free = (1..)
            .map(aside)
            .filter(|path| path.symlink_metadata().is_err());
        let path = free.next().expect("the range has no end");
        fs::rename(&self.path, &path).map_err(failed)?;
        Ok(path)
    }

    /// Removes the journal, since no changes are left.
    pub fn remove(self) -> Result<(), Error> {
        fs::remove_file(&self.path).map_err(|error| Error::Write(self.path.clone(), error))?;
        if let Some(made) = &self.made {
            // The directory may contain other files by now.
            let _ = fs::remove_dir(made);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
