//! Parses single values of flags and files. An [`Invalid`] describes what was expected.

use std::fmt;
use std::num::{NonZeroU32, NonZeroUsize};
use std::time::Duration;

use onrush_measure::amount::{self, AmountError};

mod account;
mod cache_control;
mod condition;
mod field;
mod log_format;
mod network;
mod password;
mod placeholders;
mod template;

use crate::diagnostic::fit_one_line;
use crate::limits;
use crate::plan::{Accept, Certificate, Io, Rate, Threads, Tls};

pub(crate) use account::parse_user;
pub use account::{parse_account, parse_run_as};
pub use cache_control::parse_cache_control;
pub(crate) use condition::{
    is_host_name, is_number, parse_method, parse_pattern, parse_search, parse_value_match,
    refuse_dot_segments,
};
pub use condition::{parse_host, parse_path};
pub(crate) use field::{check_field, check_field_value, check_header, is_token, parse_field_name};
pub use log_format::parse_log_format;
pub use network::parse_network;
pub use password::check_password_hash;
pub use template::parse_template;

/// Error for an invalid value: the value, what was expected and an example. The caller adds the place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invalid(String);

impl Invalid {
    /// Makes the message fit one line.
    pub(crate) fn new(message: impl Into<String>) -> Invalid {
        Invalid(fit_one_line(&message.into()))
    }
}

impl fmt::Display for Invalid {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for Invalid {}

impl From<AmountError> for Invalid {
    fn from(why: AmountError) -> Invalid {
        Invalid::new(why.to_string())
    }
}

/// Parses a duration; see [`amount::duration`].
pub fn parse_duration(text: &str) -> Result<Duration, Invalid> {
    Ok(amount::duration(text)?)
}

/// Parses a timeout: a [duration](parse_duration) between [`limits::TIMEOUT_MIN`] and [`limits::TIMEOUT_MAX`].
pub fn parse_timeout(text: &str) -> Result<Duration, Invalid> {
    let timeout = parse_duration(text)?;
    if (limits::TIMEOUT_MIN..=limits::TIMEOUT_MAX).contains(&timeout) {
        return Ok(timeout);
    }
    Err(Invalid::new(format!(
        "a time of {text} is out of range: expected 1ms to 24h"
    )))
}

/// Parses a number of bytes; see [`amount::size`].
pub fn parse_size(text: &str) -> Result<u64, Invalid> {
    Ok(amount::size(text)?)
}

/// Parses a limit of request bodies: a [size](parse_size), or `off`. `0` is refused, because it could mean either.
pub(crate) fn parse_request_body_max(text: &str) -> Result<Option<u64>, Invalid> {
    match text {
        "off" => Ok(None),
        _ => match parse_size(text)? {
            0 => Err(Invalid::new(
                "request_body_max 0 could mean no limit or no body: expected \"off\" for no limit, or 1 and more bytes",
            )),
            max => Ok(Some(max)),
        },
    }
}

/// Parses a count; see [`amount::count`].
pub fn parse_count(text: &str) -> Result<u64, Invalid> {
    Ok(amount::count(text)?)
}

/// Parses a whole percentage: `50%`.
pub(crate) fn parse_percent(text: &str) -> Result<u32, Invalid> {
    let percent = amount::percent_in(text, 1).map_err(|_| {
        let why = match amount::percent(text) {
            Ok(percent) if percent.fract() != 0.0 => "has decimals: expected whole per cent",
            Ok(_) | Err(_) => "is not a share: expected per cent",
        };
        Invalid::new(format!("{text:?} {why} such as \"50%\""))
    })?;
    Ok(u32::try_from(percent).unwrap_or(u32::MAX))
}

/// Parses a share of requests in 1/10,000: `10%`, `0.25%`; above 0, at most 100 %.
pub(crate) fn parse_share(text: &str) -> Result<u16, Invalid> {
    match amount::percent_in(text, 100) {
        Ok(share @ 1..=10_000) => Ok(share as u16),
        Ok(_) | Err(_) => Err(Invalid::new(format!(
            "{text:?} is not a share of requests: expected 0.01% to 100%, such as \"10%\" or \"0.5%\""
        ))),
    }
}

/// Parses a rate: `100/s`, `1k/m` or `10/h`. Its burst is the same number.
pub(crate) fn parse_rate(text: &str) -> Result<Rate, Invalid> {
    let invalid = || {
        Invalid::new(format!(
            "{text:?} is not a rate: expected requests per second, minute or hour, such as \"100/s\", \"1k/m\" or \"10/h\""
        ))
    };
    let (count, seconds) = amount::split_rate(text).map_err(|_| invalid())?;
    let seconds = seconds.ok_or_else(invalid)?;
    let count = parse_count(count).map_err(|_| match amount::number(count) {
        Ok(number) if number.fract() != 0.0 => Invalid::new(format!(
            "{text:?} has decimals: expected a whole number of requests, which is also the burst, such as \"90/m\""
        )),
        Ok(_) | Err(_) => invalid(),
    })?;
    let count = u32::try_from(count)
        .ok()
        .filter(|count| *count <= limits::RATE_MAX)
        .and_then(NonZeroU32::new)
        .ok_or_else(|| {
            Invalid::new(format!(
                "a rate of {text} is out of range: expected 1 to {} requests",
                limits::RATE_MAX
            ))
        })?;
    Ok(Rate {
        count,
        per: Duration::from_secs(seconds),
        burst: count.get(),
    })
}

/// Parses an inclusive range of statuses: `200`, `200-299` or `2xx`.
pub(crate) fn parse_statuses(text: &str) -> Result<(u16, u16), Invalid> {
    let invalid = || {
        Invalid::new(format!(
            "{text:?} is not a status: expected 200 to 599, a range such as \"200-299\", or a class such as \"2xx\""
        ))
    };
    let status = |text: &str| {
        let (number, rest) = split_number(text)?;
        let status = u16::try_from(number).ok()?;
        (rest.is_empty() && (200..600).contains(&status)).then_some(status)
    };
    let (first, last) = match (text.strip_suffix("xx"), text.split_once('-')) {
        (Some(class), _) => (format!("{class}00"), format!("{class}99")),
        (None, Some((first, last))) => (first.to_owned(), last.to_owned()),
        (None, None) => (text.to_owned(), text.to_owned()),
    };
    match (status(&first), status(&last)) {
        (Some(first), Some(last)) if first <= last => Ok((first, last)),
        _ => Err(invalid()),
    }
}

/// Splits off leading digits as a number. An overflow becomes the largest number, which callers find too large.
fn split_number(text: &str) -> Option<(u64, &str)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, rest) = text.split_at(digits);
    (digits > 0).then(|| (number.parse().unwrap_or(u64::MAX), rest))
}

