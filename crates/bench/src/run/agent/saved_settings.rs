//! Settings that an agent changed, with their old values: written to a file before each change, restored at the end.
//!
//! The file is in the agent's directory. If an agent is killed, the next one on its host finds it there.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::super::agent_protocol::Setting;
use crate::limits::LINE_BYTES_MAX;

/// Name of the file in the agent's directory.
const NAME: &str = "undo.jsonl";

/// A kernel file with its old value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct SavedSetting {
    path: PathBuf,
    value: String,
}

/// Changed settings, in order.
pub(super) struct SavedSettings {
    list: PathBuf,
    set: Vec<SavedSetting>,
}

impl SavedSettings {
    /// No changes yet; the file will be in this directory.
    pub(super) fn in_directory(directory: &Path) -> SavedSettings {
        SavedSettings {
            list: directory.join(NAME),
            set: Vec::new(),
        }
    }

    /// Changes a setting and returns the old values of its files.
    pub(super) fn set(
        &mut self,
        setting: &Setting,
        value: &str,
    ) -> io::Result<Vec<(String, String)>> {
        let files = files(setting)?;
        let mut before = Vec::new();
        for path in files {
            let said = |what: &str, error: io::Error| {
                io::Error::other(format!("cannot {what} {}: {error}", path.display()))
            };
            let was = fs::read_to_string(&path).map_err(|error| said("read", error))?;
            let was = SavedSetting {
                value: was.trim().to_owned(),
                path: path.clone(),
            };
            self.note(&was).map_err(|error| said("note", error))?;
            self.set.push(was.clone());
            fs::write(&path, value).map_err(|error| said("set", error))?;
            before.push((was.path.display().to_string(), was.value));
        }
        Ok(before)
    }

    /// Records the old value before it is changed.
    fn note(&self, was: &SavedSetting) -> io::Result<()> {
        let mut line = serde_json::to_vec(was)?;
        line.push(b'\n');
        let mut list = File::options().create(true).append(true).open(&self.list)?;
        list.write_all(&line)?;
        list.sync_data()
    }

    /// Restores all settings in reverse order, and returns the failures.
    pub(super) fn restore(&mut self) -> Vec<String> {
        let mut failures = Vec::new();
        while let Some(was) = self.set.pop() {
            failures.extend(was.restore().err());
        }
        let _ = fs::remove_file(&self.list);
        failures
    }
}

impl SavedSetting {
    fn restore(&self) -> Result<(), String> {
        let said = |error| format!("cannot restore {}: {error}", self.path.display());
        fs::write(&self.path, &self.value).map_err(said)
    }
}

/// Restores the settings of a killed agent with this directory.
pub(super) fn restore_leftover(directory: &Path) {
    let Ok(text) = onrush_file::read_text(&directory.join(NAME), LINE_BYTES_MAX) else {
        return;
    };
    for was in text.lines().rev() {
        // The last line may be incomplete; its setting was not changed then.
        if let Ok(was) = serde_json::from_str::<SavedSetting>(was) {
            let _ = was.restore();
        }
    }
}

/// The kernel files of a setting.
fn files(setting: &Setting) -> io::Result<Vec<PathBuf>> {
    let check = |name: &str| {
        let letter = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.@:".contains(&byte);
        let is_name = !name.starts_with('.') && !name.contains("..") && name.bytes().all(letter);
        match is_name && !name.is_empty() {
            true => Ok(()),
            false => Err(io::Error::other(format!(
                "`{name}` is not the name of a setting"
            ))),
        }
    };
    match setting {
        Setting::Sysctl(name) => {
            check(name)?;
            Ok(vec![Path::new("/proc/sys").join(name.replace('.', "/"))])
        }
        Setting::Steering(interface) => {
            check(interface)?;
            let queues = Path::new("/sys/class/net").join(interface).join("queues");
            let entries = fs::read_dir(&queues).map_err(|error| {
                io::Error::other(format!(
                    "cannot list the queues of interface `{interface}`: {error}"
                ))
            })?;
            let names = entries.flatten().map(|entry| entry.file_name());
            let receive = names.filter(|name| name.to_string_lossy().starts_with("rx-"));
            let mut files: Vec<PathBuf> = receive
                .map(|name| queues.join(name).join("rps_cpus"))
                .collect();
            files.sort();
            Ok(files)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn setting_names_cannot_escape_directory() {
        for name in ["", "..", "net/core", "a..b", ".x"] {
            assert!(files(&Setting::Sysctl(name.into())).is_err(), "{name}");
            assert!(files(&Setting::Steering(name.into())).is_err(), "{name}");
        }
        let found = files(&Setting::Sysctl("net.core.somaxconn".into())).expect("a name");
        assert_eq!(found, [Path::new("/proc/sys/net/core/somaxconn")]);
    }

    #[test]
    fn settings_of_killed_agent_are_restored() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("setting");
        fs::write(&file, "3").expect("ours");
        let undo = SavedSettings::in_directory(directory.path());
        for value in ["1", "2"] {
            let was = SavedSetting {
                path: file.clone(),
                value: value.into(),
            };
            undo.note(&was).expect("room");
        }
        let list = directory.path().join(NAME);
        let half = fs::read_to_string(&list).expect("it was written") + "{\"path\":\"/no";
        fs::write(&list, half).expect("ours");
        restore_leftover(directory.path());
        assert_eq!(fs::read_to_string(&file).expect("ours"), "1");
    }
}
