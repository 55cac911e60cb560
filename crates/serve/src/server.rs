//! A running server: claims its addresses, starts its cores, stops them.

pub(crate) mod confinement;
pub(crate) mod explain;
pub(crate) mod inspector;
pub(crate) mod view;

mod apply;
mod handover;
pub(crate) mod hold;
mod listening;
mod parts;
mod passing;
pub(crate) mod prepared;

use std::io;
use std::rc::Rc;
use std::sync::{Arc, Weak, mpsc};
use std::time::Duration;

use onrush_config::plan::{Listen, Protocol};
use onrush_engine::{Address, Choice, Claim, Core, Cores, Handle, Memory, Promise};
use onrush_tls::Watch;

use crate::limits::LOG_PATIENCE;
use crate::observe::access_log::AccessLog;
use crate::observe::meter::Totals;
use crate::observe::trace::Tracing;
use crate::observe::trace::limits::SPANS_PATIENCE;
use crate::observe::trace::spans::SpanCounts;
use crate::observe::work::UPKEEP;
use crate::proxy::resolve::Resolver;
use crate::server::inspector::Inspector;
use crate::site::accept::Accepting;
use crate::site::check::Checked;
use crate::site::service::Service;
use crate::site::start_error::StartError;
use crate::site::{Resources, Site};
use crate::worker::Worker;
use crate::worker::crowd::Crowd;
use crate::worker::crowd::room::help_others;
use crate::worker::descriptors::Shares;
use crate::worker::generation::Generation;
use crate::worker::time_slice::at_once;
use apply::Order;
use hold::{Hold, managed, streams, streams_weak};
use listening::Listeners;

pub use apply::{Applied, ApplyError};
pub use handover::{Handed, Handover, Manner};

/// A server that accepts connections.
pub struct Server {
    /// In the order of the addresses of the configuration in force.
    holds: Vec<Hold>,
    /// Of the configuration in force.
    resources: Arc<Resources>,
    /// Of configurations before it, as far as requests may be left.
    earlier: Vec<Arc<Generation>>,
    /// Of all configurations that may have lines to write.
    logs: Vec<Arc<AccessLog>>,
    /// Of all configurations that may have spans to send. One that nobody else holds ends by itself.
    traces: Vec<Weak<Tracing>>,
    spans: Arc<SpanCounts>,
    /// What each core waits for: see [`Server::apply`].
    orders: Vec<Promise<Order>>,
    /// Follows changes of certificates; `None` when there are no files of them.
    _watch: Option<Watch>,
    cores: Cores<Totals>,
    choice: Choice,
    cpus: Vec<Option<usize>>,
    accepting: Option<Accepting>,
    crowd: Arc<Crowd>,
    /// Keeps names of servers resolved, when there are any.
    _resolver: Option<Resolver>,
}

impl Server {
    /// The server when all cores listen; by then the kernel may have refused to choose among them by CPU.
    fn once_ready(
        mut self,
        readiness: &mpsc::Receiver<Result<Promise<Order>, StartError>>,
    ) -> Result<Server, StartError> {
        for outcome in readiness.iter().take(self.cpus.len()) {
            match outcome {
                Ok(order) => self.orders.push(order),
                Err(error) => {
                    self.cores.stop(Duration::ZERO);
                    return Err(error);
                }
            }
        }
        let refused = streams(&self.holds).find_map(|claim| claim.by_cpu_refused());
        let Some(errno) = refused else {
            return Ok(self);
        };
        match Accepting::refused(self.resources.plan.accept, errno) {
            Ok(by_hash) => {
                self.accepting = Some(by_hash);
                Ok(self)
            }
            Err(why) => {
                self.cores.stop(Duration::ZERO);
                Err(StartError::Accept(why))
            }
        }
    }

    /// The configuration in force.
    pub fn plan(&self) -> &onrush_config::Plan {
        &self.resources.plan
    }

