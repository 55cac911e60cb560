//! Another configuration for a server that runs. Each core prepares its site of it first; when all have, each takes over.
//!
//! ```text
//!   Server::apply                         each core
//!     Prepare ── an order, as mail ──────> makes its site, or says why it cannot
//!     TakeOver ──────────────────────────> new requests begin on it
//!     (or Forget, where one could not)     the last request of the old one ends: `Applied::wait`
//! ```

use std::fmt;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::{Arc, mpsc};
use std::task::Poll;
use std::time::Duration;

use onrush_config::Plan;
use onrush_engine::{Core, Error, Promise, Reply};

use super::Server;
use crate::check::{Checked, cannot_serve};
use crate::generation::Generation;
use crate::resolve::Resolver;
use crate::service::Service;
use crate::site::{Resources, Site};

/// A configuration that is in force.
#[derive(Debug)]
pub struct Applied {
    number: u64,
    replaced: Arc<Generation>,
}

impl Applied {
    /// Its number in the life of the server; the one it started with is 1.
    pub fn generation(&self) -> u64 {
        self.number
    }

    /// Waits until the last request of the configuration before has ended, for `patience` at most; whether it has.
    pub fn wait(&self, patience: Duration) -> bool {
        self.replaced.wait_until_gone(patience)
    }
}

/// Why a configuration was not applied. The one before is still in force.
#[derive(Debug)]
pub enum ApplyError {
    /// It changes what is fixed when a server starts.
    Fixed(&'static str),
    /// There is no thread to check passwords with.
    Thread(io::Error),
    /// The kernel refuses what resolving the names of servers needs.
    Resolver(io::Error),
    /// A directory that could be opened a moment ago cannot be opened any more.
    Directory(String, Error),
    /// The server stops.
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
            ApplyError::Thread(error) => {
                write!(f, "cannot start a thread to check passwords: {error}")
            }
            ApplyError::Resolver(error) => {
                write!(f, "cannot resolve the names of servers: {error}")
            }
            ApplyError::Directory(path, error) => f.write_str(&cannot_serve(path, error)),
            ApplyError::Stopping => f.write_str("the server stops"),
        }
    }
}

impl std::error::Error for ApplyError {}

/// What a core is asked to do, and where it says what came of it.
pub(super) struct Order {
    step: Step,
    report: mpsc::Sender<Report>,
}

enum Step {
    Prepare(Arc<Resources>),
    TakeOver,
    Forget,
}

struct Report {
    outcome: Result<(), (String, Error)>,
    /// For the next order.
    next: Promise<Order>,
}

impl Server {
    /// Puts another configuration in force, with its files as [`check`](crate::check()) has found them: requests that
    /// begin from now on are answered by it, those that have begun end as they began. Servers whose group and address are
    /// written as before keep their connections, health and counters.
    ///
    /// # Errors
    /// See [`ApplyError`]; nothing has changed then.
    pub fn apply(&mut self, checked: Checked) -> Result<Applied, ApplyError> {
        let Checked { plan, found, .. } = checked;
        if let Some(what) = fixed(&self.resources.plan, &plan) {
            return Err(ApplyError::Fixed(what));
        }
        let resources =
            Resources::new(plan, found, Some(&self.resources)).map_err(ApplyError::Thread)?;
        let resources = Arc::new(resources);
        let resolver = Resolver::start(&resources.plan.upstreams, &resources.all_endpoints)
            .map_err(ApplyError::Resolver)?;
        if let Err(error) = self.tell(|| Step::Prepare(Arc::clone(&resources))) {
            self.tell(|| Step::Forget)?;
            return Err(error);
        }
        self.tell(|| Step::TakeOver)?;
        self._watch = resources.encryption.watch();
        self._resolver = resolver;
        let before = std::mem::replace(&mut self.resources, resources);
        Ok(Applied {
            number: self.resources.generation.number(),
            replaced: Arc::clone(&before.generation),
        })
    }

    /// Has all cores do one step, and waits until they have.
    fn tell(&mut self, step: impl Fn() -> Step) -> Result<(), ApplyError> {
        let (report, reports) = mpsc::channel();
        for promise in self.orders.drain(..) {
            promise.keep(Order {
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
        outcome.map_err(|(path, error)| ApplyError::Directory(path, error))
    }
}

/// What differs between two plans and cannot.
fn fixed(before: &Plan, plan: &Plan) -> Option<&'static str> {
    let addresses = |plan: &Plan| -> Vec<_> {
        let listen = plan.listen.iter();
        listen.map(|listen| listen.address.clone()).collect()
    };
    [
        (addresses(before) != addresses(plan), "listen addresses"),
        (before.threads != plan.threads, "threads"),
        (before.cpus != plan.cpus, "cpus"),
        (before.io != plan.io, "io"),
        (before.accept != plan.accept, "accept"),
    ]
    .into_iter()
    .find_map(|(differs, what)| differs.then_some(what))
}

/// Does what a core is asked to, until it stops.
pub(super) async fn follow(service: Rc<Service>, mut orders: Reply<Order>) {
    let core = service.worker.core.clone();
    let mut prepared = None;
    while let Some(order) = next(&core, &mut orders).await {
        let outcome = match order.step {
            Step::Prepare(resources) => {
                let site = Site::new(&service.worker, &resources, Some(&service.site()));
                site.map(|site| prepared = Some(site))
            }
            Step::TakeOver => {
                prepared
                    .take()
                    .into_iter()
                    .for_each(|site| service.take_over(site));
                Ok(())
            }
            Step::Forget => {
                prepared = None;
                Ok(())
            }
        };
        let (next, reply) = core.promise();
        orders = reply;
        // Who asked waits for it.
        let _ = order.report.send(Report { outcome, next });
    }
}

/// The next order; `None` when there will be none.
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
