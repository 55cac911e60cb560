//! Formatting of access log lines.

use std::mem;
use std::time::Duration;

use onrush_config::plan::{LogField, LogFormat, LogPiece};
use onrush_http::Version;
use onrush_http::trace_context::write_hexadecimal;

use super::clock::{Clock, write_fraction, write_moment};
use super::entry::{Entry, RoutingNames};
use super::escape::{Escape, write_escaped};
use crate::observe::record::RequestEnd;
use crate::observe::trace::span::Trace;
use crate::observe::traffic::EndedRequest;

/// Data of an ended request.
pub(super) struct LogRecord<'a> {
    pub(super) ended: EndedRequest<'a>,
    /// `None` if the input was not a request.
    pub(super) entry: Option<&'a Entry>,
    pub(super) way: RoutingNames<'a>,
    pub(super) trace: Option<&'a Trace>,
    pub(super) core: usize,
    /// The server it was last sent to, or an empty string.
    pub(super) server: &'a str,
    /// Start time since 1970.
    pub(super) began: Duration,
}

/// A compiled log format.
#[derive(Debug)]
pub(super) struct LineFormat {
    pieces: Vec<Piece>,
    /// Text after the last piece.
    end: &'static [u8],
    /// `end` after an unclosed JSON string.
    end_behind_string: &'static [u8],
}

/// One value, with the literal text before it.
#[derive(Debug)]
struct Piece {
    before: Vec<u8>,
    /// `before` after an unclosed JSON string.
    behind_string: Vec<u8>,
    what: FormatToken,
    value: Value,
    absent: Absent,
}

/// Encoding of a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Value {
    Plain,
    /// A JSON number.
    Number,
    /// A JSON string; the text after it closes it.
    String,
}

/// Output position of a value. The text before it is written only if there is a value.
struct Slot<'a> {
    before: &'a [u8],
    escape: Escape,
    out: &'a mut Vec<u8>,
}

impl<'a> Slot<'a> {
    /// Writes the preceding text and returns the buffer for the value.
    #[inline]
    fn open(self) -> &'a mut Vec<u8> {
        self.out.extend_from_slice(self.before);
        self.out
    }
}

/// Source of a value.
#[derive(Debug)]
enum FormatToken {
    Nothing,
    Field(LogField),
    /// The header field with this index in the entry.
    Header(usize),
    /// Time of the request head, in the combined format.
    CombinedTime,
    /// Method, target and version.
    RequestLine,
}

/// Output for a missing value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Absent {
    Hyphen,
    /// Omit the value and the text around it.
    Piece,
}

/// `None` if there was no value.
type Written = Option<()>;

impl LineFormat {
    /// Compiles a format; `headers` are the header fields in the entry.
    pub(super) fn new(format: &LogFormat, headers: &[String]) -> LineFormat {
        match format {
            LogFormat::Json => LineFormat::json(headers),
            LogFormat::Combined => LineFormat::combined(),
            LogFormat::Template(pieces) => LineFormat::template(pieces, headers),
        }
    }

    fn json(headers: &[String]) -> LineFormat {
        let known = LogField::all().iter();
        let known =
            known.map(|(name, field)| ((*name).to_owned(), FormatToken::Field(field.clone())));
        let headers = headers.iter().enumerate();
        let headers =
            headers.map(|(number, name)| (name.replace('-', "_"), FormatToken::Header(number)));
        let mut pieces: Vec<Piece> = Vec::new();
        for (name, what) in known.chain(headers) {
            let separator = if pieces.is_empty() { '{' } else { ',' };
            let is_text = what.is_text();
            let quote = if is_text { "\"" } else { "" };
            let before = format!("{separator}\"{name}\":{quote}");
            pieces.push(Piece {
                behind_string: format!("\"{before}").into_bytes(),
                before: before.into_bytes(),
                what,
                value: if is_text {
                    Value::String
                } else {
                    Value::Number
                },
                absent: Absent::Piece,
            });
        }
        LineFormat {
            pieces,
            end: b"}\n",
            end_behind_string: b"\"}\n",
        }
    }

