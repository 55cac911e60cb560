//! What a request needs of the configuration that it began with, whatever responds to it.

use std::rc::Rc;

use onrush_config::plan::{Action, CacheRule, Piece, Timeouts, Variable};
use onrush_http::Limits;

use crate::client::Trust;
use crate::compress::Offer;
use crate::cors::Cors;
use crate::error_page::ErrorPages;
use crate::generation::InForce;
use crate::observe::access_log::CoreLog;
use crate::observe::registry::Kind;
use crate::observe::trace::CoreTracing;
use crate::observe::traffic::Traffic;
use crate::proxy::rules::Rules;
use crate::response_edits::ResponseEdits;
use crate::site::resources::Resources;
use crate::time_slice::drop_in_slices;
use crate::worker::Worker;

/// Prepared for one core. A request holds them from its beginning to its end.
pub(crate) struct Settings {
    generation: InForce,
    pub(crate) worker: Rc<Worker>,
    pub(crate) trust: Trust,
    pub(crate) timeouts: Timeouts,
    /// Bound on the stalled streams of one client address on this core.
    pub(crate) stalled_streams_max: u32,
    /// What a request's head may ask of us.
    pub(crate) request_limits: Limits,
    /// Streams per second that a client may reset on a connection of HTTP/2.
    pub(crate) resets_per_second: u32,
    /// Bytes of the body of a request without a route.
    pub(crate) request_body_max: u64,
    /// What such a request is told.
    pub(crate) error_pages: Option<Rc<ErrorPages>>,
    /// One for each route, in their order.
    pub(crate) treatments: Vec<Treatment>,
    /// The access log, where there is one.
    pub(crate) log: Option<CoreLog>,
    /// Traces, where there are any.
    pub(crate) tracing: Option<CoreTracing>,
    /// What counts the requests of the groups, in their order.
    pub(crate) groups: Vec<Rc<Traffic>>,
}

/// What a route changes in its requests and in their responses.
pub(crate) struct Treatment {
    /// Counts its requests.
    pub(crate) traffic: Rc<Traffic>,
    /// What its path begins with, when that is its condition; else nothing.
    pub(crate) prefix: String,
    /// What changes in requests that are forwarded.
    pub(crate) rules: Rules,
    /// What changes in responses.
    pub(crate) response_edits: Option<ResponseEdits>,
    /// What is said of other origins.
    pub(crate) cors: Option<Cors>,
    /// Whether and how responses are encoded.
    pub(crate) offer: Option<Rc<Offer>>,
    /// Bytes of a request's body.
    pub(crate) request_body_max: u64,
    pub(crate) timeouts: Timeouts,
    /// Whether its requests may wait on a connection with those of other routes.
    pub(crate) waits_as_all: bool,
    /// What errors say.
    pub(crate) error_pages: Option<Rc<ErrorPages>>,
    /// Whether more than its way has to be remembered of each request until it has its response.
    pub(crate) keeps: bool,
}

impl Settings {
    /// Settings with `treatments`, one per route.
    pub(crate) fn new(
        worker: &Rc<Worker>,
        resources: &Resources,
        error_pages: Option<Rc<ErrorPages>>,
        treatments: Vec<Treatment>,
        groups: Vec<Rc<Traffic>>,
    ) -> Rc<Self> {
        let plan = &resources.plan;
        let log = resources.access_log.as_ref();
        let tracing = resources.tracing.as_ref();
        Rc::new(Self {
            generation: resources.generation.in_force(),
            worker: Rc::clone(worker),
            trust: Trust::new(&plan.forwarded),
            timeouts: plan.timeouts,
            stalled_streams_max: plan.clients.stalled_streams_per_address_max.get(),
            request_limits: Limits {
                head_bytes_max: plan.request_limits.head_bytes_max,
                headers_max: plan.request_limits.fields_max,
                target_bytes_max: plan.request_limits.target_bytes_max,
                ..worker.limits
            },
            resets_per_second: plan.clients.http2_resets_per_second,
            request_body_max: plan.request_body_max.unwrap_or(u64::MAX),
            treatments,
            error_pages,
            log: log.map(|log| CoreLog::new(log, &plan.routes, &worker.core)),
            tracing: tracing.map(|tracing| CoreTracing::new(tracing, plan, &worker.core)),
            groups,
        })
    }
}

/// The last holder may be a request.
impl Drop for Settings {
    fn drop(&mut self) {
        drop_in_slices(std::mem::take(&mut self.treatments), &self.worker);
        drop_in_slices(std::mem::take(&mut self.groups), &self.worker);
    }
}

impl Settings {
    /// The number of their configuration.
    pub(crate) fn generation(&self) -> u64 {
        self.generation.number()
    }
}

impl Treatment {
    /// Prepares the treatment of a route by its index. `error_pages` are the pages of the whole configuration.
    pub(crate) fn new(
        index: usize,
        resources: &Resources,
        error_pages: &Option<Rc<ErrorPages>>,
        worker: &Worker,
    ) -> Self {
        let plan = &resources.plan;
        let route = &plan.routes[index];
        let traffic = worker
            .registry
            .traffic(Kind::Route, &resources.route_names[index]);
        let error_pages = match route.error_pages == plan.error_pages {
            true => error_pages.clone(),
            false => ErrorPages::new(&route.error_pages, &resources.page_files),
        };
        let timeouts = route.timeouts.unwrap_or(plan.timeouts);
        let rules = Rules::new(route, &plan.forwarded);
        let response_edits = ResponseEdits::new(route);
        let is_varying = response_edits
            .as_ref()
            .is_some_and(ResponseEdits::are_varying);
        let redirects_by_id = matches!(
            &route.action,
            Action::Redirect { location, .. }
                if location.0.contains(&Piece::Variable(Variable::RequestId))
        );
        let edits = &route.edits.response;
        let offer = route.compress.as_ref();
        let offer = offer.and_then(|compress| Offer::new(compress, edits));
        // Of what must stay as it is (RFC 9111 5.2.2.6), there is one form.
        let may_be_encoded = !route.cache_control.iter().any(CacheRule::forbids_encoding);
        let offer = offer.filter(|_| may_be_encoded);
        Self {
            traffic,
            request_body_max: route.request_body_max.unwrap_or(u64::MAX),
            error_pages,
            waits_as_all: wait_alike(&timeouts, &plan.timeouts),
            timeouts,
            prefix: route.when.path.prefix().to_owned(),
            keeps: is_varying || rules.needs_request_id() || redirects_by_id,
            rules,
            response_edits,
            cors: route.cors.as_ref().map(Cors::new),
            offer: offer.map(Rc::new),
        }
    }
}

/// Whether two requests that wait for a server by these are given up after the same time.
fn wait_alike(one: &Timeouts, other: &Timeouts) -> bool {
    let waits = |timeouts: &Timeouts| {
        let Timeouts {
            upstream_first_byte,
            upstream_body,
            request,
            ..
        } = *timeouts;
        (upstream_first_byte, upstream_body, request)
    };
    waits(one) == waits(other)
}
