//! Addresses of servers that are written as names: asked for at the start, and again whenever what was found has had its
//! time, on a thread of their own. What is found goes to the rosters; no request ever waits for a name.
//!
//! `known.rs` decides what an answer changes.

mod known;
#[cfg(test)]
mod tests;

use std::cell::RefCell;
use std::fmt;
use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::rc::Rc;
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, SystemTime};

use hickory_resolver::config::{
    LookupIpStrategy, NameServerConfig, ResolverConfig, ResolverOpts, ServerOrderingStrategy,
};
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::net::{DnsError, NetError};
use hickory_resolver::proto::rr::{RData, Record};
use hickory_resolver::{TokioResolver, system_conf};
use onrush_config::limits::WEIGHT_MAX;
use onrush_config::plan::{ServerAddress, Upstream};
use onrush_engine::{Address, Instant, clock};
use tokio::runtime::Runtime;
use tokio::sync::{Semaphore, oneshot};
use tokio::task::{LocalSet, spawn_local};

use crate::limits::{
    ADDRESSES_PER_NAME, DESCRIPTORS_OF_RESOLVER, FIRST_ANSWERS_WAIT, NAME_SERVER_TIMEOUT,
    NAME_SERVERS_MAX, RESOLVING_MAX,
};
use crate::proxy::roster::{At, Roster};
use known::{Found, Known, News, Outcome, Service, Target};

/// Resolves names until it is dropped.
pub(crate) struct Resolver {
    /// Ends the thread by being dropped.
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Resolver {
    /// Asks for all names of `upstreams` and gives what is found to `rosters`. Returns when each has had its first
    /// outcome, or a bounded time is over; what is missing then is asked for in the background. None without names.
    ///
    /// # Errors
    /// When the system refuses the thread or what it needs.
    pub(crate) fn start(
        upstreams: &[Upstream],
        rosters: &[Arc<Roster>],
    ) -> io::Result<Option<Self>> {
        Self::start_with(Setting::System, upstreams, rosters)
    }

    fn start_with(
        setting: Setting,
        upstreams: &[Upstream],
        rosters: &[Arc<Roster>],
    ) -> io::Result<Option<Self>> {
        let names = names(upstreams, rosters);
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
            // A panic there has been reported as one.
            let _ = thread.join();
        }
    }
}

/// Descriptors that resolving the names of `upstreams` takes.
pub(crate) fn descriptors_needed(upstreams: &[Upstream]) -> u64 {
    let mut servers = upstreams.iter().flat_map(|upstream| &upstream.servers);
    if !servers.any(|server| Question::of(&server.address).is_some()) {
        return 0;
    }
    DESCRIPTORS_OF_RESOLVER
}

/// Waits for first outcomes, by their indexes, as long as that is worth it; returns those of `all` that had none.
fn without_outcome<'a>(all: &'a [String], firsts: &mpsc::Receiver<usize>) -> Vec<&'a String> {
    let deadline = clock::now() + FIRST_ANSWERS_WAIT;
    let mut missing: Vec<Option<&String>> = all.iter().map(Some).collect();
    while missing.iter().any(Option::is_some) {
        match firsts.recv_timeout(deadline - clock::now()) {
            Ok(index) => missing[index] = None,
            Err(_) => break,
        }
    }
    missing.into_iter().flatten().collect()
}

/// A name, and the servers of the configuration that are written with it.
struct Name {
    question: Question,
    entries: Vec<Entry>,
}

/// What is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Question {
    /// Addresses of a host.
    Host(String),
    /// SRV records, and addresses of the hosts in them.
    Services(String),
}

/// A server of the configuration.
struct Entry {
    roster: Arc<Roster>,
    server: usize,
    group: String,
    address: ServerAddress,
    weight: u32,
    backup: bool,
}

impl Question {
    /// What has to be asked to know where a server is; none for one whose address says it.
    fn of(address: &ServerAddress) -> Option<Self> {
        match address {
            ServerAddress::Name { host, .. } => Some(Self::Host(host.clone())),
            ServerAddress::Srv(name) => Some(Self::Services(name.clone())),
            ServerAddress::Ip(_) | ServerAddress::Unix(_) => None,
        }
    }
}

