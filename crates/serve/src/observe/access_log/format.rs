//! How a line is written.

use std::mem;
use std::time::Duration;

use onrush_config::plan::{LogField, LogFormat, LogPiece};
use onrush_http::Version;
use onrush_http::trace_context::write_hexadecimal;

use super::clock::{Clock, write_fraction, write_moment};
use super::entry::{Entry, Way};
use super::escape::{Escape, write_escaped};
use crate::observe::trace::span::Trace;
use crate::observe::traffic::Ended;
use crate::record::End;

/// What is known of a request that has ended.
pub(super) struct Facts<'a> {
    pub(super) ended: Ended<'a>,
    /// None of what was no request.
    pub(super) entry: Option<&'a Entry>,
    pub(super) way: Way<'a>,
    pub(super) trace: Option<&'a Trace>,
    pub(super) core: usize,
    /// Where it was sent last; empty for one that was sent nowhere.
    pub(super) server: &'a str,
    /// When it began, since 1970.
    pub(super) began: Duration,
}

/// How lines are written: made once of what was asked for.
#[derive(Debug)]
pub(super) struct Form {
    pieces: Vec<Piece>,
    /// Behind the last piece.
    end: &'static [u8],
}

/// One value with what stands around it.
#[derive(Debug)]
struct Piece {
    before: Vec<u8>,
    what: What,
    after: &'static [u8],
    escape: Escape,
    absent: Absent,
}

/// What stands for a request.
#[derive(Debug)]
enum What {
    Nothing,
    Field(LogField),
    /// The field with this place among those of the request that are kept.
    Header(usize),
    /// When its head had come, as the combined format has it.
    CombinedTime,
    /// Method, target and version.
    RequestLine,
}

/// What is written where there is no value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Absent {
    Hyphen,
    /// Nothing, and nothing of what would stand around it.
    Piece,
}

/// Whether there is a value, which is written then.
type Written = Option<()>;

impl Form {
    /// Of a format; `headers` are the fields of requests that are kept.
    pub(super) fn new(format: &LogFormat, headers: &[String]) -> Form {
        match format {
            LogFormat::Json => Form::json(headers),
            LogFormat::Combined => Form::combined(),
            LogFormat::Template(pieces) => Form::template(pieces, headers),
        }
    }

    fn json(headers: &[String]) -> Form {
        let known = LogField::all().iter();
        let known = known.map(|(name, field)| ((*name).to_owned(), What::Field(field.clone())));
        let headers = headers.iter().enumerate();
        let headers = headers.map(|(number, name)| (name.replace('-', "_"), What::Header(number)));
        let mut pieces: Vec<Piece> = Vec::new();
        for (name, what) in known.chain(headers) {
            let separator = if pieces.is_empty() { '{' } else { ',' };
            let quote = if what.is_text() { "\"" } else { "" };
            pieces.push(Piece {
                before: format!("{separator}\"{name}\":{quote}").into_bytes(),
                what,
                after: quote.as_bytes(),
                escape: Escape::Json,
                absent: Absent::Piece,
            });
        }
        Form {
            pieces,
            end: b"}\n",
        }
    }

    fn combined() -> Form {
        let pieces = [
            ("", What::Field(LogField::Client)),
            (" - - [", What::CombinedTime),
            ("] \"", What::RequestLine),
            ("\" ", What::Field(LogField::Status)),
            (" ", What::Field(LogField::Sent)),
            (" \"", What::Header(0)),
            ("\" \"", What::Header(1)),
        ];
        Form {
            pieces: pieces
                .map(|(before, what)| Piece::plain(before.as_bytes().to_vec(), what))
                .into(),
            end: b"\"\n",
        }
    }

    fn template(parts: &[LogPiece], headers: &[String]) -> Form {
        let mut pieces = Vec::new();
        let mut before = Vec::new();
        for part in parts {
            match part {
                LogPiece::Text(text) => before.extend_from_slice(text.as_bytes()),
                LogPiece::Field(field) => {
                    pieces.push(Piece::plain(
                        mem::take(&mut before),
                        What::of(field, headers),
                    ));
                }
            }
        }
        pieces.push(Piece::plain(before, What::Nothing));
        Form { pieces, end: b"\n" }
    }

    /// Writes a line with its end.
    pub(super) fn write(&self, facts: &Facts<'_>, clock: &mut Clock, out: &mut Vec<u8>) {
        let client = facts.entry.and_then(|entry| entry.client);
        let clock = clock.at(facts.began, client);
        for piece in &self.pieces {
            let start = out.len();
            out.extend_from_slice(&piece.before);
            if piece.what.write(facts, clock, piece.escape, out).is_none() {
                match piece.absent {
                    Absent::Hyphen => out.push(b'-'),
                    Absent::Piece => {
                        out.truncate(start);
                        continue;
                    }
                }
            }
            out.extend_from_slice(piece.after);
        }
        out.extend_from_slice(self.end);
    }
}

impl Piece {
    fn plain(before: Vec<u8>, what: What) -> Piece {
        Piece {
            before,
            what,
            after: b"",
            escape: Escape::Plain,
            absent: Absent::Hyphen,
        }
    }
}

