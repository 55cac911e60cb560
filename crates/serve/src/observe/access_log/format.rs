//! How a line is written.

use std::net::IpAddr;
use std::time::Duration;

use onrush_config::plan::{LogField, LogFormat, LogPiece};
use onrush_http::Version;
use time::{Month, OffsetDateTime};

use super::entry::{Entry, Way};
use crate::observe::traffic::Ended;
use crate::record::End;

/// What is known of a request that has ended.
pub(super) struct Facts<'a> {
    pub(super) ended: Ended<'a>,
    /// None of what was no request.
    pub(super) entry: Option<&'a Entry>,
    pub(super) way: Way<'a>,
    pub(super) core: usize,
    /// Where it was sent last; empty for one that was sent nowhere.
    pub(super) server: &'a str,
    /// The names of the fields that the entry has.
    pub(super) headers: &'a [String],
    /// When it began, since 1970.
    pub(super) began: Duration,
}

/// The last second and the last client, as they are written: the next line has them, too, more often than not.
#[derive(Debug, Default)]
pub(super) struct Clock {
    second: Option<u64>,
    /// `2026-11-23T15:04:05`
    rfc3339: String,
    /// `23/Nov/2026:15:04:05 +0000`
    combined: String,
    /// The last client, as it is written.
    client: Option<(IpAddr, String)>,
}

impl Clock {
    fn at(&mut self, moment: Duration, client: Option<IpAddr>) -> &Clock {
        if let Some(client) = client
            && self
                .client
                .as_ref()
                .is_none_or(|(known, _)| *known != client)
        {
            self.client = Some((client, client.to_string()));
        }
        let second = moment.as_secs();
        if self.second != Some(second) {
            self.second = Some(second);
            let seconds = i64::try_from(second).unwrap_or(i64::MAX);
            let date = OffsetDateTime::from_unix_timestamp(seconds);
            let date = date.unwrap_or(OffsetDateTime::UNIX_EPOCH);
            let (year, month, day) = date.to_calendar_date();
            let (hour, minute, second) = date.to_hms();
            self.rfc3339 = format!(
                "{year:04}-{:02}-{day:02}T{hour:02}:{minute:02}:{second:02}",
                u8::from(month)
            );
            let month = short(month);
            self.combined =
                format!("{day:02}/{month}/{year:04}:{hour:02}:{minute:02}:{second:02} +0000");
        }
        self
    }
}

fn short(month: Month) -> &'static str {
    const NAMES: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    NAMES[usize::from(u8::from(month)) - 1]
}

/// A moment as in RFC 3339, in UTC, with microseconds.
pub(super) fn rfc3339(moment: Duration, out: &mut Vec<u8>) {
    let mut clock = Clock::default();
    write_moment(clock.at(moment, None), moment, out);
}

fn write_moment(clock: &Clock, moment: Duration, out: &mut Vec<u8>) {
    out.extend_from_slice(clock.rfc3339.as_bytes());
    write_fraction(moment, out);
    out.push(b'Z');
}

/// The part of a second, in microseconds.
fn write_fraction(duration: Duration, out: &mut Vec<u8>) {
    let mut digits = *b".000000";
    let mut left = duration.subsec_micros();
    for digit in digits[1..].iter_mut().rev() {
        *digit = b'0' + (left % 10) as u8;
        left /= 10;
    }
    out.extend_from_slice(&digits);
}

/// Writes a line with its end.
pub(super) fn write(format: &LogFormat, facts: &Facts<'_>, clock: &mut Clock, out: &mut Vec<u8>) {
    let client = facts.entry.and_then(|entry| entry.client);
    let clock = clock.at(facts.began, client);
    match format {
        LogFormat::Json => write_json(facts, clock, out),
        LogFormat::Combined => write_combined(facts, clock, out),
        LogFormat::Template(pieces) => {
            for piece in pieces {
                match piece {
                    LogPiece::Text(text) => out.extend_from_slice(text.as_bytes()),
                    LogPiece::Field(field) => match value(field, facts, clock) {
                        Value::None => out.push(b'-'),
                        value => value.write(out, Escape::Plain),
                    },
                }
            }
        }
    }
    out.push(b'\n');
}

