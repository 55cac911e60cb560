//! What a request needs of the configuration that it began with, whatever responds to it.
//!
//! A request holds these and not its site, which is above: a site has routes, responses and groups, and they use the
//! exchange.

use std::rc::Rc;

use onrush_config::plan::Timeouts;
use onrush_http::Limits;

use crate::observe::access_log::CoreLog;
use crate::observe::trace::CoreTracing;
use crate::observe::traffic::Traffic;
use crate::routing::client::Trust;
use crate::rules::compress::Offer;
use crate::rules::cors::Cors;
use crate::rules::error_page::ErrorPages;
use crate::rules::forwarding::Rules;
use crate::rules::response_edits::ResponseEdits;
use crate::worker::Worker;
use crate::worker::generation::InForce;
use crate::worker::time_slice::drop_in_slices;

/// Prepared for one core. A request holds them from its beginning to its end.
pub(crate) struct Settings {
    pub(crate) generation: InForce,
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
    /// What errors say.
    pub(crate) error_pages: Option<Rc<ErrorPages>>,
    /// Whether more than its way has to be remembered of each request until it has its response.
    pub(crate) keeps: bool,
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
