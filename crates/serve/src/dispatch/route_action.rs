//! Chooses a request's route, checks access, and starts the response.

use std::borrow::Cow;
use std::mem;
use std::rc::Rc;

use onrush_engine::Error;
use onrush_http::request::RequestHead;
use onrush_http::{Framing, Header, Refusal};

use crate::dispatch::forwarding_refusal::{forwarding_refusal, matches_other_route};
use crate::dispatch::misdirected_request::misdirected_request;
use crate::exchange::Exchange;
use crate::exchange::access::password_verifier::Pending;
use crate::exchange::access::{Denial, NotAdmitted};
use crate::exchange::downstream::Downstream;
use crate::exchange::downstream::request_body::ReceivedBody;
use crate::exchange::refuse::refuse;
use crate::exchange::reply::{self, Persistence, Reply};
use crate::exchange::request_context::{RequestContext, Source};
use crate::exchange::settings::RouteOptions;
use crate::limits::RESPONSE_LINES_BYTES_MAX;
use crate::observe::in_flight::Stage;
use crate::observe::trace::Forwards;
use crate::proxy::forward::request::{Forward, ForwardTarget};
use crate::proxy::hash_key::hash_key;
use crate::proxy::upgrade::NO_WEBSOCKET;
use crate::proxy::{Group, mirror, upgrade};
use crate::respond::file::{FileBody, Files, SingleFile};
use crate::respond::fixed::Fixed;
use crate::respond::redirect::Redirect;
use crate::respond::synthetic::{self, Synthetic};
use crate::routing::client::ClientOrigin;
use crate::routing::path;
use crate::routing::route::RouteContext;
use crate::routing::variables::{SERVER_PLACEHOLDER, VariableValues};
use crate::rules::cors::Cors;
use crate::rules::error_page::ErrorFormat;
use crate::site::Site;
use crate::site::route_handler::{Response, RouteHandler};
use crate::worker::Worker;

/// The action for a request.
pub(crate) enum RouteAction<'w, 'b> {
    /// A response generated here.
    Own(LocalAction<'w, 'b>),
    /// Forward to a server of this group.
    Forward(&'w RouteHandler, &'w Rc<Group>),
    /// Verify the password first.
    Verify(Pending),
}

