//! Properties of arbitrary values of inspected fields: slower parsers agree, and written values are parsed back.

use std::net::IpAddr;

use onrush_http::basic_auth::{self, Credentials};
use onrush_http::encoding::{AcceptEncoding, Coding};
use onrush_http::forwarded::{self, Client, ForwardingFields, Scheme};
use onrush_http::limits::{BASIC_CREDENTIALS_BYTES_MAX, FORWARDED_MEMBERS_MAX};
use onrush_http::query::{self, Encoded};
use onrush_http::write::HeadWriter;
use onrush_http::{
    Header, HeaderSlots, Limits, Method, Parsed, cookie, is_field_value, request, response, upgrade,
};

/// Field value as in a head: trimmed and without control characters.
pub(crate) fn value(input: &[u8]) -> Option<&[u8]> {
    let blank = |byte: &u8| *byte == b' ' || *byte == b'\t';
    let start = input.iter().position(|byte| !blank(byte))?;
    let end = input.iter().rposition(|byte| !blank(byte))? + 1;
    is_field_value(input).then_some(&input[start..end])
}

/// Only the peer is trusted: the member that it appends is found after any received value. Its output has paired quotes
/// for parsers from the left too.
pub(crate) fn forwarded(value: &[u8]) {
    let [peer, address]: [IpAddr; 2] =
        ["10.0.0.1", "192.0.2.1"].map(|text| text.parse().expect("an address"));
    let told = forwarded::ForwardedInfo {
        address: Some(address),
        scheme: Scheme::Https,
        host: Some("a:1"),
    };
    let wanted = Client {
        address,
        scheme: Some(told.scheme),
        host: told.host,
    };
    for name in ["Forwarded", "X-Forwarded-For"] {
        let received = [Header { name, value }];
        let mut out = vec![0; value.len() + 512];
        let mut writer = HeadWriter::new(&mut out);
        forwarded::write_forwarded(&told, &received, &mut writer);
        forwarded::write_x_forwarded(&told, &received, &mut writer);
        let bytes = writer.finish().expect("there is room");
        let headers = headers(&out[..bytes]);
        for told_by in [ForwardingFields::Forwarded, ForwardingFields::XForwarded] {
            let found = forwarded::client(&headers, told_by, peer, |address| address == peer);
            assert_eq!(found, wanted, "{name}: {}", value.escape_ascii());
            // The walk over all members terminates.
            forwarded::client(&headers, told_by, peer, |_| true);
        }
        let last = last_from_left(headers[0].value);
        assert_eq!(
            last.escape_ascii().to_string(),
            b"for=192.0.2.1;host=\"a:1\";proto=https"
                .escape_ascii()
                .to_string()
        );
    }
    x_forwarded_for(value);
}

/// Without quotes the walk equals splitting, reversing and taking.
fn x_forwarded_for(value: &[u8]) {
    if value.contains(&b'"') {
        return;
    }
    let peer: IpAddr = "10.0.0.1".parse().expect("an address");
    let is_trusted = |address: IpAddr| match address {
        IpAddr::V4(address) => address.octets()[0] == 10,
        IpAddr::V6(address) => address.segments()[7] == 10,
    };
    let text = String::from_utf8_lossy(value).into_owned();
    let mut members: Vec<_> = text.split(',').collect();
    members.reverse();
    members.truncate(FORWARDED_MEMBERS_MAX);
    let mut wanted = peer;
    for member in members {
        let member = member.trim_matches([' ', '\t']);
        if member.is_empty() {
            continue;
        }
        let Some(address) = address(member).filter(|_| is_trusted(wanted)) else {
            break;
        };
        wanted = address;
    }
    let headers = [Header {
        name: "X-Forwarded-For",
        value,
    }];
    let found = forwarded::client(&headers, ForwardingFields::XForwarded, peer, is_trusted);
    assert_eq!(found.address, wanted, "{}", value.escape_ascii());
}

