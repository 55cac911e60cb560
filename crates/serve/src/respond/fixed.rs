//! The fixed response: a status, fields and a body from the configuration.

use std::rc::Rc;

use onrush_engine::{BUFFER_BYTES, Error};
use onrush_http::encoding::Coding;
use onrush_http::request::RequestHead;
use onrush_http::write::HeadWriter;
use onrush_http::{Header, Method, Version, header_is};

use crate::exchange::rendered::Rendered;
use crate::exchange::reply::Reply;
use crate::exchange::reply::fields::{BodyLength, Fields};
use crate::rules::compress::{self, Change, Offer};
use crate::rules::response_edits::ResponseEdits;
use crate::worker::compress::encode_whole;

/// One configured response, prepared for one core.
#[derive(Debug)]
pub(crate) struct Fixed {
    status: u16,
    /// As they are sent; the length is one of them, unless this status cannot have a body at all (RFC 9110 6.4.1).
    fields: Vec<u8>,
    /// The whole response when it is small, only its head when it is large.
    rendered: Rendered,
    body: Rc<[u8]>,
    body_is_rendered: bool,
    encoded: Option<Box<Encoded>>,
}

/// What clients get that take a coding.
#[derive(Debug)]
struct Encoded {
    /// The favourite first.
    codings: Vec<Coding>,
    /// As many, in the same order.
    forms: Vec<Fixed>,
}

/// Larger bodies are not copied behind their head but sent as a part of their own.
const COPY_MAX: usize = BUFFER_BYTES / 2;

impl Fixed {
    /// A response that is encoded as `offer` says, where it is worth it. Of its `fields` those that `edits` take out of
    /// responses are left out here, once, rather than of each response. But not its type: without one it would get another.
    pub(crate) fn new(
        status: u16,
        body: &[u8],
        fields: &[(String, String)],
        edits: Option<&ResponseEdits>,
        offer: Option<&Rc<Offer>>,
    ) -> Self {
        let edits = edits.filter(|edits| edits.are_for(status));
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
                ..Self::plain(status, body, &named, Change::Vary)
            },
            None => Self::plain(status, body, &named, Change::Nothing),
        }
    }

    fn plain(status: u16, body: &[u8], named: &[Header<'_>], change: Change) -> Self {
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

    /// Itself, or the same in the coding that the request asks for.
    #[inline]
    pub(crate) fn form(&self, head: &RequestHead<'_, '_>) -> &Fixed {
        match &self.encoded {
            None => self,
            Some(encoded) => encoded.form(head).unwrap_or(self),
        }
    }

    /// Writes the response.
    #[inline]
    pub(crate) fn respond(&self, reply: &mut Reply<'_>) -> Result<(), Error> {
        if reply.takes_rendered() && reply.method != Method::Head && self.body_is_rendered {
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
    /// `None` when no coding makes the response shorter, or it must not have any.
    fn new(status: u16, body: &[u8], named: &[Header<'_>], offer: &Offer) -> Option<Self> {
        let content_type = named
            .iter()
            .find(|header| header_is(header.name, "content-type"))
            .map_or(MEDIA_DEFAULT, |header| header.value);
        if matches!(status, 204..=206 | 304)
            || !offer.suits(Some(content_type), Some(body.len() as u64))
            || compress::must_stay(named)
        {
            return None;
        }
        let mut encoded = Self {
            codings: Vec::new(),
            forms: Vec::new(),
        };
        for &coding in offer.codings() {
            if let Some(body) = encode_whole(coding, body) {
                let form = Fixed::plain(status, &body, named, Change::Encode(coding));
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

/// What a body is unless a field says otherwise.
const MEDIA_DEFAULT: &[u8] = b"text/plain; charset=utf-8";

/// The fields of a body of `length` with what `change` makes of them.
fn render_fields(named: &[Header<'_>], length: Option<u64>, change: Change) -> Vec<u8> {
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
