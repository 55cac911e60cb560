//! Files named on the command line: read up to a limit, without waiting, written completely or not at all, with clear
//! errors.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::process::Signal;
use serde_json::Value;

use crate::program::{Finished, Program, Serve, onrush, run_onrush};

struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Place {
        Place(tempfile::tempdir().expect("a directory"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn name(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    fn file(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        fs::write(self.path(name), content).expect("a file");
        self.name(name)
    }

    fn fifo(&self) -> String {
        let mode = Mode::RUSR | Mode::WUSR;
        mknodat(CWD, self.path("fifo"), FileType::Fifo, mode, 0).expect("a pipe");
        self.name("fifo")
    }

    /// A file longer than any limit, which takes no space on the disk.
    fn sparse(&self) -> String {
        let file = fs::File::create(self.path("sparse")).expect("a file");
        file.set_len(3 << 30).expect("a length");
        self.name("sparse")
    }
}

/// Every argument that names an input file, in a command line that gets as far as reading it.
fn readers(file: &str) -> Vec<Vec<String>> {
    let url = "https://127.0.0.1:9/";
    let body = format!("@{file}");
    let tls = format!("{file},{file}");
    [
        &["check", file][..],
        &["serve", "--config", file],
        &[
            "serve",
            "--respond",
            "200",
            "--listen",
            "127.0.0.1:0",
            "--tls",
            &tls,
        ],
        &["bench", file],
        &["load", url, "--body-file", file],
        &["load", url, "--body", &body],
        &["load", url, "--requests-file", file],
        &["load", url, "--har", file],
        &["load", url, "--replay", file],
        &["load", url, "--data", file],
        &["load", url, "--cacert", file],
        &["load", url, "--cert", file, "--key", file],
        &["load", "merge", file],
        &["load", "compare", file, file],
    ]
    .iter()
    .map(|words| words.iter().map(|word| (*word).to_owned()).collect())
    .collect()
}

fn run(words: &[String]) -> Finished {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    run_onrush(&words)
}

/// Runs a shell line in which `onrush` is the program.
fn shell(line: &str) -> Finished {
    let program = env!("CARGO_BIN_EXE_onrush");
    let line = format!("onrush() {{ \"{program}\" \"$@\"; }}; {line}");
    Program::start(Command::new("bash").args(["-c", &line])).finish()
}

#[test]
fn unreadable_file_error_is_one_line() {
    let place = Place::new();
    let directory = place.0.path().display().to_string();
    for (file, part) in [
        (place.fifo(), "it is a pipe without a writer"),
        (directory, "it is a directory: expected a file"),
        ("/dev/zero".to_owned(), "it is a device: expected a file"),
        (place.sparse(), "it is too long: expected at most "),
        (place.name("none"), "No such file or directory"),
    ] {
        for words in readers(&file) {
            let finished = run(&words);
            assert_eq!(finished.code, Some(1), "{words:?}: {finished:?}");
            assert!(finished.err.contains(part), "{words:?}: {finished:?}");
            assert!(finished.err.contains(&file), "{words:?}: {finished:?}");
        }
    }
}

#[test]
fn files_can_be_pipes() {
    let place = Place::new();
    let good = "[[route]]\\nrespond = { status = 200 }\\n";
    let finished = shell(&format!("onrush check <(printf '{good}')"));
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let finished = shell(&format!("printf '{good}' | onrush check /dev/stdin"));
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let serve = Serve::start(&["--respond", "200:hello"]);
    let (url, out) = (serve.url("/"), place.name("out.json"));
    let finished = shell(&format!(
        "onrush load {url} -n 10 --body @<(printf hello) --json >(cat > {out}.copy) --html {out}.html"
    ))
    .on_any_machine();
    assert_eq!(finished.code, Some(0), "{finished:?}");
}

#[test]
fn json_on_stdout_has_no_other_output() {
    let serve = Serve::start(&["--respond", "200:hello"]);
    let url = serve.url("/");
    let finished = run_onrush(&["load", &url, "-n", "10", "--json", "-"]).on_any_machine();
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let json: Value = serde_json::from_str(&finished.out).expect("JSON and nothing else");
    assert_eq!(json["requests"], 10);
    assert!(finished.err.contains("requests     10 in "), "{finished:?}");
    let two = run_onrush(&["load", &url, "--json", "-", "--csv", "-"]);
    assert_eq!(two.code, Some(1), "{two:?}");
    let said = "--json and --csv would both write standard output: give each a file of its own";
    assert!(two.err.contains(said), "{two:?}");
}

#[test]
fn body_is_text_or_file() {
    let place = Place::new();
    let body = place.file("body", "12345");
    let serve = Serve::start(&["--respond", "200:hello"]);
    let (written, doubled) = (format!("@{body}"), "@@at".to_owned());
    for (body, length) in [(written, 5), (doubled, 3), ("text".to_owned(), 4)] {
        let words = [
            "load",
            &serve.address,
            "-n",
            "1",
            "--json",
            "-",
            "--body",
            &body,
        ];
        let finished = run_onrush(&words).on_any_machine();
        assert_eq!(finished.code, Some(0), "{finished:?}");
        let json: Value = serde_json::from_str(&finished.out).expect("JSON");
        assert_eq!(json["target"], format!("http://{}", serve.address));
        assert_eq!(json["options"]["method"], "POST", "{length}");
    }
}

/// Result of a short run against a new server.
fn result(place: &Place, name: &str) -> String {
    let serve = Serve::start(&["--respond", "200:hello"]);
    let path = place.name(name);
    let finished =
        run_onrush(&["load", &serve.url("/"), "-n", "100", "--json", &path]).on_any_machine();
    assert_eq!(finished.code, Some(0), "{finished:?}");
    path
}

#[test]
fn output_over_input_file_is_refused() {
    let place = Place::new();
    let a = result(&place, "a.json");
    let before = fs::read(&a).expect("a result");
    let copy = place.file("copy.json", &before);
    fs::hard_link(&a, place.path("linked.json")).expect("a link");
    let (linked, body) = (place.name("linked.json"), place.file("body", "x"));
    let (new, dotted) = (place.name("new"), place.name("./new"));
    let at_body = format!("@{body}");
    let url = "http://127.0.0.1:9/";
    for (words, part) in [
        (&["load", "merge", &a, &a][..], "they are the same result"),
        (&["load", "merge", &a, &copy], "they are the same result"),
        (
            &["load", "merge", &a, "--json", &a],
            "--json would overwrite",
        ),
        (
            &["load", "compare", &a, &copy, "--json", &linked],
            "--json would overwrite",
        ),
        (
            &["load", url, "--body-file", &body, "--csv", &body],
            "--csv would overwrite",
        ),
        (
            &["load", url, "--body", &at_body, "--html", &body],
            "--html would overwrite",
        ),
        (
            &["load", url, "--json", &new, "--hdr", &dotted],
            "--json and --hdr would both write",
        ),
        (
            &["load", url, "--json", &a, "--html", &linked],
            "--json and --html would both write",
        ),
    ] {
        let finished = run_onrush(words);
        assert_eq!(finished.code, Some(1), "{words:?}: {finished:?}");
        assert!(finished.err.contains(part), "{words:?}: {finished:?}");
        assert_eq!(finished.err.lines().count(), 1, "{words:?}: {finished:?}");
    }
    assert_eq!(fs::read(&a).expect("it is there"), before);
    assert!(!Path::new(&new).exists());
}

#[test]
fn unwritable_stdout_exits_1() {
    let place = Place::new();
    let a = result(&place, "a.json");
    let good = place.file("good.toml", "[[route]]\nrespond = { status = 200 }\n");
    let serve = Serve::start(&["--respond", "200:hello"]);
    let url = serve.url("/");
    for words in [
        "--help".to_owned(),
        "load --help".to_owned(),
        "load merge --help".to_owned(),
        format!("check {good}"),
        format!("load {url} -n 10"),
        format!("load {url} -n 10 -q"),
        format!("load {url} -n 10 --json -"),
        format!("load --as wrk -d1 -t1 -c1 {url}"),
        "load --as wrk -h".to_owned(),
        format!("load merge {a}"),
        format!("load compare {a} {a}"),
    ] {
        for (into, why) in [
            ("> /dev/full", "No space left on device"),
            (">&-", "Bad file descriptor"),
        ] {
            let finished = shell(&format!("onrush {words} {into}"));
            assert_eq!(finished.code, Some(1), "{words}: {finished:?}");
            let said = format!("onrush: cannot write to standard output: {why}");
            assert!(finished.err.contains(&said), "{words}: {finished:?}");
        }
        // A reader that closes the pipe early is not a failure.
        let finished = shell(&format!("set -o pipefail; onrush {words} | head -c 1"));
        assert_eq!(finished.code, Some(0), "{words}: {finished:?}");
    }
}

#[test]
fn server_runs_with_unwritable_stdout() {
    let line = "exec onrush serve --respond 200 --listen 127.0.0.1:0 > /dev/full";
    let program = env!("CARGO_BIN_EXE_onrush");
    let line = line.replace("onrush", program);
    let program = Program::start(Command::new("bash").args(["-c", &line]));
    // The server handles the signal once it has started; an earlier one would kill it.
    crate::program::until("a server", || {
        let status = fs::read_to_string(format!("/proc/{}/status", program.pid())).ok()?;
        let caught = status
            .lines()
            .find_map(|line| line.strip_prefix("SigCgt:"))?;
        let caught = u64::from_str_radix(caught.trim(), 16).ok()?;
        (caught & 1 << (Signal::TERM.as_raw() - 1) != 0).then_some(())
    });
    program.signal(Signal::TERM);
    let finished = program.finish();
    assert_eq!(finished.code, Some(1), "{finished:?}");
    assert!(
        finished.err.contains("cannot write to standard output"),
        "{finished:?}"
    );
}

#[test]
fn failed_write_keeps_old_result() {
    let place = Place::new();
    let page = place.file("page.html", "the page before it");
    let serve = Serve::start(&["--respond", "200:hello"]);
    let (url, new, csv) = (
        serve.url("/"),
        place.name("new.hdr"),
        place.name("rows.csv"),
    );
    // A limit on the file size (`ulimit -f`) simulates a full disk.
    let finished = shell(&format!(
        "trap '' XFSZ; ulimit -f 2; onrush load {url} -n 2000 --html {page} --hdr {new} --csv {csv}"
    ));
    assert_eq!(finished.code, Some(1), "{finished:?}");
    let said = "page.html cannot be written: File too large";
    assert!(finished.err.contains(said), "{finished:?}");
    assert!(
        finished.out.contains("requests     2,000 in "),
        "{finished:?}"
    );
    let left = fs::read_to_string(&page).expect("it is there");
    assert_eq!(left, "the page before it");
    assert!(!Path::new(&new).exists(), "a part of a log");
    assert!(fs::read_to_string(&csv).is_ok_and(|text| text.starts_with("time_s,")));
    let entries = fs::read_dir(place.0.path()).expect("a directory");
    assert_eq!(entries.count(), 2, "what is left is the page and the rows");
}

#[test]
fn failed_allocation_error_is_one_line() {
    let place = Place::new();
    let text: String = (0..400_000).map(|key| format!("k{key} = 1\n")).collect();
    let file = place.file("keys.toml", text);
    let finished = shell(&format!("ulimit -v 150000; onrush check {file}"));
    assert_eq!(finished.code, Some(1), "{finished:?}");
    assert!(
        finished
            .err
            .starts_with("onrush: out of memory: the system refuses "),
        "{finished:?}"
    );
    assert_eq!(finished.err.lines().count(), 1, "{finished:?}");
}

#[test]
fn control_characters_are_replaced() {
    let place = Place::new();
    let a = result(&place, "a.json");
    let text = fs::read_to_string(&a).expect("a result");
    let mut json: Value = serde_json::from_str(&text).expect("JSON");
    json["target"] = "http://\u{1b}]0;title\u{7}\u{9b}31m/".into();
    json["warnings"] = Value::Array(vec!["\u{1b}[2J".repeat(10_000).into()]);
    let evil = place.file("evil.json", json.to_string());
    let experiment = place.file("evil.toml", "\"\\u001b[31mname\" = 1\n");
    let config = place.file(
        "long.toml",
        format!("\"{}\" = 1\n", "\\u001b".repeat(100_000)),
    );
    for words in [
        vec!["load", "merge", &evil],
        vec!["load", "compare", &evil, &evil],
        vec!["load", "merge", &a, &evil],
        vec!["bench", &experiment],
        vec!["check", &config],
        vec!["check", "no\u{1b}[31mfile"],
    ] {
        let finished = run_onrush(&words);
        for said in [&finished.out, &finished.err] {
            let is_harmless =
                |letter: char| !letter.is_control() || letter == '\n' || letter == '\t';
            assert!(said.chars().all(is_harmless), "{words:?}: {finished:?}");
            let longest = said.lines().map(|line| line.chars().count()).max();
            assert!(longest <= Some(2001), "{words:?}: {finished:?}");
        }
    }
}

#[test]
#[ignore = "slow: make test-all"]
fn number_of_reported_errors_is_limited() {
    let place = Place::new();
    let keys: String = (0..1_000_000).map(|key| format!("k{key} = 1\n")).collect();
    let fewer: String = (0..400_000).map(|key| format!("k{key} = 1\n")).collect();
    for (text, part) in [
        (
            keys,
            "a configuration with 1000000 keys is too long: expected at most 500000",
        ),
        (fewer, "and 399951 more"),
        (
            "[[route]]\nrespond = 200\n".repeat(370_000),
            "370000 [[tables]] is too long: expected at most 100000",
        ),
        ("[[route]]\nfrob = 200\n".repeat(50_000), " more"),
    ] {
        let file = place.file("many.toml", text);
        let finished = run_onrush(&["check", &file]);
        assert_eq!(finished.code, Some(1), "{part}");
        assert!(finished.err.contains(part), "{part}: {finished:?}");
        assert!(finished.err.lines().count() < 200, "{part}: {finished:?}");
    }
}

#[test]
fn certificate_file_mistakes_are_identified() {
    let place = Place::new();
    let openssl = |line: &str| {
        let mut command = Command::new("openssl");
        let made = command
            .current_dir(place.0.path())
            .args(line.split(' '))
            .output();
        let made = made.unwrap_or_else(|error| panic!("openssl: {error}"));
        assert!(made.status.success(), "{line}: {made:?}");
    };
    openssl(
        "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=a -addext subjectAltName=DNS:a -keyout good.key -out good.pem",
    );
    openssl("req -new -key good.key -subj /CN=a -out good.csr");
    openssl("x509 -req -in good.csr -signkey good.key -out one.pem");
    openssl("x509 -in good.pem -outform DER -out good.der");
    openssl("pkey -in good.key -aes128 -passout pass:abcd -out locked.key");
    openssl("genrsa -out small.key 1024");
    openssl("ecparam -name secp256k1 -genkey -noout -out koblitz.key");
    for (certificate, key, part) in [
        (
            "one.pem",
            "good.key",
            "one.pem: the certificate is of X.509 version 1",
        ),
        (
            "good.der",
            "good.key",
            "good.der: it is DER: expected PEM; convert it: openssl x509 ",
        ),
        ("good.pem", "locked.key", "locked.key: the key is encrypted"),
        (
            "good.pem",
            "small.key",
            "small.key: cannot use a key of type RSA with 1024 bits (",
        ),
        (
            "good.pem",
            "koblitz.key",
            "koblitz.key: cannot use a key of type ECDSA on secp256k1 (",
        ),
        (
            "good.pem",
            "good.csr",
            "good.csr: it holds a request for a certificate",
        ),
    ] {
        let tls = format!("{},{}", place.name(certificate), place.name(key));
        let words = [
            "serve",
            "--respond",
            "200",
            "--listen",
            "127.0.0.1:0",
            "--tls",
            &tls,
        ];
        let finished = Program::start(&mut onrush(&words)).finish();
        assert_eq!(finished.code, Some(1), "{part}: {finished:?}");
        assert!(finished.err.contains(part), "{part}: {finished:?}");
    }
}
