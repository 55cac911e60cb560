//! Responses with the unencoded file, evaluating preconditions and ranges.

use std::ops::Range;
use std::rc::Rc;

use onrush_engine::Error;
use onrush_http::Method;
use onrush_http::request::RequestHead;

use super::condition::{self, PreconditionResult};
use super::entry::Entry;
use super::file_body::{Boundary, FileBody, Ranges, content_range, send_ranges};
use super::range::RangeSelection;
use crate::exchange::refuse::refuse;
use crate::exchange::reply::Reply;
use crate::exchange::reply::fields::{BodyLength, Fields};
use crate::rules::compress::VARY;
use crate::rules::error_page::ErrorFormat;

/// Whether the response depends on `Accept-Encoding`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Varies {
    No,
    ByEncoding,
}

/// Responds with the file or the requested parts.
pub(super) fn respond_with_entry(
    entry: &Rc<Entry>,
    varies: Varies,
    head: &RequestHead<'_, '_>,
    reply: &mut Reply<'_>,
) -> Result<Option<Box<FileBody>>, Error> {
    match condition::evaluate(head.headers, entry.validators()) {
        PreconditionResult::Holds => {}
        PreconditionResult::NotModified => {
            reply.head_of_type(304, &entry.media, |head| {
                write_validators(head, entry, varies);
            })?;
            return Ok(None);
        }
        PreconditionResult::Failed => {
            respond_to_failed_condition(head, reply)?;
            return Ok(None);
        }
    }
    match wanted(entry, head, reply) {
        RangeSelection::Whole => respond_whole(entry, varies, reply),
        RangeSelection::One(range) => respond_with_range(entry, varies, range, reply),
        RangeSelection::Several(ranges) => respond_with_ranges(entry, varies, ranges, reply),
        RangeSelection::Nothing => {
            let range = format!("bytes */{}", entry.metadata.length);
            let fields = [("Content-Range", range.as_str())];
            let form = ErrorFormat::of(head.headers);
            refuse((416, "the file ends before"), &fields, form, reply)?;
            Ok(None)
        }
    }
}

pub(super) fn respond_to_failed_condition(
    head: &RequestHead<'_, '_>,
    reply: &mut Reply<'_>,
) -> Result<(), Error> {
    let reason = "the file is another version than the request expects";
    refuse((412, reason), &[], ErrorFormat::of(head.headers), reply)
}

fn write_validators(head: &mut Fields<'_>, entry: &Entry, varies: Varies) {
    entry.write_validators(head);
    if varies == Varies::ByEncoding {
        head.lines(VARY);
    }
}

/// The requested part of the file. Ranges apply to GET only (RFC 9110 14.2).
fn wanted(entry: &Entry, head: &RequestHead<'_, '_>, reply: &Reply<'_>) -> RangeSelection {
    let range = condition::field(head.headers, "range").filter(|_| head.method == Method::Get);
    let Some(range) = range else {
        return RangeSelection::Whole;
    };
    let now = reply.worker.core.unix_seconds();
    if !condition::admits_ranges(head.headers, entry.validators(), now) {
        return RangeSelection::Whole;
    }
    RangeSelection::of(range, entry.metadata.length)
}

fn respond_whole(
    entry: &Rc<Entry>,
    varies: Varies,
    reply: &mut Reply<'_>,
) -> Result<Option<Box<FileBody>>, Error> {
    let length = entry.metadata.length;
    reply.head(200, |head| {
        head.header("Content-Type", entry.media.as_bytes())
            .length(BodyLength::Known(length));
        write_validators(head, entry, varies);
    })?;
    send_ranges(entry, Ranges::One(0..length), reply)
}

fn respond_with_range(
    entry: &Rc<Entry>,
    varies: Varies,
    range: Range<u64>,
    reply: &mut Reply<'_>,
) -> Result<Option<Box<FileBody>>, Error> {
    let content_range = content_range(&range, entry);
    reply.head(206, |head| {
        head.header("Content-Type", entry.media.as_bytes())
            .header("Content-Range", content_range.as_bytes())
            .length(BodyLength::Known(range.end - range.start));
        write_validators(head, entry, varies);
    })?;
    send_ranges(entry, Ranges::One(range), reply)
}

fn respond_with_ranges(
    entry: &Rc<Entry>,
    varies: Varies,
    ranges: Vec<Range<u64>>,
    reply: &mut Reply<'_>,
) -> Result<Option<Box<FileBody>>, Error> {
    let boundary = Boundary::new();
    let parts = ranges
        .iter()
        .map(|range| boundary.part_head(range, entry).len() as u64 + (range.end - range.start));
    let length = parts.sum::<u64>() + boundary.end().len() as u64;
    let media = format!("multipart/byteranges; boundary={}", boundary.0);
    reply.head_of_type(206, &entry.media, |head| {
        head.header("Content-Type", media.as_bytes())
            .length(BodyLength::Known(length));
        write_validators(head, entry, varies);
    })?;
    send_ranges(entry, Ranges::Several(ranges, boundary), reply)
}
