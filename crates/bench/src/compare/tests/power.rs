//! Error rates of comparisons: simulated runs of an unchanged and of a slower system, with the noise of committed runs.

use super::super::reference::pairs;
use super::*;

/// Committed runs of quiet hours, each with our variant, a reference, and the metric of the role under test.
const SOURCES: [(&str, &str, &str, &str, &str); 9] = [
    (
        "2026-11-21-first-light",
        "fixed answer",
        "onrush epoll",
        "nginx",
        CPU,
    ),
    (
        "2026-11-21-first-light",
        "1 KiB static file",
        "onrush epoll",
        "nginx",
        CPU,
    ),
    (
        "2026-11-21-first-light",
        "forward, empty answer",
        "onrush epoll",
        "HAProxy",
        "proxy.cpu_us_per_request",
    ),
    (
        "2026-11-21-first-light-1",
        "fixed answer",
        "onrush io_uring",
        "nginx",
        CPU,
    ),
    (
        "2026-11-21-first-light-1",
        "forward, empty answer",
        "onrush io_uring",
        "HAProxy",
        "proxy.cpu_us_per_request",
    ),
    (
        "2026-11-22-balancer",
        "what TLS adds",
        "onrush epoll",
        "nginx",
        CPU,
    ),
    (
        "2026-11-22-balancer-1",
        "what TLS adds",
        "onrush io_uring",
        "nginx",
        CPU,
    ),
    (
        "2026-11-22-balancer-forward",
        "forward on shared connections",
        "onrush io_uring",
        "HAProxy",
        "proxy.cpu_us_per_request",
    ),
    (
        "2026-11-22-balancer-latency",
        "latency that a proxy adds",
        "onrush epoll",
        "HAProxy",
        "proxy.cpu_us_per_request",
    ),
];

const REPETITIONS: usize = 200;

#[derive(Clone, Copy)]
struct Simulated {
    rounds: usize,
    /// Factor on the noise of the committed runs.
    scale: f64,
    /// Standard deviation between runs, common to both variants.
    shared: f64,
    /// Standard deviation between runs of their ratio.
    own: f64,
    /// Correlation of successive rounds.
    follows: f64,
}

/// Parameters of the committed runs, with the number of rounds that `docs/compare.md` recommends.
const USUAL: Simulated = Simulated {
    rounds: 60,
    scale: 1.0,
    shared: 0.015,
    own: 0.0025,
    follows: 0.0,
};

#[test]
fn unchanged_system_shows_no_difference() {
    // The table of docs/compare.md: the ratio to the reference varies by 2.6 % from round to round on this machine, and
    // by these fractions of it on quieter ones.
    for (scale, rounds) in [(1.0, 60), (0.8, 50), (0.6, 30), (0.4, 20)] {
        let how = Simulated {
            scale,
            rounds,
            ..USUAL
        };
        let found = tally(how, 1.0);
        assert!(
            20 * found.of_verdict(Verdict::NoDifference) >= 19 * REPETITIONS,
            "{scale}: {}",
            found.label()
        );
        assert_eq!(changed(&found), 0, "{scale}: {}", found.label());
    }
}

#[test]
fn five_percent_change_is_detected() {
    for (scale, rounds) in [(1.0, 30), (0.8, 20), (0.6, 15), (0.4, 10)] {
        let how = Simulated {
            scale,
            rounds,
            ..USUAL
        };
        let found = tally(how, 1.05);
        assert!(
            10 * found.of_verdict(Verdict::Worse) >= 9 * REPETITIONS,
            "{scale}: {}",
            found.label()
        );
        assert_eq!(found.of_verdict(Verdict::Better), 0);
    }
}

#[test]
fn noisier_runs_cause_no_false_verdicts() {
    for how in [
        Simulated { rounds: 9, ..USUAL },
        Simulated {
            own: 0.005,
            ..USUAL
        },
        Simulated {
            follows: 0.6,
            rounds: 30,
            ..USUAL
        },
        Simulated {
            shared: 0.1,
            rounds: 20,
            ..USUAL
        },
    ] {
        let found = tally(how, 1.0);
        assert_eq!(
            changed(&found),
            0,
            "{} rounds: {}",
            how.rounds,
            found.label()
        );
    }
}

#[test]
fn no_false_verdicts_without_reference() {
    let noise = noise();
    let mut random = Random::new(11);
    let mut side = || {
        let run = simulated(&mut random, &noise, USUAL, 1.0);
        let rows = run.rows.variants.into_iter().filter(|it| it.is_ours);
        Run {
            rows: Rows {
                variants: rows.collect(),
            },
            ..run
        }
    };
    let verdicts = (0..REPETITIONS).map(|_| {
        let comparison = compare(&side(), &side(), &Options::default());
        only(&comparison).verdict
    });
    let found = Counts::of(verdicts);
    assert_eq!(changed(&found), 0, "{}", found.label());
}

/// Deviations of ours and of the reference in each round of the sources, as logarithms.
fn noise() -> Vec<(f64, f64)> {
    let runs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../runs");
    let mut found = Vec::new();
    for (name, work, ours, theirs, metric) in SOURCES {
        let run = Run::read(&runs.join(name)).expect("a committed run");
        let metric = Metric::parse(metric).expect("a metric");
        let sound = |variant: &str| {
            let subject = crate::archive::SeriesId {
                work: work.into(),
                point: String::new(),
                variant: variant.into(),
            };
            run.rows
                .of(&subject)
                .expect("it is in the run")
                .usable_rounds(&metric)
        };
        let pairs = pairs(&sound(theirs), &sound(ours));
        let off = |side: fn(&(f64, f64)) -> f64| -> Vec<f64> {
            let logs: Vec<f64> = pairs.iter().map(|pair| side(pair).ln()).collect();
            let mean = logs.iter().sum::<f64>() / logs.len() as f64;
            // Corrects for the mean, which comes from the same few rounds.
            let few = (logs.len() as f64 / (logs.len() as f64 - 1.0)).sqrt();
            logs.iter().map(|log| (log - mean) * few).collect()
        };
        found.extend(off(|pair| pair.1).into_iter().zip(off(|pair| pair.0)));
    }
    found
}

/// Simulates a run of our variant, `slower` times as expensive, and a reference.
fn simulated(random: &mut Random, noise: &[(f64, f64)], how: Simulated, slower: f64) -> Run {
    let shared = random.normal() * how.shared;
    let own = random.normal() * how.own;
    let mut before = 0.0;
    // Keeps the variance independent of the correlation.
    let fresh = (1.0 - how.follows * how.follows).sqrt();
    let (ours, theirs): (Vec<f64>, Vec<f64>) = (0..how.rounds)
        .map(|_| {
            let (ours, theirs) = noise[random.below(noise.len())];
            before = how.follows * before + fresh * how.scale * ours;
            let ours = 3.5 * slower * f64::exp(shared + own + before);
            (ours, 4.3 * f64::exp(shared + how.scale * theirs))
        })
        .unzip();
    let rows = rows("ours", CPU, SOUND, ours) + &rows("nginx", CPU, SOUND, theirs);
    run("simulated", &rows)
}

fn tally(how: Simulated, slower: f64) -> Counts {
    let noise = noise();
    let mut random = Random::new(7);
    Counts::of((0..REPETITIONS).map(|_| {
        let [a, b] = [1.0, slower].map(|level| simulated(&mut random, &noise, how, level));
        only(&compare(&a, &b, &Options::default())).verdict
    }))
}

fn changed(counts: &Counts) -> usize {
    counts.of_verdict(Verdict::Better) + counts.of_verdict(Verdict::Worse)
}
