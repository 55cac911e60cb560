//! Reads `environment.json` of an earlier run, to find differences between two runs other than their figures.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::read_error::ReadError;
use super::rows::SeriesId;
use crate::outcome::SCHEMA;

/// Maximum length of a displayed fact in characters.
const SHOWN_MAX: usize = 60;

/// Environment of a run.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct Facts {
    /// The machine.
    pub machine: Machine,
    #[serde(default)]
    settings: BTreeMap<String, Option<String>>,
    #[serde(default)]
    programs: BTreeMap<String, Program>,
    /// Command lines by `work / variant / role`.
    #[serde(default)]
    commands: BTreeMap<String, Vec<String>>,
    /// Files written for programs, by `work / variant / role / name`.
    #[serde(default)]
    files: BTreeMap<String, String>,
    /// Text of the experiment file.
    #[serde(default)]
    experiment: String,
}

/// Facts of the machine. Runs that differ in one of them cannot be compared.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub struct Machine {
    kernel: Option<String>,
    cpu_model: Option<String>,
    #[serde(default)]
    cpus: Vec<usize>,
    governor: Option<String>,
    clocksource: Option<String>,
    #[serde(default)]
    mitigations: BTreeMap<String, String>,
    #[serde(default)]
    virtual_machine: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
struct Program {
    file: Option<String>,
    version: Option<String>,
}

#[derive(Deserialize)]
struct Version {
    schema: u64,
}

/// A fact that differs between two runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// Name of the fact.
    pub what: String,
    /// Value in the first run.
    pub a: String,
    /// Value in the second run.
    pub b: String,
    /// Figures that it makes incomparable.
    pub forbids: DifferenceScope,
}

/// Scope of figures that a difference makes incomparable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DifferenceScope {
    /// All figures: the machines or their settings differ, for example the kernel.
    Everything,
    /// The figures of the affected variants.
    Variant,
    /// None; the difference is only reported.
    Nothing,
}

impl Facts {
    /// Parses an `environment.json` from `path`.
    ///
    /// # Errors
    /// Reports the line and what was expected, or an unsupported version.
    pub fn parse(text: &str, path: &Path) -> Result<Facts, ReadError> {
        let wrong = |error: serde_json::Error| {
            let what = format!("{error}: expected an environment as onrush bench writes it");
            ReadError::line(path, error.line() as u64, what)
        };
        let version: Version = serde_json::from_str(text).map_err(wrong)?;
        if version.schema != u64::from(SCHEMA) {
            return Err(ReadError::Version {
                path: path.to_owned(),
                found: version.schema,
            });
        }
        serde_json::from_str(text).map_err(wrong)
    }

    /// Name of the experiment; `None` if its text has none.
    pub fn experiment(&self) -> Option<String> {
        let table: toml::Table = self.experiment.parse().ok()?;
        Some(table.get("name")?.as_str()?.to_owned())
    }

    /// All differences other than figures.
    pub fn differences(&self, other: &Facts) -> Vec<Difference> {
        let mut found = self.machine.differences(&other.machine);
        let settings = by_name(&self.settings, &other.settings, |value| {
            value.clone().unwrap_or_else(|| "none".into())
        });
        found.extend(settings.map(|(name, a, b)| difference(name, a, b, DifferenceScope::Nothing)));
        let versions = by_name(&self.programs, &other.programs, |program| {
            program.version.clone().unwrap_or_else(|| "none".into())
        });
        found.extend(versions.map(|(name, a, b)| {
            difference(format!("program {name}"), a, b, DifferenceScope::Nothing)
        }));
        found.extend(self.drivers(other));
        found.extend(self.experiments(other));
        found
    }

    /// Differences of the I/O driver in the command lines of variants that both runs have.
    fn drivers<'a>(&'a self, other: &'a Facts) -> impl Iterator<Item = Difference> + 'a {
        self.commands.iter().filter_map(|(name, words)| {
            let [a, b] = [words, other.commands.get(name)?].map(|words| driver(words));
            let shown = |driver: Option<&str>| driver.unwrap_or("auto").to_owned();
            (a != b).then(|| {
                difference(
                    format!("driver of {name}"),
                    shown(a),
                    shown(b),
                    DifferenceScope::Variant,
                )
            })
        })
    }

