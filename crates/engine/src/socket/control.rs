//! Addresses and control messages (cmsg(3)) of datagrams, in the kernel's format.

use std::ffi::c_int;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

/// The ECN codepoint of a datagram (RFC 3168 5).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum Ecn {
    /// Not-ECT: the sender does not support ECN.
    #[default]
    NotCapable,
    /// ECT(1): the sender supports ECN by the rules of RFC 9331.
    Capable1,
    /// ECT(0): the sender supports ECN.
    Capable0,
    /// CE: a router on the path was congested.
    Congested,
}

impl Ecn {
    fn of(class: u8) -> Self {
        match class & 3 {
            0 => Ecn::NotCapable,
            1 => Ecn::Capable1,
            2 => Ecn::Capable0,
            _ => Ecn::Congested,
        }
    }

    fn bits(self) -> c_int {
        match self {
            Ecn::NotCapable => 0,
            Ecn::Capable1 => 1,
            Ecn::Capable0 => 2,
            Ecn::Congested => 3,
        }
    }
}

/// A `struct sockaddr_in` or `sockaddr_in6`.
pub(crate) type SockaddrBytes = [u8; 28];

/// Writes an address and returns its length in bytes.
pub(crate) fn write_name(name: &mut SockaddrBytes, address: SocketAddr) -> usize {
    name[2..4].copy_from_slice(&address.port().to_be_bytes());
    match address {
        SocketAddr::V4(address) => {
            name[..2].copy_from_slice(&(libc::AF_INET as u16).to_ne_bytes());
            name[4..8].copy_from_slice(&address.ip().octets());
            name[8..16].fill(0);
            16
        }
        SocketAddr::V6(address) => {
            name[..2].copy_from_slice(&(libc::AF_INET6 as u16).to_ne_bytes());
            name[4..8].copy_from_slice(&address.flowinfo().to_be_bytes());
            name[8..24].copy_from_slice(&address.ip().octets());
            name[24..].copy_from_slice(&address.scope_id().to_ne_bytes());
            28
        }
    }
}

pub(crate) fn read_name(name: &SockaddrBytes) -> Option<SocketAddr> {
    let port = u16::from_be_bytes([name[2], name[3]]);
    match c_int::from(u16::from_ne_bytes([name[0], name[1]])) {
        libc::AF_INET => {
            let address: [u8; 4] = name[4..8].try_into().ok()?;
            Some(SocketAddrV4::new(Ipv4Addr::from(address), port).into())
        }
        libc::AF_INET6 => {
            let address: [u8; 16] = name[8..24].try_into().ok()?;
            let flow = u32::from_be_bytes(name[4..8].try_into().ok()?);
            let scope = u32::from_ne_bytes(name[24..].try_into().ok()?);
            Some(SocketAddrV6::new(Ipv6Addr::from(address), port, flow, scope).into())
        }
        _ => None,
    }
}

/// Space for the control messages of one datagram: IPv6 packet information takes 40 bytes, three others 24 each.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
pub(crate) struct Control(pub(crate) [u8; 112]);

impl Control {
    pub(crate) const EMPTY: Control = Control([0; 112]);
}

/// A `struct cmsghdr`: a length that includes the header, a level and a type; data is aligned to 8 bytes.
const HEADER_BYTES: usize = 16;
const ALIGNMENT: usize = 8;
const _: () =
    assert!(size_of::<libc::cmsghdr>() == HEADER_BYTES && align_of::<libc::cmsghdr>() == ALIGNMENT);

/// Options of a message to send.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SendControl {
    pub(crate) from: Option<IpAddr>,
    pub(crate) ecn: Ecn,
    /// Size of each datagram except the last, if there is more than one.
    pub(crate) segment: Option<u16>,
}

impl SendControl {
    /// Whether no control message is needed.
    pub(crate) fn is_nothing(&self) -> bool {
        self.from.is_none() && self.ecn == Ecn::NotCapable && self.segment.is_none()
    }
}

/// Writes the control messages for a socket of `family` and returns their length in bytes.
pub(crate) fn write_control(control: &mut Control, wishes: &SendControl, family: Family) -> usize {
    let mut writer = Writer { control, length: 0 };
    match wishes.from {
        None => {}
        Some(IpAddr::V4(address)) => {
            let mut information = [0; 12];
            information[4..8].copy_from_slice(&address.octets());
            writer.put(libc::IPPROTO_IP, libc::IP_PKTINFO, &information);
        }
        Some(IpAddr::V6(address)) => {
            let mut information = [0; 20];
            information[..16].copy_from_slice(&address.octets());
            writer.put(libc::IPPROTO_IPV6, libc::IPV6_PKTINFO, &information);
        }
    }
    if wishes.ecn != Ecn::NotCapable {
        let (level, kind) = match family {
            Family::V4 => (libc::IPPROTO_IP, libc::IP_TOS),
            Family::V6 => (libc::IPPROTO_IPV6, libc::IPV6_TCLASS),
        };
        writer.put(level, kind, &wishes.ecn.bits().to_ne_bytes());
    }
    if let Some(segment) = wishes.segment {
        writer.put(libc::SOL_UDP, libc::UDP_SEGMENT, &segment.to_ne_bytes());
    }
    writer.length
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Family {
    V4,
    V6,
}

impl Family {
    pub(crate) fn of(address: SocketAddr) -> Self {
        match address {
            SocketAddr::V4(_) => Family::V4,
            SocketAddr::V6(_) => Family::V6,
        }
    }
}

struct Writer<'control> {
    control: &'control mut Control,
    length: usize,
}

