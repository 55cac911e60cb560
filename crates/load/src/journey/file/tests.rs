//! Valid and invalid journeys files.

use super::*;
use crate::journey::extract::Source;

const SHOP: &str = r#"
[[setup]]
name = "register"
method = "POST"
url = "/users"
take.user = { header = "X-User" }

[[journey]]
name = "buy"
weight = 3

[[journey.step]]
name = "login"
url = "/login"
body = '{"user": "{{user}}"}'
headers = { Content-Type = "application/json", Accept = ["a", "b"] }
redirects = 2
take.token = { json = "/token" }
check = [{ name = "in", status = [200, "3xx"], required = true }]

[[journey.step]]
name = "item"
url = "/items/{{token}}"
think = "100ms-1.5s"
connection = "new"
check = [
    { name = "named", json = "/name", equals = "x" },
    { name = "typed", header = "Content-Type", contains = "json" },
    { name = "worded", matches = "a+" },
]

[[journey]]
name = "look"

[[journey.step]]
name = "home"
url = "/"
"#;

fn read(text: &str) -> Result<ParsedJourneys, String> {
    let target = Target::parse("http://a:81/").unwrap();
    parse(text, Path::new("dir/shop.toml"), &target)
}

#[test]
fn journey_steps_keep_file_order() {
    let ParsedJourneys {
        journeys, requests, ..
    } = read(SHOP).unwrap();
    let of_journeys = journeys.journeys.iter().flat_map(|journey| &journey.steps);
    let steps: Vec<&Step> = journeys.setup.iter().chain(of_journeys).collect();
    let names: Vec<&str> = steps.iter().map(|step| step.name.as_str()).collect();
    assert_eq!(names, ["register", "login", "item", "home"]);
    let recipes: Vec<usize> = steps.iter().map(|step| step.request).collect();
    assert_eq!(recipes, [0, 1, 2, 3]);
    assert_eq!(*journeys.weights, [3, 4]);
    let lines: Vec<String> = requests
        .iter()
        .map(|request| format!("{} {}", request.method, request.path))
        .collect();
    assert_eq!(
        lines,
        [
            "POST /users",
            "POST /login",
            "GET /items/{{token}}",
            "GET /"
        ]
    );
    assert_eq!(requests[1].headers.len(), 3);
    let used: Vec<(&str, ValueUse)> = journeys
        .values
        .iter()
        .map(|value| (value.name.as_str(), value.used))
        .collect();
    assert_eq!(
        used,
        [("user", ValueUse::InBody), ("token", ValueUse::InHead)]
    );
    let item = &journeys.journeys[0].steps[1];
    let milliseconds = [item.think.shortest, item.think.longest].map(|time| time.as_millis());
    assert_eq!(milliseconds, [100, 1500]);
    assert_eq!(item.connection, Connection::New);
    assert_eq!(item.checks.len(), 3);
    let login = &journeys.journeys[0].steps[0];
    assert_eq!(login.redirects, 2);
    assert!(matches!(login.extractions[0].source, Source::Json(_)));
}

#[test]
fn journey_file_errors_have_position() {
    for (from, to, expected) in [
        (
            "name = \"buy\"",
            "nmae = \"buy\"",
            "dir/shop.toml:9:1: unknown field `nmae`",
        ),
        (
            "[[journey]]\nname = \"look\"",
            "[[journey]]\nname = \"buy\"",
            "two journeys have the name \"buy\"",
        ),
        (
            "name = \"item\"",
            "name = \"login\"",
            "journey \"buy\", step \"login\": another step has the same name",
        ),
        (
            "/items/{{token}}",
            "/items/{{tokne}}",
            "sends {{tokne}}, which no earlier step takes: write take.tokne",
        ),
        (
            "{{user}}",
            "{{token}}",
            "step \"login\": it sends {{token}}, which no earlier step takes",
        ),
        (
            "100ms-1.5s",
            "2s-1s",
            "think is \"2s-1s\": expected a pause such as 200ms",
        ),
        ("100ms-1.5s", "5", "think is \"5\""),
        ("100ms-1.5s", "61m", "of 60 minutes at most"),
        (
            "redirects = 2",
            "think = \"1s\"",
            "the first step cannot have think",
        ),
        (
            "json = \"/token\"",
            "json = \"token\"",
            "take.token: \"token\" is not a JSON pointer",
        ),
        ("json = \"/token\"", "json = \"/a~2\"", "not a JSON pointer"),
        (
            "json = \"/token\"",
            "regex = \"(\"",
            "\"(\" is not a regular expression: unclosed group",
        ),
        (
            "json = \"/token\"",
            "json = \"/token\", cookie = \"x\"",
            "expected one of header",
        ),
        ("take.token", "take.counter", "not a valid name for a value"),
        (
            "status = [200, \"3xx\"]",
            "status = 99",
            "\"99\" is not a response status",
        ),
        ("status = [200, \"3xx\"]", "status = 2.5", "status is float"),
        (
            "status = [200, \"3xx\"]",
            "status = 200, equals = \"a\"",
            "a check of a status has no equals",
        ),
        (
            "status = [200, \"3xx\"],",
            "",
            "check \"in\": nothing to check",
        ),
        ("matches = \"a+\"", "equals = 5", "write it in quotes"),
        (
            "contains = \"json\"",
            "contains = \"json\", json = \"/a\"",
            "leave all but one out",
        ),
        (
            "connection = \"new\"",
            "connection = \"fresh\"",
            "expected \"new\" or \"kept\"",
        ),
        (
            "Accept = [\"a\", \"b\"]",
            "Cookie = \"a=b\"",
            "users send the cookies",
        ),
        (
            "Accept = [\"a\", \"b\"]",
            "Accept = true",
            "header \"Accept\" is boolean",
        ),
        ("url = \"/\"", "url = \"http://b/\"", "is on another server"),
        (
            "url = \"/\"",
            "url = \"/\"\nbody = \"a\"\nbody_file = \"b\"",
            "both give a body",
        ),
        (
            "url = \"/\"",
            "url = \"/\"\nbody_file = \"absent\"",
            "dir/absent",
        ),
        (
            "name = \"home\"",
            "name = \" \"",
            "is not a valid name for a step",
        ),
        ("weight = 3", "weight = 0", "dir/shop.toml:10:10:"),
    ] {
        let text = SHOP.replacen(from, to, 1);
        assert_ne!(text, SHOP, "{from} is not there");
        let error = read(&text).unwrap_err();
        assert!(error.starts_with("dir/shop.toml"), "{error}");
        assert!(error.contains(expected), "{to}: {error}");
    }
    let empty = read("").unwrap_err();
    assert!(empty.contains("the file has no journeys"), "{empty}");
    let without = read("[[journey]]\nname = \"a\"").unwrap_err();
    assert!(without.contains("journey \"a\" has no steps"), "{without}");
}

#[test]
fn too_many_steps_are_refused() {
    let step = |number: usize| format!("[[journey.step]]\nname = \"{number}\"\nurl = \"/\"\n");
    let of = |count: usize| {
        let steps: String = (0..count).map(step).collect();
        read(&format!("[[journey]]\nname = \"a\"\n{steps}"))
    };
    assert!(of(STEPS_MAX).is_ok());
    let error = of(STEPS_MAX + 1).unwrap_err();
    assert!(error.contains("are too many"), "{error}");
}
