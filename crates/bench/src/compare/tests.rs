//! Comparisons of simulated runs with known changes.

mod power;

use std::path::Path;

use onrush_measure::random::Random;

use super::*;
use crate::archive::{Facts, Rows};

const HEAD: &str = "round,at_s,work,variant,ours,valid,disturbed,client_is_limit,metric,value\n";

/// An environment with this kernel, in which `variant ours` uses this driver.
fn facts(kernel: &str, driver: &str, nginx: &str) -> Facts {
    let text = format!(
        r#"{{"schema": 1, "machine": {{"kernel": "{kernel}", "cpu_model": "X", "cpus": [0, 1]}},
        "programs": {{"nginx": {{"file": "/usr/sbin/nginx", "version": "{nginx}"}}}},
        "commands": {{"w / ours / server": ["onrush", "serve", "--io", "{driver}"], "w / nginx / server": ["/usr/sbin/nginx"]}},
        "experiment": "name = \"e\""}}"#
    );
    Facts::parse(&text, Path::new("environment.json")).expect("an environment")
}

fn run(name: &str, rows: &str) -> Run {
    Run {
        name: name.into(),
        facts: facts("6.18", "epoll", "1.22"),
        rows: Rows::parse(&format!("{HEAD}{rows}"), Path::new("raw.csv")).expect("a table"),
    }
}

/// Rows of one variant, one value per round, with `flags` for valid, disturbed and client_is_limit.
fn rows(variant: &str, metric: &str, flags: &str, values: impl IntoIterator<Item = f64>) -> String {
    let is_ours = !variant.starts_with("nginx");
    let row = |(at, value): (usize, f64)| {
        let round = at + 1;
        format!("{round},0,w,{variant},{is_ours},{flags},{metric},{value}\n")
    };
    values.into_iter().enumerate().map(row).collect()
}

const CPU: &str = "server.cpu_us_per_request";
const SOUND: &str = "true,false,false";

/// `count` rounds around `level` with a standard deviation of 1 %.
fn around(seed: u64, level: f64, count: usize) -> Vec<f64> {
    let mut random = Random::new(seed);
    (0..count)
        .map(|_| level * (random.normal() * 0.01).exp())
        .collect()
}

fn only(comparison: &Comparison) -> &Figure {
    assert_eq!(comparison.figures.len(), 1, "{comparison}");
    &comparison.figures[0]
}

fn beside(metric: &str, a: f64, b: f64) -> Comparison {
    let side = |seed: u64, level: f64| {
        rows("ours", metric, SOUND, around(seed, level, 20))
            + &rows("nginx", metric, SOUND, around(seed + 1, 5.0, 20))
    };
    let runs = [run("A", &side(1, a)), run("B", &side(3, b))];
    compare(&runs[0], &runs[1], &Options::default())
}

#[test]
fn higher_rate_is_better_higher_cost_is_worse() {
    for (metric, a, b, verdict) in [
        ("rps", 100.0, 120.0, Verdict::Better),
        ("rps", 120.0, 100.0, Verdict::Worse),
        (CPU, 100.0, 120.0, Verdict::Worse),
        (CPU, 120.0, 100.0, Verdict::Better),
        ("latency.p99", 100.0, 120.0, Verdict::Worse),
        ("latency.mean", 120.0, 100.0, Verdict::Better),
        ("server.memory_per_connection", 100.0, 120.0, Verdict::Worse),
        (CPU, 100.0, 100.0, Verdict::NoDifference),
    ] {
        let comparison = beside(metric, a, b);
        assert_eq!(only(&comparison).verdict, verdict, "{comparison}");
    }
    let words = only(&beside(CPU, 100.0, 120.0)).words();
    assert!(
        words.starts_with("worse by 2") || words.starts_with("worse by 19"),
        "{words}"
    );
}

#[test]
fn change_shared_with_reference_cancels_out() {
    let side = |seed: u64, drift: f64| {
        let drifted = |level: f64, seed: u64| around(seed, level * drift, 20);
        rows("ours", CPU, SOUND, drifted(3.0, seed))
            + &rows("nginx", CPU, SOUND, drifted(5.0, seed + 1))
    };
    let runs = [run("A", &side(1, 1.0)), run("B", &side(3, 1.3))];
    let comparison = compare(&runs[0], &runs[1], &Options::default());
    let figure = only(&comparison);
    assert_eq!(figure.verdict, Verdict::NoDifference, "{comparison}");
    let beside = figure.beside.as_ref().expect("a reference");
    assert_eq!(
        (&beside.reference[..], beside.alone_verdict),
        ("nginx", Verdict::Worse)
    );
    assert!((beside.a.ratio - 0.6).abs() < 0.01, "{beside:?}");
    assert!((comparison.references[0].change - 0.3).abs() < 0.02);
}

