//! URLs of targets.
//!
//! HTTP: `http://host[:port][/path][?query]` with port 80 and path `/` by default and IPv6 addresses in brackets;
//! `https://` with port 443; for Unix sockets `unix:/path/to/socket[:/path]` as in nginx, with or without a scheme
//! before it.
//!
//! gRPC: `grpc://host[:port]/package.Service/Method` with port 80 by default, and `grpcs://` with TLS and port 443, as
//! in nginx.
//!
//! memcached: `memcached://host[:port]` or `memcached://unix:/path/to/socket` with port 11211 by default, and
//! `memcacheds://` with TLS, all without a path.

pub mod lookup;
mod scheme;

use std::fmt;
use std::net::Ipv6Addr;
use std::path::PathBuf;

pub use scheme::Scheme;

/// Parsed URL.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Target {
    /// The URL as the user wrote it.
    pub url: String,
    /// Protocol, and whether it uses TLS.
    pub scheme: Scheme,
    /// Address to connect to.
    pub place: TargetAddress,
    /// Value of `Host` (RFC 9112 section 3.2).
    pub host: String,
    /// Request target: path and query.
    pub path: String,
}

/// Address to connect to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TargetAddress {
    /// Host name, or address without brackets, and port.
    Tcp(String, u16),
    /// Path of a Unix socket.
    Unix(PathBuf),
}

impl Target {
    /// Parses a URL. Without a scheme it is `http://`, as in curl, ab and h1load.
    ///
    /// # Errors
    /// As [`Target::of_url`].
    pub fn parse(text: &str) -> Result<Target, String> {
        let has_scheme = text.contains("://") || text.starts_with("unix:");
        if has_scheme || text.is_empty() || text.starts_with(['/', '-', '?', '#']) {
            return Target::of_url(text);
        }
        Target::of_url(&format!("http://{text}"))
    }

    /// Parses a complete URL.
    ///
    /// # Errors
    /// A sentence with the URL and the expected form.
    pub fn of_url(url: &str) -> Result<Target, String> {
        let invalid = |why: &str| {
            format!(
                "{url:?} is not a target URL: {why}; expected one such as http://127.0.0.1:8080/, unix:/run/a.sock:/ \
                 or udp://127.0.0.1:9000"
            )
        };
        if let Some(bad) = url.chars().find(|letter| !letter.is_ascii_graphic()) {
            return Err(invalid(&format!("{bad:?} must be percent-encoded")));
        }
        let named = match url.split_once("://") {
            None if url.starts_with("unix:") => Some((Scheme::Http, url)),
            Some((name, rest)) => Scheme::of_name(name).map(|scheme| (scheme, rest)),
            None => None,
        };
        let Some((scheme, rest)) = named else {
            let known = Scheme::ALL.map(|scheme| format!("{}://", scheme.name()));
            return Err(invalid(&format!(
                "it does not begin with {} or unix:",
                known.join(", ")
            )));
        };
        if let Scheme::Memcached | Scheme::Memcacheds = scheme {
            let place = Target::of_memcached(url, scheme, rest);
            return place.map_err(|why| {
                format!("{url:?} is not a memcached server: {why}; expected one such as memcached://127.0.0.1:11211 or \
                    memcached://unix:/run/memcached.sock")
            });
        }
        // A fragment is never sent (RFC 9110 section 4.2.5).
        let rest = rest.split_once('#').map_or(rest, |(rest, _)| rest);
        let (place, host, path) = match rest.strip_prefix("unix:") {
            Some(rest) => unix(rest),
            None => tcp(rest, scheme),
        }
        .map_err(|why| invalid(&why))?;
        if !scheme.is_http() && !path.is_empty() && path != "/" {
            return Err(invalid("only HTTP targets have a path"));
        }
        let path = if path.starts_with('/') {
            path.to_owned()
        } else {
            format!("/{path}")
        };
        Ok(Target {
            url: url.to_owned(),
            scheme,
            place,
            host,
            path,
        })
    }

    /// Whether the target receives one-way or echoed datagrams instead of requests.
    pub fn is_datagrams(&self) -> bool {
        self.scheme == Scheme::Udp
    }

