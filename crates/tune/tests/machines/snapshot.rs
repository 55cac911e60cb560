//! Snapshots contain the same facts, and any file of a recording may be missing, truncated or wrong.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

use onrush_tune::advise::{self, Request};
use onrush_tune::facts::{self, Counts};
use onrush_tune::tree::{self, Snapshot, Tree};
use onrush_tune::{diagnose, report, show};
use proptest::prelude::*;

use crate::machine::plans::read;
use crate::machine::{Kind, Machine, RECORDED, recorded};

#[test]
fn snapshot_gives_same_facts_as_machine() {
    for name in RECORDED {
        let root = recorded(name);
        let live = Tree::open(root.path()).expect("a root");
        live.record();
        let facts = facts::read(&live, None).expect("facts");
        let file = root.path().join("snapshot.json");
        let output = onrush_file::Output::new(&file).expect("a place");
        tree::write_snapshot(&live.recorded(), output).expect("written");
        assert_eq!(format!("{:?}", read(&file)), format!("{facts:?}"), "{name}");
    }
}

#[test]
fn older_snapshot_lacks_newer_facts() {
    let root = recorded(RECORDED[0]);
    let file = root.path().join("snapshot.json");
    let mut json = serde_json::to_value(sample()).expect("JSON");
    for key in ["driver_counters", "listening", "packet_rules", "qdiscs"] {
        let object = json.as_object_mut().expect("an object");
        assert!(object.remove(key).is_some(), "{key}");
    }
    fs::write(&file, json.to_string()).expect("written");
    let facts = read(&file);
    assert!(facts.counts.listening.is_empty());
    assert_eq!(facts.system.packet_rules, None);
    assert!(
        facts
            .interfaces
            .iter()
            .all(|interface| interface.qdisc.is_none())
    );
    assert!(!facts.interfaces.is_empty() && !facts.counts.cpus.is_empty());

    // Keys of newer versions are ignored.
    json["of-a-newer-program"] = serde_json::json!({ "anything": [1] });
    fs::write(&file, json.to_string()).expect("written");
    assert_eq!(format!("{:?}", read(&file)), format!("{facts:?}"));
}

#[test]
fn unusable_snapshot_has_reason() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("s.json");
    let whole = r#"{"onrush_snapshot":1,"version":"0","files":{},"directories":{},"links":{},"troubles":{},"ethtool":{}}"#;
    for (text, expected) in [
        (&whole[..60], "it is truncated: copy it again"),
        ("", "it is truncated: copy it again"),
        ("hello", "it is not JSON"),
        ("{}", "it lacks the key `onrush_snapshot`"),
        (
            r#"{"onrush_snapshot":9,"version":"7.0"}"#,
            "its format is 9, written by onrush 7.0",
        ),
    ] {
        fs::write(&file, text).expect("written");
        let error = Tree::open(&file).err().expect("refused").to_string();
        assert!(error.contains(expected), "of {text:?}: {error}");
    }
    fs::write(&file, whole).expect("written");
    let error = facts::read(&Tree::open(&file).expect("a snapshot"), None).expect_err("no CPUs");
    assert!(error.to_string().contains("no CPUs found"), "{error}");
}

#[test]
fn type_error_has_key_and_line() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("s.json");
    let text = serde_json::to_string_pretty(&sample()).expect("JSON");
    let whole: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    for (key, name, value, expected) in [
        (
            "files",
            "/proc/stat",
            serde_json::json!(5),
            r#"files."/proc/stat": invalid type: integer `5`, expected a string"#,
        ),
        (
            "directories",
            "/proc",
            serde_json::json!("x"),
            r#"directories."/proc": invalid type: string "x", expected a sequence"#,
        ),
        (
            "driver_counters",
            "e\u{1b}0",
            serde_json::json!({"a": -1}),
            r#"driver_counters."e\u{1b}0": invalid value: integer `-1`"#,
        ),
    ] {
        let mut changed = whole.clone();
        changed[key][name] = value;
        let text = serde_json::to_string_pretty(&changed).expect("JSON");
        fs::write(&file, &text).expect("written");
        let error = Tree::open(&file).err().expect("refused").to_string();
        assert!(error.contains(expected), "{error}");
        let quoted = serde_json::to_string(name).expect("JSON");
        let section = text.find(&format!("\"{key}\"")).expect("it is there");
        let at = section + text[section..].find(&quoted).expect("it is there");
        let line = text[..at].matches('\n').count() + 1;
        // In a list, the value is on the next line.
        let lines = [format!("line {line}: "), format!("line {}: ", line + 1)];
        assert!(
            lines.iter().any(|line| error.contains(line)),
            "{error}, not {lines:?}"
        );
    }
    let pipe = directory.path().join("pipe");
    let made = Command::new("mkfifo")
        .arg(&pipe)
        .status()
        .expect("mkfifo runs");
    assert!(made.success());
    let error = Tree::open(&pipe).err().expect("refused").to_string();
    assert!(error.contains("not a regular file"), "{error}");
}

