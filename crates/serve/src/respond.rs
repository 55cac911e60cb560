//! The answers this server makes itself, one file per kind.

pub(crate) mod rendered;

pub(crate) mod file;
pub(crate) mod fixed;
pub(crate) mod redirect;
pub(crate) mod refuse;
pub(crate) mod synthetic;

use onrush_engine::Error;
use onrush_http::{Method, Version};
use onrush_tls::Transport;

use crate::edits::Applied;
use crate::limits::ANSWER_LINES_BYTES_MAX;
use crate::output::Output;
use crate::record::Record;
use crate::worker::Worker;
use rendered::Rendered;

/// What an answer needs to know of its request and how the connection goes on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Context {
    pub(crate) method: Method,
    pub(crate) version: Version,
    /// Whether the connection lives on behind this answer.
    pub(crate) keep_alive: bool,
}

impl Context {
    /// Whether the usual head fits: HTTP/1.1, which stays open by default and says nothing about it.
    pub(crate) fn is_usual(self) -> bool {
        self.keep_alive && self.version == Version::Http11
    }
}

/// Where an answer is written.
pub(crate) struct Writer<'a> {
    pub(crate) worker: &'a Worker,
    pub(crate) stream: &'a Transport,
    pub(crate) output: &'a mut Output,
    /// What the route changes in its answers.
    pub(crate) edits: Option<Applied<'a>>,
    pub(crate) record: &'a Record,
}

impl<'a> Writer<'a> {
    /// What is written next is an error of our own, and no answer of the route.
    pub(crate) fn says_error(&mut self) {
        self.edits = self.edits.filter(Applied::are_for_errors);
    }

    /// What the route changes in an answer of this status.
    fn edits_of(&self, status: u16) -> Option<Applied<'a>> {
        self.edits.filter(|edits| edits.are_for(status))
    }

    /// Writes a head of at most a buffer with `head`, between the status line and the fields that depend on the
    /// connection.
    pub(crate) fn head(
        &mut self,
        status: u16,
        context: Context,
        fields: impl FnOnce(&mut onrush_http::write::HeadWriter<'_>),
    ) -> Result<(), Error> {
        let date = self.worker.date();
        let edits = self.edits_of(status);
        let room = HEAD_BYTES_MAX + edits.map_or(0, |_| ANSWER_LINES_BYTES_MAX);
        let buffer = self.output.room(self.stream, room)?;
        let mut head = onrush_http::write::HeadWriter::new(buffer.spare());
        head.status_line(status).raw(rendered::SERVER).date(&date);
        fields(&mut head);
        if !context.keep_alive {
            head.connection_close();
        } else if context.version == Version::Http10 {
            head.keep_alive();
        }
        let bytes = head
            .end()
            .finish()
            .expect("heads of our own are far shorter than a buffer");
        let bytes = match edits {
            None => bytes,
            Some(edits) => edits
                .rewrite(buffer.spare(), bytes)
                .expect("there is room for what is added"),
        };
        buffer.fill(bytes);
        self.record.answer(status);
        Ok(())
    }

    /// Writes an answer that has been rendered, in the usual [`Context`].
    #[inline]
    pub(crate) fn rendered(&mut self, status: u16, rendered: &Rendered) -> Result<(), Error> {
        if self.edits.is_some()
            && let Some(edits) = self.edits_of(status)
        {
            return self.rendered_edited(status, rendered, edits);
        }
        self.record.answer(status);
        let buffer = self.output.room(self.stream, rendered.length())?;
        rendered.with(self.worker, |head, body| {
            let fits = buffer.put(head) && buffer.put(body);
            debug_assert!(fits);
        });
        Ok(())
    }

    fn rendered_edited(
        &mut self,
        status: u16,
        rendered: &Rendered,
        edits: Applied<'_>,
    ) -> Result<(), Error> {
        self.record.answer(status);
        let Self {
            worker,
            stream,
            output,
            edits: _,
            record: _,
        } = self;
        rendered.with(worker, |head, body| {
            let buffer = output.room(stream, head.len() + ANSWER_LINES_BYTES_MAX)?;
            let room = buffer.spare();
            room[..head.len()].copy_from_slice(head);
            let bytes = edits
                .rewrite(room, head.len())
                .expect("there is room for what is added");
            buffer.fill(bytes);
            output.put(stream, body)
        })
    }
}

/// Room that every head of our own fits into: the longest has a redirect's Location, which is bounded by the target's
/// length (8 KiB), or the fields of a configured answer.
pub(crate) const HEAD_BYTES_MAX: usize = 12 * 1024;