    /// The same with what its files said when it was put in force, for an [`Explainer`](crate::Explainer): they may have changed
    /// since, or be none that this process may read.
    pub fn checked(&self) -> Checked {
        self.resources.checked()
    }

    /// The number of the configuration in force; the first one has 1.
    pub fn generation(&self) -> u64 {
        self.resources.generation.number()
    }

    /// The numbers of earlier configurations that are still in use, by requests and tunnels that began on them.
    pub fn earlier(&self) -> impl Iterator<Item = u64> {
        let used = self.earlier.iter().filter(|earlier| earlier.is_used());
        used.map(|earlier| earlier.number())
    }

    /// Whether an earlier configuration has been in use since the last [`Server::return_memory`].
    pub fn has_memory_to_return(&self) -> bool {
        !self.earlier.is_empty()
    }

    /// Returns the memory of earlier configurations to the system after their last request has ended.
    pub fn return_memory(&mut self) {
        let before = self.earlier.len();
        self.earlier.retain(|generation| generation.is_used());
        if self.earlier.len() < before {
            Memory::return_free();
        }
    }

    /// Where it listens, with the ports that were chosen.
    pub fn addresses(&self) -> impl Iterator<Item = Address> {
        self.holds.iter().map(Hold::address)
    }

    /// What it accepts connections by, as long as it does.
    pub fn claims(&self) -> impl Iterator<Item = Weak<Claim>> {
        streams_weak(&self.holds)
    }

    /// Those of them that a service manager keeps, whose queues all cores share.
    pub fn passed(&self) -> impl Iterator<Item = &Address> {
        managed(&self.holds).map(|claim| claim.address())
    }

    /// Of each of its addresses, what is spoken there.
    pub fn speaks(&self) -> impl Iterator<Item = &Protocol> {
        let listen = self.resources.plan.listen.iter();
        listen.map(|listen| &listen.protocol)
    }

    /// Of each of these, whether TLS is spoken there.
    pub fn speaks_tls(&self) -> impl Iterator<Item = bool> {
        self.resources
            .encryption
            .acceptors
            .iter()
            .map(Option::is_some)
    }

    /// The driver that was taken, and why.
    pub fn driver(&self) -> &Choice {
        &self.choice
    }

    /// The CPU of each core; `None` for cores that are not pinned.
    pub fn cpus(&self) -> &[Option<usize>] {
        &self.cpus
    }

    /// How connections get to cores, and why; `None` where there is nothing to choose.
    pub fn accepting(&self) -> Option<&Accepting> {
        self.accepting.as_ref()
    }

    /// What the limit on open files has room for.
    pub fn shares(&self) -> Shares {
        self.resources.shares
    }

    /// Accepts those who wait and no others, lets what is in flight finish for as long as the plan says, and returns what
    /// was done.
    pub fn stop(self) -> Totals {
        streams(&self.holds).for_each(|claim| claim.withdraw());
        self.cores.stop(self.resources.plan.timeouts.drain);
        let totals = self.cores.join().into_iter().sum();
        match self.logs.iter().map(|log| log.close(LOG_PATIENCE)).sum() {
            0_u64 => {}
            lost => tracing::warn!("{lost} lines of the access log were lost"),
        }
        let traces = self.traces.iter().filter_map(Weak::upgrade);
        traces.for_each(|it| it.close(SPANS_PATIENCE));
        totals
    }

    /// Opens the file of the access log anew, if there is one; whether there is.
    pub fn reopen_log(&self) -> bool {
        let log = self.resources.access_log.as_ref();
        log.inspect(|log| log.reopen()).is_some()
    }

