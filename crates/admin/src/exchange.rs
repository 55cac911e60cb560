//! Client connections of the interface: one request at a time on each.

use std::cell::Cell;
use std::future::poll_fn;
use std::rc::Rc;
use std::time::Duration;

use onrush_engine::{Error, Input, Kind, Listener, Stream};
use onrush_http::{Framing, HeaderSlots, Limits, Parsed, request};

use crate::api::Reply;
use crate::authority::{self, Audience, Authority, Denial};
use crate::context::Context;
use crate::request::Request;
use crate::response::{ConnectionState, Response, ResponsePart, send};
use crate::unauthenticated::{Received, UnauthenticatedConnection, UnauthenticatedConnections};

/// Maximum number of connections reserved for probes (`/live`, `/ready`) when all others are in use: each gets one
/// response, and has [`UNAUTHENTICATED_TIMEOUT`] to send its request.
const PROBES_MAX: usize = 8;

/// Maximum size of a request body in bytes.
const BODY_MAX: u64 = 64 * 1024;

/// Maximum time to receive a request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// Maximum time to receive a request before the client is authenticated. Short, because anyone can connect.
const UNAUTHENTICATED_TIMEOUT: Duration = Duration::from_secs(1);

/// Idle timeout of a connection.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);

/// Lingering close: maximum time and bytes read after the last response.
const LINGER_TIMEOUT: Duration = Duration::from_secs(1);
const LINGER_BYTES: usize = 1024 * 1024;

/// Pause after a failed `accept`, for example without free descriptors.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);

/// A received request and whether the connection is kept after it.
struct ReceivedRequest {
    /// The request, or the error response to an invalid one.
    request: Result<Request, Response>,
    then: ConnectionState,
}

struct Client<'a> {
    stream: &'a Stream,
    /// Present until the client is authenticated, by the token or as a permitted user of the system.
    stranger: Option<UnauthenticatedConnection>,
}

struct Slots {
    live: Rc<Cell<usize>>,
    max: usize,
    strangers: Rc<UnauthenticatedConnections>,
}

impl Slots {
    fn new(max: usize) -> Self {
        Self {
            live: Rc::default(),
            max,
            strangers: Rc::default(),
        }
    }

    fn is_full(&self) -> bool {
        self.live.get() >= self.max
    }

    /// Evicts the oldest unauthenticated connection if all are in use. Returns whether there is room.
    async fn make_room(&self, desk: &Context) -> bool {
        if self.is_full() && self.strangers.evict_oldest() {
            // Let the evicted connection end before the new one is served.
            desk.core.yield_now().await;
        }
        !self.is_full()
    }
}

/// Accepts until the core stops.
pub(crate) async fn accept_all(listener: Listener, desk: Rc<Context>) {
    let (served, probes) = (Slots::new(desk.connections_max), Slots::new(PROBES_MAX));
    loop {
        match listener.accept().await {
            Ok(stream) => {
                let is_served = served.make_room(&desk).await;
                if !is_served && !probes.make_room(&desk).await {
                    // Drop the connection: all are in use, and file descriptors are scarce.
                    continue;
                }
                let slots = if is_served { &served } else { &probes };
                let counter = Rc::clone(&slots.live);
                counter.set(counter.get() + 1);
                let stranger = Some(slots.strangers.admit());
                let desk = Rc::clone(&desk);
                desk.core.clone().spawn(async move {
                    let client = Client {
                        stream: &stream,
                        stranger,
                    };
                    // Errors of one connection need no handling: the client has disconnected or timed out.
                    let _ = match is_served {
                        true => serve(client, &desk).await,
                        false => answer_probe(client, &desk).await,
                    };
                    counter.set(counter.get() - 1);
                });
            }
            Err(error) if error.kind == Kind::Stopping => return,
            Err(_) => desk.core.sleep(ACCEPT_RETRY_DELAY).await,
        }
    }
}

