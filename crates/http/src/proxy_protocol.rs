//! The PROXY protocol, versions 1 and 2: what stands before a connection's first byte and says whom a proxy speaks for.
//! It follows HAProxy's specification (doc/proxy-protocol.txt); section numbers are those of that document. Whether a
//! connection must begin with it is configured, never guessed (section 5).
//!
//! ```text
//! 1  PROXY TCP4 192.0.2.1 198.51.100.1 56324 443\r\n
//!
//! 2  ┌───────────┬─────┬─────┬────────┬───────────────────────────┬─────────────────────────────┐
//!    │ signature │ 2,1 │ 1,1 │ length │ source, destination,      │ type, length, value         │
//!    │ 12 bytes  │  1  │  1  │   2    │ their ports  12, 36, 216  │  1      2       length  ... │
//!    └───────────┴─────┴─────┴────────┴───────────────────────────┴─────────────────────────────┘
//! ```

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::limits::{PROXY_V1_BYTES_MAX, PROXY_V2_BYTES_MAX};
use crate::refusal::{Parsed, Refusal};
use crate::write::HeadWriter;

/// What stands at the start of a connection, borrowed from the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProxyHeader<'b> {
    /// Whom the proxy speaks for.
    pub origin: Origin<'b>,
    /// The host name the client asked for, in TLS its server name (2.2.2).
    pub authority: Option<&'b str>,
    /// The application protocol negotiated with the client (2.2.1).
    pub alpn: Option<&'b [u8]>,
    /// Present if the proxy says whether TLS was spoken with the client (2.2.6).
    pub tls: Option<ClientTls>,
    /// Length of the header in the input.
    pub bytes: usize,
}

/// Whom a connection was made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin<'b> {
    /// Nobody: the proxy connects on its own behalf, to check our health. The connection's own addresses count.
    Local,
    /// Somebody whose addresses are not told, or not in a form we know. The connection's own addresses count.
    Unknown,
    /// A TCP connection. Both addresses are of the same family when read.
    Ip {
        /// The client.
        source: SocketAddr,
        /// What it connected to.
        destination: SocketAddr,
    },
    /// A connection over a Unix stream socket: paths without the padding, often empty.
    Unix {
        /// The client.
        source: &'b [u8],
        /// What it connected to.
        destination: &'b [u8],
    },
}

/// What a proxy says of TLS between the client and itself (2.2.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientTls {
    /// The client spoke TLS.
    pub spoken: bool,
    /// The client presented a certificate, on this connection or earlier in its session.
    pub certificate: bool,
    /// That certificate was verified, and found good.
    pub verified: bool,
}

/// `\r\n\r\n\0\r\nQUIT\n` (2.2).
const SIGNATURE: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";

/// Signature, version and command, family and transport, length.
const FIXED_BYTES: usize = 16;

/// A Unix path with its padding (2.2).
const UNIX_BYTES: usize = 108;

const TYPE_ALPN: u8 = 0x01;
const TYPE_AUTHORITY: u8 = 0x02;
const TYPE_CRC32C: u8 = 0x03;
const TYPE_SSL: u8 = 0x20;

const NO_HEADER: Refusal = Refusal::bad("no PROXY protocol header");
const MALFORMED: Refusal = Refusal::bad("malformed PROXY protocol header");

/// Reads the header at the start of a connection, in either version. `Partial` wants the same bytes again with more
/// behind them; within [`PROXY_V2_BYTES_MAX`] bytes it turns into one of the other two. After a refusal the connection
/// is closed without an answer (2.1): the proxy spoke, not the client.
pub fn parse(input: &[u8]) -> Parsed<ProxyHeader<'_>> {
    match input.first() {
        None => Parsed::Partial,
        Some(b'P') => parse_v1(input),
        Some(b'\r') => parse_v2(input),
        Some(_) => Parsed::Refused(NO_HEADER),
    }
}

/// Writes a header of version 1; `None` if it does not fit: [`PROXY_V1_BYTES_MAX`] bytes always do. What this version
/// has no words for, Unix sockets and connections of our own, is `UNKNOWN`, which a receiver may refuse (2.1).
pub fn write_v1(origin: &Origin<'_>, out: &mut [u8]) -> Option<usize> {
    let mut writer = HeadWriter::new(out);
    match pair_of(origin) {
        Some(pair) => {
            let family = match pair.source.1 {
                IpAddr::V4(_) => "TCP4",
                IpAddr::V6(_) => "TCP6",
            };
            let ((source_port, source), (port, destination)) = (pair.source, pair.destination);
            writer.display(format_args!(
                "PROXY {family} {source} {destination} {source_port} {port}\r\n"
            ))
        }
        None => writer.raw(b"PROXY UNKNOWN\r\n"),
    };
    writer.finish()
}

