//! Order of tests and number of concurrent tests.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread;

use anyhow::Context;

use super::process::{self, Outcome};
use super::report::Progress;
use super::suites::Job;

/// Concurrent tests per CPU: end-to-end tests mostly wait.
const TESTS_PER_CPU: usize = 3;

/// Tests that run while no other test runs, by suite and prefix of their name: they count what arrives within a time,
/// or have a load generator judge its own machine.
pub(crate) const ALONE: &[(&str, &str)] = &[
    ("onrush-cli --test end_to_end", "busy_polling::"),
    ("onrush-cli --test end_to_end", "caching_datagrams::"),
    (
        "onrush-cli --test end_to_end",
        "command_lines::h1load_runs_until_ctrl_c",
    ),
    ("onrush-cli --test end_to_end", "doubting::"),
    ("onrush-load --lib", "connection::http2::tests::failing::"),
    ("onrush-load --lib", "connection::tests::failing::"),
    ("onrush-load --test packets", ""),
];

fn is_alone(job: &Job) -> bool {
    let title = job.suite.title();
    let mut alone = ALONE.iter();
    alone.any(|(suite, start)| title == *suite && job.test.name.starts_with(start))
}

/// Runs the jobs in parallel, then the jobs that must run alone.
pub(crate) fn run<'suites>(jobs: &[Job<'suites>]) -> anyhow::Result<Vec<(Job<'suites>, Outcome)>> {
    let (alone, beside): (Vec<Job>, Vec<Job>) = jobs.iter().partition(|job| is_alone(job));
    let cpus = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let mut progress = Progress::new(jobs);
    run_beside(&beside, cpus * TESTS_PER_CPU, &mut progress)?;
    run_beside(&alone, 1, &mut progress)?;
    Ok(progress.outcomes)
}

/// Runs at most `workers` jobs at the same time.
fn run_beside<'suites>(
    jobs: &[Job<'suites>],
    workers: usize,
    progress: &mut Progress<'suites>,
) -> anyhow::Result<()> {
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        let (sender, outcomes) = channel();
        for worker in 0..workers.min(jobs.len()) {
            let (sender, next) = (sender.clone(), &next);
            scope.spawn(move || work(jobs, next, worker, &sender));
        }
        drop(sender);
        outcomes
            .iter()
            .try_for_each(|outcome| outcome.map(|(job, outcome)| progress.add(job, outcome)))
    })
}

type Sent<'suites> = anyhow::Result<(Job<'suites>, Outcome)>;

/// Runs jobs one after the other until none is left or the receiver is gone.
fn work<'suites>(
    jobs: &[Job<'suites>],
    next: &AtomicUsize,
    worker: usize,
    outcomes: &Sender<Sent<'suites>>,
) {
    let id = std::process::id();
    let output: PathBuf = std::env::temp_dir().join(format!("onrush-test-{id}-{worker}"));
    while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
        let outcome = process::run(*job, &output)
            .with_context(|| format!("{} {}", job.suite.title(), job.test.name))
            .map(|outcome| (*job, outcome));
        if outcomes.send(outcome).is_err() {
            break;
        }
    }
    // A left-over file does no harm.
    let _ = std::fs::remove_file(output);
}
