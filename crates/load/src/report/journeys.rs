//! What came of journeys and of their steps: rows of a result, for JSON and as text.

use std::collections::BTreeMap;
use std::fmt;

use onrush_measure::histogram::Histogram;
use onrush_measure::units;
use serde::{Deserialize, Serialize};

use super::latency::Latency;
use crate::journey::Journeys;
use crate::journey::steps::Step;
use crate::protocol::failure::Failure;
use crate::record::journeys::{JourneyRecord, JourneysRecord, StepRecord};

/// What came of the users of one journey, or of what users do before they begin.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct JourneyRow {
    /// Its name in the file; `setup` of what users do before.
    pub name: String,
    /// Users that began it; = `completed` + `failed` + `unfinished`.
    pub begun: u64,
    /// Those that came to its end.
    pub completed: u64,
    /// Those that could not go on at one of its steps.
    pub failed: u64,
    /// Those that were on their way when the run ended.
    pub unfinished: u64,
    /// Of those that came to its end, from when the user was due to the last byte of the last response.
    pub latency_us: Latency,
    /// The same as a histogram; see [`Histograms`](super::histograms::Histograms).
    pub histogram: String,
    /// Its steps, in their order.
    pub steps: Vec<StepRow>,
}

/// What came of one step.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct StepRow {
    /// Its name in the file.
    pub name: String,
    /// Users that came so far; = `completed` + `failed` + `unfinished`.
    pub begun: u64,
    /// Those that could go on.
    pub completed: u64,
    /// Those whose journey ended here.
    pub failed: u64,
    /// Those that were at it when the run ended.
    pub unfinished: u64,
    /// Requests that were written: more where redirects were followed or something was sent again.
    pub requests: u64,
    /// What went wrong, by kind, where something did: what ended a journey, and failed checks that ended none.
    pub errors_by_kind: BTreeMap<String, u64>,
    /// Its checks, in their order.
    pub checks: Vec<CheckRow>,
    /// Of those that could go on, from when it was due to the last byte of the response, redirects included.
    pub latency_us: Latency,
    /// The same as a histogram.
    pub histogram: String,
}

/// How often a check held.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct CheckRow {
    /// Its name in the file.
    pub name: String,
    /// How often it held.
    pub passed: u64,
    /// How often it did not.
    pub failed: u64,
}

/// The rows of all journeys.
pub(super) fn rows(journeys: &Journeys, record: &JourneysRecord) -> Vec<JourneyRow> {
    let all = journeys.journeys.iter().zip(&record.journeys);
    all.map(|(journey, record)| JourneyRow::of(&journey.name, &journey.steps, record))
        .collect()
}

/// The row of what users do before they begin; none where that is nothing.
pub(super) fn setup(journeys: &Journeys, record: &JourneysRecord) -> Option<JourneyRow> {
    let steps = &journeys.setup;
    (!steps.is_empty()).then(|| JourneyRow::of("setup", steps, &record.setup))
}

impl JourneyRow {
    fn of(name: &str, steps: &[Step], record: &JourneyRecord) -> JourneyRow {
        JourneyRow {
            name: name.to_owned(),
            begun: record.begun,
            completed: record.completed,
            failed: record.failed,
            unfinished: record.begun - record.completed - record.failed,
            latency_us: of_users(&record.took, record.begun - record.completed),
            histogram: record.took.to_base64(),
            steps: steps
                .iter()
                .zip(&record.steps)
                .map(|(step, record)| StepRow::of(step, record))
                .collect(),
        }
    }

    /// Its name and those of its steps.
    pub(super) fn names(&self) -> (&str, Vec<&str>) {
        let steps = self.steps.iter().map(|step| step.name.as_str());
        (&self.name, steps.collect())
    }

    /// Adds `other`, the same journey of another generator.
    ///
    /// # Errors
    /// Says why it is not the same, or what cannot be read.
    pub(crate) fn add(&mut self, other: &JourneyRow) -> Result<(), String> {
        let is_same = |(one, other): (&StepRow, &StepRow)| one.name == other.name;
        let is_one = self.name == other.name
            && self.steps.len() == other.steps.len()
            && self.steps.iter().zip(&other.steps).all(is_same);
        if !is_one {
            return Err(format!(
                "journey {:?} has other steps than {:?}",
                other.name, self.name
            ));
        }
        self.begun += other.begun;
        self.completed += other.completed;
        self.failed += other.failed;
        self.unfinished += other.unfinished;
        let without = self.failed + self.unfinished;
        (self.latency_us, self.histogram) = sum(&self.histogram, &other.histogram, without)?;
        let steps = self.steps.iter_mut().zip(&other.steps);
        steps.into_iter().try_for_each(|(sum, more)| sum.add(more))
    }
}

