//! Replay of an access log in the common or combined format (Apache's, and nginx's default), at the times of its lines.
//!
//! ```text
//! 192.0.2.1 - - [10/Oct/2026:13:55:36 +0000] "GET /a HTTP/1.1" 200 2326 "http://h/" "Mozilla/5.0"
//! ```
//!
//! This format has neither fractions of seconds nor bodies. The requests of a second are spread evenly over it, and
//! requests with unsafe methods are skipped and counted.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use time::OffsetDateTime;
use time::format_description::BorrowedFormatItem;
use time::macros::format_description;

use super::har::{encoded, literal};
use super::{Body, Expect, Request};
use crate::pace::target::Target;
use crate::requests::header::check_header;

/// Requests of an access log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Replay {
    /// Distinct requests.
    pub requests: Vec<Request>,
    /// Order of the requests: indices in `requests`.
    pub order: Arc<[u32]>,
    /// Due times, in nanoseconds since the first.
    pub times: Arc<[u64]>,
    /// Lines with a method other than GET, HEAD or OPTIONS.
    pub unsafe_methods: u64,
    /// Lines without a valid request, or in another format.
    pub unreadable: u64,
}

/// Safe methods without a request body (RFC 9110 section 9.2.1).
const SAFE_METHODS: [&str; 3] = ["GET", "HEAD", "OPTIONS"];

/// Parses `text`, the content of the file `name`, for `target`. The replay is `speed` times as fast as the log.
///
/// # Errors
/// A sentence with the file, if it contains no usable request.
pub fn parse(text: &str, name: &str, target: &Target, speed: f64) -> Result<Replay, String> {
    let mut known: HashMap<RequestKey<'_>, u32> = HashMap::new();
    let mut requests = Vec::new();
    let mut lines: Vec<(i64, u32)> = Vec::new();
    let (mut unsafe_methods, mut unreadable) = (0, 0);
    for line in text.lines() {
        let Some((second, kind)) = parse_line(line) else {
            unreadable += u64::from(!line.trim().is_empty());
            continue;
        };
        if !SAFE_METHODS.contains(&kind.method) {
            unsafe_methods += 1;
            continue;
        }
        let number = *known.entry(kind).or_insert_with(|| {
            requests.push(kind.request(target));
            requests.len() as u32 - 1
        });
        lines.push((second, number));
    }
    if lines.is_empty() {
        return Err(format!(
            "{name}: no GET, HEAD or OPTIONS request that can be sent ({unsafe_methods} lines have other methods, \
             {unreadable} are not in the common or combined log format)"
        ));
    }
    // Lines are written when responses end, and so not always in order of their times.
    lines.sort_by_key(|(second, _)| *second);
    let times = spread(lines.iter().map(|(second, _)| *second), speed);
    Ok(Replay {
        requests,
        order: lines.iter().map(|(_, number)| *number).collect(),
        times,
        unsafe_methods,
        unreadable,
    })
}

/// Returns nanoseconds since the first of `seconds`, which are in order; the entries of one second are spread evenly
/// over it.
fn spread(seconds: impl Iterator<Item = i64> + Clone, speed: f64) -> Arc<[u64]> {
    let mut counts: HashMap<i64, u64> = HashMap::new();
    seconds
        .clone()
        .for_each(|second| *counts.entry(second).or_default() += 1);
    let first = seconds.clone().next().unwrap_or_default();
    let (mut last, mut index) = (first, 0);
    seconds
        .map(|second| {
            index = if second == last { index } else { 0 };
            last = second;
            let within = index as f64 / counts[&second] as f64;
            index += 1;
            let since_s = ((second - first) as f64 + within) / speed;
            // On overflow: never due.
            let since = Duration::try_from_secs_f64(since_s).unwrap_or(Duration::MAX);
            u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
        })
        .collect()
}

/// Properties that distinguish requests of a log.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct RequestKey<'l> {
    method: &'l str,
    path: &'l str,
    referer: Option<&'l str>,
    agent: Option<&'l str>,
}

