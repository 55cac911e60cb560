//! Files beneath a directory: which file a path means, and the answer made of it. There are no listings.

mod cache;
mod condition;
mod form;
mod media;
mod range;

use std::borrow::Cow;
use std::hash::{BuildHasher, RandomState};
use std::ops::Range;
use std::rc::Rc;

use onrush_config::plan;
use onrush_engine::{Error, File, Kind, Root};
use onrush_http::Method;
use onrush_http::request::RequestHead;
use onrush_http::write::{CHUNK_END, HeadWriter};

use super::refuse::refuse;
use super::{Context, Writer};
use crate::compress::{Encoding, Offer, Then, head as change};
use crate::connection::Connection;
use crate::limits::ENCODED_BYTES_PER_TURN;
use crate::worker::Worker;

use cache::{Cache, Content, Entry, Missing};
use condition::Verdict;
use form::Forms;
use range::Wanted;

/// The files of one route.
pub(crate) struct Files {
    cache: Rc<Cache>,
    /// Whether names that begin with a dot are served.
    hidden: bool,
    /// What is offered beside the files as they are.
    forms: Option<Box<Forms>>,
}

/// What of a large file has to be sent behind its head.
pub(crate) struct Pieces {
    entry: Rc<Entry>,
    what: What,
}

enum What {
    Ranges(Ranges),
    /// All of it, encoded on its way.
    Encoded(Encoding),
}

enum Ranges {
    One(Range<u64>),
    Several(Vec<Range<u64>>, Boundary),
}

/// Whether the same request could have got another form of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Varies {
    No,
    ByEncoding,
}

/// The fields that say what is allowed, for 405 and OPTIONS.
const ALLOW: (&str, &str) = ("Allow", "GET, HEAD, OPTIONS");

impl Files {
    pub(crate) fn new(
        root: Root,
        index: &[String],
        hidden: bool,
        precompressed: &[plan::Coding],
        offer: Option<Rc<Offer>>,
    ) -> Self {
        Self {
            cache: Cache::new(root, index),
            hidden,
            forms: Forms::new(precompressed, offer),
        }
    }

    /// Keeps no more than so many files open while nobody is sent them.
    pub(crate) fn keep_open(&self, max: usize) {
        self.cache.keep_open(max);
    }

    /// Closes files that nobody is sent; whether there were any.
    pub(crate) fn give_up_open(&self) -> bool {
        self.cache.give_up_open()
    }

    /// Answers with the file at `path`, the part of the request's path that the route leaves. What is left to send of a
    /// large file is returned.
    #[inline]
    pub(crate) fn answer(
        &self,
        head: &RequestHead<'_, '_>,
        path: &[u8],
        context: Context,
        writer: &mut Writer<'_>,
    ) -> Result<Option<Box<Pieces>>, Error> {
        if self.forms.is_none()
            && context.method == Method::Get
            && context.is_usual()
            && condition::are_absent(head.headers)
            && let path = path.strip_prefix(b"/").unwrap_or(path)
            && let Some(entry) = self.cache.fresh(path, writer.worker.core.now())
            && matches!(entry.content, Content::Held)
            && (!path.is_empty() || head.path.ends_with('/'))
        {
            writer.rendered(200, &entry.usual)?;
            return Ok(None);
        }
        self.answer_unusual(head, path, context, writer)
    }

    fn answer_unusual(
        &self,
        head: &RequestHead<'_, '_>,
        path: &[u8],
        context: Context,
        writer: &mut Writer<'_>,
    ) -> Result<Option<Box<Pieces>>, Error> {
        match context.method {
            Method::Get | Method::Head => {}
            Method::Options => {
                writer.head(204, context, |head| {
                    head.header(ALLOW.0, ALLOW.1.as_bytes());
                })?;
                return Ok(None);
            }
            _ => {
                let reason = "files can only be read";
                refuse(405, reason, &[ALLOW], context, writer)?;
                return Ok(None);
            }
        }
        let path = without_empty_segments(path);
        match self.find(head, &path, writer) {
            Ok(entry) => match &self.forms {
                None => answer_entry(&entry, Varies::No, head, context, writer),
                Some(forms) => forms.answer((&self.cache, &path, &entry), head, context, writer),
            },
            Err(missing) => {
                refuse_missing(missing, head, context, writer)?;
                Ok(None)
            }
        }
    }

