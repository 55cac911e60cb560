//! `cache_control`: meaning, and error messages.

use onrush_config::plan::{CacheRule, ServerCacheControl};

use super::support::{MessageCases, check_errors, check_warnings, parsed};

fn rules(text: &str) -> Vec<CacheRule> {
    let whole = format!("[[route]]\npath = \"/x\"\n{text}\n[[route]]\nsynthetic = true\n");
    parsed(&whole).plan.routes.remove(0).cache_control
}

#[test]
fn cache_control_rules_default_to_successful_responses() {
    let plain = CacheRule {
        statuses: vec![(200, 299)],
        types: None,
        value: "max-age=60".to_owned(),
        server_field: ServerCacheControl::Keep,
    };
    for written in [
        "\"max-age=60\"",
        "{ value = \"max-age=60\" }",
        "[\"max-age=60\"]",
    ] {
        let text = format!("synthetic = true\ncache_control = {written}");
        assert_eq!(rules(&text), std::slice::from_ref(&plain), "{written}");
    }
    let text = "forward = \"http://10.0.0.1\"\n[[route.cache_control]]\nstatus = [404, \"5xx\", \"410-411\"]\ntype = [\"text/HTML\", \"image/*\"]\nvalue = \"no-store\"\nreplace = true\n[[route.cache_control]]\nvalue = \"max-age=60\"";
    let first = CacheRule {
        statuses: vec![(404, 404), (500, 599), (410, 411)],
        types: Some(vec!["text/html".to_owned(), "image/*".to_owned()]),
        value: "no-store".to_owned(),
        server_field: ServerCacheControl::Replace,
    };
    assert_eq!(rules(text), [first, plain]);
    assert_eq!(rules("synthetic = true\ncache_control = false"), []);
    assert_eq!(rules("synthetic = true"), []);
}

#[test]
fn no_transform_disables_compression() {
    let forbids = |value: &str| {
        rules(&format!("synthetic = true\ncache_control = '{value}'"))[0].forbids_encoding()
    };
    assert!(forbids("public , No-Transform") && forbids("no-transform"));
    assert!(!forbids("no-store"));
}

#[test]
fn default_rules_apply_to_local_routes() {
    let plan = parsed("cache_control = \"max-age=5\"\n[[route]]\npath = \"/a\"\nsynthetic = true\n[[route]]\npath = \"/b\"\nforward = \"http://10.0.0.1\"\n[[route]]\npath = \"/c\"\nsynthetic = true\nresponse_headers = { remove = [\"CACHE-control\"] }\n[[route]]\nsynthetic = true\ncache_control = \"no-store\"\n").plan;
    let values = plan.routes.iter().map(|route| {
        let rules = route.cache_control.iter();
        rules.map(|rule| rule.value.as_str()).collect::<Vec<_>>()
    });
    let expected = [vec!["max-age=5"], vec![], vec![], vec!["no-store"]];
    assert!(values.eq(expected));
}

const BAD: &MessageCases = &[
    (
        "cache_control = true",
        &[
            "1:17: cache_control in the file is true or false: expected a string such as \"max-age=3600\", a table such as { type = \"image/*\", value = \"max-age=3600\" }, a list of such, or false",
        ],
    ),
    (
        "cache_control = [5]",
        &[
            "1:18: cache_control is a number: expected a string such as \"max-age=3600\", a table such as { type = \"image/*\", value = \"max-age=3600\" }, a list of such, or false",
        ],
    ),
    (
        "cache_control = []",
        &[
            "1:17: cache_control in the file is empty: expected a string such as \"max-age=3600\", a table such as { type = \"image/*\", value = \"max-age=3600\" }, a list of such, or false",
        ],
    ),
    (
        "cache_control = [\"public\", { max-age = 5 }, { status = 304, value = \"no-store\", type = [] }]",
        &[
            "1:28: cache_control has no value: expected directives such as \"public, max-age=3600\"",
            "1:30: unknown key \"max-age\" in cache_control; expected one of: status, type, value, replace",
            "1:47: a 304 gets the Cache-Control of its 200: expected status = 200",
            "1:88: type in cache_control is empty: expected a list of media types such as [\"text/*\", \"application/json\"]",
        ],
    ),
    (
        "cache_control = { status = \"2x\", type = \"html\", value = \"max-age=1d\", replace = 1 }",
        &[
            "1:28: \"2x\" is not a status: expected 200 to 599, a range such as \"200-299\", or a class such as \"2xx\"",
            "1:41: \"html\" is not a media type: expected one such as \"text/html\", or \"text/*\" for all of a kind",
            "1:57: \"max-age=1d\" is not a Cache-Control value: max-age has \"1d\": expected seconds, such as max-age=3600",
            "1:81: replace in cache_control is a number: expected true or false",
        ],
    ),
    (
        "[[route]]\npath = \"/a\"\nsynthetic = true\ncache_control = \"public, private\"\nresponse_headers = { add = { cache-control = \"x\" } }",
        &["4:17: \"public, private\" has both public and private: expected one of them"],
    ),
    (
        "[[route]]\npath = \"/a\"\nsynthetic = true\ncache_control = \"public\"\nresponse_headers = { add = { cache-control = \"x\" } }",
        &[
            "4:1: cache_control and response_headers in line 5 both change Cache-Control: expected only one of them",
        ],
    ),
];

#[test]
fn invalid_cache_control_rules_are_rejected() {
    check_errors(BAD);
    let many = vec!["\"no-store\""; 101].join(", ");
    let text = format!("cache_control = [{many}]\n[[route]]\nsynthetic = true\n");
    let said = super::support::errors(&text);
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(
        said[0].ends_with("cache_control has 101 rules: expected at most 100"),
        "{said:?}"
    );
}

#[test]
fn ineffective_cache_control_rules_cause_warnings() {
    check_warnings(&[
        (
            "cache_control = [\"no-store\", { type = \"text/css\", value = \"max-age=1\" }, { status = 404, value = \"no-store\" }, { status = [404, 500], value = \"no-store\" }]",
            &["1:30: this rule has no effect: an earlier rule matches all of its responses"],
        ),
        (
            "cache_control = [{ type = \"text/*\", value = \"max-age=1\" }, { type = [\"text/css\", \"text/*\"], value = \"no-store\" }, \"no-store\"]",
            &["1:60: this rule has no effect: an earlier rule matches all of its responses"],
        ),
        (
            "[[route]]\npath = \"/a\"\nsynthetic = true\ncache_control = { value = \"no-store\", replace = true }",
            &[
                "4:1: replace has no effect on a route that does not forward: it replaces only the Cache-Control of forwarded responses",
            ],
        ),
    ]);
}
