//! How connections reach their server: the address to connect to, the source address and port, and the header before
//! the first request. Sources and ports are chosen by connection number, so that the shares of a distributed run divide
//! them exactly.

mod source;

use std::cell::Cell;
use std::collections::BTreeSet;
use std::fs;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::ops::RangeInclusive;
use std::os::unix::ffi::OsStrExt;
use std::rc::Rc;

use onrush_engine::{Address, Core, Datagram, Instant, Source, Stream};
use onrush_http::proxy_protocol::{Origin, write_v1, write_v2};
use onrush_measure::units;
use onrush_tls::{ClientSetup, Connector};

pub use source::Sources;
use source::source_of;
pub(crate) use source::unspecified;

use crate::limits::{PROXY_HEADER_BYTES_MAX, SOURCES_CHECKED_MAX};
use crate::pace::arrivals::Share;
use crate::pace::error::Error;
use crate::pace::target::lookup::Lookup;
use crate::pace::target::{Target, TargetAddress};
use crate::plan::{Plan, Shard};

/// Connection settings: addresses, PROXY protocol and TLS.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ConnectOptions {
    /// Address to connect to instead of the URL's. `Host` and the TLS server name stay the URL's.
    pub connect_to: Option<TargetAddress>,
    /// Local addresses of the connections, round robin. Empty leaves the choice to the kernel.
    pub sources: Sources,
    /// Local ports of the connections. Each of several generators uses its share.
    pub source_ports: Option<RangeInclusive<u16>>,
    /// Version of the PROXY protocol header at the start of each connection, if one is sent. It contains the
    /// connection's own addresses.
    pub proxy_protocol: Option<ProxyVersion>,
    /// TLS settings of `https://` targets.
    pub tls: ClientSetup,
}

/// Version of the PROXY protocol.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ProxyVersion {
    /// One line of text.
    V1,
    /// A binary header.
    V2,
}

impl ProxyVersion {
    /// Returns its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            ProxyVersion::V1 => "v1",
            ProxyVersion::V2 => "v2",
        }
    }
}

impl ConnectOptions {
    pub(crate) fn check(&self, target: &Target) -> Result<(), String> {
        let place = self.place(target);
        let comes_from = !self.sources.is_empty() || self.source_ports.is_some();
        if let (true, TargetAddress::Unix(path)) = (comes_from, place) {
            return Err(format!(
                "connections to the Unix socket {} have no source address: leave out --source and --source-ports",
                path.display()
            ));
        }
        match &self.source_ports {
            Some(ports) if ports.is_empty() || *ports.start() == 0 => Err(format!(
                "source ports {} to {} are not a range: expected a range such as 40000-60000",
                ports.start(),
                ports.end()
            )),
            _ => Ok(()),
        }
    }

    fn place<'a>(&'a self, target: &'a Target) -> &'a TargetAddress {
        self.connect_to.as_ref().unwrap_or(&target.place)
    }

    /// Resolves the address to connect to. The source addresses must be able to reach it.
    ///
    /// # Errors
    /// If there is none.
    pub(crate) fn resolve(&self, target: &Target) -> Result<(Address, Option<Lookup>), Error> {
        let place = self.place(target);
        let (address, lookup) = place.resolve(|address| self.sources.supports(address))?;
        let address = address.ok_or_else(|| self.without_address(place))?;
        Ok((address, lookup))
    }

    /// Resolves the addresses for datagrams. The source addresses must be able to reach at least one.
    ///
    /// # Errors
    /// If there is none.
    pub(crate) fn resolve_datagrams(
        &self,
        target: &Target,
    ) -> Result<(Vec<SocketAddr>, Option<Lookup>), Error> {
        let place = self.place(target);
        let (fit, lookup) = place.resolve_all(|address| self.sources.supports(address))?;
        match fit.is_empty() {
            false => Ok((fit, lookup)),
            true => Err(self.without_address(place)),
        }
    }

    /// Returns the local address of the first datagram of generator `shard` to `target`.
    pub(crate) fn source_of_datagrams(&self, target: &SocketAddr, shard: Shard) -> SocketAddr {
        let sources = self.sources.same_family(target);
        source_of(sources.nth(shard.index), target)
    }

    fn without_address(&self, place: &TargetAddress) -> Error {
        Error::Invalid(format!(
            "{place} has no address of the address family of --source {}: give source addresses of the other family, \
             IPv4 or IPv6",
            self.sources
        ))
    }

    pub(crate) fn connector(&self, target: &Target) -> Result<Option<Connector>, String> {
        if !target.scheme.has_tls() {
            return Ok(None);
        }
        match Connector::new(self.tls.clone()) {
            Ok((connector, _)) => Ok(Some(connector)),
            Err(wrong) => {
                let wrong: Vec<String> = wrong.iter().map(ToString::to_string).collect();
                Err(wrong.join("; "))
            }
        }
    }

