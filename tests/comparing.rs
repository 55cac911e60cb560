//! `onrush bench compare` and `onrush bench history`: text, files and exit codes for results of earlier runs.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::program::{Finished, run_onrush};

const HEAD: &str = "round,at_s,work,variant,ours,valid,disturbed,client_is_limit,metric,value\n";
const ENVIRONMENT: &str =
    r#"{"schema": 1, "machine": {"kernel": "6.18"}, "experiment": "name = \"tiny\""}"#;

struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Place {
        Place(tempfile::tempdir().expect("a directory"))
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).display().to_string()
    }

    /// Writes a result of 20 rounds in which ours costs `ours` and nginx 5 us, with small variations between rounds.
    fn result(&self, name: &str, ours: f64) -> String {
        let mut rows = HEAD.to_owned();
        for round in 1..=20 {
            let off = 1.0 + f64::from(round * 7 % 11) / 1000.0;
            let back = 1.0 + f64::from(round * 5 % 13) / 1000.0;
            for (variant, is_ours, value) in
                [("ours", true, ours * off), ("nginx", false, 5.0 * back)]
            {
                rows += &format!(
                    "{round},0,w,{variant},{is_ours},true,false,false,server.cpu_us_per_request,{value}\n"
                );
            }
        }
        self.file(name, "raw.csv", &rows);
        self.file(name, "environment.json", ENVIRONMENT);
        self.path(name)
    }

    fn file(&self, directory: &str, name: &str, text: &str) {
        let directory = self.0.path().join(directory);
        fs::create_dir_all(&directory).expect("it is ours");
        fs::write(directory.join(name), text).expect("it is ours");
    }
}

fn compare(words: &[&str]) -> Finished {
    run_onrush(&[&["bench", "compare"], words].concat())
}

fn history(words: &[&str]) -> Finished {
    run_onrush(&[&["bench", "history"], words].concat())
}

fn runs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../runs")
}

#[test]
fn exit_code_reflects_comparison() {
    let place = Place::new();
    let a = place.result("a", 3.0);
    let same = place.result("same", 3.0);
    let slower = place.result("slower", 3.3);
    let between = place.result("between", 3.06);
    for (words, code, said) in [
        (vec![&a[..], &same], 0, "no difference"),
        (vec![&a, &slower], 4, "worse by 10.0 %"),
        (vec![&slower, &a], 0, "better by 9.1 %"),
        (vec![&a, &same, &slower], 4, "worse by 10.0 %"),
        (vec![&a, &between], 0, "inconclusive"),
        (vec![&a, &between, "--only", "ours"], 3, "inconclusive"),
        (vec![&a, &slower, "--smallest", "20%"], 0, "no difference"),
    ] {
        let finished = compare(&words);
        assert_eq!(
            (finished.code, &finished.err[..]),
            (Some(code), ""),
            "{finished:?}"
        );
        assert!(finished.out.contains(said), "{finished:?}");
    }
}

#[test]
fn comparison_is_written_as_json_and_markdown() {
    let place = Place::new();
    let (a, b) = (place.result("a", 3.0), place.result("b", 3.3));
    let file = place.path("table.md");
    let finished = compare(&[&a, &b, "--json", "-", "--markdown", &file]);
    assert_eq!(finished.code, Some(4), "{finished:?}");
    let json: Value = serde_json::from_str(&finished.out).expect("JSON alone on standard output");
    let figure = &json["comparisons"][0]["figures"][0];
    assert_eq!(figure["verdict"], "worse");
    assert_eq!(figure["beside"]["reference"], "nginx");
    assert!(finished.err.contains("worse by 10.0 %"), "{finished:?}");
    let markdown = fs::read_to_string(&file).expect("it was written");
    assert!(
        markdown.contains("| w | ours | server.cpu_us_per_request |"),
        "{markdown}"
    );
}

