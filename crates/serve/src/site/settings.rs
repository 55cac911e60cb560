//! Builds the settings of requests and the options of each route for one core.

use crate::exchange::settings::{RouteOptions, Settings};
use crate::observe::access_log::CoreLog;
use crate::observe::registry::SeriesKind;
use crate::observe::trace::CoreTracing;
use crate::observe::traffic::Traffic;
use crate::routing::client::TrustedProxies;
use crate::rules::compress::CompressionRules;
use crate::rules::cors::Cors;
use crate::rules::error_page::ErrorPages;
use crate::rules::forwarding::ForwardingRules;
use crate::rules::response_edits::ResponseEdits;
use crate::site::resources::Resources;
use crate::worker::Worker;
use onrush_config::plan::{Action, CacheRule, Piece, Variable};
use onrush_http::Limits;
use std::rc::Rc;

impl Settings {
    /// Settings with `treatments`, one per route.
    pub(crate) fn new(
        worker: &Rc<Worker>,
        resources: &Resources,
        error_pages: Option<Rc<ErrorPages>>,
        treatments: Vec<RouteOptions>,
        groups: Vec<Rc<Traffic>>,
    ) -> Rc<Self> {
        let plan = &resources.plan;
        let log = resources.access_log.as_ref();
        let tracing = resources.tracing.as_ref();
        Rc::new(Self {
            generation: resources.generation.in_force(),
            worker: Rc::clone(worker),
            trust: TrustedProxies::new(&plan.forwarded),
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
            routes: treatments,
            error_pages,
            log: log.map(|log| CoreLog::new(log, &plan.routes, &worker.core)),
            tracing: tracing.map(|tracing| CoreTracing::new(tracing, plan, &worker.core)),
            groups,
        })
    }
}

impl RouteOptions {
    /// Prepares the options of a route by its index. `error_pages` are the pages of the whole configuration.
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
            .traffic(SeriesKind::Route, &resources.route_names[index]);
        let error_pages = match route.error_pages == plan.error_pages {
            true => error_pages.clone(),
            false => ErrorPages::new(&route.error_pages, &resources.page_files),
        };
        let rules = ForwardingRules::new(route, &plan.forwarded);
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
        let offer = offer.and_then(|compress| CompressionRules::new(compress, edits));
        // `no-transform` (RFC 9111 5.2.2.6) forbids compression.
        let may_be_encoded = !route.cache_control.iter().any(CacheRule::forbids_encoding);
        let offer = offer.filter(|_| may_be_encoded);
        Self {
            traffic,
            request_body_max: route.request_body_max.unwrap_or(u64::MAX),
            error_pages,
            timeouts: route.timeouts.unwrap_or(plan.timeouts),
            prefix: route.when.path.prefix().to_owned(),
            needs_rare_state: is_varying || rules.needs_request_id() || redirects_by_id,
            rules,
            response_edits,
            cors: route.cors.as_ref().map(Cors::new),
            compression: offer.map(Rc::new),
        }
    }
}
