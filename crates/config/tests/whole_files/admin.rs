//! `[admin]`: meaning, and error messages.

use std::path::Path;

use onrush_config::plan::{Address, Admin};

use crate::support::{MessageCases, check_errors, parsed};

const ROUTE: &str = "[[route]]\nsynthetic = true\n";

#[test]
fn admin_address_is_parsed() {
    let tcp = Admin::Tcp {
        address: Address::Tcp("127.0.0.1:9901".parse().expect("an address")),
        token_file: "conf/token".into(),
    };
    for (text, admin) in [
        ("", Admin::Default),
        ("[admin]\n", Admin::Default),
        ("[admin]\naddress = \"off\"\n", Admin::Off),
        (
            "[admin]\naddress = \"unix:/run/a.sock\"\n",
            Admin::Unix("/run/a.sock".into()),
        ),
        (
            "[admin]\naddress = \"unix:a.sock\"\n",
            Admin::Unix("conf/a.sock".into()),
        ),
        (
            "[admin]\naddress = \"127.0.0.1:9901\"\ntoken_file = \"token\"\n",
            tcp,
        ),
    ] {
        let parsed = parsed(&format!("{text}{ROUTE}"));
        assert_eq!(parsed.plan.admin, admin, "{text}");
        assert_eq!(parsed.warnings, [], "{text}");
    }
}

#[test]
fn invalid_admin_settings_are_reported() {
    const BAD: &MessageCases = &[
        (
            "[admin]\naddress = \"127.0.0.1:9901\"",
            &[
                "2:1: 127.0.0.1:9901 has no token: anyone who can connect could stop the server; expected token_file, a file with a line of at least 16 characters, which clients must send",
            ],
        ),
        (
            "[admin]\naddress = \"127.0.0.1:80\"\ntoken_file = \"token\"\n[[listen]]\naddress = \"0.0.0.0:80\"",
            &[
                "2:1: 127.0.0.1:80 overlaps the address 0.0.0.0:80 of [[listen]]: expected another one",
            ],
        ),
        (
            "[admin]\naddress = \"unix:/run/a.sock\"\ntoken_file = \"token\"",
            &[
                "3:1: token_file needs a TCP address: a Unix socket admits only this user and root; expected address = \"IP:PORT\" as well",
            ],
        ),
        (
            "[admin]\ntoken = \"x\"",
            &["2:1: unknown key \"token\" in [admin]; expected one of: address, token_file"],
        ),
        (
            "[admin]\naddress = 7",
            &[
                "2:11: address in [admin] is a number: expected \"unix:/run/onrush/site.sock\", an address such as \"127.0.0.1:9901\", or \"off\"",
            ],
        ),
    ];
    check_errors(BAD);
}

#[test]
fn admin_socket_cannot_equal_listen_socket() {
    let text = "[[listen]]\naddress = \"unix:a\"\n[admin]\naddress = \"unix:a\"\n[[route]]\nsynthetic = true";
    let refused = onrush_config::parse(text, Path::new("conf/onrush.toml"));
    let errors = refused.expect_err("one socket is for both").to_string();
    assert!(
        errors.contains("unix:conf/a overlaps the address"),
        "{errors}"
    );
}
