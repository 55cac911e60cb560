//! Test datagrams as complete frames for senders that bypass the network stack: Ethernet (IEEE 802.3), IPv4 (RFC 791)
//! or IPv6 (RFC 8200), and UDP (RFC 768).
//!
//! ```text
//!  0          14            34 or 54   42 or 62
//!  +----------+-------------+----------+---------+------
//!  | Ethernet | IPv4 / IPv6 | UDP      | header  | pattern
//!  +----------+-------------+----------+---------+------
//! ```

use std::net::{IpAddr, SocketAddr};

use crate::header::{HEADER_BYTES, Header};

/// Length of an Ethernet header without VLAN tags.
pub const ETHERNET_BYTES: usize = 14;
/// Length of an IPv4 header without options.
const IPV4_BYTES: usize = 20;
const IPV6_BYTES: usize = 40;
const UDP_BYTES: usize = 8;
/// Offset of the sequence number in a [`Header`].
const SEQUENCE_AT: usize = 8;

/// Protocol number of UDP (IPv4 protocol, IPv6 next header).
const UDP: u8 = 17;
/// TTL and hop limit, as Linux sets them by default.
const HOPS: u8 = 64;

/// Source and target of a frame. Both IP addresses must have the same family.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Endpoints {
    /// MAC address of the sending interface.
    pub source_mac: [u8; 6],
    /// MAC address of the next hop: the target or a router.
    pub target_mac: [u8; 6],
    /// Source address and port.
    pub source: SocketAddr,
    /// Target address and port.
    pub target: SocketAddr,
}

/// A frame that contains a test datagram with sequence number 0.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Frame {
    /// The whole frame without its check sequence, which the interface adds.
    pub bytes: Vec<u8>,
    /// Offset of the UDP payload.
    pub payload_at: usize,
    /// Offset of the sequence number.
    pub sequence_at: usize,
    /// Offset of the UDP checksum.
    pub checksum_at: usize,
    /// Ones' complement sum of the data under the checksum, not inverted.
    pub checksum_sum: u16,
}

/// Bytes before the UDP payload for this address family, including the Ethernet header.
pub fn head_bytes(target: IpAddr) -> usize {
    let network = match target {
        IpAddr::V4(_) => IPV4_BYTES,
        IpAddr::V6(_) => IPV6_BYTES,
    };
    ETHERNET_BYTES + network + UDP_BYTES
}

impl Frame {
    /// Builds the frame of a datagram with `size` bytes of payload that starts with `header`. `None` if the address
    /// families differ, or if `size` is below [`HEADER_BYTES`] or too large for a datagram.
    pub fn new(ends: &Endpoints, header: &Header, size: u16) -> Option<Frame> {
        let length = u16::try_from(UDP_BYTES).ok()?.checked_add(size)?;
        let mut bytes = Vec::with_capacity(head_bytes(ends.target.ip()) + usize::from(size));
        bytes.extend(ends.target_mac);
        bytes.extend(ends.source_mac);
        let addresses = network(ends, length, &mut bytes)?;
        let udp_at = bytes.len();
        bytes.extend(ends.source.port().to_be_bytes());
        bytes.extend(ends.target.port().to_be_bytes());
        bytes.extend(length.to_be_bytes());
        bytes.extend([0; 2]);
        let payload_at = bytes.len();
        let header = Header {
            sequence: 0,
            ..*header
        };
        bytes.extend(header.bytes());
        let pattern = usize::from(size).checked_sub(HEADER_BYTES)?;
        bytes.extend((0..pattern).map(|at| at as u8));
        // The pseudo header of RFC 768. That of RFC 8200 section 8.1 has the same sum.
        let pseudo = [u16::from(UDP), length].map(u16::to_be_bytes);
        let parts = [&addresses[..], pseudo.as_flattened(), &bytes[udp_at..]];
        let checksum_sum = sum(parts);
        let checksum_at = udp_at + 6;
        // A checksum of 0 means "no checksum", so it is sent as all ones (RFC 768).
        let checksum = match !checksum_sum {
            0 => u16::MAX,
            other => other,
        };
        bytes[checksum_at..checksum_at + 2].copy_from_slice(&checksum.to_be_bytes());
        Some(Frame {
            bytes,
            payload_at,
            sequence_at: payload_at + SEQUENCE_AT,
            checksum_at,
            checksum_sum,
        })
    }
}

