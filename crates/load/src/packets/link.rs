//! Interfaces, routes and neighbours from rtnetlink(7).

use std::io;
use std::net::IpAddr;

use netlink_packet_core::{NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload};
use netlink_packet_route::link::{LinkAttribute, LinkFlags, LinkLayerType, LinkMessage};
use netlink_packet_route::neighbour::{NeighbourAttribute, NeighbourMessage, NeighbourState};
use netlink_packet_route::route::{RouteAddress, RouteAttribute, RouteMessage, RouteType};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr};

use super::limits::{INTERFACE_NAME_MAX, NETLINK_BYTES_MAX};

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Link {
    pub(crate) name: String,
    pub(crate) index: u32,
    /// MAC address, if it is Ethernet.
    pub(crate) mac: Option<[u8; 6]>,
    /// MTU: bytes of the longest IP packet.
    pub(crate) mtu: u32,
}

/// Route from an interface to a target.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Route {
    /// Next hop on the link: the target, or a router.
    pub(crate) next_hop: IpAddr,
    /// Source address of packets on this route.
    pub(crate) source: IpAddr,
}

impl Link {
    /// Finds the interface with this name.
    ///
    /// # Errors
    /// A sentence: there is no such interface, or it is down.
    pub(crate) fn named(name: &str) -> Result<Link, String> {
        let missing = || {
            format!(
                "--interface {name}: no such interface in this network namespace; ip link lists the interfaces"
            )
        };
        if name.is_empty() || name.len() > INTERFACE_NAME_MAX {
            return Err(missing());
        }
        let mut question = LinkMessage::default();
        question.attributes = vec![LinkAttribute::IfName(name.to_owned())];
        let said = ask(RouteNetlinkMessage::GetLink(question)).map_err(|error| {
            match error.raw_os_error() == Some(NO_DEVICE) {
                true => missing(),
                false => format!("--interface {name}: the kernel cannot report its state: {error}"),
            }
        })?;
        let RouteNetlinkMessage::NewLink(link) = said else {
            return Err(missing());
        };
        if !link
            .header
            .flags
            .contains(LinkFlags::Up | LinkFlags::LowerUp)
        {
            return Err(format!(
                "--interface {name} is down or has no carrier: ip link set {name} up, and check its cable or peer"
            ));
        }
        let mac = link
            .attributes
            .iter()
            .find_map(|attribute| match attribute {
                LinkAttribute::Address(bytes) => <[u8; 6]>::try_from(&bytes[..]).ok(),
                _ => None,
            });
        let mtu = link
            .attributes
            .iter()
            .find_map(|attribute| match attribute {
                LinkAttribute::Mtu(mtu) => Some(*mtu),
                _ => None,
            });
        Ok(Link {
            name: name.to_owned(),
            index: link.header.index,
            mac: mac.filter(|_| link.header.link_layer_type == LinkLayerType::Ether),
            mtu: mtu.unwrap_or(0),
        })
    }

    /// Finds the route to `target` over this interface.
    ///
    /// # Errors
    /// A sentence: there is no such route, or the target is this machine.
    pub(crate) fn hop(&self, target: IpAddr) -> Result<Route, String> {
        let name = &self.name;
        let unreachable = |why: String| {
            format!(
                "{target} cannot be reached through --interface {name}: {why}; ip route get {target} oif {name} shows \
                 the route"
            )
        };
        let mut question = RouteMessage::default();
        question.header.address_family = family(target);
        question.header.destination_prefix_length = if target.is_ipv4() { 32 } else { 128 };
        question.attributes = vec![
            RouteAttribute::Destination(target.into()),
            RouteAttribute::Oif(self.index),
        ];
        let said = ask(RouteNetlinkMessage::GetRoute(question));
        let said =
            said.map_err(|error| unreachable(format!("the kernel has no route ({error})")))?;
        let RouteNetlinkMessage::NewRoute(route) = said else {
            return Err(unreachable("the kernel returned no route".to_owned()));
        };
        match route.header.kind {
            RouteType::Unicast => {}
            RouteType::Local => {
                return Err(unreachable("it is an address of this machine".to_owned()));
            }
            other => return Err(unreachable(format!("its route has the type {other:?}"))),
        }
        let (mut gateway, mut source, mut interface) = (None, None, None);
        for attribute in &route.attributes {
            match attribute {
                RouteAttribute::Gateway(address) => gateway = plain(address),
                RouteAttribute::PrefSource(address) => source = plain(address),
                RouteAttribute::Oif(index) => interface = Some(*index),
                _ => {}
            }
        }
        if interface != Some(self.index) {
            return Err(unreachable("its route uses another interface".to_owned()));
        }
        let source = source
            .ok_or_else(|| unreachable("the interface has no address of that family".to_owned()))?;
        Ok(Route {
            next_hop: gateway.unwrap_or(target),
            source,
        })
    }

