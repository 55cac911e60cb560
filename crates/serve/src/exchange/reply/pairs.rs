//! Edited response heads for protocols without lines: fields are collected as pairs, edited, then encoded.

use onrush_http::http2::message::fields_of_lines;
use onrush_http::write::HeadWriter;

use super::fields::{BodyLength, Fields, Pair};
use crate::rules::cache_control::CacheFields;
use crate::rules::response_edits::AppliedEdits;
use crate::worker::Worker;

/// The fields of a generated response after `edits`, and the length of its body.
pub(super) fn own(
    worker: &Worker,
    edits: Option<AppliedEdits<'_>>,
    fields: impl FnOnce(&mut Fields<'_>),
) -> (Vec<Pair>, Option<BodyLength>) {
    let mut pairs = vec![("server".to_owned(), b"onrush".to_vec())];
    let mut to = Fields::pairs(&mut pairs);
    to.date(&worker.date());
    fields(&mut to);
    let length = to.body_length();
    if let Some(edits) = edits {
        pairs.retain(|(name, _)| !edits.removes_generated(name));
        let edits = edits.with_cache_control(|| {
            let mut said = CacheFields::default();
            pairs
                .iter()
                .for_each(|(name, value)| said.field(name, value));
            said
        });
        append(edits, &mut pairs);
    }
    (pairs, length)
}

/// The fields of a server's response after `edits`, and the length of its body. `fields` omits the removed fields
/// itself.
pub(super) fn forwarded(
    edits: Option<AppliedEdits<'_>>,
    fields: impl FnOnce(&mut Fields<'_>),
) -> (Vec<Pair>, Option<BodyLength>) {
    let mut pairs = Vec::new();
    let mut to = Fields::pairs(&mut pairs);
    fields(&mut to);
    let length = to.body_length();
    if let Some(edits) = edits {
        append(edits, &mut pairs);
    }
    (pairs, length)
}

fn append(edits: AppliedEdits<'_>, pairs: &mut Vec<Pair>) {
    let mut room = vec![0; edits.growth()];
    let mut writer = HeadWriter::new(&mut room);
    edits.write(&mut writer);
    let bytes = writer.finish().expect("it says how much it writes");
    let added = fields_of_lines(&room[..bytes]);
    pairs.extend(added.map(|(name, value)| (name.to_ascii_lowercase(), value.to_vec())));
}
