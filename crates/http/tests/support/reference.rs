//! The same grammar read a second time, slowly and obviously, on complete input only. What it accepts the crate must
//! accept with the same meaning, and nothing else. Bounds are not its matter: inputs stay below them.

use onrush_http::{Framing, Method, Version};

use super::drive::Head;

/// The request head at the start of `input`, if that is a complete and acceptable one.
pub(crate) fn request(input: &[u8]) -> Option<Head> {
    let mut skipped = 0;
    while skipped < 4 && input[skipped..].starts_with(b"\r\n") {
        skipped += 2;
    }
    let (line, headers, bytes) = head(&input[skipped..])?;
    let [method, target, version] = line.split(|&b| b == b' ').collect::<Vec<_>>()[..] else {
        return None;
    };
    if !token(method)
        || target.is_empty()
        || target
            .iter()
            .any(|&b| b == b'#' || !(0x21..=0x7e).contains(&b))
    {
        return None;
    }
    let version = self::version(version)?;
    let target = text(target)?;
    let (path, query, absolute) = self::target(&text(method)?, &target)?;
    let hosts = values(&headers, "host");
    let host = match &hosts[..] {
        [] if version == Version::Http10 => None,
        [host] if authority(host, false) => text(host),
        _ => return None,
    };
    let expectations = members(&headers, "expect");
    let expects = version == Version::Http11 && !expectations.is_empty();
    if expects
        && expectations
            .iter()
            .any(|e| !e.eq_ignore_ascii_case("100-continue"))
    {
        return None;
    }
    let framing = announced(version, &headers)?;
    Some(Head {
        method: text(method)?,
        target,
        path,
        query,
        authority: absolute.or(host),
        status: 0,
        reason: String::new(),
        version,
        framing,
        keep_alive: keep_alive(version, &headers),
        expect_continue: expects && framing != Framing::None && framing != Framing::Length(0),
        bytes: skipped + bytes,
        headers: headers
            .into_iter()
            .map(|(name, value, _)| (name, value))
            .collect(),
    })
}

/// The response head at the start of `input`, if that is a complete and acceptable one.
pub(crate) fn response(input: &[u8], method: Method) -> Option<Head> {
    let (line, headers, bytes) = head(input)?;
    let version = self::version(line.get(..8)?)?;
    let status = line.get(8..12)?;
    if status[0] != b' ' || !status[1..].iter().all(u8::is_ascii_digit) {
        return None;
    }
    let status: u16 = text(&status[1..])?.parse().ok()?;
    let reason = match &line[12..] {
        [] => &[],
        [b' ', reason @ ..] => reason,
        _ => return None,
    };
    let reason = if reason.is_ascii() {
        text(reason)?
    } else {
        String::new()
    };
    let announced = announced(version, &headers)?;
    let framing = match status {
        0..=99 => return None,
        100..=199 | 204 => {
            matches!(announced, Framing::None | Framing::Length(0)).then_some(Framing::None)?
        }
        304 => Framing::None,
        _ if method == Method::Head => Framing::None,
        200..=299 if method == Method::Connect => Framing::None,
        _ if announced == Framing::None => Framing::UntilClose,
        _ => announced,
    };
    let is_tunnel = status == 101 || (method == Method::Connect && status / 100 == 2);
    Some(Head {
        method: String::new(),
        target: String::new(),
        path: String::new(),
        query: None,
        authority: None,
        status,
        reason,
        version,
        framing,
        keep_alive: keep_alive(version, &headers) && framing != Framing::UntilClose && !is_tunnel,
        expect_continue: false,
        bytes,
        headers: headers
            .into_iter()
            .map(|(name, value, _)| (name, value))
            .collect(),
    })
}

