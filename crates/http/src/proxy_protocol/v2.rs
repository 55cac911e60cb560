//! Version 2 of the header: binary (section 2.2).

use std::net::{IpAddr, SocketAddr};

use super::header::{ClientTls, MALFORMED, NO_HEADER, Origin, ProxyHeader, pair_of};
use crate::limits::PROXY_V2_BYTES_MAX;
use crate::refusal::{Parsed, Refusal};
use crate::write::HeadWriter;

const SIGNATURE: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";

/// Signature, version and command, family and transport, length.
const FIXED_BYTES: usize = 16;

/// Unix path with its padding (2.2).
const UNIX_BYTES: usize = 108;

const TYPE_ALPN: u8 = 0x01;
const TYPE_AUTHORITY: u8 = 0x02;
const TYPE_CRC32C: u8 = 0x03;
const TYPE_SSL: u8 = 0x20;

/// Writes a header of version 2, with the host name that the client requested, if any; `None` if it does not fit into
/// `out` or if a Unix path is too long.
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
        // Below 2^16, because `length`, which includes it, is.
        let bytes = authority.len() as u16;
        writer
            .raw(&[TYPE_AUTHORITY])
            .raw(&bytes.to_be_bytes())
            .raw(authority);
    }
    writer.finish()
}

/// Parses the fixed part and the number of bytes that it announces (2.2).
pub(super) fn parse_v2(input: &[u8]) -> Parsed<ProxyHeader<'_>> {
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
    if !layout.has_tlvs() {
        return Parsed::Complete(header);
    }
    header
        .read_tlvs(vectors, &input[..bytes])
        .map(|()| header)
        .into()
}

/// Layout of the bytes after the fixed part, by command, family and transport.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Layout {
    Local,
    Unspecified,
    Ipv4,
    Ipv6,
    Unix,
}

impl Layout {
    /// `None` for values that must be refused (2.2). Datagrams cannot describe a TCP connection; a receiver treats a
    /// family that it does not implement as unspecified.
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

    /// The data of LOCAL must be discarded; that of an unspecified family may begin with addresses of unknown length.
    fn has_tlvs(self) -> bool {
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

/// Source, destination, source port, destination port. Never `Unknown`: the caller cut `addresses` to this length.
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

/// A path ends at its first NUL; an abstract name begins with NUL and ends before the padding.
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

/// Splits off one TLV: type, value, rest.
fn split_tlv(text: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&[kind, high, low], rest) = text.split_first_chunk::<3>()?;
    let (value, behind) = rest.split_at_checked(usize::from(u16::from_be_bytes([high, low])))?;
    Some((kind, value, behind))
}

/// Verifies the checksum of the header, computed with zeros in place of the checksum itself at `at` (2.2.3).
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

/// CRC32c (RFC 4960 Appendix B) without the first and last inversion, one byte at a time: it runs once per connection.
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

impl<'b> ProxyHeader<'b> {
    /// Reads the TLVs after the addresses (2.2). Known types must not be repeated, since two receivers could use
    /// different ones; unknown types are skipped. `header` is the whole header.
    fn read_tlvs(&mut self, vectors: &'b [u8], header: &[u8]) -> Result<(), Refusal> {
        let mut has_checksum = false;
        let mut rest = vectors;
        while !rest.is_empty() {
            let Some((kind, value, behind)) = split_tlv(rest) else {
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
                return Err(Refusal::bad("a repeated TLV in a PROXY protocol header"));
            }
            rest = behind;
        }
        Ok(())
    }
}

impl ClientTls {
    /// `client`, a bit field, and `verify`, 0 for a valid certificate; sub-TLVs follow (2.2.6).
    fn parse(value: &[u8]) -> Option<ClientTls> {
        let (&[client, verify @ ..], mut rest) = value.split_first_chunk::<5>()?;
        while !rest.is_empty() {
            (_, _, rest) = split_tlv(rest)?;
        }
        let certificate = client & 0x06 != 0;
        Some(ClientTls {
            over_tls: client & 0x01 != 0,
            certificate,
            verified: certificate && verify == [0; 4],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crc32c_matches_standard_vectors() {
        // Check value of CRC-32C in catalogues, and two of RFC 3720 B.4.
        let thirty_two = |byte| [byte; 32];
        assert_eq!(!crc32c(!0, b"123456789"), 0xe306_9283);
        assert_eq!(!crc32c(!0, &thirty_two(0)), 0x8a91_36aa);
        assert_eq!(!crc32c(!0, &thirty_two(0xff)), 0x62a8_ab43);
    }

    #[test]
    fn overlong_path_is_not_written() {
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
    fn overlong_authority_is_not_written() {
        let long = "a".repeat(usize::from(u16::MAX));
        let mut out = vec![0; 1 << 17];
        assert_eq!(write_v2(&Origin::Unknown, Some(&long), &mut out), None);
    }
}
