//! Values of flags that several groups of them have.

use std::num::NonZeroU64;
use std::time::Duration;

use onrush_config::value;
use onrush_load::Io;

/// A setting with two values.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(super) enum Switch {
    On,
    Off,
}

/// A list that clap does not take for a repeated argument.
#[derive(Clone, Debug)]
pub(super) struct Cpus(pub(super) Vec<usize>);

pub(super) fn count(text: &str) -> Result<u64, String> {
    value::parse_count(text).map_err(|error| error.to_string())
}

pub(super) fn rate(text: &str) -> Result<NonZeroU64, String> {
    let expected = "a rate is at least one request per second, such as 1000 or 50k";
    NonZeroU64::new(count(text)?).ok_or_else(|| expected.to_owned())
}

/// A rate over another period than a second, too.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Rate {
    pub(super) count: NonZeroU64,
    pub(super) period: Duration,
}

/// So many per second, or in what stands behind a stroke: `100`, `100/s`, `6k/m`, `90/h`.
pub(super) fn rate_per(text: &str) -> Result<Rate, String> {
    let (count, unit) = text.split_once('/').unwrap_or((text, "s"));
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 60 * 60,
        _ => {
            return Err(format!(
                "{text:?} is no rate: expected requests per second such as 1000, or per second, minute or hour such as 100/s, 6k/m or 90/h"
            ));
        }
    };
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

pub(super) fn duration(text: &str) -> Result<Duration, String> {
    value::parse_duration(text).map_err(|error| error.to_string())
}

/// A duration; a bare number is seconds, as in wrk, h1load and h2load.
pub(super) fn duration_or_seconds(text: &str) -> Result<Duration, String> {
    let bare = text.ends_with(|last: char| last.is_ascii_digit());
    let text = if bare { &format!("{text}s") } else { text };
    duration(text)
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
