//! Output of a run: a table for the terminal, and a directory with numbers, facts and an HTML page.

mod charts;
mod csv;
mod cumulative;
mod notes;
mod number;
mod page;
mod plan;
mod summary;
mod table;

pub(crate) use number::number;
pub(crate) use table::terminal;

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use onrush_file::Output;
use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;

pub use self::plan::{list, schedule};
use crate::error::Error;
use crate::limits::RESULT_BYTES_MIN;
use crate::run::Measured;

const NAMES: [&str; 6] = [
    "result.json",
    "environment.json",
    "raw.csv",
    "samples.csv",
    SUMMARY,
    "report.html",
];

/// The summary as Markdown. `--markdown` may name this file, because it writes the same text.
const SUMMARY: &str = "summary.md";

const DIRECTORIES: [&str; 2] = ["charts", "profile"];

/// Whether `file` is a file of the result in `directory` other than the summary, which `--markdown` must not overwrite.
pub fn is_other_than_summary(directory: &Path, file: &Path) -> bool {
    let (Some(parent), Some(name)) = (file.parent(), file.file_name()) else {
        return false;
    };
    let place = |path: &Path| std::path::absolute(path).ok();
    // The parent of a bare file name is the working directory.
    let parent = Path::new(".").join(parent);
    let is_there = match (parent.canonicalize(), directory.canonicalize()) {
        (Ok(parent), Ok(directory)) => parent == directory,
        (Err(_), _) | (_, Err(_)) => place(&parent) == place(directory),
    };
    is_there
        && NAMES
            .iter()
            .any(|known| *known != SUMMARY && name == *known)
}

/// Creates the output directory: the requested one, in which an earlier result is replaced, or a new one. Checks that
/// the files of the result can be written and that there is enough space, so that a long measurement is not lost.
///
/// # Errors
/// If a file cannot be written, or there is not enough space.
pub fn claim_directory(asked: Option<&Path>, name: &str) -> Result<PathBuf, Error> {
    let path = match asked {
        Some(path) => path.to_owned(),
        None => {
            let stamp = crate::clock::file_stamp(SystemTime::now());
            let name = name.replace(|letter: char| !letter.is_ascii_alphanumeric(), "-");
            PathBuf::from(format!("onrush-bench-{name}-{stamp}"))
        }
    };
    check_directory(&path)?;
    remove_profiles(&path)?;
    Ok(path)
}

/// Checks that a result can be written to a directory without changing its content, as for a resumed run.
///
/// # Errors
/// If a file cannot be written, or there is not enough space.
pub fn check_directory(path: &Path) -> Result<(), Error> {
    if fs::metadata(path).is_ok_and(|found| !found.is_dir()) {
        return Err(Error::NoDirectory(path.to_owned()));
    }
    fs::create_dir_all(path).map_err(|source| Error::Write(path.to_owned(), source))?;
    for name in DIRECTORIES {
        let below = path.join(name);
        if below.is_symlink() {
            return Err(Error::Link(below));
        }
    }
    for name in NAMES {
        let file = path.join(name);
        Output::new_nofollow(&file).map_err(|source| Error::Write(file, source))?;
    }
    check_room(path).map_err(|source| Error::NoRoom(path.to_owned(), source))
}

/// Removes the profiles of an earlier result, which could be mistaken for profiles of this run.
fn remove_profiles(directory: &Path) -> Result<(), Error> {
    let profiles = directory.join("profile");
    for entry in fs::read_dir(&profiles).into_iter().flatten().flatten() {
        let path = entry.path();
        if path
            .extension()
            .is_some_and(|extension| extension == "folded")
        {
            // The flame graph is missing if writing it failed.
            let _ = fs::remove_file(path.with_extension("svg"));
            fs::remove_file(&path).map_err(|source| Error::Write(path, source))?;
        }
    }
    // Fails if the directory contains other files, which is intended.
    let _ = fs::remove_dir(profiles);
    Ok(())
}

/// Checks for space by allocating it in a temporary file.
fn check_room(directory: &Path) -> io::Result<()> {
    let path = directory.join(format!(".room.{}", std::process::id()));
    let file = File::create_new(&path)?;
    let reserved = fallocate(&file, FallocateFlags::empty(), 0, RESULT_BYTES_MIN);
    fs::remove_file(&path)?;
    match reserved {
        // File systems without fallocate(2) report a full disk only when writing.
        Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => Ok(()),
        reserved => Ok(reserved?),
    }
}

