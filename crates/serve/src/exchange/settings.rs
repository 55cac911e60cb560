//! The part of the configuration that a request keeps from start to end.
//!
//! A request holds these settings instead of its site, because `site` is the higher module: a site has routes,
//! responses and groups, which use the exchange.

use std::rc::Rc;

use onrush_config::plan::Timeouts;
use onrush_http::Limits;

use crate::observe::access_log::CoreLog;
use crate::observe::trace::CoreTracing;
use crate::observe::traffic::Traffic;
use crate::routing::client::TrustedProxies;
use crate::rules::compress::CompressionRules;
use crate::rules::cors::Cors;
use crate::rules::error_page::ErrorPages;
use crate::rules::forwarding::ForwardingRules;
use crate::rules::response_edits::ResponseEdits;
use crate::worker::Worker;
use crate::worker::generation::SiteGuard;
use crate::worker::time_slice::drop_in_slices;

/// Settings of one configuration, prepared for one core.
pub(crate) struct Settings {
    pub(crate) generation: SiteGuard,
    pub(crate) worker: Rc<Worker>,
    pub(crate) trust: TrustedProxies,
    pub(crate) timeouts: Timeouts,
    /// Limit of stalled streams per client address on this core.
    pub(crate) stalled_streams_max: u32,
    pub(crate) request_limits: Limits,
    /// HTTP/2 streams that a client may reset per second and connection.
    pub(crate) resets_per_second: u32,
    /// Limit of request bodies without a route, in bytes.
    pub(crate) request_body_max: u64,
    /// Error pages for requests without a route.
    pub(crate) error_pages: Option<Rc<ErrorPages>>,
    /// Options of each route, in the order of the routes.
    pub(crate) routes: Vec<RouteOptions>,
    /// The access log, if configured.
    pub(crate) log: Option<CoreLog>,
    pub(crate) tracing: Option<CoreTracing>,
    /// Counters of each group, in the order of the groups.
    pub(crate) groups: Vec<Rc<Traffic>>,
}

/// Options of one route: how it changes requests and responses.
pub(crate) struct RouteOptions {
    /// Counters of the route's requests.
    pub(crate) traffic: Rc<Traffic>,
    /// The path prefix that the route matches; empty for other matches.
    pub(crate) prefix: String,
    /// Edits of forwarded requests.
    pub(crate) rules: ForwardingRules,
    pub(crate) response_edits: Option<ResponseEdits>,
    pub(crate) cors: Option<Cors>,
    /// Response compression.
    pub(crate) compression: Option<Rc<CompressionRules>>,
    /// Limit of request bodies, in bytes.
    pub(crate) request_body_max: u64,
    pub(crate) timeouts: Timeouts,
    pub(crate) error_pages: Option<Rc<ErrorPages>>,
    /// Whether requests of this route need `Kept` until they have their response.
    pub(crate) needs_rare_state: bool,
}

/// A request may hold the last reference, so the drop is divided into slices.
impl Drop for Settings {
    fn drop(&mut self) {
        drop_in_slices(std::mem::take(&mut self.routes), &self.worker);
        drop_in_slices(std::mem::take(&mut self.groups), &self.worker);
    }
}

impl Settings {
    /// Number of the configuration.
    pub(crate) fn generation(&self) -> u64 {
        self.generation.number()
    }
}
