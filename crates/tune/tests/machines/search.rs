//! Search on a model of a machine with published results: two nodes of 16 CPUs, nginx, requests per second.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use onrush_machine::cpus::CpuSet;
use onrush_tune::Error;
use onrush_tune::advise::{Request, ValueFormat};
use onrush_tune::apply::{self, Force, Journal, Location, Reverted, Root};
use onrush_tune::facts::Facts;
use onrush_tune::search::{self, End, SearchTrace, Trials, Unmeasured};

use crate::machine::model::{Model, values};
use crate::machine::{Kind, Machine};

/// Throughput of a queue in thousands of requests per second, by the CPU with its interrupts and its steering mask.
/// Published for masks of 0, 32, 31, 16, 15 and 7 CPUs, interpolated linearly.
fn published(irq_cpu: usize, steering: &CpuSet) -> f64 {
    let node: CpuSet = (irq_cpu / 16 * 16..irq_cpu / 16 * 16 + 16).collect();
    let count = steering.len() as f64;
    match (
        steering.is_empty(),
        steering.contains(irq_cpu),
        steering.is_subset(&node),
    ) {
        (true, ..) | (false, true, false) => 250.0,
        (false, true, true) => 300.0,
        (false, false, false) => 515.0,
        (false, false, true) if count <= 7.0 => 250.0 + 420.0 * count / 7.0,
        (false, false, true) => 670.0 - 80.0 * (count - 7.0) / 8.0,
    }
}

/// Throughput with the current settings, with noise of half a percent.
fn measure(root: &Path, queues: usize, noise: &mut u64) -> f64 {
    let irq_cpu = |queue: usize| {
        let text =
            fs::read_to_string(root.join(format!("proc/irq/{}/smp_affinity_list", 40 + queue)))
                .expect("read");
        CpuSet::parse_list(&text)
            .and_then(|cpus| cpus.first())
            .expect("a CPU")
    };
    let mask = |queue: usize| {
        let path = root.join(format!("sys/class/net/eth0/queues/rx-{queue}/rps_cpus"));
        CpuSet::parse_mask(&fs::read_to_string(path).expect("read")).expect("a mask")
    };
    let sum: f64 = match queues == 2 && irq_cpu(0) == irq_cpu(1) {
        // Two queues that interrupt the same CPU count as one.
        true => published(irq_cpu(0), &mask(0)),
        // 925 with both at their best, limited by the client.
        false => {
            (0..queues)
                .map(|queue| published(irq_cpu(queue), &mask(queue)))
                .sum::<f64>()
                * if queues == 2 { 925.0 / 1_340.0 } else { 1.0 }
        }
    };
    *noise = noise
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1);
    sum * (0.995 + (*noise >> 33) as f64 / (1u64 << 31) as f64 * 0.01)
}

/// Searches, and checks that the reported rows equal the table.
fn search_with(
    machine: &mut impl apply::Machine,
    turns: usize,
    journal: &mut Journal,
    measure: &mut dyn FnMut() -> Result<f64, Unmeasured>,
) -> Result<SearchTrace, Error> {
    let mut told = String::new();
    let tell = &mut |road: &SearchTrace| {
        if road.end == End::Whole {
            told.push_str(&search::last_row(road));
        }
    };
    let trials = Trials {
        turns,
        measure,
        on_step: tell,
    };
    let road = search::search(machine, &Request::default(), journal, trials)?;
    assert_eq!(told, search::table(&road));
    Ok(road)
}

fn searched(queues: usize, irq_cpu: usize, check: impl Fn(&Path, &SearchTrace)) {
    let root = Machine::new(2, 16, 1)
        .with("eth0", Kind::Ixgbevf, -1, queues, irq_cpu)
        .write();
    let path = Journal::path_below(root.path()).expect("a place");
    let mut machine = Root::open(root.path()).expect("a root");
    let mut noise = 1;
    let mut journal = Journal::open(&path, "").expect("a journal");
    let measure = &mut || Ok(measure(root.path(), queues, &mut noise));
    let road = search_with(&mut machine, 5, &mut journal, measure).expect("searched");
    println!("{}", search::table(&road));
    check(root.path(), &road);
    let reverted = apply::revert(&mut machine, journal, Force::Leave).expect("reverted");
    assert!(reverted.iter().all(Reverted::is_settled), "{reverted:#?}");
    assert_eq!(mask(root.path(), 0), "00000000");
}