/// Writes a header of version 2 with the host name the client asked for, if there is one; `None` if it does not fit
/// into `out` or a Unix path is longer than such paths can be.
pub fn write_v2(origin: &Origin<'_>, authority: Option<&str>, out: &mut [u8]) -> Option<usize> {
    const LOCAL: u8 = 0x20;
    const PROXY: u8 = 0x21;
    let pair = pair_of(origin);
    let (command, family, address_bytes) = match (origin, &pair) {
        (Origin::Local, _) => (LOCAL, 0x00, 0),
        (Origin::Unix { .. }, _) => (PROXY, 0x31, 2 * UNIX_BYTES),
        (_, Some(pair)) if pair.source.1.is_ipv4() => (PROXY, 0x11, 12),
        (_, Some(_)) => (PROXY, 0x21, 36),
        (_, None) => (PROXY, 0x00, 0),
    };
    let authority = authority.unwrap_or("").as_bytes();
    let tlv_bytes = match authority.len() {
        0 => 0,
        bytes => 3 + bytes,
    };
    let length = u16::try_from(address_bytes + tlv_bytes).ok()?;
    let mut writer = HeadWriter::new(out);
    writer
        .raw(SIGNATURE)
        .raw(&[command, family])
        .raw(&length.to_be_bytes());
    match (origin, pair_of(origin)) {
        (
            Origin::Unix {
                source,
                destination,
            },
            _,
        ) => {
            writer.raw(&padded(source)?).raw(&padded(destination)?);
        }
        (_, Some(pair)) => pair.write(&mut writer),
        (_, None) => {}
    }
    if tlv_bytes > 0 {
        // Below 2^16: `length`, which contains it, is.
        let bytes = authority.len() as u16;
        writer
            .raw(&[TYPE_AUTHORITY])
            .raw(&bytes.to_be_bytes())
            .raw(authority);
    }
    writer.finish()
}

/// 2.1: a line that ends with CRLF, of at most 107 bytes.
fn parse_v1(input: &[u8]) -> Parsed<ProxyHeader<'_>> {
    const PREFIX: &[u8] = b"PROXY ";
    let window = &input[..input.len().min(PROXY_V1_BYTES_MAX)];
    let Some(rest) = window.strip_prefix(PREFIX) else {
        return absent_unless(PREFIX.starts_with(window));
    };
    let Some(line_feed) = memchr::memchr(b'\n', rest) else {
        return match window.len() {
            PROXY_V1_BYTES_MAX => Parsed::Refused(Refusal::bad("PROXY protocol line too long")),
            _ => Parsed::Partial,
        };
    };
    let origin = rest[..line_feed]
        .strip_suffix(b"\r")
        .and_then(origin_of_line);
    match origin {
        Some(origin) => Parsed::Complete(ProxyHeader {
            origin,
            authority: None,
            alpn: None,
            tls: None,
            bytes: PREFIX.len() + line_feed + 1,
        }),
        None => Parsed::Refused(MALFORMED),
    }
}

fn absent_unless<T>(may_come: bool) -> Parsed<T> {
    if may_come {
        return Parsed::Partial;
    }
    Parsed::Refused(NO_HEADER)
}

/// `TCP4 source destination port port`, with exactly one space between two words (2.1).
fn origin_of_line(line: &[u8]) -> Option<Origin<'static>> {
    // Whatever stands behind UNKNOWN is to be ignored.
    if line == b"UNKNOWN" || line.starts_with(b"UNKNOWN ") {
        return Some(Origin::Unknown);
    }
    let mut words = str::from_utf8(line).ok()?.split(' ');
    let address: fn(&str) -> Option<IpAddr> = match words.next()? {
        "TCP4" => |word| word.parse::<Ipv4Addr>().ok().map(IpAddr::V4),
        "TCP6" => |word| word.parse::<Ipv6Addr>().ok().map(IpAddr::V6),
        _ => return None,
    };
    let (source, destination) = (address(words.next()?)?, address(words.next()?)?);
    let (source_port, port) = (port(words.next()?)?, port(words.next()?)?);
    match words.next() {
        Some(_) => None,
        None => Some(Origin::Ip {
            source: SocketAddr::new(source, source_port),
            destination: SocketAddr::new(destination, port),
        }),
    }
}

