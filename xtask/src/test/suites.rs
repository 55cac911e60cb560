//! Test programs built by Cargo and their tests.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail, ensure};
use serde_json::Value;

/// A test program.
#[derive(Debug)]
pub(crate) struct Suite {
    /// Name of its package.
    pub(crate) package: String,
    /// Option of `cargo test` that selects it, such as `--lib` or `--test end_to_end`.
    pub(crate) target: String,
    pub(crate) program: PathBuf,
    /// Directory of its package, which Cargo makes the working directory of tests.
    pub(crate) directory: PathBuf,
    pub(crate) tests: Vec<Test>,
}

/// A test function.
#[derive(Debug)]
pub(crate) struct Test {
    pub(crate) name: String,
    /// Whether `#[ignore]` leaves it to `make test-all`.
    pub(crate) is_slow: bool,
}

/// Tests to run.
#[derive(Debug, PartialEq)]
pub(crate) enum Selection {
    /// All tests except slow ones.
    Fast,
    /// Slow tests with all seeds, and seeded tests with the seeds that `Fast` skips.
    Rest,
    /// Tests whose name contains one of these strings, including slow ones.
    Named(Vec<String>),
}

/// Tests that run on simulated networks with several seeds, by suite and prefix of their name.
const SEEDED: &[(&str, &str)] = &[
    ("onrush-engine --test drivers", ""),
    ("onrush-load --lib", "connection::"),
    ("onrush-serve --lib", ""),
    ("onrush-tls --lib", "transport::"),
];

/// Seeds of a test: the value of `ONRUSH_TEST_SEEDS`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Seeds {
    /// The first few seeds; the variable is not set.
    First,
    Rest,
    All,
}

impl Seeds {
    pub(crate) fn variable(self) -> Option<(&'static str, &'static str)> {
        let value = match self {
            Seeds::First => return None,
            Seeds::Rest => "rest",
            Seeds::All => "all",
        };
        Some(("ONRUSH_TEST_SEEDS", value))
    }
}

impl Selection {
    /// Seeds of a test; `None` if it does not run.
    pub(crate) fn seeds(&self, suite: &str, test: &Test) -> Option<Seeds> {
        let is_seeded = || {
            let mut seeded = SEEDED.iter();
            seeded.any(|(title, start)| suite == *title && test.name.starts_with(start))
        };
        match self {
            Selection::Fast => (!test.is_slow).then_some(Seeds::First),
            Selection::Rest if test.is_slow => Some(Seeds::All),
            Selection::Rest => is_seeded().then_some(Seeds::Rest),
            Selection::Named(names) => {
                let mut names = names.iter();
                let is_named = names.any(|name| test.name.contains(name.as_str()));
                is_named.then_some(Seeds::All)
            }
        }
    }
}

/// A test to run, with its suite.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Job<'suites> {
    pub(crate) suite: &'suites Suite,
    pub(crate) test: &'suites Test,
    pub(crate) seeds: Seeds,
}

/// The selected tests: slow ones first, so that none runs alone at the end, then in the order of their suites.
pub(crate) fn jobs<'suites>(suites: &'suites [Suite], selection: &Selection) -> Vec<Job<'suites>> {
    let mut jobs = Vec::new();
    for suite in suites {
        let title = suite.title();
        let selected = suite.tests.iter().filter_map(|test| {
            let seeds = selection.seeds(&title, test)?;
            Some(Job { suite, test, seeds })
        });
        jobs.extend(selected);
    }
    jobs.sort_by_key(|job| !job.test.is_slow);
    jobs
}

/// Fails if an entry of [`SEEDED`] or of `others`, a list of the same form, matches no test because its tests were
/// renamed or moved.
pub(crate) fn check_names(suites: &[Suite], others: &[(&str, &str)]) -> anyhow::Result<()> {
    for (title, start) in SEEDED.iter().chain(others) {
        let mut suites = suites.iter().filter(|suite| suite.title() == *title);
        let is_used = suites.any(|suite| suite.tests.iter().any(|it| it.name.starts_with(start)));
        ensure!(
            is_used,
            "a list in xtask/src/test has {title} {start:?}, but no test name starts with it: update the list"
        );
    }
    Ok(())
}

