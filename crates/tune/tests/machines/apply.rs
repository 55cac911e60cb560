//! Applying and reverting: exact restoration after any interruption, on files and on a model of a kernel.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use onrush_tune::Error;
use onrush_tune::advise::{self, Goal, Request, Role, Target};
use onrush_tune::apply::{
    self, Applied, Force, Journal, Location, Machine, Outcome, RevertOutcome, Reverted, Root,
};
use onrush_tune::facts::Facts;
use onrush_tune::report;

use crate::machine::model::{Model, values};
use crate::machine::{Kind, Machine as Shape};

fn cloud() -> Shape {
    Shape::new(2, 16, 1)
        .with("eth0", Kind::Ixgbevf, -1, 2, 16)
        .with("eth1", Kind::Virtio, 0, 8, 3)
}

fn files(root: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut directories = vec![root.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(&directory).expect("a directory") {
            let entry = entry.expect("an entry");
            let kind = entry.file_type().expect("a type");
            if kind.is_dir() {
                directories.push(entry.path());
                files.insert(entry.path(), Vec::new());
            } else if kind.is_file() {
                files.insert(entry.path(), fs::read(entry.path()).expect("read"));
            }
        }
    }
    files
}

fn journal(root: &Path) -> Journal {
    Journal::open(&Journal::path_below(root).expect("a place"), "").expect("a journal")
}

fn apply_to(root: &Path) -> Vec<Applied> {
    let mut machine = Root::open(root).expect("a root");
    apply::apply(&mut machine, &Request::default(), &mut journal(root)).expect("applied")
}

fn revert(root: &Path, force: Force) -> Vec<Reverted> {
    let mut machine = Root::open(root).expect("a root");
    apply::revert(&mut machine, journal(root), force).expect("reverted")
}

#[test]
fn revert_restores_files_exactly() {
    let root = cloud().write();
    let before = files(root.path());
    let applied = apply_to(root.path());
    assert!(
        applied.len() > 20 && applied.iter().all(|change| change.outcome == Outcome::Done),
        "{applied:#?}"
    );
    assert_ne!(files(root.path()), before);
    let again = apply_to(root.path());
    assert_eq!(again, [], "a second time there is nothing to do");
    let reverted = revert(root.path(), Force::Leave);
    assert!(
        reverted
            .iter()
            .all(|change| change.outcome == RevertOutcome::Restored),
        "{reverted:#?}"
    );
    assert_eq!(files(root.path()), before, "the journal is gone, too");
}

/// A machine below a root with injected faults.
struct FaultyMachine {
    root: Root,
    /// Fault by path and number of earlier changes.
    happens: Box<FaultInjector>,
    puts: usize,
}

type FaultInjector = dyn Fn(&str, usize) -> Event;

enum Event {
    Nothing,
    DiesBefore,
    /// The process dies before it reads the value back.
    DiesAfter,
    Refuses(rustix::io::Errno),
    /// The kernel keeps a different value.
    Keeps(&'static str),
}

impl FaultyMachine {
    fn at(root: &Path, happens: impl Fn(&str, usize) -> Event + 'static) -> FaultyMachine {
        FaultyMachine {
            root: Root::open(root).expect("a root"),
            happens: Box::new(happens),
            puts: 0,
        }
    }
}

impl Machine for FaultyMachine {
    fn facts(&self) -> Result<Facts, Error> {
        self.root.facts()
    }

    fn get(&self, place: &Location) -> io::Result<String> {
        self.root.get(place)
    }

