//! Progress and summary of a run of tests.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

use super::process::{End, Outcome};
use super::suites::Job;

/// Number of tests in the table of slow ones.
const SLOWEST: usize = 10;

/// Outcomes so far. Prints each failure immediately, and each suite after its last test.
pub(crate) struct Progress<'suites> {
    pub(crate) outcomes: Vec<(Job<'suites>, Outcome)>,
    suites: BTreeMap<String, Count>,
}

/// Number of unfinished tests of a suite, and totals of the finished ones.
#[derive(Default)]
struct Count {
    left: usize,
    tests: usize,
    failed: usize,
    duration: Duration,
}

impl<'suites> Progress<'suites> {
    pub(crate) fn new(jobs: &[Job<'suites>]) -> Self {
        let mut suites: BTreeMap<String, Count> = BTreeMap::new();
        for job in jobs {
            let count = suites.entry(job.suite.title()).or_default();
            count.left += 1;
            count.tests += 1;
        }
        Progress {
            outcomes: Vec::new(),
            suites,
        }
    }

    pub(crate) fn add(&mut self, job: Job<'suites>, outcome: Outcome) {
        if !outcome.is_success() {
            print!("{}", failure(job, &outcome));
        }
        let title = job.suite.title();
        let count = self.suites.get_mut(&title).expect("it was counted");
        count.left -= 1;
        count.failed += usize::from(!outcome.is_success());
        count.duration += outcome.duration;
        if count.left == 0 {
            let state = if count.failed == 0 { "ok" } else { "FAILED" };
            let (tests, seconds) = (count.tests, count.duration.as_secs_f64());
            println!("{state:>6}  {title:<36} {tests:>5} tests  {seconds:>6.1} s");
        }
        self.outcomes.push((job, outcome));
    }
}

/// How a test failed, what it printed, and the command that runs it alone.
fn failure(job: Job, outcome: &Outcome) -> String {
    let Outcome {
        end,
        duration,
        output,
    } = outcome;
    let end = match end {
        End::Passed => "passed".to_owned(),
        End::Failed => "failed".to_owned(),
        End::Signal(signal) => format!("was killed by signal {signal}"),
        End::TimeLimit => "was killed at its time limit".to_owned(),
    };
    let (suite, test) = (job.suite.title(), &job.test.name);
    let seconds = duration.as_secs_f64();
    format!(
        "\n{output}\nFAILED  {suite} {test}: {end} after {seconds:.1} s\n        {}\n\n",
        command(job)
    )
}

/// The command that runs a test alone.
fn command(job: Job) -> String {
    let Job { suite, test, seeds } = job;
    let variable = seeds.variable();
    let variable = variable.map_or_else(String::new, |(name, value)| format!("{name}={value} "));
    let ignored = if test.is_slow { " --ignored" } else { "" };
    format!(
        "{variable}cargo test --package {} {} -- --exact{ignored} {}",
        suite.package, suite.target, test.name
    )
}

/// The slowest tests, the failed ones with their commands, and the totals.
pub(crate) fn summary(outcomes: &[(Job, Outcome)], elapsed: Duration) -> String {
    let mut out = String::from("slowest tests:\n");
    let mut sorted = Vec::from_iter(outcomes);
    sorted.sort_by_key(|(_, outcome)| std::cmp::Reverse(outcome.duration));
    for (job, outcome) in sorted.iter().take(SLOWEST) {
        let seconds = outcome.duration.as_secs_f64();
        let (suite, test) = (job.suite.title(), &job.test.name);
        let _ = writeln!(out, "{seconds:>7.1} s  {suite} {test}");
    }
    let (passed, failed): (Vec<_>, Vec<_>) = outcomes
        .iter()
        .partition(|(_, outcome)| outcome.is_success());
    if !failed.is_empty() {
        let _ = writeln!(out, "failed tests; commands to run each alone:");
    }
    for (job, _) in &failed {
        let _ = writeln!(out, "    {}", command(*job));
    }
    let (passed, failed) = (passed.len(), failed.len());
    let seconds = elapsed.as_secs_f64();
    let _ = writeln!(out, "{passed} passed, {failed} failed in {seconds:.0} s");
    out
}

#[cfg(test)]
mod tests {
    use super::super::suites::{Seeds, Suite, Test};
    use super::*;

    fn suite() -> Suite {
        let test = |name: &str, is_slow| Test {
            name: name.to_owned(),
            is_slow,
        };
        Suite {
            package: "onrush-serve".to_owned(),
            target: "--lib".to_owned(),
            program: "/target/serve".into(),
            directory: "/crates/serve".into(),
            tests: vec![test("a::one", false), test("b::two", true)],
        }
    }

    fn outcome(end: End, seconds: u64) -> Outcome {
        Outcome {
            end,
            duration: Duration::from_secs(seconds),
            output: "assertion failed\n".to_owned(),
        }
    }

    #[test]
    fn failure_has_output_and_command() {
        let suite = suite();
        let job = Job {
            suite: &suite,
            test: &suite.tests[1],
            seeds: Seeds::All,
        };
        let text = failure(job, &outcome(End::Signal(11), 2));
        assert_eq!(
            text,
            "\nassertion failed\n\n\
             FAILED  onrush-serve --lib b::two: was killed by signal 11 after 2.0 s\n\
             \x20       ONRUSH_TEST_SEEDS=all cargo test --package onrush-serve --lib -- --exact --ignored b::two\n\n"
        );
    }

    #[test]
    fn summary_lists_slowest_and_failed_tests() {
        let suite = suite();
        let [one, two] = [0, 1].map(|at| Job {
            suite: &suite,
            test: &suite.tests[at],
            seeds: Seeds::First,
        });
        let outcomes = [
            (one, outcome(End::Failed, 1)),
            (two, outcome(End::Passed, 3)),
        ];
        assert_eq!(
            summary(&outcomes, Duration::from_secs(4)),
            "slowest tests:\n\
             \x20   3.0 s  onrush-serve --lib b::two\n\
             \x20   1.0 s  onrush-serve --lib a::one\n\
             failed tests; commands to run each alone:\n\
             \x20   cargo test --package onrush-serve --lib -- --exact a::one\n\
             1 passed, 1 failed in 4 s\n"
        );
    }
}
