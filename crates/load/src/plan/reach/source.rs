//! Parses source addresses of connections: `127.0.0.2`, `127.0.0.2-127.0.0.50`, `10.0.0.0/28`, or a comma-separated
//! list of these. Pure.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::limits::CONNECTIONS_MAX;

/// Source addresses, used round robin.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Sources {
    ranges: Vec<Range>,
}

/// Consecutive addresses. Invariant: `count` > 0, and `first` + `count` - 1 is an address of the same family.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Range {
    first: IpAddr,
    count: u64,
}

impl Sources {
    /// Parses a list.
    ///
    /// # Errors
    /// A sentence with the mistake and the expected form.
    pub fn parse(text: &str) -> Result<Sources, String> {
        let ranges = text.split(',').map(|part| {
            Range::parse(part).map_err(|why| {
                format!("{part:?} is not a source address: {why}; expected an address such as 10.0.0.2, a range such \
                    as 10.0.0.2-10.0.0.50, or a network such as 10.0.0.0/28")
            })
        });
        Ok(Sources {
            ranges: ranges.collect::<Result<_, _>>()?,
        })
    }

    /// Whether the choice is left to the kernel.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    pub(crate) fn count(&self) -> u64 {
        self.ranges.iter().map(|range| range.count).sum()
    }

    /// Whether `peer` can be reached from one of the addresses, or the list is empty.
    pub(crate) fn supports(&self, peer: &SocketAddr) -> bool {
        self.is_empty() || !self.same_family(peer).is_empty()
    }

    /// Returns the addresses of the family of `peer`.
    pub(crate) fn same_family(&self, peer: &SocketAddr) -> Sources {
        let is_of_family = |range: &&Range| range.first.is_ipv4() == peer.is_ipv4();
        Sources {
            ranges: self.ranges.iter().filter(is_of_family).copied().collect(),
        }
    }

    /// Returns the address of connection `number` of the run, round robin.
    pub(crate) fn nth(&self, number: u64) -> Option<IpAddr> {
        let mut at = number.checked_rem(self.count())?;
        for range in &self.ranges {
            if at < range.count {
                return Some(range.nth(at));
            }
            at -= range.count;
        }
        None
    }
}

impl fmt::Display for Sources {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, range) in self.ranges.iter().enumerate() {
            let comma = if place > 0 { "," } else { "" };
            write!(out, "{comma}{}", range.first)?;
            if range.count > 1 {
                write!(out, "-{}", range.nth(range.count - 1))?;
            }
        }
        Ok(())
    }
}

impl Range {
    fn parse(text: &str) -> Result<Range, String> {
        if let Some((first, last)) = text.split_once('-') {
            return Range::between(address(first)?, address(last)?);
        }
        match text.split_once('/') {
            Some((network, bits)) => Range::of_network(address(network)?, bits),
            None => Range::between(address(text)?, address(text)?),
        }
    }

    fn between(first: IpAddr, last: IpAddr) -> Result<Range, String> {
        if first.is_ipv4() != last.is_ipv4() {
            return Err("a range must have one address family, IPv4 or IPv6".to_owned());
        }
        let steps = number(last).checked_sub(number(first));
        let steps = steps.ok_or("its last address comes before its first")?;
        // A run uses no more addresses than it has connections.
        let most = CONNECTIONS_MAX as u64 - 1;
        let steps = u64::try_from(steps).unwrap_or(most).min(most);
        Ok(Range {
            first,
            count: steps + 1,
        })
    }

    /// Returns the host addresses of a network: without the network address (IPv4) or the Subnet-Router anycast address
    /// (RFC 4291 section 2.6.1), and in IPv4 without the broadcast address. Networks of two addresses have neither (RFC
    /// 3021, RFC 6164).
    fn of_network(network: IpAddr, bits: &str) -> Result<Range, String> {
        let length: u32 = if network.is_ipv4() { 32 } else { 128 };
        let digits = bits.bytes().all(|byte| byte.is_ascii_digit());
        let bits = bits.parse().ok().filter(|&bits| digits && bits <= length);
        let bits: u32 = bits.ok_or(format!("its prefix must have 0 to {length} bits"))?;
        let rest = length - bits;
        let mask = 1_u128.checked_shl(rest).unwrap_or(0).wrapping_sub(1);
        let first = number(network);
        if first & mask != 0 {
            let network = address_of(first & !mask, network);
            return Err(format!(
                "it has bits set after its prefix, the network is {network}/{bits}"
            ));
        }
        let (low, high) = match (rest, network) {
            (0 | 1, _) => (first, first | mask),
            (_, IpAddr::V4(_)) => (first + 1, (first | mask) - 1),
            (_, IpAddr::V6(_)) => (first + 1, first | mask),
        };
        Range::between(address_of(low, network), address_of(high, network))
    }

