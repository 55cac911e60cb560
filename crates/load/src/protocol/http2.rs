//! HTTP/2: requests of a mix become header blocks and bodies, in any order, each on a stream of its own. What a response
//! says is its status, as with HTTP/1.1, and its requests are the same: a head of HTTP/1.1 is what a block is made from.

mod lines;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use onrush_http::http2::fields::FieldSection;
use onrush_http::http2::hpack::{Encoder, Indexing};
use onrush_http::http2::message;
use onrush_http::http2::{CannotOpen, Connection, Content, End, Stream};
use onrush_http::{HeaderSlots, Method, header_is};

use super::http1::Bodies;
use crate::limits::http1::RESPONSE_LIMITS;
use crate::limits::http2::PATHS_KEPT_MAX;
use crate::pace::target::Scheme;
use crate::requests::cookies::{Cookie, Jar};
use crate::requests::mix::{Mix, Recipe};
use crate::requests::request::Last;
use lines::{Fields, Lines};

/// What writes a core's requests and reads the heads of the responses.
pub(crate) struct Codec {
    mix: Arc<Mix>,
    scheme: &'static str,
    speaks: Speaks,
    /// What becomes of a path that no table has.
    path_indexing: Indexing,
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
    fields: Fields,
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

    /// Opens a stream on connection `index` of the core with request `number` of the run, which is made after the recipe at
    /// `place`.
    ///
    /// # Errors
    /// As [`Connection::open`].
    pub(crate) fn open(
        &self,
        connection: &mut Connection,
        index: u32,
        (number, place): (u64, usize),
        out: &mut Vec<u8>,
    ) -> Result<Opened, CannotOpen> {
        let method = self.mix.recipes()[place].method;
        if let Some(fixed) = &self.fixed[place] {
            let end = end_of(fixed.body.as_deref());
            let stream = connection.open(end, content(method), out, |encoder, out| {
                fixed
                    .fields
                    .put(self.scheme, self.path_indexing, encoder, out);
            })?;
            let body = fixed.body.as_ref();
            let is_sent = body.is_none_or(|body| sends_whole(connection, stream, body, out));
            return Ok(Opened {
                stream,
                body: body.filter(|_| !is_sent).cloned(),
            });
        }
        let text = &mut *self.text.borrow_mut();
        text.clear();
        let jar = self.jars.get(index as usize).map(RefCell::borrow);
        let large = self.mix.write(number, Last::No, jar.as_deref(), text);
        let (lines, written) = Lines::split(text);
        let body = large.map_or(written, |body| body);
        let body = (!body.is_empty()).then_some(body);
        let put = |encoder: &mut Encoder, out: &mut Vec<u8>| {
            lines.put(self.scheme, self.path_indexing, encoder, out);
        };
        let stream = connection.open(end_of(body), content(method), out, put)?;
        let is_sent = body.is_none_or(|body| sends_whole(connection, stream, body, out));
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
        let (lines, written) = Lines::split(&text);
        let body = large.map_or(written, |body| &**body);
        Fixed {
            fields: lines.keep(),
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
