//! `onrush load --journeys`: steps in order, with values taken from responses; our counts equal the server's, step by
//! step.

use std::fs;
use std::time::SystemTime;

use rustix::process::Signal;
use serde_json::Value;
use tempfile::TempDir;

use crate::peer::peer;
use crate::program::{Program, drivers, onrush, run_onrush, until};

/// A shop that identifies customers by tokens; see its source file.
struct Shop {
    program: Program,
    url: String,
    directory: TempDir,
}

impl Shop {
    fn start(words: &[&str]) -> Shop {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("shop.py");
        fs::write(&file, include_str!("journeys/shop.py")).expect("it is ours");
        let program = Program::start(peer("python3", &[]).arg(&file).args(words));
        program.out.wait_for("listening on ");
        let said = program.out.wait_for("\n");
        let port = said.lines().next().and_then(|line| line.rsplit(' ').next());
        let url = format!("http://127.0.0.1:{}/", port.expect("it says one"));
        Shop {
            program,
            url,
            directory,
        }
    }

    /// Runs the journeys of `text`; returns the exit code and the result.
    fn visit(&self, text: &str, arguments: &[&str]) -> (Option<i32>, Value) {
        let path = |name: &str| self.directory.path().join(name).display().to_string();
        let (file, json) = (path("shop.toml"), path("result.json"));
        fs::write(&file, text).expect("it is ours");
        let words = ["load", &self.url, "--journeys", &file, "--json", &json];
        let finished = run_onrush(&[&words, arguments].concat()).on_any_machine();
        let text = fs::read_to_string(&json);
        let text = text.unwrap_or_else(|error| panic!("{error}: {finished:?}"));
        let value = serde_json::from_str(&text);
        (
            finished.code,
            value.unwrap_or_else(|error| panic!("{error}: {text}")),
        )
    }

    /// Number of log lines with this beginning (method and path) and end (status).
    fn count(&self, begin: &str, end: &str) -> u64 {
        let log = self.program.out.so_far();
        let lines = log
            .lines()
            .filter(|line| line.starts_with(begin) && line.ends_with(end));
        lines.count() as u64
    }
}

/// The example of the documentation, with shorter pauses.
fn example() -> String {
    let page = include_str!("../docs/journeys.md");
    let block = page
        .split("```toml\n")
        .nth(1)
        .and_then(|rest| rest.split("```").next());
    block
        .expect("it has one")
        .replace("\"1s-3s\"", "\"1ms-3ms\"")
}

fn number(value: &Value, key: &str) -> u64 {
    value[key]
        .as_u64()
        .unwrap_or_else(|| panic!("no {key} in {value}"))
}

/// Journeys begun, completed, failed and unfinished.
fn ends(row: &Value) -> [u64; 4] {
    ["begun", "completed", "failed", "unfinished"].map(|key| number(row, key))
}

fn steps(result: &Value) -> Vec<Value> {
    result["journeys"][0]["steps"]
        .as_array()
        .expect("a list")
        .clone()
}

/// Checks that the counts of journeys and steps add up.
#[track_caller]
fn check_counts(result: &Value) {
    for journey in result["journeys"].as_array().expect("a list") {
        let [begun, completed, failed, unfinished] = ends(journey);
        assert_eq!(begun, completed + failed + unfinished, "{journey}");
        let mut came = begun;
        for step in journey["steps"].as_array().expect("a list") {
            let [begun, completed, failed, unfinished] = ends(step);
            assert_eq!(begun, completed + failed + unfinished, "{step}");
            assert!(begun <= came, "{step}");
            came = completed;
        }
        assert_eq!(
            came, completed,
            "who completed the last step has completed all"
        );
    }
    let evidence = &result["evidence"];
    assert_eq!(evidence["is_count_consistent"], true, "{evidence}");
}