/// 2.1: decimal, without leading zeros.
fn port(word: &str) -> Option<u16> {
    let is_plain = word.bytes().all(|byte| byte.is_ascii_digit());
    let leads_with_zero = word.len() > 1 && word.starts_with('0');
    (is_plain && !leads_with_zero).then(|| word.parse().ok())?
}

/// 2.2: so many bytes behind the fixed part as it says.
fn parse_v2(input: &[u8]) -> Parsed<ProxyHeader<'_>> {
    let seen = &input[..input.len().min(SIGNATURE.len())];
    if !SIGNATURE.starts_with(seen) {
        return Parsed::Refused(NO_HEADER);
    }
    let Some((fixed, rest)) = input.split_first_chunk::<FIXED_BYTES>() else {
        return Parsed::Partial;
    };
    let [.., version_and_command, family_and_transport, high, low] = *fixed;
    let length = usize::from(u16::from_be_bytes([high, low]));
    let bytes = FIXED_BYTES + length;
    let layout = match Layout::of(version_and_command, family_and_transport) {
        Some(layout) if layout.address_bytes() <= length => layout,
        _ => return Parsed::Refused(MALFORMED),
    };
    if bytes > PROXY_V2_BYTES_MAX {
        return Parsed::Refused(Refusal::bad("PROXY protocol header too long"));
    }
    let Some(body) = rest.get(..length) else {
        return Parsed::Partial;
    };
    let (addresses, vectors) = body.split_at(layout.address_bytes());
    let mut header = ProxyHeader {
        origin: layout.origin(addresses),
        authority: None,
        alpn: None,
        tls: None,
        bytes,
    };
    if !layout.has_vectors() {
        return Parsed::Complete(header);
    }
    header
        .note_vectors(vectors, &input[..bytes])
        .map(|()| header)
        .into()
}

/// What the bytes behind the fixed part are, by command, family and transport.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Layout {
    Local,
    Unspecified,
    Ipv4,
    Ipv6,
    Unix,
}

impl Layout {
    /// `None` for what must be refused (2.2). Datagrams cannot be what we accepted: a receiver treats what it does not
    /// implement as unspecified.
    fn of(version_and_command: u8, family_and_transport: u8) -> Option<Layout> {
        match (version_and_command, family_and_transport) {
            (0x20, _) => Some(Layout::Local),
            (0x21, 0x11) => Some(Layout::Ipv4),
            (0x21, 0x21) => Some(Layout::Ipv6),
            (0x21, 0x31) => Some(Layout::Unix),
            (0x21, other) if other >> 4 <= 3 && other & 0xf <= 2 => Some(Layout::Unspecified),
            _ => None,
        }
    }

    fn address_bytes(self) -> usize {
        match self {
            Layout::Local | Layout::Unspecified => 0,
            Layout::Ipv4 => 2 * (4 + 2),
            Layout::Ipv6 => 2 * (16 + 2),
            Layout::Unix => 2 * UNIX_BYTES,
        }
    }

    /// The block of a LOCAL command is to be discarded; that of an unspecified family may begin with addresses of which
    /// we do not know the length.
    fn has_vectors(self) -> bool {
        !matches!(self, Layout::Local | Layout::Unspecified)
    }

    fn origin(self, addresses: &[u8]) -> Origin<'_> {
        match self {
            Layout::Local => Origin::Local,
            Layout::Unspecified => Origin::Unknown,
            Layout::Ipv4 => ip_origin::<4>(addresses),
            Layout::Ipv6 => ip_origin::<16>(addresses),
            Layout::Unix => {
                let (source, destination) = addresses.split_at(UNIX_BYTES);
                Origin::Unix {
                    source: path(source),
                    destination: path(destination),
                }
            }
        }
    }
}

/// Source, destination, source port, destination port. `Unknown` cannot come of it: the caller has cut `addresses` to
/// this length.
fn ip_origin<const BYTES: usize>(addresses: &[u8]) -> Origin<'static>
where
    IpAddr: From<[u8; BYTES]>,
{
    let split = || {
        let (source, rest) = addresses.split_first_chunk::<BYTES>()?;
        let (destination, rest) = rest.split_first_chunk::<BYTES>()?;
        let (source_port, rest) = rest.split_first_chunk::<2>()?;
        let (port, _) = rest.split_first_chunk::<2>()?;
        let socket =
            |address: [u8; BYTES], port| SocketAddr::new(address.into(), u16::from_be_bytes(port));
        Some(Origin::Ip {
            source: socket(*source, *source_port),
            destination: socket(*destination, *port),
        })
    };
    split().unwrap_or(Origin::Unknown)
}

