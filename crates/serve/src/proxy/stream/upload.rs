//! Relays a request body from the client to an HTTP/2 stream.

use onrush_engine::Instant;

use crate::exchange::downstream::request_body::RequestBody;
use crate::proxy::attempt::Attempt;
use crate::proxy::failure::Failure;
use crate::proxy::multiplexed::Submission;
use crate::proxy::upload::{UploadError, receive_more};

pub(crate) struct StreamUpload<'a> {
    attempt: Attempt<'a>,
    stream: &'a Submission,
    body: RequestBody<'a>,
}

impl<'a> StreamUpload<'a> {
    pub(crate) fn new(attempt: Attempt<'a>, stream: &'a Submission, body: RequestBody<'a>) -> Self {
        Self {
            attempt,
            stream,
            body,
        }
    }

    /// Sends the body, whose head is already written. Everything received is sent before more is received.
    pub(crate) async fn run(&mut self) -> Result<(), UploadError> {
        let Attempt {
            exchange,
            worker,
            progress,
            ..
        } = self.attempt;
        let keeps = |name: &[u8]| exchange.request_keeps(name);
        loop {
            if self.body.has_unread() {
                progress.body_started();
            }
            let body = &mut self.body;
            self.stream
                .write(|data, trailers| body.append_to((data, trailers), &worker.limits, &keeps))
                .map_err(|refusal| UploadError::ByClient(Failure::BadRequest(refusal)))?;
            progress.body_left(self.body.remaining());
            let is_complete = self.body.is_complete();
            if is_complete {
                self.stream.end();
            }
            self.set_server_deadline();
            self.stream
                .flush()
                .await
                .map_err(|_| UploadError::ByServer)?;
            if is_complete {
                return Ok(());
            }
            let deadline = self.set_receive_deadlines();
            receive_more(&mut self.body, deadline).await?;
        }
    }

    /// Sets the deadline for sending to the server.
    fn set_server_deadline(&self) {
        let timeouts = self.attempt.timeouts();
        let wait = match self.body.is_complete() {
            true => timeouts.upstream_first_byte,
            false => timeouts.upstream_body,
        };
        self.wait_for_server(wait);
    }

    /// Sets the server's deadline, which must outlast the client's, and returns the latter, for receiving more of the
    /// body.
    fn set_receive_deadlines(&self) -> Instant {
        let timeouts = self.attempt.timeouts();
        self.wait_for_server(timeouts.client_body + timeouts.upstream_body);
        let (forward, core) = (self.attempt.forward, &self.attempt.worker.core);
        forward.deadline(core, timeouts.client_body)
    }

    fn wait_for_server(&self, wait: std::time::Duration) {
        let (forward, core) = (self.attempt.forward, &self.attempt.worker.core);
        self.stream.set_deadline(forward.deadline(core, wait));
    }
}