#[test]
fn users_send_separate_values_and_steps_are_counted() {
    for io in drivers() {
        for words in [&["broken"][..], &["broken", "close"]] {
            let shop = Shop::start(words);
            let arguments = ["-n", "100", "-c", "10", "-t", "2", "--io", io];
            let (code, result) = shop.visit(&example(), &arguments);
            // A check has failed; the code is 0 on a machine with too little CPU.
            assert!(matches!(code, Some(0 | 3)), "{code:?}: {result}");
            check_counts(&result);
            assert_eq!(ends(&result["journeys"][0]), [100, 90, 10, 0]);
            let steps = steps(&result);
            let counts: Vec<[u64; 4]> = steps.iter().map(ends).collect();
            assert_eq!(
                counts,
                [
                    [100, 100, 0, 0],
                    [100, 100, 0, 0],
                    [100, 90, 10, 0],
                    [90, 90, 0, 0]
                ]
            );
            // The server sends a page only if token and cookie belong to the same customer.
            let seen = [
                shop.count("POST /login ", " 200"),
                shop.count("GET /items ", " 200"),
                shop.count("GET /items/", " 302")
                    + shop.count("GET /items/", " 200")
                    + shop.count("GET /items/", " 500"),
                shop.count("POST /logout ", " 204"),
            ];
            assert_eq!(seen, [100, 100, 200, 90], "{words:?}");
            let requests: Vec<u64> = steps.iter().map(|step| number(step, "requests")).collect();
            assert_eq!(requests, seen);
            let statuses = &result["statuses"];
            let by_status = [("200", 290), ("204", 90), ("302", 100), ("500", 10)];
            for (status, count) in by_status {
                assert_eq!(number(statuses, status), count, "{status}: {statuses}");
                assert_eq!(shop.count("", &format!(" {status}")), count, "{status}");
            }
            for customer in 0..100 {
                let login = format!("GET /items/{customer}7 {customer} 302");
                assert_eq!(shop.count(&login, ""), 1, "customer {customer}");
            }
            assert_eq!(number(&result["errors_by_kind"], "check_failed"), 10);
            assert_eq!(number(&result, "errors"), 10, "{result}");
            let checks = &steps[2]["checks"];
            assert_eq!(
                [number(&checks[0], "passed"), number(&checks[0], "failed")],
                [90, 10]
            );
            assert_eq!(
                number(&checks[1], "failed"),
                10,
                "a page of an error has no stock"
            );
            let connections = number(&result, "connections");
            match words.contains(&"close") {
                true => assert_eq!(connections, number(&result, "requests")),
                false => assert_eq!(connections, 10),
            }
        }
    }
}

#[test]
fn conditions_select_journeys_steps_and_checks() {
    let shop = Shop::start(&["broken"]);
    let text = example();
    let step = text
        .split("[[journey.step]]")
        .nth(3)
        .and_then(|step| step.split('"').nth(1));
    let step = step.expect("the third step has a name");
    for (condition, fate) in [
        ("errors{step:STEP} > 9%", "failed"),
        ("errors{journey:buy,step:STEP} > 11%", "passed"),
        ("failed_checks{step:STEP} > 19", "failed"),
        ("failed_checks > 20", "passed"),
        ("p50{step:STEP} > 1ns", "failed"),
        // Ten of a hundred journeys have no total time.
        ("max{journey:buy} > 1000s", "undecided"),
    ] {
        let condition = condition.replace("STEP", step);
        let arguments = ["-n", "100", "-c", "10", "--fail-if", &condition];
        let (_, result) = shop.visit(&example(), &arguments);
        let outcome = &result["thresholds"][0];
        assert_eq!(outcome["fate"], fate, "{outcome}");
    }
}

#[test]
fn unknown_step_in_condition_is_refused() {
    let shop = Shop::start(&[]);
    let file = shop.directory.path().join("shop.toml");
    fs::write(&file, example()).expect("it is ours");
    let file = file.display().to_string();
    let with = ["load", &shop.url, "--journeys", &file, "-n", "1"];
    let without = ["load", &shop.url, "-n", "1"];
    for (words, flag, condition, said) in [
        (
            &with[..],
            "--fail-if",
            "p99{step:pay} > 1s",
            "{step:pay} is not among the journeys and their steps: buy (",
        ),
        (
            &with[..],
            "--fail-if",
            "p99{journey:sell} > 1s",
            "{journey:sell} is not among",
        ),
        (
            &with[..],
            "--fail-if",
            "failed_checks{step:list} > 0",
            "has no checks",
        ),
        (
            &with[..],
            "--fail-if",
            "connect.p99{step:login} > 1s",
            "has only its response time",
        ),
        (
            &with[..],
            "--fail-if",
            "p99{login} > 1s",
            "expected {journey:NAME}",
        ),
        (
            &with[..],
            "--fail-if",
            "p99{step:login > 1s",
            "the brace is not closed",
        ),
        (
            &with[..],
            "--stop-if",
            "p99{step:login} > 1s",
            "known only at the end of a run",
        ),
        (
            &without[..],
            "--fail-if",
            "p99{step:login} > 1s",
            "no journeys: pass --journeys",
        ),
        (
            &without[..],
            "--fail-if",
            "failed_checks > 0",
            "no journeys: pass --journeys",
        ),
    ] {
        let finished = run_onrush(&[words, &[flag, condition]].concat());
        assert!(
            matches!(finished.code, Some(1 | 2)),
            "{condition}: {finished:?}"
        );
        assert!(finished.err.contains(said), "{condition}: {finished:?}");
    }
    assert_eq!(shop.count("POST ", "") + shop.count("GET ", ""), 0);
}

