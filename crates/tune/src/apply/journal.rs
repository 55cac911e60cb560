//! What was changed, written down before it is changed, so that a crash at any moment can be undone.
//!
//! One line of JSON for each event, in a file that dies with the boot as what it describes does. A line is on the disk
//! before the kernel hears of the change: a line that was cut off stands for a change that was never made.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::FlockOperation;
use serde::{Deserialize, Serialize};

use super::life::Life;
use crate::Error;
use crate::advise::{Request, Target};

/// Version of the format.
const SCHEMA: u32 = 1;

/// The journal of one machine, or of one network namespace of it. Others wait at `open` while it exists.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
    lines: Vec<Line>,
    /// A directory that was made for it and goes with it.
    made: Option<PathBuf>,
}

/// One event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    /// The first line.
    Begin {
        schema: u32,
        boot: String,
        /// The cookie of the network namespace; none where the kernel did not say, and in journals of older versions.
        #[serde(default)]
        namespace: Option<u64>,
        version: String,
        made: Option<PathBuf>,
    },
    /// What was wished for: a run begins.
    Wish {
        request: Request,
        #[serde(default)]
        run: Run,
    },
    /// The run waits to be confirmed, and is undone otherwise.
    Waits,
    /// A change is about to be made.
    Change {
        target: Target,
        before: String,
        wrote: String,
    },
    /// A reset of the device is about to lose this, which is to be given back with it.
    Keep { target: Target, before: String },
    /// What the kernel kept of a change.
    Kept { target: Target, kept: String },
    /// The kernel took nothing of a change.
    Refused { target: Target },
    /// The changes are to stay.
    Confirmed,
}

/// One run of those that a journal tells of: an apply, or a step of a search. Its number is that of the process and where
/// it stands, so that no other has it while the process lives, even when the journal went and came again meanwhile.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Run(u64);

/// All that happened to one target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// What was changed.
    pub target: Target,
    /// What was there before the first change, byte for byte.
    pub before: String,
    /// What should be there now: what the kernel kept of the last change, or what was written when the writer died
    /// before it could look. `None` for what a reset of the device lost.
    pub ours: Option<String>,
    /// Whether it was seen there: false for the change in whose middle its writer died.
    pub is_seen: bool,
}

impl Journal {
    /// Where the journal is, below a root. Namespaces share /run but not their interfaces, so each has its own.
    pub fn path_below(root: &Path) -> PathBuf {
        let namespace = fs::read_link(root.join("proc/self/ns/net")).unwrap_or_default();
        let digits: String = namespace
            .to_string_lossy()
            .chars()
            .filter(char::is_ascii_digit)
            .collect();
        let name = match digits.is_empty() {
            true => "onrush-tune.journal".to_owned(),
            false => format!("onrush-tune.{digits}.journal"),
        };
        root.join("run").join(name)
    }

    /// Opens the journal, or begins one. A journal of another life of the machine or of the network namespace describes
    /// what is gone, and begins anew.
    pub fn open(path: &Path, life: impl Into<Life>) -> Result<Journal, Error> {
        let life = life.into();
        let failed = |error: io::Error| Error::Write(path.to_owned(), error);
        let directory = path
            .parent()
            .filter(|directory| !directory.as_os_str().is_empty() && !directory.exists());
        if let Some(directory) = directory {
            fs::create_dir(directory).map_err(failed)?;
        }
        let file = open_locked(path).map_err(failed)?;
        let made = directory.map(Path::to_owned);
        let mut journal = Journal {
            path: path.to_owned(),
            file,
            lines: Vec::new(),
            made,
        };
        journal
            .load()
            .map_err(|error| Error::Read(path.to_owned(), error))?;
        let is_ours = match journal.lines.first() {
            Some(Line::Begin {
                schema,
                boot,
                namespace,
                version,
                ..
            }) => {
                if *schema != SCHEMA {
                    return Err(Error::Request(format!(
                        "the journal {} is of onrush {version}, whose format this version does not know: revert with that",
                        path.display()
                    )));
                }
                life.is_of(boot, *namespace)
            }
            _ => false,
        };
        if !is_ours {
            journal.begin(&life).map_err(failed)?;
        } else if let Some(Line::Begin { made, .. }) = journal.lines.first() {
            journal.made = journal.made.take().or_else(|| made.clone());
        }
        Ok(journal)
    }

    /// Whether there is a journal at all.
    pub fn exists(path: &Path) -> bool {
        path.exists()
    }

    fn load(&mut self) -> io::Result<()> {
        let mut text = String::new();
        self.file.seek(io::SeekFrom::Start(0))?;
        self.file.read_to_string(&mut text)?;
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        if whole < text.len() {
            // The last line was cut off: what it announces was not done.
            self.file.set_len(whole as u64)?;
        }
        for line in text[..whole].lines() {
            self.lines
                .push(serde_json::from_str(line).map_err(io::Error::other)?);
        }
        Ok(())
    }

