//! A second parser of the same grammar, slow and simple, for complete input only. The crate must accept exactly the
//! same input with the same meaning. It has no limits: inputs stay below them.

use onrush_http::{Framing, Method, Version};

use super::drive::Head;

/// Request head at the start of `input`, if complete and valid.
pub(crate) fn request(input: &[u8]) -> Option<Head> {
    let mut skipped = 0;
    while skipped < 4 && input[skipped..].starts_with(b"\r\n") {
        skipped += 2;
    }
    let (line, headers, bytes) = head(&input[skipped..], line)?;
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
        [host] if host.is_empty() && absolute.is_some() => return None,
        [host] if host.is_empty() || authority(host, true) => text(host),
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
    let framing = announced(version, &headers, one_length)?;
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

/// Response head at the start of `input`, if complete and valid.
pub(crate) fn response(input: &[u8], method: Method) -> Option<Head> {
    let (line, mut headers, bytes) = head(input, lenient_line)?;
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
    let announced = announced(version, &headers, equal_lengths)?;
    let announces_body = !matches!(announced, Framing::None | Framing::Length(0));
    let framing = match status {
        0..=99 => return None,
        100..=199 if announces_body => return None,
        100..=199 | 204 | 304 => Framing::None,
        _ if method == Method::Head => Framing::None,
        200..=299 if method == Method::Connect => Framing::None,
        _ if announced == Framing::None => Framing::UntilClose,
        _ => announced,
    };
    let is_tunnel = status == 101 || (method == Method::Connect && status / 100 == 2);
    let is_doubtful = status == 204 && announces_body;
    let is_length = |field: &Field| field.0.eq_ignore_ascii_case("content-length");
    if let Some(first) = headers.iter().position(is_length) {
        let length = headers[first].1.split(|&b| b == b',').next()?;
        headers[first].1 = trimmed(length).to_vec();
        let mut at = 0;
        headers.retain(|field| {
            at += 1;
            at == first + 1 || !is_length(field)
        });
    }
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
        keep_alive: keep_alive(version, &headers)
            && framing != Framing::UntilClose
            && !is_tunnel
            && !is_doubtful,
        expect_continue: false,
        bytes,
        headers: headers
            .into_iter()
            .map(|(name, value, _)| (name, value))
            .collect(),
    })
}

pub(crate) struct Chunked {
    pub(crate) payload: Vec<u8>,
    pub(crate) bytes: usize,
    /// Bytes to forward.
    pub(crate) passed: Vec<u8>,
}

/// Chunked body at the start of `input`, if complete and valid. Servers are treated more leniently.
pub(crate) fn chunked(input: &[u8], is_servers: bool) -> Option<Chunked> {
    let (mut payload, mut passed) = (Vec::new(), Vec::new());
    let mut at = 0;
    loop {
        let line = line(&input[at..])?;
        at += line.len() + 2;
        let digits = line.iter().take_while(|b| b.is_ascii_hexdigit()).count();
        let (size, extensions) = line.split_at(digits);
        if size.is_empty() || size.len() > 16 {
            return None;
        }
        let extensions = text_of_latin1(extensions);
        let extensions = match is_servers {
            true => extensions.trim_end_matches(blank),
            false => &extensions,
        };
        if !self::extensions(extensions) {
            return None;
        }
        passed.extend_from_slice(size);
        passed.extend_from_slice(b"\r\n");
        let size = u64::from_str_radix(&text(size)?, 16).ok()?;
        if size == 0 {
            break;
        }
        let size = usize::try_from(size).ok()?;
        let end = at.checked_add(size)?;
        payload.extend_from_slice(input.get(at..end)?);
        passed.extend_from_slice(input.get(at..end)?);
        if !input[end..].starts_with(b"\r\n") {
            return None;
        }
        passed.extend_from_slice(b"\r\n");
        at = end + 2;
    }
    loop {
        let line = line(&input[at..])?;
        at += line.len() + 2;
        if line.is_empty() {
            passed.extend_from_slice(b"\r\n");
            return Some(Chunked {
                payload,
                bytes: at,
                passed,
            });
        }
        let (name, _, _) = field(line)?;
        let forbidden = "transfer-encoding content-length content-encoding content-type content-range trailer host \
            connection keep-alive upgrade te expect authorization proxy-authorization \
            forwarded x-forwarded-for x-forwarded-host x-forwarded-proto";
        let is_forbidden = forbidden
            .split(' ')
            .any(|forbidden| name.eq_ignore_ascii_case(forbidden));
        match (is_forbidden, is_servers) {
            (true, false) => return None,
            (true, true) => {}
            (false, _) => {
                passed.extend_from_slice(line);
                passed.extend_from_slice(b"\r\n");
            }
        }
    }
}

