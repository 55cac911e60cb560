//! The JSON result of an earlier command at the path of `--json`. A command that ends without a result removes it: a script
//! would read it as the result of that command.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use onrush_load::limits::RESULT_BYTES_MAX;
use serde_json::Value;

use crate::terminal::say;

/// A file that was there before the command.
pub(super) struct OlderResult {
    path: PathBuf,
    inode: u64,
}

/// Keys by which results are recognized, in all versions: of a run, of a search, and of a comparison.
const KINDS: [[&str; 2]; 3] = [
    ["verdict", "duration_s"],
    ["condition", "trials"],
    ["response_us", "cautions"],
];

/// Flags whose values are files that are written.
const OUTPUTS: [&str; 4] = ["--json", "--csv", "--html", "--hdr"];

impl OlderResult {
    /// Finds the file in the words of a command line, which may have usage errors. `None` if the command also reads the file.
    pub(super) fn find(words: &[String]) -> Option<OlderResult> {
        // The words of another tool's command line are not ours.
        let own = words.iter().take_while(|word| !word.starts_with("--as"));
        let own: Vec<&str> = own.map(String::as_str).collect();
        let value_of = |flag: &str, at: usize| match own[at].strip_prefix(flag)? {
            "" => own.get(at + 1).map(|value| (at + 1, *value)),
            rest => rest.strip_prefix('=').map(|value| (at, value)),
        };
        let (_, value) = (0..own.len()).find_map(|at| value_of("--json", at))?;
        let path = fs::canonicalize(value).ok()?;
        let outputs = (0..own.len()).flat_map(|at| OUTPUTS.map(|flag| value_of(flag, at)));
        let written: Vec<usize> = outputs.flatten().map(|(at, _)| at).collect();
        let others = own.iter().enumerate();
        let mut others = others.filter(|(at, _)| !written.contains(at));
        if others.any(|(_, word)| names(word, &path)) {
            return None;
        }
        let metadata = fs::metadata(&path).ok().filter(fs::Metadata::is_file)?;
        Some(OlderResult {
            path,
            inode: metadata.ino(),
        })
    }

    /// Removes it, unless it has been replaced or is not a result.
    pub(super) fn remove(&self) {
        let inode = fs::metadata(&self.path).map(|metadata| metadata.ino());
        if inode.is_ok_and(|inode| inode == self.inode) && is_result(&self.path) {
            remove(&self.path);
        }
    }
}

/// Removes the file of an earlier result, and reports that.
pub(super) fn remove(path: &Path) {
    match fs::remove_file(path) {
        Ok(()) => say(format_args!(
            "onrush load: removed {}, the result of an earlier run",
            path.display()
        )),
        Err(error) => say(format_args!(
            "onrush load: {} is the result of an earlier run and cannot be removed: {error}",
            path.display()
        )),
    }
}

/// Whether a word names this file: as it stands, after `=`, or after `@`.
fn names(word: &str, path: &Path) -> bool {
    let value = word.split_once('=').map_or(word, |(_, value)| value);
    let forms = [word, value, value.trim_start_matches('@')];
    let mut forms = forms.into_iter().map(fs::canonicalize);
    forms.any(|form| form.is_ok_and(|form| form == path))
}

fn is_result(path: &Path) -> bool {
    let text = onrush_file::read_text(path, RESULT_BYTES_MAX).ok();
    let json: Option<Value> = text.and_then(|text| serde_json::from_str(&text).ok());
    let has = |keys: &[&str; 2]| {
        let has_key = |key: &&str| json.as_ref().is_some_and(|json| json.get(key).is_some());
        keys.iter().all(has_key)
    };
    KINDS.iter().any(has)
}
