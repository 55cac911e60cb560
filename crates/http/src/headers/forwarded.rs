//! Forwarding fields, received from proxies in front of us and sent to servers: X-Forwarded-For, -Proto and -Host,
//! which have no standard, and Forwarded (RFC 7239).
//!
//! ```text
//!  client ──> proxy A ──> proxy B ──> us        Forwarded: for=client, for=A       and B is our peer
//!                                                          <────── the walk ──────────────┘
//! ```
//! Each proxy appends a member, and anybody can send a field with invented members. So the search begins at our peer
//! and goes left as long as the current address is trusted; the first untrusted address is the client (RFC 7239 8.1). A
//! malformed member ends the search at the last valid address.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::field::{self, Header, header_is};
use crate::limits::FORWARDED_MEMBERS_MAX;
use crate::target::Authority;
use crate::write::HeadWriter;

/// Fields that are evaluated. A proxy writes one kind and passes the other on unchecked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForwardingFields {
    /// X-Forwarded-For, X-Forwarded-Proto and X-Forwarded-Host.
    XForwarded,
    /// Forwarded.
    Forwarded,
}

/// The client, according to trusted proxies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Client<'b> {
    /// Address; IPv4-mapped addresses are converted to IPv4.
    pub address: IpAddr,
    /// Scheme of the request, if a trusted proxy sent it.
    pub scheme: Option<Scheme>,
    /// Requested `host[:port]`, if a trusted proxy sent it.
    pub host: Option<&'b str>,
}

/// The scheme of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// Without TLS.
    Http,
    /// With TLS.
    Https,
}

/// Forwarding information of a request, sent to the server.
#[derive(Clone, Copy, Debug)]
pub struct ForwardedInfo<'b> {
    /// Address of the client; `None` if it has none, as with a Unix socket.
    pub address: Option<IpAddr>,
    /// Scheme with which we received the request.
    pub scheme: Scheme,
    /// Requested `host[:port]`, validated by the parser.
    pub host: Option<&'b str>,
}

/// Finds the client of a request received from `peer`. Only members written by trusted addresses count; if the peer is
/// untrusted, no field counts. At most [`FORWARDED_MEMBERS_MAX`] members are evaluated. With X-Forwarded fields, scheme
/// and host are the last values, since their authors are unknown; with Forwarded, they come from the client's member.
pub fn client<'b>(
    headers: &[Header<'b>],
    told_by: ForwardingFields,
    peer: IpAddr,
    is_trusted: impl Fn(IpAddr) -> bool,
) -> Client<'b> {
    let peer = Client {
        address: peer.to_canonical(),
        scheme: None,
        host: None,
    };
    if !is_trusted(peer.address) {
        return peer;
    }
    match told_by {
        ForwardingFields::Forwarded => {
            let members = members_from_right(headers, "forwarded");
            walk(peer, members.map(client_of_member), is_trusted)
        }
        ForwardingFields::XForwarded => {
            let told = Client {
                scheme: last_member(headers, "x-forwarded-proto").and_then(Scheme::of),
                host: last_member(headers, "x-forwarded-host").and_then(host),
                ..peer
            };
            let members = members_from_right(headers, "x-forwarded-for").map(|member| {
                let address = address_of_member(member)?;
                Some(Client { address, ..told })
            });
            walk(told, members, is_trusted)
        }
    }
}

/// Whether this module writes a field of this name. Received fields of that name are then not forwarded.
pub fn is_forwarding_field(name: &str) -> bool {
    match name.len() {
        9 => header_is(name, "forwarded"),
        15 => header_is(name, "x-forwarded-for"),
        16 => header_is(name, "x-forwarded-host"),
        17 => header_is(name, "x-forwarded-proto"),
        _ => false,
    }
}

/// Whether a field of this name describes the client of a request: the fields that this module writes, other
/// `X-Forwarded-*` fields, and fields of other proxies and content delivery networks. `X-Original-URL` and
/// `X-Rewrite-URL` contain the path before a proxy edited it, and some frameworks (Symfony, Zend, IIS) serve that path
/// instead of the request's: a client could request a path that a route denies. Applications trust all of these fields,
/// so one rule decides which are forwarded.
#[inline]
pub fn describes_client(name: &str) -> bool {
    describes_client_by(name, header_is)
}