fn mask(root: &Path, queue: usize) -> String {
    let path = root.join(format!("sys/class/net/eth0/queues/rx-{queue}/rps_cpus"));
    fs::read_to_string(path).expect("read").trim().to_owned()
}

#[test]
fn search_finds_published_mask_for_single_queue() {
    searched(1, 16, |root, road| {
        assert!(
            ValueFormat::CpuMask.is_same(&mask(root, 0), "00fe0000"),
            "{}",
            mask(root, 0)
        );
        let kept: Vec<&str> = road
            .steps
            .iter()
            .filter(|step| step.is_kept)
            .map(|step| step.change.as_str())
            .collect();
        assert_eq!(
            kept,
            [
                "packet steering to all CPUs except those with interrupts",
                "packet steering to all CPUs of the interrupt's node except those with interrupts",
                "packet steering to 7 CPUs of the interrupt's node except its own",
            ]
        );
        for step in &road.steps {
            if let Some((least, ratio, most)) = step.ratio {
                assert!(least <= ratio && ratio <= most, "{step:?}");
                assert!(step.is_kept || ratio < 1.01, "{step:?}");
            }
        }
    });
}

#[test]
fn search_finds_published_masks_for_two_queues() {
    searched(2, 0, |root, _| {
        assert_eq!([mask(root, 0), mask(root, 1)], ["000000fe", "00fe0000"]);
    });
}

#[test]
fn failed_first_measurement_changes_nothing() {
    let root = Machine::new(1, 8, 1)
        .with("eth0", Kind::Ena, 0, 1, 0)
        .write();
    let path = Journal::path_below(root.path()).expect("a place");
    let mut machine = Root::open(root.path()).expect("a root");
    let mut journal = Journal::open(&path, "").expect("a journal");
    let failing = &mut || Err(Unmeasured::Failed("it printed no number".to_owned()));
    let error = search_with(&mut machine, 5, &mut journal, failing).expect_err("it failed");
    assert_eq!(error.to_string(), "it printed no number");
    assert_eq!(journal.changes(), []);
}

/// Model shared with the measurement; it can become read-only.
#[derive(Clone)]
struct Shared(Rc<RefCell<Model>>, Rc<Cell<bool>>);

impl Shared {
    fn of(model: Model) -> Shared {
        Shared(Rc::new(RefCell::new(model)), Rc::default())
    }

    fn values(&self) -> Vec<(String, String)> {
        values(&self.0.borrow())
    }
}

impl apply::Machine for Shared {
    fn facts(&self) -> Result<Facts, Error> {
        self.0.borrow().facts()
    }

    fn get(&self, place: &Location) -> io::Result<String> {
        self.0.borrow().get(place)
    }

    fn put(&mut self, place: &Location, value: &str) -> io::Result<()> {
        match self.1.get() {
            true => Err(rustix::io::Errno::ROFS.into()),
            false => self.0.borrow_mut().put(place, value),
        }
    }
}

fn kept(road: &SearchTrace) -> Vec<&str> {
    let kept = road.steps.iter().filter(|step| step.is_kept);
    kept.map(|step| step.change.as_str()).collect()
}