    fn begin(&mut self, life: &Life) -> io::Result<()> {
        self.file.set_len(0)?;
        self.lines.clear();
        self.add(Line::Begin {
            schema: SCHEMA,
            boot: life.boot.clone(),
            namespace: life.namespace,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            made: self.made.clone(),
        })
    }

    fn add(&mut self, line: Line) -> io::Result<()> {
        let mut text = serde_json::to_string(&line).map_err(io::Error::other)?;
        text.push('\n');
        self.file.write_all(text.as_bytes())?;
        self.file.sync_data()?;
        self.lines.push(line);
        Ok(())
    }

    fn note(&mut self, line: Line) -> Result<(), Error> {
        self.add(line)
            .map_err(|error| Error::Write(self.path.clone(), error))
    }

    /// Notes what was wished for: a run begins.
    pub fn wish(&mut self, request: &Request) -> Result<(), Error> {
        self.note(Line::Wish {
            request: request.clone(),
            run: Run(u64::from(std::process::id()) << 32 | self.lines.len() as u64),
        })
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

    /// The run that began last.
    pub fn last_run(&self) -> Option<Run> {
        self.lines.iter().rev().find_map(|line| match line {
            Line::Wish { run, .. } => Some(*run),
            _ => None,
        })
    }

    /// Where a run begins.
    fn beginning(&self, run: Run) -> Option<usize> {
        let is_it = |line: &Line| matches!(line, Line::Wish { run: found, .. } if *found == run);
        self.lines.iter().position(is_it)
    }

    /// What was changed since a run began: beside what was there then. Nothing when the journal does not know the run.
    pub fn changes_since(&self, run: Run) -> Vec<Change> {
        let beginning = self.beginning(run);
        beginning.map_or_else(Vec::new, |at| changes(&self.lines[at..]))
    }

    /// Forgets a run and everything after it, which was undone; the whole journal when nothing is left in it.
    pub fn forget_since(mut self, run: Run) -> Result<(), Error> {
        let Some(at) = self.beginning(run) else {
            return Ok(());
        };
        self.lines.truncate(at);
        if self.changes().is_empty() {
            return self.remove();
        }
        let forget = |file: &mut File| -> io::Result<()> {
            let mut text = String::new();
            file.seek(io::SeekFrom::Start(0))?;
            file.read_to_string(&mut text)?;
            let kept: usize = text.split_inclusive('\n').take(at).map(str::len).sum();
            file.set_len(kept as u64)?;
            file.sync_data()
        };
        forget(&mut self.file).map_err(|error| Error::Write(self.path.clone(), error))
    }

    /// Notes a change that is about to be made.
    pub fn change(&mut self, target: &Target, before: &str, wrote: &str) -> Result<(), Error> {
        self.note(Line::Change {
            target: target.clone(),
            before: before.to_owned(),
            wrote: wrote.to_owned(),
        })
    }

    /// Notes what a reset of the device is about to lose.
    pub fn keep(&mut self, target: &Target, before: &str) -> Result<(), Error> {
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

    /// What was wished for last.
    pub fn request(&self) -> Option<&Request> {
        self.lines.iter().rev().find_map(|line| match line {
            Line::Wish { request, .. } => Some(request),
            _ => None,
        })
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
        match self.changes().iter().all(is_undone) {
            true => self.remove(),
            false => Ok(()),
        }
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

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// What some lines say is changed, in the order of first changes; without what was refused.
fn changes(lines: &[Line]) -> Vec<Change> {
    let mut order: Vec<Target> = Vec::new();
    let mut changes: BTreeMap<Target, Change> = BTreeMap::new();
    // What was there before a change that may yet be refused.
    let mut pending: BTreeMap<Target, Option<Change>> = BTreeMap::new();
    for line in lines {
        match line {
            Line::Change {
                target,
                before,
                wrote,
            } => {
                pending.insert(target.clone(), changes.get(target).cloned());
                if !order.contains(target) {
                    order.push(target.clone());
                }
                let before = changes
                    .get(target)
                    .map_or(before, |change| &change.before)
                    .clone();
                let change = Change {
                    target: target.clone(),
                    before,
                    ours: Some(wrote.clone()),
                    is_seen: false,
                };
                changes.insert(target.clone(), change);
            }
            Line::Keep { target, before } => {
                if !order.contains(target) {
                    order.push(target.clone());
                    let change = Change {
                        target: target.clone(),
                        before: before.clone(),
                        ours: None,
                        is_seen: false,
                    };
                    changes.insert(target.clone(), change);
                }
            }
            Line::Kept { target, kept } => {
                if let Some(change) = changes.get_mut(target) {
                    change.ours = Some(kept.clone());
                    change.is_seen = true;
                }
            }
            Line::Refused { target } => match pending.remove(target).flatten() {
                Some(earlier) => drop(changes.insert(target.clone(), earlier)),
                None => {
                    changes.remove(target);
                    order.retain(|known| known != target);
                }
            },
            Line::Begin { .. } | Line::Wish { .. } | Line::Waits | Line::Confirmed => {}
        }
    }
    order
        .into_iter()
        .filter_map(|target| changes.remove(&target))
        .collect()
}

/// Opens the file and waits for those who have it. Whoever had it may have removed it: a file that nobody finds any more
/// is no journal, so it is opened again.
fn open_locked(path: &Path) -> io::Result<File> {
    loop {
        let mut options = OpenOptions::new();
        let file = options.read(true).append(true).create(true).open(path)?;
        rustix::fs::flock(&file, FlockOperation::LockExclusive)?;
        let is_found = path.metadata().is_ok_and(|found| {
            file.metadata()
                .is_ok_and(|ours| (ours.dev(), ours.ino()) == (found.dev(), found.ino()))
        });
        if is_found {
            return Ok(file);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setting(file: &str) -> Target {
        Target::Setting {
            file: file.to_owned(),
        }
    }

    #[test]
    fn a_journal_is_read_back_whatever_was_cut_off_its_end() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("run/j");
        let mut journal = Journal::open(&path, "b").expect("open");
        journal.change(&setting("a"), "1\n", "2").expect("noted");
        journal.kept(&setting("a"), "2\n").expect("noted");
        journal.change(&setting("c"), "3\n", "4").expect("noted");
        drop(journal);
        let whole = fs::read(&path).expect("read");
        for end in 0..=whole.len() {
            fs::write(&path, &whole[..end]).expect("written");
            let journal = Journal::open(&path, "b").expect("open");
            let changes = journal.changes();
            let expected = match whole[..end].iter().filter(|byte| **byte == b'\n').count() {
                0 | 1 => 0,
                2 | 3 => 1,
                _ => 2,
            };
            assert_eq!(changes.len(), expected, "cut at {end}");
            assert!(changes.iter().all(|change| change.before != "2\n"));
        }
    }

    #[test]
    fn the_first_before_and_the_last_kept_count() {
        let directory = tempfile::tempdir().expect("a directory");
        let mut journal = Journal::open(&directory.path().join("j"), "b").expect("open");
        let target = setting("a");
        journal.change(&target, "1\n", "2").expect("noted");
        journal.kept(&target, "2\n").expect("noted");
        journal.change(&target, "2\n", "3").expect("noted");
        journal.refused(&target).expect("noted");
        journal
            .change(&setting("refused"), "1", "2")
            .expect("noted");
        journal.refused(&setting("refused")).expect("noted");
        let change = Change {
            target,
            before: "1\n".to_owned(),
            ours: Some("2\n".to_owned()),
            is_seen: true,
        };
        assert_eq!(journal.changes(), [change]);
    }

    #[test]
    fn a_journal_of_another_boot_is_forgotten() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("j");
        Journal::open(&path, "b")
            .expect("open")
            .change(&setting("a"), "1", "2")
            .expect("noted");
        assert_eq!(Journal::open(&path, "b").expect("open").changes().len(), 1);
        assert_eq!(Journal::open(&path, "c").expect("open").changes(), []);
    }

    /// A journal of one change, written in a network namespace, and how many changes it has in another.
    fn changes_after(wrote: Option<u64>, reads: Option<u64>) -> usize {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("j");
        let life = |namespace| Life {
            namespace,
            ..Life::from("b")
        };
        let mut journal = Journal::open(&path, life(wrote)).expect("open");
        journal.change(&setting("a"), "1", "2").expect("noted");
        drop(journal);
        let journal = Journal::open(&path, life(reads)).expect("open");
        journal.changes().len()
    }

    #[test]
    fn a_journal_of_a_dead_namespace_is_not_that_of_a_new_one_with_its_number() {
        assert_eq!(changes_after(Some(4_097), Some(4_097)), 1);
        assert_eq!(changes_after(Some(4_097), Some(4_098)), 0);
        // Nobody knows: an older kernel, or a journal of an older version.
        assert_eq!(changes_after(None, Some(4_098)), 1);
        assert_eq!(changes_after(Some(4_097), None), 1);
    }

    #[test]
    fn a_journal_of_an_older_version_says_nothing_of_its_namespace() {
        let line = r#"{"begin":{"schema":1,"boot":"b","version":"0.1.0","made":null}}"#;
        let line: Line = serde_json::from_str(line).expect("a line");
        assert!(matches!(
            line,
            Line::Begin {
                namespace: None,
                ..
            }
        ));
    }
}
