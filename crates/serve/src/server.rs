//! A running server: claims its addresses, starts its cores, stops them.

mod apply;
mod handover;
mod listening;
mod parts;

use std::io;
use std::rc::Rc;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use onrush_config::plan::Listen;
use onrush_engine::{
    Address, Choice, Claim, Core, Cores, Handle, Promise, Setup, choose, descriptors,
};
use onrush_tls::Watch;

use crate::accept::{self, Accepting};
use crate::check::Checked;
use crate::cores::placement;
use crate::crowd::Crowd;
use crate::crowd::room::help_others;
use crate::descriptors::Shares;
use crate::generation::Generation;
use crate::limits::LOG_PATIENCE;
use crate::meter::Totals;
use crate::observe::access_log::AccessLog;
use crate::observe::inspector::Inspector;
use crate::resolve::Resolver;
use crate::service::Service;
use crate::site::{Resources, Site};
use crate::start_error::StartError;
use crate::worker::Worker;
use apply::Order;
use handover::Inheritance;
use listening::Listeners;
use parts::{access_log, claim, io_of, shares};

pub use apply::{Applied, ApplyError};
pub use handover::{Handed, Handover, Manner};

/// A server that accepts connections.
pub struct Server {
    /// In the order of the addresses of the configuration in force.
    claims: Vec<Arc<Claim>>,
    /// Of the configuration in force.
    resources: Arc<Resources>,
    /// Of configurations before it, as far as requests may be left.
    earlier: Vec<Arc<Generation>>,
    /// Of all configurations that may have lines to write.
    logs: Vec<Arc<AccessLog>>,
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
    /// Starts what a plan says, with its files as [`check`](crate::check()) has found them. Connections are accepted when
    /// it returns. The soft limit on open files is raised to the hard one: every connection is a file.
    ///
    /// # Errors
    /// See [`StartError`]; everything that can be known to be wrong is found before any address is bound.
    pub fn start(checked: Checked) -> Result<Server, StartError> {
        Self::started(checked, None).map(|(server, _)| server)
    }

    /// The same beside another process, which gave it this `handover`: addresses that both have are listened on with the
    /// sockets of the other one. Returns their places in the handover, which the other one [has to
    /// know](Server::hand_over). Until this one [takes over](Server::take_over) its end leaves the queues to the other one.
    ///
    /// # Errors
    /// As above, and when the two do not listen in the same manner. The other one may go on then as if nothing had been.
    pub fn start_beside(
        checked: Checked,
        handover: Handover,
    ) -> Result<(Server, Vec<usize>), StartError> {
        Self::started(checked, Some(handover))
    }