    fn experiments(&self, other: &Facts) -> Option<Difference> {
        if self.experiment == other.experiment {
            return None;
        }
        let lines = |text: &str| -> Vec<String> { text.lines().map(str::to_owned).collect() };
        let (a, b) = (lines(&self.experiment), lines(&other.experiment));
        let same = a.iter().zip(&b).take_while(|(a, b)| a == b).count();
        let line = |lines: &[String]| lines.get(same).cloned().unwrap_or_default();
        let what = format!("experiment file, from line {}", same + 1);
        Some(difference(
            what,
            line(&a),
            line(&b),
            DifferenceScope::Nothing,
        ))
    }

    /// Whether a command line of `subject` has another I/O driver in `other`.
    pub fn has_other_driver(&self, other: &Facts, subject: &SeriesId) -> bool {
        let of = |facts: &Facts| -> BTreeMap<String, Option<String>> {
            let commands = facts.of(subject, &facts.commands);
            commands
                .map(|(name, words)| (name.clone(), driver(words).map(str::to_owned)))
                .collect()
        };
        of(self) != of(other)
    }

    /// Whether the reference `subject` is the same in `other`: same program versions, command lines and files, except
    /// for ports and directories.
    pub fn is_same_reference(&self, other: &Facts, subject: &SeriesId) -> bool {
        let versions = |facts: &Facts| -> BTreeSet<(String, Option<String>)> {
            let words = facts
                .of(subject, &facts.commands)
                .flat_map(|(_, words)| words);
            let files: BTreeSet<&str> = words.map(|word| file_name(word)).collect();
            let programs = facts.programs.values();
            programs
                // Onrush is the program under comparison, and many builds share one version number.
                .filter_map(|it| {
                    Some((
                        file_name(it.file.as_deref()?).to_owned(),
                        it.version.clone(),
                    ))
                })
                .filter(|(file, _)| files.contains(&file[..]) && file != "onrush")
                .collect()
        };
        let commands = |facts: &Facts| -> Vec<String> {
            let all = facts.of(subject, &facts.commands);
            all.map(|(name, words)| {
                let words: Vec<String> = words
                    .iter()
                    .map(|word| without_ports_and_directories(file_name(word)))
                    .collect();
                format!("{name}: {}", words.join(" "))
            })
            .collect()
        };
        let files = |facts: &Facts| -> Vec<String> {
            let all = facts.of(subject, &facts.files);
            all.map(|(name, text)| format!("{name}: {}", without_ports_and_directories(text)))
                .collect()
        };
        versions(self) == versions(other)
            && commands(self) == commands(other)
            && files(self) == files(other)
    }

    /// Entries of `table` for `subject`; keys are `work · point / variant / …`.
    fn of<'a, T>(
        &self,
        subject: &SeriesId,
        table: &'a BTreeMap<String, T>,
    ) -> impl Iterator<Item = (&'a String, &'a T)> {
        let begin = format!("{subject} / ");
        table
            .iter()
            .filter(move |(name, _)| name.starts_with(&begin))
    }
}

impl Machine {
    /// Differences to another machine, as text.
    pub fn differences(&self, other: &Machine) -> Vec<Difference> {
        let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "none".into());
        let mut found: Vec<Difference> = [
            ("kernel", text(&self.kernel), text(&other.kernel)),
            ("CPU", text(&self.cpu_model), text(&other.cpu_model)),
            (
                "CPUs",
                crate::environment::cpu_list(&self.cpus),
                crate::environment::cpu_list(&other.cpus),
            ),
            ("governor", text(&self.governor), text(&other.governor)),
            ("clock", text(&self.clocksource), text(&other.clocksource)),
            (
                "virtual machine",
                self.virtual_machine.to_string(),
                other.virtual_machine.to_string(),
            ),
        ]
        .into_iter()
        .filter(|(_, a, b)| a != b)
        .map(|(what, a, b)| difference(what, a, b, DifferenceScope::Everything))
        .collect();
        let mitigations = by_name(&self.mitigations, &other.mitigations, String::clone);
        found.extend(mitigations.map(|(name, a, b)| {
            difference(
                format!("mitigation {name}"),
                a,
                b,
                DifferenceScope::Everything,
            )
        }));
        found
    }

    /// One-line description.
    pub fn short(&self) -> String {
        let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "unknown".into());
        format!(
            "{}, CPUs {}, kernel {}",
            text(&self.cpu_model),
            crate::environment::cpu_list(&self.cpus),
            text(&self.kernel)
        )
    }
}

