//! A running server: claims addresses, starts cores, stops them.

pub(crate) mod confinement;
pub(crate) mod explain;
pub(crate) mod inspector;
pub(crate) mod view;

mod apply;
mod handover;
pub(crate) mod listener_claims;
mod listening;
mod parts;
mod passed_sockets;
pub(crate) mod prepared;

use std::io;
use std::rc::Rc;
use std::sync::{Arc, Weak, mpsc};
use std::time::Duration;

use onrush_config::plan::{Listener, Protocol};
use onrush_engine::{Address, Choice, Claim, Core, Cores, Handle, Memory, Promise};
use onrush_tls::Watch;

use crate::limits::LOG_FLUSH_TIMEOUT;
use crate::observe::access_log::AccessLog;
use crate::observe::meter::Totals;
use crate::observe::trace::Tracing;
use crate::observe::trace::limits::SPANS_PATIENCE;
use crate::observe::trace::spans::SpanCounts;
use crate::observe::work::UPKEEP;
use crate::proxy::resolve::Resolver;
use crate::server::inspector::Inspector;
use crate::site::accept::Distribution;
use crate::site::check::Checked;
use crate::site::service::Service;
use crate::site::start_error::StartError;
use crate::site::{Resources, Site};
use crate::worker::Worker;
use crate::worker::connection_budget::ConnectionBudget;
use crate::worker::connection_budget::room::free_for_others;
use crate::worker::descriptor_shares::Shares;
use crate::worker::generation::Generation;
use crate::worker::time_slice::run_unsliced;
use apply::Order;
use listener_claims::{ListenerClaims, managed, streams, streams_weak};
use listening::Listeners;

pub use apply::{Applied, ApplyError};
pub use handover::{HandedAddress, Handover, ListenSettings};

/// A running server.
pub struct Server {
    /// In the order of the addresses in the configuration.
    holds: Vec<ListenerClaims>,
    /// Resources of the configuration in force.
    resources: Arc<Resources>,
    /// Earlier configurations that may still have requests.
    earlier: Vec<Arc<Generation>>,
    /// Logs of all configurations that may have unwritten lines.
    logs: Vec<Arc<AccessLog>>,
    /// Tracing of all configurations that may have unsent spans. Ends by itself when the last reference is dropped.
    traces: Vec<Weak<Tracing>>,
    spans: Arc<SpanCounts>,
    /// Sends the next order to each core: see [`Server::apply`].
    orders: Vec<Promise<Order>>,
    /// Watches certificate files; `None` if there are none.
    _watch: Option<Watch>,
    cores: Cores<Totals>,
    choice: Choice,
    cpus: Vec<Option<usize>>,
    distribution: Option<Distribution>,
    connection_budget: Arc<ConnectionBudget>,
    /// Keeps server names resolved, if there are any.
    _resolver: Option<Resolver>,
}

