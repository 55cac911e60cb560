//! The head of a synthetic response.

use std::time::Duration;

use onrush_engine::Error;
use onrush_http::{Method, Version};

use super::query::{Announced, Query};
use crate::exchange::reply::Reply;
use crate::exchange::reply::fields::{BodyLength, Fields};

/// Facts about the request that are needed after its head is released.
#[derive(Clone, Copy)]
pub(super) struct Request {
    pub(super) method: Method,
    pub(super) version: Version,
    /// Length of its head.
    pub(super) bytes: usize,
    pub(super) has_body: bool,
    pub(super) expects_continue: bool,
    pub(super) etag: Option<u64>,
}

impl Request {
    /// Whether the body is chunked; HTTP/1.0 has no chunks.
    pub(super) fn gets_chunks(&self, query: &Query) -> bool {
        query.chunked && self.version == Version::Http11 && query.has_body()
    }
}

impl Query {
    /// Whether a response with this status has a body and a length (RFC 9110 6.4.1, 15.3.6).
    pub(super) fn has_body(&self) -> bool {
        !matches!(self.status, 204 | 205 | 304)
    }
}

/// Writes the head; `waited` is the actual delay of the response.
pub(super) fn write_head(
    query: &Query,
    request: &Request,
    waited: Duration,
    reply: &mut Reply<'_>,
) -> Result<(), Error> {
    reply.head(query.status, |head| {
        write_length(query, request, head);
        if !query.cacheable {
            head.lines(b"Cache-Control: no-cache\r\n");
        }
        if let Some(etag) = request.etag {
            head.header("ETag", format!("\"{etag:x}\"").as_bytes());
        }
        if query.verbose {
            write_report(query, request, waited, head);
        }
    })
}

fn write_length(query: &Query, request: &Request, head: &mut Fields<'_>) {
    if !query.has_body() {
        // Among these, only 205 may and must announce a length (RFC 9110 15.3.6).
        if query.status == 205 {
            head.length(BodyLength::Known(0));
        }
        return;
    }
    if query.size > 0 {
        let media: &[u8] = match query.random {
            true => b"application/octet-stream",
            false => b"text/plain",
        };
        head.header("Content-Type", media);
    }
    if request.gets_chunks(query) {
        head.length(BodyLength::Unknown);
        return;
    }
    match query.announced {
        Announced::Truth => {
            head.length(BodyLength::Known(query.size));
        }
        Announced::Different(length) => {
            head.length(BodyLength::Known(length));
        }
        Announced::Nothing => {}
    }
}

/// Writes `X-req` about the request and `X-rsp` about the response in httpterm's format. The time that the request head
/// took to arrive is not measured: it nearly always arrives in one packet.
fn write_report(query: &Query, request: &Request, waited: Duration, head: &mut Fields<'_>) {
    let mut digits = [(); 6].map(|()| itoa::Buffer::new());
    let [bytes, code, cache, size, wait, real] = &mut digits;
    let chunked: &[u8] = match request.gets_chunks(query) {
        true => b", chunked",
        false => b"",
    };
    head.header_of(
        "X-req",
        &[
            b"size=",
            bytes.format(request.bytes as u64).as_bytes(),
            b", time=0 ms",
        ],
    );
    head.header_of(
        "X-rsp",
        &[
            b"id=onrush, code=",
            code.format(query.status).as_bytes(),
            b", cache=",
            cache.format(u64::from(query.cacheable)).as_bytes(),
            chunked,
            b", size=",
            size.format(query.size).as_bytes(),
            b", time=",
            wait.format(query.wait.as_millis() as u64).as_bytes(),
            b" ms (",
            real.format(waited.as_millis() as u64).as_bytes(),
            b" real)",
        ],
    );
}