    /// Returns the source ports of generator `shard` of `shards`; `None` if there are fewer ports than generators.
    fn ports_of(&self, shard: u64, shards: u64) -> Option<RangeInclusive<u16>> {
        let ports = self.source_ports.as_ref()?;
        let (first, count) = (u64::from(*ports.start()), ports.len() as u64);
        let at = |shard: u64| first + (u128::from(count * shard) / u128::from(shards)) as u64;
        let last = at(shard + 1).checked_sub(1)?;
        // The result is in the range of the u16 ports.
        Some(at(shard) as u16..=last as u16)
    }
}

/// The kernel's range of ephemeral ports.
const PORT_RANGE: &str = "/proc/sys/net/ipv4/ip_local_port_range";

/// Refuses options that would fail only during the run: source addresses of other machines, and too few ports.
///
/// # Errors
/// [`Error::Invalid`] with what this machine lacks and how to add it.
pub(crate) fn check_host(plan: &Plan, address: &Address) -> Result<(), Error> {
    let Address::Tcp(target) = address else {
        return Ok(());
    };
    let sources = plan.options.reach.sources.same_family(target);
    let Shard { index, count } = plan.options.shard;
    let numbers = (index..).step_by(count as usize);
    let numbers = numbers.take(sources.count().min(SOURCES_CHECKED_MAX) as usize);
    let addresses: BTreeSet<IpAddr> = numbers.filter_map(|number| sources.nth(number)).collect();
    for address in &addresses {
        if let Err(error) = UdpSocket::bind(SocketAddr::new(*address, 0)) {
            return Err(Error::Invalid(format!(
                "cannot use --source {address} ({error}): add it to this machine, for example by ip address add \
                 {address} dev lo, or by ip route add local with its network; or leave it out"
            )));
        }
    }
    let Some(allowed) = local_ports() else {
        // Without /proc the ports cannot be checked in advance.
        return Ok(());
    };
    let ports = plan.options.reach.ports_of(index, count);
    let connections = plan.connections() as u64;
    check_ports(ports, &allowed, connections, addresses.len() as u64, target)
        .map_err(Error::Invalid)
}

fn parse_range(text: String) -> Option<RangeInclusive<u16>> {
    let mut numbers = text.split_ascii_whitespace().map(str::parse);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(low)), Some(Ok(high))) => Some(low..=high),
        _ => None,
    }
}

/// Returns the kernel's range of ephemeral ports; `None` if it cannot be read.
pub(crate) fn local_ports() -> Option<RangeInclusive<u16>> {
    fs::read_to_string(PORT_RANGE).ok().and_then(parse_range)
}

fn check_ports(
    ports: Option<RangeInclusive<u16>>,
    allowed: &RangeInclusive<u16>,
    connections: u64,
    addresses: u64,
    target: &SocketAddr,
) -> Result<(), String> {
    let ports = ports.unwrap_or_else(|| allowed.clone());
    if !allowed.contains(ports.start()) || !allowed.contains(ports.end()) {
        return Err(format!(
            "--source-ports: this machine uses the local ports {}-{}, which do not include all of {}-{}: widen \
             net.ipv4.ip_local_port_range (sysctl), or stay within it",
            allowed.start(),
            allowed.end(),
            ports.start(),
            ports.end()
        ));
    }
    let each = ports.len() as u64;
    let there_are = each * addresses.max(1);
    if connections <= there_are {
        return Ok(());
    }
    Err(format!(
        "{} connections to {target} need as many local ports, but there are {} ({} on each of {}): use --source with \
         {} addresses of this machine, or widen net.ipv4.ip_local_port_range",
        units::count(connections),
        units::count(there_are),
        units::count(each),
        match addresses {
            0 | 1 => "one address".to_owned(),
            more => format!("{more} addresses"),
        },
        connections.div_ceil(each),
    ))
}

/// Address, sources and ports of the connections of one core.
#[derive(Debug)]
pub(crate) struct ConnectionSource {
    address: Address,
    sources: Sources,
    ports: Option<RangeInclusive<u16>>,
    proxy_protocol: Option<ProxyVersion>,
    /// Share of the run's connection numbers. Replacement connections get the numbers after the first ones.
    share: Share,
    /// Connections started so far.
    made: Cell<u64>,
}

impl ConnectionSource {
    pub(crate) fn new(plan: &Plan, core: usize, address: Address) -> ConnectionSource {
        let reach = &plan.options.reach;
        let shard = plan.options.shard;
        ConnectionSource {
            sources: match &address {
                Address::Tcp(address) => reach.sources.same_family(address),
                Address::Unix(_) => Sources::default(),
            },
            address,
            ports: reach.ports_of(shard.index, shard.count),
            proxy_protocol: reach.proxy_protocol,
            share: plan.share_of(core),
            made: Cell::new(0),
        }
    }