#[test]
fn thread_affinity_is_searched_and_restored() {
    let mut model = Model::new(
        Machine::new(2, 16, 1).with("eth0", Kind::Ixgbevf, -1, 1, 16),
        1,
    );
    // An unpinned program, a program that pins its threads to CPUs in use, and a thread that will end.
    let threads = [
        (70, 70, "0-31"),
        (80, 80, "16"),
        (80, 81, "17"),
        (80, 82, "0-31"),
    ];
    for (process, thread, cpus) in threads {
        let cpus = CpuSet::parse_list(cpus).expect("CPUs");
        model
            .threads
            .insert(Location::Thread(process, thread, 5), cpus);
    }
    let ending = Location::Thread(80, 82, 5);
    let before: BTreeMap<Location, CpuSet> = model.threads.clone();
    let mut machine = Shared::of(model);
    let directory = tempfile::tempdir().expect("a directory");
    let mut journal = Journal::open(&directory.path().join("journal"), "").expect("a journal");
    let measured = machine.clone();
    // Better if fewer threads of the program run on the CPUs of packets.
    let measure = &mut || {
        let mut model = measured.0.borrow_mut();
        let share =
            |cpus: &CpuSet| cpus.iter().filter(|cpu| *cpu < 16).count() as f64 / cpus.len() as f64;
        let result = 1.0 + model.threads.values().map(share).sum::<f64>();
        if result > 2.0 {
            model.threads.remove(&ending);
        }
        Ok(result)
    };
    let road = search_with(&mut machine, 3, &mut journal, measure).expect("searched");
    assert_eq!(
        kept(&road),
        [
            "application on CPUs 0-31, all",
            "application on CPUs 1-15,24-31, the CPUs of the plan",
            "application on CPUs 0-15, the other nodes",
        ],
        "{}",
        search::table(&road)
    );
    let cpus = |machine: &Shared| {
        let threads = machine.0.borrow().threads.clone();
        threads.values().map(CpuSet::to_string).collect::<Vec<_>>()
    };
    assert_eq!(cpus(&machine), ["0-15", "0", "1"]);
    let reverted = apply::revert(&mut machine, journal, Force::Leave).expect("reverted");
    assert!(reverted.iter().all(Reverted::is_settled), "{reverted:#?}");
    for (place, cpus) in &machine.0.borrow().threads {
        assert_eq!(before.get(place), Some(cpus), "{place}");
    }
}

#[test]
fn threads_started_during_trial_are_moved_back() {
    let mut model = Model::new(
        Machine::new(2, 16, 1).with("eth0", Kind::Ixgbevf, -1, 1, 16),
        1,
    );
    let all = CpuSet::parse_list("0-31").expect("CPUs");
    let first = Location::Thread(70, 70, 5);
    let narrow = CpuSet::parse_list("3-4").expect("CPUs");
    model.threads.insert(first.clone(), narrow.clone());
    model.threads.insert(Location::Thread(70, 71, 5), all);
    let mut machine = Shared::of(model);
    let directory = tempfile::tempdir().expect("a directory");
    let mut journal = Journal::open(&directory.path().join("journal"), "").expect("a journal");
    let measured = machine.clone();
    let mut number = 100;
    let measure = &mut || {
        // A new thread inherits the CPUs of its creator.
        let mut model = measured.0.borrow_mut();
        let cpus = model.threads[&first].clone();
        number += 1;
        model.threads.insert(Location::Thread(70, number, 9), cpus);
        Ok(1.0)
    };
    let road = search_with(&mut machine, 2, &mut journal, measure).expect("searched");
    assert!(
        road.steps
            .iter()
            .any(|step| step.change.starts_with("application") && step.ratio.is_some()),
        "{road:#?}"
    );
    let model = machine.0.borrow();
    assert!(model.threads.len() > 10);
    for (place, cpus) in model
        .threads
        .iter()
        .filter(|(place, _)| **place != Location::Thread(70, 71, 5))
    {
        assert_eq!(*cpus, narrow, "{place}");
    }
}