/// [`describes_client`] with a custom comparison, `is_same(name, known_lowercase)`.
#[inline]
pub(crate) fn describes_client_by(
    name: &str,
    is_same: impl Fn(&str, &'static str) -> bool,
) -> bool {
    const FAMILY: &str = "x-forwarded-";
    let known: &[&str] = match name.len() {
        9 => &["forwarded", "x-real-ip", "client-ip"],
        11 => &["x-client-ip", "x-forwarded"],
        13 => &["x-rewrite-url"],
        14 => &["true-client-ip", "x-original-url"],
        16 => &["cf-connecting-ip", "fastly-client-ip"],
        19 => &["x-cluster-client-ip"],
        24 => &["x-original-forwarded-for", "x-envoy-external-address"],
        _ => &[],
    };
    known.iter().any(|known| is_same(name, known))
        || name
            .get(..FAMILY.len())
            .is_some_and(|start| is_same(start, FAMILY))
}

/// Writes X-Forwarded-For, X-Forwarded-Proto and X-Forwarded-Host. The client's address is appended to the members in
/// `received`, the fields of a request from a trusted peer; pass no fields to start a new list.
pub fn write_x_forwarded(
    told: &ForwardedInfo<'_>,
    received: &[Header<'_>],
    writer: &mut HeadWriter<'_>,
) {
    writer.raw(b"X-Forwarded-For: ");
    write_received(received, "x-forwarded-for", writer);
    match told.address {
        Some(address) => writer.address(address.to_canonical()),
        None => writer.raw(b"unknown"),
    };
    writer.raw(match told.scheme {
        Scheme::Http => b"\r\nX-Forwarded-Proto: http\r\n",
        Scheme::Https => b"\r\nX-Forwarded-Proto: https\r\n",
    });
    if let Some(host) = told.host {
        writer.header("X-Forwarded-Host", host.as_bytes());
    }
}

/// Writes Forwarded (RFC 7239 4), appended to the members in `received` as in [`write_x_forwarded`]. A received field
/// with an unclosed quote is left out, because some parsers would read our member as quoted.
pub fn write_forwarded(
    told: &ForwardedInfo<'_>,
    received: &[Header<'_>],
    writer: &mut HeadWriter<'_>,
) {
    writer.raw(b"Forwarded: ");
    write_received(received, "forwarded", writer);
    match told.address.map(|address| address.to_canonical()) {
        Some(IpAddr::V4(address)) => writer.raw(b"for=").address(address.into()),
        // IPv6 needs brackets, and so quotes (RFC 7239 6).
        Some(IpAddr::V6(address)) => writer.raw(b"for=\"[").display(address).raw(b"]\""),
        None => writer.raw(b"for=unknown"),
    };
    if let Some(host) = told.host {
        writer.raw(b";host=");
        match field::is_token(host.as_bytes()) {
            true => writer.raw(host.as_bytes()),
            // A valid host contains no quotes or backslashes to escape (RFC 3986 3.2.2).
            false => writer.raw(b"\"").raw(host.as_bytes()).raw(b"\""),
        };
    }
    writer
        .raw(b";proto=")
        .raw(told.scheme.text().as_bytes())
        .raw(b"\r\n");
}

impl Scheme {
    /// Name in a URI.
    pub const fn text(self) -> &'static str {
        match self {
            Scheme::Http => "http",
            Scheme::Https => "https",
        }
    }

    fn of(text: &[u8]) -> Option<Scheme> {
        [Scheme::Http, Scheme::Https]
            .into_iter()
            .find(|scheme| text.eq_ignore_ascii_case(scheme.text().as_bytes()))
    }
}

/// Walks left from a trusted `peer`. Malformed members are `None`.
fn walk<'b>(
    peer: Client<'b>,
    members: impl Iterator<Item = Option<Client<'b>>>,
    is_trusted: impl Fn(IpAddr) -> bool,
) -> Client<'b> {
    let mut client = peer;
    for member in members {
        let Some(member) = member else { break };
        client = member;
        if !is_trusted(client.address) {
            break;
        }
    }
    client
}

/// Members of all fields of this name from right to left. Empty ones are skipped (RFC 9110 5.6.1.2) but count towards
/// the limit.
fn members_from_right<'h, 'b>(
    headers: &'h [Header<'b>],
    name_lowercase: &'static str,
) -> impl Iterator<Item = &'b [u8]> + use<'h, 'b> {
    headers
        .iter()
        .rev()
        .filter(move |header| header_is(header.name, name_lowercase))
        .flat_map(|header| MembersFromRight {
            rest: Some(header.value),
        })
        .take(FORWARDED_MEMBERS_MAX)
        .map(field::trim)
        .filter(|member| !member.is_empty())
}

