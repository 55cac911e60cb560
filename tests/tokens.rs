//! Replacing the token of an admin interface.

use std::fs;

use rustix::process::Signal;

use crate::administering::administered_by_tcp;
use crate::program::run_onrush;

/// Exit code of `onrush ctl status` with the token in this file.
fn status(address: &str, file: &str) -> Option<i32> {
    run_onrush(&["ctl", "--address", address, "--token-file", file, "status"]).code
}

#[test]
fn reload_replaces_admin_token() {
    const NEW: &str = "fedcba9876543210fedcba9876543210";
    let directory = tempfile::tempdir().expect("a directory");
    let (serve, address, file) = administered_by_tcp(directory.path());
    let old = directory.path().join("old");
    fs::copy(&file, &old).expect("it is ours");
    let old = old.display().to_string();
    fs::write(&file, "too short\n").expect("it is ours");
    serve.program.signal(Signal::HUP);
    let log = serve.program.err.wait_for("generation 1 stays");
    assert!(
        log.contains("[admin] token_file") && log.contains("expected one line of 16 to 512"),
        "{log}"
    );
    assert_eq!(status(&address, &old), Some(0));
    fs::write(&file, format!("{NEW}\n")).expect("it is ours");
    serve.program.signal(Signal::HUP);
    serve.program.err.wait_for("as generation 2");
    assert_eq!(status(&address, &file), Some(0));
    assert_eq!(status(&address, &old), Some(1));
    serve.stop();
}