impl RequestKey<'_> {
    fn request(&self, target: &Target) -> Request {
        let fields = [("Referer", self.referer), ("User-Agent", self.agent)];
        let headers = fields.into_iter().filter_map(|(name, value)| {
            let value = unescaped(value?)?;
            check_header(name, &value).ok()?;
            Some((name.to_owned(), literal(&value)))
        });
        Request {
            method: self.method.to_owned(),
            host: target.host.clone(),
            path: literal(&encoded(&unescaped_bytes(self.path))),
            headers: headers.collect(),
            body: Body::None,
            weight: NonZeroU32::MIN,
            expect: Expect::default(),
        }
    }
}

/// Returns the time of a line in seconds since 1970, and its request.
fn parse_line(line: &str) -> Option<(i64, RequestKey<'_>)> {
    let (_, rest) = line.split_once('[')?;
    let (date, rest) = rest.split_once("] \"")?;
    let (asked, rest) = rest.split_once("\" ")?;
    let mut words = asked.split(' ');
    let (method, path, version) = (words.next()?, words.next()?, words.next()?);
    let is_request = words.next().is_none() && version.starts_with("HTTP/");
    // The log of a forward proxy has absolute URLs; a port scan leaves anything.
    let can_be_asked = path.starts_with('/') && path.bytes().all(|byte| byte.is_ascii_graphic());
    if !is_request || !can_be_asked {
        return None;
    }
    let mut rest = rest;
    let mut next = || {
        let (value, behind) = quoted(rest)?;
        rest = behind;
        Some(value).filter(|value| !matches!(*value, "-" | ""))
    };
    let (referer, agent) = (next(), next());
    let kind = RequestKey {
        method,
        path,
        referer,
        agent,
    };
    Some((unix_seconds(date)?, kind))
}

/// Returns the next quoted string, still escaped, and the rest after it.
fn quoted(text: &str) -> Option<(&str, &str)> {
    let (_, text) = text.split_once('"')?;
    let mut is_escaped = false;
    let end = text.bytes().position(|byte| {
        let is_end = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        is_end
    })?;
    Some((&text[..end], &text[end + 1..]))
}

/// Decodes escape sequences of a log: `\"`, `\\` and `\xhh` (Apache's mod_log_config, nginx's log_format), and C's
/// letters for control characters. `None` if the result is not UTF-8.
fn unescaped(text: &str) -> Option<String> {
    String::from_utf8(unescaped_bytes(text)).ok()
}

fn unescaped_bytes(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    loop {
        let (byte, behind) = match rest {
            [] => return bytes,
            [b'\\', b'x', high, low, behind @ ..]
                if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() =>
            {
                let digit = |byte: u8| char::from(byte).to_digit(16).unwrap_or_default() as u8;
                (digit(*high) * 16 + digit(*low), behind)
            }
            [b'\\', letter @ (b'"' | b'\\'), behind @ ..] => (*letter, behind),
            [b'\\', b'b', behind @ ..] => (0x08, behind),
            [b'\\', b't', behind @ ..] => (b'\t', behind),
            [b'\\', b'n', behind @ ..] => (b'\n', behind),
            [b'\\', b'v', behind @ ..] => (0x0b, behind),
            [b'\\', b'f', behind @ ..] => (0x0c, behind),
            [b'\\', b'r', behind @ ..] => (b'\r', behind),
            [byte, behind @ ..] => (*byte, behind),
        };
        bytes.push(byte);
        rest = behind;
    }
}

/// Parses a date such as `10/Oct/2026:13:55:36 +0200` to seconds since 1970.
fn unix_seconds(date: &str) -> Option<i64> {
    let date = OffsetDateTime::parse(date, DATE).ok()?;
    Some(date.unix_timestamp())
}

/// `%d/%b/%Y:%H:%M:%S %z` of strftime(3).
const DATE: &[BorrowedFormatItem<'_>] = format_description!(
    "[day]/[month repr:short]/[year]:[hour]:[minute]:[second] [offset_hour sign:mandatory][offset_minute]"
);

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "\
192.0.2.1 - - [10/Oct/2026:13:55:37 +0000] \"GET /b HTTP/1.1\" 200 5
192.0.2.1 - ann [10/Oct/2026:15:55:36 +0200] \"GET /a?{{x}} HTTP/1.0\" 200 2326 \"http://h/\" \"Agent (1.0)\"
192.0.2.2 - - [10/Oct/2026:13:55:37 +0000] \"HEAD /b HTTP/2.0\" 200 0 \"-\" \"-\"
192.0.2.2 - - [10/Oct/2026:13:55:38 +0000] \"POST /b HTTP/1.1\" 200 0 \"-\" \"-\"

