//! A user's connection, with one request at a time.

use std::future::poll_fn;
use std::task::Poll;

use onrush_engine::{Input, Instant};
use onrush_tls::Transport;

use crate::connection::core_run::CoreRun;
use crate::connection::core_run::journey_recorder::Counted;
use crate::connection::duplex::send_while_receiving;
use crate::journey::redirect::SerializedRequest;
use crate::journey::response::{InspectedParts, ParseStep, Response, ResponseParser};
use crate::protocol::failure::NoResponse;
use crate::protocol::http1::part;

pub(crate) struct Link {
    pub(crate) stream: Transport,
    pub(crate) input: Input,
    /// Responses received over it.
    pub(crate) responses: u64,
}

pub(crate) struct TimedResponse {
    pub(crate) response: Response,
    pub(crate) first_byte: Instant,
    /// Time of its last byte.
    pub(crate) at: Instant,
}

impl Link {
    pub(crate) fn new(stream: Transport) -> Link {
        Link {
            stream,
            input: Input::default(),
            responses: 0,
        }
    }

    /// Checks that nothing arrived since the last response; otherwise the connection is unusable.
    pub(crate) async fn look(&mut self) -> Result<(), NoResponse> {
        if !self.stream.is_spent() {
            return Ok(());
        }
        let Link { stream, input, .. } = self;
        let found = poll_fn(|_| Poll::Ready(stream.poll_recv(input))).await;
        match found {
            Poll::Pending => Ok(()),
            Poll::Ready(Ok(0) | Err(_)) => Err(NoResponse::Unwritten),
            Poll::Ready(Ok(_)) => Err(NoResponse::Unasked),
        }
    }

    pub(crate) fn queue(&self, written: &SerializedRequest) -> u64 {
        let mut bytes = written.text.len();
        self.stream.queue(part(self.stream.core(), &written.text));
        if let Some(body) = &written.body {
            bytes += body.len();
            self.stream.queue(body.clone());
        }
        bytes as u64
    }

    /// Sends what is queued and receives the response concurrently.
    pub(crate) async fn exchange(
        &mut self,
        core_run: &CoreRun,
        written: &SerializedRequest,
        wants: InspectedParts,
        counted: Counted,
    ) -> Result<TimedResponse, NoResponse> {
        let Link { stream, input, .. } = self;
        let incoming = ResponseParser::new(written.method, wants);
        let receiving = receive(core_run, stream, input, incoming, counted);
        let arrived = send_while_receiving(stream, receiving, |arrived| {
            &mut arrived.response.keep_alive
        })
        .await?;
        self.responses += 1;
        Ok(arrived)
    }
}

async fn receive(
    core_run: &CoreRun,
    stream: &Transport,
    input: &mut Input,
    mut incoming: ResponseParser,
    counted: Counted,
) -> Result<TimedResponse, NoResponse> {
    let mut has_begun = false;
    let mut first_byte = Instant::default();
    let mut now = core_run.core.now_exact();
    loop {
        has_begun |= !input.is_empty();
        let (bytes, step) = incoming.step(input.bytes());
        input.consume(bytes);
        if first_byte == Instant::default() && !matches!(step, ParseStep::ExpectHead) {
            first_byte = now;
        }
        match step {
            ParseStep::Done(response) => {
                return Ok(TimedResponse {
                    response,
                    first_byte,
                    at: now,
                });
            }
            ParseStep::Refused(reason) => return Err(NoResponse::Refused(reason)),
            ParseStep::ExpectHead | ParseStep::ExpectBody => {}
        }
        match stream.recv(input).await {
            Ok(0) => {
                now = core_run.step_received(stream, 0, counted);
                return match incoming.end() {
                    Some(response) => Ok(TimedResponse {
                        response,
                        first_byte,
                        at: now,
                    }),
                    None if has_begun => Err(NoResponse::Cut),
                    None => Err(NoResponse::Ended),
                };
            }
            Ok(count) => now = core_run.step_received(stream, count, counted),
            Err(error) if has_begun => return Err(NoResponse::Broken(error)),
            Err(error) => return Err(NoResponse::Failed(error)),
        }
    }
}
