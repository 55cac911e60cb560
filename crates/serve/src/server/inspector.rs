//! Queries to a running server from any thread: each core gets a message and replies between two turns.

use std::rc::Rc;
use std::sync::Arc;

use onrush_engine::{Handle, Instant, NotPosted, Promise};

use crate::observe::in_flight::RequestView;
use crate::observe::trace::spans::{SpanCounts, SpansView};
use crate::observe::work::{INSPECTION, ProfileView};
use crate::proxy::endpoints::AdminState;
use crate::proxy::group::Event;
use crate::server::view::CoreView;
use crate::site::service::Service;
use crate::worker::connections::{self, ConnectionQuery, ConnectionsView};

/// Queries the cores of a server and their shared state. Cheap to clone. It may outlive the server, whose cores then
/// reply no more.
#[derive(Clone)]
pub struct Inspector {
    handles: Vec<Handle>,
    spans: Arc<SpanCounts>,
}

impl Inspector {
    pub(crate) fn new(handles: Vec<Handle>, spans: &Arc<SpanCounts>) -> Self {
        let spans = Arc::clone(spans);
        Self { handles, spans }
    }

    /// Spans sent and lost since the start.
    pub fn spans(&self) -> SpansView {
        self.spans.view()
    }

    /// Number of cores.
    pub fn cores(&self) -> usize {
        self.handles.len()
    }

    /// Requests the snapshot of a core. The reply is delayed while the core is busy; a stopping core breaks the
    /// promise.
    ///
    /// # Errors
    /// If the core does not accept the query.
    pub fn view(&self, core: usize, view: Promise<CoreView>) -> Result<(), NotPosted> {
        self.ask(core, move |service| view.fulfil(CoreView::of(service)))
    }

    /// Requests the time profile of a core.
    ///
    /// # Errors
    /// If the core does not accept the query.
    pub fn profile(&self, core: usize, profile: Promise<ProfileView>) -> Result<(), NotPosted> {
        self.ask(core, move |service| {
            profile.fulfil(ProfileView::of(&service.worker.core));
        })
    }

    /// Requests the requests in flight on a core, with their ages at `asked`, the same time for all cores.
    ///
    /// # Errors
    /// If the core does not accept the query.
    pub fn requests(
        &self,
        core: usize,
        asked: Instant,
        requests: Promise<Vec<RequestView>>,
    ) -> Result<(), NotPosted> {
        self.ask(core, move |service| {
            let core = &service.worker.core;
            requests.fulfil(service.worker.live.views(core.id(), asked));
        })
    }

    /// Requests the client connections of a core that match `query`. The core searches in several turns if needed. Ages
    /// are at `asked`, the same time for all cores, so that results can be sorted together.
    ///
    /// # Errors
    /// If the core does not accept the query.
    pub fn connections(
        &self,
        core: usize,
        (query, asked): (ConnectionQuery, Instant),
        promise: Promise<ConnectionsView>,
    ) -> Result<(), NotPosted> {
        self.ask(core, move |service| {
            let worker = &service.worker;
            let looking =
                connections::query_connections(Rc::clone(worker), (query, asked), promise);
            worker.spawn_background(INSPECTION, looking);
        })
    }

    /// Sets the administrative state or the weight of a server on all cores. It lasts until the next change, also
    /// across configurations with the same server. `promise` gets the number of affected servers, because a name may
    /// have several addresses.
    ///
    /// # Errors
    /// If no core accepts the order.
    pub fn set_server(
        &self,
        (group, server): (String, String),
        change: ServerChange,
        promise: Promise<usize>,
    ) -> Result<(), NotPosted> {
        // All cores share this state.
        self.ask(0, move |service| {
            promise.fulfil(change_server(service, (&group, &server), change));
        })
    }

    fn ask(
        &self,
        core: usize,
        question: impl FnOnce(&Service) + Send + 'static,
    ) -> Result<(), NotPosted> {
        self.handles[core].post(move |core| {
            if let Some(service) = core.attached::<Service>() {
                question(&service);
            }
        })
    }
}

/// A change of a server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ServerChange {
    /// Administrative state.
    Duty(AdminState),
    /// Weight, 1 to 256; `None` for the configured one.
    Weight(Option<u32>),
}

/// Changes the servers of a group with this configured name or address; returns their number.
fn change_server(service: &Service, (group, server): (&str, &str), change: ServerChange) -> usize {
    let site = service.site();
    let mut groups = site.groups.iter();
    let Some(group) = groups.find(|of| of.plan.name == group) else {
        return 0;
    };
    let endpoints = group.endpoints();
    let mut count = 0;
    for (index, endpoint) in (0..).zip(endpoints.all()) {
        let Some(location) = endpoint.location() else {
            continue;
        };
        if group.server(index).name != server && location.address.to_string() != server {
            continue;
        }
        count += 1;
        match change {
            ServerChange::Duty(duty) => {
                endpoints.set_duty(index, duty);
                let how = format_args!("was set to {} by a command", duty.name());
                group.log_event(index, Event::Set, &how);
            }
            ServerChange::Weight(weight) => {
                endpoints.set_weight(index, weight);
                match weight {
                    Some(weight) => {
                        let how = format_args!("got the weight {weight} by a command");
                        group.log_event(index, Event::Set, &how);
                    }
                    None => {
                        group.log_event(index, Event::Set, &"got the weight of the configuration")
                    }
                }
            }
        }
    }
    count
}