/// All names of `upstreams`, each once.
fn names(upstreams: &[Upstream], rosters: &[Arc<Roster>]) -> Vec<Name> {
    let mut names: Vec<Name> = Vec::new();
    for (upstream, roster) in upstreams.iter().zip(rosters) {
        for (index, server) in upstream.servers.iter().enumerate() {
            let Some(question) = Question::of(&server.address) else {
                continue;
            };
            let entry = Entry {
                roster: Arc::clone(roster),
                server: index,
                group: upstream.name.clone(),
                address: server.address.clone(),
                weight: server.weight,
                backup: server.backup,
            };
            match names.iter_mut().find(|name| name.question == question) {
                Some(name) => name.entries.push(entry),
                None => names.push(Name {
                    question,
                    entries: vec![entry],
                }),
            }
        }
    }
    names
}

/// Follows all names until `stopped` hears that its sender has gone.
fn run(
    runtime: &Runtime,
    setting: Setting,
    names: Vec<Name>,
    first: &mpsc::Sender<usize>,
    stopped: oneshot::Receiver<()>,
) {
    let tasks = LocalSet::new();
    let directory = Rc::new(Directory::new(setting));
    for (index, name) in names.into_iter().enumerate() {
        let first = first.clone();
        let had_first = move || {
            // Nobody waits any more when the time for that is over.
            let _ = first.send(index);
        };
        tasks.spawn_local(follow(name, Rc::clone(&directory), had_first));
    }
    // Nothing is ever sent.
    let _ = runtime.block_on(tasks.run_until(stopped));
}

/// Asks for a name for ever.
async fn follow(name: Name, directory: Rc<Directory>, had_first: impl FnOnce()) {
    let mut known = Known::default();
    let mut had_first = Some(had_first);
    let mut left_out = 0;
    let mut was_answered = false;
    loop {
        let outcome = directory.ask(&name.question).await;
        was_answered |= !matches!(outcome, Outcome::Failed(_));
        let step = known.learn(outcome);
        // Servers that are there from the start have no slow one.
        let since = match had_first {
            Some(_) => Instant::default(),
            None => clock::now(),
        };
        let left_out_before = left_out;
        // Before there is an answer, what the configuration before has found stays.
        if was_answered {
            left_out = name.place(known.found(), since);
        }
        if let Some(news) = step.news {
            name.tell(&news, known.found());
        }
        if left_out_before == 0 && left_out > 0 {
            tracing::warn!(
                "{name} has {} addresses; {ADDRESSES_PER_NAME} of them are used",
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
    /// Gives what was found to the seats of its servers; returns how many addresses found none.
    fn place(&self, found: &[Found], since: Instant) -> usize {
        let placed = self.entries.iter().map(|entry| {
            let found: Vec<At> = found.iter().map(|found| entry.at(found)).collect();
            entry.roster.place(entry.server, &found, since)
        });
        placed.max().unwrap_or(0)
    }

    fn tell(&self, news: &News, found: &[Found]) {
        match news {
            News::Addresses => tracing::info!("{self} is {}", list(found)),
            News::Back => tracing::info!("{self} is resolved again"),
            News::Failing(why) if found.is_empty() => {
                tracing::warn!("cannot resolve {self}: {why}; it is down until that changes");
            }
            News::Failing(why) => {
                tracing::warn!("cannot resolve {self}: {why}; it stays {}", list(found));
            }
            News::Gone(why) => tracing::warn!("{self} has gone and is down: {why}"),
        }
    }
}

/// As people know it: its servers with their groups.
impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, Entry { address, group, .. }) in self.entries.iter().enumerate() {
            let separator = if index > 0 { ", " } else { "" };
            write!(f, "{separator}{address}")?;
            // A group without a name of its own has that of its server.
            if *group != address.to_string() {
                write!(f, " of {group}")?;
            }
        }
        Ok(())
    }
}

fn list(found: &[Found]) -> String {
    let addresses = found.iter().map(|found| match found.port {
        Some(port) => SocketAddr::new(found.ip, port).to_string(),
        None => found.ip.to_string(),
    });
    let shown: Vec<String> = addresses.take(ADDRESSES_PER_NAME).collect();
    shown.join(", ")
}