    fn combined() -> LineFormat {
        let pieces = [
            ("", FormatToken::Field(LogField::Client)),
            (" - - [", FormatToken::CombinedTime),
            ("] \"", FormatToken::RequestLine),
            ("\" ", FormatToken::Field(LogField::Status)),
            (" ", FormatToken::Field(LogField::BodySent)),
            (" \"", FormatToken::Header(0)),
            ("\" \"", FormatToken::Header(1)),
        ];
        LineFormat {
            pieces: pieces
                .map(|(before, what)| Piece::plain(before.as_bytes().to_vec(), what))
                .into(),
            end: b"\"\n",
            end_behind_string: b"\"\n",
        }
    }

    fn template(parts: &[LogPiece], headers: &[String]) -> LineFormat {
        let mut pieces = Vec::new();
        let mut before = Vec::new();
        for part in parts {
            match part {
                LogPiece::Text(text) => before.extend_from_slice(text.as_bytes()),
                LogPiece::Field(field) => {
                    pieces.push(Piece::plain(
                        mem::take(&mut before),
                        FormatToken::of(field, headers),
                    ));
                }
            }
        }
        pieces.push(Piece::plain(before, FormatToken::Nothing));
        LineFormat {
            pieces,
            end: b"\n",
            end_behind_string: b"\n",
        }
    }

    /// Writes one line.
    pub(super) fn write(&self, facts: &LogRecord<'_>, clock: &mut Clock, out: &mut Vec<u8>) {
        let client = facts.entry.and_then(|entry| entry.client);
        let clock = clock.at(facts.began, client);
        let mut last = Value::Plain;
        for piece in &self.pieces {
            let slot = Slot {
                before: piece.before_behind(last),
                escape: piece.escape(),
                out,
            };
            if piece.what.write(facts, clock, slot).is_some() {
                last = piece.value;
            } else if piece.absent == Absent::Hyphen {
                out.extend_from_slice(piece.before_behind(last));
                out.push(b'-');
                last = Value::Plain;
            }
        }
        out.extend_from_slice(match last {
            Value::String => self.end_behind_string,
            Value::Plain | Value::Number => self.end,
        });
    }
}

impl Piece {
    fn plain(before: Vec<u8>, what: FormatToken) -> Piece {
        Piece {
            behind_string: Vec::new(),
            before,
            what,
            value: Value::Plain,
            absent: Absent::Hyphen,
        }
    }

    /// The text before this value, given the encoding of the previous value.
    #[inline]
    fn before_behind(&self, last: Value) -> &[u8] {
        match last {
            Value::String => &self.behind_string,
            Value::Plain | Value::Number => &self.before,
        }
    }

    fn escape(&self) -> Escape {
        match self.value {
            Value::Plain => Escape::Plain,
            Value::Number | Value::String => Escape::Json,
        }
    }
}

impl FormatToken {
    fn of(field: &LogField, headers: &[String]) -> FormatToken {
        let LogField::Header(name) = field else {
            return FormatToken::Field(field.clone());
        };
        let place = headers.iter().position(|known| known == name);
        FormatToken::Header(place.expect("what a template names is kept"))
    }

    /// Whether the value is a JSON string.
    fn is_text(&self) -> bool {
        !matches!(
            self,
            FormatToken::Field(
                LogField::Status
                    | LogField::Sent
                    | LogField::BodySent
                    | LogField::Duration
                    | LogField::FirstByte
                    | LogField::Queued
                    | LogField::Connected
                    | LogField::Retries
                    | LogField::Core
            )
        )
    }

    #[inline]
    fn write(&self, facts: &LogRecord<'_>, clock: &Clock, slot: Slot<'_>) -> Written {
        match self {
            FormatToken::Nothing => write_own("", slot),
            FormatToken::Field(field) => write_field(field, facts, clock, slot),
            FormatToken::Header(number) => write_foreign(facts.entry?.header(*number), slot),
            FormatToken::CombinedTime => write_own(clock.combined(), slot),
            FormatToken::RequestLine => {
                let entry = facts.entry.filter(|entry| entry.has_head())?;
                let escape = slot.escape;
                let out = slot.open();
                write_escaped(entry.method(), escape, out);
                out.push(b' ');
                write_escaped(entry.target(), escape, out);
                out.push(b' ');
                out.extend_from_slice(version(entry).as_bytes());
                Some(())
            }
        }
    }
}

