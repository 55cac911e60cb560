//! Decides which responses are compressed. Pure: computes a coding from request and response.

use onrush_config::plan::{self, Compress, FieldEdits, Piece, Template};
use onrush_http::encoding::{AcceptEncoding, Coding, is_encoded, is_no_transform};
use onrush_http::request::RequestHead;
use onrush_http::response::ResponseHead;
use onrush_http::{Framing, Header, Method, Version, header_is};

/// The compression settings of a route.
#[derive(Debug)]
pub(crate) struct CompressionRules {
    /// In order of preference.
    codings: Vec<Coding>,
    types: Vec<String>,
    size_min: u64,
    /// The Content-Type set by the route's edits, if any.
    content_type: Option<Vec<u8>>,
}

impl CompressionRules {
    /// `None` if the route's response edits, applied before compression, make a response that [`forbids_compression`], or set a
    /// strong ETag, which would have to differ for each coding (RFC 9110 8.8.3.3). Variables are not examined.
    pub(crate) fn new(plan: &Compress, edits: &FieldEdits) -> Option<Self> {
        let written: Vec<(&str, String)> = edits
            .set
            .iter()
            .chain(&edits.add)
            .map(|(name, template)| (name.as_str(), text_of(template)))
            .collect();
        let headers: Vec<Header<'_>> = written
            .iter()
            .map(|(name, value)| Header {
                name,
                value: value.as_bytes(),
            })
            .collect();
        let has_strong_tag = headers
            .iter()
            .any(|header| header_is(header.name, "etag") && !header.value.starts_with(b"W/"));
        // With any value: a second line would be a second coding (RFC 9110 8.4).
        let has_coding = headers
            .iter()
            .any(|header| header_is(header.name, "content-encoding"));
        if forbids_compression(&headers) || has_strong_tag || has_coding {
            return None;
        }
        Some(Self {
            codings: plan.codings.iter().copied().map(coding).collect(),
            types: plan.types.clone(),
            // An empty body cannot become shorter.
            size_min: plan.size_min.max(1),
            content_type: single(&headers, "content-type").map(<[u8]>::to_vec),
        })
    }

    pub(crate) fn codings(&self) -> &[Coding] {
        &self.codings
    }

    /// Whether content of this type and length should be compressed; an unknown length counts as long enough.
    pub(crate) fn suits(&self, content_type: Option<&[u8]>, length: Option<u64>) -> bool {
        let Some(content_type) = self.content_type.as_deref().or(content_type) else {
            return false;
        };
        length.is_none_or(|length| length >= self.size_min)
            && self
                .types
                .iter()
                .any(|known| matches_media_type(content_type, known))
    }
}

/// A template without its variables.
fn text_of(template: &Template) -> String {
    let pieces = template.0.iter().map(|piece| match piece {
        Piece::Text(text) => text.as_str(),
        Piece::Variable(_) => "",
    });
    pieces.collect()
}

/// Converts a coding of the configuration.
pub(crate) fn coding(planned: plan::Coding) -> Coding {
    match planned {
        plan::Coding::Zstd => Coding::Zstd,
        plan::Coding::Brotli => Coding::Brotli,
        plan::Coding::Gzip => Coding::Gzip,
    }
}

/// The preferred coding of `offered` for a response; `None` if it must be plain.
pub(crate) fn choose(head: &RequestHead<'_, '_>, offered: &[Coding]) -> Option<Coding> {
    // HTTP/1.0 has no chunks, and old proxies ignore Vary. A range is a part of the plain content, and If-Match (RFC
    // 9110 13.1.1) compares its strong ETag. `no-transform` (RFC 9111 5.2.1.6) forbids compression.
    let wants_plain = head.version == Version::Http10
        || head.headers.iter().any(|header| match header.name.len() {
            5 => header_is(header.name, "range"),
            8 => header_is(header.name, "if-match"),
            _ => false,
        })
        || is_no_transform(head.headers);
    if wants_plain {
        return None;
    }
    AcceptEncoding::of(head.headers).best(offered)
}

/// The compression that a forwarded request allows. Small, because it is part of every connection's memory.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct AcceptedCompression {
    /// The coding for the response, if that is suitable.
    coding: Option<Coding>,
    /// Whether If-None-Match has a weak ETag.
    knows_weak_tag: bool,
}

