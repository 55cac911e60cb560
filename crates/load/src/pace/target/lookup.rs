//! Name resolution through the system's resolver, with its duration.

use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs};

use onrush_engine::{Address, clock};
use onrush_measure::units;
use serde::{Deserialize, Serialize};

use super::TargetAddress;
use crate::limits::CONNECT_TIMEOUT;
use crate::pace::error::Error;

/// Resolution of a name.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Lookup {
    /// The name.
    pub name: String,
    /// Number of addresses.
    pub addresses: u64,
    /// Duration of the resolver's call, in microseconds.
    pub duration_us: f64,
}

impl std::fmt::Display for Lookup {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let addresses = units::plural(self.addresses, "address");
        let time = units::nanoseconds(self.duration_us * 1000.0);
        write!(out, "DNS          {}: {addresses} in {time}", self.name)
    }
}

enum Addresses {
    Unix(Address),
    Ip(Vec<SocketAddr>),
}

impl TargetAddress {
    /// Returns the address to connect to among those for which `is_fit` returns true; `None` if there is none. Prefers
    /// the first that accepts a connection, since `localhost` has two addresses and a server may listen on only one.
    ///
    /// # Errors
    /// If the name cannot be resolved.
    pub(crate) fn resolve(
        &self,
        is_fit: impl Fn(&SocketAddr) -> bool,
    ) -> Result<(Option<Address>, Option<Lookup>), Error> {
        let (addresses, lookup) = self.addresses(is_fit)?;
        let chosen = match addresses {
            Addresses::Unix(address) => Some(address),
            Addresses::Ip(fit) => {
                let chosen = first_that_accepts(&fit).or(fit.first().copied());
                chosen.map(Address::Tcp)
            }
        };
        Ok((chosen, lookup))
    }

    /// Returns all addresses for which `is_fit` returns true; empty for a Unix socket.
    ///
    /// # Errors
    /// If the name cannot be resolved.
    pub(crate) fn resolve_all(
        &self,
        is_fit: impl Fn(&SocketAddr) -> bool,
    ) -> Result<(Vec<SocketAddr>, Option<Lookup>), Error> {
        let (addresses, lookup) = self.addresses(is_fit)?;
        let all = match addresses {
            Addresses::Unix(_) => Vec::new(),
            Addresses::Ip(fit) => fit,
        };
        Ok((all, lookup))
    }

    fn addresses(
        &self,
        is_fit: impl Fn(&SocketAddr) -> bool,
    ) -> Result<(Addresses, Option<Lookup>), Error> {
        let (host, port) = match self {
            TargetAddress::Unix(path) => {
                return Ok((Addresses::Unix(Address::Unix(path.clone())), None));
            }
            TargetAddress::Tcp(host, port) => (host.as_str(), *port),
        };
        let unresolved = |why: String| {
            Error::Unreachable(format!("the name {host:?} cannot be resolved: {why}"))
        };
        let begin = clock::now();
        let addresses: Vec<SocketAddr> = (host, port)
            .to_socket_addrs()
            .map_err(|error| unresolved(error.to_string()))?
            .collect();
        let took = clock::now().since(begin);
        if addresses.is_empty() {
            return Err(unresolved("it has no address".to_owned()));
        }
        let is_name = host.parse::<IpAddr>().is_err();
        let lookup = is_name.then(|| Lookup {
            name: host.to_owned(),
            addresses: addresses.len() as u64,
            duration_us: units::microseconds(took.as_nanos() as u64),
        });
        let fit = addresses.into_iter().filter(is_fit).collect();
        Ok((Addresses::Ip(fit), lookup))
    }
}

/// A single address is not tried, so that the server counts the same connections as this program.
fn first_that_accepts(addresses: &[SocketAddr]) -> Option<SocketAddr> {
    if addresses.len() < 2 {
        return None;
    }
    addresses
        .iter()
        .copied()
        .find(|address| TcpStream::connect_timeout(address, CONNECT_TIMEOUT).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pace::target::Target;

    #[test]
    fn ip_address_needs_no_resolver() {
        let target = Target::parse("http://[::1]:8080/").unwrap();
        let address = Address::Tcp("[::1]:8080".parse().unwrap());
        assert_eq!(target.place.resolve(|_| true), Ok((Some(address), None)));
    }

    #[test]
    fn lookup_counts_addresses_of_name() {
        let target = Target::parse("http://localhost:1/").unwrap();
        let (fit, lookup) = target.place.resolve_all(|_| false).unwrap();
        let lookup = lookup.expect("localhost is a name");
        assert_eq!((lookup.name.as_str(), fit.len()), ("localhost", 0));
        assert!(lookup.addresses > 0 && lookup.duration_us > 0.0);
    }

    #[test]
    fn unresolvable_name_is_unreachable() {
        // RFC 6761 section 6.4: .invalid never resolves.
        let target = Target::parse("http://nobody.invalid/").unwrap();
        let Err(Error::Unreachable(sentence)) = target.place.resolve(|_| true) else {
            panic!("it resolved");
        };
        assert!(sentence.contains("\"nobody.invalid\" cannot be resolved"));
    }
}
