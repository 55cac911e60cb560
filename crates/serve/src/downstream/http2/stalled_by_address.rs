//! How many streams of each client address are stalled, on one core.

use std::cell::RefCell;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};

/// The stalled streams of all connections of an address; of IPv6 those of a /64, which one household has (RFC 6177). Addresses
/// without any are not kept, so that there are at most as many as connections.
#[derive(Debug, Default)]
pub(crate) struct StalledByAddress(RefCell<HashMap<IpAddr, u32>>);

impl StalledByAddress {
    /// A connection from `address` has `now` stalled streams, and had `before`. Returns how many all connections of the address have.
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

/// What counts as one client.
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
    fn connections_of_one_network_count_together() {
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
