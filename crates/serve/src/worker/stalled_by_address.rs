//! Number of stalled streams of each client address, on one core.

use std::cell::RefCell;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};

/// Counts the stalled streams of all connections of an address; an IPv6 address counts as its /64, the usual size of
/// one household (RFC 6177). Addresses without stalled streams are removed, so the number of entries is bounded by the
/// number of connections.
#[derive(Debug, Default)]
pub(crate) struct StalledByAddress(RefCell<HashMap<IpAddr, u32>>);

impl StalledByAddress {
    /// Changes the count of one connection from `before` to `now`. Returns the count of the whole address.
    pub(crate) fn change(&self, address: IpAddr, before: u32, now: u32) -> u32 {
        let mut counts = self.0.borrow_mut();
        let key = network(address);
        let count = counts.entry(key).or_default();
        *count = *count - before + now;
        let all = *count;
        if all == 0 {
            counts.remove(&key);
        }
        all
    }
}

/// Network that counts as one client.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => IpAddr::V4(address),
        IpAddr::V6(address) => {
            let prefix = u128::from(address) >> 64 << 64;
            IpAddr::V6(Ipv6Addr::from(prefix))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stalled_streams_are_counted_per_network() {
        let stalled = StalledByAddress::default();
        let change = |address: &str, before, now| {
            stalled.change(address.parse().expect("an address"), before, now)
        };
        assert_eq!(change("192.0.2.1", 0, 3), 3);
        assert_eq!(change("::ffff:192.0.2.1", 0, 2), 5);
        assert_eq!(change("192.0.2.2", 0, 1), 1);
        assert_eq!(change("2001:db8::1", 0, 4), 4);
        assert_eq!(change("2001:db8::ffff", 0, 4), 8);
        assert_eq!(change("2001:db8:0:1::1", 0, 1), 1);
        assert_eq!(change("192.0.2.1", 3, 0), 2);
        assert_eq!(change("192.0.2.1", 2, 0), 0);
        assert!(
            !stalled
                .0
                .borrow()
                .contains_key(&network("192.0.2.1".parse().expect("an address")))
        );
    }
}