#[inline]
fn write_field(field: &LogField, facts: &LogRecord<'_>, clock: &Clock, slot: Slot<'_>) -> Written {
    let LogRecord {
        ended, entry, way, ..
    } = facts;
    let record = ended.record;
    match field {
        LogField::Time => {
            write_moment(clock, facts.began, slot.open());
            Some(())
        }
        LogField::Client => {
            entry.as_ref()?.client?;
            // `Clock::at` has just cached it.
            write_own(clock.client()?, slot)
        }
        LogField::Method => write_foreign(entry.as_ref()?.method(), slot),
        LogField::Target => write_foreign(entry.as_ref()?.target(), slot),
        LogField::Host => write_foreign(entry.as_ref()?.host(), slot),
        LogField::Version => {
            let entry = entry.filter(|entry| entry.has_head())?;
            write_own(version(entry), slot)
        }
        LogField::Status => write_number(record.status()?.into(), slot),
        LogField::Sent => write_number(ended.sent, slot),
        LogField::BodySent => {
            let head = entry.map_or(0, |entry| entry.head_sent.get());
            write_number(ended.sent.saturating_sub(head), slot)
        }
        LogField::Duration => write_seconds(ended.duration, slot),
        LogField::FirstByte => {
            let first = entry.and_then(|entry| entry.first_byte.get());
            // A response completed in one turn has one time for first and last byte.
            write_seconds(first.or(record.status().map(|_| ended.duration))?, slot)
        }
        LogField::Queued => write_seconds(entry.as_ref()?.queued.get()?, slot),
        LogField::Connected => write_seconds(entry.as_ref()?.connected.get()?, slot),
        LogField::Listener => write_foreign(way.listener.as_bytes(), slot),
        LogField::Route => write_foreign(way.route?.as_bytes(), slot),
        LogField::Group => write_foreign(way.group?.as_bytes(), slot),
        LogField::Server => write_foreign(facts.server.as_bytes(), slot),
        LogField::Retries => write_number(record.retries().into(), slot),
        LogField::End => write_own(
            match ended.end {
                RequestEnd::Complete => "complete",
                RequestEnd::Partial => "cut off",
                RequestEnd::GivenUp => "client left",
                RequestEnd::Broken => "connection broke",
                RequestEnd::CutOff => "server stopped",
            },
            slot,
        ),
        LogField::Failure => write_own(record.failure()?.name(), slot),
        LogField::TraceId => write_hexadecimals(facts.trace?.trace_id().get(), 32, slot),
        LogField::SpanId => write_hexadecimals(facts.trace?.span_id().get().into(), 16, slot),
        LogField::Core => write_number(facts.core as u64, slot),
        LogField::Header(_) => unreachable!("a form has the places of fields"),
    }
}

fn version(entry: &Entry) -> &'static str {
    match entry.version {
        Version::Http10 => "HTTP/1.0",
        Version::Http11 => "HTTP/1.1",
        Version::Http2 => "HTTP/2.0",
    }
}

/// Writes text that needs no escapes.
fn write_own(text: &str, slot: Slot<'_>) -> Written {
    slot.open().extend_from_slice(text.as_bytes());
    Some(())
}

/// Writes untrusted text with escapes; an empty one counts as missing.
fn write_foreign(bytes: &[u8], slot: Slot<'_>) -> Written {
    if bytes.is_empty() {
        return None;
    }
    let escape = slot.escape;
    write_escaped(bytes, escape, slot.open());
    Some(())
}

fn write_number(number: u64, slot: Slot<'_>) -> Written {
    push_number(number, slot.open());
    Some(())
}

fn push_number(number: u64, out: &mut Vec<u8>) {
    let mut digits = itoa::Buffer::new();
    out.extend_from_slice(digits.format(number).as_bytes());
}

/// Writes a number with a fixed number of digits.
fn write_hexadecimals(number: u128, digits: usize, slot: Slot<'_>) -> Written {
    let mut text = [0; 32];
    write_hexadecimal(number, &mut text[..digits]);
    slot.open().extend_from_slice(&text[..digits]);
    Some(())
}

fn write_seconds(duration: Duration, slot: Slot<'_>) -> Written {
    let out = slot.open();
    push_number(duration.as_secs(), out);
    write_fraction(duration, out);
    Some(())
}
