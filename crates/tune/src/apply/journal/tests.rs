//! Journals that are truncated, damaged, from another boot, or about renamed interfaces.

use super::*;
use crate::facts::Interface;
use crate::facts::ethtool::DriverSetting;

fn setting(file: &str) -> Target {
    Target::Setting {
        file: file.to_owned(),
    }
}

#[test]
fn truncated_journal_is_readable() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("run/j");
    let mut journal = Journal::open(&path, "b").expect("open");
    journal.change(&setting("a"), "1\n", "2").expect("noted");
    journal.kept(&setting("a"), "2\n").expect("noted");
    journal.change(&setting("cä"), "3\n", "4").expect("noted");
    drop(journal);
    let whole = fs::read(&path).expect("read");
    for end in 0..=whole.len() {
        fs::write(&path, &whole[..end]).expect("written");
        let journal = Journal::open(&path, "b").expect("open");
        let changes = journal.changes();
        let expected = match whole[..end].iter().filter(|byte| **byte == b'\n').count() {
            0 | 1 => 0,
            2 | 3 => 1,
            _ => 2,
        };
        assert_eq!(changes.len(), expected, "cut at {end}");
        assert!(changes.iter().all(|change| change.before != "2\n"));
    }
}

#[test]
fn first_original_and_last_kept_value_count() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut journal = Journal::open(&directory.path().join("j"), "b").expect("open");
    let target = setting("a");
    journal.change(&target, "1\n", "2").expect("noted");
    journal.kept(&target, "2\n").expect("noted");
    journal.change(&target, "2\n", "3").expect("noted");
    journal.refused(&target).expect("noted");
    journal
        .change(&setting("refused"), "1", "2")
        .expect("noted");
    journal.refused(&setting("refused")).expect("noted");
    let change = Change {
        target,
        before: "1\n".to_owned(),
        ours: Some("2\n".to_owned()),
        is_seen: true,
    };
    assert_eq!(journal.changes(), [change]);
}

#[test]
fn journal_of_another_boot_is_ignored() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("j");
    Journal::open(&path, "b")
        .expect("open")
        .change(&setting("a"), "1", "2")
        .expect("noted");
    assert_eq!(Journal::open(&path, "b").expect("open").changes().len(), 1);
    assert_eq!(Journal::open(&path, "c").expect("open").changes(), []);
}

#[test]
fn newer_journal_format_reports_writing_version() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("j");
    let newer =
        "{\"begin\":{\"schema\":4,\"version\":\"9.9.0\",\"life\":{}}}\n{\"moon\":{\"phase\":3}}\n";
    fs::write(&path, newer).expect("written");
    let errors = [
        Journal::open(&path, "b").expect_err("not known"),
        Journal::summary(&path, "b").expect_err("not known"),
    ];
    for error in errors {
        let words = "was written by onrush 9.9.0 in a format that this version cannot read: run revert with that";
        assert!(error.to_string().contains(words), "{error}");
    }
    assert_eq!(fs::read_to_string(&path).expect("read"), newer);
}

#[test]
fn summary_is_read_only() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("j");
    let glance = |life: &str| Journal::summary(&path, life).expect("it can be read");
    assert!(glance("b").is_none());
    let mut journal = Journal::open(&path, "b").expect("open");
    journal.change(&setting("a"), "1\n", "2").expect("noted");
    let held = glance("b").expect("a journal");
    assert!(held.is_held);
    assert_eq!(held.changes(&Facts::default()), journal.changes());
    drop(journal);
    // Truncated within a line, by a crash or while it is being written.
    let mut text = fs::read(&path).expect("read");
    text.extend(b"{\"change\":{\"tar");
    fs::write(&path, &text).expect("written");
    let left = glance("b").expect("a journal");
    assert!(!left.is_held);
    assert_eq!(left.changes(&Facts::default()).len(), 1);
    assert!(glance("c").is_none(), "of another boot");
    assert_eq!(fs::read(&path).expect("read"), text);
}

#[test]
fn notice_is_given_before_waiting_for_lock() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("j");
    let holder = Journal::open_with_notice(&path, "b", || panic!("nobody has it")).expect("open");
    let mut holder = Some(holder);
    // The callback runs before the wait, so it can end the wait.
    Journal::open_with_notice(&path, "b", || drop(holder.take())).expect("open");
    assert!(holder.is_none());
}

fn channels(interface: &str) -> Target {
    Target::Driver {
        interface: interface.to_owned(),
        knob: DriverSetting::ChannelsCombined,
    }
}

