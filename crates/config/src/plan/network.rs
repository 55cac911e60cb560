//! Networks in CIDR notation, for conditions, access rules and trust lists.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Addresses with a common prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Network {
    /// Bits after `prefix` are zero.
    address: IpAddr,
    prefix: u8,
}

impl Network {
    /// Network of `address` with this prefix length; `None` if the prefix is longer than the address.
    pub fn new(address: IpAddr, prefix: u8) -> Option<Network> {
        let bits = if address.is_ipv4() { 32 } else { 128 };
        if prefix > bits {
            return None;
        }
        let address = match address {
            IpAddr::V4(ip) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(prefix)).unwrap_or(0);
                IpAddr::V4((u32::from(ip) & mask).into())
            }
            IpAddr::V6(ip) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(prefix)).unwrap_or(0);
                IpAddr::V6((u128::from(ip) & mask).into())
            }
        };
        Some(Network { address, prefix })
    }

    /// First address of the network.
    pub fn address(&self) -> IpAddr {
        self.address
    }

    /// Whether this network contains all addresses of `other`.
    pub fn covers(&self, other: &Network) -> bool {
        self.prefix <= other.prefix && self.contains(other.address)
    }

    /// Whether the network contains `address`. An IPv4-mapped address (`::ffff:a.b.c.d`) counts as IPv4.
    pub fn contains(&self, address: IpAddr) -> bool {
        let bits_behind = |bits: u32| bits - u32::from(self.prefix);
        match (address.to_canonical(), self.address) {
            (IpAddr::V4(address), IpAddr::V4(own)) => {
                let differing = u32::from(address) ^ u32::from(own);
                differing.checked_shr(bits_behind(32)).unwrap_or(0) == 0
            }
            (IpAddr::V6(address), IpAddr::V6(own)) => {
                let differing = u128::from(address) ^ u128::from(own);
                differing.checked_shr(bits_behind(128)).unwrap_or(0) == 0
            }
            _ => false,
        }
    }
}

/// Formats in CIDR notation: `10.0.0.0/8`, `::1/128`.
impl fmt::Display for Network {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}/{}", self.address, self.prefix)
    }
}

/// A set of networks; the empty set contains no address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Networks(pub Vec<Network>);

impl Networks {
    /// All addresses.
    pub fn all() -> Networks {
        let all = |address: IpAddr| Network { address, prefix: 0 };
        Networks(vec![
            all(Ipv4Addr::UNSPECIFIED.into()),
            all(Ipv6Addr::UNSPECIFIED.into()),
        ])
    }

    /// Loopback, private (RFC 1918, RFC 4193) and link-local networks, which are not routed on the public internet.
    pub fn private() -> Networks {
        let network = |address: IpAddr, prefix| Network { address, prefix };
        let v4 = |bytes: [u8; 4], prefix| network(bytes.into(), prefix);
        let v6 = |first: u16, prefix| network([first, 0, 0, 0, 0, 0, 0, 0].into(), prefix);
        Networks(vec![
            v4([127, 0, 0, 0], 8),
            v4([10, 0, 0, 0], 8),
            v4([172, 16, 0, 0], 12),
            v4([192, 168, 0, 0], 16),
            v4([169, 254, 0, 0], 16),
            network(Ipv6Addr::LOCALHOST.into(), 128),
            v6(0xfc00, 7),
            v6(0xfe80, 10),
        ])
    }

    /// Whether each network of `other` is contained in a single network of this set.
    pub fn contain_all(&self, other: &Networks) -> bool {
        let is_covered = |other: &Network| self.0.iter().any(|network| network.covers(other));
        other.0.iter().all(is_covered)
    }

    /// Whether one of the networks contains `address`.
    pub fn contain(&self, address: IpAddr) -> bool {
        self.0.iter().any(|network| network.contains(address))
    }

    /// Whether the set has no networks.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn network_contains_addresses_with_its_prefix() {
        for (network, prefix, address, is_in) in [
            ("10.1.2.3", 8, "10.255.0.1", true),
            ("10.1.2.3", 8, "11.0.0.1", false),
            ("10.1.2.3", 32, "10.1.2.3", true),
            ("10.1.2.3", 32, "10.1.2.4", false),
            ("0.0.0.0", 0, "203.0.113.1", true),
            ("0.0.0.0", 0, "::1", false),
            ("::", 0, "2001:db8::1", true),
            ("10.0.0.0", 8, "::ffff:10.0.0.1", true),
            ("2001:db8::", 32, "2001:db8:1::1", true),
            ("2001:db8::", 32, "2001:db9::1", false),
        ] {
            let network = Network::new(network.parse().unwrap(), prefix).unwrap();
            assert_eq!(
                network.contains(address.parse().unwrap()),
                is_in,
                "{address} in {network}"
            );
        }
    }

    #[test]
    fn network_contains_its_subnets() {
        let network = |text: &str| crate::value::parse_network(text).expect(text);
        for (one, other, covers) in [
            ("10.0.0.0/8", "10.1.0.0/16", true),
            ("10.0.0.0/8", "10.0.0.0/8", true),
            ("10.1.0.0/16", "10.0.0.0/8", false),
            ("10.0.0.0/8", "11.0.0.0/16", false),
            ("0.0.0.0/0", "2001:db8::/32", false),
        ] {
            assert_eq!(
                network(one).covers(&network(other)),
                covers,
                "{one} {other}"
            );
        }
        let some = Networks(vec![network("10.0.0.0/8"), network("::1")]);
        assert!(Networks::all().contain_all(&some) && !some.contain_all(&Networks::all()));
    }

    #[test]
    fn private_networks_are_not_routed() {
        for (address, is_private) in [
            ("127.0.0.1", true),
            ("10.255.255.255", true),
            ("172.16.0.1", true),
            ("172.32.0.1", false),
            ("192.168.1.1", true),
            ("169.254.1.1", true),
            ("0.0.0.0", false),
            ("203.0.113.1", false),
            ("::1", true),
            ("::", false),
            ("fd00::1", true),
            ("fe80::1", true),
            ("fec0::1", false),
            ("2001:db8::1", false),
            ("::ffff:10.0.0.1", true),
            ("::ffff:8.8.8.8", false),
        ] {
            let address = address.parse().expect(address);
            assert_eq!(
                Networks::private().contain(address),
                is_private,
                "{address}"
            );
        }
    }

    #[test]
    fn overlong_network_prefix_is_rejected() {
        assert_eq!(Network::new([10, 0, 0, 1].into(), 33), None);
        assert_eq!(Network::new([0u16; 8].into(), 129), None);
    }
}