/// The chunked body at the start of `input` if it is a complete and acceptable one: payload and length.
pub(crate) fn chunked(input: &[u8]) -> Option<(Vec<u8>, usize)> {
    let mut payload = Vec::new();
    let mut at = 0;
    loop {
        let line = line(&input[at..])?;
        at += line.len() + 2;
        let size = line.split(|&b| b == b';').next()?;
        if size.is_empty() || size.len() > 16 || !size.iter().all(u8::is_ascii_hexdigit) {
            return None;
        }
        let size = u64::from_str_radix(&text(size)?, 16).ok()?;
        if size == 0 {
            break;
        }
        let size = usize::try_from(size).ok()?;
        let end = at.checked_add(size)?;
        payload.extend_from_slice(input.get(at..end)?);
        if !input[end..].starts_with(b"\r\n") {
            return None;
        }
        at = end + 2;
    }
    loop {
        let line = line(&input[at..])?;
        at += line.len() + 2;
        if line.is_empty() {
            return Some((payload, at));
        }
        let (name, _, _) = field(line)?;
        let forbidden = "transfer-encoding content-length content-encoding content-type content-range trailer host \
            connection keep-alive upgrade te expect authorization proxy-authorization \
            forwarded x-forwarded-for x-forwarded-host x-forwarded-proto";
        if forbidden
            .split(' ')
            .any(|forbidden| name.eq_ignore_ascii_case(forbidden))
        {
            return None;
        }
    }
}

/// Name, value without white space around it, and the whole line.
type Field = (String, Vec<u8>, Vec<u8>);

/// First line, fields, length.
fn head(input: &[u8]) -> Option<(&[u8], Vec<Field>, usize)> {
    let first = line(input)?;
    let mut at = first.len() + 2;
    let mut fields = Vec::new();
    loop {
        let line = line(&input[at..])?;
        at += line.len() + 2;
        if line.is_empty() {
            return Some((first, fields, at));
        }
        fields.push(field(line)?);
    }
}

/// Up to the first CRLF; no control byte but tab before it.
fn line(input: &[u8]) -> Option<&[u8]> {
    let end = input.windows(2).position(|two| two == b"\r\n")?;
    let line = &input[..end];
    line.iter()
        .all(|&b| b == b'\t' || (b >= 0x20 && b != 0x7f))
        .then_some(line)
}

fn field(line: &[u8]) -> Option<Field> {
    let colon = line.iter().position(|&b| b == b':')?;
    let (name, value) = (&line[..colon], &line[colon + 1..]);
    let blank = |b: &u8| *b == b' ' || *b == b'\t';
    let start = value.iter().position(|b| !blank(b)).unwrap_or(value.len());
    let end = value
        .iter()
        .rposition(|b| !blank(b))
        .map_or(start, |last| last + 1);
    token(name).then(|| {
        (
            String::from_utf8_lossy(name).into_owned(),
            value[start..end].to_vec(),
            line.to_vec(),
        )
    })
}

fn token(text: &[u8]) -> bool {
    !text.is_empty()
        && text
            .iter()
            .all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(b))
}

fn text(bytes: &[u8]) -> Option<String> {
    String::from_utf8(bytes.to_vec()).ok()
}

fn version(text: &[u8]) -> Option<Version> {
    match text {
        b"HTTP/1.0" => Some(Version::Http10),
        [b'H', b'T', b'T', b'P', b'/', b'1', b'.', b'1'..=b'9'] => Some(Version::Http11),
        _ => None,
    }
}

