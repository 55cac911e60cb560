//! What was changed, written down before it is changed, so that a crash at any moment can be undone.
//!
//! One line of JSON for each event, in a file that dies with the boot as what it describes does. A line is on the disk
//! before the kernel hears of the change: a line that was cut off stands for a change that was never made.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, OFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::life::Life;
use super::resets_queues;
use crate::Error;
use crate::advise::{Request, Target};
use crate::tree;

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

/// What a journal says to who only wants to know.
#[derive(Debug)]
pub struct Glance {
    /// As [`Journal::changes`].
    pub changes: Vec<Change>,
    /// The run that waits to be confirmed, if the last one does.
    pub waiting: Option<Run>,
    /// Whether somebody has the journal in this moment: the changes are not the last ones.
    pub is_held: bool,
}

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
    /// Where the journal is, below a root, whose links stay below it. Namespaces share /run but not their interfaces, so
    /// each has its own.
    pub fn path_below(root: &Path) -> Result<PathBuf, Error> {
        let directory =
            tree::open_root(root).map_err(|error| Error::Read(root.to_owned(), error))?;
        let namespace = tree::link_below(&directory, "/proc/self/ns/net").unwrap_or_default();
        let digits: String = namespace.chars().filter(char::is_ascii_digit).collect();
        let name = match digits.is_empty() {
            true => "onrush-tune.journal".to_owned(),
            false => format!("onrush-tune.{digits}.journal"),
        };
        tree::place_below(root, &format!("run/{name}"))
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
        let file = open_locked(path, waits).map_err(failed)?;
        let made = directory.map(Path::to_owned);
        let mut journal = Journal {
            path: path.to_owned(),
            file,
            lines: Vec::new(),
            made,
        };
        let (whole, length) = journal.load()?;
        if whole < length {
            // The last line was cut off: what it announces was not done.
            journal.file.set_len(whole).map_err(failed)?;
        }
        let is_ours = journal.is_of(&life);
        if !is_ours {
            journal.begin(&life).map_err(failed)?;
        } else if let Some(Line::Begin { made, .. }) = journal.lines.first() {
            journal.made = journal.made.take().or_else(|| made.clone());
        }
        Ok(journal)
    }

    /// Looks into the journal, and neither waits for who has it nor changes it; none when nothing is applied. It takes
    /// no right but to read the file.
    pub fn glance(path: &Path, life: impl Into<Life>) -> Result<Option<Glance>, Error> {
        let file = match opening().open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file.map_err(|error| Error::Read(path.to_owned(), error))?,
        };
        // Shared, so that two who look do not take each other for one who changes something; gone with the file.
        let is_held = match rustix::fs::flock(&file, FlockOperation::NonBlockingLockShared) {
            Ok(()) => false,
            Err(Errno::WOULDBLOCK) => true,
            Err(error) => return Err(Error::Read(path.to_owned(), error.into())),
        };
        let mut journal = Journal {
            path: path.to_owned(),
            file,
            lines: Vec::new(),
            made: None,
        };
        journal.load()?;
        Ok(journal.is_of(&life.into()).then(|| Glance {
            changes: journal.changes(),
            waiting: journal.last_run().filter(|_| journal.is_waiting()),
            is_held,
        }))
    }

    /// Whether there is a journal at all.
    pub fn exists(path: &Path) -> bool {
        path.exists()
    }

    /// Reads the lines that are whole. Returns how many bytes they are, and how many there are.
    fn load(&mut self) -> Result<(u64, u64), Error> {
        let failed = |error: io::Error| Error::Read(self.path.clone(), error);
        let mut bytes = Vec::new();
        self.file.seek(io::SeekFrom::Start(0)).map_err(failed)?;
        self.file.read_to_end(&mut bytes).map_err(failed)?;
        // It may be cut off in the middle of a letter.
        let last = bytes.iter().rposition(|byte| *byte == b'\n');
        let whole = last.map_or(0, |last| last + 1);
        let text =
            str::from_utf8(&bytes[..whole]).map_err(|error| failed(io::Error::other(error)))?;
        let mut lines = text.lines().peekable();
        // Only the first line is the same in every format: the others may be of kinds that are not known here.
        if let Some(first) = lines.peek().copied().map(serde_json::from_str::<First>)
            && let Ok(First { begin }) = first
            && begin.schema != SCHEMA
        {
            return Err(Error::Request(format!(
                "the journal {} is of onrush {}, whose format this version does not know: revert with that",
                self.path.display(),
                begin.version
            )));
        }
        for line in lines {
            let line = serde_json::from_str(line).map_err(|error| failed(error.into()))?;
            self.lines.push(line);
        }
        Ok((whole as u64, bytes.len() as u64))
    }

    /// Whether it is about what still is.
    fn is_of(&self, life: &Life) -> bool {
        match self.lines.first() {
            Some(Line::Begin {
                boot, namespace, ..
            }) => life.is_of(boot, *namespace),
            _ => false,
        }
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
            Line::Refused { target } => {
                match pending.remove(target).flatten() {
                    Some(earlier) => drop(changes.insert(target.clone(), earlier)),
                    None => drop(changes.remove(target)),
                }
                forget_kept(target, &mut changes);
                order.retain(|known| changes.contains_key(known));
            }
            Line::Begin { .. } | Line::Wish { .. } | Line::Waits | Line::Confirmed => {}
        }
    }
    order
        .into_iter()
        .filter_map(|target| changes.remove(&target))
        .collect()
}