    /// Sockets and settings with which another process can replace this one; see [`Prepared::new`](prepared::Prepared::new).
    ///
    /// # Errors
    /// When there are no descriptors left.
    pub fn handover(&self) -> io::Result<Handover> {
        let listening = self.resources.plan.listen.iter().zip(&self.holds);
        let listening =
            listening.filter_map(|(listen, hold)| Some((listen, hold.streams.as_ref()?)));
        let handed = |(listen, claim): (&Listen, &Arc<Claim>)| {
            Ok(Handed {
                written: listen.address.to_string(),
                address: claim.address().clone(),
                sockets: claim.sockets()?,
            })
        };
        Ok(Handover {
            manner: Manner::new(self.choice.io, self.cpus.len(), self.accepting.as_ref()),
            listening: listening.map(handed).collect::<io::Result<_>>()?,
        })
    }

    /// The other process has nothing to do any more with what was inherited from it.
    pub fn take_over(&self) {
        streams(&self.holds).for_each(|claim| claim.take_over());
    }

    /// Another process has taken the addresses at these places of the [handover](Server::handover). When this one stops, it
    /// leaves their queues to it.
    pub fn hand_over(&self, taken: &[usize]) {
        let claims = taken.iter();
        let claims = claims.filter_map(|&place| streams(&self.holds).nth(place));
        claims.for_each(|claim| claim.hand_over());
    }

    /// What looks at the server from any thread.
    pub fn inspector(&self) -> Inspector {
        Inspector::new(self.cores.handles(), &self.spans)
    }

    /// What makes a running stop come to its end at once.
    pub fn handles(&self) -> Vec<Handle> {
        self.cores.handles()
    }
}

/// Serves on `core` until it stops. Whoever waits at the other end of `ready` hears when it does, or why it cannot.
fn serve_on(
    core: &Core,
    (resources, holds): (Arc<Resources>, Vec<Hold>),
    crowd: &Arc<Crowd>,
    ready: &mpsc::Sender<Result<Promise<Order>, StartError>>,
) -> Totals {
    match prepare(core, &resources, crowd, &holds) {
        Ok((service, listeners)) => {
            if resources.plan.busy_poll {
                core.busy_poll();
            }
            // The core runs longer than its first configuration, so release that one now.
            drop((resources, holds));
            let worker = &service.worker;
            let (order, orders) = core.promise();
            let following = apply::follow(Rc::clone(&service), listeners, orders);
            worker.spawn_aside(UPKEEP, following);
            // The receiver waits for as many reports as there are cores.
            let _ = ready.send(Ok(order));
            let cut_off = worker.clients_among(core.run()) as u64;
            Totals {
                cut_off,
                ..worker.meter.totals()
            }
        }
        Err(error) => {
            let _ = ready.send(Err(error));
            Totals::default()
        }
    }
}

/// Makes a core ready: site, listeners, and the tasks that run until it is asked to stop.
pub(crate) fn prepare(
    core: &Core,
    resources: &Resources,
    crowd: &Arc<Crowd>,
    holds: &[Hold],
) -> Result<(Rc<Service>, Listeners), StartError> {
    let worker = Worker::new(core.clone(), crowd, resources.plan.timeouts.drain);
    let site = at_once(async |slice| Site::new(&worker, resources, None, slice).await)
        .map_err(|(path, error)| StartError::Directory(path, error))?;
    let service = Service::new(worker, site);
    let worker = &service.worker;
    if resources.shares.limit.is_some() {
        core.bound_accepted(Arc::clone(&crowd.allowance));
    }
    let listeners = Listeners::default()
        .with(worker, holds, &service.site())
        .map_err(|(address, error)| StartError::Listen(address, error))?;
    listeners.take_over(&Listeners::default(), &service);
    // On one core whoever has no room makes it.
    if core.id() > 0 {
        worker.spawn_aside(UPKEEP, help_others(Rc::clone(worker)));
    }
    let stopping = Rc::clone(&service);
    worker.spawn_aside(UPKEEP, async move {
        stopping.worker.core.stopped().await;
        stopping.worker.has_to_stop();
        stopping
            .site()
            .groups
            .iter()
            .for_each(|group| group.clear());
    });
    Ok((service, listeners))
}
