//! Output of wrk and wrk2 before and after a run. Pure.

mod units;

use std::fmt::Write;
use std::time::Duration;

use onrush_measure::histogram::Histogram;
use onrush_measure::second::Second;

use crate::limits::RATE_SAMPLES_MAX;
use crate::record::figures::Kind;
use crate::report::Report;
use crate::report::snapshot::Snapshot;
use units::{BINARY, METRIC, SECONDS, cell, scaled, time};

/// wrk2's calibration time. Runs that are not longer have no calibration.
pub const CALIBRATION: Duration = Duration::from_secs(10);

/// Shorter intervals give no useful rate; wrk's own sampling interval.
const SAMPLE_MIN_S: f64 = 0.1;

/// Steps of the spectrum per halving of the distance to 100 %.
const SPECTRUM_TICKS: u32 = 5;

/// Imitated tool.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tool {
    /// Four percentiles of times from the sending of a request.
    Wrk,
    /// Percentiles and the spectrum of times from the intended start of a request.
    Wrk2,
}

/// Parameters of the output.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OutputOptions {
    /// Imitated tool.
    pub tool: Tool,
    /// URL as given on the command line.
    pub url: String,
    /// Intended duration of the run.
    pub duration: Duration,
    /// Threads requested.
    pub threads: u64,
    /// Connections requested.
    pub connections: u64,
    /// Whether to print percentiles.
    pub latency: bool,
    /// Whether wrk2 also prints the times from the sending of a request.
    pub uncorrected: bool,
    /// Slower responses are counted as timeouts in addition to responses.
    pub timeout: Duration,
}

/// Formats the output.
#[derive(Clone, Debug)]
pub struct SummaryFormatter {
    shown: OutputOptions,
    /// Mean time in microseconds and number of responses of each thread during wrk2's calibration.
    calibration: Vec<(f64, u64)>,
    is_calibrating: bool,
    /// Requests per second of each thread, one sample per second.
    rates: Samples,
    time_before_s: f64,
}

impl SummaryFormatter {
    /// Creates the state before the first second.
    pub fn new(shown: OutputOptions) -> SummaryFormatter {
        let is_calibrating = shown.tool == Tool::Wrk2 && shown.duration > CALIBRATION;
        SummaryFormatter {
            calibration: Vec::new(),
            is_calibrating,
            rates: Samples::default(),
            time_before_s: 0.0,
            shown,
        }
    }

    /// Returns the lines printed before the run.
    pub fn head(&self) -> String {
        let OutputOptions {
            url,
            duration,
            threads,
            connections,
            ..
        } = &self.shown;
        let duration = scaled(duration.as_secs_f64(), &SECONDS, 0);
        format!(
            "Running {duration} test @ {url}\n  {threads} threads and {connections} connections\n"
        )
    }

    /// Records a second. Returns lines to print at the end of wrk2's calibration only.
    pub fn second(&mut self, moment: &Snapshot<'_>) -> Option<String> {
        self.record_second(moment.second.time_s, moment.cores)
    }

    /// Records the second of `cores` that ended `time_s` after the start.
    fn record_second(&mut self, time_s: f64, cores: &[Second]) -> Option<String> {
        let interval_s = time_s - std::mem::replace(&mut self.time_before_s, time_s);
        if self.is_calibrating {
            return self.calibrate(time_s, cores);
        }
        if interval_s >= SAMPLE_MIN_S {
            let rates = cores.iter().map(|core| core.rps.trunc());
            // Like wrk, take no sample of a thread without responses.
            rates
                .filter(|rate| *rate > 0.0)
                .for_each(|rate| self.rates.add(rate));
        }
        None
    }

    fn calibrate(&mut self, time_s: f64, cores: &[Second]) -> Option<String> {
        self.calibration.resize(cores.len(), (0.0, 0));
        for ((mean, count), core) in self.calibration.iter_mut().zip(cores) {
            let more: u64 = core.statuses.iter().sum();
            let Some(us) = core.last_byte_us.filter(|_| more > 0) else {
                continue;
            };
            *count += more;
            *mean += (us - *mean) * more as f64 / *count as f64;
        }
        if time_s.round() < CALIBRATION.as_secs_f64() {
            return None;
        }
        self.is_calibrating = false;
        let mut lines = String::new();
        for (mean_us, _) in &self.calibration {
            let _ = writeln!(
                lines,
                "  Thread calibration: mean lat.: {:.3}ms, rate sampling interval: 1000ms",
                mean_us / 1000.0
            );
        }
        Some(lines)
    }

