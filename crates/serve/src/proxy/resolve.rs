//! Resolves the host names of servers, at the start and again when a TTL expires, in a thread of its own. The addresses
//! are assigned to the endpoints; no request ever waits for DNS.
//!
//! `directory.rs` sends the queries, `known.rs` decides what an answer changes.

mod directory;
mod known;
#[cfg(test)]
mod tests;

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use onrush_config::limits::WEIGHT_MAX;
use onrush_config::plan::{ServerAddress, Upstream};
use onrush_engine::{Address, Instant, clock};
use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use tokio::task::LocalSet;

use crate::limits::{ADDRESSES_SHOWN_MAX, FIRST_RESOLUTION_WAIT};
use crate::proxy::ejection::report_unassigned;
use crate::proxy::endpoints::{Endpoints, Location};
use directory::{Directory, DnsQuery, NameServers};
use known::{Known, NameEvent, Outcome, ResolvedAddress};

/// Resolves names until it is dropped.
pub(crate) struct Resolver {
    /// Dropping the sender ends the thread.
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Resolver {
    /// Resolves all names of `upstreams` and assigns the addresses to `all_endpoints`. Returns when each name has had
    /// its first outcome, or after [`FIRST_RESOLUTION_WAIT`]; names still missing are resolved in the background. `None`
    /// without names.
    ///
    /// # Errors
    /// If the thread or its runtime cannot be created.
    pub(crate) fn start(
        upstreams: &[Upstream],
        all_endpoints: &[Arc<Endpoints>],
    ) -> io::Result<Option<Self>> {
        Self::start_with(NameServers::System, upstreams, all_endpoints)
    }

    fn start_with(
        setting: NameServers,
        upstreams: &[Upstream],
        all_endpoints: &[Arc<Endpoints>],
    ) -> io::Result<Option<Self>> {
        let names = names(upstreams, all_endpoints);
        if names.is_empty() {
            return Ok(None);
        }
        let all: Vec<String> = names.iter().map(Name::to_string).collect();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let (stop, stopped) = oneshot::channel();
        let (first, firsts) = mpsc::channel();
        let thread = thread::Builder::new()
            .name("names".into())
            .spawn(move || run(&runtime, setting, names, &first, stopped))?;
        let resolver = Self {
            stop: Some(stop),
            thread: Some(thread),
        };
        for name in without_outcome(&all, &firsts) {
            tracing::warn!("{name} is not resolved yet and down until it is");
        }
        Ok(Some(resolver))
    }
}

impl Drop for Resolver {
    fn drop(&mut self) {
        self.stop.take();
        if let Some(thread) = self.thread.take() {
            // A panic has already been reported.
            let _ = thread.join();
        }
    }
}

/// Resolves a host, blocking for up to `patience`.
///
/// # Errors
/// The reason that it has no address.
pub(crate) fn lookup(host: &str, patience: Duration) -> Result<Vec<IpAddr>, String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| error.to_string())?;
    let question = DnsQuery::Host(host.to_owned());
    let directory = Rc::new(Directory::new(NameServers::System));
    let asking = async { tokio::time::timeout(patience, directory.ask(&question)).await };
    let outcome = LocalSet::new().block_on(&runtime, asking);
    match outcome {
        Ok(Outcome::Answered { targets, .. }) => {
            let addresses = targets.into_iter().filter_map(|target| target.addresses);
            Ok(addresses.flatten().collect())
        }
        Ok(Outcome::Negative(why) | Outcome::Failed(why)) => Err(format!("{host}: {why}")),
        Err(_) => Err(format!("{host} is not resolved within {patience:?}")),
    }
}

/// Waits for first outcomes, received as indexes, up to the time limit; returns the entries of `all` without one.
fn without_outcome<'a>(all: &'a [String], firsts: &mpsc::Receiver<usize>) -> Vec<&'a String> {
    let deadline = clock::now() + FIRST_RESOLUTION_WAIT;
    let mut missing: Vec<Option<&String>> = all.iter().map(Some).collect();
    while missing.iter().any(Option::is_some) {
        match firsts.recv_timeout(deadline - clock::now()) {
            Ok(index) => missing[index] = None,
            Err(_) => break,
        }
    }
    missing.into_iter().flatten().collect()
}

/// A name, and the servers in the configuration that use it.
struct Name {
    question: DnsQuery,
    /// The smallest `resolve_retry` of its groups.
    retry: Duration,
    entries: Vec<Entry>,
}

struct Entry {
    endpoints: Arc<Endpoints>,
    server: usize,
    group: String,
    address: ServerAddress,
    weight: u32,
    backup: bool,
}

/// All distinct names of `upstreams`.
fn names(upstreams: &[Upstream], all_endpoints: &[Arc<Endpoints>]) -> Vec<Name> {
    let mut names: Vec<Name> = Vec::new();
    for (upstream, endpoints) in upstreams.iter().zip(all_endpoints) {
        for (index, server) in upstream.servers.iter().enumerate() {
            let Some(question) = DnsQuery::of(&server.address) else {
                continue;
            };
            let entry = Entry {
                endpoints: Arc::clone(endpoints),
                server: index,
                group: upstream.name.clone(),
                address: server.address.clone(),
                weight: server.weight,
                backup: server.backup,
            };
            match names.iter_mut().find(|name| name.question == question) {
                Some(name) => {
                    name.retry = name.retry.min(upstream.resolve_retry);
                    name.entries.push(entry);
                }
                None => names.push(Name {
                    question,
                    retry: upstream.resolve_retry,
                    entries: vec![entry],
                }),
            }
        }
    }
    names
}