impl Suite {
    /// Package and target: `onrush-serve --lib`.
    pub(crate) fn title(&self) -> String {
        format!("{} {}", self.package, self.target)
    }

    pub(crate) fn slow_tests(&self) -> impl Iterator<Item = &Test> {
        self.tests.iter().filter(|test| test.is_slow)
    }

    /// Lists the tests by running the test program.
    fn list(&mut self) -> anyhow::Result<()> {
        let slow: BTreeSet<String> = self.names(&["--ignored"])?.into_iter().collect();
        let tests = self.names(&[])?.into_iter().map(|name| Test {
            is_slow: slow.contains(&name),
            name,
        });
        self.tests = tests.collect();
        Ok(())
    }

    fn names(&self, options: &[&str]) -> anyhow::Result<Vec<String>> {
        let mut command = Command::new(&self.program);
        command.args(["--list", "--format", "terse"]).args(options);
        let output = command
            .current_dir(&self.directory)
            .output()
            .with_context(|| format!("starting {}", self.program.display()))?;
        ensure!(
            output.status.success(),
            "{command:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        let text = String::from_utf8(output.stdout).context("names of tests are UTF-8")?;
        let names = text.lines().filter_map(|line| line.strip_suffix(": test"));
        Ok(names.map(str::to_owned).collect())
    }
}

/// Test programs, and warnings of the compiler and Clippy in the workspace.
pub(crate) struct Build {
    pub(crate) suites: Vec<Suite>,
    /// Number of warnings, which are already printed.
    pub(crate) warnings: usize,
}

/// Builds all test programs and examples of the workspace and lists their tests.
///
/// The compiler is `clippy-driver`, which is rustc with more lints, so one build gives both the programs and the
/// warnings of `cargo clippy`.
pub(crate) fn build() -> anyhow::Result<Build> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
    // A toolchain has both programs in the same directory; otherwise PATH decides.
    let beside = Path::new(&cargo).with_file_name("clippy-driver");
    let compiler = if beside.exists() {
        beside
    } else {
        PathBuf::from("clippy-driver")
    };
    let mut running = Command::new(cargo)
        .current_dir(crate::tree::root())
        .args(["test", "--no-run", "--workspace", "--lib", "--bins"])
        .args(["--tests", "--examples", "--locked", "--message-format"])
        .arg("json-diagnostic-rendered-ansi")
        .env("RUSTC_WORKSPACE_WRAPPER", compiler)
        .stdout(Stdio::piped())
        .spawn()
        .context("starting cargo")?;
    let messages = running.stdout.take().expect("it is piped");
    let mut build = Build {
        suites: Vec::new(),
        warnings: 0,
    };
    for line in BufReader::new(messages).lines() {
        let line = line.context("messages of cargo are UTF-8")?;
        let message: Value = serde_json::from_str(&line).context("a message of cargo")?;
        build.suites.extend(suite(&message));
        if let Some(diagnostic) = message["message"]["rendered"].as_str() {
            eprint!("{diagnostic}");
        }
        build.warnings += usize::from(is_warning(&message));
    }
    if !running.wait().context("waiting for cargo")?.success() {
        bail!("building the tests failed");
    }
    for suite in &mut build.suites {
        suite.list()?;
    }
    build.suites.retain(|suite| !suite.tests.is_empty());
    // End-to-end tests wait most, so they come first and the others fill the time.
    build
        .suites
        .sort_by_key(|suite| (suite.package != "onrush-cli", suite.title()));
    Ok(build)
}

/// Whether a message of Cargo is a warning with a position in the code. Cargo repeats warnings of crates that it does
/// not rebuild.
fn is_warning(message: &Value) -> bool {
    let diagnostic = &message["message"];
    let places = diagnostic["spans"].as_array();
    diagnostic["level"] == "warning" && places.is_some_and(|places| !places.is_empty())
}

