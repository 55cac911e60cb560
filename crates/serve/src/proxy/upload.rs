//! The request body's way: from the client to the server.

use onrush_tls::Transport;

use super::attempt::Attempt;
use super::failure::Failure;
use crate::downstream::request_body::RequestBody;
use crate::output::Output;

/// Everything a request's body passes on its way.
pub(crate) struct Upload<'a> {
    pub(crate) attempt: Attempt<'a>,
    pub(crate) body: RequestBody<'a>,
    pub(crate) server: &'a Transport,
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
        let Attempt {
            forward,
            exchange,
            worker,
            progress,
            ..
        } = self.attempt;
        let (core, timeouts) = (&worker.core, self.attempt.timeouts());
        let keeps = |name: &[u8]| exchange.request_keeps(name);
        let mut output = Output::default();
        loop {
            if self.body.has_arrived() {
                progress.body_comes();
            }
            self.body
                .pass((&mut output, self.server), &worker.limits, &keeps)
                .map_err(|refusal| Stopped::ByClient(Failure::BadRequest(refusal.into())))?
                .map_err(|error| Stopped::ByClient(Failure::Client(error)))?;
            progress.body_left(self.body.left());
            let wait = if self.body.is_complete() {
                timeouts.upstream_first_byte
            } else {
                timeouts.upstream_body
            };
            self.server.set_deadline(Some(forward.deadline(core, wait)));
            output
                .flush(self.server)
                .await
                .map_err(|_| Stopped::ByServer)?;
            if self.body.is_complete() {
                return Ok(());
            }
            let deadline = forward.deadline(core, timeouts.client_body);
            // The server waits as long as the client may.
            let wait = timeouts.client_body + timeouts.upstream_body;
            self.server.set_deadline(Some(forward.deadline(core, wait)));
            match self.body.receive(deadline).await {
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
