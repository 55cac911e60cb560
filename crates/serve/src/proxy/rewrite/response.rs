//! Writes the head of a server's response for the client.

use onrush_engine::BUFFER_BYTES;
use onrush_http::http2::hpack::Sensitivity;
use onrush_http::response::ResponseHead;
use onrush_http::{Version, header_is};

use super::end_to_end::fields;
use crate::exchange::reply::fields::{BodyLength, Fields, HeadInputs};
use crate::exchange::websocket::Accept;
use crate::rules::compress::CompressionChange;
use crate::rules::forwarding::GROWTH_MAX;
use crate::rules::response_edits::AppliedEdits;
use crate::worker::Worker;

/// For a response that depends on `Accept` (RFC 9110 12.5.5).
pub(crate) const VARY_ACCEPT: &[u8] = b"Vary: Accept\r\n";

/// Changes to a relayed response.
#[derive(Debug)]
pub(crate) struct ResponseChanges {
    pub(crate) cookie: Option<String>,
    /// Sec-WebSocket-Accept for an HTTP/1 client of an HTTP/2 server.
    pub(crate) accept: Option<Accept>,
    pub(crate) change: CompressionChange,
    /// Lines to add: [`VARY_ACCEPT`] if a client with another `Accept` would get an error page instead.
    pub(crate) vary: &'static [u8],
    /// Body length to send if it is not in the head.
    pub(crate) length: Option<BodyLength>,
}

impl ResponseChanges {
    /// The input from which the fields are computed. A head from HTTP/1 may also name fields of its connection.
    pub(crate) fn made_of(&self, head: &ResponseHead<'_, '_>, worker: &Worker) -> HeadInputs {
        let ResponseChanges {
            cookie,
            accept,
            change,
            vary,
            length,
        } = self;
        let is_plain = cookie.is_none()
            && accept.is_none()
            && vary.is_empty()
            && *change == CompressionChange::Nothing;
        let is_usual = head.sensitivity == Sensitivity::Unmarked;
        match is_plain && is_usual && head.version == Version::Http2 {
            true => HeadInputs::Head {
                date: worker.date(),
                length: *length,
            },
            false => HeadInputs::Other,
        }
    }
}

/// Bytes needed for a response's head of `bytes`, up to a buffer.
pub(crate) fn response_room(bytes: usize, edits: Option<&AppliedEdits<'_>>) -> usize {
    let growth = edits.map_or(0, AppliedEdits::growth);
    (bytes + GROWTH_MAX + growth).min(BUFFER_BYTES)
}

/// Writes the fields of a response for the client, without the fields that its route adds. Returns whether Connection
/// names fields, which may occur among the trailers.
pub(crate) fn response(
    head: &ResponseHead<'_, '_>,
    onward: &ResponseChanges,
    worker: &Worker,
    edits: Option<&AppliedEdits<'_>>,
    to: &mut Fields<'_>,
) -> bool {
    let mut is_dated = false;
    let change = onward.change;
    let is_edited = |name: &str| edits.is_some_and(|edits| edits.drops(name));
    let is_dropped = |name: &str| {
        is_dated |= header_is(name, "date") && !is_edited(name);
        is_length(name)
            && (matches!(head.status, 101 | 204) || onward.length == Some(BodyLength::Unknown))
            || change.drops(name)
            || is_edited(name)
            || onward.accept.is_some() && header_is(name, "sec-websocket-accept")
    };
    let names_fields = fields(head.headers, is_dropped, |header| {
        to.header(header.name, header.value);
    });
    change.write(head.headers, to, is_edited);
    if !onward.vary.is_empty() {
        to.lines(onward.vary);
    }
    if edits.is_some_and(AppliedEdits::set_server_field) {
        to.header("Server", b"onrush");
    }
    if !is_dated {
        to.date(&worker.date());
    }
    if let Some(length) = onward.length {
        to.length(length);
    }
    if let Some(accept) = &onward.accept {
        to.header("Sec-WebSocket-Accept", accept);
    }
    if let Some(cookie) = &onward.cookie {
        to.header("Set-Cookie", cookie.as_bytes());
    }
    names_fields
}

/// Writes the fields of an interim response (1xx) that `edits` do not remove or set: edits may depend on the final
/// status.
pub(crate) fn interim(
    head: &ResponseHead<'_, '_>,
    edits: Option<&AppliedEdits<'_>>,
    to: &mut Fields<'_>,
) {
    let is_dropped = |name: &str| is_length(name) || edits.is_some_and(|edits| edits.drops(name));
    fields(head.headers, is_dropped, |header| {
        to.header(header.name, header.value);
    });
}

/// Some servers send a length of 0 without a body; only responses to HEAD and 304 may have it (RFC 9110 8.6).
fn is_length(name: &str) -> bool {
    header_is(name, "content-length")
}
