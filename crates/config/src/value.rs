//! Single values as they are written, on the command line and in a file alike: each `parse_…` takes
//! the text of one value and returns what it means, or an [`Invalid`] that says what was expected.

use std::fmt;
use std::num::NonZeroUsize;
use std::time::Duration;

use crate::limits;
use crate::plan::{Balance, Host, Io, PathMatch, Pattern, Threads};

/// A value that means nothing: a sentence with what was written, what was expected and an example.
/// It does not say where; whoever read the value knows the flag or the place in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invalid(String);

impl Invalid {
    pub(crate) fn new(message: impl Into<String>) -> Invalid {
        Invalid(message.into())
    }
}

impl fmt::Display for Invalid {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for Invalid {}

/// A duration: a whole number and its unit, `250ms`, `10s`, `2m` or `1h`; `0s` is one, too.
pub fn parse_duration(text: &str) -> Result<Duration, Invalid> {
    let expected = || {
        Invalid::new(format!(
            "{text:?} is not a duration: expected a whole number and its unit, such as 250ms, 10s, 2m or 1h"
        ))
    };
    let (number, unit) = split_number(text).ok_or_else(expected)?;
    let milliseconds: u64 = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return Err(expected()),
    };
    let total = number
        .checked_mul(milliseconds)
        .ok_or_else(|| too_large(text))?;
    Ok(Duration::from_millis(total))
}

/// A timeout: a [duration](parse_duration) between [`limits::TIMEOUT_MIN`] and
/// [`limits::TIMEOUT_MAX`].
pub fn parse_timeout(text: &str) -> Result<Duration, Invalid> {
    let timeout = parse_duration(text)?;
    if (limits::TIMEOUT_MIN..=limits::TIMEOUT_MAX).contains(&timeout) {
        return Ok(timeout);
    }
    Err(Invalid::new(format!(
        "a timeout of {text} is out of range: expected 1ms to 24h"
    )))
}

/// A number of bytes: a whole number, or one with `k`, `m` or `g` for powers of 1024, `64k`, `1m`.
pub fn parse_size(text: &str) -> Result<u64, Invalid> {
    let suffixes = [("", 1), ("k", 1 << 10), ("m", 1 << 20), ("g", 1 << 30)];
    parse_multiple(
        text,
        &suffixes,
        "a size: expected bytes, or k, m or g of 1024, such as 512, 64k or 1m",
    )
}

/// A number of things: a whole number, or one with `k` or `m` for thousands and millions, `100`,
/// `10k`, `1m`.
pub fn parse_count(text: &str) -> Result<u64, Invalid> {
    let suffixes = [("", 1), ("k", 1_000), ("m", 1_000_000)];
    parse_multiple(
        text,
        &suffixes,
        "a count: expected a whole number, or thousands or millions, such as 100, 10k or 1m",
    )
}

/// Digits and one of the suffixes, in either case.
fn parse_multiple(text: &str, suffixes: &[(&str, u64)], expected: &str) -> Result<u64, Invalid> {
    let found = split_number(text).and_then(|(number, suffix)| {
        let (_, multiple) = suffixes
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(suffix))?;
        Some((number, *multiple))
    });
    let (number, multiple) =
        found.ok_or_else(|| Invalid::new(format!("{text:?} is not {expected}")))?;
    number.checked_mul(multiple).ok_or_else(|| too_large(text))
}

/// The leading digits, at least one, as a number, and what follows them. Too many digits are the
/// largest number, so that whoever multiplies or compares it finds it too large.
fn split_number(text: &str) -> Option<(u64, &str)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, rest) = text.split_at(digits);
    (digits > 0).then(|| (number.parse().unwrap_or(u64::MAX), rest))
}

fn too_large(text: &str) -> Invalid {
    Invalid::new(format!("{text:?} is too large"))
}