    /// Returns the MAC address of `next` on this link; `None` if the kernel does not know it, or no longer.
    ///
    /// # Errors
    /// The kernel's error.
    pub(crate) fn neighbour(&self, next: IpAddr) -> io::Result<Option<[u8; 6]>> {
        let mut question = NeighbourMessage::default();
        question.header.family = family(next);
        question.header.ifindex = self.index;
        question.attributes = vec![NeighbourAttribute::Destination(match next {
            IpAddr::V4(next) => next.into(),
            IpAddr::V6(next) => next.into(),
        })];
        let said = match ask(RouteNetlinkMessage::GetNeighbour(question)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            said => said?,
        };
        let RouteNetlinkMessage::NewNeighbour(neighbour) = said else {
            return Ok(None);
        };
        let is_known = matches!(
            neighbour.header.state,
            NeighbourState::Reachable
                | NeighbourState::Stale
                | NeighbourState::Delay
                | NeighbourState::Probe
                | NeighbourState::Noarp
                | NeighbourState::Permanent
        );
        let address = neighbour
            .attributes
            .iter()
            .find_map(|attribute| match attribute {
                NeighbourAttribute::LinkLayerAddress(bytes) => <[u8; 6]>::try_from(&bytes[..]).ok(),
                _ => None,
            });
        Ok(address.filter(|_| is_known))
    }
}

/// ENODEV.
const NO_DEVICE: i32 = 19;

fn family(address: IpAddr) -> AddressFamily {
    match address {
        IpAddr::V4(_) => AddressFamily::Inet,
        IpAddr::V6(_) => AddressFamily::Inet6,
    }
}

fn plain(address: &RouteAddress) -> Option<IpAddr> {
    match address {
        RouteAddress::Inet(address) => Some((*address).into()),
        RouteAddress::Inet6(address) => Some((*address).into()),
        _ => None,
    }
}

/// Sends one request and receives the single message of its response.
fn ask(question: RouteNetlinkMessage) -> io::Result<RouteNetlinkMessage> {
    let mut socket = Socket::new(NETLINK_ROUTE)?;
    socket.bind_auto()?;
    socket.connect(&SocketAddr::new(0, 0))?;
    let mut header = NetlinkHeader::default();
    header.flags = NLM_F_REQUEST;
    let mut message = NetlinkMessage::new(header, NetlinkPayload::from(question));
    message.finalize();
    let mut bytes = vec![0; message.buffer_len()];
    message.serialize(&mut bytes);
    socket.send(&bytes, 0)?;
    let mut buffer = Vec::with_capacity(NETLINK_BYTES_MAX);
    socket.recv(&mut buffer, 0)?;
    let said = NetlinkMessage::<RouteNetlinkMessage>::deserialize(&buffer);
    match said.map_err(io::Error::other)?.payload {
        NetlinkPayload::InnerMessage(message) => Ok(message),
        NetlinkPayload::Error(error) => Err(error.to_io()),
        _ => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_has_no_mac_and_no_neighbour() {
        let link = Link::named("lo").unwrap();
        assert_eq!((link.index, link.mac), (1, None));
        assert!(link.mtu >= 1500);
        let refused = link.hop("127.0.0.1".parse().unwrap()).unwrap_err();
        assert!(refused.contains("an address of this machine"), "{refused}");
        let nobody = link.neighbour("192.0.2.1".parse().unwrap());
        assert_eq!(nobody.unwrap(), None);
    }

    #[test]
    fn missing_interface_is_reported() {
        for name in ["no-such-if0", "a-name-that-is-too-long", ""] {
            let refused = Link::named(name).unwrap_err();
            assert!(refused.contains("no such interface"), "{refused}");
            assert!(refused.contains(name), "{refused}");
        }
    }
}