fn address(member: &str) -> Option<IpAddr> {
    if let Ok(address) = member.parse::<IpAddr>() {
        return Some(address.to_canonical());
    }
    if let Some(inside) = member.strip_prefix('[').and_then(|m| m.strip_suffix(']'))
        && let Ok(IpAddr::V6(address)) = inside.parse()
    {
        return Some(IpAddr::V6(address).to_canonical());
    }
    let (address, port) = member.rsplit_once(':')?;
    let is_hidden = |port: &str| {
        port.len() > 1
            && port.starts_with('_')
            && port
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
    };
    let is_number = !port.is_empty() && port.len() <= 5 && port.chars().all(|c| c.is_ascii_digit());
    if !is_number && !is_hidden(port) {
        return None;
    }
    match address.strip_prefix('[') {
        Some(rest) => match rest.strip_suffix(']')?.parse().ok()? {
            IpAddr::V6(address) => Some(IpAddr::V6(address).to_canonical()),
            IpAddr::V4(_) => None,
        },
        None => address.parse().ok().filter(IpAddr::is_ipv4),
    }
}

/// Last member of a list, parsed from the left.
fn last_from_left(value: &[u8]) -> Vec<u8> {
    let mut members = vec![Vec::new()];
    let (mut quoted, mut escaped) = (false, false);
    for &byte in value {
        if byte == b',' && !quoted {
            members.push(Vec::new());
            continue;
        }
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            _ => {}
        }
        members.last_mut().expect("there is one").push(byte);
    }
    let last = members.pop().expect("there is one");
    last.trim_ascii().to_vec()
}

fn headers(text: &[u8]) -> Vec<Header<'_>> {
    text.split_inclusive(|&byte| byte == b'\n')
        .map(header)
        .collect()
}

fn header(line: &[u8]) -> Header<'_> {
    let line = line.strip_suffix(b"\r\n").expect("a whole line");
    let colon = line.iter().position(|&b| b == b':').expect("a colon");
    Header {
        name: str::from_utf8(&line[..colon]).expect("a name"),
        value: line[colon + 1..].trim_ascii(),
    }
}

/// The choice among any codings equals that of a slow implementation.
pub(crate) fn accept_encoding(value: &[u8]) {
    let headers = [Header {
        name: "Accept-Encoding",
        value,
    }];
    let accepted = AcceptEncoding::of(&headers);
    let text = String::from_utf8_lossy(value).to_ascii_lowercase();
    let said: Vec<_> = text.split(',').filter_map(weighed).collect();
    let weight = |names: &[&str]| {
        said.iter()
            .find(|(name, _)| names.contains(&&**name))
            .or_else(|| said.iter().find(|(name, _)| name == "*"))
            .map_or(0, |(_, weight)| *weight)
    };
    let identity = weight(&["identity"]);
    let all = [
        (Coding::Zstd, weight(&["zstd"])),
        (Coding::Brotli, weight(&["br"])),
        (Coding::Gzip, weight(&["gzip", "x-gzip"])),
    ];
    for set in 0..8 {
        let offered: Vec<_> = (0..3)
            .filter(|at| set & 1 << at != 0)
            .map(|at| all[at])
            .collect();
        // `max_by_key` returns the last maximum, so reversed the first.
        let best = offered.iter().rev().max_by_key(|(_, weight)| *weight);
        let wanted = best.filter(|(_, weight)| *weight > 0 && *weight >= identity);
        let codings: Vec<_> = offered.iter().map(|(coding, _)| *coding).collect();
        assert_eq!(
            accepted.best(&codings),
            wanted.map(|(coding, _)| *coding),
            "{codings:?} of {}",
            value.escape_ascii()
        );
    }
}

/// Name and weight in thousandths of a member.
fn weighed(member: &str) -> Option<(String, u32)> {
    let trimmed = |text: &str| text.trim_matches([' ', '\t']).to_string();
    let mut parts = member.split(';').map(trimmed);
    let name = parts.next()?;
    let weight = match parts.next() {
        None => 1000,
        Some(parameter) => {
            let weight = parameter.strip_prefix("q=")?.to_string();
            let (whole, digits) = weight.split_once('.').unwrap_or((&weight, ""));
            if !["0", "1"].contains(&whole) || digits.len() > 3 {
                return None;
            }
            if !digits.chars().all(|c| c.is_ascii_digit()) {
                return None;
            }
            let weight = format!("{whole}{digits:0<3}").parse().ok()?;
            (weight <= 1000).then_some(weight)?
        }
    };
    parts.next().is_none().then_some((name, weight))
}