/// Appends the EtherType and the IP header for `length` bytes of UDP, and returns both addresses.
fn network(ends: &Endpoints, length: u16, bytes: &mut Vec<u8>) -> Option<Vec<u8>> {
    match (ends.source.ip(), ends.target.ip()) {
        (IpAddr::V4(source), IpAddr::V4(target)) => {
            let addresses = [source.octets(), target.octets()].concat();
            bytes.extend([0x08, 0x00]);
            let total = u16::try_from(IPV4_BYTES).ok()?.checked_add(length)?;
            let mut header = vec![0x45, 0];
            header.extend(total.to_be_bytes());
            // Identification 0, Don't Fragment set (RFC 6864 section 4.1).
            header.extend([0, 0, 0x40, 0, HOPS, UDP, 0, 0]);
            header.extend(&addresses);
            let checksum = !sum([&header[..]]);
            header[10..12].copy_from_slice(&checksum.to_be_bytes());
            bytes.extend(header);
            Some(addresses)
        }
        (IpAddr::V6(source), IpAddr::V6(target)) => {
            let addresses = [source.octets(), target.octets()].concat();
            bytes.extend([0x86, 0xdd]);
            bytes.extend([0x60, 0, 0, 0]);
            bytes.extend(length.to_be_bytes());
            bytes.extend([UDP, HOPS]);
            bytes.extend(&addresses);
            Some(addresses)
        }
        (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => None,
    }
}

/// Ones' complement sum (RFC 1071). Every part but the last must have an even length.
fn sum<'bytes>(parts: impl IntoIterator<Item = &'bytes [u8]>) -> u16 {
    let of_part = |part: &[u8]| -> u64 {
        let pairs = part.chunks(2).map(|pair| {
            let low = pair.get(1).copied().unwrap_or(0);
            u64::from(u16::from_be_bytes([pair[0], low]))
        });
        pairs.sum()
    };
    let mut sum: u64 = parts.into_iter().map(of_part).sum();
    while sum > u64::from(u16::MAX) {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::header::{Flow, Kind};

    fn ends(source: &str, target: &str) -> Endpoints {
        Endpoints {
            source_mac: [2, 0, 0, 0, 0, 1],
            target_mac: [2, 0, 0, 0, 0, 2],
            source: source.parse().unwrap(),
            target: target.parse().unwrap(),
        }
    }

    const HEADER: Header = Header {
        kind: Kind::Data,
        flow: Flow { run: 7, number: 3 },
        sequence: 9,
        sent: 0,
    };

    #[test]
    fn smallest_datagram_fits_minimum_ethernet_frame() {
        let ends = ends("10.0.0.1:1000", "10.0.0.2:9");
        let frame = Frame::new(&ends, &HEADER, 18).unwrap();
        // 64 bytes with the check sequence.
        assert_eq!((frame.bytes.len(), frame.payload_at), (60, 42));
        assert_eq!(
            frame.bytes[..14],
            *b"\x02\0\0\0\0\x02\x02\0\0\0\0\x01\x08\0"
        );
        // RFC 791 section 3.1, field by field.
        let ip = b"\x45\0\0\x2e\0\0\x40\0\x40\x11\x26\xbd\x0a\0\0\x01\x0a\0\0\x02";
        assert_eq!(frame.bytes[14..34], ip[..]);
        let read = Header::read(&frame.bytes[42..]).unwrap();
        assert_eq!((read.sequence, read.flow), (0, HEADER.flow));
    }

    #[test]
    fn invalid_size_or_address_pair_has_no_frame() {
        let four = ends("10.0.0.1:1", "10.0.0.2:2");
        assert_eq!(Frame::new(&four, &HEADER, 17), None);
        assert_eq!(Frame::new(&four, &HEADER, 65_508), None);
        let both = ends("10.0.0.1:1", "[::1]:2");
        assert_eq!(Frame::new(&both, &HEADER, 18), None);
    }

    proptest! {
        /// Verifies like a receiver: the sum of all words with the checksum in place is all ones.
        #[test]
        fn ip_and_udp_checksums_are_valid(size in 18u16..1500, run: u32, port: u16, six: bool) {
            let ends = match six {
                false => Endpoints { source: SocketAddr::new([10, 1, 2, 3].into(), port), ..ends("10.0.0.1:1", "192.0.2.7:9") },
                true => ends("[fd00::1]:77", "[fd00::ffff:2]:9"),
            };
            let header = Header { flow: Flow { run, number: 1 }, ..HEADER };
            let frame = Frame::new(&ends, &header, size).unwrap();
            let udp_at = frame.payload_at - UDP_BYTES;
            let (addresses, network_sum) = match six {
                false => (&frame.bytes[26..34], sum([&frame.bytes[14..34]])),
                true => (&frame.bytes[22..54], u16::MAX),
            };
            prop_assert_eq!(network_sum, u16::MAX);
            let pseudo = [[0, UDP], (size + 8).to_be_bytes()];
            let whole = sum([addresses, pseudo.as_flattened(), &frame.bytes[udp_at..]]);
            prop_assert_eq!(whole, u16::MAX);
            prop_assert_eq!(frame.bytes.len(), head_bytes(ends.target.ip()) + usize::from(size));
        }
    }
}