    /// Parses a host and port, or a socket, without a path.
    fn of_memcached(url: &str, scheme: Scheme, rest: &str) -> Result<Target, String> {
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let place = match rest.strip_prefix("unix:") {
            Some(path) if path.starts_with('/') => TargetAddress::Unix(PathBuf::from(path)),
            Some(_) => return Err("the path of a Unix socket must be absolute".to_owned()),
            None if rest.contains('@') => {
                return Err("user and password are not supported: SASL needs the binary protocol, which is not supported".to_owned());
            }
            None if rest.contains(['/', '?', '#']) => {
                return Err(
                    "it has a path, but memcached has none: --keys and --key-size generate the keys"
                        .to_owned(),
                );
            }
            None => {
                let (host, port) = authority(rest, scheme.port())?;
                TargetAddress::Tcp(host.to_owned(), port)
            }
        };
        let host = match &place {
            TargetAddress::Tcp(host, _) => host.clone(),
            TargetAddress::Unix(_) => "localhost".to_owned(),
        };
        Ok(Target {
            url: url.to_owned(),
            scheme,
            place,
            host,
            path: String::new(),
        })
    }

    /// Returns the server name for TLS.
    pub(crate) fn name(&self) -> &str {
        match &self.place {
            TargetAddress::Tcp(host, _) => host,
            TargetAddress::Unix(_) => &self.host,
        }
    }
}

impl TargetAddress {
    /// Parses `HOST:PORT` or `unix:/path/to/socket`.
    ///
    /// # Errors
    /// A sentence with the text and the expected form.
    pub fn parse(text: &str) -> Result<TargetAddress, String> {
        let place = match text.strip_prefix("unix:") {
            Some(path) if path.starts_with('/') => Ok(TargetAddress::Unix(PathBuf::from(path))),
            Some(_) => Err("the path of a Unix socket must be absolute".to_owned()),
            None if text.contains(['/', '?']) => Err("it has a path".to_owned()),
            None => {
                authority(text, None).map(|(host, port)| TargetAddress::Tcp(host.to_owned(), port))
            }
        };
        place.map_err(|why| {
            format!("{text:?} is not an address to connect to: {why}; expected one such as 10.0.0.1:8080, [::1]:8080 \
                or unix:/run/a.sock")
        })
    }
}

impl fmt::Display for TargetAddress {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TargetAddress::Tcp(host, port) if host.contains(':') => write!(out, "[{host}]:{port}"),
            TargetAddress::Tcp(host, port) => write!(out, "{host}:{port}"),
            TargetAddress::Unix(path) => write!(out, "unix:{}", path.display()),
        }
    }
}

type Parts<'u> = (TargetAddress, String, &'u str);

fn unix(rest: &str) -> Result<Parts<'_>, String> {
    let (socket, path) = rest.split_once(':').unwrap_or((rest, "/"));
    if !socket.starts_with('/') {
        return Err("the path of a Unix socket must be absolute".to_owned());
    }
    Ok((
        TargetAddress::Unix(PathBuf::from(socket)),
        "localhost".to_owned(),
        path,
    ))
}

fn tcp(rest: &str, scheme: Scheme) -> Result<Parts<'_>, String> {
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (written, path) = rest.split_at(end);
    if written.contains('@') {
        return Err("user and password are not sent; use -H 'Authorization: …'".to_owned());
    }
    let (host, port) = authority(written, scheme.port())?;
    Ok((
        TargetAddress::Tcp(host.to_owned(), port),
        written.to_owned(),
        path,
    ))
}

