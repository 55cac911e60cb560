//! Histories with known changes.

use std::fs;

use onrush_measure::random::Random;

use super::*;

struct Folder(tempfile::TempDir);

/// A result to create: name, kernel of its machine, and the levels of ours and of nginx.
struct Made<'a> {
    name: &'a str,
    kernel: &'a str,
    ours: f64,
    nginx: f64,
}

impl Folder {
    fn new() -> Folder {
        Folder(tempfile::tempdir().expect("a directory"))
    }

    fn write(&self, name: &str, file: &str, text: &str) {
        let directory = self.0.path().join(name);
        fs::create_dir_all(&directory).expect("it is ours");
        fs::write(directory.join(file), text).expect("it is ours");
    }

    fn make(&self, made: &Made<'_>, seed: u64) {
        let mut random = Random::new(seed);
        let mut rows = String::from(
            "round,at_s,work,variant,ours,valid,disturbed,client_is_limit,metric,value\n",
        );
        for round in 1..=5 {
            let mut row = |variant: &str, is_ours: bool, level: f64| {
                let value = level * (random.normal() * 0.005).exp();
                rows += &format!(
                    "{round},0,w,{variant},{is_ours},true,false,false,server.cpu_us_per_request,{value}\n"
                );
            };
            row("ours", true, made.ours);
            row("nginx", false, made.nginx);
        }
        self.write(made.name, "raw.csv", &rows);
        let environment = format!(
            r#"{{"schema": 1, "machine": {{"kernel": "{}"}}, "experiment": "name = \"tiny\""}}"#,
            made.kernel
        );
        self.write(made.name, "environment.json", &environment);
    }

    /// Creates `count` runs on successive days with the levels that `of` returns.
    fn days(&self, count: usize, of: impl Fn(usize) -> (f64, f64)) {
        for day in 0..count {
            let (ours, nginx) = of(day);
            let name = format!("2026-11-{:02}-tiny", day + 1);
            let made = Made {
                name: &name,
                kernel: "6.18",
                ours,
                nginx,
            };
            self.make(&made, day as u64);
        }
    }

    fn history(&self, options: &Options) -> History {
        history(self.0.path(), options).expect("results")
    }
}

fn worse_from(first: usize) -> impl Fn(usize) -> (f64, f64) {
    move |day| (if day < first { 3.0 } else { 3.3 }, 5.0)
}

#[test]
fn regression_is_reported_in_all_formats() {
    let folder = Folder::new();
    folder.days(16, worse_from(12));
    let found = folder.history(&Options::default());
    let series = &found.series[0];
    assert_eq!(
        (found.runs, found.series.len(), series.points.len()),
        (16, 1, 16)
    );
    assert_eq!(series.beside.as_deref(), Some("nginx"));
    let change = &series.changes[0];
    assert!(
        change.run.ends_with("2026-11-13-tiny") && change.is_worse,
        "{change:?}"
    );
    assert!((change.effect.ratio - 1.1).abs() < 0.02 && change.confidence >= 0.99);
    assert_eq!(series.behind, LastChange::Worse);
    assert!(found.has_new_regression());
    let words = change.words();
    assert!(found.to_string().contains(&words), "{found}");
    assert!(found.to_markdown().contains(&words));
    let page = found.to_html();
    assert!(
        page.contains(&onrush_chart::escape(&words)) && page.contains("<svg"),
        "{page}"
    );
    for reference in ["http://", "https://", "src=", "url(", "NaN"] {
        assert!(!page.contains(reference), "{reference}");
    }
    let json: serde_json::Value = serde_json::from_str(&found.to_json()).expect("JSON");
    assert_eq!(json["series"][0]["changes"][0]["at"], 12);
}

#[test]
fn change_shared_with_reference_is_not_reported() {
    let folder = Folder::new();
    folder.days(16, |day| {
        let machine = if day < 8 { 1.0 } else { 1.3 };
        (3.0 * machine, 5.0 * machine)
    });
    let found = folder.history(&Options::default());
    assert_eq!(found.series[0].changes.len(), 0, "{found}");
    assert!(!found.has_new_regression());
}