/// RFC 9112 7.1.1, literally: states between `;`, the name, `=` and the value, with white space between them.
fn extensions(text: &str) -> bool {
    #[derive(Clone, Copy, PartialEq)]
    enum At {
        Start,
        BeforeName,
        Name,
        BehindName,
        BeforeValue,
        Value,
        Quoted,
        Escaped,
        BehindValue,
    }
    let mut at = At::Start;
    for letter in text.chars() {
        let is_token = letter.is_ascii() && token(&[letter as u8]);
        at = match (at, letter) {
            (At::Quoted, '"') => At::BehindValue,
            (At::Quoted, '\\') => At::Escaped,
            (At::Quoted | At::Escaped, _) => At::Quoted,
            (At::Start | At::Name | At::BehindName | At::Value | At::BehindValue, ';') => {
                At::BeforeName
            }
            (At::Name | At::BehindName, '=') => At::BeforeValue,
            (At::BeforeValue, '"') => At::Quoted,
            (At::Name, ' ' | '\t') => At::BehindName,
            (At::Value, ' ' | '\t') => At::BehindValue,
            (
                At::Start | At::BeforeName | At::BehindName | At::BeforeValue | At::BehindValue,
                ' ' | '\t',
            ) => at,
            (At::BeforeName | At::Name, _) if is_token => At::Name,
            (At::BeforeValue | At::Value, _) if is_token => At::Value,
            _ => return false,
        };
    }
    text.is_empty()
        || (matches!(at, At::Name | At::Value | At::BehindValue) && !text.ends_with(blank))
}

fn blank(letter: char) -> bool {
    letter == ' ' || letter == '\t'
}

fn text_of_latin1(bytes: &[u8]) -> String {
    bytes.iter().map(|&b| char::from(b)).collect()
}

/// Name, trimmed value, and the whole line.
type Field = (String, Vec<u8>, Vec<u8>);

/// First line, fields, length. `line` finds the line at the start of an input.
fn head(input: &[u8], line: fn(&[u8]) -> Option<&[u8]>) -> Option<(&[u8], Vec<Field>, usize)> {
    let end = |from: usize| Some(from + input[from..].iter().position(|&b| b == b'\n')? + 1);
    let first = line(input)?;
    let mut at = end(first.len())?;
    let mut fields = Vec::new();
    loop {
        let line = line(&input[at..])?;
        at = end(at + line.len())?;
        if line.is_empty() {
            return Some((first, fields, at));
        }
        fields.push(field(line)?);
    }
}

/// Line up to the first LF, without a CR before it. The only control character allowed is tab.
fn lenient_line(input: &[u8]) -> Option<&[u8]> {
    let end = input.iter().position(|&b| b == b'\n')?;
    let line = input[..end].strip_suffix(b"\r").unwrap_or(&input[..end]);
    line.iter()
        .all(|&b| b == b'\t' || (b >= 0x20 && b != 0x7f))
        .then_some(line)
}

/// Line up to the first CRLF. The only control character allowed is tab.
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
    token(name).then(|| {
        (
            String::from_utf8_lossy(name).into_owned(),
            trimmed(value).to_vec(),
            line.to_vec(),
        )
    })
}

fn trimmed(value: &[u8]) -> &[u8] {
    let blank = |b: &u8| *b == b' ' || *b == b'\t';
    let start = value.iter().position(|b| !blank(b)).unwrap_or(value.len());
    let end = value
        .iter()
        .rposition(|b| !blank(b))
        .map_or(start, |last| last + 1);
    &value[start..end]
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

/// `length` reads the common length of these fields.
fn announced(
    version: Version,
    headers: &[Field],
    length: fn(&[Vec<u8>]) -> Option<u64>,
) -> Option<Framing> {
    let framing =
        |h: &&Field| ["content-length", "transfer-encoding"].contains(&&*h.0.to_ascii_lowercase());
    if headers.iter().filter(framing).any(|h| h.2.contains(&b'\t')) {
        return None;
    }
    let lengths = values(headers, "content-length");
    let codings = values(headers, "transfer-encoding");
    match (&lengths[..], &codings[..]) {
        ([], []) => Some(Framing::None),
        (lengths, []) => length(lengths).map(Framing::Length),
        ([], [coding]) if version == Version::Http11 && coding.eq_ignore_ascii_case(b"chunked") => {
            Some(Framing::Chunked)
        }
        _ => None,
    }
}

fn one_length(lengths: &[Vec<u8>]) -> Option<u64> {
    let [length] = lengths else {
        return None;
    };
    let ok = !length.is_empty() && length.len() <= 19 && length.iter().all(u8::is_ascii_digit);
    let length = text(length)?.parse().ok()?;
    (ok && length <= i64::MAX as u64).then_some(length)
}

fn equal_lengths(lengths: &[Vec<u8>]) -> Option<u64> {
    let joined = lengths.join(&b","[..]);
    let each = joined
        .split(|&b| b == b',')
        .map(|length| one_length(&[trimmed(length).to_vec()]));
    let each: Option<Vec<u64>> = each.collect();
    let each = each?;
    each.iter()
        .all(|length| *length == each[0])
        .then(|| each[0])
}
