//! Rules about crates: allowed dependencies, where versions are written, and that every dependency has a reason.

use std::collections::{BTreeMap, BTreeSet};

use toml::{Table, Value};

use super::problem::Problem;
use crate::tree::Tree;

/// Allowed dependencies, as in the table of ARCHITECTURE.md. A crate that is not listed may use nothing.
const EDGES: [(&str, &[&str]); 18] = [
    ("engine", &[]),
    ("file", &[]),
    ("tls", &["engine", "file"]),
    ("http", &[]),
    ("machine", &[]),
    ("measure", &[]),
    ("packet", &[]),
    ("chart", &["measure"]),
    ("config", &["measure"]),
    ("load-targets", &["engine", "tls", "packet", "config"]),
    (
        "serve",
        &[
            "engine",
            "file",
            "tls",
            "http",
            "packet",
            "config",
            "load-targets",
        ],
    ),
    ("admin", &["engine", "file", "http", "serve"]),
    (
        "load",
        &[
            "engine", "file", "tls", "http", "machine", "measure", "packet", "chart",
        ],
    ),
    ("convert", &["file", "config"]),
    ("tune", &["file", "machine"]),
    // Starts serve and load as child processes and never links them.
    ("bench", &["engine", "file", "machine", "measure", "chart"]),
    ("top", &[]),
    (
        "cli",
        &[
            "admin", "engine", "file", "machine", "measure", "serve", "load", "tune", "bench",
            "top", "config", "convert",
        ],
    ),
];

const TABLE_PATH: &str = "ARCHITECTURE.md";
const TABLE_HEADING: &str = "## Dependencies between crates";

/// Foreign crates that only these crates may use.
const CONFINED: [(&str, &[&str]); 7] = [
    // Elsewhere errors are types.
    ("anyhow", &["cli", "xtask"]),
    ("clap", &["cli"]),
    ("syn", &["xtask"]),
    // Kernel interfaces whose use is unsafe.
    ("io-uring", &["engine"]),
    ("libc", &["engine"]),
    // For resolving the names of servers, and for comparisons in http's tests; connections belong to the engine.
    ("tokio", &["serve", "http"]),
    ("hickory-resolver", &["serve"]),
];

const DEPENDENCY_TABLES: [&str; 3] = ["dependencies", "dev-dependencies", "build-dependencies"];

pub(crate) fn problems(tree: &Tree) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (path, text) in tree.ending("Cargo.toml") {
        match path.strip_suffix("/Cargo.toml") {
            None => check_reasons(path, text, &mut problems),
            // A workspace of its own, which is not shipped.
            Some("fuzz") => check_reasons(path, text, &mut problems),
            Some(folder) => check_crate(path, folder, text, &mut problems),
        }
    }
    if let Some((_, text)) = tree.file(TABLE_PATH) {
        check_table(text, &EDGES, &mut problems);
    }
    problems
}

/// Checks that the table of ARCHITECTURE.md, `| user, user | used, used |`, equals `edges`.
fn check_table(text: &str, edges: &[(&str, &[&str])], problems: &mut Vec<Problem>) {
    let numbered = (1..).zip(text.lines());
    let section = numbered.skip_while(|(_, line)| *line != TABLE_HEADING);
    let section: Vec<(usize, &str)> = section
        .enumerate()
        .take_while(|(at, (_, line))| *at == 0 || !line.starts_with("## "))
        .map(|(_, numbered)| numbered)
        .collect();
    let rows = section.iter().filter(|(_, line)| line.starts_with('|'));
    // Skip the column heads and the rule below them.
    let rows = rows.skip(2).map(|(at, row)| (*at, row));
    let mut written: BTreeMap<&str, (usize, BTreeSet<&str>)> = BTreeMap::new();
    for (at, row) in rows {
        let mut cells = row.trim_matches('|').split('|').map(words);
        let (users, used) = (cells.next().unwrap_or_default(), cells.next());
        for user in users {
            written.insert(user, (at, used.clone().unwrap_or_default()));
        }
    }
    let heading = section.first().map_or(1, |(at, _)| *at);
    for (user, allowed) in edges {
        let Some((at, used)) = written.remove(user) else {
            let said = format!("{user} is not in the table of crates");
            problems.push(Problem::new(TABLE_PATH, heading, said));
            continue;
        };
        if used != allowed.iter().copied().collect() {
            let said = format!(
                "tidy knows for {user}: {:?}; xtask/src/tidy/crates.rs",
                allowed.join(", ")
            );
            problems.push(Problem::new(TABLE_PATH, at, said));
        }
    }
    for (user, (at, _)) in written {
        problems.push(Problem::new(
            TABLE_PATH,
            at,
            format!("tidy knows no crate {user}: xtask/src/tidy/crates.rs"),
        ));
    }
}

fn words(list: &str) -> BTreeSet<&str> {
    list.split(',')
        .map(str::trim)
        .filter(|word| !word.is_empty())
        .collect()
}

