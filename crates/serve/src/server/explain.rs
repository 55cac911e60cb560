//! Explains how a server would handle a request: which route matches and why earlier ones do not, whether access is
//! granted, which response is sent, and what is forwarded to which server.
//!
//! The request passes through the same functions as in a running server, on an otherwise idle simulated core, up to the
//! point where bytes would be sent. The result is exact as far as it depends only on the configuration, its files and
//! the request; other dependencies are listed.

mod applied_settings;
mod condition;
mod outcome;
mod server_choice;

use std::cell::OnceCell;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;

use onrush_config::Plan;
use onrush_config::plan;
use onrush_engine::clock::unix_seconds;
use onrush_engine::{Core, Error, Input, Simulation, Stream};
use onrush_http::forwarded::Scheme;
use onrush_http::{HeaderSlots, Method, Parsed, Refusal};
use onrush_tls::Transport;

use crate::dispatch::route_action::{RequestOrigin, RouteAction, choose};
use crate::exchange::Exchange;
use crate::exchange::access::Access;
use crate::exchange::downstream::http1::{Http1, Request};
use crate::exchange::request_context::Source;
use crate::observe::trace::Tracing;
use crate::routing::client::{Client, PeerAddress};
use crate::routing::path;
use crate::site::check::Checked;
use crate::site::start_error::StartError;
use crate::site::{Resources, Site};
use crate::worker::Worker;
use crate::worker::connection_budget::ConnectionBudget;
use crate::worker::descriptor_shares::Shares;
use crate::worker::time_slice::run_unsliced;

pub use applied_settings::AppliedSetting;
pub use condition::UnmatchedRoute;
pub use outcome::{Forward, GroupForward, Outcome};
pub use server_choice::Choice;

/// A request and its connection.
#[derive(Clone, Debug)]
pub struct ExplainRequest {
    /// Index of the listener in the plan.
    pub listener: usize,
    /// Client address from the socket or the PROXY protocol; `None` for a Unix socket.
    pub client: Option<SocketAddr>,
    /// Scheme, from TLS here or, by the PROXY protocol, at a load balancer.
    pub scheme: plan::Scheme,
    /// The complete head, with the empty line, and the part of the body that arrives with it.
    pub bytes: Vec<u8>,
}

/// The explanation of a request.
#[derive(Clone, Debug)]
pub struct Explanation {
    /// Name of the listener.
    pub listener: String,
    /// Client address, from the connection or reported by trusted proxies; `None` if there is none.
    pub client: Option<IpAddr>,
    /// Client scheme, from the connection or reported by trusted proxies.
    pub scheme: plan::Scheme,
    /// Path used for routing; `None` if the request is refused before routing.
    pub path: Option<String>,
    /// The routes before the matching one.
    pub passed: Vec<UnmatchedRoute>,
    /// Index of the matching route.
    pub route: Option<usize>,
    /// The response or server.
    pub outcome: Outcome,
    /// Limits that apply.
    pub limits: Vec<AppliedSetting>,
    /// Edits of responses.
    pub edits: Vec<AppliedSetting>,
    /// Further dependencies whose state is known only at run time.
    pub unknown: Vec<String>,
}

/// Explains requests for one configuration.
pub struct Explainer {
    worker: Rc<Worker>,
    site: Rc<Site>,
    resources: Resources,
}

impl Explainer {
    /// An explainer for a checked plan. Binds and connects nothing.
    ///
    /// # Errors
    /// If a server could not start with the plan.
    pub fn new(checked: Checked) -> Result<Explainer, StartError> {
        let Checked { plan, found, .. } = checked;
        let shares = Shares::UNLIMITED;
        let tracing = plan
            .tracing
            .as_ref()
            .map(|plan| Tracing::without_exporter(plan, 1));
        let resources = Resources::new(plan, found, (shares, None, tracing), None)
            .map_err(StartError::Thread)?;
        // File dates are compared with the current date.
        let core = Core::simulated(Simulation {
            wall_clock: unix_seconds(),
            ..Simulation::with_seed(0)
        });
        let worker = Worker::new(
            core,
            &ConnectionBudget::new(shares),
            resources.plan.timeouts.drain,
        );
        let site = run_unsliced(async |slice| Site::new(&worker, &resources, None, slice).await)
            .map_err(|(path, error)| StartError::Directory(path, error))?;
        Ok(Explainer {
            worker,
            site,
            resources,
        })
    }

    /// The configuration.
    pub fn plan(&self) -> &Plan {
        &self.resources.plan
    }

