//! Encoded representations of a file: a precompressed sibling (`x.css.br`), content encoded once and cached, or content
//! encoded while it is sent. Chooses one and writes its head.

use std::rc::Rc;

use onrush_config::plan;
use onrush_engine::Error;
use onrush_http::Method;
use onrush_http::encoding::Coding;
use onrush_http::request::RequestHead;

use super::cache::Cache;
use super::codings::Codings;
use super::condition::{self, PreconditionResult, Validators};
use super::entry::{Content, Entry};
use super::file_body::{FileBody, Ranges, What, send_ranges};
use super::plain::{Varies, respond_to_failed_condition, respond_with_entry};
use crate::exchange::encoded_head as change;
use crate::exchange::encoding::Encoding;
use crate::exchange::rendered::Rendered;
use crate::exchange::reply::Reply;
use crate::exchange::reply::fields::{BodyLength, Fields};
use crate::rules::compress::{self, CompressionRules, VARY};
use crate::worker::compress::encode_whole;

/// The encoded representations that a route offers.
pub(super) struct Representations {
    /// Codings of siblings to look for, in order of preference.
    siblings: Vec<Coding>,
    offer: Option<Rc<CompressionRules>>,
}

impl Representations {
    /// `None` if files are served only without coding.
    pub(super) fn new(
        siblings: &[plan::Coding],
        offer: Option<Rc<CompressionRules>>,
    ) -> Option<Box<Self>> {
        if siblings.is_empty() && offer.is_none() {
            return None;
        }
        Some(Box::new(Self {
            siblings: siblings.iter().copied().map(compress::coding).collect(),
            offer,
        }))
    }

    /// Responds with the representation that the request prefers. `place` is the cache and path of a file below a
    /// directory.
    pub(super) fn respond(
        &self,
        place: Option<(&Rc<Cache>, &[u8])>,
        entry: &Rc<Entry>,
        head: &RequestHead<'_, '_>,
        reply: &mut Reply<'_>,
    ) -> Result<Option<Box<FileBody>>, Error> {
        let core = &reply.worker.core;
        let there = match place {
            Some((cache, path)) if !self.siblings.is_empty() => {
                cache.siblings((path, entry), &self.siblings, core)
            }
            _ => Codings::default(),
        };
        let length = Some(entry.metadata.length);
        let offer = self.offer.as_ref();
        let offer = offer.filter(|offer| offer.suits(Some(entry.media.as_bytes()), length));
        if there.is_empty() && offer.is_none() {
            return respond_with_entry(entry, Varies::No, head, reply);
        }
        let siblings = self.siblings.iter().filter(|&&it| there.contains(it));
        let encoded = offer.map_or(&[][..], |offer| offer.codings());
        match choose(head, siblings.chain(encoded)) {
            Some(coding) if there.contains(coding) => {
                let sibling =
                    place.and_then(|(cache, path)| cache.sibling((path, entry), coding, core));
                if let Some(sibling) = sibling {
                    return respond_with_sibling(entry, &sibling, coding, head, reply);
                }
            }
            Some(coding) => {
                if let Some(pieces) = respond_encoded(entry, coding, head, reply)? {
                    return Ok(pieces);
                }
            }
            None => {}
        }
        respond_with_entry(entry, Varies::ByEncoding, head, reply)
    }
}

/// The coding that the client prefers.
fn choose<'c>(
    head: &RequestHead<'_, '_>,
    offered: impl Iterator<Item = &'c Coding>,
) -> Option<Coding> {
    // Each of the three codings may occur twice.
    let mut room = [Coding::Gzip; 6];
    let mut count = 0;
    for (place, &coding) in room.iter_mut().zip(offered) {
        *place = coding;
        count += 1;
    }
    compress::choose(head, &room[..count])
}

/// An encoded representation, for writing its head.
struct EncodedHead<'e> {
    /// The file whose validators are the basis.
    entry: &'e Entry,
    tag: Tag,
    media: &'e str,
    /// Unknown if it is encoded while it is sent.
    length: Option<u64>,
    coding: Coding,
}

/// How the entity tag of encoded content is formed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tag {
    /// A strong tag: the file's tag with the name of the coding appended.
    Strong,
    /// A weak tag: equal in meaning to the unencoded content (RFC 9110 8.8.1), because another version of the encoder
    /// may produce other bytes.
    Weak,
}