/// Parses a list of CPU numbers and ranges: `0,2-3`; keeps the order and refuses duplicates.
pub fn parse_cpus(text: &str) -> Result<Vec<usize>, Invalid> {
    let mut cpus = Vec::new();
    for part in text.split(',') {
        let (first, last) = match part.split_once('-') {
            Some((first, last)) => (parse_cpu(first, text)?, parse_cpu(last, text)?),
            None => (parse_cpu(part, text)?, parse_cpu(part, text)?),
        };
        if first > last {
            return Err(Invalid::new(format!(
                "{part:?} in the CPU list {text:?} is reversed: expected the lower CPU first"
            )));
        }
        for cpu in first..=last {
            if cpus.contains(&cpu) {
                return Err(Invalid::new(format!(
                    "CPU {cpu} is listed twice in {text:?}"
                )));
            }
            cpus.push(cpu);
        }
    }
    Ok(cpus)
}

fn parse_cpu(text: &str, list: &str) -> Result<usize, Invalid> {
    let Some((cpu, "")) = split_number(text.trim()) else {
        return Err(Invalid::new(format!(
            "{list:?} is not a list of CPUs: expected numbers and ranges, such as 0,2-3"
        )));
    };
    match usize::try_from(cpu) {
        Ok(cpu) if cpu < limits::CPU_COUNT_MAX => Ok(cpu),
        _ => Err(Invalid::new(format!(
            "CPU {text} is out of range: expected at most {}",
            limits::CPU_COUNT_MAX - 1
        ))),
    }
}

/// Parses a number of threads: `auto`, or 1 to [`limits::THREADS_MAX`].
pub fn parse_threads(text: &str) -> Result<Threads, Invalid> {
    if text == "auto" {
        return Ok(Threads::Auto);
    }
    let count = parse_count(text).ok();
    let count = count.and_then(|count| usize::try_from(count).ok());
    match count.and_then(NonZeroUsize::new) {
        Some(count) if count.get() <= limits::THREADS_MAX => Ok(Threads::Count(count)),
        _ => Err(Invalid::new(format!(
            "{text:?} is not a number of threads: expected auto, or 1 to {}",
            limits::THREADS_MAX
        ))),
    }
}

/// Parses a driver: `auto`, `epoll` or `io_uring`.
pub fn parse_io(text: &str) -> Result<Io, Invalid> {
    let known = [
        ("auto", Io::Auto),
        ("epoll", Io::Epoll),
        ("io_uring", Io::IoUring),
    ];
    parse_name("driver", text, &known)
}