#[test]
fn known_or_reverted_change_is_not_new() {
    let folder = Folder::new();
    folder.days(16, worse_from(8));
    let known = Options {
        since: Some("2026-11-10".into()),
        ..Options::default()
    };
    let found = folder.history(&known);
    assert_eq!(
        (found.series[0].changes.len(), found.has_new_regression()),
        (1, false)
    );
    let better = Folder::new();
    better.days(16, |day| (if day < 8 { 3.3 } else { 3.0 }, 5.0));
    let found = better.history(&Options::default());
    assert_eq!(found.series[0].behind, LastChange::Better);
    let small = Options {
        min_effect: 0.2,
        ..Options::default()
    };
    assert_eq!(better.history(&small).series[0].changes.len(), 0);
    let back = Folder::new();
    back.days(27, |day| {
        (if (9..18).contains(&day) { 3.3 } else { 3.0 }, 5.0)
    });
    let found = back.history(&Options::default());
    let ways: Vec<bool> = found.series[0]
        .changes
        .iter()
        .map(|it| it.is_worse)
        .collect();
    assert_eq!(
        (ways, found.has_new_regression()),
        (vec![true, false], false)
    );
}

#[test]
fn different_machine_starts_new_series() {
    let folder = Folder::new();
    folder.days(8, |_| (3.0, 5.0));
    for day in 9..17 {
        let name = format!("2026-11-{day:02}-tiny");
        let made = Made {
            name: &name,
            kernel: "6.19",
            ours: 3.3,
            nginx: 5.0,
        };
        folder.make(&made, day);
    }
    let found = folder.history(&Options::default());
    let lengths: Vec<usize> = found.series.iter().map(|it| it.points.len()).collect();
    assert_eq!(lengths, [8, 8]);
    assert_eq!(found.machines.len(), 1);
    let said = &found.machines[0];
    assert!(
        said.contains("2026-11-09-tiny was measured on another machine") && said.contains("kernel"),
        "{said}"
    );
}

#[test]
fn unreadable_results_are_listed() {
    let folder = Folder::new();
    folder.days(3, |_| (3.0, 5.0));
    folder.write("2026-11-04-cut", "raw.csv", "round,work\n");
    folder.write("2026-11-05-none", "raw.csv", "round,work\n");
    folder.write("nested/deeper/2026-11-06-tiny", "README.md", "no result");
    let found = folder.history(&Options::default());
    assert_eq!((found.runs, found.left_out.len()), (3, 2));
    assert!(
        found.left_out[0].contains("2026-11-04-cut has no environment.json"),
        "{:?}",
        found.left_out
    );
    folder.write(
        "2026-11-04-cut",
        "environment.json",
        "{\"schema\": 1, \"machine\": {}}",
    );
    let found = folder.history(&Options::default());
    assert!(
        found.left_out[0].contains("raw.csv, line 1: column \"variant\" is missing"),
        "{:?}",
        found.left_out
    );
    let undated = Folder::new();
    undated.make(
        &Made {
            name: "x",
            kernel: "6",
            ours: 1.0,
            nginx: 1.0,
        },
        1,
    );
    assert!(undated.history(&Options::default()).left_out[0].contains("no date found"));
    undated.write(
        "x",
        "result.json",
        "{\"started\": \"2026-11-21T09:00:00Z\"}",
    );
    assert_eq!(undated.history(&Options::default()).runs, 1);
}

#[test]
fn directory_without_results_is_an_error() {
    let folder = Folder::new();
    let said = |path: &Path| {
        history(path, &Options::default())
            .expect_err("nothing")
            .to_string()
    };
    assert!(said(folder.0.path()).starts_with("no result found below"));
    assert!(said(&folder.0.path().join("none")).starts_with("cannot list"));
}

#[test]
fn committed_runs_form_a_history() {
    let runs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../runs");
    let found = history(&runs, &Options::default()).expect("results");
    assert!(found.runs >= 10 && found.left_out.is_empty(), "{found}");
    let days: Vec<&String> = found
        .series
        .iter()
        .flat_map(|it| it.points.iter().map(|it| &it.date))
        .collect();
    assert!(!days.is_empty());
    for series in &found.series {
        assert!(
            series
                .points
                .windows(2)
                .all(|pair| pair[0].date <= pair[1].date)
        );
    }
}
