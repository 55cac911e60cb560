//! Names of listeners, and routes restricted to some of them: meaning, and error messages.

use onrush_config::plan::*;

use crate::support::{MessageCases, check_errors, check_warnings, parsed};

const TWO: &str = "[[listen]]\naddress = \":80\"\nname = \"public\"\n[[listen]]\naddress = \"127.0.0.1:8080\"\n[[listen]]\naddress = \"unix:a.sock\"\n";

#[test]
fn listener_name_defaults_to_address() {
    let plan = parsed(&format!("{TWO}[[route]]\nsynthetic = true")).plan;
    let names: Vec<&str> = plan.listen.iter().map(|listen| &*listen.name).collect();
    assert_eq!(names, ["public", "127.0.0.1:8080", "unix:conf/a.sock"]);
}

#[test]
fn routes_select_listeners_by_name_or_address() {
    for (written, names) in [
        ("\"public\"", &["public"][..]),
        ("\"80\"", &["public"]),
        ("\"0.0.0.0:80\"", &["public"]),
        ("\"localhost:8080\"", &["127.0.0.1:8080"]),
        ("\"unix:a.sock\"", &["unix:conf/a.sock"]),
        (
            "[\"127.0.0.1:8080\", \"public\", \":80\"]",
            &["127.0.0.1:8080", "public"],
        ),
    ] {
        let text = format!(
            "{TWO}[[route]]\nlistener = {written}\nsynthetic = true\n[[route]]\nnot = {{ listener = {written} }}\nsynthetic = true"
        );
        let parsed = parsed(&text);
        assert_eq!(parsed.warnings, [], "{text}");
        let [route, other] = &*parsed.plan.routes else {
            panic!("two routes");
        };
        assert_eq!(route.when.listeners, names, "{written}");
        assert_eq!(other.when.not[0].listeners, names, "{written}");
    }
}

#[test]
fn invalid_listener_names_are_reported() {
    const BAD: &MessageCases = &[
        (
            "[[listen]]\naddress = \":80\"\nname = \"public\"\n[[listen]]\naddress = \":81\"\nname = \"public\"",
            &[
                "6:8: \"public\" is already the name of the listener in line 3: expected another one",
            ],
        ),
        (
            "[[listen]]\naddress = \":80\"\nname = \"a b\"",
            &[
                "3:8: \"a b\" is not a name for a listener: expected letters, digits, \"-\", \"_\" and \".\"",
            ],
        ),
        (
            "[[listen]]\naddress = \":80\"\nname = \"public\"\n[[route]]\nlistener = \"pulbic\"\nsynthetic = true",
            &["5:12: unknown listener \"pulbic\"; nearest: \"public\""],
        ),
        (
            "[[listen]]\naddress = \":80\"\n[[route]]\npath = \"/x\"\nnot = { listener = [\"admin\", 7] }\nsynthetic = true",
            &[
                "5:30: listener in not is a number: expected the name or the address of a [[listen]] such as \"127.0.0.1:8080\"",
            ],
        ),
        (
            "[[listen]]\naddress = \":80\"\n[[route]]\npath = \"/x\"\nlistener = [\"admin\", \":81\"]\nsynthetic = true",
            &[
                "5:13: unknown listener \"admin\"; expected one of: 0.0.0.0:80",
                "5:22: unknown listener \":81\"; expected one of: 0.0.0.0:80",
            ],
        ),
        (
            "[[route]]\nlistener = []\nsynthetic = true",
            &[
                "2:12: listener in [[route]] is empty: expected the name or the address of a [[listen]] such as \"127.0.0.1:8080\"",
            ],
        ),
        // The missing listener may be the invalid one.
        (
            "[[listen]]\naddress = \":80x\"\nname = \"public\"\n[[route]]\nlistener = \"public\"\nsynthetic = true",
            &[
                "2:11: \":80x\" is not an address to listen on: expected an IP address and a port such as \"0.0.0.0:80\", \"[::]:80\" or \":80\", or \"unix:/run/onrush.sock\"",
            ],
        ),
    ];
    check_errors(BAD);
}

#[test]
fn route_with_subset_of_listeners_is_unreachable() {
    const CASES: &MessageCases = &[
        (
            "[[listen]]\naddress = \":80\"\n[[listen]]\naddress = \":81\"\n[[route]]\npath = \"/a\"\nlistener = [\":80\", \":81\"]\nsynthetic = true\n[[route]]\npath = \"/a\"\nlistener = \":81\"\nsynthetic = true",
            &[
                "9:1: this [[route]] is never reached: the one in line 5 matches all of its requests",
            ],
        ),
        (
            "[[listen]]\naddress = \":80\"\n[[listen]]\naddress = \":81\"\n[[route]]\npath = \"/a\"\nlistener = \":80\"\nsynthetic = true\n[[route]]\npath = \"/a\"\nlistener = \":81\"\nsynthetic = true",
            &[],
        ),
        (
            "[[listen]]\naddress = \":80\"\n[[listen]]\naddress = \":443\"\ntls = \"self-signed\"\n[[route]]\npath = \"/a\"\nlistener = \":80\"\nscheme = \"https\"\nsynthetic = true\n[[route]]\npath = \"/a\"\nlistener = \":443\"\nscheme = \"http\"\nsynthetic = true\n[[route]]\npath = \"/a\"\nlistener = \":443\"\nscheme = \"https\"\nsynthetic = true",
            &[
                "6:1: this [[route]] is never reached: none of its listeners uses TLS, and no proxy is trusted to report \"https\"",
                "11:1: this [[route]] is never reached: all of its listeners use TLS, and no proxy is trusted to report \"http\"",
            ],
        ),
    ];
    check_warnings(CASES);
}

#[test]
fn unreachable_hosts_of_route_are_reported() {
    const CASES: &MessageCases = &[
        (
            "[[route]]\nhost = \"a.example\"\nsynthetic = true\n[[route]]\nhost = [\"a.example\", \"b.example\"]\npath = \"/x\"\nsynthetic = true",
            &[
                "4:1: this [[route]] is never reached with host \"a.example\": the one in line 1 matches all of its requests",
            ],
        ),
        (
            "[[route]]\nhost = \"*.example\"\nsynthetic = true\n[[route]]\nhost = \"b.test\"\nsynthetic = true\n[[route]]\nhost = [\"a.example\", \"b.test\"]\nsynthetic = true",
            &[
                "7:1: this [[route]] is never reached: the ones in lines 1, 4 match all of its requests",
            ],
        ),
        (
            "[[route]]\nhost = \"a.example\"\npath = \"/a\"\nsynthetic = true\n[[route]]\nhost = [\"a.example\", \"b.example\"]\npath = \"/b\"\nsynthetic = true",
            &[],
        ),
    ];
    check_warnings(CASES);
}

#[test]
fn replaced_listeners_must_include_route_listeners() {
    let text = format!("{TWO}[[route]]\nsynthetic = true\nlistener = \"127.0.0.1:8080\"");
    let mut plan = parsed(&text).plan;
    let at = |port| Listener::plain(Address::Tcp(([127, 0, 0, 1], port).into()));
    let missing = plan.replace_listeners(vec![at(9000)]);
    let missing = missing.expect_err("nobody listens there").to_string();
    assert_eq!(
        missing,
        "[[route]] number 1 names the listener \"127.0.0.1:8080\", which does not exist with these addresses: expected an address with that name, or the [[listen]] of the file"
    );
    assert_eq!(plan.listen.len(), 3, "nothing has changed");
    plan.replace_listeners(vec![at(9000), at(8080)])
        .expect("it is there");
    assert_eq!(plan.listen.len(), 2);
}
