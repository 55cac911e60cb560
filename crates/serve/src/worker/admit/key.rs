//! Keys of limits: hashes that clients cannot predict.

use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;
use std::num::NonZeroU64;

use onrush_config::plan::{RateKey, RouteMatch};

/// Requests with the same key share a limit.
///
/// Invariant: not 0, which marks free entries in tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key(NonZeroU64);

/// Makes keys. The hash is SipHash with a random secret: attackers cannot search for two names with the same key, or
/// for many that share an entry of a table. All cores and successive configurations use the same secret.
#[derive(Debug, Default)]
pub(crate) struct Keys {
    secret: RandomState,
}

impl Keys {
    /// Identifies a limit across configurations: by the conditions of its route, its key, and the number of equal
    /// limits before it. Its rate and the route's action may change.
    pub(crate) fn limit(&self, when: &RouteMatch, by: &RateKey, occurrence: usize) -> u64 {
        self.secret
            .hash_one(format!("{when:?} {by:?} {occurrence}"))
    }

    /// A key for a client address. IPv6 addresses count as their /64, because one household, and so one attacker, has
    /// all the rest (RFC 6177). IPv4-mapped addresses count as IPv4. `limit` is the [limit](Keys::limit).
    pub(crate) fn address(&self, limit: u64, address: IpAddr) -> Key {
        match address.to_canonical() {
            IpAddr::V4(address) => self.key(limit, Kind::V4, &address.octets()),
            IpAddr::V6(address) => self.key(limit, Kind::V6, &address.octets()[..8]),
        }
    }

    /// A key for the value of a header field; requests without the field share the empty value.
    pub(crate) fn header(&self, limit: u64, value: &[u8]) -> Key {
        self.key(limit, Kind::Header, value)
    }

    pub(crate) fn route(&self, limit: u64) -> Key {
        self.key(limit, Kind::Route, &[])
    }

    fn key(&self, limit: u64, kind: Kind, name: &[u8]) -> Key {
        let hash = self.secret.hash_one((limit, kind as u8, name));
        Key(NonZeroU64::new(hash).unwrap_or(NonZeroU64::MIN))
    }
}

/// Keeps an address distinct from a header value with the same bytes.
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
    fn ipv6_clients_are_keyed_by_64_bit_prefix() {
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
    fn keys_depend_on_limit_kind_and_secret() {
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