fn write_combined(facts: &Facts<'_>, clock: &Clock, out: &mut Vec<u8>) {
    let or_hyphen = |value: Value<'_>, out: &mut Vec<u8>| match value {
        Value::None => out.push(b'-'),
        value => value.write(out, Escape::Plain),
    };
    or_hyphen(value(&LogField::Client, facts, clock), out);
    out.extend_from_slice(b" - - [");
    out.extend_from_slice(clock.combined.as_bytes());
    out.extend_from_slice(b"] \"");
    match facts.entry.filter(|entry| entry.has_head()) {
        None => out.push(b'-'),
        Some(_) => {
            let parts = [LogField::Method, LogField::Target, LogField::Version];
            for (position, field) in parts.iter().enumerate() {
                if position > 0 {
                    out.push(b' ');
                }
                or_hyphen(value(field, facts, clock), out);
            }
        }
    }
    out.extend_from_slice(b"\" ");
    or_hyphen(value(&LogField::Status, facts, clock), out);
    out.push(b' ');
    or_hyphen(value(&LogField::Sent, facts, clock), out);
    for number in 0..2 {
        out.extend_from_slice(b" \"");
        or_hyphen(header(facts, number), out);
        out.push(b'"');
    }
}

fn write_json(facts: &Facts<'_>, clock: &Clock, out: &mut Vec<u8>) {
    out.push(b'{');
    let mut separator: &[u8] = b"\"";
    let mut field = |name: &str, value: Value<'_>| {
        if matches!(value, Value::None) {
            return;
        }
        out.extend_from_slice(separator);
        separator = b",\"";
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(b"\":");
        value.write(out, Escape::Json);
    };
    for (name, known) in LogField::all() {
        field(name, value(known, facts, clock));
    }
    for (number, name) in ["referer", "user_agent"].iter().enumerate() {
        field(name, header(facts, number));
    }
    out.push(b'}');
}

/// What stands for a field.
enum Value<'a> {
    None,
    /// Somebody else's.
    Foreign(&'a [u8]),
    /// Nothing in it needs an escape.
    Own(&'a str),
    Number(u64),
    Seconds(Duration),
    Moment(&'a Clock, Duration),
}

/// What cannot stand as it is, and how it is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Escape {
    /// As `\xHH`, as nginx does: controls, quotes, backslashes, and what is not ASCII.
    Plain,
    /// As in a string of JSON, which texts are.
    Json,
}

impl Value<'_> {
    fn write(self, out: &mut Vec<u8>, escape: Escape) {
        let is_text = !matches!(self, Value::Number(_) | Value::Seconds(_) | Value::None);
        if is_text && escape == Escape::Json {
            out.push(b'"');
        }
        match self {
            Value::None => {}
            Value::Foreign(bytes) => match escape {
                Escape::Plain => write_plain(bytes, out),
                Escape::Json => write_string(bytes, out),
            },
            Value::Own(text) => out.extend_from_slice(text.as_bytes()),
            Value::Number(number) => {
                let mut digits = itoa::Buffer::new();
                out.extend_from_slice(digits.format(number).as_bytes());
            }
            Value::Seconds(duration) => {
                let mut digits = itoa::Buffer::new();
                out.extend_from_slice(digits.format(duration.as_secs()).as_bytes());
                write_fraction(duration, out);
            }
            Value::Moment(clock, moment) => write_moment(clock, moment, out),
        }
        if is_text && escape == Escape::Json {
            out.push(b'"');
        }
    }
}

const HEX: &[u8; 16] = b"0123456789ABCDEF";

/// Whether nothing in it needs an escape, in any format: nearly always.
fn is_harmless(bytes: &[u8]) -> bool {
    // Without a way out in its middle it takes many bytes at a time.
    let harmful = bytes.iter().fold(false, |harmful, &byte| {
        harmful | !(0x20..=0x7e).contains(&byte) | (byte == b'"') | (byte == b'\\')
    });
    !harmful
}

