//! Finds the interface that leads to an address, so that a remote user is not cut off.

use std::net::IpAddr;

use crate::tree::Tree;

/// Interface of the route to an address in the kernel's main routing table; `None` for an address of the machine
/// itself, or without a route.
pub fn interface_to(tree: &Tree, address: IpAddr) -> Option<String> {
    let address = address.to_canonical();
    if address.is_loopback() {
        return None;
    }
    let routes = match address {
        IpAddr::V4(_) => tree.text("/proc/net/route")?,
        IpAddr::V6(_) => tree.text("/proc/net/ipv6_route")?,
    };
    let read = match address {
        IpAddr::V4(_) => old_route,
        IpAddr::V6(_) => new_route,
    };
    let bits = match address {
        IpAddr::V4(address) => u128::from(address.to_bits()) << 96,
        IpAddr::V6(address) => address.to_bits(),
    };
    let leads = |route: &Route| {
        (route.network ^ bits)
            .checked_shr(128 - route.length)
            .unwrap_or(0)
            == 0
    };
    let best = routes.lines().filter_map(read).filter(leads);
    // Longest prefix first, then lowest metric.
    best.min_by_key(|route| (128 - route.length, route.metric))
        .map(|route| route.interface)
}

struct Route {
    interface: String,
    /// Network address in the high bits.
    network: u128,
    length: u32,
    metric: u32,
}

// Flags of include/uapi/linux/route.h.
const UP: u32 = 1;
const REJECT: u32 = 0x200;

fn hexadecimal(word: &str) -> Option<u32> {
    u32::from_str_radix(word, 16).ok()
}

fn is_open(flags: u32) -> bool {
    flags & UP != 0 && flags & REJECT == 0
}

/// `eth0 0002000A 00000000 0001 0 0 100 00FFFFFF 0 0 0`: addresses in memory order.
fn old_route(line: &str) -> Option<Route> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [interface, network, _, flags, _, _, metric, mask, ..] = words[..] else {
        return None;
    };
    let bits = |word: &str| Some(u32::from_be_bytes(hexadecimal(word)?.to_ne_bytes()));
    is_open(hexadecimal(flags)?).then_some(())?;
    Some(Route {
        interface: interface.to_owned(),
        network: u128::from(bits(network)?) << 96,
        length: bits(mask)?.leading_ones(),
        metric: metric.parse().ok()?,
    })
}

/// `fe800000000000000000000000000000 40 000… 00 000… 00000100 00000001 00000000 00000001 eth0`
fn new_route(line: &str) -> Option<Route> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [network, length, _, _, _, metric, _, _, flags, interface] = words[..] else {
        return None;
    };
    is_open(hexadecimal(flags)?).then_some(())?;
    Some(Route {
        interface: interface.to_owned(),
        network: u128::from_str_radix(network, 16).ok()?,
        length: hexadecimal(length).filter(|length| *length <= 128)?,
        metric: hexadecimal(metric)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Snapshot;

    const OLD: &str =
        "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT
eth1\t00000000\t0101A8C0\t0003\t0\t0\t200\t00000000\t0\t0\t0
eth0\t00000000\t0102000A\t0003\t0\t0\t100\t00000000\t0\t0\t0
bond0\t0002000A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0
*\t0003000A\t00000000\t0201\t0\t0\t0\t00FFFFFF\t0\t0\t0
down0\t0004000A\t00000000\t0000\t0\t0\t0\t00FFFFFF\t0\t0\t0";

    const NEW: &str = "\
fd000000000000000000000000000000 08 00000000000000000000000000000000 00 00000000000000000000000000000000 00000100 00000001 00000000 00000001     eth2
00000000000000000000000000000000 00 00000000000000000000000000000000 00 fe800000000000000000000000000001 00000400 00000001 00000000 00000003     eth0
00000000000000000000000000000000 00 00000000000000000000000000000000 00 00000000000000000000000000000000 ffffffff 00000001 00000000 00200200       lo";

    #[test]
    fn longest_prefix_wins() {
        // The table is in the byte order of this machine.
        if cfg!(target_endian = "big") {
            return;
        }
        let files = [("/proc/net/route", OLD), ("/proc/net/ipv6_route", NEW)];
        let tree = Tree::of_snapshot(Snapshot {
            files: files
                .map(|(path, text)| (path.to_owned(), text.to_owned()))
                .into(),
            ..Snapshot::default()
        });
        for (address, expected) in [
            ("10.0.2.9", Some("bond0")),
            ("10.0.3.9", Some("eth0")),
            ("10.0.4.9", Some("eth0")),
            ("8.8.8.8", Some("eth0")),
            ("::ffff:10.0.2.9", Some("bond0")),
            ("127.0.0.1", None),
            ("fd12::1", Some("eth2")),
            ("2001:db8::1", Some("eth0")),
            ("::1", None),
        ] {
            let found = interface_to(&tree, address.parse().expect("an address"));
            assert_eq!(found.as_deref(), expected, "{address}");
        }
    }

    #[test]
    fn without_routes_no_interface_is_found() {
        let tree = Tree::of_snapshot(Snapshot::default());
        assert_eq!(
            interface_to(&tree, "10.0.2.9".parse().expect("an address")),
            None
        );
    }
}
