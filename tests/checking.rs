//! `onrush check` refuses what `onrush serve` refuses.

use std::fs;

use crate::program::run_onrush;

const ROUTE: &str = "[[route]]\nsynthetic = true\n";
const LISTEN: &str = "[[listen]]\naddress = \"127.0.0.1:0\"\n";
const ADMIN: &str = "admin = { address = \"127.0.0.1:0\", token_file = \"token\" }\n";

/// Checks and starts a configuration in a directory with this file. Both must fail with `why`.
fn refused(text: &str, (name, content): (&str, &str), why: &str) {
    let directory = tempfile::tempdir().expect("a directory");
    fs::write(directory.path().join(name), content).expect("it is ours");
    let path = directory.path().join("onrush.toml");
    fs::write(&path, text).expect("it is ours");
    let path = path.display().to_string();
    for words in [&["check", &path][..], &["serve", "--config", &path]] {
        let finished = run_onrush(words);
        assert_eq!(finished.code, Some(1), "{words:?} {text}: {finished:?}");
        assert!(finished.err.contains(why), "{words:?} {text}: {finished:?}");
    }
}

#[test]
fn check_validates_token_file() {
    let text = format!("{ADMIN}{LISTEN}{ROUTE}");
    refused(&text, ("other", ""), "[admin] token_file");
    for token in ["", "short\n", "0123456789abcdef\n0123456789abcdef\n"] {
        refused(&text, ("token", token), "expected one line of 16 to 512");
    }
}

#[test]
fn check_validates_cpus() {
    let text = format!("cpus = \"1000\"\n{LISTEN}{ROUTE}");
    refused(&text, ("other", ""), "this machine has no CPU 1000");
    let text = format!("cpus = \"0\"\nthreads = 2\naccept = \"cpu\"\n{LISTEN}{ROUTE}");
    refused(&text, ("other", ""), "cores share CPU 0");
}

#[test]
fn check_validates_unix_socket_paths() {
    let listen = "[[listen]]\naddress = \"unix:here\"\n";
    refused(
        &format!("{listen}{ROUTE}"),
        ("here", "not a socket"),
        "cannot listen on unix:",
    );
    let admin = "admin = { address = \"unix:missing/admin.sock\" }\n";
    refused(&format!("{admin}{LISTEN}{ROUTE}"), ("other", ""), "missing");
}