#[test]
fn invalid_results_are_reported_and_never_overwritten() {
    let place = Place::new();
    let a = place.result("a", 3.0);
    place.file("cut", "raw.csv", &format!("{HEAD}1,0,w,ours,true,tr"));
    place.file("cut", "environment.json", ENVIRONMENT);
    place.file(
        "other",
        "raw.csv",
        &format!("{HEAD}1,0,w,ours,true,true,false,false,rps,x\n"),
    );
    place.file("other", "environment.json", ENVIRONMENT);
    let _ = place.result("newer", 3.0);
    place.file("newer", "environment.json", "{\"schema\": 9}");
    place.file("empty", "README.md", "no result");
    let raw = place.path("a/raw.csv");
    for (words, said) in [
        (
            vec![&a[..], &place.path("none")],
            "is not a directory: expected a result of onrush bench",
        ),
        (
            vec![&a, &place.path("empty")],
            "has no raw.csv: expected a result of onrush bench",
        ),
        (
            vec![&a, &place.path("cut")],
            "raw.csv, line 2: the file ends within this line",
        ),
        (
            vec![&a, &place.path("other")],
            "raw.csv, line 2: value \"x\": expected a number",
        ),
        (
            vec![&a, &place.path("newer")],
            "environment.json has version 9, but this program reads version 1",
        ),
        (
            vec![&a, &a, "--only", "nothing"],
            "is named nothing: a name is 'WORK / VARIANT / METRIC'",
        ),
        (vec![&a, &a, "--json", &raw], "would overwrite the input"),
        (
            vec![&a, &a, "--json", "-", "--markdown", "-"],
            "would both write -",
        ),
    ] {
        let finished = compare(&words);
        assert_eq!(
            (finished.code, &finished.out[..]),
            (Some(1), ""),
            "{words:?}: {finished:?}"
        );
        assert!(finished.err.contains(said), "{words:?}: {finished:?}");
        assert_eq!(finished.err.lines().count(), 1, "{finished:?}");
    }
    for words in [
        vec![&a[..]],
        vec![&a, &a, "--smallest", "0%"],
        vec![&a, &a, "--smallest", "2"],
    ] {
        assert_eq!(compare(&words).code, Some(1), "{words:?}");
    }
}

#[test]
fn committed_runs_can_be_compared() {
    let run = |name: &str| runs().join(name).display().to_string();
    let (a, b) = (
        run("2026-11-21-first-light"),
        run("2026-11-21-first-light-1"),
    );
    let finished = compare(&[&a, &b]);
    assert_eq!(
        (finished.code, &finished.err[..]),
        (Some(0), ""),
        "{finished:?}"
    );
    for part in [
        "fixed answer",
        "onrush io_uring",
        "beside nginx",
        "references differ between A and B although they were not changed",
    ] {
        assert!(finished.out.contains(part), "{part}: {finished:?}");
    }
}

#[test]
fn history_finds_and_marks_new_changes() {
    let place = Place::new();
    for day in 1..=16 {
        let ours = if day < 10 { 3.0 } else { 3.3 };
        // Runs of the same system vary slightly.
        let off = 1.0 + f64::from(day * 3 % 7) / 2000.0;
        place.result(&format!("h/2026-11-{day:02}-tiny"), ours * off);
    }
    let folder = place.path("h");
    let page = place.path("history.html");
    let finished = history(&[&folder, "--html", &page]);
    assert_eq!(
        (finished.code, &finished.err[..]),
        (Some(4), ""),
        "{finished:?}"
    );
    let said = "2026-11-10-tiny (2026-11-10), 99.";
    assert!(
        finished.out.contains(said) && finished.out.contains("  worse by 10."),
        "{finished:?}"
    );
    let page = fs::read_to_string(&page).expect("it was written");
    assert!(page.contains(said) && page.contains("<svg"), "{page}");
    let known = history(&[&folder, "--since", "2026-11-12"]);
    assert_eq!(known.code, Some(0), "{known:?}");
    let json = history(&[&folder, "--json", "-"]);
    let value: Value = serde_json::from_str(&json.out).expect("JSON alone on standard output");
    assert_eq!(value["series"][0]["changes"][0]["at"], 9);
    assert_eq!(value["series"][0]["behind"], "worse");
}

#[test]
fn invalid_history_error_is_one_line() {
    let place = Place::new();
    place.file("h/2026-11-01-x", "README.md", "no result");
    for (words, said) in [
        (vec![place.path("h")], "no result found below"),
        (vec![place.path("none")], "cannot list"),
        (
            vec![
                runs().display().to_string(),
                "--only".into(),
                "nowhere".into(),
            ],
            "is named nowhere",
        ),
    ] {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let finished = history(&words);
        assert_eq!(finished.code, Some(1), "{finished:?}");
        assert!(finished.err.contains(said), "{finished:?}");
    }
    for words in [["--since", "yesterday"], ["--confidence", "100%"]] {
        let folder = place.path("h");
        assert_eq!(
            history(&[&[&folder[..]], &words[..]].concat()).code,
            Some(1),
            "{words:?}"
        );
    }
}

#[test]
fn committed_runs_form_a_history() {
    let folder = runs().display().to_string();
    let finished = history(&[&folder]);
    assert!(
        matches!(finished.code, Some(0 | 4)) && finished.err.is_empty(),
        "{finished:?}"
    );
    assert!(finished.out.contains("runs below"), "{finished:?}");
}