/// Handles one request when all connections are in use: a probe gets its usual response, other requests 503.
async fn answer_probe(mut client: Client<'_>, desk: &Context) -> Result<(), Error> {
    let mut input = Input::default();
    let refused = || Response::error(503, "too many clients at the same time; try again");
    let is_refused = authority::authority_of(client.stream) == Authority::Refused;
    let is_probe = |request: &Request| !is_refused && Context::is_probe(&request.path);
    let (response, extent) = match client.receive(&mut input, desk).await? {
        None => return Ok(()),
        Some(ReceivedRequest {
            request: Ok(request),
            ..
        }) if is_probe(&request) => {
            let extent = ResponsePart::of(request.method);
            match desk.respond(request).await {
                Reply::Whole(response) => (response, extent),
                Reply::Feed(_) => (refused(), ResponsePart::Whole),
            }
        }
        Some(_) => (refused(), ResponsePart::Whole),
    };
    send(
        client.stream,
        &response.bytes(extent, ConnectionState::Close),
    )
    .await?;
    client.lingering_close().await
}

async fn serve(mut client: Client<'_>, desk: &Context) -> Result<(), Error> {
    let stream = client.stream;
    match authority::authority_of(stream) {
        Authority::Refused => {
            let why = "only root and the user that runs the server may use this socket";
            let response = Response::error(403, why);
            send(
                stream,
                &response.bytes(ResponsePart::Whole, ConnectionState::Close),
            )
            .await?;
            return client.lingering_close().await;
        }
        Authority::Trusted => client.stranger = None,
        Authority::ByToken => {}
    }
    let mut input = Input::default();
    loop {
        let Some(arrived) = client.receive(&mut input, desk).await? else {
            return Ok(());
        };
        let then = match stream.core().is_stopping() {
            true => ConnectionState::Close,
            false => arrived.then,
        };
        let (response, extent) = match arrived.request {
            Ok(request) => {
                let extent = ResponsePart::of(request.method);
                match desk.respond(request).await {
                    Reply::Whole(response) => (response, extent),
                    Reply::Feed(feed) => return feed.send(stream, input, desk).await,
                }
            }
            Err(response) => (response, ResponsePart::Whole),
        };
        send(stream, &response.bytes(extent, then)).await?;
        if then == ConnectionState::Close {
            return client.lingering_close().await;
        }
    }
}

impl Client<'_> {
    /// Receives the next request; `None` if the client closes, times out or is evicted.
    async fn receive(
        &mut self,
        input: &mut Input,
        desk: &Context,
    ) -> Result<Option<ReceivedRequest>, Error> {
        let (stream, core) = (self.stream, self.stream.core());
        let (idle, patience) = match self.stranger {
            Some(_) => (UNAUTHENTICATED_TIMEOUT, UNAUTHENTICATED_TIMEOUT),
            None => (IDLE_TIMEOUT, REQUEST_TIMEOUT),
        };
        let mut deadline = core.now_exact() + idle;
        let (mut request, length, then) = loop {
            match parse(input, desk) {
                Parse::Partial => {}
                Parse::Refused(response) => {
                    return Ok(Some(ReceivedRequest {
                        request: Err(response),
                        then: ConnectionState::Close,
                    }));
                }
                Parse::Complete {
                    request,
                    length,
                    then,
                    bytes,
                } => {
                    input.consume(bytes);
                    if Context::audience(&request.path) == Audience::Authorized {
                        self.stranger = None;
                        deadline = core.now_exact() + REQUEST_TIMEOUT;
                    }
                    break (request, length, then);
                }
            }
            stream.set_deadline(Some(deadline));
            let wait = match input.is_empty() {
                true => Wait::Idle,
                false => Wait::Begun,
            };
            match self.receive_bytes(input, wait).await {
                Ok(0) | Err(_) => return Ok(None),
                Ok(_) if wait == Wait::Idle => deadline = core.now() + patience,
                Ok(_) => {}
            }
        };
        while (request.body.len() as u64) < length {
            if input.is_empty() {
                stream.set_deadline(Some(deadline));
                if self.receive_bytes(input, Wait::Begun).await? == 0 {
                    return Ok(None);
                }
            }
            let wanted = length as usize - request.body.len();
            let taken = wanted.min(input.bytes().len());
            request.body.extend_from_slice(&input.bytes()[..taken]);
            input.consume(taken);
        }
        Ok(Some(ReceivedRequest {
            request: Ok(request),
            then,
        }))
    }

    /// Receives bytes; 0 at the end of the stream, or if the connection is evicted.
    async fn receive_bytes(&self, input: &mut Input, wait: Wait) -> Result<usize, Error> {
        let receive = |input: &mut Input| match wait {
            Wait::Idle => self.stream.poll_recv_unless_stopping(input),
            Wait::Begun => self.stream.poll_recv(input),
        };
        match &self.stranger {
            None => poll_fn(|_| receive(input)).await,
            Some(stranger) => match stranger.receive_unless_evicted(input, receive).await {
                Received::Received(outcome) => outcome,
                Received::Evicted => Ok(0),
            },
        }
    }

    /// Shuts down the sending side and reads until the client closes: closing a socket with unread bytes sends a reset,
    /// which may destroy the response.
    async fn lingering_close(self) -> Result<(), Error> {
        let stream = self.stream;
        stream.shutdown().await?;
        stream.set_deadline(Some(stream.core().now_exact() + LINGER_TIMEOUT));
        let (mut input, mut read) = (Input::default(), 0);
        while read < LINGER_BYTES {
            match self.receive_bytes(&mut input, Wait::Begun).await? {
                0 => return Ok(()),
                bytes => read += bytes,
            }
            input.consume(input.bytes().len());
        }
        Ok(())
    }
}

