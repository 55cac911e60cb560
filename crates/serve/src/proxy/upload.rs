//! Relays a request body from the client to an HTTP/1 server.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

use onrush_engine::{Instant, Splice};
use onrush_http::Refusal;
use onrush_tls::Transport;

use super::attempt::Attempt;
use super::failure::Failure;
use super::progress::Progress;
use super::splice::SpliceEnds;
use crate::exchange::downstream::request_body::RequestBody;
use crate::exchange::output::Output;
use crate::observe::meter::Message;

pub(crate) struct Upload<'a> {
    pub(crate) attempt: Attempt<'a>,
    pub(crate) body: RequestBody<'a>,
    pub(crate) server: &'a Transport,
}

/// Why an upload ended before its body did.
pub(crate) enum UploadError {
    /// The server accepts no more. It may have responded nevertheless.
    ByServer,
    /// The client sends no more, or something malformed.
    ByClient(Failure),
}

impl Upload<'_> {
    /// Sends the head, already queued, and the whole body.
    pub(crate) async fn run(&mut self) -> Result<(), UploadError> {
        let Attempt {
            exchange,
            worker,
            progress,
            ..
        } = self.attempt;
        let keeps = |name: &[u8]| exchange.request_keeps(name);
        let mut output = Output::default();
        loop {
            if self.body.has_unread() {
                progress.body_started();
            }
            self.body
                .pass((&mut output, self.server), &worker.limits, &keeps)
                .map_err(|refusal| UploadError::ByClient(Failure::BadRequest(refusal)))?
                .map_err(|error| UploadError::ByClient(Failure::Client(error)))?;
            progress.body_left(self.body.remaining());
            self.set_server_deadline();
            output
                .flush(self.server)
                .await
                .map_err(|_| UploadError::ByServer)?;
            let (from, to) = (|| self.body.as_plain(), || self.server.as_plain());
            if let Some(ends) = SpliceEnds::new(self.body.remaining(), from, to) {
                // Boxed: only long bodies need memory for it.
                Box::pin(self.splice(ends)).await?;
            }
            if self.body.is_complete() {
                if self.body.has_dropped_trailers() {
                    worker.meter.trailers_dropped(Message::Request);
                }
                return Ok(());
            }
            let deadline = self.deadlines_of_wait();
            receive_more(&mut self.body, deadline).await?;
        }
    }

    /// Sets the deadline for sending to the server.
    pub(super) fn set_server_deadline(&self) {
        let timeouts = self.attempt.timeouts();
        let wait = if self.body.is_complete() {
            timeouts.upstream_first_byte
        } else {
            timeouts.upstream_body
        };
        let deadline = self
            .attempt
            .forward
            .deadline(&self.attempt.worker.core, wait);
        self.server.set_deadline(Some(deadline));
    }

    /// Sets the server's deadline, and returns the client's, for receiving more of the body.
    pub(super) fn deadlines_of_wait(&self) -> Instant {
        let (forward, core) = (self.attempt.forward, &self.attempt.worker.core);
        let timeouts = self.attempt.timeouts();
        // The server's deadline must outlast the client's.
        let wait = timeouts.client_body + timeouts.upstream_body;
        self.server.set_deadline(Some(forward.deadline(core, wait)));
        forward.deadline(core, timeouts.client_body)
    }
}

pub(super) async fn receive_more(
    body: &mut RequestBody<'_>,
    deadline: Instant,
) -> Result<(), UploadError> {
    match body.receive(deadline).await {
        Ok(0) => {
            let ended = Refusal::new(400, "it ended early");
            Err(UploadError::ByClient(Failure::BadRequest(ended)))
        }
        Ok(_) => Ok(()),
        Err(error) => Err(UploadError::ByClient(Failure::Client(error))),
    }
}

/// Runs both directions at once: a server may respond before it has read the whole request. Ends with the response.
pub(super) async fn run_both<T>(
    upload: impl Future<Output = Result<(), UploadError>>,
    download: impl Future<Output = Result<T, Failure>>,
    progress: &Progress,
) -> Result<T, Failure> {
    let mut upload = pin!(upload);
    let mut download = pin!(download);
    let mut uploading = true;
    poll_fn(|context| {
        if uploading && let Poll::Ready(outcome) = upload.as_mut().poll(context) {
            uploading = false;
            match outcome {
                Ok(()) => progress.request_is_sent(),
                // The response, if any, shows the reason.
                Err(UploadError::ByServer) => {}
                Err(UploadError::ByClient(failure)) => return Poll::Ready(Err(failure)),
            }
        }
        download.as_mut().poll(context)
    })
    .await
}

impl Upload<'_> {
    /// Splices the rest of the body to the server; returns early when the rest must be received into a buffer.
    pub(super) async fn splice(&mut self, ends: SpliceEnds<'_>) -> Result<(), UploadError> {
        let mut splice = Splice::default();
        while let Some(left @ 1..) = self.body.remaining() {
            ends.from.set_deadline(Some(self.deadlines_of_wait()));
            let taken = match splice.take(ends.from, left).await {
                Ok(0) => break,
                Ok(taken) => taken,
                Err(error) => return Err(UploadError::ByClient(Failure::Client(error))),
            };
            self.attempt.progress.body_started();
            self.body.count_spliced(taken);
            self.set_server_deadline();
            splice
                .give(ends.to)
                .await
                .map_err(|_| UploadError::ByServer)?;
            self.attempt.progress.body_left(self.body.remaining());
        }
        Ok(())
    }
}