fn last_member<'b>(headers: &[Header<'b>], name_lowercase: &'static str) -> Option<&'b [u8]> {
    members_from_right(headers, name_lowercase).next()
}

/// Splits a list at its commas from right to left. Quoted strings are recognized from the right too, so that untrusted
/// text on the left cannot change the members on the right.
struct MembersFromRight<'b> {
    rest: Option<&'b [u8]>,
}

impl<'b> Iterator for MembersFromRight<'b> {
    type Item = &'b [u8];

    fn next(&mut self) -> Option<&'b [u8]> {
        let text = self.rest?;
        let mut is_quoted = false;
        for at in (0..text.len()).rev() {
            match text[at] {
                b',' if !is_quoted => {
                    self.rest = Some(&text[..at]);
                    return Some(&text[at + 1..]);
                }
                b'"' if !is_quoted => is_quoted = true,
                b'"' => is_quoted = is_escaped(&text[..at]),
                _ => {}
            }
        }
        self.rest = None;
        Some(text)
    }
}

/// Whether the character after `before` is escaped by a backslash (RFC 9110 5.6.4).
fn is_escaped(before: &[u8]) -> bool {
    let backslashes = before.iter().rev().take_while(|&&byte| byte == b'\\');
    backslashes.count() % 2 == 1
}

/// Parses a member of Forwarded (RFC 7239 4): pairs separated by semicolons, without repeated names.
fn client_of_member(member: &[u8]) -> Option<Client<'_>> {
    let (mut found, mut proto, mut host_text) = (None, None, None);
    for pair in field::split_unquoted(member, b';').map(field::trim) {
        if pair.is_empty() {
            continue;
        }
        let equals = memchr::memchr(b'=', pair)?;
        let (name, value) = (&pair[..equals], &pair[equals + 1..]);
        let place = match name {
            name if name.eq_ignore_ascii_case(b"for") => &mut found,
            name if name.eq_ignore_ascii_case(b"proto") => &mut proto,
            name if name.eq_ignore_ascii_case(b"host") => &mut host_text,
            name if field::is_token(name) => continue,
            _ => return None,
        };
        if place.replace(plain_value(value)?).is_some() {
            return None;
        }
    }
    Some(Client {
        address: node(found?)?,
        scheme: proto.and_then(Scheme::of),
        host: host_text.and_then(host),
    })
}

/// A token, or the contents of a quoted string (RFC 7239 4) without escapes, which addresses and hosts do not need.
fn plain_value(text: &[u8]) -> Option<&[u8]> {
    let [b'"', inside @ .., b'"'] = text else {
        return field::is_token(text).then_some(text);
    };
    let is_plain = |&byte: &u8| field::is_text(byte) && byte != b'"' && byte != b'\\';
    inside.iter().all(is_plain).then_some(inside)
}

/// Parses an address with optional port (RFC 7239 6). `None` for `unknown` and obfuscated identifiers (`_hidden`).
fn node(text: &[u8]) -> Option<IpAddr> {
    let text = str::from_utf8(text).ok()?;
    let (address, behind) = match text.strip_prefix('[') {
        Some(rest) => {
            let (address, behind) = rest.split_once(']')?;
            (IpAddr::V6(address.parse::<Ipv6Addr>().ok()?), behind)
        }
        None => {
            let (address, behind) = text.split_at(text.find(':').unwrap_or(text.len()));
            (IpAddr::V4(address.parse::<Ipv4Addr>().ok()?), behind)
        }
    };
    let is_sound = behind.is_empty() || behind.strip_prefix(':').is_some_and(is_node_port);
    is_sound.then(|| address.to_canonical())
}

/// Up to five digits, or an obfuscated port (RFC 7239 6.3).
fn is_node_port(port: &str) -> bool {
    let port = port.as_bytes();
    match port {
        [b'_', name @ ..] => {
            let is_fine = |&byte: &u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
            !name.is_empty() && name.iter().all(is_fine)
        }
        digits => (1..=5).contains(&digits.len()) && digits.iter().all(u8::is_ascii_digit),
    }
}

