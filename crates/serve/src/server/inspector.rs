//! How any thread looks at a server that serves: each core is asked by mail, and answers between two turns.

use std::rc::Rc;
use std::sync::Arc;

use onrush_engine::{Handle, Instant, NotPosted, Promise};

use crate::observe::live::RequestView;
use crate::observe::trace::spans::{SpanCounts, SpansView};
use crate::observe::work::{INSPECTION, ProfileView};
use crate::proxy::endpoints::Duty;
use crate::proxy::group::Event;
use crate::server::view::CoreView;
use crate::site::service::Service;
use crate::worker::connections::{self, ConnectionQuery, ConnectionsView};

/// Looks at the cores of a server, and at what they share. Cheap to clone; it outlives the server, whose cores do not answer
/// any more then.
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

    /// How many spans were sent and lost since the start.
    pub fn spans(&self) -> SpansView {
        self.spans.view()
    }

    /// How many cores there are.
    pub fn cores(&self) -> usize {
        self.handles.len()
    }

    /// Asks a core how it is. Who waits for the view waits as long as the core is busy; one that stops breaks the promise.
    ///
    /// # Errors
    /// When the core does not take the question.
    pub fn view(&self, core: usize, view: Promise<CoreView>) -> Result<(), NotPosted> {
        self.ask(core, move |service| view.keep(CoreView::of(service)))
    }

    /// Asks a core what it has spent its time on.
    ///
    /// # Errors
    /// When the core does not take the question.
    pub fn profile(&self, core: usize, profile: Promise<ProfileView>) -> Result<(), NotPosted> {
        self.ask(core, move |service| {
            profile.keep(ProfileView::of(&service.worker.core));
        })
    }

    /// Asks a core for the requests that are under way there, with their ages at `asked`, the same moment for all cores.
    ///
    /// # Errors
    /// When the core does not take the question.
    pub fn requests(
        &self,
        core: usize,
        asked: Instant,
        requests: Promise<Vec<RequestView>>,
    ) -> Result<(), NotPosted> {
        self.ask(core, move |service| {
            let core = &service.worker.core;
            requests.keep(service.worker.live.views(core.id(), asked));
        })
    }

    /// Asks a core for those of its clients' connections that `query` asks for. The core looks for them in as many turns as it
    /// takes. Ages are those at `asked`, the same moment for all cores, so that they can be sorted together.
    ///
    /// # Errors
    /// When the core does not take the question.
    pub fn connections(
        &self,
        core: usize,
        (query, asked): (ConnectionQuery, Instant),
        promise: Promise<ConnectionsView>,
    ) -> Result<(), NotPosted> {
        self.ask(core, move |service| {
            let worker = &service.worker;
            let looking = connections::look(Rc::clone(worker), (query, asked), promise);
            worker.spawn_aside(INSPECTION, looking);
        })
    }

    /// Changes what an administrator wants of a server, and how much of it gets, on all cores. It is so until it is changed
    /// again, also by configurations that have the same server; `promise` gets how many servers it was about: a name may
    /// have several addresses.
    ///
    /// # Errors
    /// When no core takes the order.
    pub fn set_server(
        &self,
        (group, server): (String, String),
        change: ServerChange,
        promise: Promise<usize>,
    ) -> Result<(), NotPosted> {
        // Cores share what is changed.
        self.ask(0, move |service| {
            promise.keep(change_server(service, (&group, &server), change));
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

/// What changes of a server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ServerChange {
    /// What an administrator wants of it.
    Duty(Duty),
    /// Its share, 1 to 256; `None` for what the configuration says.
    Weight(Option<u32>),
}

/// The servers of a group that are called so, by the name in the configuration or by the address.
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
                let how = format_args!("is set to {} by hand", duty.name());
                group.tell(index, Event::Set, &how);
            }
            ServerChange::Weight(weight) => {
                endpoints.set_weight(index, weight);
                match weight {
                    Some(weight) => {
                        let how = format_args!("has the weight {weight} by hand");
                        group.tell(index, Event::Set, &how);
                    }
                    None => group.tell(index, Event::Set, &"has the weight of the configuration"),
                }
            }
        }
    }
    count
}