#[test]
fn refused_reset_restores_nothing() {
    let directory = tempfile::tempdir().expect("a directory");
    let steering = |interface: &str| Target::Steering {
        interface: interface.to_owned(),
        queue: 0,
    };
    let mut journal = Journal::open(&directory.path().join("j"), "b").expect("open");
    for interface in ["eth0", "eth1"] {
        journal.keep(&steering(interface), "f\n").expect("noted");
        let target = channels(interface);
        journal.change(&target, "8", "4").expect("noted");
    }
    journal.refused(&channels("eth0")).expect("noted");
    journal.kept(&channels("eth1"), "4").expect("noted");
    let targets = |journal: &Journal| {
        let changes = journal.changes().into_iter();
        changes.map(|change| change.target).collect::<Vec<_>>()
    };
    let of_the_other = [steering("eth1"), channels("eth1")];
    assert_eq!(targets(&journal), of_the_other);
    // Values lost by the first reset stay recorded even if the second is refused.
    journal.change(&channels("eth1"), "4", "2").expect("noted");
    journal.refused(&channels("eth1")).expect("noted");
    assert_eq!(targets(&journal), of_the_other);
}

/// Number of changes in a journal written in one network namespace and opened in another.
fn changes_after(wrote: Option<u64>, reads: Option<u64>) -> usize {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("j");
    let life = |namespace| JournalScope {
        namespace,
        ..JournalScope::from("b")
    };
    let mut journal = Journal::open(&path, life(wrote)).expect("open");
    journal.change(&setting("a"), "1", "2").expect("noted");
    drop(journal);
    let journal = Journal::open(&path, life(reads)).expect("open");
    journal.changes().len()
}

#[test]
fn reused_namespace_inode_does_not_match_old_journal() {
    assert_eq!(changes_after(Some(4_097), Some(4_097)), 1);
    assert_eq!(changes_after(Some(4_097), Some(4_098)), 0);
    // Unknown: an older kernel, or a journal of an older version.
    assert_eq!(changes_after(None, Some(4_098)), 1);
    assert_eq!(changes_after(Some(4_097), None), 1);
}

#[test]
fn older_journal_has_no_namespace() {
    let line = r#"{"begin":{"schema":1,"boot":"b","version":"0.1.0","made":null}}"#;
    let line: Line = serde_json::from_str(line).expect("a line");
    assert!(matches!(
        line,
        Line::Begin {
            namespace: None,
            ..
        }
    ));
}

fn facts(interfaces: &[(&str, u32, &str)]) -> Facts {
    let interface = |(name, index, device): &(&str, u32, &str)| Interface {
        name: (*name).to_owned(),
        index: Some(*index),
        device: (!device.is_empty()).then(|| (*device).to_owned()),
        ..Interface::default()
    };
    Facts {
        interfaces: interfaces.iter().map(interface).collect(),
        ..Facts::default()
    }
}

fn steering(interface: &str) -> Target {
    Target::Steering {
        interface: interface.to_owned(),
        queue: 0,
    }
}

/// `name before` of each change, sorted.
fn told(changes: &[Change]) -> Vec<String> {
    let line = |change: &Change| {
        let name = change.target.interface().unwrap_or_default();
        format!("{name} {}", change.before.trim())
    };
    let mut lines: Vec<String> = changes.iter().map(line).collect();
    lines.sort();
    lines
}

#[test]
fn renamed_interface_is_followed() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("j");
    let open = || Journal::open(&path, "b").expect("open");
    let mut journal = open();
    journal.follow(&facts(&[
        ("eth0", 2, "0000:01:00.0"),
        ("eth1", 3, "0000:02:00.0"),
        ("veth", 9, ""),
    ]));
    for name in ["eth0", "eth1", "veth"] {
        journal.change(&steering(name), name, "f").expect("noted");
        journal.kept(&steering(name), "f").expect("noted");
    }
    drop(journal);
    for (now, expected) in [
        // One renamed, one gone.
        (
            facts(&[("lan0", 2, "0000:01:00.0"), ("veth", 9, "")]),
            ["eth1 eth1", "lan0 eth0", "veth veth"],
        ),
        (
            facts(&[
                ("eth1", 2, "0000:01:00.0"),
                ("eth0", 3, "0000:02:00.0"),
                ("veth", 9, ""),
            ]),
            ["eth0 eth1", "eth1 eth0", "veth veth"],
        ),
        // The driver was reloaded; a virtual interface is gone and its name is reused.
        (
            facts(&[
                ("eth0", 22, "0000:01:00.0"),
                ("eth1", 3, "0000:02:00.0"),
                ("veth", 10, ""),
            ]),
            ["eth0 eth0", "eth1 eth1", "veth (once interface/9) veth"],
        ),
    ] {
        let mut journal = open();
        journal.follow(&now);
        assert_eq!(told(&journal.changes()), expected);
        let glance = Journal::summary(&path, "b")
            .expect("read")
            .expect("a journal");
        drop(journal);
        assert_eq!(told(&glance.changes(&now)), expected);
    }
}

