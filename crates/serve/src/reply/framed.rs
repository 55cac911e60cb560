//! A response of the protocol of tests: see [`crate::downstream::framed`].

use std::rc::Rc;
use std::time::Duration;

use onrush_engine::{Error, File};
use onrush_http::response::ResponseHead;
use onrush_tls::Transport;

use super::fields::{Fields, pairs_of};
use super::{Interim, TooLarge, pairs};
use crate::downstream::framed::{Frame, Shared};
use crate::response_edits::Applied;
use crate::worker::Worker;

/// Where one is written.
pub(crate) struct Reply<'a> {
    shared: &'a Rc<Shared>,
    id: u32,
}

impl<'a> Reply<'a> {
    pub(crate) fn new(shared: &'a Rc<Shared>, id: u32) -> Self {
        Self { shared, id }
    }

    fn write(&self, frame: Frame, payload: &[u8]) {
        self.shared.write(frame, self.id, payload);
    }

    fn write_head(&self, frame: Frame, status: u16, pairs: &[(String, Vec<u8>)]) {
        let mut text = format!("{status}\n").into_bytes();
        for (name, value) in pairs {
            text.extend_from_slice(name.as_bytes());
            text.push(b':');
            text.extend_from_slice(value);
            text.push(b'\n');
        }
        self.write(frame, &text);
    }

    pub(super) fn head(
        &mut self,
        status: u16,
        worker: &Worker,
        edits: Option<Applied<'_>>,
        fields: impl FnOnce(&mut Fields<'_>),
    ) {
        let (pairs, _) = pairs::own(worker, edits, fields);
        self.write_head(Frame::Head, status, &pairs);
    }

    pub(super) fn forwarded_head(
        &mut self,
        head: &ResponseHead<'_, '_>,
        edits: Option<Applied<'_>>,
        fields: impl FnOnce(&mut Fields<'_>),
    ) -> Result<(), TooLarge> {
        let (pairs, _) = pairs::forwarded(edits, fields);
        self.write_head(Frame::Head, head.status, &pairs);
        Ok(())
    }

    pub(super) fn interim(&mut self, status: u16, fields: impl FnOnce(&mut Fields<'_>)) -> Interim {
        let mut pairs = Vec::new();
        fields(&mut Fields::pairs(&mut pairs));
        self.write_head(Frame::Interim, status, &pairs);
        Interim::Written
    }

    pub(super) fn data(&mut self, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.write(Frame::Data, bytes);
        }
    }

    pub(super) fn fill(&mut self, room_min: usize, fill: impl FnOnce(&mut [u8]) -> usize) {
        let mut room = vec![0; room_min];
        let written = fill(&mut room);
        self.data(&room[..written]);
    }

    pub(super) fn end(&mut self) {
        self.write(Frame::End, b"");
    }

    pub(super) fn trailers(&mut self, lines: &[u8]) {
        for (name, value) in pairs_of(lines) {
            self.write(
                Frame::Trailer,
                &[name.to_ascii_lowercase().as_bytes(), b":", value].concat(),
            );
        }
        if lines.ends_with(b"\r\n\r\n") || lines == b"\r\n" {
            self.end();
        }
    }

    pub(super) fn stream(&self) -> &'a Transport {
        &self.shared.transport
    }

    pub(super) async fn flush(&mut self, patience: Duration) -> Result<(), Error> {
        self.shared.flush(patience).await
    }

    pub(super) async fn file(
        &mut self,
        file: &File,
        (offset, length): (u64, u64),
        patience: Duration,
    ) -> Result<u64, Error> {
        let mut piece = vec![0; length.min(16 * 1024) as usize];
        file.read_exact(offset, &mut piece)?;
        self.data(&piece);
        self.flush(patience).await?;
        Ok(piece.len() as u64)
    }
}