impl Entry {
    fn at(&self, found: &Found) -> At {
        let port = match &self.address {
            ServerAddress::Name { port, .. } => *port,
            ServerAddress::Ip(_) | ServerAddress::Srv(_) | ServerAddress::Unix(_) => 0,
        };
        At {
            address: Address::Tcp(SocketAddr::new(found.ip, found.port.unwrap_or(port))),
            weight: found.weight.saturating_mul(self.weight).min(WEIGHT_MAX),
            backup: found.backup || self.backup,
        }
    }
}

/// Who is asked.
enum Setting {
    /// Whom resolv.conf(5) says, and hosts(5), as they are at the time.
    System,
    /// This name server and nobody else.
    #[cfg(test)]
    NameServer(NameServerConfig),
}

/// Whoever knows addresses of names.
struct Directory {
    setting: Setting,
    /// How to ask, and the files that say so as they were read.
    asking: RefCell<(TokioResolver, Files)>,
    /// Bounds the sockets in use.
    turns: Semaphore,
}

/// When the files of the system were changed last.
type Files = [Option<SystemTime>; 2];

fn files() -> Files {
    ["/etc/resolv.conf", "/etc/hosts"].map(|path| fs::metadata(path).ok()?.modified().ok())
}

/// Addresses with the time for which they may be used, or what became of the question instead.
type Addresses = Result<(Vec<IpAddr>, Duration), Outcome>;

impl Directory {
    fn new(setting: Setting) -> Self {
        let resolver = resolver(&setting);
        Self {
            setting,
            asking: RefCell::new((resolver, files())),
            turns: Semaphore::new(RESOLVING_MAX),
        }
    }

    /// How to ask by what the system's files say now.
    fn resolver(&self) -> TokioResolver {
        let mut asking = self.asking.borrow_mut();
        let files = files();
        if asking.1 != files {
            *asking = (resolver(&self.setting), files);
        }
        asking.0.clone()
    }

    async fn ask(self: &Rc<Self>, question: &Question) -> Outcome {
        let outcome = match question {
            Question::Host(host) => self.host(host).await,
            Question::Services(name) => self.services(name).await,
        };
        outcome.unwrap_or_else(|outcome| outcome)
    }

    async fn host(&self, host: &str) -> Result<Outcome, Outcome> {
        let (addresses, ttl) = self.addresses(host).await?;
        let target = Target {
            host: host.to_owned(),
            service: None,
            addresses: Some(addresses),
        };
        Ok(Outcome::Answered {
            targets: vec![target],
            ttl,
        })
    }

    async fn services(self: &Rc<Self>, name: &str) -> Result<Outcome, Outcome> {
        let turn = self.turns.acquire().await;
        let answer = self.resolver().srv_lookup(name).await;
        drop(turn);
        let answer = answer.map_err(|error| outcome_of(&error, "SRV record"))?;
        let mut ttl = ttl(answer.answers());
        let mut asked = Vec::new();
        for (host, service) in services(answer.answers()) {
            let directory = Rc::clone(self);
            let answer = spawn_local({
                let host = host.clone();
                async move { directory.addresses(&host).await }
            });
            asked.push((host, service, answer));
        }
        if asked.is_empty() {
            return Err(Outcome::Denied("the service is not offered".into()));
        }
        let mut targets = Vec::new();
        for (host, service, answer) in asked {
            let addresses = match answer.await {
                Ok(Ok((addresses, ttl_of_host))) => {
                    ttl = ttl.min(ttl_of_host);
                    Some(addresses)
                }
                Ok(Err(Outcome::Denied(_))) => Some(Vec::new()),
                // The task cannot have been cancelled, and a panic ends the process.
                Ok(Err(_)) | Err(_) => None,
            };
            targets.push(Target {
                host,
                service: Some(service),
                addresses,
            });
        }
        Ok(Outcome::Answered { targets, ttl })
    }

    async fn addresses(&self, host: &str) -> Addresses {
        let _turn = self.turns.acquire().await;
        match self.resolver().lookup_ip(host).await {
            Ok(answer) => {
                let addresses = reachable(answer.iter().collect(), has_route);
                Ok((addresses, ttl(answer.as_lookup().answers())))
            }
            Err(error) => Err(outcome_of(&error, "address")),
        }
    }
}

