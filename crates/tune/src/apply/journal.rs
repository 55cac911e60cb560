//! What was changed, written down before it is changed, so that a crash at any moment can be undone.
//!
//! One line of JSON for each event, in a file that dies with the boot as what it describes does. A line is on the disk
//! before the kernel hears of the change, and one that could not be written whole is taken back: a journal without its
//! beginning, or with half a line at its end, was damaged, and is kept beside what it was. It is never without its first
//! line, so that an empty one was damaged, too.

mod bearers;
mod glance;
mod guard;
mod history;
mod identity;
mod memory;
mod place;
mod runs;

use std::fs::{self, File};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use self::bearers::Bearers;
use self::history::{Line, SCHEMA, changes};
use super::life::Life;
use crate::Error;
use crate::advise::{Request, Target};
use crate::facts::Facts;
use crate::tree::below;

pub use glance::Glance;
pub use guard::Guard;
pub use history::{Change, Lost, Run};
pub use memory::Memory;

/// How much of a line that cannot be read is shown.
const LOST_TEXT_MAX: usize = 120;

/// The journal of one machine, or of one network namespace of it. Others wait at `open` while it exists.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
    lines: Vec<Line>,
    /// Who bears the names in `lines`.
    bearers: Bearers,
    /// That it does not begin as every journal does.
    headless: Option<Lost>,
    /// Whether its last line was cut off: what is added begins a new one.
    is_cut: bool,
    /// A directory that was made for it and goes with it.
    made: Option<PathBuf>,
    /// The process that undoes the runs started from now on.
    guard: Option<Guard>,
}

/// What the first line says in the journals of all versions.
#[derive(Deserialize)]
struct First {
    begin: Begun,
}

/// Which version began it.
#[derive(Deserialize)]
struct Begun {
    schema: u32,
    version: String,
}

impl Journal {
    /// Where the journal is, below a root, whose links stay below it. Namespaces share /run but not their interfaces, so
    /// each has its own.
    pub fn path_below(root: &Path) -> Result<PathBuf, Error> {
        let directory =
            below::open_root(root).map_err(|error| Error::Read(root.to_owned(), error))?;
        let namespace = below::link_below(&directory, "/proc/self/ns/net").unwrap_or_default();
        let digits: String = namespace.chars().filter(char::is_ascii_digit).collect();
        let name = match digits.is_empty() {
            true => "onrush-tune.journal".to_owned(),
            false => format!("onrush-tune.{digits}.journal"),
        };
        below::place_below(root, &format!("run/{name}"))
    }

    /// Opens the journal, or begins one. A journal of another life of the machine or of the network namespace describes
    /// what is gone, and begins anew.
    pub fn open(path: &Path, life: impl Into<Life>) -> Result<Journal, Error> {
        Journal::open_telling(path, life, || {})
    }

    /// The same; `waits` is called when another has the journal, before it is waited for.
    pub fn open_telling(
        path: &Path,
        life: impl Into<Life>,
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
        let file = place::open_or_begin(path, &first, waits).map_err(failed)?;
        let mut journal = Journal::read(path, file)?;
        if !journal.is_of(&life) {
            let file = place::begin_anew(path, &first).map_err(failed)?;
            journal = Journal::read(path, file)?;
        }
        if let Some(Line::Begin { made, .. }) = journal.lines.first() {
            journal.made = made.clone();
        }
        Ok(journal)
    }

    /// Opens the journal to undo what it says; none when there is none that is of this life. Where it cannot be written any
    /// more it is read: what was changed can be undone all the same.
    pub fn open_to_undo(
        path: &Path,
        life: impl Into<Life>,
        waits: impl FnOnce(),
    ) -> Result<Option<Journal>, Error> {
        let failed = |error: io::Error| Error::Write(path.to_owned(), error);
        let Some(file) = place::open_to_undo(path, waits).map_err(failed)? else {
            return Ok(None);
        };
        let mut journal = Journal::read(path, file)?;
        if !journal.is_of(&life.into()) {
            // It says nothing of what is now; who begins a journal does so in its place.
            let _ = journal.remove();
            return Ok(None);
        }
        if let Some(Line::Begin { made, .. }) = journal.lines.first() {
            journal.made = made.clone();
        }
        Ok(Some(journal))
    }

