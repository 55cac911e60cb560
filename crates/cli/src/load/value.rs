//! Flag values used in several groups of flags.

use std::num::NonZeroU64;
use std::time::Duration;

use onrush_config::value;
use onrush_load::Io;
use onrush_measure::amount::{self, NotAmount};

/// A setting with two values.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(super) enum Switch {
    On,
    Off,
}

/// A list that clap does not take for a repeated argument.
#[derive(Clone, Debug)]
pub(super) struct Cpus(pub(super) Vec<usize>);

pub(super) fn rate(text: &str) -> Result<NonZeroU64, String> {
    let expected = "a rate is at least one request per second, such as 1000 or 50k";
    let rate = amount::count(text).map_err(|why| why.to_string())?;
    NonZeroU64::new(rate).ok_or_else(|| expected.to_owned())
}

/// A number of requests or connections per period.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Rate {
    pub(super) count: NonZeroU64,
    pub(super) period: Duration,
}

/// Parses a rate per second, or per the unit after a slash: `100`, `100/s`, `6k/m`, `90/h`.
pub(super) fn rate_per(text: &str) -> Result<Rate, String> {
    let (count, seconds) = amount::split_rate(text).map_err(|why| why.to_string())?;
    let seconds = seconds.unwrap_or(1);
    let count = rate(count)?;
    let rate = match NonZeroU64::new(count.get() / seconds) {
        Some(each_second) if count.get() % seconds == 0 => (each_second, 1),
        _ => (count, seconds),
    };
    let (count, seconds) = rate;
    Ok(Rate {
        count,
        period: Duration::from_secs(seconds),
    })
}

/// Parses a duration; a number without unit is seconds, as in wrk, h1load and h2load.
pub(super) fn duration_or_seconds(text: &str) -> Result<Duration, NotAmount> {
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