fn check_crate(path: &str, folder: &str, text: &str, problems: &mut Vec<Problem>) {
    let manifest: Table = match text.parse() {
        Ok(manifest) => manifest,
        Err(error) => {
            return problems.push(Problem::new(
                path,
                1,
                format!("not TOML: {}", error.message()),
            ));
        }
    };
    let name = folder.strip_prefix("crates/").unwrap_or(folder);
    for table in DEPENDENCY_TABLES {
        let Some(dependencies) = manifest.get(table).and_then(Value::as_table) else {
            continue;
        };
        for (dependency, written) in dependencies {
            let mut report = |message: String| {
                problems.push(Problem::new(path, line_of(text, dependency), message))
            };
            if written.get("workspace") != Some(&Value::Boolean(true)) {
                report(format!(
                    "{dependency} is not `workspace = true`: versions are written in the root Cargo.toml"
                ));
            }
            let confined = CONFINED.iter().find(|(foreign, _)| foreign == dependency);
            if let Some((_, users)) = confined.filter(|(_, users)| !users.contains(&name)) {
                report(format!(
                    "{name} uses {dependency}, which is only for {}",
                    users.join(", ")
                ));
            }
            let Some(ours) = dependency.strip_prefix("onrush-") else {
                continue;
            };
            let allowed = EDGES
                .iter()
                .find(|(user, _)| *user == name)
                .map_or(&[][..], |(_, allowed)| allowed);
            if !allowed.contains(&ours) {
                report(format!(
                    "{name} may not use {ours}: see the dependency table in ARCHITECTURE.md"
                ));
            }
        }
    }
}

/// Line of a key, from 1; 1 if it is written in another form.
fn line_of(text: &str, key: &str) -> usize {
    let is_it = |line: &str| {
        line.strip_prefix(key)
            .is_some_and(|rest| rest.starts_with(['.', ' ', '=']))
    };
    text.lines().position(is_it).map_or(1, |at| at + 1)
}

/// Checks that a comment gives the reason for every foreign dependency; adjacent lines without a blank line or a
/// comment between them share one.
fn check_reasons(path: &str, text: &str, problems: &mut Vec<Problem>) {
    let mut in_dependencies = false;
    let mut has_reason = false;
    for (at, line) in text.lines().enumerate() {
        if line.starts_with('[') {
            let table = line.trim_matches(['[', ']', ' ']);
            in_dependencies = table
                .trim_start_matches("workspace.")
                .ends_with("dependencies");
        }
        let is_dependency =
            in_dependencies && line.contains('=') && !line.starts_with(['#', '[', ' ']);
        if !is_dependency {
            has_reason = line.starts_with('#');
        } else if !has_reason && !line.contains("path =") {
            problems.push(Problem::new(
                path,
                at + 1,
                "a dependency without a comment above it that says why",
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `line: message` of every problem of one manifest.
    fn of(path: &str, text: &str) -> Vec<String> {
        let problems = problems(&Tree::of(&[(path, text)]));
        problems
            .iter()
            .map(|problem| format!("{}: {}", problem.line, problem.message))
            .collect()
    }

    #[test]
    fn undeclared_dependency_is_a_problem() {
        let manifest =
            "[dependencies]\nonrush-http.workspace = true\nonrush-serve.workspace = true\n";
        assert_eq!(
            of("crates/load/Cargo.toml", manifest),
            ["3: load may not use serve: see the dependency table in ARCHITECTURE.md"]
        );
        assert_eq!(of("crates/http/Cargo.toml", manifest).len(), 2);
        let in_tests = manifest.replace("[dep", "[dev-dep");
        assert_eq!(of("crates/load/Cargo.toml", &in_tests).len(), 1);
    }

    #[test]
    fn dependency_table_matches_manifests() {
        let of = |rows: &str| {
            let text = format!(
                "# A\n{TABLE_HEADING}\n\n| crate | may use |\n|---|---|\n{rows}\n## Next\n| x | y |\n"
            );
            let edges: [(&str, &[&str]); 3] = [("a", &["b", "c"]), ("b", &[]), ("c", &[])];
            let mut problems = Vec::new();
            check_table(&text, &edges, &mut problems);
            let said = problems
                .iter()
                .map(|problem| format!("{}: {}", problem.line, problem.message));
            said.collect::<Vec<_>>()
        };
        assert_eq!(of("| a | c, b |\n| b, c | |\n"), [""; 0]);
        assert_eq!(
            of("| a | b |\n| b | |\n| d | |\n"),
            [
                "6: tidy knows for a: \"b, c\"; xtask/src/tidy/crates.rs",
                "2: c is not in the table of crates",
                "8: tidy knows no crate d: xtask/src/tidy/crates.rs",
            ]
        );
    }

    #[test]
    fn restricted_external_crate_is_a_problem() {
        let manifest = "[dependencies]\nlibc = { workspace = true }\n";
        assert_eq!(
            of("crates/serve/Cargo.toml", manifest),
            ["2: serve uses libc, which is only for engine"]
        );
        assert_eq!(of("crates/engine/Cargo.toml", manifest), [""; 0]);
    }

    #[test]
    fn version_outside_root_manifest_is_a_problem() {
        assert_eq!(
            of("crates/http/Cargo.toml", "[dependencies]\nmemchr = \"2\"\n"),
            ["2: memchr is not `workspace = true`: versions are written in the root Cargo.toml"]
        );
    }

    #[test]
    fn dependency_without_comment_is_a_problem() {
        let manifest = "[workspace.dependencies]\nonrush-http = { path = \"crates/http\" }\n\n# Why.\na = \"1\"\nb = \"1\"\n\nc = \"1\"\n";
        assert_eq!(
            of("Cargo.toml", manifest),
            ["8: a dependency without a comment above it that says why"]
        );
        assert_eq!(of("Cargo.toml", "[profile.dev]\nopt-level = 1\n"), [""; 0]);
    }
}