impl What {
    fn of(field: &LogField, headers: &[String]) -> What {
        let LogField::Header(name) = field else {
            return What::Field(field.clone());
        };
        let place = headers.iter().position(|known| known == name);
        What::Header(place.expect("what a template names is kept"))
    }

    /// Whether its value is a string of JSON.
    fn is_text(&self) -> bool {
        !matches!(
            self,
            What::Field(
                LogField::Status
                    | LogField::Sent
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
    fn write(
        &self,
        facts: &Facts<'_>,
        clock: &Clock,
        escape: Escape,
        out: &mut Vec<u8>,
    ) -> Written {
        match self {
            What::Nothing => Some(()),
            What::Field(field) => write_field(field, facts, clock, escape, out),
            What::Header(number) => write_foreign(facts.entry?.header(*number), escape, out),
            What::CombinedTime => write_own(clock.combined(), out),
            What::RequestLine => {
                let entry = facts.entry.filter(|entry| entry.has_head())?;
                write_foreign(entry.method(), escape, out);
                out.push(b' ');
                write_foreign(entry.target(), escape, out);
                out.push(b' ');
                write_own(version(entry), out)
            }
        }
    }
}

#[inline]
fn write_field(
    field: &LogField,
    facts: &Facts<'_>,
    clock: &Clock,
    escape: Escape,
    out: &mut Vec<u8>,
) -> Written {
    let Facts {
        ended, entry, way, ..
    } = facts;
    let record = ended.record;
    match field {
        LogField::Time => {
            write_moment(clock, facts.began, out);
            Some(())
        }
        LogField::Client => {
            entry.as_ref()?.client?;
            // The clock has just been told of it.
            write_own(clock.client()?, out)
        }
        LogField::Method => write_foreign(entry.as_ref()?.method(), escape, out),
        LogField::Target => write_foreign(entry.as_ref()?.target(), escape, out),
        LogField::Host => write_foreign(entry.as_ref()?.host(), escape, out),
        LogField::Version => {
            let entry = entry.filter(|entry| entry.has_head())?;
            write_own(version(entry), out)
        }
        LogField::Status => write_number(record.status()?.into(), out),
        LogField::Sent => write_number(ended.sent, out),
        LogField::Duration => write_seconds(ended.duration, out),
        LogField::FirstByte => {
            let first = entry.and_then(|entry| entry.first_byte.get());
            // A response that was there at once has both in one.
            write_seconds(first.or(record.status().map(|_| ended.duration))?, out)
        }
        LogField::Queued => write_seconds(entry.as_ref()?.queued.get()?, out),
        LogField::Connected => write_seconds(entry.as_ref()?.connected.get()?, out),
        LogField::Listener => write_foreign(way.listener.as_bytes(), escape, out),
        LogField::Route => write_foreign(way.route?.as_bytes(), escape, out),
        LogField::Group => write_foreign(way.group?.as_bytes(), escape, out),
        LogField::Server => write_foreign(facts.server.as_bytes(), escape, out),
        LogField::Retries => write_number(record.retries().into(), out),
        LogField::End => write_own(
            match ended.end {
                End::Complete => "complete",
                End::GivenUp => "client left",
                End::Broken => "connection broke",
                End::CutOff => "server stopped",
            },
            out,
        ),
        LogField::Failure => write_own(record.failure()?.name(), out),
        LogField::TraceId => write_hexadecimals(facts.trace?.trace_id().get(), 32, out),
        LogField::SpanId => write_hexadecimals(facts.trace?.span_id().get().into(), 16, out),
        LogField::Core => write_number(facts.core as u64, out),
        LogField::Header(_) => unreachable!("a form has the places of fields"),
    }
}

fn version(entry: &Entry) -> &'static str {
    match entry.version {
        Version::Http10 => "HTTP/1.0",
        Version::Http11 => "HTTP/1.1",
    }
}

/// Nothing in it needs an escape.
fn write_own(text: &str, out: &mut Vec<u8>) -> Written {
    out.extend_from_slice(text.as_bytes());
    Some(())
}

/// Somebody else's text; there is none where it is empty.
fn write_foreign(bytes: &[u8], escape: Escape, out: &mut Vec<u8>) -> Written {
    if bytes.is_empty() {
        return None;
    }
    write_escaped(bytes, escape, out);
    Some(())
}

fn write_number(number: u64, out: &mut Vec<u8>) -> Written {
    let mut digits = itoa::Buffer::new();
    out.extend_from_slice(digits.format(number).as_bytes());
    Some(())
}

/// A number with so many digits.
fn write_hexadecimals(number: u128, digits: usize, out: &mut Vec<u8>) -> Written {
    let mut text = [0; 32];
    write_hexadecimal(number, &mut text[..digits]);
    out.extend_from_slice(&text[..digits]);
    Some(())
}

fn write_seconds(duration: Duration, out: &mut Vec<u8>) -> Written {
    write_number(duration.as_secs(), out);
    write_fraction(duration, out);
    Some(())
}