/// A path ends at its first NUL; an abstract name begins with one and ends before the padding.
fn path(padded: &[u8]) -> &[u8] {
    let bytes = match padded.first() {
        Some(0) => padded
            .iter()
            .rposition(|&byte| byte != 0)
            .map_or(0, |last| last + 1),
        _ => memchr::memchr(0, padded).unwrap_or(padded.len()),
    };
    &padded[..bytes]
}

fn padded(path: &[u8]) -> Option<[u8; UNIX_BYTES]> {
    let mut padded = [0; UNIX_BYTES];
    padded.get_mut(..path.len())?.copy_from_slice(path);
    Some(padded)
}

impl<'b> ProxyHeader<'b> {
    /// Takes note of the vectors behind the addresses (2.2). Those we know may stand there once, lest two receivers
    /// read two different ones; the others are skipped. `header` is the whole header.
    fn note_vectors(&mut self, vectors: &'b [u8], header: &[u8]) -> Result<(), Refusal> {
        let mut has_checksum = false;
        let mut rest = vectors;
        while !rest.is_empty() {
            let Some((kind, value, behind)) = vector(rest) else {
                return Err(MALFORMED);
            };
            let is_repeated = match kind {
                TYPE_ALPN => self.alpn.replace(value).is_some(),
                TYPE_AUTHORITY => {
                    let authority = str::from_utf8(value).map_err(|_| MALFORMED)?;
                    self.authority.replace(authority).is_some()
                }
                TYPE_SSL => {
                    let tls = ClientTls::parse(value).ok_or(MALFORMED)?;
                    self.tls.replace(tls).is_some()
                }
                TYPE_CRC32C => {
                    let at = header.len() - behind.len() - value.len();
                    verify_checksum(header, at, value)?;
                    std::mem::replace(&mut has_checksum, true)
                }
                _ => false,
            };
            if is_repeated {
                return Err(Refusal::bad("a repeated vector in a PROXY protocol header"));
            }
            rest = behind;
        }
        Ok(())
    }
}

/// Type, value, and what follows.
fn vector(text: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&[kind, high, low], rest) = text.split_first_chunk::<3>()?;
    let (value, behind) = rest.split_at_checked(usize::from(u16::from_be_bytes([high, low])))?;
    Some((kind, value, behind))
}

impl ClientTls {
    /// `client`, a set of bits, and `verify`, 0 for a good certificate; vectors of a second level follow (2.2.6).
    fn parse(value: &[u8]) -> Option<ClientTls> {
        let (&[client, verify @ ..], mut rest) = value.split_first_chunk::<5>()?;
        while !rest.is_empty() {
            (_, _, rest) = vector(rest)?;
        }
        let certificate = client & 0x06 != 0;
        Some(ClientTls {
            spoken: client & 0x01 != 0,
            certificate,
            verified: certificate && verify == [0; 4],
        })
    }
}

/// 2.2.3: the sum of the header with zeros in the place of the sum, which stands at `at`.
fn verify_checksum(header: &[u8], at: usize, value: &[u8]) -> Result<(), Refusal> {
    let Ok(announced) = <[u8; 4]>::try_from(value) else {
        return Err(MALFORMED);
    };
    let mut sum = crc32c(!0, &header[..at]);
    sum = crc32c(sum, &[0; 4]);
    sum = crc32c(sum, &header[at + 4..]);
    if !sum != u32::from_be_bytes(announced) {
        return Err(Refusal::bad(
            "a PROXY protocol header with a wrong checksum",
        ));
    }
    Ok(())
}

/// CRC32c (RFC 4960 Appendix B) without its first and last inversion. A byte at a time is enough for what stands once
/// on a connection.
fn crc32c(sum: u32, bytes: &[u8]) -> u32 {
    bytes.iter().fold(sum, |sum, &byte| {
        CRC32C[usize::from(sum as u8 ^ byte)] ^ (sum >> 8)
    })
}

static CRC32C: [u32; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut sum = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            sum = (sum >> 1) ^ ((sum & 1) * 0x82f6_3b78);
            bit += 1;
        }
        table[byte] = sum;
        byte += 1;
    }
    table
};

/// Ports and addresses of one family, as both versions want them.
struct Pair {
    source: (u16, IpAddr),
    destination: (u16, IpAddr),
}