#[test]
fn small_change_without_reference_is_inconclusive() {
    let side = |seed: u64, level: f64| rows("ours", CPU, SOUND, around(seed, level, 200));
    let runs = |b: f64| [run("A", &side(1, 3.0)), run("B", &side(2, b))];
    let [a, b] = runs(3.0);
    let comparison = compare(&a, &b, &Options::default());
    let figure = only(&comparison);
    assert_eq!(figure.verdict, Verdict::CannotBeTold, "{comparison}");
    assert!(
        figure.why.contains("a reference with enough rounds") && figure.rounds_needed.is_none()
    );
    let known = Options {
        between_runs: Some(0.001),
        ..Options::default()
    };
    assert_eq!(
        only(&compare(&a, &b, &known)).verdict,
        Verdict::NoDifference
    );
    let [a, b] = runs(3.6);
    assert_eq!(
        only(&compare(&a, &b, &Options::default())).verdict,
        Verdict::Worse
    );
}

#[test]
fn least_varying_reference_is_used() {
    let side = |seed: u64| {
        let machine = around(seed, 1.0, 20);
        let with = |level: f64| machine.iter().map(move |it| it * level);
        let noisy = around(seed + 1, 7.0, 20);
        rows("ours", CPU, SOUND, with(3.0))
            + &rows("nginx far", CPU, SOUND, noisy)
            + &rows("nginx near", CPU, SOUND, with(5.0))
    };
    let runs = [run("A", &side(1)), run("B", &side(5))];
    let comparison = compare(&runs[0], &runs[1], &Options::default());
    let beside = only(&comparison).beside.as_ref().expect("a reference");
    assert_eq!(beside.reference, "nginx near");
}

#[test]
fn incomparable_figures_have_a_reason() {
    let good = || rows("ours", "rps", SOUND, around(1, 100.0, 9));
    let verdict = |b: &str| {
        let comparison = compare(&run("A", &good()), &run("B", b), &Options::default());
        let figure = only(&comparison).clone();
        assert_eq!(comparison.status(Selection::All), ComparisonStatus::Untold);
        (figure.verdict, figure.why)
    };
    let with = |flags: &str| rows("ours", "rps", flags, around(2, 100.0, 9));
    for (rows, why) in [
        (with("false,false,false"), "9 of 9 rounds of B were invalid"),
        (
            with("true,true,false"),
            "9 of 9 rounds of B were disturbed by other programs",
        ),
        (
            with("true,false,true"),
            "9 of 9 rounds of B were limited by the client",
        ),
        (
            rows("ours", "rps", SOUND, around(2, 100.0, 4)),
            "B has 4 rounds: at least 5 are needed",
        ),
        (
            rows("ours", "rps", SOUND, vec![0.0; 9]),
            "9 of 9 rounds of B are not above 0",
        ),
    ] {
        assert_eq!(verdict(&rows), (Verdict::NotComparable, why.to_owned()));
    }
}

#[test]
fn machine_and_driver_differences_limit_comparison() {
    let side = |name: &str, seed: u64| {
        let ours = rows("ours", CPU, SOUND, around(seed, 3.0, 20));
        let second = rows("second", CPU, SOUND, around(seed + 1, 3.0, 20));
        run(
            name,
            &(ours + &second + &rows("nginx", CPU, SOUND, around(seed + 2, 5.0, 20))),
        )
    };
    let of = |facts: Facts| -> Vec<(Verdict, String)> {
        let b = Run {
            facts,
            ..side("B", 5)
        };
        let comparison = compare(&side("A", 1), &b, &Options::default());
        let all = comparison.figures.into_iter();
        all.map(|it| (it.verdict, it.why)).collect()
    };
    let kernel = (Verdict::NotComparable, "another kernel".to_owned());
    assert_eq!(of(facts("6.19", "epoll", "1.22")), [kernel.clone(), kernel]);
    let driver = of(facts("6.18", "io_uring", "1.22"));
    assert_eq!(
        driver[0],
        (Verdict::NotComparable, "another driver".to_owned())
    );
    assert_eq!(driver[1].0, Verdict::NoDifference);
    assert!(
        of(facts("6.18", "epoll", "1.26"))
            .iter()
            .all(|(_, why)| why.contains("a reference with enough rounds"))
    );
}