    /// Returns the local address and ports of the next connection.
    fn source(&self) -> Source {
        let number = self.share.first + self.made.get() * self.share.stride;
        self.made.set(self.made.get() + 1);
        Source {
            address: self.sources.nth(number),
            ports: self.ports.clone(),
        }
    }

    /// Opens a datagram socket that is connected to the target.
    ///
    /// # Errors
    /// As [`Datagram::bind`] and [`Datagram::connect`].
    pub(crate) fn open_datagrams(&self, core: &Core) -> Result<Datagram, onrush_engine::Error> {
        let Address::Tcp(target) = self.address else {
            unreachable!("datagram plans have no Unix sockets");
        };
        let socket = Datagram::bind(core, source_of(self.source().address, &target))?;
        socket.connect(target)?;
        Ok(socket)
    }

    /// Connects, and queues the PROXY protocol header: it is sent with the first request.
    ///
    /// # Errors
    /// As [`Stream::connect_from`].
    pub(crate) async fn connect(
        &self,
        core: &Core,
        deadline: Instant,
    ) -> Result<Stream, onrush_engine::Error> {
        let source = self.source();
        let stream = Stream::connect_from(core, &source, &self.address, Some(deadline)).await?;
        if let Some(version) = self.proxy_protocol {
            stream.queue(proxy_header(version, &origin(&stream, &self.address)));
        }
        Ok(stream)
    }
}

/// Addresses for the PROXY protocol header: the connection's own.
fn origin<'a>(stream: &Stream, address: &'a Address) -> Origin<'a> {
    match (stream.local(), stream.peer(), address) {
        (.., Address::Unix(path)) => Origin::Unix {
            source: b"",
            destination: path.as_os_str().as_bytes(),
        },
        (Some(source), Some(destination), _) => Origin::Ip {
            source,
            destination,
        },
        // The connection has failed; the next send reports the error.
        _ => Origin::Unknown,
    }
}

fn proxy_header(version: ProxyVersion, origin: &Origin<'_>) -> Rc<[u8]> {
    let mut room = [0; PROXY_HEADER_BYTES_MAX];
    let bytes = match version {
        ProxyVersion::V1 => write_v1(origin, &mut room),
        ProxyVersion::V2 => write_v2(origin, None, &mut room),
    };
    room[..bytes.expect("the buffer fits the longest address")].into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ports(of: (u16, u16), connections: u64, addresses: u64) -> Result<(), String> {
        let target = ([127, 0, 0, 1], 80).into();
        let ports = Some(of.0..=of.1);
        check_ports(ports, &(32768..=60999), connections, addresses, &target)
    }

    #[test]
    fn connections_are_limited_by_ports_of_all_addresses() {
        assert_eq!(ports((40000, 49999), 10_000, 0), Ok(()));
        assert_eq!(ports((40000, 49999), 30_000, 3), Ok(()));
        let refused = ports((40000, 49999), 30_001, 3).unwrap_err();
        assert!(refused.contains("30,001 connections"), "{refused}");
        assert!(refused.contains("10,000 on each of 3"), "{refused}");
        assert!(refused.contains("with 4 addresses"), "{refused}");
    }

    #[test]
    fn ports_outside_ephemeral_range_are_refused() {
        for range in [(1024, 40000), (40000, 61000), (1, 2)] {
            let refused = ports(range, 1, 0).unwrap_err();
            assert!(
                refused.contains("uses the local ports 32768-60999"),
                "{refused}"
            );
        }
    }

    #[test]
    fn shards_divide_all_ports() {
        for (range, shards) in [(40000..=40009, 3), (1..=65535, 7), (5..=5, 1)] {
            let reach = ConnectOptions {
                source_ports: Some(range.clone()),
                ..ConnectOptions::default()
            };
            let parts = (0..shards).map(|shard| reach.ports_of(shard, shards).unwrap());
            let all: Vec<u16> = parts.flatten().collect();
            assert_eq!(all, range.collect::<Vec<_>>());
        }
    }

    #[test]
    fn source_addresses_are_refused_for_unix_socket() {
        let target = Target::parse("unix:/run/a.sock").unwrap();
        let mut reach = ConnectOptions {
            sources: Sources::parse("127.0.0.2").unwrap(),
            ..ConnectOptions::default()
        };
        let refused = reach.check(&target).unwrap_err();
        assert!(refused.contains("/run/a.sock"), "{refused}");
        reach.connect_to = Some(TargetAddress::Tcp("127.0.0.1".to_owned(), 80));
        assert_eq!(reach.check(&target), Ok(()));
    }

    #[test]
    fn unix_socket_proxy_header_has_path() {
        let origin = Origin::Unix {
            source: b"",
            destination: b"/run/a.sock",
        };
        assert_eq!(
            &*proxy_header(ProxyVersion::V1, &origin),
            b"PROXY UNKNOWN\r\n"
        );
        assert_eq!(proxy_header(ProxyVersion::V2, &origin).len(), 16 + 2 * 108);
    }
}