/// The services of SRV records, as many as can be used. A target of "." says that there is none (RFC 2782).
fn services(records: &[Record]) -> Vec<(String, Service)> {
    let mut services: Vec<(String, Service)> = records
        .iter()
        .filter_map(|record| match &record.data {
            RData::SRV(srv) if !srv.target.is_root() => Some((
                srv.target.to_ascii(),
                Service {
                    port: srv.port,
                    priority: srv.priority,
                    weight: srv.weight,
                },
            )),
            _ => None,
        })
        .collect();
    services.sort_by(|(_, one), (_, other)| {
        (one.priority, other.weight).cmp(&(other.priority, one.weight))
    });
    services.truncate(ADDRESSES_PER_NAME);
    services
}

/// For how long all of `records` may be used.
fn ttl(records: &[Record]) -> Duration {
    let least = records.iter().map(|record| record.ttl).min();
    Duration::from_secs(least.unwrap_or(0).into())
}

fn outcome_of(error: &NetError, what: &str) -> Outcome {
    match error {
        NetError::Dns(DnsError::NoRecordsFound(_)) if error.is_nx_domain() => {
            Outcome::Denied("there is no such name".into())
        }
        NetError::Dns(DnsError::NoRecordsFound(_)) => {
            Outcome::Denied(format!("the name has no {what}"))
        }
        NetError::Dns(DnsError::ResponseCode(code)) => {
            Outcome::Failed(format!("the name server answers \"{code}\""))
        }
        NetError::Timeout => Outcome::Failed("no name server answers in time".into()),
        error => Outcome::Failed(error.to_string()),
    }
}

/// Leaves out addresses that this machine has no route to, as those of IPv6 where there is only IPv4: each would be a
/// server that fails. If none would be left all stay, and their failures say why.
fn reachable(addresses: Vec<IpAddr>, has_route: impl Fn(IpAddr) -> bool) -> Vec<IpAddr> {
    let reachable: Vec<IpAddr> = addresses
        .iter()
        .copied()
        .filter(|ip| has_route(*ip))
        .collect();
    if reachable.is_empty() {
        return addresses;
    }
    reachable
}

/// Whether the kernel knows a way; nothing is sent.
fn has_route(ip: IpAddr) -> bool {
    let any: IpAddr = match ip {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    UdpSocket::bind((any, 0))
        .and_then(|socket| socket.connect((ip, 53)))
        .is_ok()
}

fn resolver(setting: &Setting) -> TokioResolver {
    let (config, mut options) = match setting {
        Setting::System => system(),
        #[cfg(test)]
        Setting::NameServer(server) => (
            ResolverConfig::from_parts(None, vec![], vec![server.clone()]),
            ResolverOpts::default(),
        ),
    };
    options.ip_strategy = LookupIpStrategy::Ipv4AndIpv6;
    // The rosters are the cache.
    options.cache_size = 0;
    options.timeout = options.timeout.min(NAME_SERVER_TIMEOUT);
    options.attempts = 1;
    // All name servers at once, so that one that is down costs no time.
    options.num_concurrent_reqs = NAME_SERVERS_MAX;
    options.server_ordering_strategy = ServerOrderingStrategy::UserProvidedOrder;
    let mut builder = TokioResolver::builder_with_config(config, TokioRuntimeProvider::default());
    *builder.options_mut() = options;
    builder
        .build()
        .expect("only what is left out of it (TLS) can fail")
}

/// What resolv.conf(5) says; without it, the name server of this machine, as it is for every program.
fn system() -> (ResolverConfig, ResolverOpts) {
    let (config, options) = system_conf::read_system_conf().unwrap_or_else(|error| {
        tracing::warn!("/etc/resolv.conf: {error}; asking the name server of this machine");
        let servers = vec![NameServerConfig::udp_and_tcp(Ipv4Addr::LOCALHOST.into())];
        (
            ResolverConfig::from_parts(None, vec![], servers),
            ResolverOpts::default(),
        )
    });
    let search = config.search().to_vec();
    // The domain counts only without a search list.
    let domain = config.domain().filter(|_| search.is_empty()).cloned();
    let mut servers = config.name_servers().to_vec();
    servers.truncate(NAME_SERVERS_MAX);
    for server in &mut servers {
        // They may know different names, as inside and outside of a company: one that knows none does not decide.
        server.trust_negative_responses = false;
    }
    (ResolverConfig::from_parts(domain, search, servers), options)
}