#[test]
fn status_reflects_verdicts() {
    let standing = |metric: &str, a: f64, b: f64, asked| beside(metric, a, b).status(asked);
    assert_eq!(
        standing(CPU, 3.0, 3.0, Selection::All),
        ComparisonStatus::Passed
    );
    assert_eq!(
        standing(CPU, 3.0, 2.0, Selection::ByName),
        ComparisonStatus::Passed
    );
    assert_eq!(
        standing(CPU, 3.0, 4.0, Selection::All),
        ComparisonStatus::Worse
    );
    // 2 % is the boundary between both verdicts.
    assert_eq!(
        standing(CPU, 3.0, 3.06, Selection::All),
        ComparisonStatus::Passed
    );
    assert_eq!(
        standing(CPU, 3.0, 3.06, Selection::ByName),
        ComparisonStatus::Untold
    );
    let nothing = compare(
        &run("A", &rows("ours", CPU, SOUND, around(1, 3.0, 9))),
        &run("B", &rows("others", CPU, SOUND, around(1, 3.0, 9))),
        &Options::default(),
    );
    assert_eq!(nothing.status(Selection::All), ComparisonStatus::Untold);
    assert_eq!(nothing.only_in_a, ["w / ours"]);
    assert_eq!(nothing.only_in_b, ["w / others"]);
}

#[test]
fn only_selected_figures_are_judged() {
    let side = |seed: u64| {
        rows("ours", CPU, SOUND, around(seed, 3.0, 20))
            + &rows("ours", "rps", SOUND, around(seed + 1, 3.0, 20))
            + &rows("nginx", CPU, SOUND, around(seed + 2, 5.0, 20))
            + &rows("ours", "collector.cpu_share", SOUND, around(seed, 1.0, 20))
    };
    let runs = [run("A", &side(1)), run("B", &side(5))];
    let metrics = |only: &[&str]| -> Vec<String> {
        let options = Options {
            only: only.iter().map(|it| (*it).to_owned()).collect(),
            ..Options::default()
        };
        let figures = compare(&runs[0], &runs[1], &options).figures;
        figures
            .into_iter()
            .map(|it| format!("{} {}", it.subject.variant, it.metric))
            .collect()
    };
    assert_eq!(metrics(&[]), ["ours rps", "ours server.cpu_us_per_request"]);
    assert_eq!(metrics(&["w / ours / rps"]), ["ours rps"]);
    assert_eq!(metrics(&["nginx"]), [""; 0]);
    let share = "ours collector.cpu_share";
    assert_eq!(metrics(&["collector.cpu_share"]), [share]);
    assert_eq!(metrics(&["ours / rps", "cpu_share"]), ["ours rps"]);
    let comparison = compare(&runs[0], &runs[1], &Options::default());
    assert_eq!(comparison.without_direction, ["collector.cpu_share"]);
    let peers = |seed| run("P", &rows("nginx", CPU, SOUND, around(seed, 5.0, 20)));
    let comparison = compare(&peers(1), &peers(2), &Options::default());
    assert_eq!(only(&comparison).subject.variant, "nginx");
}

#[test]
fn many_figures_use_joint_confidence() {
    // For a single figure, five higher rounds after five lower ones suffice for 90 %; of forty figures, one looks like
    // this by chance.
    let side = |factor: f64| -> String {
        (0..40)
            .map(|variant| {
                let name = format!("v{variant}");
                rows(&name, CPU, SOUND, around(variant, 3.0 * factor, 5))
            })
            .collect()
    };
    let runs = [run("A", &side(1.0)), run("B", &side(2.0))];
    let comparison = compare(&runs[0], &runs[1], &Options::default());
    let figure = &comparison.figures[0];
    assert_eq!(figure.verdict, Verdict::CannotBeTold, "{comparison}");
    assert!(figure.why.contains("--only"), "{}", figure.why);
    let one = Options {
        only: vec!["v7".into()],
        ..Options::default()
    };
    assert_eq!(
        only(&compare(&runs[0], &runs[1], &one)).verdict,
        Verdict::Worse
    );
}

#[test]
fn all_output_formats_agree() {
    let comparison = beside(CPU, 3.0, 3.6);
    let words = comparison.figures[0].words();
    let markdown = comparison.to_markdown();
    assert!(comparison.to_string().contains(&words));
    assert!(markdown.contains(&words), "{markdown}");
    let json = serde_json::to_value(&comparison).expect("numbers and text");
    assert_eq!(json["figures"][0]["verdict"], "worse");
    assert_eq!(json["figures"][0]["beside"]["reference"], "nginx");
    let columns = |line: &str| line.matches(" | ").count();
    let table: Vec<&str> = markdown
        .lines()
        .filter(|line| line.starts_with("| "))
        .collect();
    assert_eq!(table.len(), 2);
    assert_eq!(columns(table[0]), columns(table[1]));
}