    fn put(&mut self, place: &Location, value: &str) -> io::Result<()> {
        self.puts += 1;
        match (self.happens)(&place.to_string(), self.puts - 1) {
            Event::Nothing => self.root.put(place, value),
            Event::DiesBefore => panic!("killed"),
            Event::DiesAfter => {
                self.root.put(place, value).expect("put");
                panic!("killed")
            }
            Event::Refuses(errno) => Err(errno.into()),
            Event::Keeps(other) => self.root.put(place, other),
        }
    }
}

#[test]
fn undo_affects_last_run_only() {
    let root = cloud().write();
    let before = files(root.path());
    apply_to(root.path());
    // Both runs change this; another program changes it in between.
    let file = root.path().join("proc/sys/net/core/somaxconn");
    fs::write(file, "9999\n").expect("written");
    let first = files(root.path());
    let mut machine = Root::open(root.path()).expect("a root");
    let short = Request {
        goal: Goal::Latency,
        role: Role::Proxy,
        ..Request::default()
    };
    let mut opened = journal(root.path());
    apply::apply(&mut machine, &short, &mut opened).expect("applied");
    let run = opened.last_run().expect("a run");
    assert!(opened.changes_since(run).len() > 1);
    drop(opened);
    let undone = apply::revert_since(&mut machine, journal(root.path()), run, Force::Leave);
    assert!(undone.expect("undone").iter().all(Reverted::is_settled));
    assert_eq!(files(root.path()), first, "and the journal is as it was");
    let reverted = revert(root.path(), Force::Overwrite);
    assert!(reverted.iter().all(Reverted::is_settled), "{reverted:#?}");
    assert_eq!(files(root.path()), before);
}

#[test]
fn crash_during_apply_can_be_reverted() {
    let root = cloud().write();
    let before = files(root.path());
    let changes = apply_to(root.path()).len();
    revert(root.path(), Force::Leave);
    let quiet = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    for at in 0..changes {
        for after in [false, true] {
            let mut machine =
                FaultyMachine::at(root.path(), move |_, count| match (count == at, after) {
                    (true, false) => Event::DiesBefore,
                    (true, true) => Event::DiesAfter,
                    (false, _) => Event::Nothing,
                });
            let mut journal = journal(root.path());
            let died = catch_unwind(AssertUnwindSafe(|| {
                let _ = apply::apply(&mut machine, &Request::default(), &mut journal);
            }));
            assert!(died.is_err());
            drop(journal);
            let reverted = revert(root.path(), Force::Leave);
            assert!(reverted.iter().all(Reverted::is_settled), "{reverted:#?}");
            assert_eq!(
                files(root.path()),
                before,
                "died at change {at}, after it: {after}"
            );
        }
    }
    std::panic::set_hook(quiet);
}

#[test]
fn crash_during_revert_can_be_reverted() {
    let root = cloud().write();
    let before = files(root.path());
    let quiet = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    for at in [0, 5, 11] {
        apply_to(root.path());
        let mut machine = FaultyMachine::at(root.path(), move |_, count| {
            if count == at {
                Event::DiesAfter
            } else {
                Event::Nothing
            }
        });
        let journal_of = journal(root.path());
        let died = catch_unwind(AssertUnwindSafe(|| {
            drop(apply::revert(&mut machine, journal_of, Force::Leave))
        }));
        assert!(died.is_err());
        let reverted = revert(root.path(), Force::Leave);
        assert!(reverted.iter().all(Reverted::is_settled), "{reverted:#?}");
        assert_eq!(files(root.path()), before, "died at change {at}");
    }
    std::panic::set_hook(quiet);
}

#[test]
fn refused_change_does_not_stop_apply() {
    use rustix::io::Errno;
    let root = cloud().write();
    let before = files(root.path());
    for (errno, expected) in [
        (
            Errno::IO,
            "the kernel manages this interrupt and does not allow",
        ),
        (Errno::INVAL, "the kernel rejects this value (EINVAL)"),
        (Errno::ACCESS, "not permitted: needs root"),
        (Errno::ROFS, "mounted read-only"),
    ] {
        let mut machine = FaultyMachine::at(root.path(), move |path, _| {
            match path.contains("/proc/irq/") {
                true => Event::Refuses(errno),
                false => Event::Nothing,
            }
        });
        let applied = apply::apply(&mut machine, &Request::default(), &mut journal(root.path()))
            .expect("applied");
        let (refused, done): (Vec<_>, Vec<_>) = applied
            .iter()
            .partition(|change| matches!(&change.outcome, Outcome::Refused(_)));
        assert!(refused.len() > 5 && done.len() > 5);
        for change in refused {
            assert!(
                matches!(&change.outcome, Outcome::Refused(why) if why.contains(expected)),
                "{change:?}"
            );
        }
        revert(root.path(), Force::Leave);
        assert_eq!(files(root.path()), before);
    }
}

/// Runs a test of this program again, on a machine below a root, with files limited to 4 kB, and waits for it.
fn where_files_cannot_grow(test: &str, run: impl FnOnce(&Path)) {
    const INNER: &str = "ONRUSH_TEST_FILES_CANNOT_GROW_BELOW";
    if let Some(root) = std::env::var_os(INNER) {
        return run(Path::new(&root));
    }
    let root = cloud().write();
    let limited = "trap '' XFSZ; ulimit -f 8; exec \"$0\" \"$@\"";
    let output = std::process::Command::new("sh")
        .args(["-c", limited])
        .arg(std::env::current_exe().expect("this program"))
        .args([&format!("apply::{test}"), "--exact", "--nocapture"])
        .env(INNER, root.path())
        .output()
        .expect("a shell");
    assert!(output.status.success(), "{output:?}");
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(stdout.contains("1 passed"), "{stdout}");
}

#[test]
fn full_disk_stops_apply() {
    let test = "full_disk_stops_apply";
    where_files_cannot_grow(test, |root| {
        let before = files(root);
        let mut machine = Root::open(root).expect("a root");
        let mut opened = journal(root);
        let stopped = apply::apply(&mut machine, &Request::default(), &mut opened)
            .expect_err("the journal is full");
        assert!(matches!(stopped.cause, Error::Write(..)));
        let stand = |change: &&Applied| change.took_effect();
        let count = stopped.applied.iter().filter(stand).count();
        assert!(count > 5, "{:#?}", stopped.applied);
        assert_eq!(opened.changes().len(), count);
        drop(opened);
        let reverted = revert(root, Force::Leave);
        assert_eq!(reverted.len(), count);
        assert!(reverted.iter().all(Reverted::is_settled), "{reverted:#?}");
        assert_eq!(files(root), before);
    });
}

#[test]
fn value_adjusted_by_kernel_is_recorded() {
    let root = cloud().write();
    let before = files(root.path());
    let mut machine = FaultyMachine::at(root.path(), |path, _| {
        match path.ends_with("rx-1/rps_cpus") {
            true => Event::Keeps("00f00000\n"),
            false => Event::Nothing,
        }
    });
    let applied = apply::apply(&mut machine, &Request::default(), &mut journal(root.path()))
        .expect("applied");
    let adjusted = applied
        .iter()
        .filter(|change| change.outcome == Outcome::Adjusted("00f00000".to_owned()));
    assert_eq!(adjusted.count(), 1);
    let reverted = revert(root.path(), Force::Leave);
    assert!(
        reverted.iter().all(Reverted::is_settled),
        "what it kept is ours, and no conflict: {reverted:#?}"
    );
    assert_eq!(files(root.path()), before);
}

#[test]
fn foreign_value_is_a_conflict() {
    let root = cloud().write();
    let before = files(root.path());
    apply_to(root.path());
    let file = root.path().join("proc/sys/net/core/somaxconn");
    fs::write(&file, "7777\n").expect("written");
    let machine = Root::open(root.path()).expect("a root");
    let standing = apply::status(&machine, &journal(root.path())).expect("status");
    let drifted: Vec<_> = standing
        .iter()
        .filter(|change| !change.is_in_force)
        .collect();
    assert_eq!(drifted.len(), 1);
    assert_eq!(
        (drifted[0].now.as_deref(), drifted[0].ours.as_str()),
        (Some("7777"), "65535")
    );

    let reverted = revert(root.path(), Force::Leave);
    let conflicts: Vec<_> = reverted
        .iter()
        .filter(|change| !change.is_settled())
        .collect();
    assert_eq!(conflicts.len(), 1);
    assert_eq!(
        conflicts[0].outcome,
        RevertOutcome::Conflict("7777".to_owned())
    );
    assert_eq!(fs::read(&file).expect("read"), b"7777\n");

    let forced = revert(root.path(), Force::Overwrite);
    assert!(forced.iter().all(Reverted::is_settled), "{forced:#?}");
    assert_eq!(files(root.path()), before);
}

#[test]
fn device_removed_before_apply_is_reported() {
    let root = cloud().write();
    let mut machine = Root::open(root.path()).expect("a root");
    let plan = advise::plan(&machine.facts().expect("facts"), &Request::default()).expect("a plan");
    fs::remove_file(root.path().join("sys/class/net/eth0")).expect("it was there");
    let applied =
        apply::apply_actions(&mut machine, &plan, &mut journal(root.path())).expect("applied");
    let gone = |change: &Applied| matches!(&change.outcome, Outcome::Refused(why) if why.contains("is gone"));
    let queues: Vec<_> = applied
        .iter()
        .filter(|change| change.path.contains("/eth0/queues/"))
        .collect();
    assert!(
        queues.len() >= 3 && queues.iter().all(|change| gone(change)),
        "{queues:#?}"
    );
    let reverted = revert(root.path(), Force::Leave);
    assert!(reverted.iter().all(Reverted::is_settled));
}

#[test]
fn device_removed_before_revert_is_not_a_conflict() {
    let root = cloud().write();
    apply_to(root.path());
    fs::remove_file(root.path().join("sys/class/net/eth0")).expect("it was there");
    let reverted = revert(root.path(), Force::Leave);
    assert!(
        reverted
            .iter()
            .any(|change| change.outcome == RevertOutcome::Gone)
    );
    assert!(reverted.iter().all(Reverted::is_settled), "{reverted:#?}");
}

#[test]
fn changed_queue_count_is_reverted_by_queue() {
    for (queues, expected) in [(1, "4"), (20, "4")] {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("journal");
        let mut model = Model::new(
            Shape::new(1, 16, 1).with("eth0", Kind::Ena, 0, queues, 3),
            32,
        );
        // Set by hand; the reset loses it, and reverting restores it.
        let by_hand = Location::File("/sys/class/net/eth0/queues/tx-0/xps_cpus".to_owned());
        model.put(&by_hand, "8001").expect("put");
        let before = values(&model);
        let mut journal = Journal::open(&path, "").expect("a journal");
        let applied = apply::apply(&mut model, &Request::default(), &mut journal).expect("applied");
        let channels = applied
            .iter()
            .find(|change| matches!(change.target, Target::Driver { .. }))
            .expect("a change");
        assert_eq!(
            (channels.proposed.as_str(), &channels.outcome),
            (expected, &Outcome::Done)
        );
        assert!(
            applied.iter().all(|change| change.outcome == Outcome::Done),
            "{applied:#?}"
        );
        let plan =
            advise::plan(&model.facts().expect("facts"), &Request::default()).expect("a plan");
        assert_eq!(plan.actions, []);
        assert_eq!(plan.placement.interfaces[0].irq_cpus.to_string(), "12-15");
        let reverted = apply::revert(&mut model, journal, Force::Leave).expect("reverted");
        assert!(reverted.iter().all(Reverted::is_settled), "{reverted:#?}");
        assert_eq!(values(&model), before, "from {queues} queues");
    }
}

#[test]
fn persisted_drop_ins_are_written_and_removed() {
    let root = cloud().write();
    let before = files(root.path());
    let plan = advise::plan(
        &Root::open(root.path())
            .expect("a root")
            .facts()
            .expect("facts"),
        &Request::default(),
    );
    let plan = plan.expect("a plan");
    let written =
        apply::persist(root.path(), &plan, &[], Path::new("/usr/bin/onrush")).expect("written");
    assert_eq!(written.len(), 3);
    let settings =
        fs::read_to_string(root.path().join("etc/sysctl.d/90-onrush.conf")).expect("read");
    assert!(
        settings.contains("net.core.somaxconn = 65535\n"),
        "{settings}"
    );
    let unit = fs::read_to_string(root.path().join("etc/systemd/system/onrush-tune.service"))
        .expect("read");
    assert!(
        unit.contains("ExecStart=/usr/bin/onrush tune apply --goal throughput --role server\n"),
        "{unit}"
    );
    assert_eq!(apply::unpersist(root.path()).expect("removed").len(), 3);
    let after: Vec<_> = files(root.path())
        .into_iter()
        .filter(|(_, bytes)| !bytes.is_empty())
        .collect();
    let before: Vec<_> = before
        .into_iter()
        .filter(|(_, bytes)| !bytes.is_empty())
        .collect();
    assert_eq!(after, before);

    apply::check_persist(root.path()).expect("nothing is in the way");
    fs::write(root.path().join("etc/sysctl.d/90-onrush.conf"), "mine\n").expect("written");
    for error in [
        apply::check_persist(root.path()).expect_err("not ours"),
        apply::persist(root.path(), &plan, &[], Path::new("/usr/bin/onrush"))
            .expect_err("not ours"),
    ] {
        assert!(
            error.to_string().contains("was not written by onrush"),
            "{error}"
        );
    }
    assert_eq!(apply::unpersist(root.path()).expect("nothing").len(), 0);
}

#[test]
fn persist_keeps_settings_applied_at_boot() {
    let root = cloud().write();
    let facts = || Root::open(root.path()).expect("a root").facts();
    let plan = || advise::plan(&facts().expect("facts"), &Request::default()).expect("a plan");
    let persist = |settings: &[(String, String)]| {
        apply::persist(root.path(), &plan(), settings, Path::new("/onrush")).expect("written");
        fs::read_to_string(root.path().join("etc/sysctl.d/90-onrush.conf")).expect("read")
    };
    let first = persist(&[]);
    assert!(first.contains("net.core.somaxconn = 65535\n"), "{first}");
    // As after a boot: the settings are in force, and the journal is gone.
    apply_to(root.path());
    fs::remove_dir_all(root.path().join("run")).expect("the journal");
    assert_eq!(persist(&[]), first);
    let other = [("net/core/somaxconn".to_owned(), "70000".to_owned())];
    let changed = persist(&other);
    assert!(
        changed.contains("net.core.somaxconn = 70000\n") && !changed.contains("somaxconn = 65535"),
        "{changed}"
    );
    assert_eq!(changed.lines().count(), first.lines().count());
}

#[test]
fn snapshot_cannot_be_changed() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    let error = Root::open(file.path()).err().expect("refused");
    assert!(
        error
            .to_string()
            .contains("is a snapshot: it can be planned for, but not changed"),
        "{error}"
    );
}

