//! Heads on their way through: what belongs to one connection stays there (RFC 9110 7.6.1), the rest passes unchanged
//! and in its order.

use onrush_engine::Buffer;
use onrush_http::hop::{connection_names, is_hop_by_hop};
use onrush_http::request::RequestHead;
use onrush_http::response::ResponseHead;
use onrush_http::write::HeadWriter;
use onrush_http::{Framing, Header, Version, header_is};

use crate::worker::Worker;

/// Bytes by which a head may grow on its way.
pub(crate) const GROWTH_MAX: usize = 512;

/// The field by which each hop names itself, with the version it received (RFC 9110 7.6.3).
fn via(version: Version) -> &'static [u8] {
    match version {
        Version::Http10 => b"Via: 1.0 onrush\r\n",
        Version::Http11 => b"Via: 1.1 onrush\r\n",
    }
}

/// Writes the request's head for a server; `authority` is its Host when the request has none.
pub(crate) fn request(head: &RequestHead<'_, '_>, authority: &str, out: &mut Buffer) {
    let mut writer = HeadWriter::new(out.spare());
    writer
        .raw(head.method_text.as_bytes())
        .raw(b" ")
        .raw(head.path.as_bytes());
    if let Some(query) = head.query {
        writer.raw(b"?").raw(query.as_bytes());
    }
    writer.raw(b" HTTP/1.1\r\nHost: ");
    writer
        .raw(head.authority.unwrap_or(authority).as_bytes())
        .raw(b"\r\n");
    fields(head.headers, &mut writer, |name| header_is(name, "host"));
    if head.framing == Framing::Chunked {
        writer.chunked();
    }
    let bytes = writer
        .raw(via(head.version))
        .end()
        .finish()
        .expect("a head within its limit fits a buffer");
    out.fill(bytes);
}

/// How the connection to the client goes on behind an answer, and how its body is framed there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Onward {
    pub(crate) version: Version,
    pub(crate) keep_alive: bool,
    pub(crate) chunked: bool,
}

/// Writes the answer's head for the client. `out` has room for it and [`GROWTH_MAX`] more.
pub(crate) fn response(
    head: &ResponseHead<'_, '_>,
    onward: Onward,
    worker: &Worker,
    out: &mut Buffer,
) {
    let mut writer = HeadWriter::new(out.spare());
    status_line(head, &mut writer);
    let mut is_dated = false;
    fields(head.headers, &mut writer, |name| {
        is_dated |= header_is(name, "date");
        head.status == 204 && is_length(name)
    });
    if !is_dated {
        writer.date(&worker.date());
    }
    if onward.chunked {
        writer.chunked();
    }
    if !onward.keep_alive {
        writer.connection_close();
    } else if onward.version == Version::Http10 {
        writer.keep_alive();
    }
    let bytes = writer.end().finish().expect("the caller made room");
    out.fill(bytes);
}

/// Writes an interim answer's head (1xx) for the client.
pub(crate) fn interim(head: &ResponseHead<'_, '_>, out: &mut Buffer) {
    let mut writer = HeadWriter::new(out.spare());
    status_line(head, &mut writer);
    fields(head.headers, &mut writer, is_length);
    let bytes = writer.end().finish().expect("the caller made room");
    out.fill(bytes);
}

/// Servers do say that an answer without a body has 0 bytes, which none but that of a HEAD or 304 may say (RFC 9110 8.6).
fn is_length(name: &str) -> bool {
    header_is(name, "content-length")
}

fn status_line(head: &ResponseHead<'_, '_>, writer: &mut HeadWriter<'_>) {
    let digits = [head.status / 100, head.status / 10 % 10, head.status % 10]
        .map(|digit| b'0' + digit as u8);
    writer
        .raw(b"HTTP/1.1 ")
        .raw(&digits)
        .raw(b" ")
        .raw(head.reason.as_bytes())
        .raw(b"\r\n");
}

/// Writes the fields that travel on, less those that `dropped` says.
fn fields(
    headers: &[Header<'_>],
    writer: &mut HeadWriter<'_>,
    mut dropped: impl FnMut(&str) -> bool,
) {
    let mut names_more = false;
    for header in headers {
        names_more |= header_is(header.name, "connection")
            && connection_names(std::slice::from_ref(header)).any(|name| !says_how_to_go_on(name));
    }
    for header in headers {
        if is_hop_by_hop(header.name) || dropped(header.name) {
            continue;
        }
        if names_more && is_named(header.name, headers) {
            continue;
        }
        writer.header(header.name, header.value);
    }
}

fn says_how_to_go_on(name: &[u8]) -> bool {
    name.eq_ignore_ascii_case(b"close") || name.eq_ignore_ascii_case(b"keep-alive")
}

/// Whether Connection says that the field is for this connection only. Framing is never given away by that.
fn is_named(name: &str, headers: &[Header<'_>]) -> bool {
    !header_is(name, "content-length")
        && connection_names(headers).any(|named| named.eq_ignore_ascii_case(name.as_bytes()))
}