/// The test program announced by a message of Cargo.
fn suite(message: &Value) -> Option<Suite> {
    let is_test = message["profile"]["test"] == true;
    let program = message["executable"].as_str().filter(|_| is_test)?;
    let target = &message["target"];
    let name = target["name"].as_str()?;
    let target = match target["kind"][0].as_str()? {
        "lib" => "--lib".to_owned(),
        kind => format!("--{kind} {name}"),
    };
    let manifest = PathBuf::from(message["manifest_path"].as_str()?);
    let directory = manifest.parent()?.to_owned();
    // path+file:///directory#name@version, or without the name if it is that of the directory.
    let id = message["package_id"].as_str()?.rsplit(['/', '#']).next()?;
    let package = match id.split_once('@') {
        Some((name, _)) => name.to_owned(),
        None => directory.file_name()?.to_str()?.to_owned(),
    };
    Some(Suite {
        package,
        target,
        program: program.into(),
        directory,
        tests: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_warnings_with_location_are_counted() {
        let message = |level, spans: Value| {
            json!({
                "reason": "compiler-message",
                "message": { "level": level, "rendered": "warning: unused", "spans": spans },
            })
        };
        let place = json!([{ "file_name": "src/lib.rs" }]);
        assert!(is_warning(&message("warning", place.clone())));
        assert!(!is_warning(&message("note", place)));
        assert!(!is_warning(&message("warning", json!([]))));
        assert!(!is_warning(
            &json!({ "reason": "build-finished", "success": true })
        ));
    }

    #[test]
    fn suite_is_read_from_artifact_message() {
        let message = |kind, test| {
            json!({
                "reason": "compiler-artifact",
                "package_id": "path+file:///onrush/crates/cli#onrush-cli@0.1.0",
                "manifest_path": "/onrush/crates/cli/Cargo.toml",
                "target": { "kind": [kind], "name": "end_to_end" },
                "profile": { "test": test },
                "executable": "/target/debug/deps/end_to_end-1",
            })
        };
        let found = suite(&message("test", true)).expect("a test program");
        assert_eq!(found.title(), "onrush-cli --test end_to_end");
        assert_eq!(found.directory, PathBuf::from("/onrush/crates/cli"));
        let library = suite(&message("lib", true)).expect("a test program");
        assert_eq!(library.target, "--lib");
        assert!(suite(&message("bin", false)).is_none());
    }

    #[test]
    fn package_name_defaults_to_directory() {
        let message = json!({
            "package_id": "path+file:///onrush/xtask#0.1.0",
            "manifest_path": "/onrush/xtask/Cargo.toml",
            "target": { "kind": ["bin"], "name": "xtask" },
            "profile": { "test": true },
            "executable": "/target/debug/deps/xtask-1",
        });
        let found = suite(&message).expect("a test program");
        assert_eq!(found.title(), "xtask --bin xtask");
    }

    #[test]
    fn stale_list_entry_is_an_error() {
        let test = |name: &str| Test {
            name: name.to_owned(),
            is_slow: false,
        };
        let suite = |(title, start): &(&str, &str)| {
            let (package, target) = title.split_once(' ').expect("two parts");
            Suite {
                package: package.to_owned(),
                target: target.to_owned(),
                program: PathBuf::new(),
                directory: PathBuf::new(),
                tests: vec![test(&format!("{start}one"))],
            }
        };
        let suites: Vec<Suite> = SEEDED.iter().map(suite).collect();
        assert!(check_names(&suites, &[("onrush-load --lib", "connection::o")]).is_ok());
        for old in [
            ("onrush-load --lib", "wire::"),
            ("onrush-load --test old", ""),
        ] {
            let error = check_names(&suites, &[old]).unwrap_err().to_string();
            assert!(error.contains(old.0), "{error}");
        }
    }

    #[test]
    fn selection_filters_tests() {
        let test = |name: &str, is_slow| Test {
            name: name.to_owned(),
            is_slow,
        };
        let (quick, slow) = (test("one::quick", false), test("one::slow", true));
        let named = Selection::Named(vec!["two".to_owned(), "slow".to_owned()]);
        let serve = "onrush-serve --lib";
        for (selection, suite, of_quick, of_slow) in [
            (Selection::Fast, serve, Some(Seeds::First), None),
            (Selection::Rest, serve, Some(Seeds::Rest), Some(Seeds::All)),
            (Selection::Rest, "xtask --bin xtask", None, Some(Seeds::All)),
            (named, serve, None, Some(Seeds::All)),
        ] {
            assert_eq!(selection.seeds(suite, &quick), of_quick, "{selection:?}");
            assert_eq!(selection.seeds(suite, &slow), of_slow, "{selection:?}");
        }
    }
}
