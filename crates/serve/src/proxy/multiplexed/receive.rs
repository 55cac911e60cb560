//! Processes frames from a server and assigns them to their streams.

use onrush_engine::Instant;
use onrush_http::Limits;
use onrush_http::http2::code::Code;
use onrush_http::http2::message::{lines_of_fields, response_trailers};
use onrush_http::http2::{Cause, End, Event, Stream};

use super::flow::Flow;
use super::state::State;
use crate::limits::INTERIM_RESPONSES_MAX;
use crate::proxy::failure::Failure;

impl State {
    /// Processes `input`, received at `now`. Returns the number of bytes consumed.
    ///
    /// # Errors
    /// If the input ends the connection.
    pub(super) fn take(
        &mut self,
        input: &[u8],
        limits: &Limits,
        now: Instant,
    ) -> Result<usize, Failure> {
        self.received_at = now;
        if self.http.is_http1_response(input) {
            return Err(Failure::BadResponse(
                "it responded with HTTP/1, but protocol = \"h2\" is configured".into(),
            ));
        }
        let mut at = 0;
        while at < input.len() {
            let bytes = self.take_once(&input[at..], limits)?;
            if bytes == 0 {
                break;
            }
            at += bytes;
        }
        self.open_waiting(now);
        Ok(at)
    }

    /// Processes one frame of `input`. Returns the number of bytes consumed, 0 if the input is incomplete.
    fn take_once(&mut self, input: &[u8], limits: &Limits) -> Result<usize, Failure> {
        let step = self.http.receive(input, &mut self.frames);
        let step = step.map_err(|error| Failure::BadResponse(error.reason.into()))?;
        let done = step.bytes;
        match step.event {
            Event::NeedMore(_) => return Ok(0),
            Event::Head { stream, end, .. } => self.take_head(stream, end),
            Event::Data { stream, bytes, end } => self.take_data(stream, bytes, end),
            Event::Trailers { stream, fields } => {
                match response_trailers(fields, limits).map(lines_of_fields) {
                    Ok(lines) => {
                        if let Some(flow) = self.flow(stream) {
                            flow.incoming.trailers.get_or_default().replace(lines);
                        }
                        self.take_data(stream, b"", End::Stream);
                    }
                    Err(rejection) => self.refuse(stream, rejection.reason()),
                }
            }
            Event::Reset { stream, cause } => self.was_reset(stream, cause),
            Event::GoAway { last, .. } => self.handle_goaway(last),
            Event::Settings => self.apply_settings(),
            Event::DataOfClosed(_) | Event::Window(_) | Event::Pong(_) | Event::Nothing => {}
        }
        Ok(done)
    }

    fn take_head(&mut self, stream: Stream, end: End) {
        let Some(flow) = self.flow(stream) else {
            return;
        };
        if flow.incoming.heads.borrow().len() > INTERIM_RESPONSES_MAX {
            return self.refuse(stream, "its interim responses do not end");
        }
        let mut fields = self.spare_fields();
        self.http.swap_fields(&mut fields);
        flow.incoming.heads.borrow_mut().push_back((fields, end));
        flow.incoming.has_ended.set(end == End::Stream);
        self.notify(&flow);
    }

    fn take_data(&mut self, stream: Stream, bytes: &[u8], end: End) {
        let Some(flow) = self.flow(stream) else {
            // The stream is closed.
            return self
                .http
                .release(stream, bytes.len() as u32, &mut self.frames);
        };
        flow.incoming.append(bytes);
        // A client that does not read exhausts the window of its stream, not that of the connection (RFC 9113 5.2.1).
        self.http
            .release_connection_window(bytes.len() as u32, &mut self.frames);
        if end == End::Stream {
            flow.incoming.has_ended.set(true);
        }
        self.notify(&flow);
    }

    /// Notifies the client's request of a part of its response. Most responses arrive in one receive, so a parked
    /// request is resumed after all frames have been processed.
    fn notify(&mut self, flow: &Flow) {
        match flow.waiter.take_parked() {
            Some(parked) => self.to_resume.push(parked),
            None => flow.wake(),
        }
    }

    /// Resets a stream because of a malformed response.
    fn refuse(&mut self, stream: Stream, reason: &'static str) {
        self.http
            .reset(stream, Code::PROTOCOL_ERROR, &mut self.frames);
        self.fail_stream(stream, Failure::BadResponse(reason.into()));
    }

    fn fail_stream(&mut self, stream: Stream, failure: Failure) {
        if let Some(flow) = self.flow(stream) {
            flow.fail(failure);
            self.forget(&flow);
        }
    }

    /// Handles a stream that was reset, by the server or locally because of an error of the server.
    fn was_reset(&mut self, stream: Stream, cause: Cause) {
        let failure = match cause {
            // The request was not processed (RFC 9113 8.7).
            Cause::Peer(Code::REFUSED_STREAM) => Failure::Unprocessed("it refused the stream"),
            Cause::Peer(code) => Failure::StreamReset(code),
            Cause::Local(error) => Failure::BadResponse(error.reason.into()),
        };
        self.fail_stream(stream, failure);
    }
}
