//! Sending the content of a file after the response head: the whole file, ranges, or encoded.

use std::hash::{BuildHasher, RandomState};
use std::ops::Range;
use std::rc::Rc;
use std::time::Duration;

use onrush_engine::{Error, File, Kind};
use onrush_http::Method;

use super::entry::{Content, Entry};
use crate::exchange::downstream::Downstream;
use crate::exchange::encoding::Encoding;
use crate::exchange::reply::Reply;
use crate::limits::ENCODED_BYTES_PER_TURN;
use crate::worker::Worker;
use crate::worker::compress::Then;

/// The part of a large file still to be sent.
pub(crate) struct FileBody {
    pub(super) entry: Rc<Entry>,
    pub(super) what: What,
}

pub(super) enum What {
    Ranges(Ranges),
    /// The whole file, encoded while it is sent.
    Encoded(Encoding),
}

pub(super) enum Ranges {
    One(Range<u64>),
    Several(Vec<Range<u64>>, Boundary),
}

pub(super) fn content_range(range: &Range<u64>, entry: &Entry) -> String {
    let length = entry.metadata.length;
    format!("bytes {}-{}/{length}", range.start, range.end - 1)
}

/// Sends the content after the head: at once if it is in memory.
pub(super) fn send_ranges(
    entry: &Rc<Entry>,
    ranges: Ranges,
    reply: &mut Reply<'_>,
) -> Result<Option<Box<FileBody>>, Error> {
    if reply.method == Method::Head {
        return Ok(None);
    }
    if matches!(entry.content, Content::Open(_)) {
        let entry = Rc::clone(entry);
        let what = What::Ranges(ranges);
        return Ok(Some(Box::new(FileBody { entry, what })));
    }
    let worker = reply.worker;
    let mut put = |bytes: &[u8]| reply.data(bytes);
    entry.usual.with(worker, |_, body| {
        // A file in memory fits one buffer, and so does every range of it.
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

/// The boundary of a multipart body (RFC 2046 5.1.1).
pub(super) struct Boundary(pub(super) String);

impl Boundary {
    /// Random, so that no file can contain it on purpose.
    pub(super) fn new() -> Self {
        Self(format!("{:016x}", RandomState::new().hash_one(0)))
    }

    pub(super) fn part_head(&self, range: &Range<u64>, entry: &Entry) -> String {
        format!(
            "\r\n--{}\r\nContent-Type: {}\r\nContent-Range: {}\r\n\r\n",
            self.0,
            entry.media,
            content_range(range, entry)
        )
    }

    pub(super) fn end(&self) -> String {
        format!("\r\n--{}--\r\n", self.0)
    }
}

impl FileBody {
    /// Sends all written bytes, then the pieces.
    pub(crate) async fn send(&mut self, mut client: Downstream<'_>) -> Result<(), Error> {
        let patience = client.exchange.timeouts().client_send;
        let mut reply = client.split(Method::Get).1;
        let Self { entry, what } = self;
        let Content::Open(file) = &entry.content else {
            unreachable!("held content is sent with its head")
        };
        match what {
            What::Ranges(Ranges::One(range)) => {
                send_range(file, range, patience, &mut reply).await?;
            }
            What::Ranges(Ranges::Several(ranges, boundary)) => {
                for range in ranges.iter() {
                    reply.data(boundary.part_head(range, entry).as_bytes())?;
                    send_range(file, range, patience, &mut reply).await?;
                }
                reply.data(boundary.end().as_bytes())?;
            }
            What::Encoded(encoding) => {
                let length = entry.metadata.length;
                send_encoded((file, length), encoding, patience, &mut reply).await?;
            }
        }
        reply.end()
    }
}

async fn send_range(
    file: &File,
    range: &Range<u64>,
    patience: Duration,
    reply: &mut Reply<'_>,
) -> Result<(), Error> {
    let mut offset = range.start;
    while offset < range.end {
        match reply
            .file(file, (offset, range.end - offset), patience)
            .await
        {
            Ok(sent) => offset += sent,
            Err(error) => {
                log_short(&error, reply.worker);
                return Err(error);
            }
        }
        // On a plain connection, sending from a file counts as work of the turn already.
        if offset < range.end && reply.as_plain().is_none() {
            reply.worker.core.yield_now().await;
        }
    }
    Ok(())
}

async fn send_encoded(
    (file, length): (&File, u64),
    encoding: &mut Encoding,
    patience: Duration,
    reply: &mut Reply<'_>,
) -> Result<(), Error> {
    let worker = reply.worker;
    let mut offset = 0;
    let mut in_a_turn = 0;
    while offset < length {
        let mut buffer = worker.core.buffer()?;
        let piece = buffer.spare();
        let bytes = piece.len().min((length - offset) as usize);
        let piece = &mut piece[..bytes];
        file.read_exact(offset, piece)
            .inspect_err(|error| log_short(error, worker))?;
        encoding.write(piece, Then::More, reply)?;
        drop(buffer);
        offset += bytes as u64;
        in_a_turn += bytes;
        if in_a_turn >= ENCODED_BYTES_PER_TURN {
            in_a_turn = 0;
            // Send what is ready, or detect that the client disconnected, before doing more work.
            reply.flush(patience).await?;
            worker.core.yield_now().await;
        }
    }
    encoding.write(b"", Then::Finish, reply)
}

fn log_short(error: &Error, worker: &Worker) {
    if error.kind == Kind::FileTooShort {
        worker.log.failure(&worker.core, format_args!("{error}"));
    }
}
