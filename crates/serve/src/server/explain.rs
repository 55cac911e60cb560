//! What a server would do with a request, and why: which route takes it and why none before, who is let in, what responds, what a
//! server is sent and which one.
//!
//! The request goes the way of every other one, through the same functions, on a core that has nothing else to do: up to where
//! bytes would leave for a client or a server. So what is said here is what is done there, as far as that depends on nothing
//! but the configuration, its files and the request. What else it depends on is said, too.

mod choice;
mod condition;
mod facts;
mod outcome;

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

use crate::dispatch::chosen::{Arrival, Chosen, choose};
use crate::exchange::Exchange;
use crate::exchange::access::Access;
use crate::exchange::downstream::http1::{Http1, Request};
use crate::exchange::request_context::Source;
use crate::observe::trace::Tracing;
use crate::routing::client::{Client, Origin};
use crate::routing::path;
use crate::site::check::Checked;
use crate::site::start_error::StartError;
use crate::site::{Resources, Site};
use crate::worker::Worker;
use crate::worker::crowd::Crowd;
use crate::worker::descriptors::Shares;
use crate::worker::time_slice::at_once;

pub use choice::Choice;
pub use condition::Passed;
pub use facts::Fact;
pub use outcome::{Forward, Outcome, ToGroup};

/// A request, and how it comes.
#[derive(Clone, Debug)]
pub struct Question {
    /// The place of its listener in the plan.
    pub listener: usize,
    /// Whom its connection comes from, by the socket or by the PROXY protocol; none for a Unix socket.
    pub client: Option<SocketAddr>,
    /// Whether it comes over TLS, here or, by the PROXY protocol, at a balancer.
    pub scheme: plan::Scheme,
    /// All of its head, with the empty line, and as much of its body as comes with it.
    pub bytes: Vec<u8>,
}

/// What becomes of a request.
#[derive(Clone, Debug)]
pub struct Explanation {
    /// The name of its listener.
    pub listener: String,
    /// The client, by its connection or by what trusted proxies say; none without an address.
    pub client: Option<IpAddr>,
    /// How the client asks, by the same.
    pub scheme: plan::Scheme,
    /// The path as routes see it; none for a request that was refused before.
    pub path: Option<String>,
    /// The routes before the one that takes it.
    pub passed: Vec<Passed>,
    /// The one that takes it, with its place among all, from 0.
    pub route: Option<usize>,
    /// What it gets.
    pub outcome: Outcome,
    /// The limits that hold for it.
    pub limits: Vec<Fact>,
    /// What the route changes in responses.
    pub edits: Vec<Fact>,
    /// What it also depends on, and is not known here.
    pub unknown: Vec<String>,
}

/// Explains what becomes of requests by one configuration.
pub struct Explainer {
    worker: Rc<Worker>,
    site: Rc<Site>,
    resources: Resources,
}

impl Explainer {
    /// Of a plan whose files have been looked at. Nothing is bound, and nobody is connected to.
    ///
    /// # Errors
    /// When a server could not start with it.
    pub fn new(checked: Checked) -> Result<Explainer, StartError> {
        let Checked { plan, found, .. } = checked;
        let shares = Shares::UNLIMITED;
        let tracing = plan.tracing.as_ref().map(|plan| Tracing::unsent(plan, 1));
        let resources = Resources::new(plan, found, (shares, None, tracing), None)
            .map_err(StartError::Thread)?;
        // Dates of files are compared with that of the day.
        let core = Core::simulated(Simulation {
            wall_clock: unix_seconds(),
            ..Simulation::with_seed(0)
        });
        let worker = Worker::new(core, &Crowd::new(shares), resources.plan.timeouts.drain);
        let site = at_once(async |slice| Site::new(&worker, &resources, None, slice).await)
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

    /// What metrics and the access log call its routes, in their order.
    pub fn route_names(&self) -> &[String] {
        &self.resources.route_names
    }

    /// What becomes of a request. Those that are asked about one after the other count in limits as they would there.
    ///
    /// # Errors
    /// When the system has no memory for it.
    ///
    /// # Panics
    /// When its listener is none of the plan.
    pub fn explain(&self, question: &Question) -> Result<Explanation, Error> {
        let core = &self.worker.core;
        let mut input = Input::default();
        let mut buffer = core.buffer()?;
        // More than fits is more than a head may have.
        buffer.put_some(&question.bytes);
        input.give(buffer);
        let mut side = Http1::new(Transport::plain(Stream::alone(core)), input);
        let mut slots = HeaderSlots::new();
        match side.next(&mut slots, &self.site.settings.request_limits) {
            Parsed::Complete(request) => self.explain_request(question, request),
            Parsed::Partial => {
                let refusal = Refusal::new(400, "its head has no end");
                Ok(self.refused(question, refusal))
            }
            Parsed::Refused(refusal) => Ok(self.refused(question, refusal)),
        }
    }

    fn refused(&self, question: &Question, refusal: Refusal) -> Explanation {
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
        question: &Question,
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
        let mut exchange = Exchange::of_listener(listener, worker.core.now());
        exchange.start(&site.settings);
        let mut chosen = choose((&head, arrived), site, source, &mut exchange)?;
        if let Chosen::Verify(_) = chosen {
            let access = exchange.route().and_then(|route| self.access(route));
            let access = access.expect("a route that asks for passwords has rules");
            exchange.verified(access.verify_now(&head), worker);
            chosen = choose((&head, arrived), site, source, &mut exchange)?;
        }
        let route = exchange.route();
        let origin = source.of(&exchange).origin(head.headers);
        let normalized = path::normalize(head.path).ok();
        let path = normalized.filter(|_| head.method != Method::Connect);
        let passed = match &path {
            Some(path) => {
                let coming = Arrival::new(source.of(&exchange), head.headers, site);
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
        Ok(Explanation {
            listener: plan.listen[question.listener].name.clone(),
            client: origin.address,
            scheme: match origin.scheme {
                Scheme::Http => plan::Scheme::Http,
                Scheme::Https => plan::Scheme::Https,
            },
            path: path.map(|path| String::from_utf8_lossy(&path).into_owned()),
            passed,
            route,
            limits: planned.map_or(Vec::new(), |route| facts::limits(route, &plan.timeouts)),
            edits: planned.map_or(Vec::new(), |route| facts::edits(&route.edits)),
            unknown: facts::unknown(plan, &plan.listen[question.listener], planned, &outcome),
            outcome,
        })
    }

    fn access(&self, route: usize) -> Option<&Access> {
        self.site.routes.route(route).target.access.as_deref()
    }
}

/// Whose connection it is.
fn client(question: &Question) -> Client {
    let scheme = match question.scheme {
        plan::Scheme::Http => Scheme::Http,
        plan::Scheme::Https => Scheme::Https,
    };
    let origin = match question.client {
        Some(client) => Origin::Address(client.ip().to_canonical(), client.port()),
        None => Origin::Nowhere,
    };
    Client::new(scheme, origin)
}
