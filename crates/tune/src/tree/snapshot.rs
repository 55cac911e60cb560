//! Snapshot: everything read from a machine, in one file.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::Path;

use onrush_file::Output;
use rustix::fs::{CWD, Mode, OFlags};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::below::read_bounded;
use crate::Error;
use crate::facts::ethtool::Ethtool;
use crate::facts::packet_rules::Rules;
use crate::facts::{Listening, Qdisc};
use crate::limits::SNAPSHOT_BYTES_MAX;

/// Version of the snapshot format; within a version keys are only added.
pub const SNAPSHOT_SCHEMA: u32 = 1;

/// Characters shown of a name in an error message.
const NAME_SHOWN_MAX: usize = 100;

/// Data read from a machine.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Snapshot {
    /// [`SNAPSHOT_SCHEMA`].
    pub onrush_snapshot: u32,
    /// Version of the program that wrote it.
    pub version: String,
    /// Contents of the files that could be read.
    pub files: BTreeMap<String, String>,
    /// Names in the directories that were listed.
    pub directories: BTreeMap<String, Vec<String>>,
    /// Targets of symbolic links.
    pub links: BTreeMap<String, String>,
    /// Files that exist but could not be read, with the reason.
    #[serde(rename = "troubles")]
    pub read_errors: BTreeMap<String, String>,
    /// Ethtool settings by interface.
    pub ethtool: BTreeMap<String, Ethtool>,
    /// Driver-specific counters by interface.
    #[serde(default)]
    pub driver_counters: BTreeMap<String, BTreeMap<String, u64>>,
    /// Listening sockets; `None` if the kernel was not asked or did not answer.
    #[serde(default)]
    pub listening: Option<Vec<Listening>>,
    /// Packet filter rules by family and table; `None` if they could not be counted.
    #[serde(default)]
    pub packet_rules: Option<Rules>,
    /// Queueing disciplines by interface; `None` if unavailable.
    #[serde(default)]
    pub qdiscs: Option<BTreeMap<String, Qdisc>>,
}

/// Writes a snapshot to one file, a new one readable by its owner only: it names processes and interfaces.
pub fn write_snapshot(snapshot: &Snapshot, file: Output) -> Result<(), Error> {
    let path = file.path().to_owned();
    let text = serde_json::to_string_pretty(snapshot).map_err(io::Error::from);
    let written = text.and_then(|text| {
        file.owner_only()
            .write(|out| out.write_all(text.as_bytes()))
    });
    written.map_err(|error| Error::Write(path, error))
}

pub(super) fn read_snapshot(path: &Path) -> Result<Snapshot, Error> {
    let failed = |error: io::Error| Error::Read(path.to_owned(), error);
    let unusable = |why: String| Error::Snapshot(path.to_owned(), why);
    // Does not block on a pipe without a writer.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = rustix::fs::openat(CWD, path, flags, Mode::empty());
    let file = File::from(file.map_err(|error| failed(error.into()))?);
    if !file.metadata().map_err(failed)?.is_file() {
        return Err(unusable(
            "not a regular file; `onrush tune snapshot -o FILE` makes one".to_owned(),
        ));
    }
    let text = read_bounded(file, SNAPSHOT_BYTES_MAX).map_err(failed)?;
    let json: serde_json::Value = serde_json::from_str(&text).map_err(|error| {
        unusable(match error.is_eof() {
            true => "it is truncated: copy it again".to_owned(),
            false => format!("it is not JSON ({error}); `onrush tune snapshot -o FILE` makes one"),
        })
    })?;
    match json
        .get("onrush_snapshot")
        .and_then(serde_json::Value::as_u64)
    {
        Some(schema) if schema == u64::from(SNAPSHOT_SCHEMA) => {}
        Some(schema) => {
            let writer = json
                .get("version")
                .and_then(|version| version.as_str())
                .unwrap_or("unknown");
            return Err(unusable(format!(
                "its format is {schema}, written by onrush {writer}; onrush {} reads format {SNAPSHOT_SCHEMA}",
                env!("CARGO_PKG_VERSION")
            )));
        }
        None => {
            return Err(unusable(
                "it lacks the key `onrush_snapshot`; `onrush tune snapshot -o FILE` makes one"
                    .to_owned(),
            ));
        }
    }
    // Parses the text again, for the line number of the error.
    serde_json::from_str(&text).map_err(|error| {
        let key = wrong_key(&json).unwrap_or_default();
        let words = error.to_string();
        let what = words.split(" at line ").next().unwrap_or(&words);
        unusable(format!("line {}: {key}{what}", error.line()))
    })
}

/// First key whose value has the wrong type, with a colon: `files."/proc/stat": `.
fn wrong_key(json: &Value) -> Option<String> {
    /// Returns the position of an error in a value.
    type Wrong = fn(&Value) -> Option<String>;
    let keys: [(&str, Wrong); 11] = [
        ("version", single::<String>),
        ("files", entries::<String>),
        ("directories", entries::<Vec<String>>),
        ("links", entries::<String>),
        ("troubles", entries::<String>),
        ("ethtool", entries::<Ethtool>),
        ("driver_counters", entries::<BTreeMap<String, u64>>),
        ("listening", single::<Option<Vec<Listening>>>),
        ("packet_rules", single::<Option<Rules>>),
        ("qdiscs", entries::<Qdisc>),
        ("onrush_snapshot", single::<u32>),
    ];
    keys.into_iter().find_map(|(key, wrong)| {
        let inside = wrong(json.get(key)?)?;
        Some(format!("{key}{inside}: "))
    })
}

fn single<T: DeserializeOwned>(value: &Value) -> Option<String> {
    T::deserialize(value).is_err().then(String::new)
}

fn entries<T: DeserializeOwned>(values: &Value) -> Option<String> {
    let Some(values) = values.as_object() else {
        return (!values.is_null()).then(String::new);
    };
    let is_wrong = |(_, value): &(&String, &Value)| T::deserialize(*value).is_err();
    let (name, _) = values.iter().find(is_wrong)?;
    let name: String = name.chars().take(NAME_SHOWN_MAX).collect();
    Some(format!(".{name:?}"))
}