/// Path, query, authority.
fn target(method: &str, target: &str) -> Option<(String, Option<String>, Option<String>)> {
    if method == "CONNECT" {
        let has_port = target
            .rsplit(':')
            .next()
            .is_some_and(|p| !p.is_empty() && p.bytes().all(|b| b.is_ascii_digit()));
        let ok = authority(target.as_bytes(), true) && target.contains(':') && has_port;
        return ok.then(|| (String::new(), None, Some(target.into())));
    }
    if target == "*" {
        return (method == "OPTIONS").then(|| ("*".into(), None, None));
    }
    let lower = target.to_ascii_lowercase();
    let (rest, absolute) = match lower
        .strip_prefix("http://")
        .or(lower.strip_prefix("https://"))
    {
        Some(rest) => {
            let rest = &target[target.len() - rest.len()..];
            let end = rest.find(['/', '?']).unwrap_or(rest.len());
            if !authority(&rest.as_bytes()[..end], true) {
                return None;
            }
            (&rest[end..], Some(rest[..end].to_string()))
        }
        None if target.starts_with('/') => (target, None),
        None => return None,
    };
    let (path, query) = match rest.split_once('?') {
        Some((path, query)) => (path, Some(query.to_string())),
        None => (rest, None),
    };
    let path = match path {
        "" if query.is_none() && method == "OPTIONS" => "*",
        "" => "/",
        path => path,
    };
    Some((path.into(), query, absolute))
}

fn authority(text: &[u8], needs_host: bool) -> bool {
    let (host, port) = if text.starts_with(b"[") {
        let Some(end) = text.iter().position(|&b| b == b']') else {
            return false;
        };
        let address = &text[1..end];
        if address.len() < 2
            || !address
                .iter()
                .all(|b| b.is_ascii_hexdigit() || *b == b':' || *b == b'.')
        {
            return false;
        }
        text.split_at(end + 1)
    } else {
        let end = text.iter().position(|&b| b == b':').unwrap_or(text.len());
        let (host, port) = text.split_at(end);
        if !host
            .iter()
            .all(|b| b.is_ascii_alphanumeric() || b"-._~%!$&'()*+,;=".contains(b))
        {
            return false;
        }
        (host, port)
    };
    let port_ok = match port {
        [] | [b':'] => true,
        [b':', digits @ ..] if digits.len() <= 5 && digits.iter().all(u8::is_ascii_digit) => {
            String::from_utf8_lossy(digits).parse::<u16>().is_ok()
        }
        _ => false,
    };
    port_ok && !(needs_host && host.is_empty())
}

fn values(headers: &[Field], name: &str) -> Vec<Vec<u8>> {
    headers
        .iter()
        .filter(|h| h.0.eq_ignore_ascii_case(name))
        .map(|h| h.1.clone())
        .collect()
}

fn members(headers: &[Field], name: &str) -> Vec<String> {
    let joined = values(headers, name).join(&b","[..]);
    let joined = String::from_utf8_lossy(&joined).into_owned();
    joined
        .split(',')
        .map(|m| m.trim_matches([' ', '\t']).to_string())
        .filter(|m| !m.is_empty())
        .collect()
}

fn keep_alive(version: Version, headers: &[Field]) -> bool {
    let options = members(headers, "connection");
    let has = |wanted: &str| {
        options
            .iter()
            .any(|option| option.eq_ignore_ascii_case(wanted))
    };
    !has("close") && (version == Version::Http11 || has("keep-alive"))
}

fn announced(version: Version, headers: &[Field]) -> Option<Framing> {
    let framing =
        |h: &&Field| ["content-length", "transfer-encoding"].contains(&&*h.0.to_ascii_lowercase());
    if headers.iter().filter(framing).any(|h| h.2.contains(&b'\t')) {
        return None;
    }
    let lengths = values(headers, "content-length");
    let codings = values(headers, "transfer-encoding");
    match (&lengths[..], &codings[..]) {
        ([], []) => Some(Framing::None),
        ([length], []) => {
            let ok =
                !length.is_empty() && length.len() <= 19 && length.iter().all(u8::is_ascii_digit);
            let length = text(length)?.parse().ok()?;
            (ok && length <= i64::MAX as u64).then_some(Framing::Length(length))
        }
        ([], [coding]) if version == Version::Http11 && coding.eq_ignore_ascii_case(b"chunked") => {
            Some(Framing::Chunked)
        }
        _ => None,
    }
}