/// Parses how connections are assigned to cores: `auto`, `cpu` or `hash`.
pub fn parse_accept(text: &str) -> Result<Accept, Invalid> {
    let known = [
        ("auto", Accept::Auto),
        ("cpu", Accept::Cpu),
        ("hash", Accept::Hash),
    ];
    parse_name("way to accept", text, &known)
}

/// Finds a name in `known`; `what` describes the names in the error.
pub(crate) fn parse_name<T: Clone>(
    what: &str,
    text: &str,
    known: &[(&str, T)],
) -> Result<T, Invalid> {
    match known.iter().find(|(name, _)| *name == text) {
        Some((_, value)) => Ok(value.clone()),
        None => {
            let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
            Err(not_one_of(what, text, &names))
        }
    }
}

fn not_one_of(what: &str, text: &str, known: &[&str]) -> Invalid {
    let list = known
        .iter()
        .map(|known| format!("{known:?}"))
        .collect::<Vec<_>>()
        .join(", ");
    match onrush_measure::suggestion::suggestion(text, known.iter().copied()) {
        Some(near) => Invalid::new(format!("unknown {what} {text:?}; nearest: {near:?}")),
        None => Invalid::new(format!("unknown {what} {text:?}: expected one of {list}")),
    }
}

/// Parses TLS settings of a listener: `self-signed`, or the PEM files of a certificate and its key, `CERT,KEY`.
pub fn parse_tls(text: &str) -> Result<Tls, Invalid> {
    if text == "self-signed" {
        return Ok(Tls::self_signed());
    }
    match text.split_once(',') {
        Some((certificate, key)) if !certificate.is_empty() && !key.is_empty() => {
            Ok(Tls::with(vec![Certificate::Files {
                certificate: certificate.into(),
                key: key.into(),
                staple: None,
            }]))
        }
        _ => Err(Invalid::new(format!(
            "{text:?} is not a certificate: expected self-signed, or the files of a certificate and its key such as site.pem,site.key"
        ))),
    }
}

/// Parses a fixed response, `STATUS` or `STATUS:BODY`: a status from 200 to 599 and a literal body.
pub fn parse_respond(text: &str) -> Result<(u16, Vec<u8>), Invalid> {
    let (status, body) = text.split_once(':').unwrap_or((text, ""));
    let Some((number, "")) = split_number(status) else {
        return Err(Invalid::new(format!(
            "{text:?} is not a response: expected STATUS or STATUS:BODY, such as 204 or 200:hello"
        )));
    };
    let status = check_status(i128::from(number))?;
    check_body(status, body.as_bytes())?;
    Ok((status, body.as_bytes().to_vec()))
}

/// Checks that a status is valid for a final response.
pub(crate) fn check_status(status: i128) -> Result<u16, Invalid> {
    match u16::try_from(status) {
        Ok(status) if (200..600).contains(&status) => Ok(status),
        _ => Err(Invalid::new(format!(
            "status {status} is not a final status: expected 200 to 599"
        ))),
    }
}