#[test]
fn script_skips_queues_after_channel_change() {
    let model = Model::new(Shape::new(1, 16, 1).with("eth0", Kind::Ena, 0, 20, 3), 32);
    let plan = advise::plan(&model.facts().expect("facts"), &Request::default()).expect("a plan");
    let script = report::script(&plan);
    assert!(script.contains("run ethtool -L eth0 combined "), "{script}");
    assert!(
        !script.contains("/proc/irq/") && !script.contains("/queues/"),
        "{script}"
    );
    assert!(
        script.contains(
            "the queues or interrupts of eth0 have changed: run `onrush tune plan --script` again"
        ),
        "{script}"
    );
    assert!(
        script.contains("put 65535 /proc/sys/net/core/somaxconn"),
        "{script}"
    );
}

#[test]
fn symlinks_cannot_redirect_journal_or_drop_ins() {
    let outside = tempfile::tempdir().expect("a directory");
    let link = |root: &Path, target: &Path, name: &str| {
        fs::create_dir_all(root.join(name).parent().expect("a directory")).expect("made");
        std::os::unix::fs::symlink(target, root.join(name)).expect("a link");
    };
    let persist = |root: &Path| {
        let facts = Root::open(root).expect("a root").facts().expect("facts");
        let plan = advise::plan(&facts, &Request::default()).expect("a plan");
        apply::persist(root, &plan, &[], Path::new("/onrush"))
    };
    let lead = "follows a symbolic link to a target that does not exist below";

    let root = cloud().write();
    link(root.path(), outside.path(), "run");
    link(root.path(), outside.path(), "etc");
    for error in [
        Journal::path_below(root.path()).expect_err("it leads out"),
        apply::check_persist(root.path()).expect_err("it leads out"),
        persist(root.path()).expect_err("it leads out"),
    ] {
        assert!(error.to_string().contains(lead), "{error}");
    }
    assert_eq!(apply::persisted(root.path()), Vec::<PathBuf>::new());

    // A link to a directory below the root is followed there.
    let root = cloud().write();
    fs::create_dir_all(root.path().join("var/run")).expect("made");
    link(root.path(), Path::new("/var/run"), "run");
    apply_to(root.path());
    assert_eq!(files(&root.path().join("var/run")).len(), 1);
    assert!(
        revert(root.path(), Force::Leave)
            .iter()
            .all(Reverted::is_settled)
    );

    // The files themselves may be links.
    let root = cloud().write();
    let target = outside.path().join("stolen");
    link(root.path(), &target, "run/onrush-tune.journal");
    link(root.path(), &target, "etc/sysctl.d/90-onrush.conf");
    let path = Journal::path_below(root.path()).expect("a place");
    Journal::open(&path, "").expect_err("a link");
    persist(root.path()).expect_err("a link");
    assert_eq!(files(outside.path()).len(), 0);
}
