//! Flag values used in several groups of flags.

use std::num::NonZeroU64;
use std::time::Duration;

use onrush_config::value;
use onrush_load::Io;
use onrush_measure::amount::{self, AmountError};

/// A setting with two values.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(super) enum Switch {
    On,
    Off,
}

/// A list that clap does not take for a repeated argument.
#[derive(Clone, Debug)]
pub(super) struct Cpus(pub(super) Vec<usize>);

/// Parses a whole number per second: `100`, `100/s`, `6k/m`.
pub(super) fn rate(text: &str) -> Result<NonZeroU64, String> {
    let Rate { count, period } = rate_per(text)?;
    match period == Duration::from_secs(1) {
        true => Ok(count),
        false => Err(format!(
            "{text:?} is not a whole number per second: expected one such as 100, 10k or 6k/m"
        )),
    }
}

/// A number of requests or connections per period.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Rate {
    pub(super) count: NonZeroU64,
    pub(super) period: Duration,
}

/// Parses a rate per second, or per the unit after a slash: `100`, `1.5/s`, `6k/m`, `90/h`.
pub(super) fn rate_per(text: &str) -> Result<Rate, String> {
    let rate = amount::rate(text).map_err(|why| why.to_string())?;
    let amount::Rate { count, seconds } = rate;
    let count = NonZeroU64::new(count)
        .ok_or_else(|| "a rate is above 0, such as 1000, 50k or 90/h".to_owned())?;
    Ok(Rate {
        count,
        period: Duration::from_secs(seconds),
    })
}

/// Parses a duration; a number without unit is seconds, as in wrk, h1load and h2load.
pub(super) fn duration_or_seconds(text: &str) -> Result<Duration, AmountError> {
    amount::duration_or(text, "s")
}

pub(super) fn cpus(text: &str) -> Result<Cpus, String> {
    value::parse_cpus(text)
        .map(Cpus)
        .map_err(|error| error.to_string())
}

pub(super) fn io_driver(text: &str) -> Result<Io, String> {
    match value::parse_io(text).map_err(|error| error.to_string())? {
        onrush_config::plan::Io::Auto => Ok(Io::Auto),
        onrush_config::plan::Io::Epoll => Ok(Io::Epoll),
        onrush_config::plan::Io::IoUring => Ok(Io::IoUring),
    }
}

#[cfg(test)]
mod tests;
