//! Results below a folder, in the order of their dates.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::archive::{RAW, Run, Unusable};
use crate::limits::{HISTORY_DEPTH_MAX, HISTORY_ENTRIES_MAX, HISTORY_RUNS_MAX, OUTPUT_BYTES_MAX};

/// A result and when it was made.
#[derive(Debug, Clone)]
pub struct Dated {
    /// The result.
    pub run: Run,
    /// `2026-11-21`, or with the time behind it.
    pub date: String,
    /// The experiment's name.
    pub experiment: String,
}

/// What was found.
#[derive(Debug, Clone, Default)]
pub struct Found {
    /// By date, and by name where that is the same.
    pub runs: Vec<Dated>,
    /// What could not be read, with the reason.
    pub left_out: Vec<String>,
}

/// Finds and reads all results below `folder`.
///
/// # Errors
/// When the folder cannot be listed, or there are more than a history may have.
pub fn find(folder: &Path) -> Result<Found, Unusable> {
    let mut directories = Vec::new();
    let mut found = Found::default();
    walk(folder, 0, &mut directories, &mut found.left_out)?;
    if directories.len() > HISTORY_RUNS_MAX {
        return Err(Unusable::TooMany {
            path: folder.to_owned(),
            what: format!(
                "{} results: expected at most {HISTORY_RUNS_MAX}; name a folder with fewer of them",
                directories.len()
            ),
        });
    }
    for directory in directories {
        match dated(&directory) {
            Ok(run) => found.runs.push(run),
            Err(why) => found.left_out.push(why),
        }
    }
    found
        .runs
        .sort_by_cached_key(|it| (it.date.clone(), order(&it.run.name)));
    Ok(found)
}

/// Folders with a `raw.csv`, in the order of their names. Links are not followed: they may lead upwards. Folders below the
/// first that cannot be listed are named in `left_out`.
fn walk(
    folder: &Path,
    depth: usize,
    found: &mut Vec<PathBuf>,
    left_out: &mut Vec<String>,
) -> Result<(), Unusable> {
    let unlisted = |error| Unusable::Unlisted(folder.to_owned(), error);
    if folder.join(RAW).is_file() {
        found.push(folder.to_owned());
    }
    let mut below = Vec::new();
    for (at, entry) in fs::read_dir(folder).map_err(unlisted)?.enumerate() {
        if at == HISTORY_ENTRIES_MAX {
            return Err(Unusable::TooMany {
                path: folder.to_owned(),
                what: format!(
                    "more than {HISTORY_ENTRIES_MAX} entries: expected a folder of results"
                ),
            });
        }
        let entry = entry.map_err(unlisted)?;
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            below.push(entry.path());
        }
    }
    below.sort();
    match depth < HISTORY_DEPTH_MAX {
        true => below
            .iter()
            .try_for_each(|it| match walk(it, depth + 1, found, left_out) {
                Err(error @ Unusable::Unlisted(..)) => {
                    left_out.push(chain(&error));
                    Ok(())
                }
                walked => walked,
            }),
        false => Ok(()),
    }
}

/// Reads one; why it is left out, if it is.
fn dated(directory: &Path) -> Result<Dated, String> {
    let run = Run::read(directory).map_err(|error| chain(&error))?;
    let date = started(directory)
        .or_else(|| date_in(&run.name))
        .ok_or_else(|| {
            format!(
                "{}: nothing says when it was made: expected a result.json, or a date such as 2026-11-21 in its name",
                run.name
            )
        })?;
    let experiment = run.facts.experiment();
    Ok(Dated {
        experiment: experiment.unwrap_or_else(|| "an experiment without a name".into()),
        date,
        run,
    })
}

/// An error with its reason.
fn chain(error: &Unusable) -> String {
    match std::error::Error::source(error) {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

/// Only when the run began.
#[derive(Deserialize)]
struct Began {
    started: String,
}

/// When the run began, as its `result.json` says, where there is one.
fn started(directory: &Path) -> Option<String> {
    let text = onrush_file::read_text(&directory.join("result.json"), OUTPUT_BYTES_MAX).ok()?;
    let began: Began = serde_json::from_str(&text).ok()?;
    date_in(&began.started).map(|_| began.started)
}

/// The last date in a text, and the digits of a time behind it: `2026-11-21` or `2026-11-21-091500`.
pub(super) fn date_in(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let shape = b"0000-00-00";
    let fits = |window: &[u8]| {
        let pairs = window.iter().zip(shape);
        pairs.clone().all(|(byte, form)| match form {
            b'-' => *byte == b'-',
            _ => byte.is_ascii_digit(),
        })
    };
    let at = bytes.windows(shape.len()).rposition(fits)?;
    let end = at + shape.len();
    let time = bytes.get(end..end + 7);
    let has_time = time.is_some_and(|it| it[0] == b'-' && it[1..].iter().all(u8::is_ascii_digit));
    let end = if has_time { end + 7 } else { end };
    // All of it is ASCII.
    text.get(at..end).map(str::to_owned)
}

/// What runs of one date are ordered by: `x`, `x-1`, `x-2`, `x-10`.
fn order(name: &str) -> (String, u64) {
    let numbered = name.rsplit_once('-').and_then(|(stem, number)| {
        let is_short = number.len() <= 4;
        is_short.then(|| Some((stem.to_owned(), number.parse().ok()?)))?
    });
    // A day is no number behind a name.
    match numbered {
        Some((stem, number)) if date_in(name) == date_in(&stem) => (stem, number),
        _ => (name.to_owned(), 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_stand_in_names_and_times_behind_them() {
        for (name, date) in [
            ("runs/2026-11-21-first-light-1", Some("2026-11-21")),
            (
                "onrush-bench-chain-2026-11-21-091500",
                Some("2026-11-21-091500"),
            ),
            ("2026-11-21/2026-11-22-x", Some("2026-11-22")),
            ("2026-11-2", None),
            ("ünï", None),
            ("", None),
        ] {
            assert_eq!(date_in(name).as_deref(), date, "{name}");
        }
    }

    #[test]
    fn repetitions_of_a_day_are_in_their_order() {
        let mut names = [
            "d/2026-11-21-x-10",
            "d/2026-11-21-x-2",
            "d/2026-11-21-x",
            "d/2026-11-21",
        ];
        names.sort_by_cached_key(|name| order(name));
        assert_eq!(
            names,
            [
                "d/2026-11-21",
                "d/2026-11-21-x",
                "d/2026-11-21-x-2",
                "d/2026-11-21-x-10"
            ]
        );
    }
}
