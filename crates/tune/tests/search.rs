//! The search on a model of the machine whose figures were published: two nodes of 16 CPUs, nginx, requests a second.

mod machine;

use std::fs;
use std::path::Path;

use machine::{Kind, Machine};
use onrush_tune::advise::{Request, Spelling};
use onrush_tune::apply::{self, Force, Journal, Reverted, Root};
use onrush_tune::cpus::CpuSet;
use onrush_tune::search::{self, Road};

/// Thousands of requests a second of one queue, by the CPU with its interrupts and those that packets are steered to.
/// What was published for masks of 0, 32, 31, 16, 15 and 7 CPUs; straight lines between.
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

/// What the machine below a root would serve as it is set now, with noise of half a per cent.
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
        // Two queues that interrupt the same CPU are one.
        true => published(irq_cpu(0), &mask(0)),
        // 925 with both at their best, where the client was the limit.
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

fn searched(queues: usize, irq_cpu: usize, check: impl Fn(&Path, &Road)) {
    let root = Machine::new(2, 16, 1)
        .with("eth0", Kind::Ixgbevf, -1, queues, irq_cpu)
        .write();
    let path = Journal::path_below(root.path());
    let mut machine = Root::open(root.path()).expect("a root");
    let mut noise = 1;
    let mut journal = Journal::open(&path, "").expect("a journal");
    let road = search::search(
        &mut machine,
        &Request::default(),
        5,
        &mut journal,
        &mut || Ok(measure(root.path(), queues, &mut noise)),
    )
    .expect("searched");
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
fn one_queue_finds_the_seven_cpus_of_the_table() {
    searched(1, 16, |root, road| {
        assert!(
            Spelling::CpuMask.is_same(&mask(root, 0), "00fe0000"),
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
                "packet steering to all but those with interrupts",
                "packet steering to that node without CPUs with interrupts",
                "packet steering to 7 CPUs of that node beside the interrupt's",
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
fn two_queues_find_both_masks_of_the_table() {
    searched(2, 0, |root, _| {
        assert_eq!([mask(root, 0), mask(root, 1)], ["000000fe", "00fe0000"]);
    });
}

#[test]
fn a_measurement_that_fails_ends_the_search_before_anything_is_changed() {
    let root = Machine::new(1, 8, 1)
        .with("eth0", Kind::Ena, 0, 1, 0)
        .write();
    let path = Journal::path_below(root.path());
    let mut machine = Root::open(root.path()).expect("a root");
    let mut journal = Journal::open(&path, "").expect("a journal");
    let failing = &mut || Err("it printed no number".to_owned());
    let error = search::search(&mut machine, &Request::default(), 5, &mut journal, failing)
        .expect_err("it failed");
    assert_eq!(error.to_string(), "it printed no number");
    assert_eq!(journal.changes(), []);
}