impl AcceptedCompression {
    pub(crate) fn of(head: &RequestHead<'_, '_>, offer: &CompressionRules) -> Self {
        let is_accept = |header: &Header<'_>| header_is(header.name, "accept-encoding");
        if !head.headers.iter().any(is_accept) {
            return Self::default();
        }
        let knows_weak_tag = head.headers.iter().any(|header| {
            header_is(header.name, "if-none-match")
                && memchr::memmem::find(header.value, b"W/").is_some()
        });
        Self {
            coding: choose(head, offer.codings()),
            knows_weak_tag,
        }
    }

    /// The change of the response `head` to a request with `method`.
    pub(crate) fn change(
        self,
        offer: &CompressionRules,
        head: &ResponseHead<'_, '_>,
        method: Method,
    ) -> CompressionChange {
        match (head.status, self.coding) {
            (304, Some(_)) if self.knows_weak_tag => return CompressionChange::Weaken,
            // No content to compress; 206 is a part (RFC 9110 15.3.7).
            (100..=199 | 204..=206 | 304, _) => return CompressionChange::Nothing,
            _ => {}
        }
        let length = match (method, head.framing) {
            (Method::Head, _) => announced_length(head.headers),
            (_, Framing::Length(length)) => Some(length),
            (_, Framing::None) => Some(0),
            (_, Framing::Chunked | Framing::UntilClose) => None,
        };
        let content_type = single(head.headers, "content-type");
        if !offer.suits(content_type, length) || forbids_compression(head.headers) {
            return CompressionChange::Nothing;
        }
        self.coding
            .map_or(CompressionChange::Vary, CompressionChange::Encode)
    }
}

/// How a response changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CompressionChange {
    Nothing,
    /// Not compressed, but with Vary because other clients may get it compressed.
    Vary,
    /// A 304 for a compressed response at the client: its ETag becomes weak, as that of the response was.
    Weaken,
    /// Compressed.
    Encode(Coding),
}

/// Whether a response must not be compressed: it already is, it is a part, it has `no-transform` (RFC 9111 5.2.2.6), or
/// a checksum of its bytes (RFC 9530 and predecessors).
pub(crate) fn forbids_compression(headers: &[Header<'_>]) -> bool {
    is_encoded(headers)
        || is_no_transform(headers)
        || headers.iter().any(|header| match header.name.len() {
            6 => header_is(header.name, "digest"),
            11 => header_is(header.name, "content-md5") || header_is(header.name, "repr-digest"),
            13 => header_is(header.name, "content-range"),
            14 => header_is(header.name, "content-digest"),
            _ => false,
        })
}

/// Whether `type/subtype; parameters` matches `known`, which may end in `/*`.
pub(crate) fn matches_media_type(content_type: &[u8], known: &str) -> bool {
    let end = memchr::memchr(b';', content_type).unwrap_or(content_type.len());
    let media = content_type[..end].trim_ascii();
    match known.strip_suffix('*') {
        Some(kind) => media
            .get(..kind.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(kind.as_bytes())),
        None => media.eq_ignore_ascii_case(known.as_bytes()),
    }
}

/// The value of a field that occurs once.
fn single<'b>(headers: &[Header<'b>], name: &str) -> Option<&'b [u8]> {
    let mut values = headers
        .iter()
        .filter(|header| header_is(header.name, name))
        .map(|header| header.value);
    values.next().filter(|_| values.next().is_none())
}

/// The Content-Length of a response to HEAD.
fn announced_length(headers: &[Header<'_>]) -> Option<u64> {
    let value = single(headers, "content-length")?;
    str::from_utf8(value).ok()?.parse().ok()
}

/// Marks a response that depends on the client's codings (RFC 9110 12.5.5).
pub(crate) const VARY: &[u8] = b"Vary: Accept-Encoding\r\n";

/// Whether a line of a generated head describes the coding; not edited, because it must match the body.
pub(crate) fn describes_coding(line: &[u8]) -> bool {
    line == VARY || line.starts_with(b"Content-Encoding: ")
}