impl Writer<'_> {
    fn put(&mut self, level: c_int, kind: c_int, data: &[u8]) {
        let room = &mut self.control.0[self.length..];
        let length = HEADER_BYTES + data.len();
        room[..8].copy_from_slice(&length.to_ne_bytes());
        room[8..12].copy_from_slice(&level.to_ne_bytes());
        room[12..16].copy_from_slice(&kind.to_ne_bytes());
        room[HEADER_BYTES..length].copy_from_slice(data);
        let end = length.next_multiple_of(ALIGNMENT);
        room[length..end].fill(0);
        self.length += end;
    }
}

/// Contents of the control messages of a received message.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct ReceivedControl {
    pub(crate) to: Option<IpAddr>,
    pub(crate) ecn: Ecn,
    pub(crate) segment: Option<u16>,
    /// Datagrams that the socket had dropped by then, modulo 2^32.
    pub(crate) dropped: Option<u32>,
}

/// Reads the control messages that the kernel has written; skips unknown ones.
pub(crate) fn read_control(control: &[u8]) -> ReceivedControl {
    let mut facts = ReceivedControl::default();
    let mut rest = control;
    while let Some((level, kind, data, behind)) = next(rest) {
        rest = behind;
        match (level, kind) {
            // The destination address of the IP header, which follows the address of the interface.
            (libc::IPPROTO_IP, libc::IP_PKTINFO) => {
                let address = data
                    .get(8..12)
                    .and_then(|bytes| <[u8; 4]>::try_from(bytes).ok());
                facts.to = address.map(IpAddr::from);
            }
            (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) => {
                let address = data
                    .get(..16)
                    .and_then(|bytes| <[u8; 16]>::try_from(bytes).ok());
                facts.to = address.map(IpAddr::from);
            }
            (libc::IPPROTO_IP, libc::IP_TOS) => {
                facts.ecn = data
                    .first()
                    .map_or(Ecn::NotCapable, |&class| Ecn::of(class));
            }
            (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) => {
                facts.ecn = integer(data).map_or(Ecn::NotCapable, |class| Ecn::of(class as u8));
            }
            (libc::SOL_SOCKET, libc::SO_RXQ_OVFL) => {
                facts.dropped = integer(data).map(c_int::cast_unsigned);
            }
            (libc::SOL_UDP, libc::UDP_GRO) => {
                facts.segment = integer(data).and_then(|segment| u16::try_from(segment).ok());
            }
            _ => {}
        }
    }
    facts
}

fn integer(data: &[u8]) -> Option<c_int> {
    Some(c_int::from_ne_bytes(data.get(..4)?.try_into().ok()?))
}

/// The first control message, and the remaining bytes.
fn next(control: &[u8]) -> Option<(c_int, c_int, &[u8], &[u8])> {
    let length = usize::from_ne_bytes(control.get(..8)?.try_into().ok()?);
    let level = integer(control.get(8..12)?)?;
    let kind = integer(control.get(12..16)?)?;
    let data = control.get(HEADER_BYTES..length)?;
    let behind = length.next_multiple_of(ALIGNMENT).min(control.len());
    Some((level, kind, data, &control[behind..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_address_round_trips() {
        for address in ["127.0.0.1:80", "[2001:db8::1]:65535", "[fe80::1%7]:1"] {
            let address: SocketAddr = address.parse().expect("an address");
            let mut name = [0xff; 28];
            write_name(&mut name, address);
            assert_eq!(read_name(&name), Some(address));
        }
        assert_eq!(read_name(&[0; 28]), None);
    }

    #[test]
    fn control_buffer_fits_all_send_options() {
        for (address, family, length) in [("10.1.2.3", Family::V4, 80), ("::1", Family::V6, 88)] {
            let wishes = SendControl {
                from: address.parse().ok(),
                ecn: Ecn::Capable0,
                segment: Some(1200),
            };
            let mut control = Control::EMPTY;
            assert_eq!(write_control(&mut control, &wishes, family), length);
            assert_eq!(read_control(&control.0[..length]).ecn, Ecn::Capable0);
        }
        let nothing = SendControl::default();
        assert_eq!(
            write_control(&mut { Control::EMPTY }, &nothing, Family::V4),
            0
        );
    }

    #[test]
    fn arbitrary_control_bytes_do_not_panic() {
        let mut control = Control::EMPTY;
        let mut writer = Writer {
            control: &mut control,
            length: 0,
        };
        writer.put(libc::SOL_SOCKET, libc::SCM_TIMESTAMP, &[7; 16]);
        writer.put(libc::SOL_UDP, libc::UDP_GRO, &1472_i32.to_ne_bytes());
        writer.put(libc::SOL_SOCKET, libc::SO_RXQ_OVFL, &u32::MAX.to_ne_bytes());
        writer.put(libc::IPPROTO_IP, libc::IP_TOS, &[3]);
        let length = writer.length;
        let expected = ReceivedControl {
            to: None,
            ecn: Ecn::Congested,
            segment: Some(1472),
            dropped: Some(u32::MAX),
        };
        assert_eq!(read_control(&control.0[..length]), expected);
        for cut in 0..length {
            read_control(&control.0[..cut]);
        }
        for byte in 0..=u8::MAX {
            read_control(&[byte; 112]);
        }
    }
}