/// What a reset was about to lose, and did not: the change that makes it was refused, and there was no other.
fn forget_kept(refused: &Target, changes: &mut BTreeMap<Target, Change>) {
    let is_of_it = |target: &Target| target.interface() == refused.interface();
    let is_reset = |target: &Target| is_of_it(target) && resets_queues(target);
    if resets_queues(refused) && !changes.keys().any(is_reset) {
        changes.retain(|target, change| change.ours.is_some() || !is_of_it(target));
    }
}

/// A journal is a file of ours, never a link to one.
fn opening() -> OpenOptions {
    let mut options = OpenOptions::new();
    options
        .read(true)
        .custom_flags(OFlags::NOFOLLOW.bits().cast_signed());
    options
}

/// Opens the file and waits for those who have it. Whoever had it may have removed it: a file that nobody finds any more
/// is no journal, so it is opened again.
fn open_locked(path: &Path, waits: impl FnOnce()) -> io::Result<File> {
    let mut waits = Some(waits);
    loop {
        let file = opening().append(true).create(true).open(path)?;
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) => {
                if let Some(waits) = waits.take() {
                    waits();
                }
                rustix::fs::flock(&file, FlockOperation::LockExclusive)?;
            }
            outcome => outcome?,
        }
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
    use crate::facts::ethtool::Knob;

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
        journal.change(&setting("cä"), "3\n", "4").expect("noted");
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

    #[test]
    fn a_journal_of_a_newer_format_says_whose_it_is_whatever_its_lines_are() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("j");
        let newer = "{\"begin\":{\"schema\":2,\"version\":\"9.9.0\",\"life\":{}}}\n{\"moon\":{\"phase\":3}}\n";
        fs::write(&path, newer).expect("written");
        let errors = [
            Journal::open(&path, "b").expect_err("not known"),
            Journal::glance(&path, "b").expect_err("not known"),
        ];
        for error in errors {
            let words =
                "is of onrush 9.9.0, whose format this version does not know: revert with that";
            assert!(error.to_string().contains(words), "{error}");
        }
        assert_eq!(fs::read_to_string(&path).expect("read"), newer);
    }

    #[test]
    fn a_glance_changes_nothing_and_waits_for_nobody() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("j");
        let glance = |life: &str| Journal::glance(&path, life).expect("it can be read");
        assert!(glance("b").is_none());
        let mut journal = Journal::open(&path, "b").expect("open");
        journal.change(&setting("a"), "1\n", "2").expect("noted");
        let held = glance("b").expect("a journal");
        assert!(held.is_held);
        assert_eq!(held.changes, journal.changes());
        drop(journal);
        // Cut off in the middle of a line, as by a crash, or by who is writing it.
        let mut text = fs::read(&path).expect("read");
        text.extend(b"{\"change\":{\"tar");
        fs::write(&path, &text).expect("written");
        let left = glance("b").expect("a journal");
        assert_eq!((left.changes.len(), left.is_held), (1, false));
        assert!(glance("c").is_none(), "of another boot");
        assert_eq!(fs::read(&path).expect("read"), text);
    }

    #[test]
    fn who_waits_for_the_journal_is_told_before() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("j");
        let holder = Journal::open_telling(&path, "b", || panic!("nobody has it")).expect("open");
        let mut holder = Some(holder);
        // What is told is told before the wait, so that it can end it.
        Journal::open_telling(&path, "b", || drop(holder.take())).expect("open");
        assert!(holder.is_none());
    }

    fn channels(interface: &str) -> Target {
        Target::Driver {
            interface: interface.to_owned(),
            knob: Knob::ChannelsCombined,
        }
    }

    #[test]
    fn what_a_refused_reset_did_not_lose_is_not_given_back() {
        let directory = tempfile::tempdir().expect("a directory");
        let steering = |interface: &str| Target::Steering {
            interface: interface.to_owned(),
            queue: 0,
        };
        let mut journal = Journal::open(&directory.path().join("j"), "b").expect("open");
        for interface in ["eth0", "eth1"] {
            journal.keep(&steering(interface), "f\n").expect("noted");
            let target = channels(interface);
            journal.change(&target, "8", "4").expect("noted");
        }
        journal.refused(&channels("eth0")).expect("noted");
        journal.kept(&channels("eth1"), "4").expect("noted");
        let targets = |journal: &Journal| {
            let changes = journal.changes().into_iter();
            changes.map(|change| change.target).collect::<Vec<_>>()
        };
        let of_the_other = [steering("eth1"), channels("eth1")];
        assert_eq!(targets(&journal), of_the_other);
        // What one reset has lost is lost, though the next is refused.
        journal.change(&channels("eth1"), "4", "2").expect("noted");
        journal.refused(&channels("eth1")).expect("noted");
        assert_eq!(targets(&journal), of_the_other);
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
