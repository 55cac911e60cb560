//! Lists TCP and UDP sockets by sock_diag(7).

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use netlink_packet_sock_diag::constants::{AF_INET, AF_INET6};
use netlink_sys::protocols::NETLINK_SOCK_DIAG;

use super::netlink::{self, Raw};

/// SOCK_DIAG_BY_FAMILY of include/uapi/linux/sock_diag.h.
const BY_FAMILY: u16 = 20;
/// Size of `struct inet_diag_req_v2`.
const QUESTION_BYTES: usize = 56;
/// Size of `struct inet_diag_msg`; attributes follow it.
const ANSWER_BYTES: usize = 72;
/// Attributes of include/uapi/linux/inet_diag.h; the request has bit N - 1 for attribute N.
pub(super) const INFO: u16 = 2;
pub(super) const MEMORY: u16 = 7;

pub(super) struct Socket<'answer> {
    /// State (include/net/tcp_states.h).
    pub state: u8,
    /// Local address.
    pub local: SocketAddr,
    /// Remote address; zeros without one.
    pub peer: SocketAddr,
    /// Milliseconds until the timer expires.
    pub expires: u32,
    /// Unread bytes.
    pub unread: u32,
    /// Socket inode; 0 without a file descriptor.
    pub inode: u64,
    attributes: &'answer [u8],
}

impl Socket<'_> {
    pub(super) fn attribute(&self, kind: u16) -> Option<&[u8]> {
        netlink::attribute(self.attributes, kind)
    }
}

/// Lists the sockets of a protocol in the given states in the thread's network namespace, IPv4 and IPv6.
pub(super) fn list<T>(
    protocol: u8,
    states: u32,
    attribute: u16,
    keep: impl Fn(&Socket<'_>) -> Option<T>,
) -> io::Result<Vec<T>> {
    let mut kept = of_family(AF_INET, protocol, states, attribute, &keep)?;
    // A kernel without IPv6 rejects the request.
    kept.extend(of_family(AF_INET6, protocol, states, attribute, &keep).unwrap_or_default());
    Ok(kept)
}

fn of_family<T>(
    family: u8,
    protocol: u8,
    states: u32,
    attribute: u16,
    keep: impl Fn(&Socket<'_>) -> Option<T>,
) -> io::Result<Vec<T>> {
    let mut bytes = vec![0; QUESTION_BYTES];
    bytes[..3].copy_from_slice(&[family, protocol, 1 << (attribute - 1)]);
    bytes[4..8].copy_from_slice(&states.to_ne_bytes());
    let question = Raw {
        kind: BY_FAMILY,
        bytes,
    };
    netlink::list(NETLINK_SOCK_DIAG, &question, |answer| {
        keep(&socket(&answer)?)
    })
}

fn socket(answer: &Raw) -> Option<Socket<'_>> {
    (answer.kind == BY_FAMILY).then_some(())?;
    let (header, attributes) = answer.bytes.split_at_checked(ANSWER_BYTES)?;
    let word = |at: usize| number(header, at);
    let port = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
    let address = |at: usize| address(header[0], &header[at..at + 16]);
    Some(Socket {
        state: header[1],
        local: SocketAddr::new(address(8)?, port(4)),
        peer: SocketAddr::new(address(24)?, port(6)),
        expires: word(52)?,
        unread: word(56)?,
        inode: u64::from(word(68)?),
        attributes,
    })
}

/// Parses an address; IPv4-mapped IPv6 addresses become IPv4.
fn address(family: u8, bytes: &[u8]) -> Option<IpAddr> {
    if family == AF_INET {
        let bytes: [u8; 4] = bytes.get(..4)?.try_into().ok()?;
        return Some(IpAddr::V4(Ipv4Addr::from(bytes)));
    }
    let bytes: [u8; 16] = bytes.try_into().ok()?;
    Some(IpAddr::V6(Ipv6Addr::from(bytes)).to_canonical())
}

/// Reads a u32 in native byte order.
pub(super) fn number(bytes: &[u8], at: usize) -> Option<u32> {
    let word = bytes.get(at..at + 4)?;
    Some(u32::from_ne_bytes(word.try_into().ok()?))
}

/// Reads a u64 in native byte order.
pub(super) fn long(bytes: &[u8], at: usize) -> Option<u64> {
    let word = bytes.get(at..at + 8)?;
    Some(u64::from_ne_bytes(word.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sock_diag_reply_is_parsed_or_too_short() {
        let mut bytes = vec![0; ANSWER_BYTES];
        bytes[..2].copy_from_slice(&[AF_INET, 6]);
        bytes[4..8].copy_from_slice(&[0x1F, 0x90, 0xC3, 0x50]);
        bytes[8..12].copy_from_slice(&[10, 0, 0, 1]);
        bytes[24..28].copy_from_slice(&[10, 0, 0, 2]);
        bytes[52..56].copy_from_slice(&59_000u32.to_ne_bytes());
        bytes[68..72].copy_from_slice(&777u32.to_ne_bytes());
        let whole = Raw {
            kind: BY_FAMILY,
            bytes,
        };
        let found = socket(&whole).expect("a socket");
        assert_eq!(
            (found.local.to_string(), found.peer.to_string()),
            ("10.0.0.1:8080".to_owned(), "10.0.0.2:50000".to_owned())
        );
        assert_eq!((found.state, found.expires, found.inode), (6, 59_000, 777));
        for end in 0..ANSWER_BYTES {
            let cut = Raw {
                kind: BY_FAMILY,
                bytes: whole.bytes[..end].to_vec(),
            };
            assert!(socket(&cut).is_none(), "cut at {end}");
        }
    }
}