192.0.2.3 - - [10/Oct/2026:13:55:38 +0000] \"\\x16\\x03\\x01\" 400 0 \"-\" \"-\"
192.0.2.1 - - [10/Oct/2026:13:55:39 +0000] \"GET /b HTTP/1.1\" 304 0
";

    fn parsed(text: &str, speed: f64) -> Result<Replay, String> {
        parse(
            text,
            "access.log",
            &Target::parse("http://a/").unwrap(),
            speed,
        )
    }

    #[test]
    fn escaped_log_paths_are_percent_encoded() {
        let path = |logged: &str| {
            let line =
                format!("h - - [10/Oct/2026:13:55:39 +0000] \"GET {logged} HTTP/1.1\" 200 0");
            parsed(&line, 1.0).unwrap().requests[0].path.clone()
        };
        assert_eq!(path(r"/a\x22b\xC3\xA4?q=\x5C"), r"/a%22b%C3%A4?q=\");
        assert_eq!(path(r"/\b\t\n\v\f\r\z"), r"/%08%09%0A%0B%0C%0D\z");
    }

    #[test]
    fn escaped_log_fields_are_decoded() {
        for (logged, sent) in [
            (r#"UA \"q\" 3"#, Some(r#"UA "q" 3"#)),
            (r"a\\b", Some(r"a\b")),
            (r"a\x22b\xc3\xa4", Some("a\"bä")),
            (r"a\zb\x2", Some(r"a\zb\x2")),
            // A value that is not valid in a field is dropped.
            (r"a\nb", None),
            (r"a\x00b", None),
            (r"a\xff", None),
        ] {
            let line = format!(
                "h - - [10/Oct/2026:13:55:37 +0000] \"GET / HTTP/1.1\" 200 5 \"http://h/\" \"{logged}\"\n"
            );
            let replay = parsed(&line, 1.0).unwrap();
            let headers = &replay.requests[0].headers;
            assert_eq!(headers[0].1, "http://h/", "{logged}");
            let agent = headers.get(1).map(|(_, value)| value.as_str());
            assert_eq!(agent, sent, "{logged}");
        }
    }

    #[test]
    fn log_lines_become_timed_requests() {
        let replay = parsed(LOG, 1.0).unwrap();
        let paths: Vec<String> = replay
            .order
            .iter()
            .map(|number| &replay.requests[*number as usize])
            .map(|request| format!("{} {}", request.method, request.path))
            .collect();
        assert_eq!(paths, ["GET /a?{{}}x}}", "GET /b", "HEAD /b", "GET /b"]);
        assert_eq!(
            replay.times[..],
            [0, 1_000_000_000, 1_500_000_000, 3_000_000_000]
        );
        assert_eq!(replay.requests.len(), 3, "the same request is kept once");
        let first = &replay.requests[replay.order[0] as usize];
        let fields: Vec<&str> = first.headers.iter().map(|(_, value)| &**value).collect();
        assert_eq!(fields, ["http://h/", "Agent (1.0)"]);
        assert_eq!((replay.unsafe_methods, replay.unreadable), (1, 1));
    }

    #[test]
    fn replay_speed_scales_times() {
        assert_eq!(
            parsed(LOG, 2.0).unwrap().times[..],
            [0, 500_000_000, 750_000_000, 1_500_000_000]
        );
    }

    #[test]
    fn log_without_replayable_requests_is_refused() {
        let error = parsed("hello\n", 1.0).unwrap_err();
        assert!(
            error.contains("access.log: no GET, HEAD or OPTIONS request"),
            "{error}"
        );
    }

    #[test]
    fn log_dates_apply_time_zone() {
        let noon = unix_seconds("01/Jan/2026:12:00:00 +0000").unwrap();
        assert_eq!(unix_seconds("01/Jan/2026:07:30:00 -0430"), Some(noon));
        for bad in [
            "",
            "x",
            "01/Jan/2026:12:00:00",
            "01/Jan/2026:12:00:00 0000",
            "41/Jan/2026:12:00:00 +0000",
        ] {
            assert_eq!(unix_seconds(bad), None, "{bad}");
        }
    }
}
