//! Chooses a request's route, checks access, and starts the response.

use std::borrow::Cow;
use std::mem;
use std::rc::Rc;

use onrush_engine::Error;
use onrush_http::request::RequestHead;
use onrush_http::{Framing, Header, Refusal};

use crate::dispatch::misplaced::misplaced;
use crate::dispatch::objection::{objection, others_route};
use crate::exchange::Exchange;
use crate::exchange::access::verify::Pending;
use crate::exchange::access::{Denial, Halt};
use crate::exchange::downstream::Downstream;
use crate::exchange::downstream::request_body::Arrived;
use crate::exchange::refuse::refuse;
use crate::exchange::reply::{self, Persistence, Reply};
use crate::exchange::request_context::{RequestContext, Source};
use crate::exchange::settings::Treatment;
use crate::limits::RESPONSE_LINES_BYTES_MAX;
use crate::observe::live::Stage;
use crate::observe::trace::Forwards;
use crate::proxy::forward::request::{Forward, Way};
use crate::proxy::hash_key::hash_key;
use crate::proxy::upgrade::NO_WEBSOCKET;
use crate::proxy::{Group, mirror, upgrade};
use crate::respond::file::{Files, Pieces, Single};
use crate::respond::fixed::Fixed;
use crate::respond::redirect::Redirect;
use crate::respond::synthetic::{self, Synthetic};
use crate::routing::client::ClientOrigin;
use crate::routing::path;
use crate::routing::route::Coming;
use crate::routing::variables::{Facts, SERVER_TO_COME};
use crate::rules::cors::Cors;
use crate::rules::error_page::Form;
use crate::site::Site;
use crate::site::target::{Response, Target};
use crate::worker::Worker;

/// The action for a request.
pub(crate) enum Chosen<'w, 'b> {
    /// A response generated here.
    Own(Own<'w, 'b>),
    /// Forward to a server of this group.
    Forward(&'w Target, &'w Rc<Group>),
    /// Verify the password first.
    Verify(Pending),
}

