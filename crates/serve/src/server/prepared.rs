//! A server that has claimed its addresses but not started threads: the user that may bind the addresses can differ
//! from the user that runs the threads.

use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};

use onrush_config::Plan;
use onrush_config::plan::{Accept, Io, LogTarget};
use onrush_engine::{
    Address, Choice, Identity, PassedSocket, Setup, choose, descriptors, may_change_identity,
};

use super::Server;
use super::handover::{Handover, InheritedAddresses, ListenSettings};
use super::listener_claims::{ListenerClaims, managed, streams};
use super::parts::{ClaimOptions, access_log, io_of, shares, tracing};
use super::passed_sockets::PassedSockets;
use super::serve_on;
use crate::observe::trace::spans::SpanCounts;
use crate::proxy::resolve::Resolver;
use crate::site::Resources;
use crate::site::accept::{self, Distribution};
use crate::site::check::{Checked, PlanFiles};
use crate::site::cores::placement;
use crate::site::permissions::{directory_of, is_of_root};
use crate::site::start_error::StartError;
use crate::worker::connection_budget::ConnectionBudget;
use crate::worker::descriptor_shares::Shares;

/// A server with claimed addresses, in a process without additional threads.
pub struct Prepared {
    plan: Plan,
    found: PlanFiles,
    shares: Shares,
    choice: Choice,
    cpus: Vec<Option<usize>>,
    accepting: Option<Distribution>,
    holds: Vec<ListenerClaims>,
    /// Indices in the handover.
    taken: Vec<usize>,
}

impl Server {
    /// Starts a server for a plan checked by [`check`](crate::site::check::check()). Connections are accepted when it
    /// returns. Raises the soft limit on open files to the hard one, because every connection needs a descriptor.
    ///
    /// # Errors
    /// See [`StartError`]; all errors that can be detected are found before any address is bound.
    pub fn start(checked: Checked) -> Result<Server, StartError> {
        let prepared = Prepared::new(checked, None, Vec::new(), None)?;
        prepared.start().map(|(server, _)| server)
    }
}

impl Prepared {
    /// Does everything that needs the privileges of the start: raises the limit on open files, claims the addresses
    /// and, if the process continues as another `user`, listens on them. Chooses a driver that `user` may use.
    ///
    /// A `handover` comes from another process: this one listens with its sockets on the addresses that both have. If
    /// this server ends before it [takes over](Server::take_over), the other process keeps the queues. Sockets in
    /// `passed` are used for their addresses.
    ///
    /// # Errors
    /// See [`StartError`].
    pub fn new(
        checked: Checked,
        handover: Option<Handover>,
        passed: Vec<PassedSocket>,
        user: Option<&Identity>,
    ) -> Result<Self, StartError> {
        let Checked {
            plan,
            found,
            arrival,
        } = checked;
        let limit = descriptors::raise();
        let choice = chosen(plan.io, user).map_err(StartError::Driver)?;
        let cpus = placement(&plan).map_err(StartError::Cpus)?;
        let before = handover.as_ref().map(|handover| handover.manner.by());
        let mut passing = PassedSockets::new(passed, handover.as_ref());
        passing.check_all_wanted(&plan)?;
        let own = passing.unmanaged(&plan.listen);
        if let Some(shared) = passing.first().filter(|_| plan.accept == Accept::Cpu) {
            let why = format!(
                "all cores share the queue of {shared}, a socket of the service manager; set accept = \"auto\", or remove it from the .socket unit"
            );
            return Err(StartError::Accept(why));
        }
        let accepting = accept::choose(plan.accept, &cpus, &own, arrival.as_ref(), before)
            .map_err(StartError::Accept)?;
        let shares = shares(limit, &plan, cpus.len())
            .map_err(|(needed, limit)| StartError::Descriptors { needed, limit })?;
        let manner = ListenSettings::new(choice.io, cpus.len(), accepting.as_ref());
        let mut inheritance = InheritedAddresses::new(handover, manner)?;
        let claiming = ClaimOptions {
            accepting: accepting.as_ref(),
            cpus: &cpus,
        };
        let holds = plan.listen.iter().map(|listen| {
            let inherited = match inheritance.claim(listen) {
                Some(inherited) => Some(inherited),
                None => passing.claim(listen)?,
            };
            claiming.hold(listen, None, inherited)
        });
        let holds: Vec<_> = holds.collect::<Result<_, _>>()?;
        if plan.process.run_as.is_some() {
            // Sockets of another user cannot join a SO_REUSEPORT group later.
            for claim in streams(&holds) {
                let listening = claim.listen(cpus.len());
                listening.map_err(|error| StartError::Listen(claim.address().clone(), error))?;
            }
        }
        Ok(Self {
            taken: inheritance.taken(),
            plan,
            found,
            shares,
            choice,
            cpus,
            accepting,
            holds,
        })
    }

