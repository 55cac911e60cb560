//! A running server: claims its addresses, starts its cores, stops them.

mod apply;

use std::rc::Rc;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use onrush_config::Plan;
use onrush_config::plan::{Address as PlanAddress, Io as PlanIo};
use onrush_engine::{
    Address, Choice, Claim, Core, Cores, Error, Handle, Handshakes, Io, Kind, Listener, Promise,
    Setup, choose, descriptors,
};
use onrush_tls::Watch;

use crate::accept::{self, Accepting, By};
use crate::check::Checked;
use crate::cores::placement;
use crate::crowd::Crowd;
use crate::crowd::room::{help_others, is_want_of_room, wait_for_room};
use crate::descriptors::{Shares, needed};
use crate::limits::{
    ACCEPT_PAUSE, ACCEPTS_PER_TURN, CLAIM_ATTEMPTS, CLAIM_PAUSE, STOP_HANDSHAKES, STOP_LOOK,
};
use crate::listen;
use crate::meter::Totals;
use crate::resolve::Resolver;
use crate::service::Service;
use crate::site::{Resources, Site};
use crate::start_error::StartError;
use crate::worker::Worker;
use apply::Order;

pub use apply::{Applied, ApplyError};

/// A server that accepts connections.
pub struct Server {
    claims: Arc<Vec<Claim>>,
    /// Of the configuration in force.
    resources: Arc<Resources>,
    /// What each core waits for: see [`Server::apply`].
    orders: Vec<Promise<Order>>,
    /// Follows changes of certificates; `None` when there are no files of them.
    _watch: Option<Watch>,
    cores: Cores<Totals>,
    choice: Choice,
    cpus: Vec<Option<usize>>,
    accepting: Option<Accepting>,
    shares: Shares,
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
        let Checked {
            plan,
            found,
            arrival,
        } = checked;
        let limit = descriptors::raise();
        let choice = choose(io(plan.io)).map_err(StartError::Driver)?;
        let cpus = placement(&plan).map_err(StartError::Cpus)?;
        let accepting = accept::choose(plan.accept, &cpus, &plan.listen, arrival.as_ref())
            .map_err(StartError::Accept)?;
        // A server that could not accept anybody would be half a start.
        let needed = needed(&plan, cpus.len());
        if let Some(limit) = limit.filter(|&limit| limit < needed) {
            return Err(StartError::Descriptors { needed, limit });
        }
        let shares = Shares::new(limit, &plan, cpus.len());
        let resources = Resources::new(plan, found, None).map_err(StartError::Thread)?;
        let resources = Arc::new(resources);
        let plan = &resources.plan;
        let resolver = Resolver::start(&plan.upstreams, &resources.all_endpoints)
            .map_err(StartError::Resolver)?;
        let claims = claim(plan, accepting.as_ref(), &cpus)?;
        let setup = Setup {
            io: choice.io,
            cpus,
        };
        let crowd = Crowd::new(shares);
        let first = Arc::clone(&resources);
        let (ready, readiness) = mpsc::channel();
        let listening = Arc::clone(&claims);
        let cores = onrush_engine::start(&setup, move |core| {
            match prepare(&core, &first, &crowd, &listening) {
                Ok(service) => {
                    let worker = &service.worker;
                    let (order, orders) = core.promise();
                    worker.spawn_aside(apply::follow(Rc::clone(&service), orders));
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
        })
        .map_err(StartError::Core)?;
        let server = Server {
            _watch: resources.encryption.watch(),
            claims,
            resources,
            orders: Vec::new(),
            cores,
            choice,
            cpus: setup.cpus,
            accepting,
            shares,
            _resolver: resolver,
        };
        server.once_ready(&readiness)
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
        let Some(errno) = self.claims.iter().find_map(Claim::by_cpu_refused) else {
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

    /// Where it listens, with the ports that were chosen.
    pub fn addresses(&self) -> impl Iterator<Item = &Address> {
        self.claims.iter().map(Claim::address)
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
        self.shares
    }

    /// Accepts those who wait and no others, lets what is in flight finish for as long as the plan says, and returns what
    /// was done.
    pub fn stop(self) -> Totals {
        self.claims.iter().for_each(Claim::withdraw);
        self.cores.stop(self.resources.plan.timeouts.drain);
        self.cores.join().into_iter().sum()
    }

    /// What makes a running stop come to its end at once.
    pub fn handles(&self) -> Vec<Handle> {
        self.cores.handles()
    }
}

fn io(io: PlanIo) -> Io {
    match io {
        PlanIo::Auto => Io::Auto,
        PlanIo::Epoll => Io::Epoll,
        PlanIo::IoUring => Io::IoUring,
    }
}

fn claim(
    plan: &Plan,
    accepting: Option<&Accepting>,
    cpus: &[Option<usize>],
) -> Result<Arc<Vec<Claim>>, StartError> {
    let is_by_cpu = accepting.is_some_and(|accepting| accepting.by == By::Cpu);
    let cpus: Vec<usize> = cpus.iter().copied().flatten().collect();
    let claims = plan.listen.iter().map(|listen| {
        let address = match &listen.address {
            PlanAddress::Tcp(address) => Address::Tcp(*address),
            PlanAddress::Unix(path) => Address::Unix(path.clone()),
        };
        match claim_patiently(&address) {
            Ok(claim) if is_by_cpu => Ok(claim.by_cpu(&cpus)),
            Ok(claim) => Ok(claim),
            Err(error) => Err(StartError::Listen(address, error)),
        }
    });
    claims.collect::<Result<_, _>>().map(Arc::new)
}

/// Claims an address that may still be in use by a server which has been killed: io_uring gives sockets back a moment
/// after its process has gone, and whoever supervises servers starts the next one at once.
fn claim_patiently(address: &Address) -> Result<Claim, Error> {
    let mut attempts_left = CLAIM_ATTEMPTS;
    loop {
        attempts_left -= 1;
        match Claim::new(address) {
            Err(error) if error.is_address_in_use() && attempts_left > 0 => {
                thread::sleep(CLAIM_PAUSE);
            }
            outcome => return outcome,
        }
    }
}

/// Makes a core ready: site, listeners, and the tasks that run until it is asked to stop.
pub(crate) fn prepare(
    core: &Core,
    resources: &Resources,
    crowd: &Arc<Crowd>,
    claims: &[Claim],
) -> Result<Rc<Service>, StartError> {
    let worker = Worker::new(core.clone(), crowd, resources.plan.timeouts.drain);
    let site = Site::new(&worker, resources, None)
        .map_err(|(path, error)| StartError::Directory(path, error))?;
    let service = Service::new(worker, site);
    let worker = &service.worker;
    if crowd.shares.limit.is_some() {
        core.bound_accepted(Arc::clone(&crowd.allowance));
        core.bound_pipes(crowd.shares.pipes_per_core);
    }
    for (place, claim) in claims.iter().enumerate() {
        let listener = Listener::new(core, claim)
            .map_err(|error| StartError::Listen(claim.address().clone(), error))?;
        worker.spawn_aside(accept_all(listener, place, Rc::clone(&service)));
    }
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
    Ok(service)
}

async fn accept_all(listener: Listener, place: usize, service: Rc<Service>) {
    accept_until_stopping(&listener, place, &service).await;
    accept_last(&listener, place, &service).await;
}

async fn accept_until_stopping(listener: &Listener, place: usize, service: &Rc<Service>) {
    let worker = &service.worker;
    let mut in_a_row = 0;
    loop {
        match listener.accept().await {
            Ok(stream) => listen::greet(stream, place, service),
            Err(Error {
                kind: Kind::Stopping,
                ..
            }) => return,
            Err(error) if is_want_of_room(&error) => wait_for_room(worker, error).await,
            Err(error) => {
                worker.log.failure(&worker.core, format_args!("{error}"));
                worker.core.sleep(ACCEPT_PAUSE).await;
            }
        }
        in_a_row += 1;
        if in_a_row == ACCEPTS_PER_TURN {
            in_a_row = 0;
            worker.core.pause().await;
        }
    }
}

/// Accepts those whose handshakes are under way while the server stops: closing the listener would reset connections
/// that their clients believe to have. The queue is empty.
async fn accept_last(listener: &Listener, place: usize, service: &Rc<Service>) {
    let patience = match listener.refuse_handshakes() {
        Handshakes::None => return,
        Handshakes::Near => STOP_LOOK,
        Handshakes::Far => STOP_HANDSHAKES,
    };
    let core = &service.worker.core;
    let patience = patience.min(service.worker.drain.get() / 4);
    let until = core.now_exact() + patience;
    while core.now() < until {
        core.sleep(STOP_LOOK).await;
        while let Ok(stream) = listener.accept().await {
            listen::greet(stream, place, service);
        }
    }
}