fn write_plain(bytes: &[u8], out: &mut Vec<u8>) {
    if is_harmless(bytes) {
        out.extend_from_slice(bytes);
        return;
    }
    for &byte in bytes {
        match byte {
            b'"' | b'\\' | ..0x20 | 0x7f.. => {
                let (high, low) = (byte >> 4, byte & 15);
                out.extend_from_slice(&[
                    b'\\',
                    b'x',
                    HEX[usize::from(high)],
                    HEX[usize::from(low)],
                ]);
            }
            byte => out.push(byte),
        }
    }
}

/// What is no UTF-8 becomes U+FFFD.
fn write_string(bytes: &[u8], out: &mut Vec<u8>) {
    if is_harmless(bytes) {
        out.extend_from_slice(bytes);
        return;
    }
    for chunk in bytes.utf8_chunks() {
        for byte in chunk.valid().bytes() {
            match byte {
                b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
                ..0x20 | 0x7f => {
                    let (high, low) = (byte >> 4, byte & 15);
                    out.extend_from_slice(b"\\u00");
                    out.extend_from_slice(&[HEX[usize::from(high)], HEX[usize::from(low)]]);
                }
                byte => out.push(byte),
            }
        }
        if !chunk.invalid().is_empty() {
            out.extend_from_slice("\u{fffd}".as_bytes());
        }
    }
}

fn header<'a>(facts: &Facts<'a>, number: usize) -> Value<'a> {
    foreign(facts.entry.map_or(&[], |entry| entry.header(number)))
}

fn foreign(bytes: &[u8]) -> Value<'_> {
    match bytes {
        b"" => Value::None,
        bytes => Value::Foreign(bytes),
    }
}

fn own(text: Option<&str>) -> Value<'_> {
    text.map_or(Value::None, |text| Value::Foreign(text.as_bytes()))
}

fn value<'a>(field: &LogField, facts: &Facts<'a>, clock: &'a Clock) -> Value<'a> {
    let Facts {
        ended, entry, way, ..
    } = facts;
    let record = ended.record;
    let of_entry = |of: fn(&'a Entry) -> &'a [u8]| foreign(entry.map_or(&[], of));
    let seconds = |duration: Option<Duration>| duration.map_or(Value::None, Value::Seconds);
    let of_way = |of: fn(&'a Entry) -> Option<Duration>| seconds(entry.and_then(of));
    match field {
        LogField::Time => Value::Moment(clock, facts.began),
        LogField::Client => {
            // The clock has just been told of it.
            let client = entry
                .and_then(|entry| entry.client)
                .and(clock.client.as_ref());
            client.map_or(Value::None, |(_, text)| Value::Own(text))
        }
        LogField::Method => of_entry(Entry::method),
        LogField::Target => of_entry(Entry::target),
        LogField::Host => of_entry(Entry::host),
        LogField::Version => match entry
            .filter(|entry| entry.has_head())
            .map(|entry| entry.version)
        {
            None => Value::None,
            Some(Version::Http10) => Value::Own("HTTP/1.0"),
            Some(Version::Http11) => Value::Own("HTTP/1.1"),
        },
        LogField::Status => record
            .status()
            .map_or(Value::None, |status| Value::Number(status.into())),
        LogField::Sent => Value::Number(ended.sent),
        LogField::Duration => Value::Seconds(ended.duration),
        LogField::FirstByte => {
            let first = entry.and_then(|entry| entry.first_byte.get());
            // A response that was there at once has both in one.
            seconds(first.or(record.status().map(|_| ended.duration)))
        }
        LogField::Queued => of_way(|entry| entry.queued.get()),
        LogField::Connected => of_way(|entry| entry.connected.get()),
        LogField::Listener => own(Some(way.listener)),
        LogField::Route => own(way.route),
        LogField::Group => own(way.group),
        LogField::Server => foreign(facts.server.as_bytes()),
        LogField::Retries => Value::Number(record.retries().into()),
        LogField::End => Value::Own(match ended.end {
            End::Complete => "complete",
            End::GivenUp => "client left",
            End::Broken => "connection broke",
            End::CutOff => "server stopped",
        }),
        LogField::Failure => record
            .failure()
            .map_or(Value::None, |class| Value::Own(class.name())),
        LogField::Core => Value::Number(facts.core as u64),
        LogField::Header(name) => {
            let place = facts.headers.iter().position(|known| known == name);
            place.map_or(Value::None, |number| header(facts, number))
        }
    }
}