    /// What is in an open file.
    fn read(path: &Path, file: File) -> Result<Journal, Error> {
        let mut journal = Journal {
            path: path.to_owned(),
            file,
            lines: Vec::new(),
            bearers: Bearers::default(),
            headless: None,
            is_cut: false,
            made: None,
            guard: None,
        };
        journal.load()?;
        Ok(journal)
    }

    /// Reads the lines, also of a journal that lacks its beginning or its end.
    fn load(&mut self) -> Result<(), Error> {
        let failed = |error: io::Error| Error::Read(self.path.clone(), error);
        let mut bytes = Vec::new();
        self.file.seek(io::SeekFrom::Start(0)).map_err(failed)?;
        self.file.read_to_end(&mut bytes).map_err(failed)?;
        // What cannot be written is taken back at once: half a line is damage.
        self.is_cut = bytes.last().is_some_and(|byte| *byte != b'\n');
        let mut lines = bytes.split_inclusive(|byte| *byte == b'\n').peekable();
        // Only the first line is the same in every format: the others may be of kinds that are not known here.
        if let Some(first) = lines.peek().copied().map(serde_json::from_slice::<First>)
            && let Ok(First { begin }) = first
            && !(1..=SCHEMA).contains(&begin.schema)
        {
            return Err(Error::Request(format!(
                "the journal {} is of onrush {}, whose format this version does not know: revert with that",
                self.path.display(),
                begin.version
            )));
        }
        for (at, text) in lines.enumerate() {
            // One line that cannot be read must not keep the others from being undone.
            let whole = text.strip_suffix(b"\n").map(serde_json::from_slice);
            let line = whole.and_then(Result::ok).unwrap_or_else(|| {
                let text = String::from_utf8_lossy(text);
                Line::Lost(Lost {
                    number: at + 1,
                    text: text.trim_end().chars().take(LOST_TEXT_MAX).collect(),
                })
            });
            if let Line::Bearer { name, identity } = &line {
                self.bearers.met(name, identity, &mut self.lines);
            }
            self.lines.push(line);
        }
        let missing = match self.lines.first() {
            Some(Line::Begin { .. } | Line::Lost(_)) => return Ok(()),
            Some(_) => {
                "the line that says of which start of the machine it is, and maybe more, is missing before it"
            }
            None => "the file is empty: its first line, and maybe more, is missing",
        };
        self.headless = Some(Lost {
            number: 1,
            text: missing.to_owned(),
        });
        Ok(())
    }

    /// Whether it is about what still is.
    fn is_of(&self, life: &Life) -> bool {
        match self.lines.first() {
            Some(Line::Begin {
                boot, namespace, ..
            }) => life.is_of(boot, *namespace),
            // It cannot be read, or is missing. The file dies with the boot, and has the number of this namespace.
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
            // A full disk takes half a line. What comes later must not be written behind it.
            let _ = self.file.set_len(length);
        }
        written?;
        self.is_cut = false;
        self.lines.push(line);
        Ok(())
    }

    fn note(&mut self, line: Line) -> Result<(), Error> {
        self.add(line)
            .map_err(|error| Error::Write(self.path.clone(), error))
    }

    /// From now on interfaces are told by these facts: what was changed before is found under the names that they have
    /// now.
    pub fn follow(&mut self, facts: &Facts) {
        self.bearers.follow(facts, &mut self.lines);
    }

