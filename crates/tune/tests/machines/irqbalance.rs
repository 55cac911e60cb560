//! irqbalance together with a plan: it keeps running only if it ignores the interrupts of the plan.

use std::fs;
use std::io;
use std::path::Path;

use onrush_tune::Error;
use onrush_tune::advise::{self, Plan, Request};
use onrush_tune::apply::{self, Force, Journal, Location, Machine, Reverted, Root};
use onrush_tune::facts::Facts;
use tempfile::TempDir;

use crate::machine::{Kind, Machine as Shape};

/// A machine with interrupts 40 and 41 for the queues of eth0, on which irqbalance runs with the given arguments.
fn root(arguments: &[&str]) -> TempDir {
    let shape = Shape::new(1, 16, 1).with("eth0", Kind::Ixgbevf, 0, 2, 3);
    let root = shape.write();
    let process = root.path().join("proc/77");
    fs::create_dir_all(&process).expect("made");
    fs::write(process.join("comm"), "irqbalance\n").expect("written");
    let command = [&["/usr/sbin/irqbalance", "--foreground"], arguments].concat();
    fs::write(process.join("cmdline"), command.join("\0") + "\0").expect("written");
    root
}

fn plan(root: &Path) -> Plan {
    let facts = Root::open(root).expect("a root").facts().expect("facts");
    advise::plan(&facts, &Request::default()).expect("a plan")
}

/// Checks whether a plan stops irqbalance, and its note.
#[track_caller]
fn check(root: &Path, stops: usize, text: &str) {
    let plan = plan(root);
    let stopped = plan
        .actions
        .iter()
        .filter(|action| action.path == "service:irqbalance");
    assert_eq!(stopped.count(), stops, "{:#?}", plan.actions);
    let notes = plan.notes.iter().filter(|note| note.about == "irqbalance");
    let notes: Vec<&str> = notes.map(|note| &note.text[..]).collect();
    assert!(
        matches!(notes[..], [note] if note.contains(text)),
        "{notes:#?}"
    );
}

#[test]
fn irqbalance_runs_if_planned_interrupts_are_banned() {
    const KEEPS: &str = "keeps running: its options ban the interrupts of this plan";
    const STOPS: &str = "is stopped: to keep it running for other devices, set IRQBALANCE_ARGS=\"--banirq=40 --banirq=41\"";
    for (arguments, stops, text) in [
        (&["--banirq=40", "--banirq=41"][..], 0, KEEPS),
        (&["-i", "40", "-i41", "--banirq", "42"], 0, KEEPS),
        (&[], 1, STOPS),
        (&["--banirq=40"], 1, STOPS),
        (&["--banirq=40", "--banirq=411"], 1, STOPS),
        (&["--banmod=virtio", "40", "41"], 1, STOPS),
    ] {
        check(root(arguments).path(), stops, text);
    }
    // A configuration file takes effect only after a restart.
    let changed = root(&[]);
    let file = changed.path().join("etc/default/irqbalance");
    fs::create_dir_all(file.parent().expect("a directory")).expect("made");
    fs::write(file, "IRQBALANCE_ARGS=\"--banirq=40 --banirq=41\"\n").expect("written");
    check(changed.path(), 1, STOPS);
}

#[test]
fn already_placed_interrupts_must_be_banned() {
    let root = root(&["--banirq=41"]);
    let moved = plan(root.path());
    let in_place = moved
        .actions
        .iter()
        .find(|action| action.path.starts_with("/proc/irq/40/"));
    let in_place = in_place.expect("it is moved");
    let file = root.path().join(&in_place.path[1..]);
    fs::write(file, format!("{}\n", in_place.proposed)).expect("written");
    check(root.path(), 1, "\"--banirq=40 --banirq=41\"");
}

/// A machine below a root, with a service manager.
struct WithServices {
    root: Root,
    /// `active` or `inactive`.
    irqbalance: String,
}

impl Machine for WithServices {
    fn facts(&self) -> Result<Facts, Error> {
        self.root.facts()
    }

    fn get(&self, place: &Location) -> io::Result<String> {
        match place {
            Location::Service(_) => Ok(self.irqbalance.clone()),
            _ => self.root.get(place),
        }
    }

    fn put(&mut self, place: &Location, value: &str) -> io::Result<()> {
        match place {
            Location::Service(_) => value.trim().clone_into(&mut self.irqbalance),
            _ => self.root.put(place, value)?,
        }
        Ok(())
    }
}

#[test]
fn revert_restarts_irqbalance_if_apply_stopped_it() {
    for (arguments, between) in [
        (&[][..], "inactive"),
        (&["--banirq=40", "--banirq=41"], "active"),
    ] {
        let root = root(arguments);
        let mut machine = WithServices {
            root: Root::open(root.path()).expect("a root"),
            irqbalance: "active".to_owned(),
        };
        let affinity = root.path().join("proc/irq/40/smp_affinity_list");
        let before = fs::read_to_string(&affinity).expect("read");
        let journal = || {
            Journal::open(&Journal::path_below(root.path()).expect("a place"), "")
                .expect("a journal")
        };
        apply::apply(&mut machine, &Request::default(), &mut journal()).expect("applied");
        assert_eq!(machine.irqbalance, between, "{arguments:?}");
        assert_ne!(fs::read_to_string(&affinity).expect("read"), before);
        let reverted = apply::revert(&mut machine, journal(), Force::Leave).expect("reverted");
        assert!(reverted.iter().all(Reverted::is_settled), "{reverted:#?}");
        assert_eq!(machine.irqbalance, "active");
        assert_eq!(fs::read_to_string(&affinity).expect("read"), before);
    }
}
