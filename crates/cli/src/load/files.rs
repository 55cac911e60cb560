//! Output files of a result: opened before the run, written after it.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use onrush_load::error::Error;
use onrush_load::report::Report;
use onrush_load::{csv, hdr, html};

use super::signals;
use crate::terminal::{self, Out, print_error};

/// Destinations of the result. They are opened before the run, so that an unwritable file does not cost the user a run.
pub(super) struct Files(Vec<(Place, Form)>);

enum Place {
    /// `-`: standard output; text for people then goes to standard error.
    Standard,
    File(onrush_file::Output),
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Form {
    Json,
    Csv,
    Html,
    Hdr,
}

impl Files {
    /// Opens the files of `wanted`, each named with its flag; `inputs` are files that are read and must not be written.
    ///
    /// # Errors
    /// When a file cannot be written, or two flags name the same file.
    pub(super) fn open(
        wanted: &[(&'static str, Option<&Path>, Form)],
        inputs: &[PathBuf],
    ) -> Result<Files, Error> {
        let mut opened: Vec<(&'static str, Place, Form)> = Vec::new();
        let named = wanted
            .iter()
            .filter_map(|(flag, path, form)| Some((*flag, (*path)?, *form)));
        for (flag, path, form) in named {
            let is_same = |place: &Place| match place {
                Place::Standard => is_standard(path),
                Place::File(file) => !is_standard(path) && file.is_same(path),
            };
            if let Some((other, ..)) = opened.iter().find(|(_, place, _)| is_same(place)) {
                return Err(Error::Invalid(format!(
                    "{other} and {flag} would both write {}: give each a file of its own",
                    shown(path)
                )));
            }
            if is_standard(path) {
                opened.push((flag, Place::Standard, form));
                continue;
            }
            let file = onrush_file::Output::new(path)
                .map_err(|error| Error::Invalid(unwritable(path, &error)))?;
            if let Some(input) = inputs.iter().find(|input| file.is_same(input)) {
                let named = match input == path {
                    true => String::new(),
                    false => format!(" {} is the same file:", path.display()),
                };
                return Err(Error::Invalid(format!(
                    "{flag} would overwrite the input {}:{named} name another file",
                    input.display()
                )));
            }
            opened.push((flag, Place::File(file), form));
        }
        let files = opened.into_iter().map(|(_, place, form)| (place, form));
        Ok(Files(files.collect()))
    }

    /// Removes the results of an earlier run when the target of this run could not be reached: a script would take the older
    /// result for the result of this run. Returns `outcome`.
    pub(super) fn discard_old_results_if_unreachable<T>(
        &self,
        outcome: Result<T, Error>,
    ) -> Result<T, Error> {
        if let Err(Error::Unreachable(_)) = &outcome {
            for (place, _) in &self.0 {
                place.remove_older();
            }
        }
        outcome
    }

    /// Stream for text that people read.
    pub(super) fn out(&self) -> Out {
        let is_standard = |(place, _): &(Place, Form)| matches!(place, Place::Standard);
        if self.0.iter().any(is_standard) {
            Out::error()
        } else {
            Out::standard()
        }
    }

    /// Writes the result to all files.
    pub(super) fn write_report(self, report: &Report) -> Result<(), Error> {
        self.write(|form, mut file| match form {
            Form::Json => writeln!(file, "{}", report.to_json()),
            Form::Csv => file.write_all(csv::of(report).as_bytes()),
            Form::Html => file.write_all(html::page(report).as_bytes()),
            Form::Hdr => hdr::write(&mut file, report),
        })
    }

    /// Writes `content` to each file. Files that may wait for a reader come last: a signal then ends the program at
    /// once. A failure does not keep the other files from being written.
    ///
    /// # Errors
    /// All failures, joined in one message.
    pub(super) fn write(
        self,
        content: impl Fn(Form, &mut dyn Write) -> io::Result<()>,
    ) -> Result<(), Error> {
        let (waiting, files): (Vec<_>, Vec<_>) =
            self.0.into_iter().partition(|(place, _)| place.may_wait());
        let write = |(place, form): (Place, Form)| place.write(|writer| content(form, writer));
        let mut failures: Vec<String> = files.into_iter().filter_map(write).collect();
        signals::end_on_first_signal();
        failures.extend(waiting.into_iter().filter_map(write));
        match failures.is_empty() {
            true => Ok(()),
            false => Err(Error::Invalid(failures.join("; "))),
        }
    }
}

impl Place {
    /// Whether writing may wait for a reader, as with a pipe.
    fn may_wait(&self) -> bool {
        match self {
            Place::Standard => true,
            Place::File(file) => file.may_block(),
        }
    }

    /// Removes the existing regular file, if any; a symbolic link stays.
    fn remove_older(&self) {
        let Place::File(file) = self else { return };
        let older = fs::canonicalize(file.path()).ok();
        let Some(older) = older.filter(|path| path.is_file()) else {
            return;
        };
        match fs::remove_file(&older) {
            Ok(()) => print_error(format_args!(
                "onrush load: removed {}, the result of an earlier run",
                older.display()
            )),
            Err(error) => print_error(format_args!(
                "onrush load: {} is the result of an earlier run and cannot be removed: {error}",
                older.display()
            )),
        }
    }

    /// Writes the content; returns the message of a failure.
    fn write(self, content: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Option<String> {
        let (path, written) = match self {
            Place::Standard => {
                let mut bytes = Vec::new();
                let written = content(&mut bytes);
                terminal::write_raw(&bytes);
                (PathBuf::from("-"), written)
            }
            Place::File(file) => (file.path().to_owned(), file.write(content)),
        };
        written.err().map(|error| unwritable(&path, &error))
    }
}

/// Whether `path` is `-`, standard output.
pub(super) fn is_standard(path: &Path) -> bool {
    path == Path::new("-")
}

fn shown(path: &Path) -> String {
    if is_standard(path) {
        "standard output".to_owned()
    } else {
        path.display().to_string()
    }
}

fn unwritable(path: &Path, error: &io::Error) -> String {
    format!("{} cannot be written: {error}", shown(path))
}