impl Server {
    /// Waits until all cores listen. After that it is known whether the kernel distributes connections by CPU.
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
        match Distribution::refused(self.resources.plan.accept, errno) {
            Ok(by_hash) => {
                self.distribution = Some(by_hash);
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

    /// The configuration in force with the contents of its files at that time, for an [`Explainer`](crate::Explainer):
    /// the files may have changed since or be unreadable for this process.
    pub fn checked(&self) -> Checked {
        self.resources.checked()
    }

    /// Number of the configuration in force, starting with 1.
    pub fn generation(&self) -> u64 {
        self.resources.generation.number()
    }

    /// Numbers of earlier configurations that requests or tunnels still use.
    pub fn earlier(&self) -> impl Iterator<Item = u64> {
        let used = self.earlier.iter().filter(|earlier| earlier.is_used());
        used.map(|earlier| earlier.number())
    }

    /// Whether an earlier configuration has been in use since the last [`Server::return_memory`].
    pub fn has_memory_to_return(&self) -> bool {
        !self.earlier.is_empty()
    }

    /// Returns memory of earlier configurations to the system once their last request has ended.
    pub fn return_memory(&mut self) {
        let before = self.earlier.len();
        self.earlier.retain(|generation| generation.is_used());
        if self.earlier.len() < before {
            Memory::return_free();
        }
    }

    /// Listening addresses, with the actual ports.
    pub fn addresses(&self) -> impl Iterator<Item = Address> {
        self.holds.iter().map(ListenerClaims::address)
    }

    /// Claims of the listening TCP and Unix addresses.
    pub fn claims(&self) -> impl Iterator<Item = Weak<Claim>> {
        streams_weak(&self.holds)
    }

    /// Addresses whose sockets belong to a service manager; all cores share their queues.
    pub fn managed_addresses(&self) -> impl Iterator<Item = &Address> {
        managed(&self.holds).map(|claim| claim.address())
    }

    /// Protocol of each listener.
    pub fn protocols(&self) -> impl Iterator<Item = &Protocol> {
        let listen = self.resources.plan.listen.iter();
        listen.map(|listen| &listen.protocol)
    }

    /// Whether each listener uses TLS.
    pub fn uses_tls(&self) -> impl Iterator<Item = bool> {
        self.resources
            .encryption
            .acceptors
            .iter()
            .map(Option::is_some)
    }

    /// The chosen driver, and why.
    pub fn driver(&self) -> &Choice {
        &self.choice
    }

    /// CPU of each core; `None` for cores that are not pinned.
    pub fn cpus(&self) -> &[Option<usize>] {
        &self.cpus
    }

    /// Distribution of connections to cores, with its reason; `None` with one core or only Unix sockets.
    pub fn distribution(&self) -> Option<&Distribution> {
        self.distribution.as_ref()
    }

    /// How the limit on open files is divided.
    pub fn shares(&self) -> Shares {
        self.resources.shares
    }

    /// Stops the server: accepts the connections already queued, lets requests in flight finish until the drain
    /// timeout, and returns the totals.
    pub fn stop(self) -> Totals {
        streams(&self.holds).for_each(|claim| claim.withdraw());
        self.cores.stop(self.resources.plan.timeouts.drain);
        let totals = self.cores.join().into_iter().sum();
        match self
            .logs
            .iter()
            .map(|log| log.close(LOG_FLUSH_TIMEOUT))
            .sum()
        {
            0_u64 => {}
            lost => tracing::warn!("{lost} lines of the access log were lost"),
        }
        let traces = self.traces.iter().filter_map(Weak::upgrade);
        traces.for_each(|it| it.close(SPANS_PATIENCE));
        totals
    }

    /// Reopens the access log file. Returns whether there is a log.
    pub fn reopen_log(&self) -> bool {
        let log = self.resources.access_log.as_ref();
        log.inspect(|log| log.reopen()).is_some()
    }

    /// Sockets and settings for a process that replaces this one; see [`Prepared::new`](prepared::Prepared::new).
    ///
    /// # Errors
    /// If no descriptors are left.
    pub fn handover(&self) -> io::Result<Handover> {
        let listening = self.resources.plan.listen.iter().zip(&self.holds);
        let listening =
            listening.filter_map(|(listen, hold)| Some((listen, hold.streams.as_ref()?)));
        let handed = |(listen, claim): (&Listener, &Arc<Claim>)| {
            Ok(HandedAddress {
                written: listen.address.to_string(),
                address: claim.address().clone(),
                sockets: claim.sockets()?,
            })
        };
        Ok(Handover {
            manner: ListenSettings::new(
                self.choice.io,
                self.cpus.len(),
                self.distribution.as_ref(),
            ),
            listening: listening.map(handed).collect::<io::Result<_>>()?,
        })
    }

    /// Takes ownership of the inherited sockets: the other process no longer uses them.
    pub fn take_over(&self) {
        streams(&self.holds).for_each(|claim| claim.take_over());
    }

    /// Leaves to another process the addresses with these indices of the [handover](Server::handover). When this server
    /// stops, it does not close their queues.
    pub fn hand_over(&self, taken: &[usize]) {
        let claims = taken.iter();
        let claims = claims.filter_map(|&place| streams(&self.holds).nth(place));
        claims.for_each(|claim| claim.release_to_other_process());
    }

    /// An inspector of the running server, for any thread.
    pub fn inspector(&self) -> Inspector {
        Inspector::new(self.cores.handles(), &self.spans)
    }

    /// Handles of the cores, to end a running stop immediately.
    pub fn handles(&self) -> Vec<Handle> {
        self.cores.handles()
    }
}

/// Serves on `core` until it stops. Reports through `ready` when it listens, or why it cannot.
fn serve_on(
    core: &Core,
    (resources, holds): (Arc<Resources>, Vec<ListenerClaims>),
    connection_budget: &Arc<ConnectionBudget>,
    ready: &mpsc::Sender<Result<Promise<Order>, StartError>>,
) -> Totals {
    match prepare(core, &resources, connection_budget, &holds) {
        Ok((service, listeners)) => {
            if resources.plan.busy_poll {
                core.busy_poll();
            }
            // The core outlives its first configuration, so release it now.
            drop((resources, holds));
            let worker = &service.worker;
            let (order, orders) = core.promise();
            let following = apply::execute_orders(Rc::clone(&service), listeners, orders);
            worker.spawn_background(UPKEEP, following);
            // The receiver waits for one report per core.
            let _ = ready.send(Ok(order));
            let cut_off = worker.count_client_tasks(core.run()) as u64;
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

/// Prepares a core: site, listeners and background tasks.
pub(crate) fn prepare(
    core: &Core,
    resources: &Resources,
    connection_budget: &Arc<ConnectionBudget>,
    holds: &[ListenerClaims],
) -> Result<(Rc<Service>, Listeners), StartError> {
    let worker = Worker::new(
        core.clone(),
        connection_budget,
        resources.plan.timeouts.drain,
    );
    let site = run_unsliced(async |slice| Site::new(&worker, resources, None, slice).await)
        .map_err(|(path, error)| StartError::Directory(path, error))?;
    let service = Service::new(worker, site);
    let worker = &service.worker;
    if resources.shares.limit.is_some() {
        core.bound_accepted(Arc::clone(&connection_budget.allowance));
    }
    let listeners = Listeners::default()
        .with(worker, holds, &service.site())
        .map_err(|(address, error)| StartError::Listen(address, error))?;
    listeners.take_over(&Listeners::default(), &service);
    // With one core, the listener that runs out of descriptors frees them itself.
    if core.id() > 0 {
        worker.spawn_background(UPKEEP, free_for_others(Rc::clone(worker)));
    }
    let stopping = Rc::clone(&service);
    worker.spawn_background(UPKEEP, async move {
        stopping.worker.core.stopped().await;
        stopping.worker.check_stop();
        stopping
            .site()
            .groups
            .iter()
            .for_each(|group| group.clear());
    });
    Ok((service, listeners))
}
