//! The answer's way: from the server to the client.

use onrush_engine::{Error, Input};
use onrush_http::response::{self, ResponseHead};
use onrush_http::{Framing, HeaderSlots, Parsed, Version};
use onrush_tls::Transport;

use super::failure::Failure;
use super::forward::Forward;
use super::group::Group;
use super::progress::Progress;
use super::relay::{Relay, Trailers};
use super::rewrite::{self, Afterwards, GROWTH_MAX, Onward, TooLarge};
use crate::edits::Applied;
use crate::exchange::Exchange;
use crate::hangup::unless_hung_up;
use crate::hop::ConnectionFields;
use crate::limits::INTERIM_ANSWERS_MAX;
use crate::output::Output;
use crate::worker::Worker;

/// Everything an answer passes on its way.
pub(crate) struct Download<'a> {
    pub(crate) forward: &'a Forward,
    /// The group and which of its servers.
    pub(crate) to: (&'a Group, u32),
    pub(crate) exchange: &'a Exchange,
    pub(crate) worker: &'a Worker,
    /// Where the answer comes from; none when all of it is in `server_input` already.
    pub(crate) server: Option<&'a Transport>,
    pub(crate) server_input: &'a mut Input,
    pub(crate) client: &'a Transport,
    pub(crate) output: &'a mut Output,
    pub(crate) progress: &'a Progress,
}

/// What a complete answer leaves behind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Done {
    /// The connection to the server may serve another request.
    pub(crate) server_lives: bool,
    /// How the connection to the client goes on.
    pub(crate) afterwards: Afterwards,
}

/// What the bytes received so far begin with.
enum Begun {
    Nothing,
    /// A 1xx, which has been written.
    Interim,
    Answer(Relay, Done),
}

impl<'a> Download<'a> {
    /// Sends the whole request, which is queued, and relays the answer.
    pub(crate) async fn send_and_run(&mut self) -> Result<Done, Failure> {
        let wait = self.exchange.site().timeouts.upstream_first_byte;
        let deadline = self.forward.deadline(&self.worker.core, wait);
        self.server().set_deadline(Some(deadline));
        let flushed = unless_hung_up(self.client, self.server().flush());
        let flushed = flushed.await.map_err(Failure::Client)?;
        flushed.map_err(Failure::Unanswered)?;
        self.progress.request_is_sent.set(true);
        self.run().await
    }

    /// Relays the answer, up to its last byte, which may still stand in the output.
    pub(crate) async fn run(&mut self) -> Result<Done, Failure> {
        let (mut relay, done) = self.head().await?;
        if relay.is_encoding() {
            return Box::pin(self.run_encoding(relay, done)).await;
        }
        let keeps = self.trailer_filter(&mut relay);
        loop {
            relay.advance(
                self.server_input,
                self.output,
                self.client,
                &self.worker.limits,
                &keeps,
            )?;
            if relay.is_complete() {
                break;
            }
            self.flush().await.map_err(Failure::Client)?;
            self.set_body_deadline();
            let received = self.receive().await?;
            self.body_received(received, &mut relay)?;
        }
        Ok(done)
    }