/// Resolves all names until the sender of `stopped` is dropped.
fn run(
    runtime: &Runtime,
    setting: NameServers,
    names: Vec<Name>,
    first: &mpsc::Sender<usize>,
    stopped: oneshot::Receiver<()>,
) {
    let tasks = LocalSet::new();
    let directory = Rc::new(Directory::new(setting));
    for (index, name) in names.into_iter().enumerate() {
        let first = first.clone();
        let had_first = move || {
            // The receiver is gone when the initial wait is over; ignore the error.
            let _ = first.send(index);
        };
        tasks.spawn_local(resolve_periodically(name, Rc::clone(&directory), had_first));
    }
    // Nothing is ever sent; this returns when the sender is dropped.
    let _ = runtime.block_on(tasks.run_until(stopped));
}

/// Resolves a name again and again.
async fn resolve_periodically(name: Name, directory: Rc<Directory>, had_first: impl FnOnce()) {
    let mut known = Known::new(name.retry);
    let mut had_first = Some(had_first);
    let mut left_out = 0;
    let mut was_answered = false;
    loop {
        let outcome = directory.ask(&name.question).await;
        was_answered |= !matches!(outcome, Outcome::Failed(_));
        let step = known.process_outcome(outcome);
        // Servers present from the start have no slow start.
        let since = match had_first {
            Some(_) => Instant::default(),
            None => clock::now(),
        };
        let left_out_before = left_out;
        // Until the first answer, addresses found under the previous configuration stay.
        if was_answered {
            left_out = name.assign(known.found(), since);
        }
        if let Some(news) = step.news {
            name.tell(&news, known.found());
        }
        if left_out_before == 0 && left_out > 0 {
            tracing::warn!(
                "{name} has {} addresses, more than addresses_max: {left_out} of them get no requests; raise addresses_max",
                known.found().len()
            );
        }
        if let Some(had_first) = had_first.take() {
            had_first();
        }
        tokio::time::sleep(step.pause).await;
    }
}

impl Name {
    /// Assigns addresses to the endpoints of the name's servers. Returns the number of addresses without an endpoint.
    fn assign(&self, found: &[ResolvedAddress], since: Instant) -> usize {
        let assigned = self.entries.iter().map(|entry| {
            let found: Vec<Location> = found.iter().map(|found| entry.location(found)).collect();
            let (_, endpoints) = entry.endpoints.of_server(entry.server);
            let name = entry.address.to_string();
            report_unassigned((&entry.group, &name), endpoints, &found);
            entry.endpoints.assign(entry.server, &found, since)
        });
        assigned.max().unwrap_or(0)
    }

    fn tell(&self, news: &NameEvent, found: &[ResolvedAddress]) {
        match news {
            NameEvent::Addresses => {
                tracing::info!(
                    event = "name_resolved",
                    "{self} resolves to {}",
                    list(found)
                );
            }
            NameEvent::Back => tracing::info!(event = "name_resolved", "{self} resolves again"),
            NameEvent::Failing(why) if found.is_empty() => {
                tracing::warn!(
                    event = "name_failing",
                    "cannot resolve {self}: {why}; it is down until that changes"
                );
            }
            NameEvent::Failing(why) => {
                let found = list(found);
                tracing::warn!(
                    event = "name_failing",
                    "cannot resolve {self}: {why}; it keeps its addresses, {found}"
                );
            }
            NameEvent::Gone(why) => {
                tracing::warn!(
                    event = "name_gone",
                    "{self} no longer resolves and is down: {why}"
                );
            }
        }
    }
}

/// The servers that use the name, with their groups.
impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, Entry { address, group, .. }) in self.entries.iter().enumerate() {
            let separator = if index > 0 { ", " } else { "" };
            write!(f, "{separator}{address}")?;
            // An implicit group has the name of its server.
            if *group != address.to_string() {
                write!(f, " of {group}")?;
            }
        }
        Ok(())
    }
}

fn list(found: &[ResolvedAddress]) -> String {
    let addresses = found.iter().map(|found| match found.port {
        Some(port) => SocketAddr::new(found.ip, port).to_string(),
        None => found.ip.to_string(),
    });
    let shown: Vec<String> = addresses.take(ADDRESSES_SHOWN_MAX).collect();
    shown.join(", ")
}

impl Entry {
    fn location(&self, found: &ResolvedAddress) -> Location {
        let port = match &self.address {
            ServerAddress::Name { port, .. } => *port,
            ServerAddress::Ip(_) | ServerAddress::Srv(_) | ServerAddress::Unix(_) => 0,
        };
        Location {
            address: Address::Tcp(SocketAddr::new(found.ip, found.port.unwrap_or(port))),
            weight: found.weight.saturating_mul(self.weight).min(WEIGHT_MAX),
            backup: found.backup || self.backup,
        }
    }
}
