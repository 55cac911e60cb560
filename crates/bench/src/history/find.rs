//! Finds results below a folder, sorted by date.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::archive::{RAW, ReadError, Run};
use crate::limits::{HISTORY_DEPTH_MAX, HISTORY_ENTRIES_MAX, HISTORY_RUNS_MAX, OUTPUT_BYTES_MAX};

/// A result with its date.
#[derive(Debug, Clone)]
pub struct DatedRun {
    /// The result.
    pub run: Run,
    /// Date, optionally with a time: `2026-11-21` or `2026-11-21-091500`.
    pub date: String,
    /// Name of the experiment.
    pub experiment: String,
}

/// Results found below a folder.
#[derive(Debug, Clone, Default)]
pub struct FoundRuns {
    /// Results sorted by date, then by name.
    pub runs: Vec<DatedRun>,
    /// Results that could not be read, with reasons.
    pub left_out: Vec<String>,
}

/// Finds and reads all results below `folder`.
///
/// # Errors
/// If the folder cannot be listed, or contains more results than the limit.
pub fn find(folder: &Path) -> Result<FoundRuns, ReadError> {
    let mut directories = Vec::new();
    let mut found = FoundRuns::default();
    walk(folder, 0, &mut directories, &mut found.left_out)?;
    if directories.len() > HISTORY_RUNS_MAX {
        return Err(ReadError::TooMany {
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

/// Collects folders with a `raw.csv`, sorted by name. Does not follow links, which may lead upwards. Subfolders that
/// cannot be listed are added to `left_out`.
fn walk(
    folder: &Path,
    depth: usize,
    found: &mut Vec<PathBuf>,
    left_out: &mut Vec<String>,
) -> Result<(), ReadError> {
    let unlisted = |error| ReadError::Unlisted(folder.to_owned(), error);
    if folder.join(RAW).is_file() {
        found.push(folder.to_owned());
    }
    let mut below = Vec::new();
    for (at, entry) in fs::read_dir(folder).map_err(unlisted)?.enumerate() {
        if at == HISTORY_ENTRIES_MAX {
            return Err(ReadError::TooMany {
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
                Err(error @ ReadError::Unlisted(..)) => {
                    left_out.push(error_with_source(&error));
                    Ok(())
                }
                walked => walked,
            }),
        false => Ok(()),
    }
}

fn dated(directory: &Path) -> Result<DatedRun, String> {
    let run = Run::read(directory).map_err(|error| error_with_source(&error))?;
    let date = started(directory)
        .or_else(|| date_in(&run.name))
        .ok_or_else(|| {
            format!(
                "{}: no date found: expected a result.json, or a date such as 2026-11-21 in its name",
                run.name
            )
        })?;
    let experiment = run.facts.experiment();
    Ok(DatedRun {
        experiment: experiment.unwrap_or_else(|| "an experiment without a name".into()),
        date,
        run,
    })
}

fn error_with_source(error: &ReadError) -> String {
    match std::error::Error::source(error) {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

#[derive(Deserialize)]
struct StartTime {
    started: String,
}

fn started(directory: &Path) -> Option<String> {
    let text = onrush_file::read_text(&directory.join("result.json"), OUTPUT_BYTES_MAX).ok()?;
    let began: StartTime = serde_json::from_str(&text).ok()?;
    date_in(&began.started).map(|_| began.started)
}

/// The last date in a string, with the digits of a time after it: `2026-11-21` or `2026-11-21-091500`.
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
    text.get(at..end).map(str::to_owned)
}

/// Sort key of runs with the same date: `x`, `x-1`, `x-2`, `x-10`.
fn order(name: &str) -> (String, u64) {
    let numbered = name.rsplit_once('-').and_then(|(stem, number)| {
        let is_short = number.len() <= 4;
        is_short.then(|| Some((stem.to_owned(), number.parse().ok()?)))?
    });
    // The day of a date is not such a number.
    match numbered {
        Some((stem, number)) if date_in(name) == date_in(&stem) => (stem, number),
        _ => (name.to_owned(), 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_parsed_from_names() {
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
    fn runs_of_same_day_are_sorted_numerically() {
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