    fn find(
        &self,
        head: &RequestHead<'_, '_>,
        path: &[u8],
        writer: &Writer<'_>,
    ) -> Result<Rc<Entry>, Missing> {
        if path.split(|&byte| byte == b'/').any(is_dot_segment) || (!self.hidden && is_hidden(path))
        {
            return Err(Missing::NotFound);
        }
        // The route's prefix, named without its slash, is this directory.
        if path.is_empty() && !head.path.ends_with('/') {
            return Err(Missing::Directory);
        }
        self.cache.find(path, &writer.worker.core)
    }
}

/// Without slashes at the start and twice in a row: the kernel would not see them either, and each file is to have one
/// name here.
fn without_empty_segments(path: &[u8]) -> Cow<'_, [u8]> {
    let path = path.strip_prefix(b"/").unwrap_or(path);
    if !path.starts_with(b"/") && memchr::memmem::find(path, b"//").is_none() {
        return Cow::Borrowed(path);
    }
    let mut kept = Vec::with_capacity(path.len());
    for &byte in path {
        if byte != b'/' || !(kept.is_empty() || kept.ends_with(b"/")) {
            kept.push(byte);
        }
    }
    Cow::Owned(kept)
}

/// A prefix without a slash at its end can leave these behind: `/p` of `/p..`.
fn is_dot_segment(segment: &[u8]) -> bool {
    segment == b"." || segment == b".."
}

/// Whether a segment begins with a dot. `.well-known` at the top is made to be found (RFC 8615): certificates are
/// issued on what lies there.
fn is_hidden(path: &[u8]) -> bool {
    let visible = path.strip_prefix(b".well-known/").unwrap_or(path);
    visible
        .split(|&byte| byte == b'/')
        .any(|segment| segment.starts_with(b"."))
}

fn answer_entry(
    entry: &Rc<Entry>,
    varies: Varies,
    head: &RequestHead<'_, '_>,
    context: Context,
    writer: &mut Writer<'_>,
) -> Result<Option<Box<Pieces>>, Error> {
    match condition::judge(head.headers, entry.validators()) {
        Verdict::Holds => {}
        Verdict::NotModified => {
            writer.head(304, context, |head| write_validators(head, entry, varies))?;
            return Ok(None);
        }
        Verdict::Failed => {
            answer_failed_condition(context, writer)?;
            return Ok(None);
        }
    }
    match wanted(entry, head, writer) {
        Wanted::Whole => answer_whole(entry, varies, context, writer),
        Wanted::One(range) => answer_range(entry, varies, range, context, writer),
        Wanted::Several(ranges) => answer_ranges(entry, varies, ranges, context, writer),
        Wanted::Nothing => {
            let range = format!("bytes */{}", entry.metadata.length);
            let fields = [("Content-Range", range.as_str())];
            refuse(416, "the file ends before", &fields, context, writer)?;
            Ok(None)
        }
    }
}

fn answer_failed_condition(context: Context, writer: &mut Writer<'_>) -> Result<(), Error> {
    let reason = "the file is another version than the request expects";
    refuse(412, reason, &[], context, writer)
}

fn write_validators(head: &mut HeadWriter<'_>, entry: &Entry, varies: Varies) {
    entry.write_validators(head);
    if varies == Varies::ByEncoding {
        head.raw(change::VARY);
    }
}

/// What of the file the request is for. A range has a meaning for GET only (RFC 9110 14.2).
fn wanted(entry: &Entry, head: &RequestHead<'_, '_>, writer: &Writer<'_>) -> Wanted {
    let range = condition::field(head.headers, "range").filter(|_| head.method == Method::Get);
    let Some(range) = range else {
        return Wanted::Whole;
    };
    let now = writer.worker.core.unix_seconds();
    if !condition::admits_ranges(head.headers, entry.validators(), now) {
        return Wanted::Whole;
    }
    Wanted::of(range, entry.metadata.length)
}

fn answer_whole(
    entry: &Rc<Entry>,
    varies: Varies,
    context: Context,
    writer: &mut Writer<'_>,
) -> Result<Option<Box<Pieces>>, Error> {
    let length = entry.metadata.length;
    writer.head(200, context, |head| {
        head.header("Content-Type", entry.media.as_bytes())
            .content_length(length);
        write_validators(head, entry, varies);
    })?;
    send_ranges(entry, Ranges::One(0..length), context, writer)
}