/// Encoding the decoded credentials yields the input.
pub(crate) fn basic_auth(value: &[u8]) {
    let field = [b"Basic ", value].concat();
    let mut room = [0; BASIC_CREDENTIALS_BYTES_MAX];
    if let Some(Credentials { user, password }) = credentials(&field, &mut room) {
        let plain = [user, b":", password].concat();
        assert_eq!(base64(&plain).as_bytes(), value.trim_ascii_start());
    }
    // Any text without control characters is decoded.
    let plain = [b"user:", value].concat();
    let fits = plain.len() <= BASIC_CREDENTIALS_BYTES_MAX && !value.contains(&b'\t');
    let field = format!("basic {}", base64(&plain));
    let found = credentials(field.as_bytes(), &mut room);
    let found = found.map(|found| (found.user.to_vec(), found.password.to_vec()));
    assert_eq!(found, fits.then(|| (b"user".to_vec(), value.to_vec())));
}

fn credentials<'r>(
    value: &[u8],
    room: &'r mut basic_auth::CredentialsBuffer,
) -> Option<Credentials<'r>> {
    let headers = [Header {
        name: "Authorization",
        value,
    }];
    basic_auth::credentials(&headers, room)
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for group in bytes.chunks(3) {
        let bits: String = group.iter().map(|byte| format!("{byte:08b}")).collect();
        let letters: Vec<_> = bits
            .as_bytes()
            .chunks(6)
            .map(|six| format!("{:0<6}", str::from_utf8(six).expect("digits")))
            .map(|six| usize::from_str_radix(&six, 2).expect("digits"))
            .map(|six| char::from(LETTERS[six]))
            .collect();
        let letters: String = letters.into_iter().collect();
        text += &format!("{letters:=<4}");
    }
    text
}

/// A cookie is found after any others, unless one of those has its name.
pub(crate) fn cookie(value: &[u8]) {
    let value_with_ours = [value, b"; onrush=s1"].concat();
    let headers = [Header {
        name: "Cookie",
        value: &value_with_ours,
    }];
    let found = cookie::find(&headers, "onrush");
    let is_hidden = value.windows(6).any(|six| six == b"onrush");
    assert!(found.is_some(), "{}", value.escape_ascii());
    assert!(
        found == Some(b"s1") || is_hidden,
        "{}",
        value.escape_ascii()
    );
}

/// Any text is decoded from its percent-encoded form.
pub(crate) fn query(value: &[u8]) {
    let encoded: String = value.iter().map(|byte| format!("%{byte:02x}")).collect();
    assert!(Encoded(&encoded).is(value));
    assert_eq!(&*Encoded(&encoded).decoded(), value);
    let query = format!("a&{encoded}=b+c&d");
    if value != b"a" {
        let name = String::from_utf8_lossy(value);
        let found = query::find(&query, &name).map(|found| found.decoded().into_owned());
        let is_text = str::from_utf8(value).is_ok();
        assert_eq!(found, is_text.then(|| b"b c".to_vec()));
    }
    // Equal meanings compare equal in any encoding.
    let text = String::from_utf8_lossy(value);
    for (name, value) in query::parameters(&text) {
        assert!(name.is(&name.decoded()) && value.is(&value.decoded()));
    }
}

/// A request asks for protocols if and only if a 101 with the same fields is a valid response to it.
pub(crate) fn upgrade(value: &[u8]) {
    let fields = [b"Connection: upgrade\r\nUpgrade: ", value, b"\r\n\r\n"].concat();
    let request = [b"GET / HTTP/1.1\r\nHost: a\r\n", &fields[..]].concat();
    let response = [b"HTTP/1.1 101 x\r\n", &fields[..]].concat();
    let (mut slots, mut response_slots) = (HeaderSlots::new(), HeaderSlots::new());
    let limits = &Limits::DEFAULT;
    let request = request::parse(&request, &mut slots, limits);
    let response = response::parse(&response, &mut response_slots, Method::Get, limits);
    let (Parsed::Complete(request), Parsed::Complete(response)) = (request, response) else {
        return;
    };
    let asked: Option<Vec<_>> = upgrade::requested_protocols(&request).map(Iterator::collect);
    let judged = upgrade::judge(&response, request.headers);
    assert_eq!(asked.is_some(), judged.is_ok(), "{}", value.escape_ascii());
    let mut out = vec![0; value.len() * 2 + 64];
    let mut writer = HeadWriter::new(&mut out);
    upgrade::write(asked.iter().flatten().copied(), &[], &mut writer);
    let bytes = writer.finish().expect("there is room");
    let written = headers(&out[..bytes]);
    let again: Vec<_> = upgrade::protocols(&written).collect();
    assert_eq!(again, asked.unwrap_or_default());
}