impl EncodedHead<'_> {
    fn write(&self, head: &mut Fields<'_>) {
        head.header("Content-Type", self.media.as_bytes());
        match self.length {
            Some(length) => head.length(BodyLength::Known(length)),
            None => head.length(BodyLength::Unknown),
        };
        change::write_coding(head, self.coding);
        self.write_validators(head);
    }

    fn write_validators(&self, head: &mut Fields<'_>) {
        self.entry.write_last_modified(head);
        match self.tag {
            Tag::Strong => drop(head.header("ETag", self.named_tag().as_bytes())),
            Tag::Weak => change::write_weak_etag(head, self.entry.etag().as_bytes()),
        }
        head.lines(VARY);
    }

    /// `"x-y"` becomes `"x-y-br"`.
    fn named_tag(&self) -> String {
        let tag = self.entry.etag().trim_end_matches('"');
        format!("{tag}-{}\"", self.coding.token())
    }

    /// Evaluates the preconditions of the request.
    fn judge(&self, head: &RequestHead<'_, '_>) -> PreconditionResult {
        if condition::is_unconditional(head.headers) {
            return PreconditionResult::Holds;
        }
        let validators = self.entry.validators();
        match self.tag {
            Tag::Strong => {
                let etag = &self.named_tag();
                condition::evaluate(head.headers, Validators { etag, ..validators })
            }
            // Weak comparison ignores the `W/` prefix; strong comparison uses the unencoded content.
            Tag::Weak => condition::evaluate(head.headers, validators),
        }
    }

    /// Responds if the preconditions fail. Returns whether it did.
    fn respond_if_failed(
        &self,
        head: &RequestHead<'_, '_>,
        reply: &mut Reply<'_>,
    ) -> Result<bool, Error> {
        match self.judge(head) {
            PreconditionResult::Holds => return Ok(false),
            PreconditionResult::NotModified => {
                reply.head_of_type(304, self.media, |head| self.write_validators(head))?;
            }
            PreconditionResult::Failed => respond_to_failed_condition(head, reply)?,
        }
        Ok(true)
    }
}

fn respond_with_sibling(
    entry: &Rc<Entry>,
    sibling: &Rc<Entry>,
    coding: Coding,
    head: &RequestHead<'_, '_>,
    reply: &mut Reply<'_>,
) -> Result<Option<Box<FileBody>>, Error> {
    let length = sibling.metadata.length;
    let coded = EncodedHead {
        entry: sibling,
        tag: Tag::Strong,
        media: &entry.media,
        length: Some(length),
        coding,
    };
    if coded.respond_if_failed(head, reply)? {
        return Ok(None);
    }
    if matches!(sibling.content, Content::Held) {
        let rendered = sibling.rendered_as_sibling(|| {
            sibling.usual.with(reply.worker, |_, content| {
                Box::new(Rendered::new(200, |head| coded.write(head), content))
            })
        });
        respond_rendered(rendered, &coded, reply)?;
        return Ok(None);
    }
    reply.head(200, |head| coded.write(head))?;
    send_ranges(sibling, Ranges::One(0..length), reply)
}

/// Responds with encoded content. Returns `None` and writes nothing if the unencoded file is the better choice.
fn respond_encoded(
    entry: &Rc<Entry>,
    coding: Coding,
    head: &RequestHead<'_, '_>,
    reply: &mut Reply<'_>,
) -> Result<Option<Option<Box<FileBody>>>, Error> {
    let coded = |length| EncodedHead {
        entry,
        tag: Tag::Weak,
        media: &entry.media,
        length,
        coding,
    };
    if matches!(entry.content, Content::Held) {
        let rendered = entry.rendered_encoded(coding, || {
            let encoded = entry
                .usual
                .with(reply.worker, |_, content| encode_whole(coding, content))?;
            let coded = coded(Some(encoded.len() as u64));
            let rendered = Rendered::new(200, |head| coded.write(head), &encoded);
            Some(Box::new(rendered))
        });
        let Some(rendered) = rendered else {
            return Ok(None);
        };
        let coded = coded(Some(rendered.body_length() as u64));
        if !coded.respond_if_failed(head, reply)? {
            respond_rendered(rendered, &coded, reply)?;
        }
        return Ok(Some(None));
    }
    let coded = coded(None);
    if coded.respond_if_failed(head, reply)? {
        return Ok(Some(None));
    }
    if reply.method == Method::Head {
        reply.head(200, |head| coded.write(head))?;
        return Ok(Some(None));
    }
    let Some(encoding) = Encoding::begin(&reply.worker.encoders, coding) else {
        return Ok(None);
    };
    reply.head(200, |head| coded.write(head))?;
    let what = What::Encoded(encoding);
    let entry = Rc::clone(entry);
    Ok(Some(Some(Box::new(FileBody { entry, what }))))
}

/// Responds with the rendered response or, if its head does not fit the request, with a new head.
fn respond_rendered(
    rendered: &Rendered,
    coded: &EncodedHead<'_>,
    reply: &mut Reply<'_>,
) -> Result<(), Error> {
    if reply.supports_rendered() && reply.method == Method::Get {
        return reply.rendered(200, rendered);
    }
    reply.head(200, |head| coded.write(head))?;
    if reply.method == Method::Head {
        return Ok(());
    }
    rendered.with(reply.worker, |_, body| reply.data(body))
}
