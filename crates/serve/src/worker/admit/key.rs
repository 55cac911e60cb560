//! What a limit counts by, as a number that nobody outside can choose.

use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;
use std::num::NonZeroU64;

use onrush_config::plan::{RateKey, When};

/// Requests with the same key share a limit.
///
/// Invariant: not 0, which marks free places in tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key(NonZeroU64);

/// Makes keys. The hash is that of the standard library's maps, SipHash with a secret drawn at the start: nobody can look
/// for two names with the same key, or for many that fall into one place of a table. All cores share one, and all
/// configurations after each other.
#[derive(Debug, Default)]
pub(crate) struct Keys {
    secret: RandomState,
}

impl Keys {
    /// What tells a limit from all others, and is the same in the next configuration: the conditions of its route, what it
    /// counts by, and how many limits with the same stand before it. Numbers and actions may change.
    pub(crate) fn limit(&self, when: &When, by: &RateKey, occurrence: usize) -> u64 {
        self.secret
            .hash_one(format!("{when:?} {by:?} {occurrence}"))
    }

    /// By client. IPv6 addresses count by their first 64 bits: one household has all the others (RFC 6177), and so has
    /// an attacker. IPv4 is the same whether it arrives as itself or inside of IPv6. `limit` is which [limit](Keys::limit).
    pub(crate) fn address(&self, limit: u64, address: IpAddr) -> Key {
        match address.to_canonical() {
            IpAddr::V4(address) => self.key(limit, Kind::V4, &address.octets()),
            IpAddr::V6(address) => self.key(limit, Kind::V6, &address.octets()[..8]),
        }
    }

    /// By the value of a header field; those who leave it out share the empty one.
    pub(crate) fn header(&self, limit: u64, value: &[u8]) -> Key {
        self.key(limit, Kind::Header, value)
    }

    /// All requests of a route together.
    pub(crate) fn route(&self, limit: u64) -> Key {
        self.key(limit, Kind::Route, &[])
    }

    fn key(&self, limit: u64, kind: Kind, name: &[u8]) -> Key {
        let hash = self.secret.hash_one((limit, kind as u8, name));
        Key(NonZeroU64::new(hash).unwrap_or(NonZeroU64::MIN))
    }
}

/// Keeps an address from being the same as a header that looks like it.
#[derive(Clone, Copy)]
enum Kind {
    V4,
    V6,
    Header,
    Route,
}

impl Key {
    pub(super) fn number(self) -> u64 {
        self.0.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ipv6_network_of_64_bits_is_one_client_and_an_ipv4_address_is() {
        let keys = Keys::default();
        let key = |address: &str| keys.address(1, address.parse().unwrap());
        for (one, other, are_same) in [
            ("2001:db8:1:2::1", "2001:db8:1:2:ffff:ffff:ffff:ffff", true),
            ("2001:db8:1:2::1", "2001:db8:1:3::1", false),
            ("192.0.2.1", "::ffff:192.0.2.1", true),
            ("192.0.2.1", "192.0.2.2", false),
            ("::ffff:192.0.2.1", "::ffff:192.0.2.2", false),
            ("0.0.0.0", "::", false),
        ] {
            assert_eq!(key(one) == key(other), are_same, "{one} and {other}");
        }
    }

    #[test]
    fn limits_kinds_and_servers_do_not_share_keys() {
        let keys = Keys::default();
        let all = [
            keys.route(1),
            keys.route(2),
            keys.header(1, b""),
            keys.header(1, &[192, 0, 2, 1]),
            keys.address(1, "192.0.2.1".parse().unwrap()),
            keys.address(2, "192.0.2.1".parse().unwrap()),
            Keys::default().route(1),
        ];
        for (index, key) in all.iter().enumerate() {
            assert!(!all[..index].contains(key), "key {index}");
            assert_ne!(key.number(), 0);
        }
        assert_eq!(keys.header(1, b"a"), keys.header(1, b"a"));
    }
}