    /// Returns the report printed after the run.
    pub fn report(&self, report: &Report) -> String {
        let times = &report.times;
        let latency = match self.shown.tool {
            Tool::Wrk => &times.service,
            Tool::Wrk2 => &times.response,
        };
        let mut text = format!(
            "  Thread Stats{:>6}{:>11}{:>8}{:>12}\n",
            "Avg", "Stdev", "Max", "+/- Stdev"
        );
        text += &Spread::of(latency).line("Latency", time);
        text += &self
            .rates
            .spread()
            .line("Req/Sec", |rate| scaled(rate, &METRIC, 2));
        match self.shown.tool {
            Tool::Wrk if self.shown.latency => {
                text += "  Latency Distribution\n";
                text += &percentiles(
                    report.censored(Kind::Service).lower_bound(),
                    &[50.0, 75.0, 90.0, 99.0],
                    0,
                );
            }
            Tool::Wrk2 if self.shown.latency => {
                text += &spectrum(
                    report.censored(Kind::Response).lower_bound(),
                    "Recorded Latency",
                );
                if self.shown.uncorrected {
                    let what =
                        "Uncorrected Latency (measured without taking delayed starts into account)";
                    text += "\n";
                    text += &spectrum(report.censored(Kind::Service).lower_bound(), what);
                }
            }
            Tool::Wrk | Tool::Wrk2 => {}
        }
        text + &self.totals(report)
    }

    fn totals(&self, report: &Report) -> String {
        let mut text = format!(
            "  {} requests in {}, {}B read\n",
            report.requests,
            time(report.duration_s * 1e6),
            scaled(report.bytes as f64, &BINARY, 2),
        );
        let Errors {
            connect,
            read,
            timeout,
        } = Errors::of(report, self.shown.timeout);
        if connect + read + timeout > 0 {
            let _ = writeln!(
                text,
                "  Socket errors: connect {connect}, read {read}, write 0, timeout {timeout}"
            );
        }
        let refusals = report.statuses.range("400".to_owned()..);
        let refusals: u64 = refusals.map(|(_, count)| count).sum();
        if refusals > 0 {
            let _ = writeln!(text, "  Non-2xx or 3xx responses: {refusals}");
        }
        let bytes_per_s = scaled(report.bytes_per_s, &BINARY, 2);
        let _ = writeln!(text, "Requests/sec: {:>9.2}", report.rps);
        let _ = writeln!(text, "Transfer/sec: {bytes_per_s:>10}B");
        text
    }
}

/// Errors as wrk counts them.
struct Errors {
    /// Connections that could not be established.
    connect: u64,
    /// Connections closed or reset before a due response, including those whose request was sent again.
    read: u64,
    /// Responses that took too long.
    timeout: u64,
}

impl Errors {
    fn of(report: &Report, timeout: Duration) -> Errors {
        let of = |is: &dyn Fn(&str) -> bool| -> u64 {
            let kinds = report.errors_by_kind.iter();
            kinds
                .filter(|(kind, _)| is(kind))
                .map(|(_, count)| count)
                .sum()
        };
        let is_connect = |kind: &str| kind.starts_with("connect_") || kind == "tls_handshake";
        let bound = u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX);
        let service = &report.times.service;
        let slow = match service.max() > bound {
            true => service.count() - service.count_up_to(bound),
            false => 0,
        };
        Errors {
            connect: of(&is_connect),
            read: of(&|kind| !is_connect(kind) && kind != "timeout") + report.resent_after_close(),
            timeout: of(&|kind| kind == "timeout") + slow,
        }
    }
}

/// Row of the thread statistics.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
struct Spread {
    mean: f64,
    deviation: f64,
    max: f64,
    /// Percentage of values within one deviation of the mean.
    within: f64,
}

