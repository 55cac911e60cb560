//! The request body's way: from the client to the server.

use onrush_engine::Input;
use onrush_http::body::BodyReader;
use onrush_tls::Transport;

use super::failure::Failure;
use super::forward::Forward;
use super::portion;
use super::progress::Progress;
use crate::exchange::Exchange;
use crate::output::Output;
use crate::worker::Worker;

/// Everything a request's body passes on its way.
pub(crate) struct Upload<'a> {
    pub(crate) forward: &'a Forward,
    pub(crate) exchange: &'a Exchange,
    pub(crate) worker: &'a Worker,
    pub(crate) client: &'a Transport,
    pub(crate) input: &'a mut Input,
    pub(crate) server: &'a Transport,
    pub(crate) body: &'a mut BodyReader,
    pub(crate) progress: &'a Progress,
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
        let (core, timeouts) = (&self.worker.core, &self.exchange.site().timeouts);
        let (exchange, worker) = (self.exchange, self.worker);
        let keeps = |name: &[u8]| exchange.request_keeps(name);
        let mut output = Output::default();
        loop {
            if !self.input.is_empty() {
                self.progress.body_will_come.set(true);
            }
            let (body, input) = (&mut *self.body, &mut *self.input);
            portion::pass(
                body,
                input,
                &mut output,
                self.server,
                &worker.limits,
                &keeps,
            )
            .map_err(|refusal| Stopped::ByClient(Failure::BadRequest(refusal.into())))?
            .map_err(|error| Stopped::ByClient(Failure::Client(error)))?;
            self.progress.body_left.set(self.body.left());
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
                Ok(0) => {
                    return Err(Stopped::ByClient(Failure::BadRequest(
                        "it ended early".into(),
                    )));
                }
                Ok(_) => {}
                Err(error) => return Err(Stopped::ByClient(Failure::Client(error))),
            }
        }
    }
}
