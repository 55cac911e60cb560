//! Applies another configuration to a running server. Each core first prepares its site; when all are ready, each takes
//! over.
//!
//! ```text
//!   Server::apply                         each core
//!     Prepare ── an order, as mail ──────> builds its site, or reports why it cannot
//!     TakeOver ──────────────────────────> new requests use it
//!     (or Forget, if a core failed)        the last request of the old one ends: `Applied::wait`
//! ```
//!
//! A server of a group keeps its identity if its configured address is the same. Both configurations then share its
//! state: resolved addresses, health, ejection, requests in flight. Weight, limits and health checks belong to each
//! configuration. A rate or concurrency limit keeps its counts if its route has the same conditions and its key is the
//! same.
//!
//! Addresses are claimed before any core prepares. An address in both configurations keeps its claim and its listeners.
//! The listener of a removed address accepts its queue, waits for handshakes in progress and closes, as on a stop.
//! Threads, CPUs, the driver, `accept` and the user are fixed at the start.

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::{Arc, mpsc};
use std::task::Poll;
use std::time::Duration;

use onrush_config::Plan;
use onrush_config::plan::Listener;
use onrush_engine::{Address, Core, Promise, Reply};

use super::Server;
use super::listener_claims::{ListenerClaims, managed, streams};
use super::listening::Listeners;
use super::parts::{ClaimOptions, access_log, shares, tracing};
use super::passed_sockets::unmanaged;
use crate::proxy::resolve::Resolver;
use crate::site::accept::{self, Distribution, ReceivingCpus};
use crate::site::check::Checked;
use crate::site::service::Service;
use crate::site::start_error::StartError;
use crate::site::{Resources, Site};
use crate::worker::generation::Generation;
use crate::worker::time_slice::TimeSlice;

/// A configuration that is in force.
#[derive(Debug)]
pub struct Applied {
    number: u64,
    replaced: Arc<Generation>,
    added: Vec<Address>,
    removed: Vec<Address>,
}

impl Applied {
    /// Returns the number of the configuration in the server's lifetime, from 1.
    pub fn generation(&self) -> u64 {
        self.number
    }

    /// Added listening addresses.
    pub fn added(&self) -> &[Address] {
        &self.added
    }

    /// Removed listening addresses.
    pub fn removed(&self) -> &[Address] {
        &self.removed
    }

    /// Waits, for at most `patience`, until the last request of the previous configuration has ended. Returns whether
    /// it has.
    pub fn wait(&self, patience: Duration) -> bool {
        self.replaced.wait_until_gone(patience)
    }
}

/// Why a configuration was not applied. The previous one is still in force.
#[derive(Debug)]
pub enum ApplyError {
    /// The configuration changes a setting that is fixed at the start.
    Fixed(&'static str),
    /// The configuration removes an address whose socket belongs to a service manager: clients would still connect to
    /// it.
    Kept(Address),
    /// A server could not start with the configuration.
    Refused(StartError),
    /// The server is stopping.
    Stopping,
}

impl fmt::Display for ApplyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ApplyError::Fixed(what) => {
                write!(
                    f,
                    "{what} cannot change while the server runs; start another one"
                )
            }
            ApplyError::Kept(address) => write!(
                f,
                "{address} is a socket of the service manager, which would keep listening: remove it from the .socket unit, then restart the server"
            ),
            ApplyError::Refused(error) => error.fmt(f),
            ApplyError::Stopping => f.write_str("the server stops"),
        }
    }
}

impl std::error::Error for ApplyError {}

impl From<StartError> for ApplyError {
    fn from(error: StartError) -> Self {
        ApplyError::Refused(error)
    }
}

/// An order to a core, and the channel for its report.
pub(super) struct Order {
    step: Step,
    report: mpsc::Sender<Report>,
}

enum Step {
    Prepare(Arc<Resources>, Arc<[ListenerClaims]>),
    TakeOver,
    Forget,
}

struct Report {
    outcome: Result<(), StartError>,
    next: Promise<Order>,
}