impl Spread {
    /// Statistics of times, in microseconds.
    fn of(times: &Histogram) -> Spread {
        if times.count() == 0 {
            return Spread::default();
        }
        let (mean, deviation) = (times.mean(), times.deviation());
        let low = times.count_up_to((mean - deviation).max(0.0) as u64);
        // The upper edge of a bin is up to a thousandth above its values.
        let high = times.count_up_to(((mean + deviation) * 1.001).ceil() as u64);
        Spread {
            mean: mean / 1000.0,
            deviation: deviation / 1000.0,
            max: times.max() as f64 / 1000.0,
            within: (high - low) as f64 * 100.0 / times.count() as f64,
        }
    }

    fn line(&self, name: &str, unit: impl Fn(f64) -> String) -> String {
        format!(
            "    {name:<10}{}{}{}{:>8.2}%\n",
            cell(&unit(self.mean), 8),
            cell(&unit(self.deviation), 10),
            cell(&unit(self.max), 9),
            self.within,
        )
    }
}

/// Bounded sample of a series.
#[derive(Clone, Debug)]
struct Samples {
    kept: Vec<f64>,
    /// Every `step`-th value is kept.
    step: usize,
    seen: usize,
}

impl Default for Samples {
    fn default() -> Samples {
        Samples {
            kept: Vec::new(),
            step: 1,
            seen: 0,
        }
    }
}

impl Samples {
    fn add(&mut self, sample: f64) {
        if self.kept.len() == RATE_SAMPLES_MAX {
            let mut index = 0;
            self.kept.retain(|_| {
                index += 1;
                index % 2 == 1
            });
            self.step *= 2;
        }
        if self.seen.is_multiple_of(self.step) {
            self.kept.push(sample);
        }
        self.seen += 1;
    }

    fn spread(&self) -> Spread {
        let count = self.kept.len() as f64;
        if self.kept.is_empty() {
            return Spread::default();
        }
        let mean = self.kept.iter().sum::<f64>() / count;
        let squares: f64 = self.kept.iter().map(|sample| (sample - mean).powi(2)).sum();
        let deviation = (squares / (count - 1.0).max(1.0)).sqrt();
        let is_within = |sample: &&f64| (**sample - mean).abs() <= deviation;
        Spread {
            mean,
            deviation,
            max: self.kept.iter().copied().fold(0.0, f64::max),
            within: self.kept.iter().filter(is_within).count() as f64 * 100.0 / count,
        }
    }
}

fn percentiles(times: &Histogram, percentiles: &[f64], decimals: usize) -> String {
    let mut lines = String::new();
    for percentile in percentiles {
        let us = times.value_at(*percentile) as f64 / 1000.0;
        let _ = writeln!(lines, "{percentile:>7.decimals$}%{}", cell(&time(us), 10));
    }
    lines
}

/// Percentiles and the spectrum in milliseconds, in the format of HdrHistogram's tools.
fn spectrum(times: &Histogram, what: &str) -> String {
    let listed = [50.0, 75.0, 90.0, 99.0, 99.9, 99.99, 99.999, 100.0];
    let mut text = format!("  Latency Distribution (HdrHistogram - {what})\n");
    text += &percentiles(times, &listed, 3);
    text += "\n  Detailed Percentile spectrum:\n";
    let _ = writeln!(
        text,
        "{:>12} {:>12} {:>12} {:>12}\n",
        "Value", "Percentile", "TotalCount", "1/(1-Percentile)"
    );
    let ms = |ns: f64| ns / 1e6;
    for step in times.spectrum(SPECTRUM_TICKS) {
        let _ = writeln!(
            text,
            "{:>12.3} {:>12.6} {:>12} {:>12.2}",
            ms(step.ns as f64),
            step.share,
            step.count,
            1.0 / (1.0 - step.share),
        );
    }
    let (buckets, sub_buckets) = times.shape();
    let _ = writeln!(
        text,
        "#[Mean    = {:>12.3}, StdDeviation   = {:>12.3}]\n\
         #[Max     = {:>12.3}, Total count    = {:>12}]\n\
         #[Buckets = {buckets:>12}, SubBuckets     = {sub_buckets:>12}]\n\
         ----------------------------------------------------------",
        ms(times.mean()),
        ms(times.deviation()),
        ms(times.max() as f64),
        times.count(),
    );
    text
}

#[cfg(test)]
mod tests;
