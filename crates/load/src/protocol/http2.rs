//! HTTP/2: each request of a mix is sent on its own stream. Its header block is made from the same HTTP/1.1 head, and
//! the outcome of a response is its status.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use onrush_http::http2::fields::FieldSection;
use onrush_http::http2::hpack::{Indexing, Sensitivity};
use onrush_http::http2::message::{self, HeadCache, split_head};
use onrush_http::http2::{CannotOpen, Connection, Content, End, Stream};
use onrush_http::{HeaderSlots, Method, header_is};

use super::http1::Bodies;
use crate::limits::http1::RESPONSE_LIMITS;
use crate::limits::http2::{HEADS_KEPT_MAX, PATHS_KEPT_MAX};
use crate::pace::target::Scheme;
use crate::requests::cookies::{Cookie, CookieJar};
use crate::requests::mix::{Mix, Recipe};
use crate::requests::request::LastRequest;

/// Writes a core's requests and parses the heads of the responses.
pub(crate) struct Codec {
    mix: Arc<Mix>,
    scheme: &'static str,
    speaks: MessageKind,
    /// Whether paths are added to the dynamic table.
    path_indexing: Indexing,
    /// Request heads cached per connection.
    heads_kept: usize,
    /// For each recipe whose requests are all identical, the request.
    fixed: Box<[Option<Fixed>]>,
    /// Buffer of the last rendered request, in HTTP/1.1 form.
    text: RefCell<Vec<u8>>,
    bodies: Bodies,
    /// Cookie jar of each connection, which represents a user; empty without cookies.
    jars: Box<[RefCell<CookieJar>]>,
}

/// Content of requests and responses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum MessageKind {
    Http,
    /// gRPC messages.
    Grpc,
}

struct Fixed {
    head: Box<[u8]>,
    body: Option<Rc<[u8]>>,
}

/// Request with an open stream.
pub(crate) struct OpenedRequest {
    pub(crate) stream: Stream,
    /// Body that is still to be sent.
    pub(crate) body: Option<Rc<[u8]>>,
}

impl Codec {
    pub(super) fn new(mix: &Arc<Mix>, scheme: Scheme, connections: usize) -> Codec {
        let bodies = Bodies::default();
        let heads_kept_max = PATHS_KEPT_MAX.max(HEADS_KEPT_MAX / connections.max(1));
        let recipes = mix.recipes().iter().enumerate();
        let fixed = recipes.map(|(place, recipe)| {
            (recipe.is_fixed() && !mix.keeps_cookies()).then(|| Fixed::new(mix, place))
        });
        Codec {
            scheme: match scheme.has_tls() {
                true => "https",
                false => "http",
            },
            speaks: match scheme.is_grpc() {
                true => MessageKind::Grpc,
                false => MessageKind::Http,
            },
            path_indexing: match mix.recipes().len() {
                ..=PATHS_KEPT_MAX => Indexing::Incremental,
                _ => Indexing::Without,
            },
            heads_kept: mix.recipes().len().min(heads_kept_max),
            fixed: fixed.collect(),
            text: RefCell::default(),
            bodies,
            jars: match mix.keeps_cookies() {
                true => vec![RefCell::default(); connections].into(),
                false => Box::default(),
            },
            mix: Arc::clone(mix),
        }
    }

    /// Creates the cache of request heads of a connection: one entry per recipe, shared by several recipes if there are
    /// many.
    pub(crate) fn repeated_heads(&self) -> Box<[HeadCache]> {
        let heads = (0..self.heads_kept).map(|_| HeadCache::default());
        heads.collect()
    }