impl Server {
    /// Applies a configuration checked by [`check`](crate::site::check::check()): new requests use it, requests in
    /// flight keep the previous one. Servers with the same group and address keep their connections, health and
    /// counters. Added addresses are listened on. Removed addresses accept connections already queued and no others;
    /// open connections stay.
    ///
    /// # Errors
    /// See [`ApplyError`]; nothing has changed then.
    pub fn apply(&mut self, checked: Checked) -> Result<Applied, ApplyError> {
        let Checked {
            plan,
            found,
            arrival,
        } = checked;
        if let Some(what) = first_restart_only_change(&self.resources.plan, &plan) {
            return Err(ApplyError::Fixed(what));
        }
        let shares = shares(self.resources.shares.limit, &plan, self.cpus.len())
            .map_err(|(needed, limit)| StartError::Descriptors { needed, limit })?;
        let accepting = self.accepting_of(&plan, arrival.as_ref())?;
        let holds = self.holds_of(&plan.listen, accepting.as_ref())?;
        let left = beside(&self.holds, &holds);
        if let Some(kept) = managed(&left).next() {
            return Err(ApplyError::Kept(kept.address().clone()));
        }
        let before = Some(&*self.resources);
        let to = (self.cpus.len(), &self.spans);
        let tracing = tracing(&plan, &found, to, before)?;
        let access_log = access_log(&plan, self.cpus.len(), before)?;
        let resources = Resources::new(plan, found, (shares, access_log, tracing), before)
            .map_err(StartError::Thread)?;
        let resources = Arc::new(resources);
        let resolver = Resolver::start(&resources.plan.upstreams, &resources.all_endpoints)
            .map_err(StartError::Resolver)?;
        let listening: Arc<[_]> = holds.clone().into();
        let prepare = || Step::Prepare(Arc::clone(&resources), Arc::clone(&listening));
        if let Err(error) = self.tell(prepare) {
            self.tell(|| Step::Forget)?;
            return Err(error);
        }
        streams(&left).for_each(|claim| claim.withdraw());
        let added = beside(&holds, &self.holds);
        self.tell(|| Step::TakeOver)?;
        self.connection_budget.share_anew(shares);
        self.holds = holds;
        self.distribution = accepting;
        self._watch = resources.encryption.watch();
        self._resolver = resolver;
        let before = std::mem::replace(&mut self.resources, resources);
        self.resources.report_ended_ejections(&before);
        let number = self.resources.generation.number();
        self.earlier.retain(|generation| generation.is_used());
        self.earlier.push(Arc::clone(&before.generation));
        // A log without other references has been told to end.
        let log = self.resources.access_log.as_ref();
        self.logs.retain(|other| {
            Arc::strong_count(other) > 1 && log.is_none_or(|log| !Arc::ptr_eq(log, other))
        });
        self.logs.extend(log.cloned());
        let tracing = self.resources.tracing.as_ref().map(Arc::downgrade);
        self.traces.retain(|other| {
            other.strong_count() > 0 && tracing.as_ref().is_none_or(|it| !it.ptr_eq(other))
        });
        self.traces.extend(tracing);
        Ok(Applied {
            number,
            replaced: Arc::clone(&before.generation),
            added: addresses(&added),
            removed: addresses(&left),
        })
    }

    /// How connections are distributed to cores: as before, or a new choice if there was nothing to choose. Queues that
    /// a manager keeps do not matter, as at the start.
    fn accepting_of(
        &self,
        plan: &Plan,
        arrival: Option<&ReceivingCpus>,
    ) -> Result<Option<Distribution>, StartError> {
        if let Some(accepting) = &self.distribution {
            return Ok(Some(accepting.clone()));
        }
        let kept: Vec<_> = managed(&self.holds)
            .map(|claim| claim.address().clone())
            .collect();
        let own = unmanaged(&kept, &plan.listen);
        accept::choose(plan.accept, &self.cpus, &own, arrival, None).map_err(StartError::Accept)
    }

    /// Claims the addresses of a configuration, reusing present claims.
    fn holds_of(
        &self,
        listen: &[Listener],
        accepting: Option<&Distribution>,
    ) -> Result<Vec<ListenerClaims>, StartError> {
        let there = self.resources.plan.listen.iter().zip(&self.holds);
        let mut there: Vec<_> = there.map(Some).collect();
        let claiming = ClaimOptions {
            accepting,
            cpus: &self.cpus,
        };
        let hold_of = |listen: &Listener| {
            // Use each present claim once: every port 0 stands for another port.
            let mut present = there.iter_mut();
            let same = present
                .find(|there| there.is_some_and(|(before, _)| before.address == listen.address));
            let before = same.and_then(Option::take).map(|(_, hold)| hold);
            claiming.hold(listen, before, None)
        };
        listen.iter().map(hold_of).collect()
    }

