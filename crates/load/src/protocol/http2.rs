//! HTTP/2: requests of a mix become header blocks and bodies, in any order, each on a stream of its own. What a response
//! says is its status, as with HTTP/1.1, and its requests are the same: a head of HTTP/1.1 is what a block is made from.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use onrush_http::http2::fields::FieldSection;
use onrush_http::http2::hpack::{Indexing, Sensitivity};
use onrush_http::http2::message::{self, RepeatedHead, split_head};
use onrush_http::http2::{CannotOpen, Connection, Content, End, Stream};
use onrush_http::{HeaderSlots, Method, header_is};

use super::http1::Bodies;
use crate::limits::http1::RESPONSE_LIMITS;
use crate::limits::http2::{HEADS_KEPT_MAX, PATHS_KEPT_MAX};
use crate::pace::target::Scheme;
use crate::requests::cookies::{Cookie, Jar};
use crate::requests::mix::{Mix, Recipe};
use crate::requests::request::Last;

/// What writes a core's requests and reads the heads of the responses.
pub(crate) struct Codec {
    mix: Arc<Mix>,
    scheme: &'static str,
    speaks: Speaks,
    /// What becomes of a path that no table has.
    path_indexing: Indexing,
    /// Request heads that each connection keeps.
    heads_kept: usize,
    /// For each recipe whose requests are all the same, what they are.
    fixed: Box<[Option<Fixed>]>,
    /// Another request, as HTTP/1.1 has it.
    text: RefCell<Vec<u8>>,
    bodies: Bodies,
    /// The cookies of the users whom the connections stand for; empty where none are kept.
    jars: Box<[RefCell<Jar>]>,
}

/// What the content of requests and responses is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Speaks {
    Http,
    /// Messages of calls.
    Grpc,
}

/// A request that never changes.
struct Fixed {
    head: Box<[u8]>,
    body: Option<Rc<[u8]>>,
}

/// A request that has a stream.
pub(crate) struct Opened {
    pub(crate) stream: Stream,
    /// What is still to be sent on it.
    pub(crate) body: Option<Rc<[u8]>>,
}

impl Codec {
    /// For a core with so many connections to a server of `scheme`.
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
                true => Speaks::Grpc,
                false => Speaks::Http,
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

    /// Storage for the last request heads of a connection: one per recipe, or one for several recipes if there are many.
    pub(crate) fn repeated_heads(&self) -> Box<[RepeatedHead]> {
        let heads = (0..self.heads_kept).map(|_| RepeatedHead::default());
        heads.collect()
    }

    /// Opens a stream on connection `index` of the core with request `number` of the run, which is made after the recipe at
    /// `place`. `heads` are from [`Codec::repeated_heads`], for this connection.
    ///
    /// # Errors
    /// As [`Connection::open`].
    pub(crate) fn open(
        &self,
        (connection, heads): (&mut Connection, &mut [RepeatedHead]),
        index: u32,
        (number, place): (u64, usize),
        out: &mut Vec<u8>,
    ) -> Result<Opened, CannotOpen> {
        let method = self.mix.recipes()[place].method;
        let repeated = &mut heads[place % heads.len()];
        let mut put = |head: &[u8], body: Option<&[u8]>, out: &mut Vec<u8>| {
            let head = (head, Sensitivity::Usual);
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
            return Ok(Opened { stream, body });
        }
        let text = &mut *self.text.borrow_mut();
        text.clear();
        let jar = self.jars.get(index as usize).map(RefCell::borrow);
        let large = self.mix.write(number, Last::No, jar.as_deref(), text);
        let (head, written) = split_head(text);
        let body = large.map_or(written, |body| body);
        let body = (!body.is_empty()).then_some(body);
        let (stream, is_sent) = put(head, body, out)?;
        let body = match large {
            _ if is_sent => None,
            Some(body) => Some(self.bodies.own(body)),
            None => Some(written.into()),
        };
        Ok(Opened { stream, body })
    }

    /// What requests and responses are about.
    #[inline]
    pub(crate) fn speaks(&self) -> Speaks {
        self.speaks
    }

    /// How a kind of request is made.
    pub(crate) fn recipe(&self, place: usize) -> &Recipe {
        &self.mix.recipes()[place]
    }

    /// The status that the head of a response on connection `index` has, to a request with `method`; below 200 it is not the
    /// response yet.
    ///
    /// # Errors
    /// Why it is none.
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
            cookies.for_each(|cookie| jar.borrow_mut().take(&cookie));
        }
        Ok(head.status)
    }
}

impl Fixed {
    fn new(mix: &Mix, place: usize) -> Fixed {
        let mut text = Vec::new();
        let values = mix.values(0);
        let large = mix.write_recipe(place, &values, &[], (Last::No, None), &mut text);
        let (head, written) = split_head(&text);
        let body = large.map_or(written, |body| &**body);
        Fixed {
            head: head.into(),
            body: (!body.is_empty()).then(|| body.into()),
        }
    }
}

/// Sends a whole body, where the windows have room for it and one frame does; whether they had.
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
    sent.expect("it was opened for a body");
    true
}

/// Whether the head of a request with this `body` is all of it.
fn end_of(body: Option<&[u8]>) -> End {
    match body {
        Some(_) => End::Open,
        None => End::Stream,
    }
}

/// What the response to a request with `method` may have.
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