/// Parses a host and an optional port, with `default` for a missing one.
fn authority(authority: &str, default: Option<u16>) -> Result<(&str, u16), String> {
    let (host, port) = match authority.strip_prefix('[') {
        Some(bracketed) => {
            let (host, port) = bracketed
                .split_once(']')
                .ok_or("the IPv6 address lacks its closing bracket")?;
            if host.parse::<Ipv6Addr>().is_err() {
                return Err(format!("{host:?} is not an IPv6 address"));
            }
            (host, port)
        }
        None => authority.split_at(authority.find(':').unwrap_or(authority.len())),
    };
    if port.matches(':').count() > 1 {
        let brackets = match authority.rsplit_once(':') {
            Some((host, port)) if host.parse::<Ipv6Addr>().is_ok() && is_number(port) => {
                format!("an IPv6 address needs brackets, such as [{host}]:{port}")
            }
            _ => "an IPv6 address needs brackets".to_owned(),
        };
        return Err(brackets);
    }
    if host.is_empty() {
        return Err("it has no host".to_owned());
    }
    let port = match port.strip_prefix(':') {
        None | Some("") if port.len() < 2 => default.ok_or("it has no port")?,
        Some(digits) if is_number(digits) => digits.parse().ok().filter(|&port| port > 0).ok_or(
            format!("port {digits} is out of range: expected 1 to 65535"),
        )?,
        _ => return Err(format!("{port:?} is not a port: expected 1 to 65535")),
    };
    Ok((host, port))
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns place, `Host` and path in one line, or the error.
    fn read(url: &str) -> String {
        match Target::parse(url) {
            Ok(Target {
                place: TargetAddress::Tcp(host, port),
                host: field,
                path,
                ..
            }) => format!("{host} {port} {field} {path}"),
            Ok(Target {
                place: TargetAddress::Unix(socket),
                host: field,
                path,
                ..
            }) => format!("{} {field} {path}", socket.display()),
            Err(sentence) => sentence,
        }
    }

    #[test]
    fn url_is_split_into_address_host_and_path() {
        for (url, expected) in [
            ("http://a.example", "a.example 80 a.example /"),
            ("a.example", "a.example 80 a.example /"),
            ("a:8080/b?c", "a 8080 a:8080 /b?c"),
            ("[::1]:81", "::1 81 [::1]:81 /"),
            ("HTTP://a:8080/b/c?d=1&e", "a 8080 a:8080 /b/c?d=1&e"),
            ("http://a?s=1k", "a 80 a /?s=1k"),
            ("http://a/b#c", "a 80 a /b"),
            ("http://a:/b", "a 80 a: /b"),
            ("http://[::1]:81/", "::1 81 [::1]:81 /"),
            ("http://[2001:db8::1]/x", "2001:db8::1 80 [2001:db8::1] /x"),
            ("unix:/run/a.sock", "/run/a.sock localhost /"),
            ("unix:/run/a.sock:/b?c", "/run/a.sock localhost /b?c"),
            ("http://unix:/run/a.sock:/b", "/run/a.sock localhost /b"),
            ("https://a.example/b", "a.example 443 a.example /b"),
            ("HTTPS://[::1]", "::1 443 [::1] /"),
            ("https://a:8443/", "a 8443 a:8443 /"),
            ("grpc://a/p.S/M", "a 80 a /p.S/M"),
            ("GRPCS://a/p.S/M", "a 443 a /p.S/M"),
            ("https://unix:/run/a.sock:/b", "/run/a.sock localhost /b"),
            ("memcached://a", "a 11211 a "),
            ("MEMCACHED://a:1/", "a 1 a "),
            ("memcacheds://[::1]:2", "::1 2 ::1 "),
            ("memcached://unix:/run/m.sock", "/run/m.sock localhost "),
        ] {
            assert_eq!(read(url), expected, "of {url}");
        }
    }

    #[test]
    fn invalid_urls_are_refused() {
        for (url, part) in [
            ("/index.html", "does not begin with http://"),
            ("", "does not begin with http://"),
            ("a b", "' ' must be percent-encoded"),
            ("ftp://a/", "does not begin with http://"),
            ("http://", "has no host"),
            ("http://:80/", "has no host"),
            ("http://a:0/", "port 0 is out of range"),
            (
                "http://a:65536/",
                "port 65536 is out of range: expected 1 to 65535",
            ),
            ("http://a:+1/", "is not a port"),
            ("http://::1/", "needs brackets"),
            ("::1:80", "such as [::1]:80"),
            ("http://[::1/", "lacks its closing bracket"),
            ("http://[a]/", "not an IPv6 address"),
            ("http://[::1]80/", "is not a port"),
            ("http://u:p@a/", "user and password"),
            ("http://a/b c", "' ' must be percent-encoded"),
            ("http://a/\r\nX: y", "must be percent-encoded"),
            ("http://a/\u{e9}", "must be percent-encoded"),
            ("unix:run/a.sock", "must be absolute"),
            ("memcached://", "has no host"),
            ("memcached://unix:m.sock", "must be absolute"),
            ("memcached://a/key", "memcached has none"),
            ("memcached://u:p@a", "SASL"),
        ] {
            let sentence = read(url);
            assert!(sentence.contains(part), "{sentence}");
        }
    }

    #[test]
    fn target_address_is_host_port_or_unix_socket() {
        for (text, expected) in [
            ("a.example:80", Ok("a.example:80")),
            ("[::1]:81", Ok("[::1]:81")),
            ("unix:/run/a.sock", Ok("unix:/run/a.sock")),
            ("a.example", Err("has no port")),
            ("::1", Err("needs brackets")),
            ("a:0", Err("port 0 is out of range")),
            (":80", Err("has no host")),
            ("a:80/b", Err("has a path")),
            ("http://a:80", Err("has a path")),
            ("unix:run/a.sock", Err("must be absolute")),
        ] {
            match (TargetAddress::parse(text), expected) {
                (Ok(place), Ok(expected)) => assert_eq!(place.to_string(), expected),
                (Err(why), Err(part)) => assert!(why.contains(part), "{why}"),
                (place, _) => panic!("{text} is {place:?}"),
            }
        }
    }
}