#[test]
fn setup_steps_run_once_and_are_not_counted() {
    let shop = Shop::start(&[]);
    let text = example()
        .replacen("[[journey]]\nname = \"buy\"\n", "", 1)
        .replacen("[[journey.step]]", "[[setup]]", 1)
        .replacen(
            "[[journey.step]]",
            "[[journey]]\nname = \"buy\"\n[[journey.step]]",
            1,
        );
    let text = text
        .split("[[journey.step]]\nname = \"logout\"")
        .next()
        .expect("a part");
    let (code, result) = shop.visit(text, &["-n", "60", "-R", "100", "-c", "5", "-t", "2"]);
    assert_eq!(code, Some(0), "{result}");
    check_counts(&result);
    assert_eq!(ends(&result["setup"]), [5, 5, 0, 0]);
    assert_eq!(shop.count("POST /login ", ""), 5);
    let begun = number(&result["journeys"][0], "begun");
    assert_eq!(begun + number(&result, "missed"), 60);
    assert_eq!(number(&result, "requests"), 3 * begun, "without the logins");
    assert_eq!(shop.count("GET /items", ""), 3 * begun);
}

#[test]
fn arrivals_without_free_user_count_as_missed() {
    let shop = Shop::start(&[]);
    let text = example().replace("\"1ms-3ms\"", "\"1m\"");
    let (code, result) = shop.visit(&text, &["-R", "50", "-c", "2", "-d", "2s"]);
    assert_eq!(code, Some(5), "two of a hundred could begin: {result}");
    check_counts(&result);
    assert_eq!(ends(&result["journeys"][0]), [2, 0, 0, 2]);
    assert_eq!(number(&result, "missed"), 98);
    assert_eq!(shop.count("POST /login ", ""), 2);
}

#[test]
fn unknown_content_codings_are_errors() {
    let shop = Shop::start(&[]);
    let accepting = |coding: &str| {
        let list = "url = \"/items\"\n";
        let field = format!("{list}headers.Accept-Encoding = \"{coding}\"\n");
        example().replacen(list, &field, 1)
    };
    let (code, result) = shop.visit(&accepting("gzip"), &["-n", "5", "-c", "1"]);
    assert_eq!(code, Some(0), "{result}");
    assert_eq!(ends(&result["journeys"][0]), [5, 5, 0, 0]);
    let (code, result) = shop.visit(&accepting("br"), &["-n", "5", "-c", "1"]);
    assert!(matches!(code, Some(0 | 3)), "{code:?}: {result}");
    check_counts(&result);
    assert_eq!(ends(&result["journeys"][0]), [5, 0, 5, 0]);
    let list = &steps(&result)[1];
    assert_eq!(number(&list["errors_by_kind"], "body_coded"), 5);
    assert_eq!(number(&result["errors_by_kind"], "body_coded"), 5);
}

#[test]
fn redirects_are_followed_up_to_limit() {
    let shop = Shop::start(&[]);
    let without = example()
        .replace("redirects = 3\n", "")
        .replace("status = 200, required = true },", "status = 302 },");
    let (_, result) = shop.visit(&without, &["-n", "3", "-c", "1"]);
    assert_eq!(ends(&result["journeys"][0]), [3, 3, 0, 0]);
    assert_eq!(shop.count("GET /items/", " 200"), 0);
    let unaccepted = |result: &Value| number(&result["evidence"], "unaccepted");
    assert_eq!(unaccepted(&result), 0);
    let home = "[[journey]]\nname = \"a\"\n[[journey.step]]\nname = \"in\"\nurl = \"/login\"\nbody = '{\"customer\": \"1\"}'\n\
                take.token = { json = \"/token\" }\n[[journey.step]]\nname = \"there\"\nurl = \"/items/17\"\n\
                headers.Authorization = \"Bearer {{token}}\"\nredirects = 1\ntake.none = { header = \"X-None\" }\n";
    let (code, result) = shop.visit(home, &["-n", "2", "-c", "1"]);
    assert!(matches!(code, Some(0 | 3)), "{code:?}: {result}");
    let there = &steps(&result)[1];
    assert_eq!(number(&there["errors_by_kind"], "no_value"), 2, "{there}");
    assert_eq!((number(there, "requests"), number(there, "failed")), (4, 2));
    assert_eq!(unaccepted(&result), 0, "it was followed");
    let unchecked = home.replace("redirects = 1\n", "");
    let (_, result) = shop.visit(&unchecked, &["-n", "2", "-c", "1"]);
    assert_eq!(unaccepted(&result), 2, "{result}");
}