/// Checks that a response has no body if its status allows none (RFC 9110, sections 15.3.5, 15.3.6 and 15.4.5).
pub(crate) fn check_body(status: u16, body: &[u8]) -> Result<(), Invalid> {
    if matches!(status, 204 | 205 | 304) && !body.is_empty() {
        return Err(Invalid::new(format!(
            "a response with status {status} has no body"
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn outcome<T: fmt::Debug>(parsed: Result<T, Invalid>) -> String {
        match parsed {
            Ok(value) => format!("{value:?}"),
            Err(error) => format!("error: {error}"),
        }
    }

    #[track_caller]
    pub(super) fn check<T: fmt::Debug>(
        parse: fn(&str) -> Result<T, Invalid>,
        cases: &[(&str, &str)],
    ) {
        for (text, expected) in cases {
            assert_eq!(outcome(parse(text)), *expected, "of {text:?}");
        }
    }

    #[test]
    fn durations_require_unit() {
        let not = |text| {
            format!(
                "error: {text:?} is not a duration: expected a number and its unit, such as 250ms, 1.5s, 2m, 1h or 7d"
            )
        };
        check(
            parse_duration,
            &[
                ("250ms", "250ms"),
                ("10s", "10s"),
                ("2m", "120s"),
                ("1h", "3600s"),
                ("0s", "0ns"),
                ("10", &not("10")),
                ("", &not("")),
                ("s", &not("s")),
                ("1.5s", "1.5s"),
                ("500us", "500µs"),
                ("1.s", "1s"),
                ("10 s", "10s"),
                ("1d", "86400s"),
                ("1.", &not("1.")),
                ("-1s", &not("-1s")),
                ("10S", &not("10S")),
                (
                    "99999999999999999999h",
                    "error: \"99999999999999999999h\" is too large",
                ),
            ],
        );
    }

    #[test]
    fn timeouts_are_range_checked() {
        check(
            parse_timeout,
            &[
                ("1ms", "1ms"),
                ("24h", "86400s"),
                (
                    "0s",
                    "error: a time of 0s is out of range: expected 1ms to 24h",
                ),
                (
                    "25h",
                    "error: a time of 25h is out of range: expected 1ms to 24h",
                ),
            ],
        );
    }

    #[test]
    fn size_suffixes_are_binary_and_count_suffixes_decimal() {
        for text in [
            "18446744073709551615",
            "100000000000000000000",
            "99999999999999999m",
        ] {
            assert!(
                parse_count(text)
                    .unwrap_err()
                    .to_string()
                    .contains("too large"),
                "{text}"
            );
        }
        check(
            parse_size,
            &[
                ("512", "512"),
                ("64k", "65536"),
                ("1M", "1048576"),
                ("2g", "2147483648"),
                (
                    "64kb",
                    "error: \"64kb\" is not a size: expected bytes, or k, m or g of 1024, such as 512, 64k or 4MiB",
                ),
                ("99999999999g", "error: \"99999999999g\" is too large"),
            ],
        );
        check(
            parse_count,
            &[
                ("100", "100"),
                ("10k", "10000"),
                ("1m", "1000000"),
                (
                    "k",
                    "error: \"k\" is not a count: expected a whole number, or thousands or millions, such as 100, 10k or 1m",
                ),
            ],
        );
    }

    #[test]
    fn cpu_lists_reject_duplicates() {
        check(
            parse_cpus,
            &[
                ("0", "[0]"),
                ("0,2-3", "[0, 2, 3]"),
                ("3, 1", "[3, 1]"),
                (
                    "",
                    "error: \"\" is not a list of CPUs: expected numbers and ranges, such as 0,2-3",
                ),
                (
                    "0,",
                    "error: \"0,\" is not a list of CPUs: expected numbers and ranges, such as 0,2-3",
                ),
                (
                    "all",
                    "error: \"all\" is not a list of CPUs: expected numbers and ranges, such as 0,2-3",
                ),
                (
                    "3-1",
                    "error: \"3-1\" in the CPU list \"3-1\" is reversed: expected the lower CPU first",
                ),
                ("0-2,1", "error: CPU 1 is listed twice in \"0-2,1\""),
                (
                    "1024",
                    "error: CPU 1024 is out of range: expected at most 1023",
                ),
                (
                    "0-99999999999999999999",
                    "error: CPU 99999999999999999999 is out of range: expected at most 1023",
                ),
            ],
        );
    }

    #[test]
    fn threads_accepts_auto_or_number() {
        check(
            parse_threads,
            &[
                ("auto", "Auto"),
                ("4", "Count(4)"),
                ("0.1k", "Count(100)"),
                (
                    "0",
                    "error: \"0\" is not a number of threads: expected auto, or 1 to 1024",
                ),
                (
                    "1025",
                    "error: \"1025\" is not a number of threads: expected auto, or 1 to 1024",
                ),
                (
                    "many",
                    "error: \"many\" is not a number of threads: expected auto, or 1 to 1024",
                ),
            ],
        );
    }

    #[test]
    fn accept_modes_are_parsed() {
        check(
            parse_accept,
            &[
                ("auto", "Auto"),
                ("cpu", "Cpu"),
                ("hash", "Hash"),
                (
                    "cpus",
                    "error: unknown way to accept \"cpus\"; nearest: \"cpu\"",
                ),
            ],
        );
    }

    #[test]
    fn misspelt_driver_gets_suggestion() {
        check(
            parse_io,
            &[
                ("io_uring", "IoUring"),
                (
                    "iouring",
                    "error: unknown driver \"iouring\"; nearest: \"io_uring\"",
                ),
                (
                    "kqueue",
                    "error: unknown driver \"kqueue\": expected one of \"auto\", \"epoll\", \"io_uring\"",
                ),
            ],
        );
    }

    #[test]
    fn shares_are_percentages() {
        let not = |text: &str| {
            format!("error: {text:?} is not a share: expected per cent such as \"50%\"")
        };
        check(
            parse_percent,
            &[
                ("50%", "50"),
                ("300%", "300"),
                ("50", &not("50")),
                ("50.0 %", "50"),
                (
                    "33.3%",
                    "error: \"33.3%\" has decimals: expected whole per cent such as \"50%\"",
                ),
                ("-1%", &not("-1%")),
                ("%", &not("%")),
            ],
        );
        let not = |text: &str| {
            format!(
                "error: {text:?} is not a share of requests: expected 0.01% to 100%, such as \"10%\" or \"0.5%\""
            )
        };
        check(
            parse_share,
            &[
                ("10%", "1000"),
                ("100%", "10000"),
                ("0.5%", "50"),
                ("0.25%", "25"),
                ("0.01%", "1"),
                ("100.0%", "10000"),
                ("0%", &not("0%")),
                ("100.01%", &not("100.01%")),
                ("0.001%", &not("0.001%")),
                (".5%", "50"),
                ("10", &not("10")),
            ],
        );
    }

    #[test]
    fn rate_limits_are_parsed() {
        let not = |text: &str| {
            format!(
                "error: {text:?} is not a rate: expected requests per second, minute or hour, such as \"100/s\", \"1k/m\" or \"10/h\""
            )
        };
        check(
            parse_rate,
            &[
                ("100/s", "Rate { count: 100, per: 1s, burst: 100 }"),
                ("1k/m", "Rate { count: 1000, per: 60s, burst: 1000 }"),
                ("10/h", "Rate { count: 10, per: 3600s, burst: 10 }"),
                ("100", &not("100")),
                ("100/d", &not("100/d")),
                ("/s", &not("/s")),
                ("1.0/s", "Rate { count: 1, per: 1s, burst: 1 }"),
                (
                    "1.5/s",
                    "error: \"1.5/s\" has decimals: expected a whole number of requests, which is also the burst, such as \"90/m\"",
                ),
                (
                    "0/s",
                    "error: a rate of 0/s is out of range: expected 1 to 100000000 requests",
                ),
                (
                    "200m/s",
                    "error: a rate of 200m/s is out of range: expected 1 to 100000000 requests",
                ),
            ],
        );
    }

    #[test]
    fn statuses_accept_codes_ranges_and_classes() {
        let not = |text: &str| {
            format!(
                "error: {text:?} is not a status: expected 200 to 599, a range such as \"200-299\", or a class such as \"2xx\""
            )
        };
        check(
            parse_statuses,
            &[
                ("200", "(200, 200)"),
                ("200-299", "(200, 299)"),
                ("5xx", "(500, 599)"),
                ("1xx", &not("1xx")),
                ("xx", &not("xx")),
                ("299-200", &not("299-200")),
                ("600", &not("600")),
                ("", &not("")),
            ],
        );
    }

    #[test]
    fn tls_argument_is_self_signed_or_certificate_and_key() {
        let not = |text: &str| {
            format!(
                "error: {text:?} is not a certificate: expected self-signed, or the files of a certificate and its key such as site.pem,site.key"
            )
        };
        for (text, certificate) in [
            ("self-signed", "SelfSigned"),
            (
                "a.pem,b.key",
                "Files { certificate: \"a.pem\", key: \"b.key\", staple: None }",
            ),
            ("a.pem", &not("a.pem")),
            ("a.pem,", &not("a.pem,")),
        ] {
            let first = parse_tls(text).map(|tls| tls.certificates.into_iter().next());
            let found = outcome(first.map(|first| first.expect("a certificate")));
            assert_eq!(found, certificate, "of {text:?}");
        }
    }

    #[test]
    fn fixed_response_status_and_body_are_validated() {
        check(
            parse_respond,
            &[
                ("204", "(204, [])"),
                ("200:", "(200, [])"),
                ("200:a:b", "(200, [97, 58, 98])"),
                ("404:no", "(404, [110, 111])"),
                (
                    "ok",
                    "error: \"ok\" is not a response: expected STATUS or STATUS:BODY, such as 204 or 200:hello",
                ),
                (
                    "100",
                    "error: status 100 is not a final status: expected 200 to 599",
                ),
                (
                    "600",
                    "error: status 600 is not a final status: expected 200 to 599",
                ),
                ("204:x", "error: a response with status 204 has no body"),
            ],
        );
    }

    #[test]
    fn fixed_responses_reject_framing_fields() {
        let check = |name: &str, value: &str| outcome(check_header(name, value));
        assert_eq!(check("Content-Type", "text/plain"), "()");
        assert_eq!(check("a b", ""), "error: \"a b\" is not a header name");
        assert_eq!(
            check("Transfer-Encoding", "chunked"),
            "error: header \"Transfer-Encoding\" is set by the server itself: leave it out"
        );
        assert_eq!(
            check("X", "a\r\nY: b"),
            "error: the value of header \"X\" contains a control character"
        );
    }
}