#[test]
fn symlinks_cannot_leave_recorded_root() {
    let root = Machine::new(1, 2, 1).write();
    let secret = tempfile::NamedTempFile::new().expect("a file");
    fs::write(secret.path(), "31337").expect("written");
    let link = root.path().join("proc/sys/net/core/somaxconn");
    fs::remove_file(&link).expect("it was there");
    std::os::unix::fs::symlink(secret.path(), &link).expect("a link");
    assert_eq!(read(root.path()).system.setting("net/core/somaxconn"), None);
}

/// Contents of files in broken or hostile recordings.
fn anything() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(String::new()),
        Just("18446744073709551615".to_owned()),
        Just("-1".to_owned()),
        Just("0-8191".to_owned()),
        Just("ffffffff,ffffffff,ffffffff".to_owned()),
        Just("CPU0 CPU1\n 40: 1 2 PCI-MSI 1-edge eth0-TxRx-99999999999\n".to_owned()),
        "[0-9,\\-: a-zA-Z\n]{0,60}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    /// Facts, plan, diagram and diagnosis of a machine with arbitrary contents in some files.
    #[test]
    fn arbitrary_files_do_not_panic(
        changed in prop::collection::vec((any::<prop::sample::Index>(), anything()), 1..6)
    ) {
        let mut snapshot = sample();
        let paths: Vec<String> = snapshot.files.keys().cloned().collect();
        for (at, text) in changed {
            snapshot.files.insert(at.get(&paths).clone(), text);
        }
        let Ok(facts) = facts::read(&Tree::of_snapshot(snapshot), None) else {
            return Ok(());
        };
        let plan = advise::plan(&facts, &Request::default()).expect("a plan");
        let _ = (report::text(&plan, 80), report::script(&plan));
        let findings = diagnose::judge(&facts, &Counts::default(), &facts.counts);
        prop_assert!(!findings.is_empty());
        let _ = show::svg(&facts, &show::View::now(&facts, None), &diagnose::loads(&Counts::default(), &facts.counts));
    }
}

/// Recording of this machine's counters and a generated machine's CPUs and interfaces.
fn sample() -> Snapshot {
    static SAMPLE: OnceLock<Snapshot> = OnceLock::new();
    let make = || {
        let root = Machine::new(2, 3, 2)
            .with("eth0", Kind::Virtio, 0, 2, 1)
            .write();
        let [generated, live] = [root.path(), Path::new("/")].map(|root| {
            let tree = Tree::open(root).expect("a root");
            tree.record();
            facts::read(&tree, None).expect("facts");
            tree.recorded()
        });
        let mut sample = generated;
        sample.listening = live.listening;
        sample.packet_rules = live.packet_rules;
        for (path, text) in live.files {
            let is_wanted = path.starts_with("/proc/net")
                || path.starts_with("/proc/s")
                || path == "/proc/meminfo";
            if is_wanted {
                sample.files.entry(path).or_insert(text);
            }
        }
        sample
    };
    SAMPLE.get_or_init(make).clone()
}

/// Truncates each file of a generated machine in turn: facts are still read, or there is an error.
#[test]
fn truncated_files_do_not_panic() {
    let root = Machine::new(2, 2, 2)
        .with("eth0", Kind::Virtio, 0, 2, 1)
        .write();
    let mut files = Vec::new();
    let mut directories = vec![root.path().to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).expect("a directory") {
            let entry = entry.expect("an entry");
            let kind = entry.file_type().expect("a type");
            if kind.is_dir() {
                directories.push(entry.path());
            } else if kind.is_file() {
                files.push(entry.path());
            }
        }
    }
    assert!(files.len() > 50);
    for file in files {
        let whole = fs::read(&file).expect("read");
        for end in [0, whole.len() / 2] {
            fs::write(&file, &whole[..end]).expect("written");
            let facts = read(root.path());
            assert!(!facts.topology.online.is_empty(), "{}", file.display());
        }
        fs::write(&file, whole).expect("written");
    }
}