#[test]
fn dying_server_fails_running_journeys() {
    let shop = Shop::start(&[]);
    let path = |name: &str| shop.directory.path().join(name).display().to_string();
    let (file, json) = (path("shop.toml"), path("result.json"));
    fs::write(&file, example()).expect("it is ours");
    let words = [
        "load",
        &shop.url,
        "--journeys",
        &file,
        "--json",
        &json,
        "-d",
        "50s",
        "-c",
        "8",
    ];
    let more = ["--stop-if", "errors >= 1"];
    let load = Program::start(&mut onrush(&[&words[..], &more].concat()));
    until("journeys that have ended", || {
        (shop.count("POST /logout ", "") >= 20).then_some(())
    });
    shop.program.signal(Signal::KILL);
    let finished = load.finish();
    let result = fs::read_to_string(&json).unwrap_or_else(|error| panic!("{error}: {finished:?}"));
    let result: Value = serde_json::from_str(&result).expect("it is JSON");
    check_counts(&result);
    let [begun, completed, failed, _] = ends(&result["journeys"][0]);
    assert!(completed > 0 && failed > 0 && begun > failed, "{result}");
    let of_steps: u64 = steps(&result)
        .iter()
        .map(|step| number(step, "failed"))
        .sum();
    assert_eq!(of_steps, failed, "each failed at a step");
    let refused = number(&result["errors_by_kind"], "connect_refused");
    assert!(refused > 0, "{result}");
}

#[test]
fn journey_shards_add_up() {
    let shop = Shop::start(&[]);
    let path = |name: &str| shop.directory.path().join(name).display().to_string();
    let (file, other) = (path("shop.toml"), path("other.toml"));
    fs::write(&file, example()).expect("it is ours");
    fs::write(
        &other,
        example().replace("name = \"list\"", "name = \"items\""),
    )
    .expect("it is ours");
    // Time for all three to be ready.
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let at = (now.expect("it is later").as_secs() + 5).to_string();
    let parts: Vec<Program> = [
        ("1/2", &file, "1"),
        ("2/2", &file, "2"),
        ("2/2", &other, "3"),
    ]
    .into_iter()
    .map(|(part, file, name)| {
        let json = path(name);
        let words = [
            "load",
            &shop.url,
            "--journeys",
            file,
            "--json",
            &json,
            "--shard",
            part,
        ];
        let more = ["-R", "20", "-n", "20", "-c", "6", "--start-at", &at];
        Program::start(&mut onrush(&[&words[..], &more].concat()))
    })
    .collect();
    for part in parts {
        let finished = part.finish().on_any_machine();
        assert_eq!(finished.code, Some(0), "{finished:?}");
    }
    let sum = path("sum");
    let finished = run_onrush(&[
        "load",
        "merge",
        &path("1"),
        &path("2"),
        "--json",
        &sum,
        "--html",
        &path("page"),
    ]);
    let text = fs::read_to_string(&sum).unwrap_or_else(|error| panic!("{error}: {finished:?}"));
    let result: Value = serde_json::from_str(&text).expect("it is JSON");
    check_counts(&result);
    assert_eq!(ends(&result["journeys"][0]), [20, 20, 0, 0]);
    // All three generators ran at once, and two of them used the same customer numbers.
    assert!(finished.out.contains("journeys "), "{finished:?}");
    let page = fs::read_to_string(path("page")).expect("it is written");
    assert!(page.contains("<h2>Journeys</h2>"), "{page}");
    let refused = run_onrush(&["load", "merge", &path("1"), &path("3")]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(
        refused
            .err
            .contains("journey \"buy\" has other steps than \"buy\""),
        "{refused:?}"
    );
}

#[test]
fn flags_incompatible_with_journeys_are_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("a.toml").display().to_string();
    fs::write(&file, example()).expect("it is ours");
    for (arguments, expected) in [
        (&["--pipeline", "2"][..], "leave --pipeline out"),
        (&["-r", "2"], "leave -r and --connections-per-second out"),
        (&["--find-max", "p99<1s"], "cannot be used with"),
        (&["--body", "x"], "cannot be used with"),
        (&["http://127.0.0.1:9/b"], "pass exactly one URL"),
        (&["-H", "Cookie: a=b"], "both set cookies"),
    ] {
        let words = ["load", "http://127.0.0.1:9/", "--journeys", &file];
        let finished = run_onrush(&[&words, arguments].concat());
        assert_eq!(finished.code, Some(1), "{arguments:?}: {finished:?}");
        assert!(
            finished.err.contains(expected),
            "{arguments:?}: {finished:?}"
        );
    }
}
