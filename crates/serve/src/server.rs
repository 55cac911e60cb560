//! A running server: claims its addresses, starts its cores, stops them.

use std::fmt;
use std::io;
use std::rc::Rc;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use onrush_config::Plan;
use onrush_config::plan::{Address as PlanAddress, Io as PlanIo, Threads};
use onrush_engine::{
    Address, Choice, Claim, Core, Cores, Errno, Error, Handle, Handshakes, Io, Kind, Listener,
    Setup, choose, cpu, descriptors,
};
use onrush_tls::Watch;

use crate::access::Ledger;
use crate::check::{Checked, Found, cannot_serve};
use crate::crowd::{Crowd, help_others, is_want_of_room, wait_for_room};
use crate::descriptors::{Shares, needed};
use crate::limits::{
    ACCEPT_PAUSE, ACCEPTS_PER_TURN, CLAIM_ATTEMPTS, CLAIM_PAUSE, STOP_HANDSHAKES, STOP_LOOK,
};
use crate::listen::{self, Place};
use crate::meter::Totals;
use crate::proxy::check::watch;
use crate::proxy::roster::Roster;
use crate::resolve::Resolver;
use crate::tls::Encryption;
use crate::worker::Worker;

/// A server that accepts connections.
pub struct Server {
    claims: Arc<Vec<Claim>>,
    encryption: Arc<Encryption>,
    /// Follows changes of certificates; `None` when there are no files of them.
    _watch: Option<Watch>,
    cores: Cores<Totals>,
    choice: Choice,
    cpus: Vec<Option<usize>>,
    drain: Duration,
    shares: Shares,
    /// Keeps names of servers resolved, when there are any.
    _resolver: Option<Resolver>,
}

/// Why a server did not start. Nothing of it is left.
#[derive(Debug)]
pub enum StartError {
    /// The driver that was asked for is refused here.
    Driver(String),
    /// CPUs were asked for that this process may not use.
    Cpus(String),
    /// An address cannot be listened on.
    Listen(Address, Error),
    /// There is no thread to check passwords with.
    Thread(io::Error),
    /// A directory that could be opened a moment ago cannot be opened any more.
    Directory(String, Error),
    /// This process may not have as many open files as its cores need before the first connection comes.
    Descriptors {
        /// How many they need.
        needed: u64,
        /// How many it may have.
        limit: u64,
    },
    /// The kernel refuses what resolving the names of servers needs.
    Resolver(io::Error),
    /// The kernel refuses what a core needs.
    Core(Error),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::Driver(why) | StartError::Cpus(why) => f.write_str(why),
            StartError::Listen(address, error) => {
                write!(f, "cannot listen on {address}: ")?;
                match why_not_listening(address, error) {
                    Some(why) => f.write_str(why),
                    None => error.fmt(f),
                }
            }
            StartError::Directory(path, error) => f.write_str(&cannot_serve(path, error)),
            StartError::Thread(error) => {
                write!(f, "cannot start a thread to check passwords: {error}")
            }
            StartError::Descriptors { needed, limit } => write!(
                f,
                "too few file descriptors: {needed} are needed before the first connection, and this process may have {limit}; raise the limit (ulimit -n) or use fewer --threads"
            ),
            StartError::Resolver(error) => {
                write!(f, "cannot resolve the names of servers: {error}")
            }
            StartError::Core(error) => write!(f, "cannot start: {error}"),
        }
    }
}

impl std::error::Error for StartError {}

/// What the kernel's answer means here, and what the user can do.
fn why_not_listening(address: &Address, error: &Error) -> Option<&'static str> {
    let Kind::Os(errno) = error.kind else {
        return None;
    };
    match (address, errno) {
        (Address::Tcp(_), Errno::ADDRINUSE) => {
            Some("another program does; stop it or choose another --listen address")
        }
        (Address::Unix(_), Errno::ADDRINUSE) => Some(
            "another program does, or a file that is no socket has this name; choose another --listen address",
        ),
        (Address::Tcp(_), Errno::ADDRNOTAVAIL) => {
            Some("this machine does not have that address; 0.0.0.0 stands for all it has")
        }
        (Address::Tcp(_), Errno::ACCESS) => {
            Some("permission denied; ports below 1024 need CAP_NET_BIND_SERVICE")
        }
        (Address::Unix(_), Errno::NOENT | Errno::NOTDIR) => {
            Some("the directory of the socket does not exist")
        }
        (Address::Unix(_), Errno::ACCESS | Errno::PERM | Errno::ROFS) => {
            Some("the directory of the socket cannot be written to")
        }
        _ => None,
    }
}

