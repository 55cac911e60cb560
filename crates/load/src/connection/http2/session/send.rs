//! Sends the requests of all lanes together, and bodies as the windows permit.

use std::task::Poll;

use onrush_engine::Instant;
use onrush_http::http2::code::Code;
use onrush_http::http2::{CannotOpen, End as Ends};
use onrush_tls::Transport;

use super::{Session, codec_of};
use crate::connection::core_run::CoreRun;
use crate::connection::http2::lane::Lane;
use crate::limits::http2::UNSENT_BYTES_MAX;
use crate::protocol::failure::NoResponse;
use crate::requests::request::LastRequest;

impl Session {
    /// Opens a stream for the request of `lane`, which is at `place` of connection `index`. Returns the number of bytes
    /// written; `None` if no stream is available.
    pub(in crate::connection::http2) fn open(
        &mut self,
        core_run: &CoreRun,
        index: u32,
        (place, lane): (usize, &mut Lane),
    ) -> Option<u64> {
        let before = self.out.len();
        let request = (lane.number, lane.kind);
        let session = (&mut self.connection, &mut *self.heads);
        let opened = codec_of(core_run).open(session, index, request, &mut self.out);
        let opened = match opened {
            Ok(opened) => opened,
            Err(CannotOpen::Full) => return None,
            Err(CannotOpen::GoingAway | CannotOpen::Exhausted) => {
                self.is_leaving = true;
                return None;
            }
        };
        let stream = opened.stream;
        self.lane_of_slot[stream.slot()] = place as u32;
        self.unsent.push(place as u32);
        lane.begin(stream, core_run.core.now());
        lane.is_early = !self.connection.has_peer_settings();
        if let Some(body) = opened.body {
            lane.body = Some((body, 0));
            self.connection.ready(stream);
        }
        self.opened += 1;
        if core_run.supply.is_last(self.opened) == LastRequest::Yes {
            self.is_leaving = true;
            self.connection.go_away(Code::NO_ERROR, &mut self.out);
        }
        Some((self.out.len() - before) as u64)
    }

    /// Sends queued frames as far as the kernel accepts them.
    ///
    /// # Errors
    /// If the connection has failed.
    pub(in crate::connection::http2) fn send(
        &mut self,
        core_run: &CoreRun,
        stream: &Transport,
        lanes: &mut [Lane],
    ) -> Result<(), NoResponse> {
        loop {
            if !self.is_flushing {
                self.fill(lanes, core_run.core.now());
                if self.out.is_empty() {
                    return Ok(());
                }
                self.note_written(stream, lanes);
                std::mem::swap(&mut self.unsent, &mut self.sent);
                self.flushed = core_run.core.now_exact();
                stream.queue_bytes(&self.out);
                self.out.clear();
                self.is_flushing = true;
                if !self.is_timed && self.connection.open_streams() > 0 {
                    self.is_timed = true;
                    core_run.extend_deadline(stream, self.flushed);
                }
            }
            match stream.poll_flush() {
                Poll::Pending => return Ok(()),
                Poll::Ready(flushed) => flushed?,
            }
            self.is_flushing = false;
            self.connection.sent();
        }
    }

    /// Sets a deadline if nothing is outstanding and a lane waits for a stream.
    pub(in crate::connection::http2) fn await_room(
        &mut self,
        core_run: &CoreRun,
        stream: &Transport,
    ) {
        if !self.is_timed && self.connection.open_streams() == 0 {
            self.is_timed = true;
            core_run.extend_deadline(stream, core_run.core.now_exact());
        }
    }

    /// Queues the last frame of a connection that is given up, if any.
    pub(in crate::connection::http2) fn send_last(&mut self, stream: &Transport) {
        stream.queue_bytes(&self.out);
        self.out.clear();
        // Best effort.
        let _ = stream.poll_flush();
    }

    /// Writes as much of the bodies as windows and memory permit.
    pub(super) fn fill(&mut self, lanes: &mut [Lane], now: Instant) {
        while self.out.len() < UNSENT_BYTES_MAX
            && let Some(stream) = self.connection.next_ready()
        {
            let lane = &mut lanes[self.lane_of_slot[stream.slot()] as usize];
            let (body, from) = lane
                .body
                .take()
                .expect("only streams with a body are ready");
            let left = &body[from..];
            let sent = self
                .connection
                .send_body(stream, left, Ends::Stream, &mut self.out);
            let sent = sent.expect("a ready stream is open");
            lane.at = now;
            if sent < left.len() {
                lane.body = Some((body, from + sent));
            } else if let Some(answer) = lane.answer {
                lane.end(answer);
            }
        }
    }

    /// Records when the requests of the last flush were written, once that is known.
    pub(super) fn note_written(&mut self, stream: &Transport, lanes: &mut [Lane]) {
        if self.sent.is_empty() {
            return;
        }
        let known = stream.written().unwrap_or(self.flushed);
        let written = known.max(self.flushed);
        for place in self.sent.drain(..) {
            lanes[place as usize].written = written;
        }
    }
}
