//! Progress line on standard error with the current trial and the remaining time.
//!
//! In a terminal the line is rewritten; elsewhere only finished trials are printed, to keep logs short.

use std::io::{IsTerminal, Write, stderr};
use std::time::{Duration, Instant};

use crate::outcome::Trial;
use crate::scenario::Experiment;
use crate::schedule::Schedule;

/// Interval at which a client's output is read; it has one row per second.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

#[derive(Debug)]
pub(super) struct Progress {
    is_terminal: bool,
    /// Number of trials; `None` if time or precision ends the run.
    total: Option<usize>,
    /// Finished trials, including the trials of a resumed run.
    done: usize,
    /// Trials of the resumed run.
    resumed_trials: usize,
    budget: Option<Duration>,
    started: Instant,
    trial_guess: Duration,
    trial_started: Instant,
    label: String,
    line: String,
    /// Number of the last read of the client's output, and its result.
    load: Option<(u128, Option<String>)>,
}

impl Progress {
    pub(super) fn new(
        experiment: &Experiment,
        schedule: &Schedule,
        resumed_trials: usize,
    ) -> Progress {
        let ends_early = experiment.budget.is_some() || experiment.precision.is_some();
        let total = schedule.len() * experiment.rounds as usize;
        Progress {
            is_terminal: stderr().is_terminal(),
            total: (!ends_early).then_some(total),
            done: resumed_trials,
            resumed_trials,
            budget: experiment.budget,
            started: Instant::now(),
            trial_guess: experiment.trial_length(),
            trial_started: Instant::now(),
            label: String::new(),
            line: String::new(),
            load: None,
        }
    }

    pub(super) fn begin(&mut self, label: String) {
        self.label = label;
        self.trial_started = Instant::now();
        self.show("starting");
    }

    /// Shows the phase of a trial, its start, and the client's last second, which `said` reads; cheap to call often.
    pub(super) fn show_load(
        &mut self,
        phase: &str,
        began: Instant,
        said: impl FnOnce() -> Option<String>,
    ) {
        if !self.is_terminal {
            return;
        }
        let elapsed = began.elapsed();
        let look = elapsed.as_millis() / POLL_INTERVAL.as_millis();
        if self.load.as_ref().is_none_or(|load| load.0 != look) {
            self.load = Some((look, said()));
        }
        let now = self.load.as_ref().and_then(|(_, said)| said.as_deref());
        let now = now.map_or(String::new(), |said| format!(": {said}"));
        self.show(&format!("{phase}, {} s{now}", elapsed.as_secs()));
    }

    /// Shows the phase of a trial; cheap to call often.
    pub(super) fn show(&mut self, phase: &str) {
        if !self.is_terminal {
            return;
        }
        let left = self
            .left()
            .map_or(String::new(), |left| format!(" · {} left", in_words(left)));
        let line = format!("{} {} · {phase}{left}", self.counter(), self.label);
        if line != self.line {
            let _ = write!(stderr(), "\r\x1b[K{line}");
            self.line = line;
        }
    }

    pub(super) fn end(&mut self, result: &str) {
        self.done += 1;
        let clear = if self.is_terminal { "\r\x1b[K" } else { "" };
        let _ = writeln!(
            stderr(),
            "{clear}{} {:<44} {result}",
            self.counter(),
            self.label
        );
        self.line.clear();
    }

    fn counter(&self) -> String {
        let Some(total) = self.total else {
            return format!("[{}]", self.done);
        };
        let width = total.to_string().len();
        format!("[{:>width$}/{total}]", self.done)
    }

    fn left(&self) -> Option<Duration> {
        let Some(total) = self.total else {
            let budget = self.budget?;
            return Some(budget.saturating_sub(self.started.elapsed()));
        };
        let per_trial = match u32::try_from(self.done - self.resumed_trials) {
            Ok(done) if done > 0 => (self.trial_started - self.started) / done,
            _ => self.trial_guess,
        };
        let remaining = u32::try_from(total.saturating_sub(self.done)).unwrap_or(u32::MAX);
        let left = per_trial.saturating_mul(remaining);
        Some(left.saturating_sub(self.trial_started.elapsed()))
    }
}

pub(super) fn result_in_words(trial: &Trial) -> String {
    let mut words = Vec::new();
    if let Some(rate) = trial.metrics.get("rps") {
        words.push(format!("{:>10}", onrush_measure::units::rate(*rate)));
    }
    for (name, value) in &trial.metrics {
        if let Some(role) = name.strip_suffix(".cpu_us_per_request")
            && role != "control"
        {
            words.push(format!("{role} {value:.2} µs/request"));
        }
        if let Some(role) = name.strip_suffix(".memory_per_connection") {
            words.push(format!("{role} {value:.0} B/connection"));
        }
    }
    if !trial.invalid.is_empty() {
        words.push(format!("INVALID: {}", trial.invalid.join("; ")));
    }
    if let Some(share) = trial.disturbed {
        words.push(format!(
            "DISTURBED: others used {:.0} % of a CPU",
            share * 100.0
        ));
    }
    words.join("  ")
}

pub(super) fn in_words(time: Duration) -> String {
    let seconds = time.as_secs();
    if seconds >= 120 {
        return format!("{} min", seconds.div_ceil(60));
    }
    format!("{seconds} s")
}