#[test]
fn runs_may_use_different_names_for_interface() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("j");
    let (then, now) = (
        facts(&[("eth0", 2, "a"), ("eth1", 3, "b")]),
        facts(&[("eth1", 2, "a"), ("eth0", 3, "b")]),
    );
    for (facts, names, before) in [
        (&then, ["eth0", "eth1"], "1"),
        (&now, ["eth0", "eth1"], "2"),
    ] {
        let mut journal = Journal::open(&path, "b").expect("open");
        journal.follow(facts);
        for name in names {
            journal.change(&steering(name), before, "f").expect("noted");
            journal.kept(&steering(name), "f").expect("noted");
        }
    }
    // The values before the first run count for both; nothing is reported twice.
    for facts in [&then, &now] {
        let mut journal = Journal::open(&path, "b").expect("open");
        journal.follow(facts);
        assert_eq!(told(&journal.changes()), ["eth0 1", "eth1 1"]);
    }
}

#[test]
fn damaged_line_loses_no_other_line() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("j");
    let mut journal = Journal::open(&path, "b").expect("open");
    for name in ["a", "b", "c"] {
        journal.change(&setting(name), "1", "2").expect("noted");
        journal.kept(&setting(name), "2").expect("noted");
    }
    drop(journal);
    let whole = fs::read_to_string(&path).expect("read");
    for damaged in 0..7 {
        let damage = |(at, line): (usize, &str)| match at == damaged {
            true => b"\xff\x1b{\"change\":{\n".to_vec(),
            false => format!("{line}\n").into_bytes(),
        };
        let bytes: Vec<u8> = whole.lines().enumerate().flat_map(damage).collect();
        fs::write(&path, &bytes).expect("written");
        let journal = Journal::open(&path, "b").expect("open");
        let lost: Vec<usize> = journal.lost().map(|lost| lost.number).collect();
        assert_eq!(lost, [damaged + 1]);
        let changes = journal.changes();
        let expected = if damaged > 0 && damaged % 2 == 1 {
            2
        } else {
            3
        };
        assert_eq!(changes.len(), expected, "line {damaged}");
        assert!(changes.iter().all(|change| change.before == "1"));
        drop(journal);
        assert_eq!(
            fs::read(&path).expect("read"),
            bytes,
            "nothing of it is thrown away"
        );
    }
    let journal = Journal::open(&path, "b").expect("open");
    let aside = journal.put_aside().expect("moved");
    assert!(aside.ends_with("j.damaged-1") && aside.exists() && !path.exists());
}

#[test]
fn partial_journal_keeps_readable_changes() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("j");
    let mut journal = Journal::open(&path, "b").expect("open");
    journal.change(&setting("a"), "1", "2").expect("noted");
    journal.kept(&setting("a"), "2").expect("noted");
    drop(journal);
    let whole = fs::read(&path).expect("read");
    let first = whole
        .iter()
        .position(|byte| *byte == b'\n')
        .expect("a line");
    for (left, changes) in [
        (&whole[first + 1..], 1),
        (&whole[..first - 3], 0),
        (&whole[..whole.len() - 3], 1),
    ] {
        fs::write(&path, left).expect("written");
        let mut journal = Journal::open(&path, "b").expect("open");
        assert_eq!(journal.changes().len(), changes);
        assert_eq!(journal.lost().count(), 1);
        assert_eq!(
            fs::read(&path).expect("read"),
            left,
            "nothing is thrown away"
        );
        // Later lines must not be appended to half a line.
        journal.change(&setting("b"), "1", "2").expect("noted");
        drop(journal);
        let journal = Journal::open(&path, "b").expect("open");
        assert_eq!(journal.changes().len(), changes + 1);
        assert_eq!(journal.lost().count(), 1);
        journal.remove_if_undone().expect("looked");
        assert!(path.exists());
    }
}
