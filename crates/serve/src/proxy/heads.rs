//! Relays heads of responses from a server to the client, for HTTP/1 and HTTP/2 servers.

use onrush_http::response::ResponseHead;
use onrush_http::{Framing, Method, Version, header_is};

use super::attempt::Attempt;
use super::failure::Failure;
use super::progress::ResponseSide;
use super::relay::{Relay, Trailers};
use super::rewrite::{self, ResponseChanges};
use super::upgrade;
use crate::exchange::encoding::Encoding;
use crate::exchange::reply::fields::{BodyLength, HeadInputs};
use crate::exchange::reply::{Interim, Persistence, Reply, TooLarge};
use crate::rules::error_page::ErrorFormat;
use crate::rules::forwarding::GROWTH_MAX;
use crate::worker::connection_fields::ConnectionFields;

/// A response whose head has been written for the client.
pub(super) struct RelayedHead {
    pub(super) encoding: Option<Encoding>,
    pub(super) trailers: Trailers,
    /// Whether its Connection field names other fields.
    pub(super) names_fields: bool,
}

/// State of the trailers when the head is relayed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum TrailerState {
    Arrived,
    /// Trailers may follow.
    Unknown,
}

impl Attempt<'_> {
    /// Writes an interim response for the client, unless the client's protocol version has none.
    pub(super) fn pass_interim(
        &self,
        head: &ResponseHead<'_, '_>,
        reply: &mut Reply<'_>,
    ) -> Result<(), Failure> {
        let edits = self.exchange.response_edits("");
        if edits.is_some_and(|edits| edits.refuse(head.headers)) {
            return Err(Failure::RefusedField);
        }
        let written = reply.interim(head, head.bytes + GROWTH_MAX, |fields| {
            rewrite::interim(head, edits.as_ref(), fields);
        });
        if written.map_err(Failure::Client)? == Interim::Written {
            self.progress.advance_response(ResponseSide::Interim);
            if head.status == 100 {
                self.progress.body_started();
            }
        }
        Ok(())
    }

    /// Records the head of the final response and checks that it may be relayed.
    pub(super) fn admit(&self, status: u16) -> Result<(), Failure> {
        self.record_response_head(status);
        self.forward.check_status(status)?;
        if self.should_retry_status(status) {
            return Err(Failure::Status(status));
        }
        if status >= 400 && self.exchange.intercepts(status, self.forward.form) {
            return Err(Failure::Intercepted(status));
        }
        Ok(())
    }

    /// Writes the head of the final response for the client.
    pub(super) fn open(
        &self,
        (head, trailing): (&ResponseHead<'_, '_>, TrailerState),
        reply: &mut Reply<'_>,
    ) -> Result<RelayedHead, Failure> {
        let edits = self
            .exchange
            .response_edits(&self.group.server(self.server).name);
        if edits.is_some_and(|edits| edits.refuse(head.headers)) {
            return Err(Failure::RefusedField);
        }
        reply.set_persistence(match head.status {
            101 => Persistence::Upgrade(upgrade::PROTOCOL),
            _ if self.progress.rest_is_short() => Persistence::AsRequested,
            _ => Persistence::Close,
        });
        let (encoding, change) = self.encoding(head);
        let onward = ResponseChanges {
            cookie: self.cookie(),
            accept: match head.status {
                101 => self.forward.accept().copied(),
                _ => None,
            },
            change,
            vary: match head.status >= 400
                && self.exchange.intercepts(head.status, ErrorFormat::Text)
            {
                true => rewrite::VARY_ACCEPT,
                false => b"",
            },
            length: match encoding {
                Some(_) => Some(BodyLength::Unknown),
                None if self.trails(head, trailing) && reply.needs_chunks_for_trailers() => {
                    Some(BodyLength::Unknown)
                }
                None => self.length_to_say(head),
            },
        };
        let edits = edits.and_then(|edits| edits.for_server(head.status, head.headers));
        let made_of = match edits {
            None => onward.made_of(head, self.worker),
            Some(_) => HeadInputs::Other,
        };
        let room = rewrite::response_room(head.bytes, edits.as_ref());
        let mut names_fields = false;
        reply
            .forwarded_head(head, (edits, made_of), room, |fields| {
                names_fields =
                    rewrite::response(head, &onward, self.worker, edits.as_ref(), fields);
            })
            .map_err(Failure::Client)?
            .map_err(|TooLarge| {
                Failure::BadResponse("its head leaves no room for added fields".into())
            })?;
        self.progress.advance_response(ResponseSide::Begun);
        let is_edited = edits.is_some_and(|edits| edits.change_trailers());
        Ok(RelayedHead {
            encoding,
            trailers: match is_edited {
                true => Trailers::Edited,
                false => Trailers::Pass,
            },
            names_fields,
        })
    }

    /// Whether trailers may follow a body with a `Content-Length` from an HTTP/2 server: they have arrived, were
    /// announced (RFC 9110 6.6.2), or were requested by the client.
    fn trails(&self, head: &ResponseHead<'_, '_>, trailing: TrailerState) -> bool {
        head.version == Version::Http2
            && matches!(head.framing, Framing::Length(1..))
            && (trailing == TrailerState::Arrived
                || self.forward.takes_trailers
                || head.headers.iter().any(|it| header_is(it.name, "trailer")))
    }

    /// The body length to send to the client, if it is not in the head.
    fn length_to_say(&self, head: &ResponseHead<'_, '_>) -> Option<BodyLength> {
        match head.framing {
            Framing::Chunked | Framing::UntilClose => Some(BodyLength::Unknown),
            Framing::Length(_) => None,
            // A head of HTTP/2 marks a missing body; in HTTP/1, no length would mean a body until the connection
            // closes.
            Framing::None => {
                let has_none = matches!(head.status, 100..=199 | 204 | 304)
                    || self.forward.method() == Method::Head;
                (head.version == Version::Http2 && !has_none).then_some(BodyLength::Known(0))
            }
        }
    }

    /// Relays the head of an HTTP/1 response. Returns the relay of its body, and whether the connection is reusable.
    pub(super) fn pass_head(
        &self,
        head: &ResponseHead<'_, '_>,
        reply: &mut Reply<'_>,
    ) -> Result<(Relay, bool), Failure> {
        let is_sent = self.progress.is_request_sent();
        let opened = self.open((head, TrailerState::Unknown), reply)?;
        let mut relay = match opened.encoding {
            Some(encoding) => Relay::encoding(head.framing, encoding),
            None => Relay::new(head.framing, reply.passage(head.framing)),
        };
        relay.set_trailers(opened.trailers);
        if opened.names_fields && head.framing == Framing::Chunked {
            relay.set_connection_fields(ConnectionFields::of(head.headers));
        }
        let server_lives = head.keep_alive && head.framing != Framing::UntilClose && is_sent;
        Ok((relay, server_lives))
    }
}
