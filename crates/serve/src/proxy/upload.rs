//! The request body's way: from the client to the server.

use onrush_engine::Input;
use onrush_http::body::BodyReader;
use onrush_tls::Transport;

use super::failure::Failure;
use super::forward::Forward;
use super::relay::forward;
use crate::output::Output;
use crate::worker::Worker;

/// Everything a request's body passes on its way.
pub(crate) struct Upload<'a> {
    pub(crate) forward: &'a Forward,
    pub(crate) worker: &'a Worker,
    pub(crate) client: &'a Transport,
    pub(crate) input: &'a mut Input,
    pub(crate) server: &'a Transport,
    pub(crate) body: &'a mut BodyReader,
}

/// Why an upload ended before its body.
pub(crate) enum Stopped {
    /// The server takes no more. It may have answered all the same.
    ByServer,
    /// The client sends no more, or nothing that makes sense.
    ByClient(Failure),
}

impl Upload<'_> {
    /// Sends the head that is queued already and the whole body behind it.
    pub(crate) async fn run(&mut self) -> Result<(), Stopped> {
        let (core, timeouts) = (&self.worker.core, &self.worker.timeouts);
        let mut output = Output::default();
        loop {
            let bytes = self
                .body
                .skip(self.input.bytes(), &self.worker.limits)
                .map_err(|refusal| Stopped::ByClient(Failure::BadRequest(refusal.reason)))?;
            forward(self.input, bytes, &mut output, self.server)
                .map_err(|error| Stopped::ByClient(Failure::Client(error)))?;
            let wait = if self.body.is_complete() {
                timeouts.upstream_first_byte
            } else {
                timeouts.upstream_body
            };
            self.server
                .set_deadline(Some(self.forward.deadline(core, wait)));
            output
                .flush(self.server)
                .await
                .map_err(|_| Stopped::ByServer)?;
            if self.body.is_complete() {
                return Ok(());
            }
            let deadline = self.forward.deadline(core, timeouts.client_body);
            self.client.set_deadline(Some(deadline));
            // The server waits as long as the client may.
            let wait = timeouts.client_body + timeouts.upstream_body;
            self.server
                .set_deadline(Some(self.forward.deadline(core, wait)));
            match self.client.recv(self.input).await {
                Ok(0) => return Err(Stopped::ByClient(Failure::BadRequest("it ended early"))),
                Ok(_) => {}
                Err(error) => return Err(Stopped::ByClient(Failure::Client(error))),
            }
        }
    }
}
