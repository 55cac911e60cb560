//! Errors that end a run. A program that fails during a trial is not such an error; it becomes a note of the trial.

use std::fmt;
use std::io;
use std::path::PathBuf;

use onrush_file::InputError;

use crate::limits::RESULT_BYTES_MIN;
use crate::options::SVG_CONVERTER;
use crate::scenario::Mistake;

/// Why an experiment did not run, or its results could not be written.
#[derive(Debug)]
pub enum Error {
    /// The experiment file is invalid.
    Experiment(Box<Mistake>),
    /// A file could not be read.
    Read(PathBuf, InputError),
    /// An input file is invalid.
    Input(PathBuf, String),
    /// A file or directory could not be written.
    Write(PathBuf, io::Error),
    /// The output directory is not a directory.
    NoDirectory(PathBuf),
    /// A file or directory of the results is a symbolic link, which may lead to other users' files.
    Link(PathBuf),
    /// There is not enough space for the results.
    NoRoom(PathBuf, io::Error),
    /// A run cannot be resumed.
    Resume(PathBuf, String),
    /// Another run is using this file.
    InUse(PathBuf),
    /// The selection matches nothing in the experiment.
    NoMatch(String),
    /// A scale was requested for the built-in experiment, which has none.
    NoScale,
    /// Programs of the experiment are not installed; each with a hint.
    Missing(Vec<String>),
    /// PNG charts were requested, but the program that draws them is missing.
    NoConverter,
    /// A chart could not be drawn, with the reason.
    ChartConversion(PathBuf, String),
    /// A system call failed.
    System(&'static str, io::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Experiment(mistake) => mistake.fmt(f),
            Error::Read(path, _) => write!(f, "cannot read {}", path.display()),
            Error::Input(path, message) => write!(f, "{}: {message}", path.display()),
            Error::Write(path, _) => write!(f, "cannot write {}", path.display()),
            Error::NoDirectory(path) => {
                let path = path.display();
                write!(f, "{path} is not a directory: expected one, or a new name")
            }
            Error::Link(path) => {
                let path = path.display();
                write!(
                    f,
                    "{path} is a symbolic link: expected none, or a name that is not in use"
                )
            }
            Error::NoRoom(path, _) => {
                let (path, bytes) = (path.display(), RESULT_BYTES_MIN >> 20);
                write!(
                    f,
                    "results need {bytes} MiB, but {path} does not have that much free space"
                )
            }
            Error::Resume(path, why) => {
                write!(f, "cannot resume {}: {why}", path.display())
            }
            Error::InUse(path) => {
                let path = path.display();
                write!(
                    f,
                    "another run writes into {path}: wait until it ends, or use another directory (--out)"
                )
            }
            Error::NoMatch(text) => {
                write!(
                    f,
                    "--only {text:?} matches no work, variant or point of the experiment: --list shows them"
                )
            }
            Error::NoScale => write!(f, "--scale needs an experiment file: name one"),
            Error::Missing(programs) => {
                write!(
                    f,
                    "the experiment needs programs that are not installed:\n  {}",
                    programs.join("\n  ")
                )
            }
            Error::NoConverter => write!(
                f,
                "--png needs {SVG_CONVERTER}, which is not installed: install it (Debian's package librsvg2-bin), or leave \
                 --png out"
            ),
            Error::ChartConversion(path, why) => {
                let path = path.display();
                write!(
                    f,
                    "cannot draw {path}: {why}; the SVG beside it is complete"
                )
            }
            Error::System(what, _) => write!(f, "cannot {what}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Read(_, source) => Some(source),
            Error::Write(_, source) | Error::NoRoom(_, source) | Error::System(_, source) => {
                Some(source)
            }
            Error::Experiment(_)
            | Error::Input(_, _)
            | Error::NoDirectory(_)
            | Error::Link(_)
            | Error::Resume(..)
            | Error::InUse(_)
            | Error::NoMatch(_)
            | Error::NoScale
            | Error::NoConverter
            | Error::ChartConversion(..)
            | Error::Missing(_) => None,
        }
    }
}

impl From<Mistake> for Error {
    fn from(mistake: Mistake) -> Self {
        Error::Experiment(Box::new(mistake))
    }
}