impl Server {
    /// Starts what a plan says, with its files as [`check`](crate::check()) has found them. Connections are accepted when
    /// it returns. The soft limit on open files is raised to the hard one: every connection is a file.
    ///
    /// # Errors
    /// See [`StartError`]; everything that can be known to be wrong is found before any address is bound.
    pub fn start(checked: Checked) -> Result<Server, StartError> {
        let Checked { plan, found } = checked;
        let limit = descriptors::raise();
        let choice = choose(io(plan.io)).map_err(StartError::Driver)?;
        let cpus = placement(&plan)?;
        // A server that could not accept anybody would be half a start.
        let needed = needed(&plan, cpus.len());
        if let Some(limit) = limit.filter(|&limit| limit < needed) {
            return Err(StartError::Descriptors { needed, limit });
        }
        let shares = Shares::new(limit, &plan, cpus.len());
        let shared = Shared::with(found, &plan, shares)?;
        let resolver =
            Resolver::start(&plan.upstreams, &shared.rosters).map_err(StartError::Resolver)?;
        let claims = claim(&plan)?;
        let drain = plan.timeouts.drain;
        let setup = Setup {
            io: choice.io,
            cpus,
        };
        let encryption = Arc::clone(&shared.encryption);
        let shared = Arc::new((plan, shared));
        let (ready, readiness) = mpsc::channel();
        let listening = Arc::clone(&claims);
        let cores = onrush_engine::start(&setup, move |core| {
            let (plan, shared) = &*shared;
            match prepare(&core, plan, shared, &listening) {
                Ok(worker) => {
                    // The receiver waits for as many reports as there are cores.
                    let _ = ready.send(Ok(()));
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
            _watch: encryption.watch(),
            claims,
            encryption,
            cores,
            choice,
            cpus: setup.cpus,
            drain,
            shares,
            _resolver: resolver,
        };
        for outcome in readiness.iter().take(server.cpus.len()) {
            if let Err(error) = outcome {
                server.cores.stop(Duration::ZERO);
                return Err(error);
            }
        }
        Ok(server)
    }

    /// Where it listens, with the ports that were chosen.
    pub fn addresses(&self) -> impl Iterator<Item = &Address> {
        self.claims.iter().map(Claim::address)
    }

    /// Of each of these, whether TLS is spoken there.
    pub fn speaks_tls(&self) -> impl Iterator<Item = bool> {
        self.encryption.acceptors.iter().map(Option::is_some)
    }

    /// The driver that was taken, and why.
    pub fn driver(&self) -> &Choice {
        &self.choice
    }

    /// The CPU of each core; `None` for cores that are not pinned.
    pub fn cpus(&self) -> &[Option<usize>] {
        &self.cpus
    }

    /// What the limit on open files has room for.
    pub fn shares(&self) -> Shares {
        self.shares
    }

    /// Accepts those who wait and no others, lets what is in flight finish for as long as the plan says, and returns what
    /// was done.
    pub fn stop(self) -> Totals {
        self.claims.iter().for_each(Claim::withdraw);
        self.cores.stop(self.drain);
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

/// One core per CPU that may be used, or as many as asked for; more cores than CPUs share them in turn.
fn placement(plan: &Plan) -> Result<Vec<Option<usize>>, StartError> {
    let allowed = cpu::allowed();
    let cpus = plan.cpus.clone().unwrap_or_else(|| allowed.clone());
    cpu::check(&cpus).map_err(StartError::Cpus)?;
    let count = cores(plan, &allowed);
    // With fewer cores than CPUs and no wish for particular ones, the kernel knows better where there is room.
    let is_pinned = plan.cpus.is_some() || count >= cpus.len();
    Ok((0..count)
        .map(|core| is_pinned.then(|| cpus[core % cpus.len()]))
        .collect())
}

/// How many cores a plan has where these CPUs may be used.
pub(crate) fn cores(plan: &Plan, allowed: &[usize]) -> usize {
    match plan.threads {
        Threads::Auto => plan.cpus.as_deref().unwrap_or(allowed).len(),
        Threads::Count(count) => count.get(),
    }
}

/// What the cores of a server share.
pub(crate) struct Shared {
    /// The servers of each group.
    pub(crate) rosters: Vec<Arc<Roster>>,
    pub(crate) ledger: Ledger,
    pub(crate) encryption: Arc<Encryption>,
    pub(crate) crowd: Arc<Crowd>,
}

impl Shared {
    /// Of a plan whose files can be used.
    #[cfg(test)]
    pub(crate) fn new(plan: &Plan) -> Result<Self, StartError> {
        Self::within(plan, Shares::UNLIMITED)
    }

    /// The same where the limit on open files has room for so much.
    #[cfg(test)]
    pub(crate) fn within(plan: &Plan, shares: Shares) -> Result<Self, StartError> {
        let found = crate::check::read(plan).expect("a test has the files of its plan");
        Self::with(found, plan, shares)
    }

    fn with(found: Found, plan: &Plan, shares: Shares) -> Result<Self, StartError> {
        let rosters = plan.upstreams.iter().map(Roster::new).map(Arc::new);
        Ok(Self {
            ledger: Ledger::new(plan, found.users).map_err(StartError::Thread)?,
            rosters: rosters.collect(),
            encryption: Arc::new(found.encryption),
            crowd: Crowd::new(shares),
        })
    }
}

fn claim(plan: &Plan) -> Result<Arc<Vec<Claim>>, StartError> {
    let claims = plan.listen.iter().map(|listen| {
        let address = match &listen.address {
            PlanAddress::Tcp(address) => Address::Tcp(*address),
            PlanAddress::Unix(path) => Address::Unix(path.clone()),
        };
        claim_patiently(&address).map_err(|error| StartError::Listen(address, error))
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

/// Makes a core ready: routes, listeners, and the tasks that run until it is asked to stop.
pub(crate) fn prepare(
    core: &Core,
    plan: &Plan,
    shared: &Shared,
    claims: &[Claim],
) -> Result<Rc<Worker>, StartError> {
    let worker = Worker::new(core.clone(), plan, shared)
        .map_err(|(path, error)| StartError::Directory(path, error))?;
    if worker.crowd.shares.limit.is_some() {
        core.bound_accepted(Arc::clone(&worker.crowd.allowance));
    }
    let places = plan.listen.iter().zip(&shared.encryption.acceptors);
    for (claim, (listen, acceptor)) in claims.iter().zip(places) {
        let place = Place::new(listen, acceptor.as_ref());
        let listener = Listener::new(core, claim)
            .map_err(|error| StartError::Listen(claim.address().clone(), error))?;
        worker.spawn_aside(accept(listener, place, Rc::clone(&worker)));
    }
    for group in &worker.groups {
        worker
            .spawn_aside(Rc::clone(group).look_after(core.clone(), worker.timeouts.upstream_idle));
        if group.plan.connections_ready > 0 {
            worker.spawn_aside(Rc::clone(group).keep_ready(Rc::clone(&worker)));
        }
        // One core's checks are for all.
        if core.id() == 0 && group.plan.health.is_some() {
            for server in 0..group.servers().len() as u32 {
                worker.spawn_aside(watch(Rc::clone(group), server, Rc::clone(&worker)));
            }
        }
    }
    // On one core whoever has no room makes it.
    if core.id() > 0 {
        worker.spawn_aside(help_others(Rc::clone(&worker)));
    }
    let stopping = Rc::clone(&worker);
    worker.spawn_aside(async move {
        stopping.core.stopped().await;
        stopping.has_to_stop();
        stopping.groups.iter().for_each(|group| group.clear());
    });
    Ok(worker)
}

async fn accept(listener: Listener, place: Rc<Place>, worker: Rc<Worker>) {
    accept_until_stopping(&listener, &place, &worker).await;
    accept_last(&listener, &place, &worker).await;
}

async fn accept_until_stopping(listener: &Listener, place: &Rc<Place>, worker: &Rc<Worker>) {
    let mut in_a_row = 0;
    loop {
        match listener.accept().await {
            Ok(stream) => listen::greet(stream, place, worker),
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
async fn accept_last(listener: &Listener, place: &Rc<Place>, worker: &Rc<Worker>) {
    let patience = match listener.refuse_handshakes() {
        Handshakes::None => return,
        Handshakes::Near => STOP_LOOK,
        Handshakes::Far => STOP_HANDSHAKES,
    };
    let core = &worker.core;
    let patience = patience.min(worker.timeouts.drain / 4);
    let until = core.now_exact() + patience;
    while core.now() < until {
        core.sleep(STOP_LOOK).await;
        while let Ok(stream) = listener.accept().await {
            listen::greet(stream, place, worker);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use onrush_engine::Op;

    #[test]
    fn a_start_that_failed_says_why_and_what_to_do() {
        let listen = |address: Address, errno| {
            StartError::Listen(address, Error::new(Op::Listen, Kind::Os(errno))).to_string()
        };
        let tcp = || Address::Tcp(([10, 0, 0, 1], 80).into());
        let unix = || Address::Unix("/run/a.sock".into());
        for (said, part) in [
            (
                listen(tcp(), Errno::ADDRINUSE),
                "cannot listen on 10.0.0.1:80: another program does",
            ),
            (
                listen(tcp(), Errno::ADDRNOTAVAIL),
                "does not have that address",
            ),
            (listen(tcp(), Errno::ACCESS), "CAP_NET_BIND_SERVICE"),
            (listen(tcp(), Errno::NOBUFS), "listen: "),
            (listen(unix(), Errno::ACCESS), "cannot be written to"),
            (
                listen(unix(), Errno::NOENT),
                "directory of the socket does not exist",
            ),
        ] {
            assert!(said.contains(part), "{said}");
        }
    }
}