    /// Files of Unix sockets that a service manager created and removes.
    pub fn managed_sockets(&self) -> Vec<PathBuf> {
        let paths = managed(&self.holds).filter_map(|claim| match claim.address() {
            Address::Unix(path) => Some(path.clone()),
            Address::Tcp(_) => None,
        });
        paths.collect()
    }

    /// The configuration.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Transfers to `identity` the files needed later: Unix sockets, and the access log in a directory where only root
    /// can create it.
    ///
    /// # Errors
    /// If the system refuses, with the name of the file.
    pub fn hand_to(&self, identity: &Identity) -> Result<(), (String, io::Error)> {
        for claim in streams(&self.holds) {
            let given = claim.give_file_to(identity);
            given.map_err(|error| (claim.address().to_string(), error))?;
        }
        match self.plan.access_log.as_ref().map(|log| &log.to) {
            Some(LogTarget::File(path)) => {
                let made = make_for(path, identity);
                made.map_err(|error| (path.display().to_string(), error))
            }
            _ => Ok(()),
        }
    }

    /// Starts the threads: connections are accepted when it returns. Also returns the indices of the claimed addresses
    /// in the handover.
    ///
    /// # Errors
    /// See [`StartError`]; nothing is left of the server then.
    pub fn start(self) -> Result<(Server, Vec<usize>), StartError> {
        let (shares, cores) = (self.shares, self.cpus.len());
        let spans = Arc::new(SpanCounts::default());
        let tracing = tracing(&self.plan, &self.found, (cores, &spans), None)?;
        let outputs = (shares, access_log(&self.plan, cores, None)?, tracing);
        let resources = Resources::new(self.plan, self.found, outputs, None);
        let resources = Arc::new(resources.map_err(StartError::Thread)?);
        let resolver = Resolver::start(&resources.plan.upstreams, &resources.all_endpoints)
            .map_err(StartError::Resolver)?;
        let setup = Setup {
            io: self.choice.io,
            cpus: self.cpus,
        };
        let crowd = ConnectionBudget::new(shares);
        let first = (Arc::clone(&resources), self.holds.clone());
        let everybody = Arc::clone(&crowd);
        let (ready, readiness) = mpsc::channel();
        let cores = onrush_engine::start(&setup, move |core| {
            serve_on(&core, first, &everybody, &ready)
        })
        .map_err(StartError::Core)?;
        let server = Server {
            _watch: resources.encryption.watch(),
            holds: self.holds,
            logs: resources.access_log.iter().cloned().collect(),
            traces: resources.tracing.iter().map(Arc::downgrade).collect(),
            spans,
            resources,
            earlier: Vec::new(),
            orders: Vec::new(),
            cores,
            choice: self.choice,
            cpus: setup.cpus,
            distribution: self.accepting,
            connection_budget: crowd,
            _resolver: resolver,
        };
        Ok((server.once_ready(&readiness)?, self.taken))
    }
}

/// Chooses the driver by a trial with the privileges of `user`: the sysctl kernel.io_uring_disabled may allow io_uring
/// only to root.
fn chosen(io: Io, user: Option<&Identity>) -> Result<Choice, String> {
    let choose = || choose(io_of(io));
    let other = user.filter(|user| !user.is_of_this_process() && may_change_identity());
    match other {
        // If the identity cannot be changed, the error is reported when it is changed for good.
        Some(user) => user.run_as(choose).unwrap_or_else(|_| choose()),
        None => choose(),
    }
}

/// Creates a missing log file in a directory that only root can write to. Elsewhere the user creates it: in a directory
/// of another user, the name could be a link to anywhere.
fn make_for(path: &Path, identity: &Identity) -> io::Result<()> {
    if !is_of_root(directory_of(path)) {
        return Ok(());
    }
    let mut options = std::fs::OpenOptions::new();
    options.append(true).create_new(true).mode(0o640);
    match options.open(path) {
        Ok(file) => std::os::unix::fs::fchown(file, Some(identity.user), Some(identity.group)),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}
