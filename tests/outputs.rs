//! Output files of `onrush load` and `onrush bench`: opened before anything is measured, never over an input, with an
//! error when they cannot be written.

use std::fs::{self, File, OpenOptions};
use std::io::Read;
use std::os::unix::fs::{OpenOptionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat};
use rustix::process::Signal;

use crate::program::{Program, Serve, onrush, run_onrush, until};

/// Each option that names an output file.
const OPTIONS: [&str; 4] = ["--json", "--csv", "--html", "--hdr"];

fn fifo(directory: &Path) -> PathBuf {
    let path = directory.join("fifo");
    let mode = Mode::RUSR | Mode::WUSR;
    mknodat(CWD, &path, FileType::Fifo, mode, 0).expect("a pipe");
    path
}

/// A reader that does not wait for a writer.
fn reader(fifo: &Path) -> File {
    let mut options = OpenOptions::new();
    let flags = OFlags::NONBLOCK.bits() as i32;
    let opened = options.read(true).custom_flags(flags).open(fifo);
    opened.expect("a reader")
}

#[test]
fn files_read_by_requests_file_are_not_overwritten() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = |name: &str| directory.path().join(name).display().to_string();
    fs::write(path("body"), "precious").expect("it is ours");
    symlink("body", path("link")).expect("a link");
    fs::hard_link(path("body"), path("twin")).expect("a link");
    let line = r#"{"url": "/", "body_file": "body"}"#;
    fs::write(path("requests"), line).expect("it is ours");
    let relative = format!("{}/../{}", directory.path().display(), {
        let name = directory.path().file_name().expect("it has one");
        format!("{}/body", name.display())
    });
    let serve = Serve::start(&["--respond", "200"]);
    for option in OPTIONS {
        for output in [path("body"), path("link"), path("twin"), relative.clone()] {
            let requests = path("requests");
            let finished = run_onrush(&[
                "load",
                &serve.url("/"),
                "-n",
                "1",
                "--requests-file",
                &requests,
                option,
                &output,
            ]);
            assert_eq!(finished.code, Some(1), "{finished:?}");
            let said = format!("{option} would overwrite the input {}:", path("body"));
            assert!(finished.err.contains(&said), "{finished:?}");
            assert!(finished.err.contains(&output), "{finished:?}");
            assert_eq!(finished.err.lines().count(), 1, "{finished:?}");
        }
    }
    assert_eq!(fs::read(path("body")).expect("it is there"), b"precious");
    assert_eq!(serve.stop().requests(), 0);
}

#[test]
fn unread_pipe_is_refused_before_run() {
    let directory = tempfile::tempdir().expect("a directory");
    let fifo = fifo(directory.path()).display().to_string();
    let serve = Serve::start(&["--respond", "200"]);
    for option in OPTIONS {
        let finished = run_onrush(&["load", &serve.url("/"), "-n", "1", option, &fifo]);
        assert_eq!(finished.code, Some(1), "{finished:?}");
        let said = format!("{fifo} cannot be written: it is a pipe without a reader");
        assert!(finished.err.contains(&said), "{finished:?}");
        assert_eq!(finished.err.lines().count(), 1, "{finished:?}");
    }
    assert_eq!(serve.stop().requests(), 0);
}

#[test]
fn output_waits_for_slow_reader_until_signal() {
    let directory = tempfile::tempdir().expect("a directory");
    let fifo = fifo(directory.path());
    let mut reader = reader(&fifo);
    rustix::pipe::fcntl_setpipe_size(&reader, 4096).expect("the least there is");
    let json = directory.path().join("result.json");
    let serve = Serve::start(&["--respond", "200"]);
    let program = Program::start(&mut onrush(&[
        "load",
        &serve.url("/"),
        "-n",
        "10",
        "--html",
        &fifo.display().to_string(),
        "--json",
        &json.display().to_string(),
    ]));
    // The pipe is written last.
    until("the page's begin", || {
        reader.read(&mut [0]).ok().filter(|length| *length > 0)
    });
    assert!(fs::metadata(&json).is_ok_and(|found| found.len() > 0));
    program.signal(Signal::TERM);
    assert_eq!(program.finish().code, Some(130));
}

#[test]
fn simultaneous_signals_count_as_one() {
    let directory = tempfile::tempdir().expect("a directory");
    let json = directory.path().join("result.json");
    let serve = Serve::start(&["--respond", "200"]);
    let json_name = json.display().to_string();
    let words = ["load", &serve.url("/"), "-d", "10m", "--json", &json_name];
    let program = Program::start(&mut onrush(&words));
    // The run has started.
    program.out.wait_for("\n         1 ");
    // Two signals as from timeout(1): both are pending when the program continues, however busy the machine is.
    for signal in [Signal::STOP, Signal::TERM, Signal::INT, Signal::CONT] {
        program.signal(signal);
    }
    let finished = program.finish().on_any_machine();
    assert!(finished.out.contains("requests  "), "{finished:?}");
    assert!(fs::metadata(&json).is_ok_and(|found| found.len() > 0));
}

#[test]
fn unwritable_output_keeps_other_outputs() {
    let directory = tempfile::tempdir().expect("a directory");
    let csv = directory.path().join("rows.csv");
    let serve = Serve::start(&["--respond", "200"]);
    let finished = run_onrush(&[
        "load",
        &serve.url("/"),
        "-n",
        "10",
        "--json",
        "/dev/full",
        "--hdr",
        "/dev/full",
        "--csv",
        &csv.display().to_string(),
    ]);
    assert_eq!(finished.code, Some(1), "{finished:?}");
    let told = finished
        .err
        .matches("/dev/full cannot be written: No space left");
    assert_eq!(told.count(), 2, "{finished:?}");
    let rows = fs::read_to_string(csv).expect("it is there");
    assert_eq!(rows.lines().count(), 2, "{rows}");
}

#[test]
fn unwritable_directory_stops_experiment() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("file");
    fs::write(&file, "precious").expect("it is ours");
    let full = directory.path().join("full");
    fs::create_dir_all(full.join("report.html")).expect("a directory");
    for (out, said) in [
        (&file, "is not a directory: expected one, or a new name"),
        (&full, "report.html: is a directory"),
        (&directory.path().join("file/below"), "Not a directory"),
    ] {
        let out = out.display().to_string();
        let finished = run_onrush(&["bench", "--quick", "--out", &out]);
        assert_eq!(finished.code, Some(1), "{finished:?}");
        assert!(finished.err.contains(said), "{finished:?}");
        assert_eq!(finished.err.lines().count(), 1, "{finished:?}");
    }
    assert_eq!(fs::read(&file).expect("it is there"), b"precious");
}

#[test]
fn full_disk_stops_experiment() {
    let directory = tempfile::tempdir().expect("a directory");
    let out = directory.path().display().to_string();
    let script = format!(
        "mount -t tmpfs -o size=64k none {out} || exit 77; {} bench --quick --out {out}; code=$?; ls -A {out} >&2; exit $code",
        env!("CARGO_BIN_EXE_onrush")
    );
    let words = ["--user", "--map-root-user", "--mount", "sh", "-c", &script];
    let finished = Program::start(Command::new("unshare").args(words)).finish();
    if finished.code == Some(77) || finished.err.starts_with("unshare: ") {
        eprintln!("without a file system of its own: {finished:?}");
        return;
    }
    assert_eq!(finished.code, Some(1), "{finished:?}");
    let said =
        format!("results need 1 MiB, but {out} does not have that much free space: No space left");
    assert!(finished.err.contains(&said), "{finished:?}");
    assert_eq!(finished.err.lines().count(), 1, "{finished:?}");
}
