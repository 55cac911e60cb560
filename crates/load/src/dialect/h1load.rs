//! h1load's output: one line per second in three formats, and the table of percentiles. Pure, except for the date.

use std::fmt::Write;
use std::time::Duration;

use onrush_engine::clock;
use onrush_measure::histogram::Histogram;
use onrush_measure::second::Second;
use onrush_measure::units::{Brief, BriefTime};

use crate::record::figures::Kind;
use crate::report::Report;
use crate::report::snapshot::Snapshot;

/// Format of a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum LineFormat {
    /// Seconds since the start, and rates in four characters.
    #[default]
    Brief,
    /// Unix time, rates in bytes as well as bits, and times to the last byte.
    Long,
    /// The columns of `Long` in plain numbers, and the percentage of the load admitted.
    Raw,
}

/// Packet headers, which no program sees, to add to byte rates.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Overhead {
    /// Header bytes per packet.
    pub extra: u64,
    /// Payload bytes per packet.
    pub payload: u64,
}

/// Options of the output.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct OutputOptions {
    /// Format of the lines.
    pub form: LineFormat,
    /// Whether to print responses by status class.
    pub statuses: bool,
    /// If set, packet headers are added to byte rates.
    pub overhead: Option<Overhead>,
    /// Duration of the ramp to full load.
    pub soft_start: Duration,
}

/// Formats the lines.
#[derive(Clone, Debug)]
pub struct LineFormatter {
    options: OutputOptions,
    before: PreviousLine,
}

/// Counters at the end of the previous line.
#[derive(Clone, Copy, Debug, Default)]
struct PreviousLine {
    time_s: f64,
    requests: u64,
    bytes: u64,
}

impl LineFormatter {
    /// Creates the state before the first line.
    pub fn new(shown: OutputOptions) -> LineFormatter {
        LineFormatter {
            options: shown,
            before: PreviousLine::default(),
        }
    }

    /// Returns the header line.
    pub fn header(&self) -> String {
        let counters = match self.options.form {
            LineFormat::Brief | LineFormat::Long => "#     time",
            LineFormat::Raw => "#_____time",
        };
        let rates = match self.options.form {
            LineFormat::Brief => " cps  rps  bps   ttfb",
            LineFormat::Long => " cps  rps  Bps  bps   ttfb   ttlb",
            LineFormat::Raw => "thr cps rps Bps bps ttfb(us) ttlb(us)",
        };
        let statuses = match self.options.statuses {
            true => " 1xx 2xx 3xx 4xx 5xx",
            false => "",
        };
        format!("{counters} conns tot_conn  tot_req      tot_bytes    err {rates}{statuses}")
    }

    /// Returns the line of the second that has just ended.
    pub fn second(&mut self, moment: &Snapshot<'_>) -> String {
        self.line(&moment.second, clock::unix_time().as_secs())
    }

    /// Returns the line of `second`, which ended at Unix time `unix_s`. Every column ends with a blank, the last one
    /// too.
    ///
    /// Times start when the request is sent: h1load has no intended start.
    fn line(&mut self, second: &Second, unix_s: u64) -> String {
        let OutputOptions { form, statuses, .. } = self.options;
        let time = match form {
            LineFormat::Brief => second.time_s.round() as u64,
            LineFormat::Long | LineFormat::Raw => unix_s,
        };
        let mut line = format!(
            "{time:>10} {:>5} {:>8} {:>8} {:>14} {:>6} ",
            second.connections_open,
            second.connections,
            second.requests,
            second.bytes,
            second.errors,
        );
        if form == LineFormat::Raw {
            let _ = write!(line, "{:>3} ", self.throttle(second.time_s));
        }
        let bytes_per_s = second.bytes_per_s + self.overhead_per_s(second);
        let rates = [second.connections_per_s, second.rps].into_iter();
        let bytes = (form != LineFormat::Brief).then_some(bytes_per_s);
        for rate in rates.chain(bytes).chain([bytes_per_s * 8.0]) {
            let _ = match form {
                LineFormat::Brief | LineFormat::Long => write!(line, "{} ", format_rate(rate)),
                LineFormat::Raw => write!(line, "{rate:.1} "),
            };
        }
        let written = |us: Option<f64>| Some((us? - second.send_lag_us?).max(0.0));
        let last_byte = (form != LineFormat::Brief).then_some(second.last_byte_us);
        for us in [second.first_byte_us].into_iter().chain(last_byte) {
            let _ = match (form, written(us)) {
                (LineFormat::Brief | LineFormat::Long, us) => write!(line, "{} ", BriefTime(us)),
                (LineFormat::Raw, Some(us)) => write!(line, "{us:.1} "),
                (LineFormat::Raw, None) => write!(line, "- "),
            };
        }
        if statuses {
            for count in second.statuses {
                let _ = write!(line, "{count:>3} ");
            }
        }
        self.before = PreviousLine {
            time_s: second.time_s,
            requests: second.requests,
            bytes: second.bytes,
        };
        line
    }