/// Parses a member of X-Forwarded-For: an address in any usual form, including IPv6 without brackets.
fn address_of_member(member: &[u8]) -> Option<IpAddr> {
    let bare = str::from_utf8(member).ok()?.parse::<Ipv6Addr>();
    bare.map(|address| IpAddr::V6(address).to_canonical())
        .ok()
        .or_else(|| node(member))
}

fn host(text: &[u8]) -> Option<&str> {
    let authority = Authority::parse(text)?;
    (authority.host_bytes > 0).then(|| str::from_utf8(text).ok())?
}

/// Writes the values of all fields of this name, each followed by a comma.
fn write_received(
    received: &[Header<'_>],
    name_lowercase: &'static str,
    writer: &mut HeadWriter<'_>,
) {
    for header in received {
        let is_welcome = header_is(header.name, name_lowercase)
            && !header.value.is_empty()
            && field::has_paired_quotes(header.value);
        if is_welcome {
            writer.raw(header.value).raw(b", ");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PEER: &str = "10.0.0.9";

    /// Trusts 10.0.0.0/8 and fd00::/16.
    fn is_trusted(address: IpAddr) -> bool {
        match address {
            IpAddr::V4(address) => address.octets()[0] == 10,
            IpAddr::V6(address) => address.segments()[0] == 0xfd00,
        }
    }

    fn headers<'b>(name: &'b str, values: &[&'b str]) -> Vec<Header<'b>> {
        let header = |value: &&'b str| Header {
            name,
            value: value.as_bytes(),
        };
        values.iter().map(header).collect()
    }

    /// Client found in the fields when `peer` sent them.
    fn found(name: &str, values: &[&str], peer: &str) -> String {
        let told_by = match name {
            "Forwarded" => ForwardingFields::Forwarded,
            _ => ForwardingFields::XForwarded,
        };
        let peer = peer.parse().expect("an address");
        let headers = headers(name, values);
        client(&headers, told_by, peer, is_trusted)
            .address
            .to_string()
    }

    fn check(name: &str, rows: &[(&[&str], &str)]) {
        for (values, wanted) in rows {
            assert_eq!(found(name, values, PEER), *wanted, "{values:?}");
        }
    }

    #[test]
    fn x_forwarded_for_ends_at_first_untrusted() {
        check(
            "X-Forwarded-For",
            &[
                (&[], PEER),
                (&["192.0.2.1"], "192.0.2.1"),
                (&["6.6.6.6, 192.0.2.1"], "192.0.2.1"),
                (&["6.6.6.6, 192.0.2.1, 10.1.1.1"], "192.0.2.1"),
                (
                    &["6.6.6.6", "192.0.2.1 ,10.1.1.1,", "10.1.1.2"],
                    "192.0.2.1",
                ),
                (&["10.1.1.1, 10.1.1.2"], "10.1.1.1"),
                (&["2001:db8::1, fd00::1"], "2001:db8::1"),
                (&["[2001:db8::1]"], "2001:db8::1"),
                (&["[2001:db8::1]:443"], "2001:db8::1"),
                (&["192.0.2.1:56324"], "192.0.2.1"),
                (&["192.0.2.1,,\t, 10.1.1.1"], "192.0.2.1"),
                (&["6.6.6.6, ::ffff:192.0.2.1, ::ffff:10.1.1.1"], "192.0.2.1"),
            ],
        );
    }

    #[test]
    fn invalid_x_forwarded_for_member_stops_lookup() {
        for garbage in [
            "unknown",
            "_hidden",
            "localhost",
            "192.0.2.256",
            "192.0.2.01",
            "192.0.2.1:",
            "192.0.2.1:123456",
            "192.0.2.1 10.0.0.1",
            "[192.0.2.1]",
            "[::1",
            "::1]",
            "fe80::1%eth0",
            "\"192.0.2.1\"",
            "\u{e9}",
        ] {
            let text = format!("6.6.6.6, {garbage}, 10.1.1.1");
            assert_eq!(
                found("X-Forwarded-For", &[&text], PEER),
                "10.1.1.1",
                "{garbage}"
            );
        }
    }

    #[test]
    fn forwarding_fields_of_untrusted_peer_are_ignored() {
        for (name, value) in [
            ("X-Forwarded-For", "192.0.2.1"),
            ("Forwarded", "for=192.0.2.1;proto=https"),
            ("X-Forwarded-Proto", "https"),
            ("X-Forwarded-Host", "example.com"),
        ] {
            let peer = "198.51.100.1".parse().expect("an address");
            for told_by in [ForwardingFields::XForwarded, ForwardingFields::Forwarded] {
                let client = client(&headers(name, &[value]), told_by, peer, is_trusted);
                assert_eq!(
                    (client.address, client.scheme, client.host),
                    (peer, None, None)
                );
            }
        }
        assert_eq!(
            found("X-Forwarded-For", &["192.0.2.1"], "::ffff:198.51.100.1"),
            "198.51.100.1"
        );
        assert_eq!(
            found("X-Forwarded-For", &["192.0.2.1"], "::ffff:10.0.0.9"),
            "192.0.2.1"
        );
    }

    #[test]
    fn forwarded_members_are_limited() {
        let trusted = |count| vec!["10.1.1.1"; count].join(",");
        let within = format!("192.0.2.1,{}", trusted(FORWARDED_MEMBERS_MAX - 1));
        assert_eq!(found("X-Forwarded-For", &[&within], PEER), "192.0.2.1");
        let beyond = format!("192.0.2.1,{}", trusted(FORWARDED_MEMBERS_MAX));
        assert_eq!(found("X-Forwarded-For", &[&beyond], PEER), "10.1.1.1");
        let empty = format!("192.0.2.1{}", ",".repeat(FORWARDED_MEMBERS_MAX));
        assert_eq!(found("X-Forwarded-For", &[&empty], PEER), PEER);
    }

    #[test]
    fn forwarded_ends_at_first_untrusted() {
        check(
            "Forwarded",
            &[
                (&["for=192.0.2.1"], "192.0.2.1"),
                (&["FOR=192.0.2.1;proto=http"], "192.0.2.1"),
                (
                    &["by=10.0.0.1; for=\"192.0.2.1:443\" ;proto=https"],
                    "192.0.2.1",
                ),
                (&["for=\"[2001:db8::1]\""], "2001:db8::1"),
                (&["for=\"[2001:db8::1]:_port\""], "2001:db8::1"),
                (&["for=6.6.6.6, for=192.0.2.1,for=10.1.1.1"], "192.0.2.1"),
                (
                    &["for=6.6.6.6", "for=192.0.2.1", "for=10.1.1.1"],
                    "192.0.2.1",
                ),
                (&["for=192.0.2.1;ext=\"a, b;c\\\"d\""], "192.0.2.1"),
                (&["for=192.0.2.1;ext=\"a, for=1.1.1.1\""], "192.0.2.1"),
                (&["for=192.0.2.1;;"], "192.0.2.1"),
            ],
        );
    }

    #[test]
    fn invalid_forwarded_member_stops_lookup() {
        for garbage in [
            "for=unknown",
            "for=_hidden",
            "for=\"_hidden:80\"",
            "proto=https",
            "for=",
            "for",
            "for =192.0.2.1",
            "for= 192.0.2.1",
            "for=192.0.2.1:80",
            "for=[2001:db8::1]",
            "for=\"2001:db8::1\"",
            "for=\"192.0.2.1\\:80\"",
            "for=\"192.0.2.1:_\"",
            "for=192.0.2.1;for=192.0.2.1",
            "for=192.0.2.1;proto=http;proto=https",
            "for=192.0.2.1;b@d=x",
            "for=192.0.2.1;x=\"",
            "for=\"192.0.2.1",
            "192.0.2.1",
        ] {
            let text = format!("for=6.6.6.6, {garbage}, for=10.1.1.1");
            assert_eq!(found("Forwarded", &[&text], PEER), "10.1.1.1", "{garbage}");
        }
    }

    #[test]
    fn open_quotes_do_not_hide_proxy_members() {
        for made_up in [
            "for=\"",
            "for=\"6.6.6.6, x=\"",
            "\"",
            "x=\"\\",
            "x=\"\\\"",
            "for=6.6.6.6\"",
        ] {
            let text = format!("{made_up}, for=192.0.2.1;host=\"a:1\", for=10.1.1.1");
            assert_eq!(found("Forwarded", &[&text], PEER), "192.0.2.1", "{made_up}");
        }
    }

    #[test]
    fn scheme_and_host_come_from_client_member() {
        let seen = |headers: &[Header<'static>], told_by| {
            let peer = PEER.parse().expect("an address");
            let client = client(headers, told_by, peer, is_trusted);
            (client.scheme, client.host)
        };
        let https = Some(Scheme::Https);
        let rows = [
            (
                "for=192.0.2.1;proto=HTTPS;host=a, for=10.1.1.1;proto=http;host=b",
                (https, Some("a")),
            ),
            ("for=192.0.2.1;host=\"a:8080\"", (None, Some("a:8080"))),
            ("for=192.0.2.1;proto=wss;host=\"a b\"", (None, None)),
            ("for=192.0.2.1;host=\"\"", (None, None)),
            ("proto=https", (None, None)),
        ];
        for (value, wanted) in rows {
            assert_eq!(
                seen(&headers("Forwarded", &[value]), ForwardingFields::Forwarded),
                wanted,
                "{value}"
            );
        }
        let mut both = headers("X-Forwarded-Proto", &["http, https"]);
        both.extend(headers("X-Forwarded-Host", &["evil", "a:80"]));
        assert_eq!(
            seen(&both, ForwardingFields::XForwarded),
            (https, Some("a:80"))
        );
        assert_eq!(seen(&both, ForwardingFields::Forwarded), (None, None));
    }

    #[test]
    fn forwarding_members_are_appended() {
        let told = |address: &str, host| ForwardedInfo {
            address: address.parse().ok(),
            scheme: Scheme::Https,
            host,
        };
        let written = |told: &ForwardedInfo<'_>, received: &[Header<'_>]| {
            let mut out = [0; 512];
            let mut writer = HeadWriter::new(&mut out);
            write_x_forwarded(told, received, &mut writer);
            write_forwarded(told, received, &mut writer);
            let bytes = writer.finish().expect("512 bytes are enough");
            String::from_utf8_lossy(&out[..bytes]).into_owned()
        };
        let mut received = headers("x-forwarded-for", &["192.0.2.1", "", "10.1.1.1"]);
        received.extend(headers(
            "Forwarded",
            &["for=_a;x=\"", "for=192.0.2.1", "for=\"[::1]\""],
        ));
        let rows = [
            (
                told("10.0.0.9", Some("a")),
                &received[..],
                "X-Forwarded-For: 192.0.2.1, 10.1.1.1, 10.0.0.9\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: a\r\n\
                 Forwarded: for=192.0.2.1, for=\"[::1]\", for=10.0.0.9;host=a;proto=https\r\n",
            ),
            (
                told("2001:db8::1", Some("a:80")),
                &[],
                "X-Forwarded-For: 2001:db8::1\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: a:80\r\n\
                 Forwarded: for=\"[2001:db8::1]\";host=\"a:80\";proto=https\r\n",
            ),
            (
                told("::ffff:192.0.2.1", None),
                &[],
                "X-Forwarded-For: 192.0.2.1\r\nX-Forwarded-Proto: https\r\nForwarded: for=192.0.2.1;proto=https\r\n",
            ),
            (
                told("none", None),
                &[],
                "X-Forwarded-For: unknown\r\nX-Forwarded-Proto: https\r\nForwarded: for=unknown;proto=https\r\n",
            ),
        ];
        for (told, received, wanted) in rows {
            assert_eq!(written(&told, received), wanted);
        }
    }

    #[test]
    fn forwarding_field_names_are_case_insensitive() {
        for name in [
            "Forwarded",
            "X-Forwarded-For",
            "x-forwarded-PROTO",
            "X-FORWARDED-HOST",
        ] {
            assert!(is_forwarding_field(name), "{name}");
        }
        for name in ["X-Forwarded-Port", "X-Real-IP", "Via", ""] {
            assert!(!is_forwarding_field(name), "{name}");
        }
    }

    #[test]
    fn client_address_fields_are_recognized() {
        for name in [
            "Forwarded",
            "X-FORWARDED-FOR",
            "X-Forwarded-Port",
            "x-forwarded-",
            "X-Real-IP",
            "x-real-ip",
            "Client-IP",
            "X-Client-IP",
            "True-Client-IP",
            "CF-Connecting-IP",
            "Fastly-Client-IP",
            "X-Cluster-Client-IP",
            "X-Original-Forwarded-For",
            "X-Envoy-External-Address",
            "X-Forwarded",
            "X-Original-URL",
            "x-rewrite-url",
        ] {
            assert!(describes_client(name), "{name}");
        }
        for name in [
            "X-Forwarde",
            "X-Original-Uri",
            "X_Real_IP",
            "X-Real-IPs",
            "Via",
            "",
        ] {
            assert!(!describes_client(name), "{name}");
        }
    }
}