/// A list of CPU numbers and ranges, `0,2-3`; in the order written, none of them twice.
pub fn parse_cpus(text: &str) -> Result<Vec<usize>, Invalid> {
    let mut cpus = Vec::new();
    for part in text.split(',') {
        let (first, last) = match part.split_once('-') {
            Some((first, last)) => (parse_cpu(first, text)?, parse_cpu(last, text)?),
            None => (parse_cpu(part, text)?, parse_cpu(part, text)?),
        };
        if first > last {
            return Err(Invalid::new(format!(
                "{part:?} in the CPU list {text:?} runs backwards"
            )));
        }
        for cpu in first..=last {
            if cpus.contains(&cpu) {
                return Err(Invalid::new(format!(
                    "CPU {cpu} is twice in the list {text:?}"
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
            "there is no CPU {text}: numbers end at {}",
            limits::CPU_COUNT_MAX - 1
        ))),
    }
}

/// A number of threads: `auto`, or a number from 1 to [`limits::THREADS_MAX`].
pub fn parse_threads(text: &str) -> Result<Threads, Invalid> {
    if text == "auto" {
        return Ok(Threads::Auto);
    }
    let count = split_number(text)
        .filter(|(_, rest)| rest.is_empty())
        .and_then(|(count, _)| usize::try_from(count).ok());
    match count.and_then(NonZeroUsize::new) {
        Some(count) if count.get() <= limits::THREADS_MAX => Ok(Threads::Count(count)),
        _ => Err(Invalid::new(format!(
            "{text:?} is not a number of threads: expected auto, or 1 to {}",
            limits::THREADS_MAX
        ))),
    }
}

/// A driver: `auto`, `epoll` or `io_uring`.
pub fn parse_io(text: &str) -> Result<Io, Invalid> {
    match text {
        "auto" => Ok(Io::Auto),
        "epoll" => Ok(Io::Epoll),
        "io_uring" => Ok(Io::IoUring),
        _ => Err(not_one_of("driver", text, &["auto", "epoll", "io_uring"])),
    }
}

/// A way to balance: `round_robin` or `random`. Those that are planned are refused by name.
pub fn parse_balance(text: &str) -> Result<Balance, Invalid> {
    match text {
        "round_robin" => Ok(Balance::RoundRobin),
        "random" => Ok(Balance::Random),
        "power_of_two" | "least_connections" | "hash" => Err(Invalid::new(format!(
            "balance {text:?} is not supported yet in this version: expected \"round_robin\" or \"random\""
        ))),
        _ => Err(not_one_of("balance", text, &["round_robin", "random"])),
    }
}

fn not_one_of(what: &str, text: &str, known: &[&str]) -> Invalid {
    let list = known
        .iter()
        .map(|known| format!("{known:?}"))
        .collect::<Vec<_>>()
        .join(", ");
    match crate::nearest::nearest(text, known.iter().copied()) {
        Some(near) => Invalid::new(format!("unknown {what} {text:?}; nearest: {near:?}")),
        None => Invalid::new(format!("unknown {what} {text:?}: expected one of {list}")),
    }
}

/// A host as in a `Host` header, without a port: a name, an IPv4 address, or an IPv6 address in
/// brackets.
pub fn parse_host(text: &str) -> Result<Host, Invalid> {
    if text.starts_with("*.") || text.starts_with('~') {
        return Err(Invalid::new(format!(
            "host {text:?}: patterns are not supported yet in this version; expected one host name"
        )));
    }
    let literal = text
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    let valid = match literal {
        Some(literal) => literal.parse::<std::net::Ipv6Addr>().is_ok(),
        None => is_host_name(text),
    };
    if valid {
        return Ok(Host::new(text));
    }
    if text
        .rsplit_once(':')
        .is_some_and(|(_, port)| port.parse::<u16>().is_ok())
        && !text.contains("::")
    {
        return Err(Invalid::new(format!(
            "host {text:?}: leave the port out; a host matches on every port"
        )));
    }
    Err(Invalid::new(format!(
        "{text:?} is not a host name: expected one such as \"static.example.com\""
    )))
}

/// Whether `text` is a host name of letters, digits, `-` and `_` in parts of at most 63 (RFC 1123,
/// section 2.1, and the underscore that container networks use). IPv4 addresses are of this form,
/// too.
pub(crate) fn is_host_name(text: &str) -> bool {
    let is_label = |label: &str| {
        (1..=limits::HOST_LABEL_MAX).contains(&label.len())
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    text.len() <= limits::HOST_MAX && text.split('.').all(is_label)
}

/// A regular expression in the syntax of Rust's `regex`, which has no look-around and no
/// back-references and in return always takes linear time.
pub(crate) fn parse_pattern(text: &str) -> Result<Pattern, Invalid> {
    let built = regex::bytes::RegexBuilder::new(text)
        .size_limit(limits::PATTERN_BYTES_MAX)
        .build();
    match built {
        Ok(regex) => Ok(Pattern::new(regex)),
        Err(regex::Error::CompiledTooBig(_)) => Err(Invalid::new(format!(
            "regular expression {text:?} is too large: compiled it must fit {} KiB",
            limits::PATTERN_BYTES_MAX >> 10
        ))),
        Err(error) => {
            // The last line says what; those before it draw where.
            let what = error.to_string();
            let what = what.lines().last().unwrap_or_default();
            let what = what.strip_prefix("error: ").unwrap_or(what);
            Err(Invalid::new(format!(
                "{text:?} is not a regular expression: {what}"
            )))
        }
    }
}

/// A condition on a path: a prefix `/p/`, `=/exact`, or a regular expression `~^/p/[0-9]+$`.
pub fn parse_path(text: &str) -> Result<PathMatch, Invalid> {
    if let Some(pattern) = text.strip_prefix('~') {
        return parse_pattern(pattern).map(PathMatch::Regex);
    }
    let (exact, path) = match text.strip_prefix('=') {
        Some(path) => (true, path),
        None => (false, text),
    };
    if !path.starts_with('/') {
        return Err(Invalid::new(format!(
            "path {text:?} does not begin with \"/\": expected a prefix such as \"/p/\" or an exact path such as \"=/p\""
        )));
    }
    if let Some(bad) = path
        .chars()
        .find(|letter| matches!(letter, '?' | '#' | ' ') || letter.is_control())
    {
        return Err(Invalid::new(format!(
            "path {text:?} contains {bad:?}, which is never part of a request's path"
        )));
    }
    Ok(if exact {
        PathMatch::Exact(path.to_owned())
    } else {
        PathMatch::Prefix(path.to_owned())
    })
}

/// A fixed answer, `STATUS` or `STATUS:BODY`: a status from 200 to 599 and the body as it stands.
pub fn parse_respond(text: &str) -> Result<(u16, Vec<u8>), Invalid> {
    let (status, body) = text.split_once(':').unwrap_or((text, ""));
    let Some((number, "")) = split_number(status) else {
        return Err(Invalid::new(format!(
            "{text:?} is not an answer: expected STATUS or STATUS:BODY, such as 204 or 200:hello"
        )));
    };
    let status = check_status(i128::from(number))?;
    check_body(status, body.as_bytes())?;
    Ok((status, body.as_bytes().to_vec()))
}

/// The status, when it may be that of a final answer.
pub(crate) fn check_status(status: i128) -> Result<u16, Invalid> {
    match u16::try_from(status) {
        Ok(status) if (200..600).contains(&status) => Ok(status),
        _ => Err(Invalid::new(format!(
            "status {status} is not that of a final answer: expected 200 to 599"
        ))),
    }
}

/// That a status that allows no body comes without (RFC 9110, sections 15.3.5, 15.3.6 and 15.4.5).
pub(crate) fn check_body(status: u16, body: &[u8]) -> Result<(), Invalid> {
    if matches!(status, 204 | 205 | 304) && !body.is_empty() {
        return Err(Invalid::new(format!(
            "an answer with status {status} has no body"
        )));
    }
    Ok(())
}

/// Fields that the server writes itself: a second one would contradict what is really sent.
const OWN_FIELDS: [&str; 8] = [
    "connection",
    "content-length",
    "date",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// That a field may stand in a fixed answer: a token for its name, a value without control
/// characters, and none of those that the server writes itself (RFC 9110, sections 5.1 and 5.5).
pub(crate) fn check_header(name: &str, value: &str) -> Result<(), Invalid> {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if name.is_empty() || !name.bytes().all(is_token) {
        return Err(Invalid::new(format!("{name:?} is not a header name")));
    }
    if OWN_FIELDS.iter().any(|own| own.eq_ignore_ascii_case(name)) {
        return Err(Invalid::new(format!(
            "header {name:?} is written by the server itself: leave it out"
        )));
    }
    if value
        .chars()
        .any(|letter| letter.is_control() && letter != '\t')
    {
        return Err(Invalid::new(format!(
            "the value of header {name:?} contains a control character"
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a parse function makes of a text, in one form for the tables below.
    fn outcome<T: fmt::Debug>(parsed: Result<T, Invalid>) -> String {
        match parsed {
            Ok(value) => format!("{value:?}"),
            Err(error) => format!("error: {error}"),
        }
    }

    #[track_caller]
    fn check<T: fmt::Debug>(parse: fn(&str) -> Result<T, Invalid>, cases: &[(&str, &str)]) {
        for (text, expected) in cases {
            assert_eq!(outcome(parse(text)), *expected, "of {text:?}");
        }
    }

    #[test]
    fn durations_have_a_unit() {
        let not = |text| {
            format!(
                "error: {text:?} is not a duration: expected a whole number and its unit, such as 250ms, 10s, 2m or 1h"
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
                ("1.5s", &not("1.5s")),
                ("-1s", &not("-1s")),
                ("10 s", &not("10 s")),
                ("10S", &not("10S")),
                (
                    "99999999999999999999h",
                    "error: \"99999999999999999999h\" is too large",
                ),
            ],
        );
    }

    #[test]
    fn timeouts_have_bounds() {
        check(
            parse_timeout,
            &[
                ("1ms", "1ms"),
                ("24h", "86400s"),
                (
                    "0s",
                    "error: a timeout of 0s is out of range: expected 1ms to 24h",
                ),
                (
                    "25h",
                    "error: a timeout of 25h is out of range: expected 1ms to 24h",
                ),
            ],
        );
    }

    #[test]
    fn sizes_are_binary_and_counts_decimal() {
        check(
            parse_size,
            &[
                ("512", "512"),
                ("64k", "65536"),
                ("1M", "1048576"),
                ("2g", "2147483648"),
                (
                    "64kb",
                    "error: \"64kb\" is not a size: expected bytes, or k, m or g of 1024, such as 512, 64k or 1m",
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
    fn cpus_are_numbers_and_ranges_without_repetition() {
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
                    "error: \"3-1\" in the CPU list \"3-1\" runs backwards",
                ),
                ("0-2,1", "error: CPU 1 is twice in the list \"0-2,1\""),
                ("1024", "error: there is no CPU 1024: numbers end at 1023"),
                (
                    "0-99999999999999999999",
                    "error: there is no CPU 99999999999999999999: numbers end at 1023",
                ),
            ],
        );
    }

    #[test]
    fn threads_are_auto_or_a_number() {
        check(
            parse_threads,
            &[
                ("auto", "Auto"),
                ("4", "Count(4)"),
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
    fn drivers_and_balances_have_a_nearest_name() {
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
        check(
            parse_balance,
            &[
                ("random", "Random"),
                (
                    "roundrobin",
                    "error: unknown balance \"roundrobin\"; nearest: \"round_robin\"",
                ),
                (
                    "power_of_two",
                    "error: balance \"power_of_two\" is not supported yet in this version: expected \"round_robin\" or \"random\"",
                ),
            ],
        );
    }

    #[test]
    fn hosts_are_names_or_addresses_without_a_port() {
        check(
            parse_host,
            &[
                ("Static.Example.com", "Exact(\"static.example.com\")"),
                ("10.0.0.1", "Exact(\"10.0.0.1\")"),
                ("[::1]", "Exact(\"[::1]\")"),
                ("a_b", "Exact(\"a_b\")"),
                (
                    "",
                    "error: \"\" is not a host name: expected one such as \"static.example.com\"",
                ),
                (
                    "a..b",
                    "error: \"a..b\" is not a host name: expected one such as \"static.example.com\"",
                ),
                (
                    "-a",
                    "error: \"-a\" is not a host name: expected one such as \"static.example.com\"",
                ),
                (
                    "[::1",
                    "error: \"[::1\" is not a host name: expected one such as \"static.example.com\"",
                ),
                (
                    "a:80",
                    "error: host \"a:80\": leave the port out; a host matches on every port",
                ),
                (
                    "*.a.com",
                    "error: host \"*.a.com\": patterns are not supported yet in this version; expected one host name",
                ),
            ],
        );
        assert!(parse_host(&"a.".repeat(127)).is_err());
        assert!(parse_host(&"a".repeat(64)).is_err());
    }

    #[test]
    fn paths_are_prefixes_or_exact() {
        check(
            parse_path,
            &[
                ("/", "Prefix(\"/\")"),
                ("/p/", "Prefix(\"/p/\")"),
                ("=/health", "Exact(\"/health\")"),
                (
                    "p/",
                    "error: path \"p/\" does not begin with \"/\": expected a prefix such as \"/p/\" or an exact path such as \"=/p\"",
                ),
                (
                    "",
                    "error: path \"\" does not begin with \"/\": expected a prefix such as \"/p/\" or an exact path such as \"=/p\"",
                ),
                (
                    "/p?x",
                    "error: path \"/p?x\" contains '?', which is never part of a request's path",
                ),
                ("~^/p", "Regex(Pattern(Regex(\"^/p\")))"),
            ],
        );
    }

    #[test]
    fn fixed_answers_have_a_final_status_and_a_body_where_allowed() {
        check(
            parse_respond,
            &[
                ("204", "(204, [])"),
                ("200:", "(200, [])"),
                ("200:a:b", "(200, [97, 58, 98])"),
                ("404:no", "(404, [110, 111])"),
                (
                    "ok",
                    "error: \"ok\" is not an answer: expected STATUS or STATUS:BODY, such as 204 or 200:hello",
                ),
                (
                    "100",
                    "error: status 100 is not that of a final answer: expected 200 to 599",
                ),
                (
                    "600",
                    "error: status 600 is not that of a final answer: expected 200 to 599",
                ),
                ("204:x", "error: an answer with status 204 has no body"),
            ],
        );
    }

    #[test]
    fn headers_of_fixed_answers_cannot_break_the_framing() {
        let check = |name: &str, value: &str| outcome(check_header(name, value));
        assert_eq!(check("Content-Type", "text/plain"), "()");
        assert_eq!(check("a b", ""), "error: \"a b\" is not a header name");
        assert_eq!(
            check("Transfer-Encoding", "chunked"),
            "error: header \"Transfer-Encoding\" is written by the server itself: leave it out"
        );
        assert_eq!(
            check("X", "a\r\nY: b"),
            "error: the value of header \"X\" contains a control character"
        );
    }
}
