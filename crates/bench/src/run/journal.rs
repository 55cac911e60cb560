//! Journal of a run: trials are written when they are made, so that an interrupted run can be resumed with `--resume`.
//!
//! `trials.jsonl` has a header line and then one line per trial. An incomplete last line is ignored, and its trial is
//! made again.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use onrush_file::InputError;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::environment::Environment;
use crate::error::Error;
use crate::limits::JOURNAL_BYTES_MAX;
use crate::options::Seed;
use crate::options::TrialSelection;
use crate::outcome::{Trial, WorkOutcome};
use crate::scenario::{Experiment, Point, title};

const NAME: &str = "trials.jsonl";

const SCHEMA: u32 = 1;

/// Parameters of the run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Header {
    schema: u32,
    /// Path of the experiment file as given.
    pub file: PathBuf,
    /// Its directory.
    pub directory: PathBuf,
    /// Its text.
    pub experiment: String,
    /// Selected part of the experiment.
    pub choice: TrialSelection,
    /// Seed for the order of trials.
    pub seed: Seed,
    /// Start time in seconds since 1970.
    pub started: f64,
    /// Kernel, CPU and program versions. A run cannot be resumed with others, because its trials would not be
    /// comparable.
    measured_on: BTreeMap<String, String>,
}

impl Header {
    /// The header of a new run.
    pub fn new(
        experiment: &Experiment,
        file: PathBuf,
        choice: TrialSelection,
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

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Line {
    pub(super) work: String,
    #[serde(default, skip_serializing_if = "Point::is_empty")]
    pub(super) point: Point,
    pub(super) variant: String,
    pub(super) trial: Trial,
    /// Command lines of the trial, as in `environment.json`.
    commands: BTreeMap<String, Vec<String>>,
    files: BTreeMap<String, String>,
}

/// An interrupted run to resume.
#[derive(Debug)]
pub struct ResumedRun {
    /// Its parameters.
    pub header: Header,
    lines: Vec<Line>,
    /// Length of the complete lines in bytes.
    length: u64,
}

impl ResumedRun {
    /// Reads the journal in a directory.
    ///
    /// # Errors
    /// If there is none, or it is damaged.
    pub fn read(directory: &Path) -> Result<ResumedRun, Error> {
        let path = directory.join(NAME);
        let text =
            onrush_file::read_text(&path, JOURNAL_BYTES_MAX).map_err(|source| match source {
                InputError::System(error) if error.kind() == io::ErrorKind::NotFound => {
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
            let said = format!("{NAME}:{line}: {error}; start the experiment again");
            Error::Resume(directory.to_owned(), said)
        };
        let whole = &text[..text.rfind('\n').map_or(0, |end| end + 1)];
        let mut lines = whole.lines().enumerate();
        let (_, first) = lines.next().unwrap_or((0, ""));
        let header: Header = serde_json::from_str(first).map_err(|error| damaged(1, error))?;
        if header.schema != SCHEMA {
            let said = format!(
                "{NAME} has version {}, but this program writes version {SCHEMA}: resume with the program that started \
                 it",
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
                    "{NAME}:{}: round {} of `{}` / `{}` is 0 or occurs twice; start the experiment again",
                    index + 2,
                    line.trial.round,
                    title(&line.work, &line.point),
                    line.variant
                );
                return Err(Error::Resume(directory.to_owned(), said));
            }
        }
        // Half a million years: larger values are not times.
        if !(0.0..1.6e13).contains(&header.started) {
            let said = format!("{NAME}:1: `started` is not a time; start the experiment again");
            return Err(Error::Resume(directory.to_owned(), said));
        }
        Ok(ResumedRun {
            header,
            lines,
            length: whole.len() as u64,
        })
    }
}

pub(super) struct Journal {
    path: PathBuf,
    /// `None` after a write error: the run continues without a journal.
    file: Option<File>,
    /// Titles and variants whose command lines are already in the journal.
    recorded_commands: Vec<(String, String)>,
}

impl Journal {
    /// Creates a journal; an earlier one in the directory is replaced.
    pub(super) fn create(
        directory: &Path,
        mut header: Header,
        environment: &Environment,
    ) -> Result<Journal, Error> {
        header.measured_on = measured_on(environment);
        let path = directory.join(NAME);
        let file = open_locked(&path)?;
        file.set_len(0)
            .map_err(|source| Error::Write(path.clone(), source))?;
        let mut journal = Journal {
            path,
            file: Some(file),
            recorded_commands: Vec::new(),
        };
        let written = journal.write(&header);
        written.map_err(|source| Error::Write(journal.path.clone(), source))?;
        Ok(journal)
    }

    /// Resumes a journal and returns its trials.
    ///
    /// # Errors
    /// If the machine or a program has changed.
    pub(super) fn resume(
        directory: &Path,
        earlier: ResumedRun,
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
                "its {name} was {} and is now {}: trials of both cannot be compared, start the experiment again",
                text(before),
                text(&now)
            );
            return Err(Error::Resume(directory.to_owned(), said));
        }
        let path = directory.join(NAME);
        let file = open_locked(&path)?;
        file.set_len(earlier.length)
            .map_err(|source| Error::Write(path.clone(), source))?;
        for line in &earlier.lines {
            environment.commands.extend(line.commands.clone());
            environment.files.extend(line.files.clone());
        }
        let journal = Journal {
            path,
            file: Some(file),
            recorded_commands: Vec::new(),
        };
        Ok((journal, earlier.lines))
    }

    /// Adds a trial. After an error no further trials are added, and the run continues, because its results matter more
    /// than the journal.
    ///
    /// # Errors
    /// The first write error.
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
        if !self.recorded_commands.contains(&name) {
            line.commands = of_trial(&environment.commands, &prefix);
            line.files = of_trial(&environment.files, &prefix);
            self.recorded_commands.push(name);
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
        // Cannot fail: maps have string keys and numbers are finite.
        let mut text = serde_json::to_string(value).unwrap_or_else(|error| unreachable!("{error}"));
        text.push('\n');
        file.write_all(text.as_bytes())
    }

    /// Removes the journal of a complete run after its results were written.
    pub(super) fn remove(self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Opens the journal for appending, unless another run is using it: two runs in one directory would overwrite each
/// other's results. The lock ends with the process.
fn open_locked(path: &Path) -> Result<File, Error> {
    let opened = OpenOptions::new()
        .create(true)
        .append(true)
        // A link could lead to another user's file.
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
