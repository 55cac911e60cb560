//! The trials of a run, written as they are made: what is left of a run that ends before its end, and what `--resume`
//! goes on from.
//!
//! `trials.jsonl` has a line about the run and then one for each trial. A line that has no end was being written when
//! the run ended: its trial is made again.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use onrush_file::Unreadable;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::environment::Environment;
use crate::error::Error;
use crate::limits::JOURNAL_BYTES_MAX;
use crate::options::Choice;
use crate::options::Seed;
use crate::outcome::{Trial, WorkOutcome};
use crate::scenario::{Experiment, Point, title};

/// Its name in the directory of the results.
const NAME: &str = "trials.jsonl";

/// The version of the format.
const SCHEMA: u32 = 1;

/// What a run was begun with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Header {
    schema: u32,
    /// The experiment file as it was named.
    pub file: PathBuf,
    /// The directory it lies in.
    pub directory: PathBuf,
    /// Its text.
    pub experiment: String,
    /// How much of it is measured.
    pub choice: Choice,
    /// The order of its trials.
    pub seed: Seed,
    /// When it began, seconds since 1970.
    pub started: f64,
    /// Kernel, CPU and the versions of programs: trials on others cannot be compared with these.
    measured_on: BTreeMap<String, String>,
}

impl Header {
    /// Of a run that begins.
    pub fn new(
        experiment: &Experiment,
        file: PathBuf,
        choice: Choice,
        seed: Seed,
        started: f64,
    ) -> Header {
        Header {
            schema: SCHEMA,
            file,
            directory: experiment.directory.clone(),
            experiment: experiment.source.clone(),
            choice,
            seed,
            started,
            measured_on: BTreeMap::new(),
        }
    }
}

/// A trial as it is kept.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Line {
    pub(super) work: String,
    #[serde(default, skip_serializing_if = "Point::is_empty")]
    pub(super) point: Point,
    pub(super) variant: String,
    pub(super) trial: Trial,
    /// Command lines of the trial, as in `environment.json`.
    commands: BTreeMap<String, Vec<String>>,
    /// Files that were written for it.
    files: BTreeMap<String, String>,
}

/// An earlier run that is gone on with.
#[derive(Debug)]
pub struct Earlier {
    /// What it was begun with.
    pub header: Header,
    lines: Vec<Line>,
    /// Bytes of whole lines.
    length: u64,
}

impl Earlier {
    /// Reads what a run has left in its directory.
    ///
    /// # Errors
    /// When there is none, or it is damaged.
    pub fn read(directory: &Path) -> Result<Earlier, Error> {
        let path = directory.join(NAME);
        let text =
            onrush_file::read_text(&path, JOURNAL_BYTES_MAX).map_err(|source| match source {
                Unreadable::System(error) if error.kind() == io::ErrorKind::NotFound => {
                    Error::Resume(
                        directory.to_owned(),
                        format!(
                            "it has no {NAME}: expected the directory of a run that was interrupted"
                        ),
                    )
                }
                source => Error::Read(path.clone(), source),
            })?;
        let damaged = |line: usize, error: serde_json::Error| {
            let said = format!("{NAME}:{line}: {error}; start the experiment anew");
            Error::Resume(directory.to_owned(), said)
        };
        let whole = &text[..text.rfind('\n').map_or(0, |end| end + 1)];
        let mut lines = whole.lines().enumerate();
        let (_, first) = lines.next().unwrap_or((0, ""));
        let header: Header = serde_json::from_str(first).map_err(|error| damaged(1, error))?;
        if header.schema != SCHEMA {
            let said = format!(
                "{NAME} has version {} and this program writes {SCHEMA}: go on with the program that began it",
                header.schema
            );
            return Err(Error::Resume(directory.to_owned(), said));
        }
        let lines = lines
            .map(|(index, line)| {
                serde_json::from_str(line).map_err(|error| damaged(index + 1, error))
            })
            .collect::<Result<Vec<Line>, Error>>()?;
        for (index, line) in lines.iter().enumerate() {
            let is_same = |other: &&Line| {
                other.trial.round == line.trial.round
                    && (&other.work, &other.point, &other.variant)
                        == (&line.work, &line.point, &line.variant)
            };
            let is_twice = lines[..index].iter().any(|other| is_same(&other));
            if line.trial.round == 0 || is_twice {
                let said = format!(
                    "{NAME}:{}: round {} of `{}` / `{}` is there twice or none; start the experiment anew",
                    index + 2,
                    line.trial.round,
                    title(&line.work, &line.point),
                    line.variant
                );
                return Err(Error::Resume(directory.to_owned(), said));
            }
        }
        // Half a million years: what is beyond is no time of a clock.
        if !(0.0..1.6e13).contains(&header.started) {
            let said = format!("{NAME}:1: `started` is no time; start the experiment anew");
            return Err(Error::Resume(directory.to_owned(), said));
        }
        Ok(Earlier {
            header,
            lines,
            length: whole.len() as u64,
        })
    }
}

/// What is written while the run goes on.
pub(super) struct Journal {
    path: PathBuf,
    /// None when it could not be written: the run goes on without it.
    file: Option<File>,
    /// Titles with variants whose command lines stand there.
    told: Vec<(String, String)>,
}