    /// Makes all cores execute one step and waits for their reports.
    fn tell(&mut self, step: impl Fn() -> Step) -> Result<(), ApplyError> {
        let (report, reports) = mpsc::channel();
        for promise in self.orders.drain(..) {
            promise.fulfil(Order {
                step: step(),
                report: report.clone(),
            });
        }
        drop(report);
        let mut outcome = Ok(());
        for report in reports {
            self.orders.push(report.next);
            outcome = outcome.and(report.outcome);
        }
        if self.orders.len() < self.cpus.len() {
            return Err(ApplyError::Stopping);
        }
        outcome.map_err(ApplyError::Refused)
    }
}

fn beside(holds: &[ListenerClaims], others: &[ListenerClaims]) -> Vec<ListenerClaims> {
    let beside = holds.iter().filter(|hold| hold.shares_nothing_with(others));
    beside.cloned().collect()
}

fn addresses(holds: &[ListenerClaims]) -> Vec<Address> {
    holds.iter().map(ListenerClaims::address).collect()
}

/// The first difference between two plans that cannot be applied.
fn first_restart_only_change(before: &Plan, plan: &Plan) -> Option<&'static str> {
    [
        (before.threads != plan.threads, "threads"),
        (before.cpus != plan.cpus, "cpus"),
        (before.io != plan.io, "io"),
        (before.accept != plan.accept, "accept"),
        (before.busy_poll != plan.busy_poll, "busy_poll"),
        (before.admin != plan.admin, "admin"),
        (before.process != plan.process, "process"),
    ]
    .into_iter()
    .find_map(|(differs, what)| differs.then_some(what))
}

/// Executes orders on a core until it stops.
pub(super) async fn execute_orders(
    service: Rc<Service>,
    mut listeners: Listeners,
    mut orders: Reply<Order>,
) {
    let core = service.worker.core.clone();
    let mut prepared = None;
    let mut replaced = None;
    while let Some(order) = next(&core, &mut orders).await {
        let outcome = match order.step {
            Step::Prepare(resources, holds) => {
                let next = prepare(&service, &listeners, &resources, &holds).await;
                next.map(|next| prepared = Some(next))
            }
            Step::TakeOver => {
                if let Some((site, next)) = prepared.take() {
                    replaced = Some(service.take_over(&site));
                    next.take_over(&listeners, &service);
                    listeners = next;
                }
                Ok(())
            }
            Step::Forget => {
                prepared = None;
                Ok(())
            }
        };
        let (next, reply) = core.promise();
        orders = reply;
        // `Server::apply` waits for it.
        let _ = order.report.send(Report { outcome, next });
        if let Some(before) = replaced.take() {
            let mut slice = TimeSlice::begin(&core);
            service.change_upkeep(before, &mut slice).await;
        }
    }
}

/// Builds the site and the listeners of another configuration.
async fn prepare(
    service: &Service,
    listeners: &Listeners,
    resources: &Resources,
    holds: &[ListenerClaims],
) -> Result<(Rc<Site>, Listeners), StartError> {
    let mut slice = TimeSlice::begin(&service.worker.core);
    let before = service.site();
    let site = Site::new(&service.worker, resources, Some(&before), &mut slice)
        .await
        .map_err(|(path, error)| StartError::Directory(path, error))?;
    let listeners = listeners
        .with(&service.worker, holds, &site)
        .map_err(|(address, error)| StartError::Listen(address, error))?;
    Ok((site, listeners))
}

/// The next order; `None` if the core stops.
async fn next(core: &Core, orders: &mut Reply<Order>) -> Option<Order> {
    let mut stopped = core.stopped();
    poll_fn(|context| {
        if Pin::new(&mut stopped).poll(context).is_ready() {
            return Poll::Ready(None);
        }
        Pin::new(&mut *orders).poll(context)
    })
    .await
}