/// What a listener for both families calls `::ffff:192.0.2.1` is an IPv4 client; if only one of the two is IPv4 it is
/// written in that form.
fn pair_of(origin: &Origin<'_>) -> Option<Pair> {
    let Origin::Ip {
        source,
        destination,
    } = origin
    else {
        return None;
    };
    let plain = |socket: &SocketAddr| (socket.port(), socket.ip().to_canonical());
    let mapped = |socket: &SocketAddr| match socket.ip() {
        IpAddr::V4(address) => (socket.port(), IpAddr::V6(address.to_ipv6_mapped())),
        IpAddr::V6(_) => (socket.port(), socket.ip()),
    };
    let are_both_ipv4 = plain(source).1.is_ipv4() && plain(destination).1.is_ipv4();
    let address = if are_both_ipv4 { plain } else { mapped };
    Some(Pair {
        source: address(source),
        destination: address(destination),
    })
}

impl Pair {
    fn write(&self, writer: &mut HeadWriter<'_>) {
        for (_, address) in [self.source, self.destination] {
            match address {
                IpAddr::V4(address) => writer.raw(&address.octets()),
                IpAddr::V6(address) => writer.raw(&address.octets()),
            };
        }
        for (port, _) in [self.source, self.destination] {
            writer.raw(&port.to_be_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_that_of_the_standard() {
        // The check value of CRC-32C in catalogues of such sums, and two of RFC 3720 B.4.
        let thirty_two = |byte| [byte; 32];
        assert_eq!(!crc32c(!0, b"123456789"), 0xe306_9283);
        assert_eq!(!crc32c(!0, &thirty_two(0)), 0x8a91_36aa);
        assert_eq!(!crc32c(!0, &thirty_two(0xff)), 0x62a8_ab43);
    }

    #[test]
    fn a_header_is_written_as_the_specification_has_it() {
        let ip = |source: &str, destination: &str| Origin::Ip {
            source: source.parse().expect("an address"),
            destination: destination.parse().expect("an address"),
        };
        let rows = [
            (
                ip("192.168.0.1:56324", "192.168.0.11:443"),
                "PROXY TCP4 192.168.0.1 192.168.0.11 56324 443\r\n",
            ),
            (
                ip("[2001:db8::1]:1", "[2001:db8::2]:0"),
                "PROXY TCP6 2001:db8::1 2001:db8::2 1 0\r\n",
            ),
            (
                ip("[::ffff:192.0.2.1]:1", "192.0.2.2:2"),
                "PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\n",
            ),
            (
                ip("192.0.2.1:1", "[2001:db8::2]:2"),
                "PROXY TCP6 ::ffff:192.0.2.1 2001:db8::2 1 2\r\n",
            ),
            (Origin::Local, "PROXY UNKNOWN\r\n"),
            (Origin::Unknown, "PROXY UNKNOWN\r\n"),
            (
                Origin::Unix {
                    source: b"",
                    destination: b"/a",
                },
                "PROXY UNKNOWN\r\n",
            ),
        ];
        for (origin, line) in rows {
            let mut out = [0; PROXY_V1_BYTES_MAX];
            let bytes = write_v1(&origin, &mut out).expect("it is the longest");
            assert_eq!(str::from_utf8(&out[..bytes]), Ok(line));
            assert_eq!(write_v1(&origin, &mut out[..bytes - 1]), None);
        }
    }

    #[test]
    fn the_longest_line_fits_its_bound() {
        let far = "[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:65535"
            .parse()
            .expect("an address");
        let origin = Origin::Ip {
            source: far,
            destination: far,
        };
        let mut out = [0; PROXY_V1_BYTES_MAX];
        assert_eq!(write_v1(&origin, &mut out), Some(104));
    }

    #[test]
    fn a_path_that_cannot_be_one_is_not_written() {
        let long = [b'a'; UNIX_BYTES + 1];
        let mut out = [0; 512];
        let origin = Origin::Unix {
            source: &long[1..],
            destination: b"",
        };
        assert_eq!(
            write_v2(&origin, None, &mut out),
            Some(FIXED_BYTES + 2 * UNIX_BYTES)
        );
        let origin = Origin::Unix {
            source: &long,
            destination: b"",
        };
        assert_eq!(write_v2(&origin, None, &mut out), None);
    }

    #[test]
    fn an_authority_too_long_for_its_length_is_not_written() {
        let long = "a".repeat(usize::from(u16::MAX));
        let mut out = vec![0; 1 << 17];
        assert_eq!(write_v2(&Origin::Unknown, Some(&long), &mut out), None);
    }
}