fn difference(
    what: impl Into<String>,
    a: String,
    b: String,
    forbids: DifferenceScope,
) -> Difference {
    let shown = |text: String| match text.chars().count() > SHOWN_MAX {
        true => text.chars().take(SHOWN_MAX).chain(['…']).collect(),
        false => text,
    };
    Difference {
        what: what.into(),
        a: shown(a),
        b: shown(b),
        forbids,
    }
}

/// Entries that differ between two tables, as text; a missing entry is "absent".
fn by_name<'a, T>(
    a: &'a BTreeMap<String, T>,
    b: &'a BTreeMap<String, T>,
    text: impl Fn(&T) -> String + 'a,
) -> impl Iterator<Item = (String, String, String)> + 'a {
    let names: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
    let shown = move |value: Option<&T>| value.map_or_else(|| "absent".into(), &text);
    names
        .into_iter()
        .map(move |name| (name.clone(), shown(a.get(name)), shown(b.get(name))))
        .filter(|(_, a, b)| a != b)
}

fn driver(words: &[String]) -> Option<&str> {
    let at = words.iter().position(|word| word == "--io")?;
    words.get(at + 1).map(String::as_str)
}

fn file_name(word: &str) -> &str {
    match word.contains("://") {
        true => word,
        false => word.rsplit('/').next().unwrap_or(word),
    }
}

