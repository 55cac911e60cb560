//! Version 1 of the header: one line of text (section 2.1).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::header::{MALFORMED, NO_HEADER, Origin, ProxyHeader, pair_of};
use crate::limits::PROXY_V1_BYTES_MAX;
use crate::refusal::{Parsed, Refusal};
use crate::write::HeadWriter;

/// Writes a header of version 1; `None` if it does not fit ([`PROXY_V1_BYTES_MAX`] bytes always suffice). Unix sockets
/// and the proxy's own connections cannot be expressed and become `UNKNOWN`, which a receiver may refuse (2.1).
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

/// Parses a line that ends with CRLF and has at most 107 bytes (2.1).
pub(super) fn parse_v1(input: &[u8]) -> Parsed<ProxyHeader<'_>> {
    const PREFIX: &[u8] = b"PROXY ";
    let window = &input[..input.len().min(PROXY_V1_BYTES_MAX)];
    let Some(rest) = window.strip_prefix(PREFIX) else {
        return match PREFIX.starts_with(window) {
            true => Parsed::Partial,
            false => Parsed::Refused(NO_HEADER),
        };
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

/// `TCP4 source destination port port`, separated by exactly one space (2.1).
fn origin_of_line(line: &[u8]) -> Option<Origin<'static>> {
    // The rest of the line after UNKNOWN must be ignored.
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

/// Decimal, without leading zeros (2.1).
fn port(word: &str) -> Option<u16> {
    let is_plain = word.bytes().all(|byte| byte.is_ascii_digit());
    let leads_with_zero = word.len() > 1 && word.starts_with('0');
    (is_plain && !leads_with_zero).then(|| word.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn v1_header_matches_specification() {
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
    fn longest_v1_header_fits_limit() {
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
}