/// Converts the charts of a result to PNG.
///
/// # Errors
/// If a chart cannot be converted.
pub(crate) fn draw(out: &Path) -> Result<(), Error> {
    charts::draw(out)
}

/// A result as text.
pub struct Texts {
    /// The table for a terminal, and the path of the report.
    pub terminal: String,
    /// Content of `summary.md`.
    pub markdown: String,
}

/// Writes all files of a result, each atomically.
///
/// # Errors
/// If a file cannot be written.
pub fn write_all(out: &Path, measured: &Measured) -> Result<Texts, Error> {
    let outcome = &measured.outcome;
    let write = |name: &str, text: String| {
        debug_assert!(NAMES.contains(&name), "{name} was looked at before");
        let path = out.join(name);
        let file = Output::new_nofollow(&path);
        let written = file.and_then(|file| file.write(|writer| writer.write_all(text.as_bytes())));
        written.map_err(|source| Error::Write(path, source))
    };
    // Small files first: on an almost full disk they may still fit.
    let markdown = summary::markdown(outcome, &measured.environment);
    write(SUMMARY, markdown.clone())?;
    write("raw.csv", csv::raw(outcome))?;
    write("environment.json", json(&measured.environment))?;
    write("result.json", json(outcome))?;
    write("samples.csv", csv::samples(outcome))?;
    let html = page::html(outcome, &measured.environment);
    charts::write(out, &html)?;
    write("report.html", html)?;
    let page = out.join("report.html");
    let table = table::terminal(outcome);
    Ok(Texts {
        terminal: format!("{table}report: {}\n", page.display()),
        markdown,
    })
}

fn json(value: &impl serde::Serialize) -> String {
    // Cannot fail: maps have string keys, and numbers are finite or null.
    let mut text =
        serde_json::to_string_pretty(value).unwrap_or_else(|error| unreachable!("{error}"));
    text.push('\n');
    text
}

#[cfg(test)]
pub(crate) mod sample;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markdown_can_overwrite_only_summary() {
        let here = tempfile::tempdir().expect("a directory");
        let there = here.path().join("out");
        let is_other = |name: &str| is_other_than_summary(&there, &there.join(name));
        for _ in 0..2 {
            assert!(is_other("raw.csv") && is_other("report.html"));
            assert!(!is_other("summary.md") && !is_other("README.md"));
            assert!(!is_other_than_summary(&there, &here.path().join("raw.csv")));
            fs::create_dir_all(&there).expect("ours");
        }
        assert!(is_other_than_summary(Path::new("."), Path::new("raw.csv")));
        assert!(is_other("../out/raw.csv"));
    }

    #[test]
    fn results_are_not_written_through_symlinks() {
        let elsewhere = tempfile::tempdir().expect("a directory");
        for name in ["raw.csv", "report.html", "charts", "profile"] {
            let directory = tempfile::tempdir().expect("a directory");
            let link = directory.path().join(name);
            std::os::unix::fs::symlink(elsewhere.path().join("x"), &link).expect("a link");
            let error = check_directory(directory.path()).expect_err(name);
            let said = format!("{error:?}");
            assert!(
                said.contains(name) && error.to_string().contains(name),
                "{said}"
            );
        }
        assert_eq!(
            fs::read_dir(elsewhere.path()).expect("it is there").count(),
            0
        );
    }

    #[test]
    fn earlier_profiles_are_removed() {
        let directory = tempfile::tempdir().expect("a directory");
        let profiles = directory.path().join("profile");
        fs::create_dir(&profiles).expect("a directory");
        for name in ["a.1.server.folded", "a.1.server.svg", "drawing.svg"] {
            fs::write(profiles.join(name), "x").expect("a file");
        }
        claim_directory(Some(directory.path()), "test").expect("it is ours");
        let left: Vec<_> = fs::read_dir(&profiles)
            .expect("it stays")
            .flatten()
            .collect();
        assert_eq!(left.len(), 1);
        assert_eq!(left[0].file_name(), "drawing.svg");
        fs::remove_file(left[0].path()).expect("it is there");
        claim_directory(Some(directory.path()), "test").expect("it is ours");
        assert!(!profiles.exists());
    }
}