/// State of the connection during a wait.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wait {
    /// Between two requests: the wait ends when the server stops.
    Idle,
    Begun,
}

enum Parse {
    Partial,
    Refused(Response),
    Complete {
        request: Request,
        length: u64,
        then: ConnectionState,
        /// Length of the head, without the body.
        bytes: usize,
    },
}

fn parse(input: &Input, desk: &Context) -> Parse {
    let mut slots = HeaderSlots::new();
    let head = match request::parse(input.bytes(), &mut slots, &Limits::DEFAULT) {
        Parsed::Complete(head) => head,
        Parsed::Partial => return Parse::Partial,
        Parsed::Refused(refusal) => {
            return Parse::Refused(Response::error(refusal.status, refusal.reason));
        }
    };
    let audience = Context::audience(head.path);
    if let Err(denial) = authority::check(&head, desk.token(), audience) {
        return Parse::Refused(match denial {
            Denial::Token => Response::error(
                401,
                "expected Authorization: Bearer TOKEN, with the token of the file that [admin] names",
            )
            .with("WWW-Authenticate", "Bearer"),
            Denial::CrossSite => Response::error(403, "requests from pages of other sites are refused"),
        });
    }
    let length = match head.framing {
        Framing::None => 0,
        Framing::Length(length) if length <= BODY_MAX => length,
        Framing::Length(_) => {
            return Parse::Refused(Response::error(413, "a body has 64 KiB at most"));
        }
        Framing::Chunked | Framing::UntilClose => {
            return Parse::Refused(Response::error(411, "a body needs a Content-Length"));
        }
    };
    let field = |name: &'static str| {
        let fields = head.headers.iter();
        let fields = fields.filter(move |header| header.name.eq_ignore_ascii_case(name));
        fields.map(|header| String::from_utf8_lossy(header.value).into_owned())
    };
    Parse::Complete {
        request: Request {
            method: head.method,
            path: head.path.to_owned(),
            query: head.query.unwrap_or("").to_owned(),
            last_event: field("last-event-id").next(),
            accept: field("accept").collect::<Vec<_>>().join(","),
            body: Vec::new(),
        },
        length,
        then: match head.keep_alive && !head.expect_continue {
            true => ConnectionState::Keep,
            false => ConnectionState::Close,
        },
        bytes: head.bytes,
    }
}