    fn started(
        checked: Checked,
        handover: Option<Handover>,
    ) -> Result<(Server, Vec<usize>), StartError> {
        let Checked {
            plan,
            found,
            arrival,
        } = checked;
        let limit = descriptors::raise();
        let choice = choose(io_of(plan.io)).map_err(StartError::Driver)?;
        let cpus = placement(&plan).map_err(StartError::Cpus)?;
        let before = handover.as_ref().map(|handover| handover.manner.by());
        let accepting = accept::choose(plan.accept, &cpus, &plan.listen, arrival.as_ref(), before)
            .map_err(StartError::Accept)?;
        let shares = shares(limit, &plan, cpus.len())
            .map_err(|(needed, limit)| StartError::Descriptors { needed, limit })?;
        let access_log = access_log(&plan, cpus.len(), None)?;
        let resources =
            Resources::new(plan, found, (shares, access_log), None).map_err(StartError::Thread)?;
        let resources = Arc::new(resources);
        let plan = &resources.plan;
        let resolver = Resolver::start(&plan.upstreams, &resources.all_endpoints)
            .map_err(StartError::Resolver)?;
        let manner = Manner::new(choice.io, cpus.len(), accepting.as_ref());
        let mut inheritance = Inheritance::new(handover, manner)?;
        let claims = plan.listen.iter().map(|listen| {
            let inherited = inheritance.claim(listen);
            claim(listen, inherited, accepting.as_ref(), &cpus)
        });
        let claims: Vec<_> = claims.collect::<Result<_, _>>()?;
        let setup = Setup {
            io: choice.io,
            cpus,
        };
        let crowd = Crowd::new(shares);
        let (first, everybody) = (Arc::clone(&resources), Arc::clone(&crowd));
        let (ready, readiness) = mpsc::channel();
        let listening = claims.clone();
        let cores = onrush_engine::start(&setup, move |core| {
            serve_on(&core, &first, &everybody, &listening, &ready)
        })
        .map_err(StartError::Core)?;
        let server = Server {
            _watch: resources.encryption.watch(),
            claims,
            logs: resources.access_log.iter().cloned().collect(),
            resources,
            earlier: Vec::new(),
            orders: Vec::new(),
            cores,
            choice,
            cpus: setup.cpus,
            accepting,
            crowd,
            _resolver: resolver,
        };
        let server = server.once_ready(&readiness)?;
        Ok((server, inheritance.taken()))
    }

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
        let mut claims = self.claims.iter();
        let Some(errno) = claims.find_map(|claim| claim.by_cpu_refused()) else {
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

    /// The number of the configuration in force; the first one has 1.
    pub fn generation(&self) -> u64 {
        self.resources.generation.number()
    }

    /// The numbers of earlier configurations that are still in use, by requests and tunnels that began on them.
    pub fn earlier(&self) -> impl Iterator<Item = u64> {
        let used = self.earlier.iter().filter(|earlier| earlier.is_used());
        used.map(|earlier| earlier.number())
    }

    /// Where it listens, with the ports that were chosen.
    pub fn addresses(&self) -> impl Iterator<Item = &Address> {
        self.claims.iter().map(|claim| claim.address())
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
        self.claims.iter().for_each(|claim| claim.withdraw());
        self.cores.stop(self.resources.plan.timeouts.drain);
        let totals = self.cores.join().into_iter().sum();
        match self.logs.iter().map(|log| log.close(LOG_PATIENCE)).sum() {
            0_u64 => {}
            lost => tracing::warn!("{lost} lines of the access log were lost"),
        }
        totals
    }

    /// Opens the file of the access log anew, if there is one; whether there is.
    pub fn reopen_log(&self) -> bool {
        let log = self.resources.access_log.as_ref();
        log.inspect(|log| log.reopen()).is_some()
    }

    /// What another process needs to take the place of this one, by [`Server::start_beside`].
    ///
    /// # Errors
    /// When there are no descriptors left.
    pub fn handover(&self) -> io::Result<Handover> {
        let listening = self.resources.plan.listen.iter().zip(&self.claims);
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
        self.claims.iter().for_each(|claim| claim.take_over());
    }

    /// Another process has taken the addresses at these places of the [handover](Server::handover). When this one stops, it
    /// leaves their queues to it.
    pub fn hand_over(&self, taken: &[usize]) {
        let claims = taken.iter().filter_map(|&place| self.claims.get(place));
        claims.for_each(|claim| claim.hand_over());
    }

    /// What looks at the server from any thread.
    pub fn inspector(&self) -> Inspector {
        Inspector::new(self.cores.handles())
    }

    /// What makes a running stop come to its end at once.
    pub fn handles(&self) -> Vec<Handle> {
        self.cores.handles()
    }
}

/// Serves on `core` until it stops. Whoever waits at the other end of `ready` hears when it does, or why it cannot.
fn serve_on(
    core: &Core,
    resources: &Resources,
    crowd: &Arc<Crowd>,
    claims: &[Arc<Claim>],
    ready: &mpsc::Sender<Result<Promise<Order>, StartError>>,
) -> Totals {
    match prepare(core, resources, crowd, claims) {
        Ok((service, listeners)) => {
            let worker = &service.worker;
            let (order, orders) = core.promise();
            let following = apply::follow(Rc::clone(&service), listeners, orders);
            worker.spawn_aside(following);
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
    claims: &[Arc<Claim>],
) -> Result<(Rc<Service>, Listeners), StartError> {
    let worker = Worker::new(core.clone(), crowd, resources.plan.timeouts.drain);
    let site = Site::new(&worker, resources, None)
        .map_err(|(path, error)| StartError::Directory(path, error))?;
    let service = Service::new(worker, site);
    let worker = &service.worker;
    if resources.shares.limit.is_some() {
        core.bound_accepted(Arc::clone(&crowd.allowance));
    }
    let listeners = Listeners::default()
        .with(core, claims, &service.site())
        .map_err(|(address, error)| StartError::Listen(address, error))?;
    listeners.take_over(&Listeners::default(), &service);
    // On one core whoever has no room makes it.
    if core.id() > 0 {
        worker.spawn_aside(help_others(Rc::clone(worker)));
    }
    let stopping = Rc::clone(&service);
    worker.spawn_aside(async move {
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