/// Responses generated here.
pub(crate) enum LocalAction<'w, 'b> {
    Fixed(&'w Fixed),
    File(&'w SingleFile),
    Files(&'w Files, Cow<'b, [u8]>),
    Synthetic,
    Redirect(&'w Redirect),
    /// A CORS preflight response.
    Cors(&'w Cors),
    Refuse(u16, &'static str),
    Deny(Denial<'w>),
}

/// The rest of a response whose beginning is written.
pub(crate) enum PendingBody {
    /// The rest of a file after its head.
    File(Box<FileBody>),
    /// A response with a delay or a large body.
    Synthetic(Box<Synthetic>),
}

/// Result of responding to a request.
pub(crate) enum DispatchResult {
    /// The whole response is written.
    Whole,
    /// The rest of the response must be sent asynchronously.
    Begun(PendingBody),
    /// The request is forwarded to a server.
    Forwarded(Forward),
    /// The password must be verified first.
    Pending(Pending),
}

impl DispatchResult {
    /// The stage of a request that is not finished.
    #[inline]
    pub(crate) fn unfinished_stage(&self) -> Option<Stage> {
        match self {
            DispatchResult::Whole => None,
            DispatchResult::Begun(_) => Some(Stage::Responding),
            DispatchResult::Forwarded(_) => Some(Stage::Waiting),
            DispatchResult::Pending(_) => Some(Stage::Verifying),
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
    (head, arrived): (&RequestHead<'_, '_>, ReceivedBody<'_>),
    (source, is_first): (Source<'_>, &mut bool),
    site: &Site,
    exchange: &mut Exchange,
    to: reply::ReplyWriter<'_>,
) -> Result<DispatchResult, Error> {
    exchange.start(&site.settings);
    if let Some(log) = &site.settings.log {
        let client = source.of(exchange).address(head.headers);
        exchange.start_log_entry(head, client, log.headers(), source.worker);
    }
    let chosen = choose((head, arrived), site, source, exchange)?;
    if exchange.route().is_none() {
        exchange.begin_trace(head, source, Forwards::Nowhere);
    }
    let context = source.of(exchange);
    match chosen {
        RouteAction::Own(own) => own.write((head, arrived), context, to),
        RouteAction::Verify(pending) => Ok(DispatchResult::Pending(pending)),
        RouteAction::Forward(target, group) => {
            let way = ForwardTarget {
                group: Rc::clone(group),
                is_first: mem::replace(is_first, false),
                key: hash_key(group, head, context),
            };
            if let Some(mirror) = target.mirror {
                let group = &site.groups[mirror.upstream];
                mirror::mirror_request((mirror, group), head, arrived, context);
            }
            Forward::new(context, way, head, arrived).map(DispatchResult::Forwarded)
        }
    }
}

/// Persistence of the connection after a request whose body is not needed.
fn persistence_after_body(
    head: &RequestHead<'_, '_>,
    arrived: ReceivedBody<'_>,
    exchange: &Exchange,
    worker: &Worker,
) -> Persistence {
    let max = exchange.request_body_max();
    // A client that waits for 100 (Continue) and gets a final response may or may not send the body, so the start of
    // the next request is unknown.
    match head.expect_continue || arrived.exceeds(head.framing, max, &worker.limits) {
        true => Persistence::Close,
        false => Persistence::AsRequested,
    }
}

impl LocalAction<'_, '_> {
    /// Writes the response to the client, as far as possible without waiting.
    ///
    /// # Errors
    /// If the core is out of buffers.
    #[inline]
    pub(crate) fn write(
        self,
        (head, arrived): (&RequestHead<'_, '_>, ReceivedBody<'_>),
        context: RequestContext<'_>,
        to: reply::ReplyWriter<'_>,
    ) -> Result<DispatchResult, Error> {
        let (worker, exchange) = (context.worker, context.exchange);
        let mut reply = Reply::new(worker, exchange, head.method, to);
        reply.set_persistence(match head.framing {
            Framing::None => Persistence::AsRequested,
            _ => persistence_after_body(head, arrived, exchange, worker),
        });
        match self.respond(head, context, &mut reply)? {
            None => reply.end().map(|()| DispatchResult::Whole),
            Some(rest) => Ok(DispatchResult::Begun(rest)),
        }
    }

    #[inline]
    fn respond(
        self,
        head: &RequestHead<'_, '_>,
        context: RequestContext<'_>,
        reply: &mut Reply<'_>,
    ) -> Result<Option<PendingBody>, Error> {
        match self {
            LocalAction::Fixed(fixed) => fixed.form(head).respond(reply)?,
            LocalAction::File(file) => {
                return Ok(file.respond(head, reply)?.map(PendingBody::File));
            }
            LocalAction::Refuse(status, reason) => {
                refuse((status, reason), &[], ErrorFormat::of(head.headers), reply)?
            }
            LocalAction::Deny(denial) => denial.respond(ErrorFormat::of(head.headers), reply)?,
            LocalAction::Cors(cors) => reply.head(204, |to| {
                to.lines(cors.preflight(head.headers));
            })?,
            LocalAction::Redirect(redirect) => redirect.respond(head, context, reply)?,
            LocalAction::Files(files, path) => {
                let pieces = files.respond(head, &path, reply)?;
                return Ok(pieces.map(PendingBody::File));
            }
            LocalAction::Synthetic => {
                let synthetic = synthetic::respond(head, reply)?;
                return Ok(synthetic.map(PendingBody::Synthetic));
            }
        }
        Ok(None)
    }
}

impl PendingBody {
    /// Sends the rest. Errors come from the client's connection or from the file.
    pub(crate) async fn send(&mut self, client: Downstream<'_>) -> Result<(), Error> {
        match self {
            PendingBody::File(pieces) => pieces.send(client).await,
            PendingBody::Synthetic(synthetic) => synthetic.send(client).await,
        }
    }
}

/// Client and listener of a request, for the conditions of routes.
pub(crate) struct RequestOrigin<'a> {
    context: RequestContext<'a>,
    headers: &'a [Header<'a>],
    site: &'a Site,
}

impl<'a> RequestOrigin<'a> {
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

impl RouteContext for RequestOrigin<'_> {
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
    (head, arrived): (&RequestHead<'_, 'b>, ReceivedBody<'_>),
    site: &'w Site,
    source: Source<'_>,
    exchange: &mut Exchange,
) -> Result<RouteAction<'w, 'b>, Error> {
    if let Some(refusal) = misdirected_request(head, site, source, exchange.listener()) {
        return Ok(RouteAction::refuse(refusal));
    }
    let refuse = |status, why| Ok(RouteAction::Own(LocalAction::Refuse(status, why)));
    let path = match path::normalize(head.path) {
        Ok(path) => path,
        Err(bad) => return refuse(400, bad.reason()),
    };
    let coming = RequestOrigin::new(source.of(exchange), head.headers, site);
    let Some(index) = site.routes.choose(head, &path, &coming) else {
        return refuse(404, "no route matches");
    };
    exchange.set_route(index);
    let target = &site.routes.route(index).target;
    let treatment = &site.settings.routes[index];
    let forwards = match &target.response {
        Response::Forward(_) => Forwards::ToServer,
        _ => Forwards::Nowhere,
    };
    exchange.begin_trace(head, source, forwards);
    if let Response::Forward(split) = &target.response {
        exchange.set_group(split.choose(|| source.worker.random.bits()));
    }
    if treatment.needs_rare_state && !keep(treatment, head, source, exchange) {
        return refuse(431, "its response would have too large a head");
    }
    if let Some(cors) = &treatment.cors
        && Cors::is_preflight(head)
    {
        return Ok(RouteAction::Own(LocalAction::Cors(cors)));
    }
    if let Some(access) = &target.access {
        match access.admit_request(head, source, exchange) {
            Ok(()) => {}
            Err(NotAdmitted::Deny(denial)) => {
                return Ok(RouteAction::Own(LocalAction::Deny(denial)));
            }
            Err(NotAdmitted::Verify(pending)) => return Ok(RouteAction::Verify(pending)),
        }
    }
    let max = treatment.request_body_max;
    if head.framing != Framing::None && arrived.exceeds(head.framing, max, &source.worker.limits) {
        return refuse(413, "the body is too large");
    }
    Ok(match &target.response {
        it if !it.is_forwarded() && upgrade::is_connect(head) => RouteAction::refuse(NO_WEBSOCKET),
        Response::Fixed(fixed) => RouteAction::Own(LocalAction::Fixed(fixed)),
        Response::File(file) => RouteAction::Own(LocalAction::File(file)),
        Response::Synthetic => RouteAction::Own(LocalAction::Synthetic),
        Response::Redirect(redirect) => RouteAction::Own(LocalAction::Redirect(redirect)),
        Response::Forward(_) => {
            let group = &site.groups[exchange.group()];
            let context = source.of(exchange);
            let coming = RequestOrigin::new(context, head.headers, site);
            let objection = forwarding_refusal((head, &path), (site, index), (context, &coming))?;
            objection.map_or(RouteAction::Forward(target, group), RouteAction::refuse)
        }
        Response::Files(files) => {
            let refusal = objection_to_file((head, &path), (site, index), source.of(exchange));
            let own = || LocalAction::Files(files, path::without_prefix(path, &treatment.prefix));
            refusal.map_or_else(|| RouteAction::Own(own()), RouteAction::refuse)
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
    let prefix = &site.settings.routes[index].prefix;
    let other = path::with_slash_after(path, prefix)?;
    let coming = RequestOrigin::new(context, head.headers, site);
    matches_other_route(head, [other], (site, index), &coming)
}

impl RouteAction<'_, '_> {
    fn refuse(refusal: Refusal) -> Self {
        RouteAction::Own(LocalAction::Refuse(refusal.status, refusal.reason))
    }
}

/// Stores the request ID, and renders the response fields that depend on the request. Returns `false` if they are too
/// long; the response then has none of them.
fn keep(
    treatment: &RouteOptions,
    head: &RequestHead<'_, '_>,
    source: Source<'_>,
    exchange: &mut Exchange,
) -> bool {
    exchange.generate_request_id(source.worker);
    let Some(edits) = &treatment.response_edits else {
        return true;
    };
    let mut lines = exchange.take_response_fields();
    lines.clear();
    let context = source.of(exchange);
    let facts = VariableValues {
        about: &context,
        head,
        server: SERVER_PLACEHOLDER,
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
    exchange.store_response_fields(lines, of_origins);
    are_short
}
