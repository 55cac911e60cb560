//! Steps over what a server has sent: each frame goes to its stream.

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
    /// Steps over `input`, which has come at `now`; how many bytes of it are done with.
    ///
    /// # Errors
    /// When what has come ends the connection.
    pub(super) fn take(
        &mut self,
        input: &[u8],
        limits: &Limits,
        now: Instant,
    ) -> Result<usize, Failure> {
        self.received_at = now;
        if self.http.is_answered_in_http1(input) {
            return Err(Failure::BadResponse(
                "it speaks HTTP/1, and protocol = \"h2\" is said of it".into(),
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

    /// Makes one step over `input`; how many bytes of it are done with, none when more has to come first.
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
                            flow.incoming.trailers.used().replace(lines);
                        }
                        self.take_data(stream, b"", End::Stream);
                    }
                    Err(rejection) => self.refuse(stream, rejection.reason()),
                }
            }
            Event::Reset { stream, cause } => self.was_reset(stream, cause),
            Event::GoAway { last, .. } => self.go(last),
            Event::Settings => self.settle(),
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
        self.http.exchange_fields(&mut fields);
        flow.incoming.heads.borrow_mut().push_back((fields, end));
        flow.incoming.has_ended.set(end == End::Stream);
        self.is_heard(&flow);
    }

    fn take_data(&mut self, stream: Stream, bytes: &[u8], end: End) {
        let Some(flow) = self.flow(stream) else {
            // Nobody wants it any more.
            return self
                .http
                .release(stream, bytes.len() as u32, &mut self.frames);
        };
        flow.incoming.append(bytes);
        // A client that does not read closes the window of its stream, not that of the connection (RFC 9113 5.2.1).
        self.http
            .release_of_connection(bytes.len() as u32, &mut self.frames);
        if end == End::Stream {
            flow.incoming.has_ended.set(true);
        }
        self.is_heard(&flow);
    }

    /// Something of a response has come. Of most all of it comes in one receive, so who has no task is told behind that.
    fn is_heard(&mut self, flow: &Flow) {
        match flow.waiter.take_parked() {
            Some(parked) => self.heard.push(parked),
            None => flow.wake(),
        }
    }

    /// What has come on a stream is no response.
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

    /// A stream has ended before its time, by the server or because of it.
    fn was_reset(&mut self, stream: Stream, cause: Cause) {
        let failure = match cause {
            // It has done nothing for the request (RFC 9113 8.7).
            Cause::Peer(Code::REFUSED_STREAM) => Failure::Unprocessed("it refused the stream"),
            Cause::Peer(code) => Failure::StreamReset(code),
            Cause::Local(error) => Failure::BadResponse(error.reason.into()),
        };
        self.fail_stream(stream, failure);
    }
}
