//! The fixed answer: a status, fields and a body from the configuration.

use std::rc::Rc;

use onrush_engine::{BUFFER_BYTES, Error};
use onrush_http::Method;
use onrush_http::write::HeadWriter;

use super::rendered::Rendered;
use super::{Context, Writer};

/// One configured answer, prepared for one core.
#[derive(Debug)]
pub(crate) struct Fixed {
    status: u16,
    fields: Vec<(String, String)>,
    /// Whether this status may have a body at all (RFC 9110 6.4.1).
    has_body: bool,
    /// The whole answer when it is small, only its head when it is large.
    rendered: Rendered,
    body: Rc<[u8]>,
    body_is_rendered: bool,
}

/// Larger bodies are not copied behind their head but sent as a part of their own.
const COPY_MAX: usize = BUFFER_BYTES / 2;

impl Fixed {
    pub(crate) fn new(status: u16, body: &[u8], fields: &[(String, String)]) -> Self {
        let has_body = !matches!(status, 100..=199 | 204 | 304);
        let body_is_rendered = body.len() <= COPY_MAX;
        let length = body.len() as u64;
        let write =
            |head: &mut HeadWriter<'_>| write_fields(head, fields, has_body.then_some(length));
        Self {
            status,
            has_body,
            rendered: Rendered::new(status, write, if body_is_rendered { body } else { b"" }),
            fields: fields.to_vec(),
            body: body.into(),
            body_is_rendered,
        }
    }

    /// Writes the answer.
    #[inline]
    pub(crate) fn answer(&self, context: Context, writer: &mut Writer<'_>) -> Result<(), Error> {
        if context.is_usual() && context.method != Method::Head && self.body_is_rendered {
            return writer.rendered(self.status, &self.rendered);
        }
        self.answer_unusual(context, writer)
    }

    fn answer_unusual(&self, context: Context, writer: &mut Writer<'_>) -> Result<(), Error> {
        let length = self.has_body.then_some(self.body.len() as u64);
        writer.head(self.status, context, |head| {
            write_fields(head, &self.fields, length)
        })?;
        if context.method == Method::Head {
            return Ok(());
        }
        if self.body_is_rendered {
            return writer.output.put(writer.stream, &self.body);
        }
        writer.output.part(writer.stream, Rc::clone(&self.body));
        Ok(())
    }
}

fn write_fields(head: &mut HeadWriter<'_>, fields: &[(String, String)], length: Option<u64>) {
    let named = fields
        .iter()
        .any(|(name, _)| name.eq_ignore_ascii_case("content-type"));
    if !named && length.is_some_and(|length| length > 0) {
        head.header("Content-Type", b"text/plain; charset=utf-8");
    }
    for (name, value) in fields {
        head.header(name, value.as_bytes());
    }
    if let Some(length) = length {
        head.content_length(length);
    }
}
