//! Heads of requests and responses, and trailers, as header blocks. Names of any case become lower case (RFC 9113 8.2.1),
//! and fields that are about a connection of HTTP/1 are left out (RFC 9113 8.2.2).

use crate::Header;
use crate::Method;
use crate::field::header_is;
use crate::headers::hop::{accepts_trailers, connection_fields, is_hop_by_hop};
use crate::http2::hpack::{Encoder, Indexing};

/// What a request has in pseudo-fields.
#[derive(Clone, Copy, Debug)]
pub struct RequestStart<'a> {
    /// A token.
    pub method: &'a str,
    /// `http` or `https`. Not sent with a CONNECT that has no `protocol`, nor is the path (RFC 9113 8.5).
    pub scheme: &'a str,
    /// `host[:port]`.
    pub authority: &'a str,
    /// Path and query, or `*`; not empty.
    pub path: &'a str,
    /// What a CONNECT is to become (RFC 8441).
    pub protocol: Option<&'a str>,
    /// Whether the path is worth a place in the table: those of a proxy's clients are not, one that is asked for again and
    /// again is.
    pub path_indexing: Indexing,
}

/// Appends the block of a request: its pseudo-fields and its fields without Host.
pub fn request(
    start: &RequestStart<'_>,
    headers: &[Header<'_>],
    encoder: &mut Encoder,
    out: &mut Vec<u8>,
) {
    const KEPT: Indexing = Indexing::Incremental;
    encoder.begin(out);
    encoder.field(b":method", start.method.as_bytes(), KEPT, out);
    if Method::of(start.method) != Method::Connect || start.protocol.is_some() {
        encoder.field(b":scheme", start.scheme.as_bytes(), KEPT, out);
        encoder.field(b":path", start.path.as_bytes(), start.path_indexing, out);
    }
    encoder.field(b":authority", start.authority.as_bytes(), KEPT, out);
    if let Some(protocol) = start.protocol {
        encoder.field(b":protocol", protocol.as_bytes(), KEPT, out);
    }
    let is_kept = |name: &str| !header_is(name, "host");
    fields(headers, is_kept, encoder, out);
    if accepts_trailers(headers) {
        encoder.field(b"te", b"trailers", KEPT, out);
    }
}

/// Appends the block of a response of this status, 100 to 999.
pub fn response(status: u16, headers: &[Header<'_>], encoder: &mut Encoder, out: &mut Vec<u8>) {
    encoder.begin(out);
    encoder.status(status, out);
    fields(headers, |_| true, encoder, out);
}

/// Appends the block of trailers.
pub fn trailers(headers: &[Header<'_>], encoder: &mut Encoder, out: &mut Vec<u8>) {
    encoder.begin(out);
    fields(headers, |_| true, encoder, out);
}

/// Those that are `kept` and meant for whoever is behind the connection.
#[inline]
fn fields(
    headers: &[Header<'_>],
    is_kept: impl Fn(&str) -> bool,
    encoder: &mut Encoder,
    out: &mut Vec<u8>,
) {
    let has_options = connection_fields(headers).next().is_some();
    for header in headers {
        let is_named = has_options
            && connection_fields(headers)
                .any(|name| name.eq_ignore_ascii_case(header.name.as_bytes()));
        if is_named || is_hop_by_hop(header.name) || !is_kept(header.name) {
            continue;
        }
        field(header.name, header.value, encoder, out);
    }
}

/// Names that are longer than all that are known.
const NAME_BYTES_USUAL: usize = 64;

/// Appends one field, whose name may be of any case, as [`Indexing::of`] says.
#[inline]
pub fn field(name: &str, value: &[u8], encoder: &mut Encoder, out: &mut Vec<u8>) {
    let name = name.as_bytes();
    let mut room = [0; NAME_BYTES_USUAL];
    match room.get_mut(..name.len()) {
        Some(lower) => {
            lower.copy_from_slice(name);
            lower.make_ascii_lowercase();
            encoder.usual_field(lower, value, out);
        }
        None => encoder.usual_field(&name.to_ascii_lowercase(), value, out),
    }
}