    /// Opens a stream on connection `index` of the core for request `number` of the run, made from the recipe at
    /// `place`. `heads` comes from [`Codec::repeated_heads`] for this connection.
    ///
    /// # Errors
    /// As [`Connection::open`].
    pub(crate) fn open(
        &self,
        (connection, heads): (&mut Connection, &mut [HeadCache]),
        index: u32,
        (number, place): (u64, usize),
        out: &mut Vec<u8>,
    ) -> Result<OpenedRequest, CannotOpen> {
        let method = self.mix.recipes()[place].method;
        let repeated = &mut heads[place % heads.len()];
        let mut put = |head: &[u8], body: Option<&[u8]>, out: &mut Vec<u8>| {
            let head = (head, Sensitivity::Unmarked);
            let from = (self.scheme, self.path_indexing);
            let stream = connection.open(end_of(body), content(method), out, |encoder, out| {
                repeated.put(head, from, encoder, out);
            })?;
            let is_sent = body.is_none_or(|body| sends_whole(connection, stream, body, out));
            Ok((stream, is_sent))
        };
        if let Some(fixed) = &self.fixed[place] {
            let (stream, is_sent) = put(&fixed.head, fixed.body.as_deref(), out)?;
            let body = fixed.body.as_ref().filter(|_| !is_sent).cloned();
            return Ok(OpenedRequest { stream, body });
        }
        let text = &mut *self.text.borrow_mut();
        text.clear();
        let jar = self.jars.get(index as usize).map(RefCell::borrow);
        let large = self
            .mix
            .write(number, LastRequest::No, jar.as_deref(), text);
        let (head, written) = split_head(text);
        let body = large.map_or(written, |body| body);
        let body = (!body.is_empty()).then_some(body);
        let (stream, is_sent) = put(head, body, out)?;
        let body = match large {
            _ if is_sent => None,
            Some(body) => Some(self.bodies.own(body)),
            None => Some(written.into()),
        };
        Ok(OpenedRequest { stream, body })
    }

    #[inline]
    pub(crate) fn speaks(&self) -> MessageKind {
        self.speaks
    }

    pub(crate) fn recipe(&self, place: usize) -> &Recipe {
        &self.mix.recipes()[place]
    }

    /// Returns the status of a response head on connection `index` to a request with `method`; below 200 it is an
    /// interim response.
    ///
    /// # Errors
    /// The reason why the head is invalid.
    pub(crate) fn status(
        &self,
        index: u32,
        method: Method,
        fields: &FieldSection,
        end: End,
    ) -> Result<u16, &'static str> {
        let mut slots = HeaderSlots::new();
        let head = message::response(fields, &mut slots, method, end.into(), &RESPONSE_LIMITS);
        let head = head.map_err(|rejection| rejection.reason())?;
        if let Some(jar) = self.jars.get(index as usize) {
            let fields = head.headers.iter();
            let cookies = fields.filter(|field| header_is(field.name, "set-cookie"));
            let cookies = cookies.filter_map(|field| Cookie::parse(field.value));
            cookies.for_each(|cookie| jar.borrow_mut().store(&cookie));
        }
        Ok(head.status)
    }
}

impl Fixed {
    fn new(mix: &Mix, place: usize) -> Fixed {
        let mut text = Vec::new();
        let values = mix.values(0);
        let large = mix.write_recipe(place, &values, &[], (LastRequest::No, None), &mut text);
        let (head, written) = split_head(&text);
        let body = large.map_or(written, |body| &**body);
        Fixed {
            head: head.into(),
            body: (!body.is_empty()).then(|| body.into()),
        }
    }
}

/// Sends the whole body if it fits in one frame and in the windows; returns whether it did.
fn sends_whole(
    connection: &mut Connection,
    stream: Stream,
    body: &[u8],
    out: &mut Vec<u8>,
) -> bool {
    if connection.sendable(stream) < body.len() {
        return false;
    }
    let sent = connection.send_body(stream, body, End::Stream, out);
    sent.expect("it was created for a body");
    true
}

/// Returns whether the head ends the stream.
fn end_of(body: Option<&[u8]>) -> End {
    match body {
        Some(_) => End::Open,
        None => End::Stream,
    }
}

/// Returns whether the response to `method` may have content.
fn content(method: Method) -> Content {
    match method {
        Method::Head => Content::None,
        Method::Get
        | Method::Post
        | Method::Put
        | Method::Delete
        | Method::Connect
        | Method::Options
        | Method::Trace
        | Method::Patch
        | Method::Other => Content::Any,
    }
}
