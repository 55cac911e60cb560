//! Processes frames from a client.

use std::rc::Rc;

use onrush_http::http2::frame::{Flags, HEAD_BYTES, Head, Kind};
use onrush_http::http2::message::{lines_of_fields, request_trailers};
use onrush_http::http2::{Event, Stream};

use super::request::Request;
use super::{ClientAction, Http2, Stage, StepResult};
use crate::exchange::downstream::http2::session::SHUTDOWN_PING;
use crate::observe::close_counts::CloseReason;

impl Http2 {
    /// Responds to a request that has arrived. Body data that arrived with the head is processed first: complete
    /// requests are cheaper, and may be sent again.
    fn respond(&mut self, request: Request) {
        while self.stage != Stage::Failed
            && request
                .stream()
                .awaiting_body()
                .is_some_and(|stream| begins_with_data(self.input.bytes(), stream))
        {
            match self.step_once(&mut None) {
                Some(bytes) => self.input.consume(bytes),
                None => break,
            }
        }
        if self.stage != Stage::Failed {
            request.begin(&mut self.is_first);
        }
    }

    /// Processes the input, and responds as far as possible without waiting.
    pub(super) fn step(&mut self) -> StepResult {
        loop {
            if self.stage == Stage::Failed || self.input.is_empty() {
                return StepResult::Nothing;
            }
            if self.session.is_choked() {
                return StepResult::Input;
            }
            let mut opened = None;
            match self.step_once(&mut opened) {
                Some(bytes) => self.input.consume(bytes),
                None => return StepResult::Nothing,
            }
            if let Some(request) = opened {
                self.respond(request);
            }
            if self.waits == ClientAction::Rest && !self.session.is_in_field_block() {
                // An incomplete frame is now a different one, with a new timeout.
                self.waits = ClientAction::Nothing;
            }
            if self.stage != Stage::Failed
                && let Some(error) = self.session.failure()
            {
                self.cut(CloseReason::Error(error));
            }
        }
    }

    /// Processes one frame and returns its bytes, `None` if incomplete. A new request is put into `opened`.
    fn step_once(&mut self, opened: &mut Option<Request>) -> Option<usize> {
        let session = Rc::clone(&self.session);
        let mut state = session.state.borrow_mut();
        let state_now = &mut *state;
        let received = state_now
            .http
            .receive(self.input.bytes(), &mut state_now.frames);
        let step = match received {
            Ok(step) => step,
            Err(error) => {
                drop(state);
                self.service.worker.meter.invalid_input();
                self.cut(CloseReason::Error(error));
                return None;
            }
        };
        let bytes = step.bytes;
        match step.event {
            Event::NeedMore(_) => return None,
            Event::Head { stream, end, .. } => {
                let mut fields = state_now.spare_fields();
                state_now.http.swap_fields(&mut fields);
                drop(state);
                let of = (&self.session, &self.service);
                *opened = Some(Request::new(of, self.listener, (stream, end), fields));
            }
            Event::Data {
                stream,
                bytes: data,
                end,
            } => {
                drop(state);
                session.receive_data(stream, data, end);
            }
            Event::Trailers { stream, fields } => {
                let trailers = request_trailers(fields, &self.service.worker.limits);
                let lines = trailers.map(lines_of_fields);
                drop(state);
                match lines {
                    Ok(lines) => session.receive_trailers(stream, &lines),
                    Err(rejection) => {
                        self.service.worker.meter.invalid_input();
                        session.reject(stream, rejection.reason());
                        session.was_reset(stream);
                    }
                }
            }
            Event::Reset { stream, .. } => {
                drop(state);
                session.was_reset(stream);
            }
            Event::GoAway { .. } => {
                drop(state);
                self.stop_accepting();
            }
            Event::Window(_) | Event::Settings => {
                drop(state);
                session.windows_opened();
            }
            Event::Pong(SHUTDOWN_PING) if self.stage == Stage::GoAwaySent => {
                drop(state);
                self.stop_accepting();
            }
            Event::DataOfClosed(_) | Event::Pong(_) | Event::Nothing => {}
        }
        Some(bytes)
    }
}

/// Whether `input` starts with a complete, unpadded DATA frame of this stream.
fn begins_with_data(input: &[u8], stream: Stream) -> bool {
    Head::read(input).is_some_and(|head| {
        head.kind == Kind::Data
            && head.stream == stream.id()
            && !head.flags.has(Flags::PADDED)
            && input.len() - HEAD_BYTES >= head.length as usize
    })
}
