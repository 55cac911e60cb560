//! `[process]`: meaning, and error messages.

use std::path::Path;

use onrush_config::plan::{Account, Landlock};

use crate::support::{check_errors, parsed};

#[test]
fn process_user_and_group_are_parsed() {
    let text = "[process]\nuser = \"www-data\"\ngroup = 33\n[[route]]\nsynthetic = true";
    let run_as = parsed(text).plan.process.run_as.expect("a user");
    assert_eq!(run_as.user, Account::Name("www-data".into()));
    assert_eq!(run_as.group, Some(Account::Number(33)));
    let text = "process = { user = 65534 }\n[[route]]\nsynthetic = true";
    let run_as = parsed(text).plan.process.run_as.expect("a user");
    assert_eq!(run_as.user, Account::Number(65_534));
    assert_eq!(run_as.group, None);
}

#[test]
fn seccomp_is_optional() {
    let plan = |text: &str| parsed(&format!("{text}\n[[route]]\nsynthetic = true")).plan;
    assert!(plan("process = { seccomp = true }").process.seccomp);
    assert!(!plan("process = { seccomp = false }").process.seccomp);
    assert!(!plan("").process.seccomp);
}

#[test]
fn landlock_directories_are_parsed() {
    let plan = |text: &str| parsed(&format!("{text}\n[[route]]\nsynthetic = true")).plan;
    assert_eq!(plan("").process.landlock, None);
    assert_eq!(
        plan("process = { landlock = false }").process.landlock,
        None
    );
    let whole = plan("process = { landlock = true }").process.landlock;
    assert_eq!(whole, Some(Landlock::default()));
    let text = "[process]\nlandlock = true\nlandlock_read = [\"/srv\", \"/opt\"]\nlandlock_write = \"/var/log\"";
    let named = plan(text).process.landlock.expect("it is wished");
    assert_eq!(named.read, [Path::new("/srv"), Path::new("/opt")]);
    assert_eq!(named.write, [Path::new("/var/log")]);
    let idle = parsed("[process]\nlandlock_read = [\"/srv\"]\n[[route]]\nsynthetic = true");
    let warnings: Vec<String> = idle.warnings.iter().map(ToString::to_string).collect();
    assert!(
        warnings[0].contains("landlock_read has no effect without landlock = true"),
        "{warnings:?}"
    );
    check_errors(&[(
        "[process]\nlandlock = true\nlandlock_read = [\"srv\"]",
        &[
            "3:18: \"srv\" is not an absolute directory: expected an absolute directory such as [\"/srv\"]",
        ],
    )]);
}

#[test]
fn invalid_user_is_rejected() {
    check_errors(&[
        (
            "[process]\nuser = 0\ngroup = \"a b\"\nusr = 1",
            &[
                "2:8: user 0 is root, and the server switches users to drop root's privileges: expected another user, such as \"www-data\"",
                "3:9: \"a b\" is not a user or group: expected a name such as \"www-data\", or a number",
                "4:1: unknown key \"usr\" in [process]; nearest: \"user\"",
            ],
        ),
        (
            "[process]\ngroup = \"www-data\"",
            &["2:1: group has no effect without a user: expected user = \"www-data\" as well"],
        ),
        (
            "process = \"www-data\"",
            &["1:11: [process] is a string: expected a table such as { user = \"www-data\" }"],
        ),
    ]);
}