fn answer_range(
    entry: &Rc<Entry>,
    varies: Varies,
    range: Range<u64>,
    context: Context,
    writer: &mut Writer<'_>,
) -> Result<Option<Box<Pieces>>, Error> {
    let content_range = content_range(&range, entry);
    writer.head(206, context, |head| {
        head.header("Content-Type", entry.media.as_bytes())
            .header("Content-Range", content_range.as_bytes())
            .content_length(range.end - range.start);
        write_validators(head, entry, varies);
    })?;
    send_ranges(entry, Ranges::One(range), context, writer)
}

fn answer_ranges(
    entry: &Rc<Entry>,
    varies: Varies,
    ranges: Vec<Range<u64>>,
    context: Context,
    writer: &mut Writer<'_>,
) -> Result<Option<Box<Pieces>>, Error> {
    let boundary = Boundary::new();
    let parts = ranges
        .iter()
        .map(|range| boundary.part_head(range, entry).len() as u64 + (range.end - range.start));
    let length = parts.sum::<u64>() + boundary.end().len() as u64;
    let media = format!("multipart/byteranges; boundary={}", boundary.0);
    writer.head(206, context, |head| {
        head.header("Content-Type", media.as_bytes())
            .content_length(length);
        write_validators(head, entry, varies);
    })?;
    send_ranges(entry, Ranges::Several(ranges, boundary), context, writer)
}

fn content_range(range: &Range<u64>, entry: &Entry) -> String {
    let length = entry.metadata.length;
    format!("bytes {}-{}/{length}", range.start, range.end - 1)
}

/// Sends the content behind its head: at once when it is held.
fn send_ranges(
    entry: &Rc<Entry>,
    ranges: Ranges,
    context: Context,
    writer: &mut Writer<'_>,
) -> Result<Option<Box<Pieces>>, Error> {
    if context.method == Method::Head {
        return Ok(None);
    }
    if matches!(entry.content, Content::Open(_)) {
        let entry = Rc::clone(entry);
        let what = What::Ranges(ranges);
        return Ok(Some(Box::new(Pieces { entry, what })));
    }
    let mut put = |bytes: &[u8]| writer.output.put(writer.stream, bytes);
    entry.usual.with(writer.worker, |_, body| {
        // A held file is shorter than a buffer, and so is every range of it.
        let bytes = |range: &Range<u64>| &body[range.start as usize..range.end as usize];
        match &ranges {
            Ranges::One(range) => put(bytes(range)),
            Ranges::Several(ranges, boundary) => {
                for range in ranges {
                    put(boundary.part_head(range, entry).as_bytes())?;
                    put(bytes(range))?;
                }
                put(boundary.end().as_bytes())
            }
        }
    })?;
    Ok(None)
}

/// What separates the parts of a multipart body (RFC 2046 5.1.1).
struct Boundary(String);

impl Boundary {
    /// Random, so that no file can contain it on purpose.
    fn new() -> Self {
        Self(format!("{:016x}", RandomState::new().hash_one(0)))
    }

    fn part_head(&self, range: &Range<u64>, entry: &Entry) -> String {
        format!(
            "\r\n--{}\r\nContent-Type: {}\r\nContent-Range: {}\r\n\r\n",
            self.0,
            entry.media,
            content_range(range, entry)
        )
    }

    fn end(&self) -> String {
        format!("\r\n--{}--\r\n", self.0)
    }
}

impl Pieces {
    /// Sends what stands in the output and the pieces behind it.
    pub(crate) async fn send(&mut self, connection: &mut Connection) -> Result<(), Error> {
        let Self { entry, what } = self;
        let Content::Open(file) = &entry.content else {
            unreachable!("held content is sent with its head")
        };
        match what {
            What::Ranges(Ranges::One(range)) => send_range(file, range, connection).await,
            What::Ranges(Ranges::Several(ranges, boundary)) => {
                for range in ranges.iter() {
                    let head = boundary.part_head(range, entry);
                    connection.output.put(&connection.stream, head.as_bytes())?;
                    send_range(file, range, connection).await?;
                }
                let end = boundary.end();
                connection.output.put(&connection.stream, end.as_bytes())
            }
            What::Encoded(encoding) => {
                send_encoded(file, entry.metadata.length, encoding, connection).await
            }
        }
    }
}