impl StepRow {
    fn of(step: &Step, record: &StepRecord) -> StepRow {
        let kinds = Failure::ALL.into_iter().zip(record.failures);
        let checks = step.checks.iter().zip(&record.checks);
        StepRow {
            name: step.name.clone(),
            begun: record.begun,
            completed: record.completed,
            failed: record.failed,
            unfinished: record.begun - record.completed - record.failed,
            requests: record.requests,
            errors_by_kind: kinds
                .filter(|(_, count)| *count > 0)
                .map(|(kind, count)| (kind.name().to_owned(), count))
                .collect(),
            checks: checks
                .map(|(check, record)| CheckRow {
                    name: check.name.clone(),
                    passed: record.passed,
                    failed: record.failed,
                })
                .collect(),
            latency_us: of_users(&record.took, record.begun - record.completed),
            histogram: record.took.to_base64(),
        }
    }

    fn add(&mut self, other: &StepRow) -> Result<(), String> {
        let is_same = |(one, other): (&CheckRow, &CheckRow)| one.name == other.name;
        let checks = self.checks.iter().zip(&other.checks);
        if self.checks.len() != other.checks.len() || !checks.into_iter().all(is_same) {
            return Err(format!("step {:?} has other checks", self.name));
        }
        self.begun += other.begun;
        self.completed += other.completed;
        self.failed += other.failed;
        self.unfinished += other.unfinished;
        self.requests += other.requests;
        for (kind, count) in &other.errors_by_kind {
            *self.errors_by_kind.entry(kind.clone()).or_default() += count;
        }
        for (sum, more) in self.checks.iter_mut().zip(&other.checks) {
            sum.passed += more.passed;
            sum.failed += more.failed;
        }
        let without = self.failed + self.unfinished;
        (self.latency_us, self.histogram) = sum(&self.histogram, &other.histogram, without)?;
        Ok(())
    }
}

/// The figures of the sum of two histograms, with `without` users that did not reach the end.
fn sum(one: &str, other: &str, without: u64) -> Result<(Latency, String), String> {
    let mut sum = Histogram::from_base64(one)?;
    sum.merge(&Histogram::from_base64(other)?);
    Ok((of_users(&sum, without), sum.to_base64()))
}

/// Figures of users; `without` users did not reach the end. Their waits are not recorded and count as zero.
fn of_users(took: &Histogram, without: u64) -> Latency {
    let mut waits = Histogram::new();
    waits.record_many(0, without);
    Latency::bounded(took, &waits)
}

/// A table of `journeys`, with what users did before.
pub(super) fn write(
    out: &mut fmt::Formatter<'_>,
    setup: Option<&JourneyRow>,
    journeys: &[JourneyRow],
) -> fmt::Result {
    if journeys.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "journeys         begun  completed    failed  unfinished      mean       p50       p99       max"
    )?;
    for journey in setup.into_iter().chain(journeys) {
        line(
            out,
            [
                journey.begun,
                journey.completed,
                journey.failed,
                journey.unfinished,
            ],
            &journey.latency_us,
            &journey.name,
        )?;
        for step in &journey.steps {
            let name = format!("  {}{}", step.name, troubles(step));
            line(
                out,
                [step.begun, step.completed, step.failed, step.unfinished],
                &step.latency_us,
                &name,
            )?;
        }
    }
    let checks = || {
        journeys
            .iter()
            .flat_map(|journey| &journey.steps)
            .flat_map(|step| &step.checks)
    };
    if checks().count() > 0 {
        writeln!(
            out,
            "checks       {} passed, {} failed",
            units::count(checks().map(|check| check.passed).sum()),
            units::count(checks().map(|check| check.failed).sum()),
        )?;
    }
    Ok(())
}

fn line(
    out: &mut fmt::Formatter<'_>,
    counts: [u64; 4],
    latency: &Latency,
    name: &str,
) -> fmt::Result {
    let time = |name: &str| latency.text(name, "-", |us| units::nanoseconds(us * 1000.0));
    let [begun, completed, failed, unfinished] = counts.map(units::count);
    writeln!(
        out,
        "{begun:>22} {completed:>10} {failed:>9} {unfinished:>11} {:>9} {:>9} {:>9} {:>9}  {name}",
        time("mean"),
        time("50"),
        time("99"),
        time("max"),
    )
}

/// What went wrong at a step, in brackets.
pub(crate) fn troubles(step: &StepRow) -> String {
    let failed = step.checks.iter().filter(|check| check.failed > 0);
    let checks =
        failed.map(|check| format!("{:?} failed {}", check.name, units::count(check.failed)));
    let kinds = step.errors_by_kind.iter();
    let kinds = kinds.map(|(kind, count)| format!("{kind} {}", units::count(*count)));
    let all: Vec<String> = kinds.chain(checks).collect();
    match all.len() {
        0 => String::new(),
        _ => format!(" ({})", all.join(", ")),
    }
}