    fn nth(&self, at: u64) -> IpAddr {
        address_of(number(self.first) + u128::from(at), self.first)
    }
}

fn address(text: &str) -> Result<IpAddr, String> {
    let not = |_| format!("{text:?} is not an IP address");
    text.parse().map_err(not)
}

fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u32::from(address).into(),
        IpAddr::V6(address) => address.into(),
    }
}

/// Returns the address with this number, of the family of `like`.
fn address_of(number: u128, like: IpAddr) -> IpAddr {
    match like {
        // Ranges do not exceed their family.
        IpAddr::V4(_) => Ipv4Addr::from(number as u32).into(),
        IpAddr::V6(_) => Ipv6Addr::from(number).into(),
    }
}

/// Returns the local address of datagrams to `target`.
pub(crate) fn source_of(source: Option<IpAddr>, target: &SocketAddr) -> SocketAddr {
    SocketAddr::new(source.unwrap_or(unspecified(target.ip())), 0)
}

/// Returns the unspecified address of the family of `address`.
pub(crate) fn unspecified(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> String {
        match Sources::parse(text) {
            Ok(sources) => sources.to_string(),
            Err(sentence) => sentence,
        }
    }

    #[test]
    fn source_addresses_ranges_and_networks_are_parsed() {
        for (text, expected) in [
            ("127.0.0.2", "127.0.0.2"),
            ("127.0.0.2-127.0.0.50", "127.0.0.2-127.0.0.50"),
            ("10.0.0.0/28", "10.0.0.1-10.0.0.14"),
            ("10.0.0.0/31,::1", "10.0.0.0-10.0.0.1,::1"),
            ("10.0.0.3/32", "10.0.0.3"),
            ("2001:db8::/126", "2001:db8::1-2001:db8::3"),
            ("2001:db8::5-2001:db8::7", "2001:db8::5-2001:db8::7"),
            ("::/0", "::1-::10:0"),
        ] {
            assert_eq!(read(text), expected, "of {text}");
        }
    }

    #[test]
    fn invalid_sources_are_refused() {
        for (text, part) in [
            ("", "\"\" is not an IP address"),
            ("10.0.0.2,", "\"\" is not an IP address"),
            ("a.example", "\"a.example\" is not an IP address"),
            ("10.0.0.9-10.0.0.2", "comes before its first"),
            ("10.0.0.9-::1", "must have one address family"),
            ("10.0.0.0/33", "0 to 32 bits"),
            ("10.0.0.0/+8", "0 to 32 bits"),
            ("::/129", "0 to 128 bits"),
            ("10.0.0.1/28", "the network is 10.0.0.0/28"),
        ] {
            let sentence = read(text);
            assert!(sentence.contains(part), "{sentence}");
            assert!(sentence.contains("expected an address such as"));
        }
    }

    #[test]
    fn sources_are_used_round_robin() {
        let sources = Sources::parse("10.0.0.1-10.0.0.2,::1,10.0.0.9").unwrap();
        let four = sources.same_family(&([10, 0, 0, 3], 80).into());
        let taken = (0..4).map(|number| four.nth(number).unwrap().to_string());
        let taken: Vec<String> = taken.collect();
        assert_eq!(taken, ["10.0.0.1", "10.0.0.2", "10.0.0.9", "10.0.0.1"]);
        assert_eq!(Sources::default().nth(5), None);
        let six = Sources::parse("::1").unwrap();
        assert!(!six.supports(&([10, 0, 0, 3], 80).into()));
        assert!(Sources::default().supports(&([10, 0, 0, 3], 80).into()));
    }
}