/// Removes port numbers and the names of run directories, which differ in each run.
fn without_ports_and_directories(text: &str) -> String {
    const DIRECTORY: &str = "onrush-bench-";
    let mut rest = text;
    let mut plain = String::with_capacity(text.len());
    while let Some(letter) = rest.chars().next() {
        if let Some(behind) = rest.strip_prefix(DIRECTORY) {
            plain.push_str(DIRECTORY);
            rest = behind.trim_start_matches(|it: char| it.is_ascii_digit() || it == '-');
            continue;
        }
        plain.push(letter);
        rest = &rest[letter.len_utf8()..];
        if letter == ':' {
            rest = rest.trim_start_matches(|it: char| it.is_ascii_digit());
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(change: impl Fn(&str) -> String) -> Facts {
        let text = r#"{
  "schema": 1,
  "machine": {"kernel": "6.18", "cpu_model": "X", "cpus": [0, 1], "governor": null, "clocksource": "tsc",
    "mitigations": {"spectre_v1": "Mitigation: on"}, "virtual_machine": true, "new": 5},
  "settings": {"net.core.somaxconn": "4096", "net.core.busy_poll": null},
  "programs": {"nginx": {"file": "/usr/sbin/nginx", "version": "nginx/1.22.1"}, "answer": {"file": "./onrush", "version": "onrush 0.1.0"}},
  "commands": {
    "w / nginx / server": ["taskset", "-c", "1", "/usr/sbin/nginx", "-p", "/tmp/onrush-bench-1-2/server"],
    "w / nginx / client": ["./onrush", "load", "http://127.0.0.1:4090/", "-c", "100", "--io", "epoll"],
    "w / ours / server": ["./onrush", "serve", "--listen", "127.0.0.1:5", "--io", "io_uring"]
  },
  "files": {"w / nginx / server / nginx.conf": "listen 127.0.0.1:4090 backlog=4096;\nroot /tmp/onrush-bench-1-2/server;\n"},
  "experiment": "name = \"first\"\nrounds = 5\n"
}"#;
        let text = change(text);
        Facts::parse(&text, Path::new("environment.json")).expect("an environment")
    }

    fn subject(variant: &str) -> SeriesId {
        SeriesId {
            work: "w".into(),
            point: String::new(),
            variant: variant.into(),
        }
    }

    #[test]
    fn environment_differences_have_scope() {
        let a = facts(str::to_owned);
        assert_eq!(a.differences(&a.clone()), []);
        let of = |from: &str, to: &str| -> Vec<(String, String, String, DifferenceScope)> {
            let b = facts(|text| text.replace(from, to));
            let found = a.differences(&b).into_iter();
            found.map(|it| (it.what, it.a, it.b, it.forbids)).collect()
        };
        let expected = |what: &str, a: &str, b: &str, forbids| {
            vec![(what.to_owned(), a.to_owned(), b.to_owned(), forbids)]
        };
        assert_eq!(
            of("6.18", "6.19"),
            expected("kernel", "6.18", "6.19", DifferenceScope::Everything)
        );
        assert_eq!(
            of("\"governor\": null", "\"governor\": \"powersave\""),
            expected("governor", "none", "powersave", DifferenceScope::Everything)
        );
        assert_eq!(
            of("[0, 1]", "[0, 2]"),
            expected("CPUs", "0-1", "0,2", DifferenceScope::Everything)
        );
        assert_eq!(
            of("spectre_v1\": \"Mitigation: on\"", "x\": \"y\"").len(),
            2,
            "one that is gone and one that came"
        );
        assert_eq!(
            of("\"4096\"", "\"128\""),
            expected(
                "net.core.somaxconn",
                "4096",
                "128",
                DifferenceScope::Nothing
            )
        );
        assert_eq!(
            of("io_uring", "epoll"),
            expected(
                "driver of w / ours / server",
                "io_uring",
                "epoll",
                DifferenceScope::Variant
            )
        );
        assert_eq!(
            of("rounds = 5", "rounds = 6"),
            expected(
                "experiment file, from line 2",
                "rounds = 5",
                "rounds = 6",
                DifferenceScope::Nothing
            )
        );
    }

    #[test]
    fn commands_differ_by_sweep_point() {
        let at = |driver: &str| {
            facts(|text| {
                let swept = format!(
                    "\"commands\": {{ \"w · c=1 / ours / server\": [\"--io\", \"{driver}\"],"
                );
                text.replace("\"commands\": {", &swept)
            })
        };
        let (a, b) = (at("epoll"), at("io_uring"));
        let swept = SeriesId {
            point: "c=1".into(),
            ..subject("ours")
        };
        assert!(a.has_other_driver(&b, &swept));
        assert!(!a.has_other_driver(&b, &subject("ours")));
    }

    #[test]
    fn io_driver_is_compared_per_variant() {
        let a = facts(str::to_owned);
        let b = facts(|text| text.replace("io_uring", "epoll"));
        assert!(a.has_other_driver(&b, &subject("ours")));
        assert!(!a.has_other_driver(&b, &subject("nginx")));
    }

    #[test]
    fn same_reference_requires_same_version_and_commands() {
        let a = facts(str::to_owned);
        let is_same = |from: &str, to: &str| {
            let b = facts(|text| text.replace(from, to));
            a.is_same_reference(&b, &subject("nginx"))
        };
        assert!(is_same("4090", "7786"), "ports");
        assert!(
            is_same("onrush-bench-1-2", "onrush-bench-77-1234"),
            "directories"
        );
        assert!(
            is_same("onrush 0.1.0", "onrush 0.2.0"),
            "ours is what is compared"
        );
        assert!(!is_same("1.22.1", "1.26.0"));
        assert!(!is_same("backlog=4096", "backlog=128"));
        assert!(!is_same("\"100\"", "\"200\""));
    }

    #[test]
    fn invalid_environment_error_has_line() {
        let said = |text: &str| {
            let parsed = Facts::parse(text, Path::new("environment.json"));
            parsed.expect_err("no environment").to_string()
        };
        assert!(
            said("").starts_with("environment.json, line 1: EOF"),
            "{}",
            said("")
        );
        assert!(
            said("{\n\"schema\": 1,\n\"machine\": 5}")
                .starts_with("environment.json, line 3: invalid type")
        );
        assert!(said("{\"schema\": 1}").contains("missing field `machine`"));
        assert_eq!(
            said("{\"schema\": 2}"),
            "environment.json has version 2, but this program reads version 1: use the version that wrote it, or a newer one"
        );
        assert!(said("{\"machine\": {}}").contains("missing field `schema`"));
    }

    #[test]
    fn experiment_name_is_read_from_text() {
        assert_eq!(facts(str::to_owned).experiment().as_deref(), Some("first"));
        assert_eq!(
            facts(|text| text.replace("name = ", "# ")).experiment(),
            None
        );
    }
}