    /// Says by its name whether a trailer passes.
    pub(super) fn trailer_filter(&self, relay: &mut Relay) -> impl Fn(&[u8]) -> bool + use<'a> {
        let (trailers, exchange) = (relay.trailers(), self.exchange);
        let of_connection = relay.take_connection_fields();
        move |name| {
            !of_connection.contain(name)
                && (trailers == Trailers::Pass || exchange.answer_keeps(name))
        }
    }

    pub(super) fn set_body_deadline(&self) {
        let wait = self.exchange.site().timeouts.upstream_body;
        let deadline = self.forward.deadline(&self.worker.core, wait);
        self.server().set_deadline(Some(deadline));
    }

    /// Waits for more of the answer, as long as there is somebody to get it.
    pub(super) async fn receive(&mut self) -> Result<Result<usize, Error>, Failure> {
        let received = self.server().recv(self.server_input);
        let received = unless_hung_up(self.client, received).await;
        received.map_err(Failure::Client)
    }

    pub(super) fn body_received(
        &mut self,
        received: Result<usize, Error>,
        relay: &mut Relay,
    ) -> Result<(), Failure> {
        match received {
            Ok(0) => relay.end(self.output, self.client),
            Ok(_) => Ok(()),
            Err(error) if error.is_reset() => Err(Failure::Cut("it reset the connection".into())),
            Err(_) => Err(Failure::Cut("it fell silent".into())),
        }
    }

    pub(super) fn server(&self) -> &'a Transport {
        self.server
            .expect("an answer that is all there needs no more")
    }

    async fn head(&mut self) -> Result<(Relay, Done), Failure> {
        let mut interim_answers = 0;
        loop {
            match self.begin()? {
                Begun::Answer(relay, done) => return Ok((relay, done)),
                Begun::Interim => {
                    interim_answers += 1;
                    if interim_answers > INTERIM_ANSWERS_MAX {
                        return Err(Failure::BadAnswer("its interim answers do not end".into()));
                    }
                    self.flush().await.map_err(Failure::Client)?;
                    continue;
                }
                Begun::Nothing => {}
            }
            let nothing_yet = self.server_input.is_empty();
            match self.receive().await? {
                Ok(0) if nothing_yet => return Err(Failure::ClosedUnanswered),
                Ok(0) => return Err(Failure::BadAnswer("it ended within its head".into())),
                Ok(_) => self.progress.server_has_spoken.set(true),
                Err(error) => return Err(Failure::Unanswered(error)),
            }
        }
    }

    /// Looks for a head at the start of what has arrived and writes it for the client.
    fn begin(&mut self) -> Result<Begun, Failure> {
        if self.server_input.is_empty() {
            return Ok(Begun::Nothing);
        }
        let mut slots = HeaderSlots::new();
        let (bytes, method) = (self.server_input.bytes(), self.forward.method());
        let head = match response::parse(bytes, &mut slots, method, &self.worker.limits) {
            Parsed::Complete(head) => head,
            Parsed::Partial => return Ok(Begun::Nothing),
            Parsed::Refused(refusal) => return Err(Failure::BadAnswer(refusal.into())),
        };
        let is_tunnel = head.status == 101;
        if is_tunnel {
            self.forward.grants(&head)?;
        }
        let version = self.forward.version();
        let consumed = head.bytes;
        if head.status < 200 && !is_tunnel {
            let (exchange, client, version) = (self.exchange, self.client, self.forward.version());
            pass_interim(&head, version, exchange, self.output, client, self.progress)?;
            self.server_input.consume(consumed);
            return Ok(Begun::Interim);
        }
        let (group, server) = self.to;
        self.forward
            .is_answered_now(server, group, self.worker, head.status);
        let now = self.worker.core.now();
        if self.forward.drops(head.status, self.to, self.progress, now) {
            return Err(Failure::Status(head.status));
        }
        let is_sent = self.progress.request_is_sent.get();
        let (mut relay, change) = self.relay(&head);
        let afterwards = self.afterwards(&head, &relay);
        let done = Done {
            server_lives: head.keep_alive && head.framing != Framing::UntilClose && is_sent,
            afterwards,
        };
        let onward = Onward {
            version,
            afterwards,
            chunked: relay.is_chunked_for_client(head.framing),
            cookie: self.forward.needs_cookie(server, group).then_some((
                group,
                server,
                self.forward.scheme,
            )),
            change,
        };
        let name = &group.server(server).name;
        let edits = self.exchange.answer_edits(name);
        let edits = edits.filter(|edits| edits.are_for(head.status));
        if edits.is_some() {
            relay.set_trailers(Trailers::Edited);
        }
        let (worker, client) = (self.worker, self.client);
        let names_fields = write_head(&head, onward, worker, edits.as_ref(), self.output, client)?;
        if names_fields && head.framing == Framing::Chunked {
            relay.set_connection_fields(ConnectionFields::of(head.headers));
        }
        self.exchange.record().answer(head.status);
        self.progress.client_is_told.set(true);
        self.progress.answer_has_begun.set(true);
        self.progress
            .ends_by_closing
            .set(relay.ends_by_closing(head.framing));
        self.server_input.consume(consumed);
        Ok(Begun::Answer(relay, done))
    }

    /// How the client's connection goes on behind the answer with this head.
    fn afterwards(&self, head: &ResponseHead<'_, '_>, relay: &Relay) -> Afterwards {
        let forward = self.forward;
        let client_lives = forward.keep_alive()
            && !(self.worker).ends_with_this(forward.is_followed(), self.client)
            && (self.progress.request_is_sent.get() || self.progress.rest_is_short())
            && !relay.ends_by_closing(head.framing);
        match client_lives {
            _ if head.status == 101 => Afterwards::Tunnel,
            true => Afterwards::NextRequest,
            false => Afterwards::End,
        }
    }

    /// Sends what is written to the client. Its error is the client's.
    pub(super) fn flush(&mut self) -> impl Future<Output = Result<(), Error>> {
        let timeouts = &self.exchange.site().timeouts;
        let wait = if self.progress.request_is_sent.get() {
            timeouts.client_send
        } else {
            // The upload may be waiting for the client at the same time; a connection has one deadline.
            timeouts.client_send.max(timeouts.client_body)
        };
        self.client.set_send_patience(wait);
        self.output.flush(self.client)
    }
}

/// Writes an interim answer for the client, if it knows any: HTTP/1.0 does not (RFC 9110 15.2).
fn pass_interim(
    head: &ResponseHead<'_, '_>,
    version: Version,
    exchange: &Exchange,
    output: &mut Output,
    client: &Transport,
    progress: &Progress,
) -> Result<(), Failure> {
    if version != Version::Http11 {
        return Ok(());
    }
    let edits = exchange.answer_edits("");
    let buffer = output.room(client, head.bytes + GROWTH_MAX);
    rewrite::interim(head, edits.as_ref(), buffer.map_err(Failure::Client)?);
    progress.client_is_told.set(true);
    if head.status == 100 {
        progress.body_will_come.set(true);
    }
    Ok(())
}

/// Writes the head of the answer for the client; whether it says which fields are for its connection only.
fn write_head(
    head: &ResponseHead<'_, '_>,
    onward: Onward<'_>,
    worker: &Worker,
    edits: Option<&Applied<'_>>,
    output: &mut Output,
    client: &Transport,
) -> Result<bool, Failure> {
    let room = rewrite::response_room(head.bytes, edits);
    let buffer = output.room(client, room).map_err(Failure::Client)?;
    rewrite::response(head, onward, worker, edits, buffer)
        .map_err(|TooLarge| Failure::BadAnswer("its head leaves no room for what is added".into()))
}