#[test]
fn failed_undo_ends_search() {
    let model = Model::new(Machine::new(1, 8, 1).with("eth0", Kind::Ena, 0, 1, 0), 1);
    let mut machine = Shared::of(model);
    let before = machine.values();
    let directory = tempfile::tempdir().expect("a directory");
    let mut journal = Journal::open(&directory.path().join("journal"), "").expect("a journal");
    let (measured, usual) = (machine.clone(), before.clone());
    let measure = &mut || {
        // Becomes read-only while the first candidate is in force.
        measured.1.set(measured.values() != usual);
        Ok(1.0)
    };
    let road = search_with(&mut machine, 2, &mut journal, measure).expect("searched");
    assert!(
        matches!(&road.end, End::Stuck(why) if why.contains("read-only")),
        "{road:#?}"
    );
    machine.1.set(false);
    assert_ne!(machine.values(), before);
    let reverted = apply::revert(&mut machine, journal, Force::Leave).expect("reverted");
    assert!(reverted.iter().all(Reverted::is_settled), "{reverted:#?}");
    assert_eq!(machine.values(), before);
}

#[test]
fn queue_counts_are_tried_first_and_reset_restored() {
    for (is_better, expected) in [(false, &[][..]), (true, &["eth0 with 4 queues"][..])] {
        let mut model = Model::new(Machine::new(1, 16, 1).with("eth0", Kind::Ena, 0, 2, 3), 4);
        for (file, mask) in [("tx-0/xps_cpus", "8001"), ("rx-1/rps_cpus", "00f0")] {
            let place = Location::File(format!("/sys/class/net/eth0/queues/{file}"));
            apply::Machine::put(&mut model, &place, mask).expect("put");
        }
        let mut machine = Shared::of(model);
        let before = machine.values();
        let directory = tempfile::tempdir().expect("a directory");
        let mut journal = Journal::open(&directory.path().join("journal"), "").expect("a journal");
        let measured = machine.clone();
        let measure = &mut || {
            let queues = measured.0.borrow().shape.interfaces[0].queues;
            Ok(if is_better { queues as f64 } else { 1.0 })
        };
        let road = search_with(&mut machine, 2, &mut journal, measure).expect("searched");
        assert!(road.steps[0].change.ends_with(" queues"), "{road:#?}");
        assert_eq!(kept(&road), expected);
        if !is_better {
            assert_eq!(machine.values(), before);
        }
        let reverted = apply::revert(&mut machine, journal, Force::Leave).expect("reverted");
        assert!(reverted.iter().all(Reverted::is_settled), "{reverted:#?}");
        assert_eq!(machine.values(), before);
    }
}

fn files(root: &Path) -> BTreeMap<PathBuf, String> {
    let mut files = BTreeMap::new();
    let mut directories = vec![root.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(&directory).expect("a directory") {
            let path = entry.expect("an entry").path();
            if path.is_symlink() || path.starts_with(root.join("run")) {
                continue;
            }
            match path.is_dir() {
                true => directories.push(path),
                false => drop(files.insert(path.clone(), fs::read_to_string(path).expect("read"))),
            }
        }
    }
    files
}

#[test]
fn stopped_search_restores_trial_changes() {
    let root = Machine::new(1, 8, 1)
        .with("eth0", Kind::Ena, 0, 1, 0)
        .write();
    let before = files(root.path());
    let path = Journal::path_below(root.path()).expect("a place");
    let mut machine = Root::open(root.path()).expect("a root");
    for measurements in 3..40 {
        let mut journal = Journal::open(&path, "").expect("a journal");
        let mut left = measurements;
        let measure = &mut || {
            left -= 1;
            if left == 0 {
                Err(Unmeasured::Stopped)
            } else {
                Ok(1.0)
            }
        };
        let road = search_with(&mut machine, 2, &mut journal, measure).expect("searched");
        assert_eq!(
            files(root.path()),
            before,
            "after {measurements} measurements"
        );
        journal.remove_if_undone().expect("removed");
        assert!(!path.exists(), "after {measurements} measurements");
        if road.end == End::Whole {
            return;
        }
        assert_eq!(road.end, End::Stopped);
    }
    panic!("there is more to try than was thought");
}
