//! Results of journeys and their steps, for JSON and as text.

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

/// Results of one journey, or of the setup steps.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct JourneyRow {
    /// Name in the file; `setup` for the setup steps.
    pub name: String,
    /// Users who started it; = `completed` + `failed` + `unfinished`.
    pub begun: u64,
    /// Users who completed it.
    pub completed: u64,
    /// Users who failed at one of its steps.
    pub failed: u64,
    /// Users still on it when the run ended.
    pub unfinished: u64,
    /// Times of completed journeys, from when the user was due to the last byte of the last response.
    pub latency_us: Latency,
    /// The same times as a histogram; see [`Histograms`](super::histograms::Histograms).
    pub histogram: String,
    /// Steps, in order.
    pub steps: Vec<StepRow>,
}

/// Results of one step.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct StepRow {
    /// Name in the file.
    pub name: String,
    /// Users who reached the step; = `completed` + `failed` + `unfinished`.
    pub begun: u64,
    /// Users who completed it.
    pub completed: u64,
    /// Users whose journey ended here.
    pub failed: u64,
    /// Users at the step when the run ended.
    pub unfinished: u64,
    /// Requests written: more than users if redirects were followed or requests resent.
    pub requests: u64,
    /// Failures by kind, including failed checks after which the journey continued.
    pub errors_by_kind: BTreeMap<String, u64>,
    /// Checks, in order.
    pub checks: Vec<CheckRow>,
    /// Times of completed steps, from when the step was due to the last byte of the response, including redirects.
    pub latency_us: Latency,
    /// The same times as a histogram.
    pub histogram: String,
}

/// Results of one check.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct CheckRow {
    /// Name in the file.
    pub name: String,
    /// Checks passed.
    pub passed: u64,
    /// Checks failed.
    pub failed: u64,
}

pub(super) fn rows(journeys: &Journeys, record: &JourneysRecord) -> Vec<JourneyRow> {
    let all = journeys.journeys.iter().zip(&record.journeys);
    all.map(|(journey, record)| JourneyRow::of(&journey.name, &journey.steps, record))
        .collect()
}

/// Row of the setup steps; `None` without any.
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

    pub(super) fn names(&self) -> (&str, Vec<&str>) {
        let steps = self.steps.iter().map(|step| step.name.as_str());
        (&self.name, steps.collect())
    }

    /// Adds the same journey of another generator.
    ///
    /// # Errors
    /// When the steps differ, or a histogram cannot be decoded.
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

/// Returns the figures and the sum of two histograms; `without` users did not reach the end.
fn sum(one: &str, other: &str, without: u64) -> Result<(Latency, String), String> {
    let mut sum = Histogram::from_base64(one)?;
    sum.merge(&Histogram::from_base64(other)?);
    Ok((of_users(&sum, without), sum.to_base64()))
}

/// Returns the figures of users; `without` users did not reach the end. Their waits are not recorded and count as zero.
fn of_users(took: &Histogram, without: u64) -> Latency {
    let mut waits = Histogram::new();
    waits.record_many(0, without);
    Latency::bounded(took, &waits)
}

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
            let name = format!("  {}{}", step.name, failures_text(step));
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

/// Failures of a step, in parentheses.
pub(crate) fn failures_text(step: &StepRow) -> String {
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
