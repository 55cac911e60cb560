//! Fixed responses: status, fields and body from the configuration.

use std::rc::Rc;

use onrush_engine::{BUFFER_BYTES, Error};
use onrush_http::encoding::Coding;
use onrush_http::request::RequestHead;
use onrush_http::write::HeadWriter;
use onrush_http::{Header, Method, Version, header_is};

use crate::exchange::rendered::Rendered;
use crate::exchange::reply::Reply;
use crate::exchange::reply::fields::{BodyLength, Fields};
use crate::rules::compress::{self, CompressionChange, CompressionRules};
use crate::rules::response_edits::ResponseEdits;
use crate::worker::compress::encode_whole;

/// A configured response, prepared for one core.
#[derive(Debug)]
pub(crate) struct Fixed {
    status: u16,
    /// Rendered fields, including the length unless the status cannot have a body (RFC 9110 6.4.1).
    fields: Vec<u8>,
    /// The whole response if it is small, else only its head.
    rendered: Rendered,
    body: Rc<[u8]>,
    body_is_rendered: bool,
    encoded: Option<Box<Encoded>>,
}

/// Encoded variants of the response.
#[derive(Debug)]
struct Encoded {
    /// In order of preference.
    codings: Vec<Coding>,
    /// The variants, in the order of `codings`.
    forms: Vec<Fixed>,
}

/// Larger bodies are sent as a separate part instead of being copied after their head.
const COPY_MAX: usize = BUFFER_BYTES / 2;

impl Fixed {
    /// A response, encoded according to `offer` where that makes it shorter. Fields that `edits` remove from every
    /// response are left out here once, except `Content-Type`, which would be replaced by the default.
    pub(crate) fn new(
        status: u16,
        body: &[u8],
        fields: &[(String, String)],
        edits: Option<&ResponseEdits>,
        offer: Option<&Rc<CompressionRules>>,
    ) -> Self {
        let edits = edits.filter(|edits| edits.applies_to(status));
        let stays = |name: &str| {
            header_is(name, "content-type") || edits.is_none_or(|edits| !edits.drops(name))
        };
        let named: Vec<Header<'_>> = fields
            .iter()
            .filter(|(name, _)| stays(name))
            .map(|(name, value)| Header {
                name,
                value: value.as_bytes(),
            })
            .collect();
        match offer.and_then(|offer| Encoded::new(status, body, &named, offer)) {
            Some(encoded) => Self {
                encoded: Some(Box::new(encoded)),
                ..Self::plain(status, body, &named, CompressionChange::Vary)
            },
            None => Self::plain(status, body, &named, CompressionChange::Nothing),
        }
    }

    fn plain(status: u16, body: &[u8], named: &[Header<'_>], change: CompressionChange) -> Self {
        let has_body = !matches!(status, 100..=199 | 204 | 304);
        let body_is_rendered = body.len() <= COPY_MAX;
        let length = has_body.then_some(body.len() as u64);
        let fields = render_fields(named, length, change);
        let write = |head: &mut Fields<'_>| {
            head.lines(&fields);
        };
        Self {
            status,
            rendered: Rendered::new(status, write, if body_is_rendered { body } else { b"" }),
            fields,
            body: body.into(),
            body_is_rendered,
            encoded: None,
        }
    }

    /// The variant in the coding that the request prefers, or the response itself.
    #[inline]
    pub(crate) fn form(&self, head: &RequestHead<'_, '_>) -> &Fixed {
        match &self.encoded {
            None => self,
            Some(encoded) => encoded.form(head).unwrap_or(self),
        }
    }

    #[inline]
    pub(crate) fn respond(&self, reply: &mut Reply<'_>) -> Result<(), Error> {
        if reply.supports_rendered() && reply.method != Method::Head && self.body_is_rendered {
            return reply.rendered(self.status, &self.rendered);
        }
        self.respond_unusual(reply)
    }

    fn respond_unusual(&self, reply: &mut Reply<'_>) -> Result<(), Error> {
        reply.head(self.status, |head| {
            head.lines(&self.fields);
        })?;
        if reply.method == Method::Head {
            return Ok(());
        }
        if self.body_is_rendered {
            return reply.data(&self.body);
        }
        reply.part(Rc::clone(&self.body).into())
    }
}

impl Encoded {
    /// `None` if no coding makes the response shorter, or it must not be encoded.
    fn new(
        status: u16,
        body: &[u8],
        named: &[Header<'_>],
        offer: &CompressionRules,
    ) -> Option<Self> {
        let content_type = named
            .iter()
            .find(|header| header_is(header.name, "content-type"))
            .map_or(MEDIA_DEFAULT, |header| header.value);
        if matches!(status, 204..=206 | 304)
            || !offer.suits(Some(content_type), Some(body.len() as u64))
            || compress::forbids_compression(named)
        {
            return None;
        }
        let mut encoded = Self {
            codings: Vec::new(),
            forms: Vec::new(),
        };
        for &coding in offer.codings() {
            if let Some(body) = encode_whole(coding, body) {
                let form = Fixed::plain(status, &body, named, CompressionChange::Encode(coding));
                encoded.codings.push(coding);
                encoded.forms.push(form);
            }
        }
        (!encoded.codings.is_empty()).then_some(encoded)
    }

    fn form(&self, head: &RequestHead<'_, '_>) -> Option<&Fixed> {
        let chosen = compress::choose(head, &self.codings)?;
        let at = self.codings.iter().position(|&coding| coding == chosen)?;
        Some(&self.forms[at])
    }
}

/// Content type of a body without a `Content-Type` field.
const MEDIA_DEFAULT: &[u8] = b"text/plain; charset=utf-8";

/// Renders the fields for a body of `length` bytes after `change`.
fn render_fields(named: &[Header<'_>], length: Option<u64>, change: CompressionChange) -> Vec<u8> {
    let mut room = vec![0; 1024];
    loop {
        let mut fields = Fields::http1(HeadWriter::new(&mut room), Version::Http11);
        let is_typed = named
            .iter()
            .any(|header| header_is(header.name, "content-type"));
        if !is_typed && length.is_some_and(|length| length > 0) {
            fields.header("Content-Type", MEDIA_DEFAULT);
        }
        for header in named.iter().filter(|header| !change.drops(header.name)) {
            fields.header(header.name, header.value);
        }
        if let Some(length) = length {
            fields.length(BodyLength::Known(length));
        }
        change.write(named, &mut fields, |_| false);
        if let Some(bytes) = fields.into_writer().finish() {
            room.truncate(bytes);
            room.shrink_to_fit();
            return room;
        }
        room.resize(room.len() * 2, 0);
    }
}