/// Responses generated here.
pub(crate) enum Own<'w, 'b> {
    Fixed(&'w Fixed),
    File(&'w Single),
    Files(&'w Files, Cow<'b, [u8]>),
    Synthetic,
    Redirect(&'w Redirect),
    /// A CORS preflight response.
    Cors(&'w Cors),
    Refuse(u16, &'static str),
    Deny(Denial<'w>),
}

/// The rest of a response whose beginning is written.
pub(crate) enum Rest {
    /// The rest of a file after its head.
    File(Box<Pieces>),
    /// A response with a delay or a large body.
    Synthetic(Box<Synthetic>),
}

/// Result of responding to a request.
pub(crate) enum Responded {
    /// The whole response is written.
    Whole,
    /// The rest of the response must be sent asynchronously.
    Begun(Rest),
    /// The request is forwarded to a server.
    Forwarded(Forward),
    /// The password must be verified first.
    Pending(Pending),
}

impl Responded {
    /// The stage of a request that is not finished.
    #[inline]
    pub(crate) fn goes_on(&self) -> Option<Stage> {
        match self {
            Responded::Whole => None,
            Responded::Begun(_) => Some(Stage::Responding),
            Responded::Forwarded(_) => Some(Stage::Waiting),
            Responded::Pending(_) => Some(Stage::Verifying),
        }
    }
}

/// Responds to the request with this head, as far as possible without waiting. The head of a forwarded request stays in
/// the input until a server has responded, because it may have to be sent again. `is_first` is true if no request of
/// the connection has been forwarded yet.
///
/// # Errors
/// If the core is out of buffers.
#[inline]
pub(crate) fn respond(
    (head, arrived): (&RequestHead<'_, '_>, Arrived<'_>),
    (source, is_first): (Source<'_>, &mut bool),
    site: &Site,
    exchange: &mut Exchange,
    to: reply::To<'_>,
) -> Result<Responded, Error> {
    exchange.start(&site.settings);
    if let Some(log) = &site.settings.log {
        let client = source.of(exchange).address(head.headers);
        exchange.keep_entry(head, client, log.headers(), source.worker);
    }
    let chosen = choose((head, arrived), site, source, exchange)?;
    if exchange.route().is_none() {
        exchange.begin_trace(head, source, Forwards::Nowhere);
    }
    let context = source.of(exchange);
    match chosen {
        Chosen::Own(own) => own.write((head, arrived), context, to),
        Chosen::Verify(pending) => Ok(Responded::Pending(pending)),
        Chosen::Forward(target, group) => {
            let way = Way {
                group: Rc::clone(group),
                is_first: mem::replace(is_first, false),
                key: hash_key(group, head, context),
            };
            if let Some(mirror) = target.mirror {
                let group = &site.groups[mirror.upstream];
                mirror::duplicate((mirror, group), head, arrived, context);
            }
            Forward::new(context, way, head, arrived).map(Responded::Forwarded)
        }
    }
}

/// Persistence of the connection after a request whose body is not needed.
fn persistence_behind_body(
    head: &RequestHead<'_, '_>,
    arrived: Arrived<'_>,
    exchange: &Exchange,
    worker: &Worker,
) -> Persistence {
    let max = exchange.request_body_max();
    // A client that waits for 100 (Continue) and gets a final response may or may not send the body, so the start of
    // the next request is unknown.
    match head.expect_continue || arrived.exceeds(head.framing, max, &worker.limits) {
        true => Persistence::Close,
        false => Persistence::AsAsked,
    }
}

impl Own<'_, '_> {
    /// Writes the response to the client, as far as possible without waiting.
    ///
    /// # Errors
    /// If the core is out of buffers.
    #[inline]
    pub(crate) fn write(
        self,
        (head, arrived): (&RequestHead<'_, '_>, Arrived<'_>),
        context: RequestContext<'_>,
        to: reply::To<'_>,
    ) -> Result<Responded, Error> {
        let (worker, exchange) = (context.worker, context.exchange);
        let mut reply = Reply::new(worker, exchange, head.method, to);
        reply.persist(match head.framing {
            Framing::None => Persistence::AsAsked,
            _ => persistence_behind_body(head, arrived, exchange, worker),
        });
        match self.respond(head, context, &mut reply)? {
            None => reply.end().map(|()| Responded::Whole),
            Some(rest) => Ok(Responded::Begun(rest)),
        }
    }

    #[inline]
    fn respond(
        self,
        head: &RequestHead<'_, '_>,
        context: RequestContext<'_>,
        reply: &mut Reply<'_>,
    ) -> Result<Option<Rest>, Error> {
        match self {
            Own::Fixed(fixed) => fixed.form(head).respond(reply)?,
            Own::File(file) => return Ok(file.respond(head, reply)?.map(Rest::File)),
            Own::Refuse(status, reason) => {
                refuse((status, reason), &[], Form::of(head.headers), reply)?
            }
            Own::Deny(denial) => denial.respond(Form::of(head.headers), reply)?,
            Own::Cors(cors) => reply.head(204, |to| {
                to.lines(cors.preflight(head.headers));
            })?,
            Own::Redirect(redirect) => redirect.respond(head, context, reply)?,
            Own::Files(files, path) => {
                let pieces = files.respond(head, &path, reply)?;
                return Ok(pieces.map(Rest::File));
            }
            Own::Synthetic => {
                let synthetic = synthetic::respond(head, reply)?;
                return Ok(synthetic.map(Rest::Synthetic));
            }
        }
        Ok(None)
    }
}

impl Rest {
    /// Sends the rest. Errors are those of the client's connection or of the file.
    pub(crate) async fn send(&mut self, client: Downstream<'_>) -> Result<(), Error> {
        match self {
            Rest::File(pieces) => pieces.send(client).await,
            Rest::Synthetic(synthetic) => synthetic.send(client).await,
        }
    }
}

/// Client and listener of a request, for the conditions of routes.
pub(crate) struct Arrival<'a> {
    context: RequestContext<'a>,
    headers: &'a [Header<'a>],
    site: &'a Site,
}

impl<'a> Arrival<'a> {
    #[inline]
    pub(crate) fn new(
        context: RequestContext<'a>,
        headers: &'a [Header<'a>],
        site: &'a Site,
    ) -> Self {
        Self {
            context,
            headers,
            site,
        }
    }
}

impl Coming for Arrival<'_> {
    fn origin(&self) -> ClientOrigin {
        self.context.origin(self.headers)
    }

    fn listener(&self) -> &str {
        self.site.listener_name(self.context.exchange.listener())
    }
}

/// Chooses the request's route and the action.
///
/// # Errors
/// If the core is out of buffers.
pub(crate) fn choose<'w, 'b>(
    (head, arrived): (&RequestHead<'_, 'b>, Arrived<'_>),
    site: &'w Site,
    source: Source<'_>,
    exchange: &mut Exchange,
) -> Result<Chosen<'w, 'b>, Error> {
    if let Some(refusal) = misplaced(head, site, source, exchange.listener()) {
        return Ok(Chosen::refuse(refusal));
    }
    let path = match path::normalize(head.path) {
        Ok(path) => path,
        Err(bad) => return Ok(Chosen::Own(Own::Refuse(400, bad.reason()))),
    };
    let coming = Arrival::new(source.of(exchange), head.headers, site);
    let Some(index) = site.routes.choose(head, &path, &coming) else {
        return Ok(Chosen::Own(Own::Refuse(404, "no route matches")));
    };
    let route = site.routes.route(index);
    exchange.begin(index);
    let target = &route.target;
    let treatment = &site.settings.treatments[index];
    let forwards = match &target.response {
        Response::Forward(_) => Forwards::ToServer,
        _ => Forwards::Nowhere,
    };
    exchange.begin_trace(head, source, forwards);
    if let Response::Forward(split) = &target.response {
        exchange.forward_to(split.choose(|| source.worker.chance.bits()));
    }
    if treatment.keeps && !keep(treatment, head, source, exchange) {
        let reason = "its response would have too large a head";
        return Ok(Chosen::Own(Own::Refuse(431, reason)));
    }
    if let Some(cors) = &treatment.cors
        && Cors::is_question(head)
    {
        return Ok(Chosen::Own(Own::Cors(cors)));
    }
    if let Some(access) = &target.access {
        match access.let_in(head, source, exchange) {
            Ok(()) => {}
            Err(Halt::Deny(denial)) => return Ok(Chosen::Own(Own::Deny(denial))),
            Err(Halt::Verify(pending)) => return Ok(Chosen::Verify(pending)),
        }
    }
    let max = treatment.request_body_max;
    if head.framing != Framing::None && arrived.exceeds(head.framing, max, &source.worker.limits) {
        return Ok(Chosen::Own(Own::Refuse(413, "the body is too large")));
    }
    Ok(match &target.response {
        it if !it.is_forwarded() && upgrade::is_connect(head) => Chosen::refuse(NO_WEBSOCKET),
        Response::Fixed(fixed) => Chosen::Own(Own::Fixed(fixed)),
        Response::File(file) => Chosen::Own(Own::File(file)),
        Response::Synthetic => Chosen::Own(Own::Synthetic),
        Response::Redirect(redirect) => Chosen::Own(Own::Redirect(redirect)),
        Response::Forward(_) => {
            let group = &site.groups[exchange.group()];
            let context = source.of(exchange);
            let coming = Arrival::new(context, head.headers, site);
            let objection = objection((head, &path), (site, index), (context, &coming))?;
            objection.map_or(Chosen::Forward(target, group), Chosen::refuse)
        }
        Response::Files(files) => {
            let refusal = objection_to_file((head, &path), (site, index), source.of(exchange));
            let own = || Own::Files(files, path::without_prefix(path, &treatment.prefix));
            refusal.map_or_else(|| Chosen::Own(own()), Chosen::refuse)
        }
    })
}

/// Why the file of a normalized path may not be served: below `/files`, `/filesa` is the file of `/files/a`, which
/// another route may match.
fn objection_to_file(
    (head, path): (&RequestHead<'_, '_>, &[u8]),
    (site, index): (&Site, usize),
    context: RequestContext<'_>,
) -> Option<Refusal> {
    let prefix = &site.settings.treatments[index].prefix;
    let other = path::with_slash_after(path, prefix)?;
    let coming = Arrival::new(context, head.headers, site);
    others_route(head, [other], (site, index), &coming)
}

impl Chosen<'_, '_> {
    fn refuse(refusal: Refusal) -> Self {
        Chosen::Own(Own::Refuse(refusal.status, refusal.reason))
    }
}

/// Stores the request ID, and renders the response fields that depend on the request. Returns `false` if they are too
/// long; the response then has none of them.
fn keep(
    treatment: &Treatment,
    head: &RequestHead<'_, '_>,
    source: Source<'_>,
    exchange: &mut Exchange,
) -> bool {
    exchange.number(source.worker);
    let Some(edits) = &treatment.response_edits else {
        return true;
    };
    let mut lines = exchange.take_lines();
    lines.clear();
    let context = source.of(exchange);
    let facts = Facts {
        about: &context,
        head,
        server: SERVER_TO_COME,
    };
    if let Some(cors) = &treatment.cors {
        cors.render(head.headers, &mut lines);
    }
    let of_origins = lines.len();
    edits.render(&facts, &mut lines);
    let are_short = lines.len() <= RESPONSE_LINES_BYTES_MAX;
    if !are_short {
        lines.clear();
    }
    exchange.keep_lines(lines, of_origins);
    are_short
}