    /// Lines that cannot be read.
    pub fn lost(&self) -> impl Iterator<Item = Lost> {
        self.headless
            .clone()
            .into_iter()
            .chain(history::lost(&self.lines))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Notes who bears the name of a target's interface, when that is not known yet.
    fn introduce(&mut self, target: &Target) -> Result<(), Error> {
        let stranger = target
            .interface()
            .and_then(|name| self.bearers.stranger(name));
        let Some((name, identity)) = stranger else {
            return Ok(());
        };
        self.bearers.met(&name, &identity, &mut self.lines);
        self.note(Line::Bearer { name, identity })
    }

    /// Notes what was wished for: a run begins.
    pub fn wish(&mut self, request: &Request) -> Result<(), Error> {
        self.note(Line::Wish {
            request: request.clone(),
            run: Run(u64::from(std::process::id()) << 32 | self.lines.len() as u64),
        })?;
        self.note_guard()
    }

    /// Notes that the run waits to be confirmed.
    pub fn wait(&mut self) -> Result<(), Error> {
        self.note(Line::Waits)
    }

    /// Whether the last run waits to be confirmed, and has not been.
    pub fn is_waiting(&self) -> bool {
        let mut lines = self.lines.iter().rev();
        let last =
            lines.find(|line| matches!(line, Line::Waits | Line::Confirmed | Line::Wish { .. }));
        matches!(last, Some(Line::Waits))
    }

    /// Notes a change that is about to be made.
    pub fn change(&mut self, target: &Target, before: &str, wrote: &str) -> Result<(), Error> {
        self.introduce(target)?;
        self.note(Line::Change {
            target: target.clone(),
            before: before.to_owned(),
            wrote: wrote.to_owned(),
        })
    }

    /// Notes what a reset of the device is about to lose.
    pub fn keep(&mut self, target: &Target, before: &str) -> Result<(), Error> {
        self.introduce(target)?;
        self.note(Line::Keep {
            target: target.clone(),
            before: before.to_owned(),
        })
    }

    /// Notes what the kernel kept of a change.
    pub fn kept(&mut self, target: &Target, kept: &str) -> Result<(), Error> {
        self.note(Line::Kept {
            target: target.clone(),
            kept: kept.to_owned(),
        })
    }

    /// Notes that the kernel refused a change.
    pub fn refused(&mut self, target: &Target) -> Result<(), Error> {
        self.note(Line::Refused {
            target: target.clone(),
        })
    }

    /// Notes that the changes are to stay.
    pub fn confirm(&mut self) -> Result<(), Error> {
        self.note(Line::Confirmed)
    }

    /// Whether the changes are to stay: said after the last wish.
    pub fn is_confirmed(&self) -> bool {
        let mut lines = self.lines.iter().rev();
        lines.find_map(|line| match line {
            Line::Confirmed => Some(true),
            Line::Wish { .. } => Some(false),
            _ => None,
        }) == Some(true)
    }

    /// What is changed, in the order of first changes; without what was refused.
    pub fn changes(&self) -> Vec<Change> {
        changes(&self.lines)
    }

    /// Removes the journal when each change has been undone by another.
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

    /// Puts the journal aside when lines of it cannot be read: what the others say is undone, and somebody may still find
    /// out what those said. Returns where it is then.
    pub fn put_aside(self) -> Result<PathBuf, Error> {
        let failed = |error: io::Error| Error::Write(self.path.clone(), error);
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        let aside = |at: usize| self.path.with_file_name(format!("{name}.damaged-{at}"));
        // What was put aside before stays.
        let mut free = (1..)
            .map(aside)
            .filter(|path| path.symlink_metadata().is_err());
        let path = free.next().expect("numbers do not end");
        fs::rename(&self.path, &path).map_err(failed)?;
        Ok(path)
    }

    /// Removes the journal: nothing is changed any more.
    pub fn remove(self) -> Result<(), Error> {
        fs::remove_file(&self.path).map_err(|error| Error::Write(self.path.clone(), error))?;
        if let Some(made) = &self.made {
            // Others may have put something there since.
            let _ = fs::remove_dir(made);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
