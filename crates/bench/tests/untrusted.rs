//! Parses untrusted input: lines of agents on other machines, and files of results. Any bytes are accepted or refused
//! with a location, and nothing panics.

use std::fs;
use std::path::Path;

use onrush_bench::run::check_any_bytes;
use proptest::prelude::*;

#[path = "support/archive_checks.rs"]
mod archive_checks;

/// Valid lines of both ends.
const LINES: &str = concat!(
    r#"{"id":1,"ask":"beat"}"#,
    "\n",
    r#"{"id":2,"ask":{"find":{"command":"wrk"}}}"#,
    "\n",
    r#"{"id":3,"ask":{"open":{"roles":["server","client"],"collect":"off"}}}"#,
    "\n",
    r#"{"id":4,"ask":{"set":{"setting":{"sysctl":"net.core.somaxconn"},"value":"1"}}}"#,
    "\n",
    r#"{"answer":{"id":5,"answer":{"seen":{"has_ended":true,"is_listening":false,"last_words":"x","failure":{"status":3},"was_cut":false}},"more":false}}"#,
    "\n",
    r#"{"answer":{"id":6,"answer":{"clock":1e308},"more":true}}"#,
    "\n",
    r#"{"ended":"proxy"}"#,
    "\n"
);

const ROWS: &str = "round,at_s,work,variant,ours,valid,disturbed,client_is_limit,metric,value,point,unsteady,control_disturbed\n\
                    1,0.5,w,\"a, b\",true,true,false,false,rps,1.5,io=epoll,false,false\n\
                    2,0.5,w,\"a, b\",true,true,false,true,server.cpu_us_per_request,3.5,io=epoll,true,true\n";

const FACTS: &str = r#"{"schema": 1, "machine": {"kernel": "6.18", "cpu_model": "X", "cpus": [0, 1]},
    "settings": {"net.core.somaxconn": "4096"}, "programs": {"nginx": {"file": "/usr/sbin/nginx", "version": "1.22"}},
    "commands": {"w / nginx / server": ["nginx", "--io", "epoll"]}, "files": {}, "experiment": "name = \"e\""}"#;

/// Insertions that damage a copy.
const PIECES: [&str; 12] = [
    "\n",
    "\"",
    ",",
    "{",
    "}",
    "-1",
    "1e999",
    "99999999999999999999",
    "NaN",
    "null",
    "\\ud800",
    "\u{0}",
];

fn check(bytes: &[u8]) {
    check_any_bytes(bytes);
    archive_checks::rows(bytes);
    archive_checks::facts(bytes);
}

fn damaged(text: &str, at: usize, length: usize, piece: &str) -> Vec<u8> {
    let bytes = text.as_bytes();
    let at = at % bytes.len();
    let end = (at + length).min(bytes.len());
    [&bytes[..at], piece.as_bytes(), &bytes[end..]].concat()
}

#[test]
fn truncated_files_and_lines_do_not_panic() {
    for text in [LINES, ROWS, FACTS] {
        for end in 0..=text.len() {
            check(&text.as_bytes()[..end]);
        }
    }
}

#[test]
fn fuzz_regressions() {
    for target in ["agent_lines", "archive_rows", "archive_facts"] {
        let crashes = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../fuzz/crashes")
            .join(target);
        for entry in fs::read_dir(crashes).into_iter().flatten().flatten() {
            check(&fs::read(entry.path()).expect("a file"));
        }
    }
}

proptest! {
    #[test]
    fn arbitrary_bytes_do_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        check(&bytes);
    }

    #[test]
    fn damaged_copies_do_not_panic(at in 0_usize..4_000, length in 0_usize..40, piece in 0..PIECES.len()) {
        for text in [LINES, ROWS, FACTS] {
            check(&damaged(text, at, length, PIECES[piece]));
        }
    }
}