    /// Percentage of the full load admitted at `time_s`, rounded down, for a ramp of
    /// [`Start::Stairs`](crate::pace::Start::Stairs).
    fn throttle(&self, time_s: f64) -> u64 {
        let stairs = time_s / self.options.soft_start.as_secs_f64() * 10.0;
        // Infinite without a ramp; NaN at time 0.
        if stairs >= 10.0 || stairs.is_nan() {
            return 100;
        }
        let slope = (stairs.fract() * 4.0).min(1.0);
        ((stairs.floor() + slope) * 10.0) as u64
    }

    /// Counts at least one packet per request.
    fn overhead_per_s(&self, second: &Second) -> f64 {
        let Some(Overhead { extra, payload }) = self.options.overhead else {
            return 0.0;
        };
        let bytes = second.bytes.saturating_sub(self.before.bytes);
        let requests = second.requests.saturating_sub(self.before.requests);
        let packets = bytes.div_ceil(payload.max(1)).max(requests);
        let interval_s = second.time_s - self.before.time_s;
        if interval_s > 0.0 {
            packets as f64 * extra as f64 / interval_s
        } else {
            0.0
        }
    }
}

/// Formats a rate in four characters. Below 1, h1load uses suffixes from thousandths on: `500m`, not `0.50`.
fn format_rate(mut value: f64) -> String {
    if value <= 0.0 || value >= 1.0 || !value.is_finite() {
        return Brief(value).to_string();
    }
    for suffix in ["m", "u", "n", "p", "f"] {
        value *= 1000.0;
        if value >= 1.0 {
            return Brief(value).to_string().replace('.', suffix);
        }
    }
    Brief(0.0).to_string()
}

/// Steps between the rows of the table: up to the first number in increments of the second.
const STEPS: [(f64, f64); 14] = [
    (0.5, 0.1),
    (0.8, 0.05),
    (0.9, 0.02),
    (0.95, 0.01),
    (0.99, 0.005),
    (0.995, 0.001),
    (0.999, 0.0005),
    (0.9995, 0.0001),
    (0.9999, 0.00005),
    (0.99995, 0.00001),
    (0.99999, 0.000005),
    (0.999995, 0.000005),
    (0.999999, 0.000004),
    (1.0, 0.000001),
];

/// Shares from 10 % on, added up like h1load adds them: rounding of the sums decides where a step ends, and tables keep
/// the same rows only with the same rounding.
fn shares() -> Vec<f64> {
    let (mut share, mut shares) = (0.1, Vec::new());
    for (end, step) in STEPS {
        while share < end {
            shares.push(share);
            share += step;
        }
    }
    shares
}

/// Returns the table of percentiles, in milliseconds: from the sending of a request to the end of the response's head,
/// and to the last byte. A request without a response counts with the time that it waited. Before each time is the
/// number of shorter ones.
///
/// All rows are printed even if there are too few responses for the high percentiles, because plots expect them.
pub fn percentiles(report: &Report) -> String {
    let [first_byte, last_byte] =
        [Kind::FirstByte, Kind::Service].map(|kind| report.censored(kind));
    let mut table = String::from(
        "#======= Percentiles for time-to-first-byte and time-to-last-byte =======\n\
         # use $3:$5 $3:$7 with logscale X\n\
         # $1     $2      $3         $4       $5         $6       $7\n\
         #pctl   tail   invtail   ttfbcnt ttfb(ms)   ttlbcnt ttlb(ms)\n",
    );
    for share in shares() {
        let (first_count, first_ms) = time_at(first_byte.lower_bound(), share);
        let (last_count, last_ms) = time_at(last_byte.lower_bound(), share);
        let _ = writeln!(
            table,
            "{:<7} {:<6} {:<7.0} {first_count:>9} {:>8} {last_count:>9} {:>8}",
            format_g(share * 100.0),
            format_g(100.0 * (1.0 - share)),
            1.0 / (1.0 - share),
            format_g(first_ms),
            format_g(last_ms),
        );
    }
    table
}

/// Returns the time in milliseconds that a share of `share` does not exceed, and the number of shorter times.
fn time_at(times: &Histogram, share: f64) -> (u64, f64) {
    let wanted = share * times.count() as f64;
    let mut shorter = 0;
    for (ns, count) in times.recorded() {
        if (shorter + count) as f64 >= wanted {
            return (shorter, ns as f64 / 1e6);
        }
        shorter += count;
    }
    (shorter, 0.0)
}

/// Formats a number as C's `%g`: six significant digits without trailing zeros, with an exponent below 1e-4 and from
/// 1e6 on.
fn format_g(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return value.to_string();
    }
    let scientific = format!("{value:.5e}");
    let (digits, exponent) = scientific.split_once('e').expect("it is written with one");
    let exponent: i32 = exponent.parse().expect("it is a whole number");
    if (-4..6).contains(&exponent) {
        let decimals = usize::try_from(5 - exponent).expect("it is 5 at most");
        return without_zeros(&format!("{value:.decimals$}")).to_owned();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!(
        "{}e{sign}{:02}",
        without_zeros(digits),
        exponent.unsigned_abs()
    )
}

fn without_zeros(decimal: &str) -> &str {
    match decimal.contains('.') {
        true => decimal.trim_end_matches('0').trim_end_matches('.'),
        false => decimal,
    }
}

#[cfg(test)]
mod tests;