/// As long as the client takes bytes, however slowly, its time starts anew with each of them.
async fn send_range(
    file: &File,
    range: &Range<u64>,
    connection: &mut Connection,
) -> Result<(), Error> {
    let Connection {
        stream,
        service,
        exchange,
        output,
        ..
    } = connection;
    let worker = &service.worker;
    let patience = exchange.site().timeouts.client_send;
    let mut offset = range.start;
    while offset < range.end {
        stream.set_deadline(Some(worker.core.now() + patience));
        let left = range.end - offset;
        match output.flush_file(stream, file, offset, left).await {
            Ok(sent) => offset += sent,
            Err(error) => {
                log_short(&error, worker);
                return Err(error);
            }
        }
        if offset < range.end {
            worker.core.pause().await;
        }
    }
    Ok(())
}

/// Sends the first `length` bytes encoded, in chunks.
async fn send_encoded(
    file: &File,
    length: u64,
    encoding: &mut Encoding,
    connection: &mut Connection,
) -> Result<(), Error> {
    let mut offset = 0;
    let mut in_a_turn = 0;
    while offset < length {
        let worker = &connection.service.worker;
        let mut buffer = worker.core.buffer()?;
        let piece = buffer.spare();
        let bytes = piece.len().min((length - offset) as usize);
        let piece = &mut piece[..bytes];
        file.read_exact(offset, piece)
            .inspect_err(|error| log_short(error, worker))?;
        encoding.write(
            piece,
            Then::More,
            &mut connection.output,
            &connection.stream,
        )?;
        drop(buffer);
        offset += bytes as u64;
        in_a_turn += bytes;
        if in_a_turn >= ENCODED_BYTES_PER_TURN {
            in_a_turn = 0;
            // The client gets what there is, or is found to be gone, before more is spent on it.
            connection.flush().await?;
            connection.worker().core.pause().await;
        }
    }
    let Connection { stream, output, .. } = connection;
    encoding.finish(output, stream)?;
    output.put(stream, CHUNK_END)
}

fn log_short(error: &Error, worker: &Worker) {
    if error.kind == Kind::FileTooShort {
        worker.log.failure(&worker.core, format_args!("{error}"));
    }
}

/// Answers a request for what cannot be sent.
fn refuse_missing(
    missing: Missing,
    head: &RequestHead<'_, '_>,
    context: Context,
    writer: &mut Writer<'_>,
) -> Result<(), Error> {
    let worker = writer.worker;
    let log = |why: &dyn std::fmt::Display| {
        let path = head.path;
        worker
            .log
            .failure(&worker.core, format_args!("the file for {path}: {why}"));
    };
    match missing {
        Missing::NotFound => refuse(404, "", &[], context, writer),
        Missing::Outside => {
            log(&"a symbolic link leads out of the directory that is served");
            refuse(404, "", &[], context, writer)
        }
        Missing::Directory => {
            let location = with_slash(head);
            if location.len() > LOCATION_MAX {
                return refuse(
                    414,
                    "the path is too long to be redirected",
                    &[],
                    context,
                    writer,
                );
            }
            refuse(301, "", &[("Location", &location)], context, writer)
        }
        Missing::NoIndex => {
            let reason = "this directory has no index file, and there are no listings";
            refuse(403, reason, &[], context, writer)
        }
        Missing::Forbidden => refuse(403, "", &[], context, writer),
        Missing::Busy(error) => {
            let what_to_do = match error.is_out_of_descriptors() {
                true => "; raise the limit on open files (ulimit -n)",
                false => "",
            };
            log(&format_args!("{error}{what_to_do}"));
            refuse(503, "", &[("Retry-After", "1")], context, writer)
        }
        Missing::Broken(error) => {
            log(&error);
            refuse(500, "the file cannot be read", &[], context, writer)
        }
    }
}

/// Backslashes grow threefold by their encoding; with the rest of a head this fits `HEAD_BYTES_MAX`.
const LOCATION_MAX: usize = 10 * 1024;

/// The request's own path with a slash behind it. Two slashes (or what browsers take for one) at the start would name
/// another host.
fn with_slash(head: &RequestHead<'_, '_>) -> String {
    let path = head.path.trim_start_matches('/').replace('\\', "%5C");
    match head.query {
        Some(query) => format!("/{path}/?{query}"),
        None => format!("/{path}/"),
    }
}

#[cfg(test)]
mod tests;