impl Journal {
    /// Begins one; an earlier one in the same directory is replaced.
    pub(super) fn create(
        directory: &Path,
        mut header: Header,
        environment: &Environment,
    ) -> Result<Journal, Error> {
        header.measured_on = measured_on(environment);
        let path = directory.join(NAME);
        let file = open_alone(&path)?;
        file.set_len(0)
            .map_err(|source| Error::Write(path.clone(), source))?;
        let mut journal = Journal {
            path,
            file: Some(file),
            told: Vec::new(),
        };
        let written = journal.write(&header);
        written.map_err(|source| Error::Write(journal.path.clone(), source))?;
        Ok(journal)
    }

    /// Goes on with one, and hands out its trials.
    ///
    /// # Errors
    /// When the machine or a program is another one by now.
    pub(super) fn go_on(
        directory: &Path,
        earlier: Earlier,
        environment: &mut Environment,
    ) -> Result<(Journal, Vec<Line>), Error> {
        let now = measured_on(environment);
        let before = &earlier.header.measured_on;
        let names = before.keys().chain(now.keys());
        let changed = names
            .clone()
            .find(|name| before.get(*name) != now.get(*name));
        if let Some(name) = changed {
            let text = |of: &BTreeMap<String, String>| {
                of.get(name)
                    .map_or("none".to_owned(), |text| format!("`{text}`"))
            };
            let said = format!(
                "its {name} was {} and is {} now: trials of both cannot be compared, start the experiment anew",
                text(before),
                text(&now)
            );
            return Err(Error::Resume(directory.to_owned(), said));
        }
        let path = directory.join(NAME);
        let file = open_alone(&path)?;
        file.set_len(earlier.length)
            .map_err(|source| Error::Write(path.clone(), source))?;
        for line in &earlier.lines {
            environment.commands.extend(line.commands.clone());
            environment.files.extend(line.files.clone());
        }
        let journal = Journal {
            path,
            file: Some(file),
            told: Vec::new(),
        };
        Ok((journal, earlier.lines))
    }

    /// Writes down a trial. When that fails no further one is: what was measured counts more than that it can be gone
    /// on with.
    ///
    /// # Errors
    /// The first time that it fails.
    pub(super) fn add(
        &mut self,
        work: &WorkOutcome,
        variant: &str,
        trial: &Trial,
        environment: &Environment,
    ) -> Result<(), Error> {
        let name = (work.title(), variant.to_owned());
        let prefix = format!("{} / {variant} / ", name.0);
        let mut line = Line {
            work: work.name.clone(),
            point: work.point.clone(),
            variant: variant.to_owned(),
            trial: trial.clone(),
            commands: BTreeMap::new(),
            files: BTreeMap::new(),
        };
        if !self.told.contains(&name) {
            line.commands = of_trial(&environment.commands, &prefix);
            line.files = of_trial(&environment.files, &prefix);
            self.told.push(name);
        }
        self.write(&line).map_err(|source| {
            self.file = None;
            Error::Write(self.path.clone(), source)
        })
    }

    fn write(&mut self, value: &impl Serialize) -> io::Result<()> {
        let Some(file) = &mut self.file else {
            return Ok(());
        };
        // Maps have text keys and numbers are finite: nothing here can fail to be JSON.
        let mut text = serde_json::to_string(value).unwrap_or_else(|error| unreachable!("{error}"));
        text.push('\n');
        file.write_all(text.as_bytes())
    }

    /// The run is whole, and its results are written: nothing needs to go on from here.
    pub(super) fn remove(self) {
        // One that stays is replaced by the next run.
        let _ = fs::remove_file(&self.path);
    }
}

/// Opens the file of a run for appending, unless another run writes there: of two in one directory the results of one
/// would be lost. The lock goes with the process.
fn open_alone(path: &Path) -> Result<File, Error> {
    let opened = OpenOptions::new()
        .create(true)
        .append(true)
        // Not through a link: it may lead to a file of others.
        .custom_flags(rustix::fs::OFlags::NOFOLLOW.bits() as i32)
        .open(path);
    let file = opened.map_err(|source| match path.is_symlink() {
        true => Error::Link(path.to_owned()),
        false => Error::Write(path.to_owned(), source),
    })?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(Errno::WOULDBLOCK) => Err(Error::InUse(path.to_owned())),
        Err(error) => Err(Error::Write(path.to_owned(), error.into())),
    }
}

/// The entries of one variant.
fn of_trial<T: Clone>(all: &BTreeMap<String, T>, prefix: &str) -> BTreeMap<String, T> {
    let of_it = all.iter().filter(|(name, _)| name.starts_with(prefix));
    of_it
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

fn measured_on(environment: &Environment) -> BTreeMap<String, String> {
    let machine = &environment.machine;
    let cpus = crate::environment::cpu_list(&machine.cpus);
    let facts = [
        ("kernel", machine.kernel.clone()),
        ("CPU", machine.cpu_model.clone()),
        ("list of CPUs", Some(cpus)),
    ];
    let facts = facts
        .into_iter()
        .map(|(name, fact)| (name.to_owned(), fact));
    let programs = environment.programs.iter();
    let programs =
        programs.map(|(name, program)| (format!("program `{name}`"), program.version.clone()));
    let hosts = environment.hosts.iter().flat_map(|(name, host)| {
        let fact = |key: &str| Some(host.machine.get(key)?.as_str()?.to_owned());
        let facts = [("kernel", fact("kernel")), ("CPU", fact("cpu_model"))];
        facts.map(|(what, fact)| (format!("{what} of host {name}"), fact))
    });
    let all = facts.chain(programs).chain(hosts);
    all.filter_map(|(name, fact)| Some((name, fact?))).collect()
}
