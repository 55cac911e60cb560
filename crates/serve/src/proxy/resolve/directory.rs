//! DNS queries with the settings of the system (resolv.conf(5), hosts(5)).

use std::cell::RefCell;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use std::rc::Rc;
use std::time::{Duration, SystemTime};

use hickory_resolver::config::{
    LookupIpStrategy, NameServerConfig, ResolverConfig, ResolverOpts, ServerOrderingStrategy,
};
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::net::{DnsError, NetError};
use hickory_resolver::proto::rr::{RData, Record};
use hickory_resolver::{TokioResolver, system_conf};
use onrush_config::limits::ADDRESSES_MAX_MAX;
use onrush_config::plan::ServerAddress;
use tokio::sync::Semaphore;
use tokio::task::spawn_local;

use super::known::{Outcome, Service, Target};
use crate::limits::{NAME_SERVER_TIMEOUT, NAME_SERVERS_MAX, RESOLVING_MAX};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum DnsQuery {
    Host(String),
    /// SRV records, and the addresses of their hosts.
    Services(String),
}

impl DnsQuery {
    /// The query for a server's address; `None` if the address is already known.
    pub(super) fn of(address: &ServerAddress) -> Option<Self> {
        match address {
            ServerAddress::Name { host, .. } => Some(Self::Host(host.clone())),
            ServerAddress::Srv(name) => Some(Self::Services(name.clone())),
            ServerAddress::Ip(_) | ServerAddress::Unix(_) => None,
        }
    }
}

pub(super) enum NameServers {
    /// The current ones of resolv.conf(5), and hosts(5).
    System,
    /// This name server only.
    #[cfg(test)]
    NameServer(NameServerConfig),
}

/// A DNS client that follows changes of the system's settings.
pub(super) struct Directory {
    setting: NameServers,
    /// The resolver, and the modification times of the files it was built from.
    asking: RefCell<(TokioResolver, Files)>,
    /// Limits the number of sockets in use.
    turns: Semaphore,
}

type Files = [Option<SystemTime>; 2];

fn files() -> Files {
    ["/etc/resolv.conf", "/etc/hosts"].map(|path| fs::metadata(path).ok()?.modified().ok())
}

/// Addresses with their TTL, or the outcome without addresses.
type Addresses = Result<(Vec<IpAddr>, Duration), Outcome>;

impl Directory {
    pub(super) fn new(setting: NameServers) -> Self {
        let resolver = resolver(&setting);
        Self {
            setting,
            asking: RefCell::new((resolver, files())),
            turns: Semaphore::new(RESOLVING_MAX),
        }
    }

    /// The resolver for the current settings files.
    fn resolver(&self) -> TokioResolver {
        let mut asking = self.asking.borrow_mut();
        let files = files();
        if asking.1 != files {
            *asking = (resolver(&self.setting), files);
        }
        asking.0.clone()
    }

    pub(super) async fn ask(self: &Rc<Self>, question: &DnsQuery) -> Outcome {
        let outcome = match question {
            DnsQuery::Host(host) => self.host(host).await,
            DnsQuery::Services(name) => self.services(name).await,
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
            return Err(Outcome::Negative("the service is not offered".into()));
        }
        let mut targets = Vec::new();
        for (host, service, answer) in asked {
            let addresses = match answer.await {
                Ok(Ok((addresses, ttl_of_host))) => {
                    ttl = ttl.min(ttl_of_host);
                    Some(addresses)
                }
                Ok(Err(Outcome::Negative(_))) => Some(Vec::new()),
                // The task is never cancelled, and a panic ends the process.
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

/// The services of SRV records that can be used. A target of "." means not available (RFC 2782).
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
    services.truncate(ADDRESSES_MAX_MAX as usize);
    services
}

/// The smallest TTL of `records`.
fn ttl(records: &[Record]) -> Duration {
    let least = records.iter().map(|record| record.ttl).min();
    Duration::from_secs(least.unwrap_or(0).into())
}

fn outcome_of(error: &NetError, what: &str) -> Outcome {
    match error {
        NetError::Dns(DnsError::NoRecordsFound(_)) if error.is_nx_domain() => {
            Outcome::Negative("the name does not exist".into())
        }
        NetError::Dns(DnsError::NoRecordsFound(_)) => {
            Outcome::Negative(format!("the name has no {what}"))
        }
        NetError::Dns(DnsError::ResponseCode(code)) => {
            Outcome::Failed(format!("the name server responds with \"{code}\""))
        }
        NetError::Timeout => Outcome::Failed("no name server responds in time".into()),
        error => Outcome::Failed(error.to_string()),
    }
}

/// Removes addresses without a route, such as IPv6 addresses on an IPv4-only machine: each would be a server that
/// always fails. If no address would be left, all stay, and the connection errors show the cause.
pub(super) fn reachable(addresses: Vec<IpAddr>, has_route: impl Fn(IpAddr) -> bool) -> Vec<IpAddr> {
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

/// Whether the kernel has a route; nothing is sent.
pub(super) fn has_route(ip: IpAddr) -> bool {
    let any: IpAddr = match ip {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    UdpSocket::bind((any, 0))
        .and_then(|socket| socket.connect((ip, 53)))
        .is_ok()
}

fn resolver(setting: &NameServers) -> TokioResolver {
    let (config, mut options) = match setting {
        NameServers::System => system(),
        #[cfg(test)]
        NameServers::NameServer(server) => (
            ResolverConfig::from_parts(None, vec![], vec![server.clone()]),
            ResolverOpts::default(),
        ),
    };
    options.ip_strategy = LookupIpStrategy::Ipv4AndIpv6;
    // The endpoints are the cache.
    options.cache_size = 0;
    options.timeout = options.timeout.min(NAME_SERVER_TIMEOUT);
    options.attempts = 1;
    // Query all name servers at once, so that an unavailable one causes no delay.
    options.num_concurrent_reqs = NAME_SERVERS_MAX;
    options.server_ordering_strategy = ServerOrderingStrategy::UserProvidedOrder;
    let mut builder = TokioResolver::builder_with_config(config, TokioRuntimeProvider::default());
    *builder.options_mut() = options;
    builder
        .build()
        .expect("only TLS settings can fail, and there are none")
}

/// The settings of resolv.conf(5); without the file, a name server on this machine, as resolv.conf(5) specifies.
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
    // The domain is used only without a search list.
    let domain = config.domain().filter(|_| search.is_empty()).cloned();
    let mut servers = config.name_servers().to_vec();
    servers.truncate(NAME_SERVERS_MAX);
    for server in &mut servers {
        // Name servers may know different names (internal and public DNS), so one negative answer is not final.
        server.trust_negative_responses = false;
    }
    (ResolverConfig::from_parts(domain, search, servers), options)
}