    /// Names of the routes in metrics and the access log, in order.
    pub fn route_names(&self) -> &[String] {
        &self.resources.route_names
    }

    /// Explains a request. Requests explained one after the other count against limits as in a server.
    ///
    /// # Errors
    /// If the system is out of memory.
    ///
    /// # Panics
    /// If the listener index is not in the plan.
    pub fn explain(&self, question: &ExplainRequest) -> Result<Explanation, Error> {
        let core = &self.worker.core;
        let mut input = Input::default();
        let mut buffer = core.buffer()?;
        // A head that exceeds one buffer exceeds the limit.
        buffer.put_some(&question.bytes);
        input.give(buffer);
        let mut side = Http1::new(Transport::plain(Stream::without_peer(core)), input);
        let mut slots = HeaderSlots::new();
        match side.next_request(&mut slots, &self.site.settings.request_limits) {
            Parsed::Complete(request) => self.explain_request(question, request),
            Parsed::Partial => {
                let refusal = Refusal::new(400, "its head has no end");
                Ok(self.refused(question, refusal))
            }
            Parsed::Refused(refusal) => Ok(self.refused(question, refusal)),
        }
    }

    fn refused(&self, question: &ExplainRequest, refusal: Refusal) -> Explanation {
        Explanation {
            listener: self.plan().listen[question.listener].name.clone(),
            client: question.client.map(|client| client.ip().to_canonical()),
            scheme: question.scheme,
            path: None,
            passed: Vec::new(),
            route: None,
            outcome: Outcome::refused(refusal),
            limits: Vec::new(),
            edits: Vec::new(),
            unknown: Vec::new(),
        }
    }

    fn explain_request(
        &self,
        question: &ExplainRequest,
        request: Request<'_, '_>,
    ) -> Result<Explanation, Error> {
        let Request {
            head,
            arrived,
            stream,
            to,
        } = request;
        let (worker, site) = (&*self.worker, &*self.site);
        let client = client(question);
        let source = Source {
            worker,
            client: &client,
            stream,
            origin: &OnceCell::new(),
        };
        let listener = site.places[question.listener].listener;
        let mut exchange = Exchange::for_listener(listener, worker.core.now());
        exchange.start(&site.settings);
        let mut chosen = choose((&head, arrived), site, source, &mut exchange)?;
        if let RouteAction::Verify(_) = chosen {
            let access = exchange.route().and_then(|route| self.access(route));
            let access = access.expect("a route that asks for passwords has rules");
            exchange.store_login_outcome(access.verify_now(&head), worker);
            chosen = choose((&head, arrived), site, source, &mut exchange)?;
        }
        let route = exchange.route();
        let origin = source.of(&exchange).origin(head.headers);
        let normalized = path::normalize(head.path).ok();
        let path = normalized.filter(|_| head.method != Method::Connect);
        let passed = match &path {
            Some(path) => {
                let coming = RequestOrigin::new(source.of(&exchange), head.headers, site);
                condition::passed(site, &head, path, route, &coming)
            }
            None => Vec::new(),
        };
        let outcome = outcome::outcome(
            (self.plan(), site),
            chosen,
            (&head, arrived),
            (source, &mut exchange),
            to,
        )?;
        let plan = self.plan();
        let planned = route.map(|route| &plan.routes[route]);
        let listen = &plan.listen[question.listener];
        Ok(Explanation {
            listener: listen.name.clone(),
            client: origin.address,
            scheme: match origin.scheme {
                Scheme::Http => plan::Scheme::Http,
                Scheme::Https => plan::Scheme::Https,
            },
            path: path.map(|path| String::from_utf8_lossy(&path).into_owned()),
            passed,
            route,
            limits: planned.map_or(Vec::new(), |route| {
                applied_settings::limits(route, &plan.timeouts)
            }),
            edits: planned.map_or(Vec::new(), |route| applied_settings::edits(&route.edits)),
            unknown: applied_settings::unknown(plan, listen, planned, &outcome),
            outcome,
        })
    }

    fn access(&self, route: usize) -> Option<&Access> {
        self.site.routes.route(route).target.access.as_deref()
    }
}

fn client(question: &ExplainRequest) -> Client {
    let scheme = match question.scheme {
        plan::Scheme::Http => Scheme::Http,
        plan::Scheme::Https => Scheme::Https,
    };
    let origin = match question.client {
        Some(client) => PeerAddress::Address(client.ip().to_canonical(), client.port()),
        None => PeerAddress::Nowhere,
    };
    Client::new(scheme, origin)
}
