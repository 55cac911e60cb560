//! Parses addresses to listen on and addresses of servers.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;

use crate::limits;
use crate::plan::{Address, Listener, Networks, ServerAddress};
use crate::value::{Invalid, is_host_name, is_number};

/// Parses an address to listen on: `0.0.0.0:80`, `[::]:80`, `localhost:80` (IPv4), `:80` or `80` for all IPv4 addresses
/// of this machine, or `unix:/run/onrush.sock`. With port 0 the kernel chooses a port.
pub fn parse_listen(text: &str) -> Result<Listener, Invalid> {
    if let Some(path) = text.strip_prefix("unix:") {
        let path = parse_unix_path(path, text)?;
        return Ok(Listener::plain(Address::Unix(path)));
    }
    if let Ok(mut address) = text.parse::<SocketAddr>() {
        // A socket with IPV6_V6ONLY cannot be bound to an IPv4-mapped address.
        if let IpAddr::V4(mapped) = address.ip().to_canonical() {
            address.set_ip(mapped.into());
        }
        return Ok(Listener::plain(Address::Tcp(address)));
    }
    let (host, port) = text.rsplit_once(':').unwrap_or(("", text));
    let ip = match host {
        "" => Ipv4Addr::UNSPECIFIED,
        "localhost" => Ipv4Addr::LOCALHOST,
        _ => return Err(not_a_listen(text)),
    };
    let port = match parse_port(port) {
        Port::Number(port) => port,
        Port::Beyond => return Err(beyond(port, text)),
        Port::None => return Err(not_a_listen(text)),
    };
    let address = SocketAddr::new(IpAddr::V4(ip), port);
    Ok(Listener::plain(Address::Tcp(address)))
}

/// Checks that an echo or sink listener may use this address without explicit permission: loopback addresses, private
/// networks and Unix sockets. The wildcard address (`0.0.0.0`) needs permission.
///
/// The error is a sentence that the caller may continue with what else is expected.
pub fn check_reach(address: &Address) -> Result<(), Invalid> {
    match address {
        Address::Unix(_) => Ok(()),
        Address::Tcp(address) if Networks::private().contain(address.ip()) => Ok(()),
        Address::Tcp(address) => Err(Invalid::new(format!(
            "{address} may be reachable from the Internet, where it can be abused to send traffic to spoofed addresses: expected a loopback or private address"
        ))),
    }
}

/// Checks that the address can receive datagrams.
///
/// The error is a sentence that the caller may continue with what else is expected.
pub fn check_datagrams(address: &Address) -> Result<(), Invalid> {
    match address {
        Address::Tcp(_) => Ok(()),
        Address::Unix(path) => Err(Invalid::new(format!(
            "unix:{} is a Unix socket, which cannot receive UDP: expected an IP address and a port",
            path.display()
        ))),
    }
}

fn not_a_listen(text: &str) -> Invalid {
    if let Some(wrong) = wrong_brackets_or_port(text, text) {
        return wrong;
    }
    if text.parse::<IpAddr>().is_ok() {
        let example = if text.contains(':') {
            format!("[{text}]:80")
        } else {
            format!("{text}:80")
        };
        return Invalid::new(format!(
            "{text:?} has no port: expected one such as \"{example}\""
        ));
    }
    Invalid::new(format!(
        "{text:?} is not an address to listen on: expected an IP address and a port such as \"0.0.0.0:80\", \"[::]:80\" or \":80\", or \"unix:/run/onrush.sock\""
    ))
}

/// Describes the mistake in an address that is almost valid: an IPv6 address and a port without brackets, or a port out
/// of range. `text` is the written value that contains `authority`.
fn wrong_brackets_or_port(authority: &str, text: &str) -> Option<Invalid> {
    if authority.parse::<IpAddr>().is_ok() && !authority.contains(':') {
        return None;
    }
    let (host, port) = authority.rsplit_once(':')?;
    let bracketed = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'));
    let is_address = |host: &str| host.parse::<Ipv6Addr>().is_ok();
    let is_whole = is_address(authority);
    match parse_port(port) {
        Port::Beyond if bracketed.is_some_and(is_address) || host.parse::<Ipv4Addr>().is_ok() => {
            Some(beyond(port, text))
        }
        // More than four digits cannot be part of an IPv6 address, so they are a port.
        Port::Number(_) | Port::Beyond if is_address(host) && !is_whole => {
            Some(Invalid::new(format!(
                "{text:?}: an IPv6 address with a port needs brackets: expected \"[{host}]:{port}\""
            )))
        }
        // Ambiguous: an IPv6 address, or a shorter one and a port.
        Port::Number(number) if is_whole && number >= 10 && is_address(host) => {
            Some(Invalid::new(format!(
                "{text:?} has no port, or is an IPv6 address without brackets: expected \"[{authority}]:80\", or \"[{host}]:{port}\""
            )))
        }
        Port::Number(_) | Port::Beyond | Port::None => None,
    }
}

fn beyond(port: &str, text: &str) -> Invalid {
    Invalid::new(format!(
        "{text:?}: port {port} is out of range: expected {}",
        limits::PORTS
    ))
}

/// Target of a route: a group, or a single server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ForwardTarget {
    /// Name of a group, which may not exist.
    Group(String),
    /// A single server.
    Server(ServerUrl),
}

/// A single server given as a URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerUrl {
    /// Address of the server.
    pub address: ServerAddress,
    /// Whether to connect with TLS.
    pub tls: bool,
}

/// Parses `forward` in a file: a URL as for [`parse_server_url`], or the name of a group (without a colon).
pub fn parse_forward(text: &str) -> Result<ForwardTarget, Invalid> {
    if text.contains(':') || text.parse::<Ipv4Addr>().is_ok() {
        return parse_server_url(text).map(ForwardTarget::Server);
    }
    if !is_group_name(text) {
        return Err(Invalid::new(format!(
            "{text:?} is neither a group's name nor a server: expected one such as \"app\" or \"http://10.0.0.9:8000\""
        )));
    }
    Ok(ForwardTarget::Group(text.to_owned()))
}

/// Whether `text` is valid as the name of a group: letters, digits, `-`, `_` and `.`.
pub(crate) fn is_group_name(text: &str) -> bool {
    !text.is_empty()
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
}

/// Parses the URL of a server, for `--forward` and `forward`: `http://host:port` (default port 80, a final `/` is
/// allowed), `https://host:port` (443), `http+unix:/run/app.sock` or `unix:/run/app.sock`; also `host:port`.
pub fn parse_server_url(text: &str) -> Result<ServerUrl, Invalid> {
    let plain = |address| ServerUrl {
        address,
        tls: false,
    };
    for scheme in ["http+unix://", "http+unix:", "unix://", "unix:"] {
        if let Some(path) = text.strip_prefix(scheme) {
            return parse_unix_path(path, text)
                .map(ServerAddress::Unix)
                .map(plain);
        }
    }
    let Some((scheme, rest)) = text.split_once("://") else {
        return parse_server(text).map(plain);
    };
    let (tls, port) = match scheme.to_ascii_lowercase().as_str() {
        "http" => (false, limits::PORT_DEFAULT),
        "https" => (true, limits::TLS_PORT_DEFAULT),
        _ => {
            return Err(Invalid::new(format!(
                "{text:?} has an unknown scheme: expected \"http://host:port\", \"https://host:port\" or \"unix:/path\""
            )));
        }
    };
    let authority = rest.strip_suffix('/').unwrap_or(rest);
    if authority.contains(['/', '?', '#']) {
        return Err(Invalid::new(format!(
            "{text:?} has a path, but a request is forwarded with its own path: expected \"http://host:port\""
        )));
    }
    if authority.contains('@') {
        return Err(Invalid::new(format!(
            "{text:?} has a user: expected \"http://host:port\""
        )));
    }
    let has_port = authority
        .rsplit_once(':')
        .is_some_and(|(_, port)| !port.ends_with(']'));
    let address = if has_port {
        parse_server_at(authority, text)?
    } else {
        parse_server_at(&format!("{authority}:{port}"), text)?
    };
    Ok(ServerUrl { address, tls })
}

/// Parses a server of a group: `10.0.0.1:80`, `[::1]:80`, `app.example.com:80`, `unix:/run/app.sock`, or
/// `srv:_http._tcp.example.com` for servers from SRV records.
pub fn parse_server(text: &str) -> Result<ServerAddress, Invalid> {
    if let Some(name) = text.strip_prefix("srv:") {
        if !is_host_name(name) || is_number(name) {
            return Err(Invalid::new(format!(
                "{text:?} does not name SRV records: expected a name such as \"srv:_http._tcp.example.com\""
            )));
        }
        return Ok(ServerAddress::Srv(name.to_ascii_lowercase()));
    }
    if let Some(path) = text.strip_prefix("unix:") {
        return parse_unix_path(path, text).map(ServerAddress::Unix);
    }
    parse_server_at(text, text)
}

/// Parses `host:port`; `text` is the written value that contains it.
fn parse_server_at(authority: &str, text: &str) -> Result<ServerAddress, Invalid> {
    if let Ok(address) = authority.parse::<SocketAddr>() {
        check_server_port(address.port(), text)?;
        return Ok(ServerAddress::Ip(address));
    }
    if let Some(wrong) = wrong_brackets_or_port(authority, text) {
        return Err(wrong);
    }
    let without_port = authority.parse::<IpAddr>().is_ok() || is_host_name(authority);
    let bracketed = authority.starts_with('[') && authority.ends_with(']');
    if without_port || bracketed {
        let host = if authority.contains(':') && !bracketed {
            format!("[{authority}]")
        } else {
            authority.to_owned()
        };
        return Err(Invalid::new(format!(
            "server {text:?} has no port: expected one such as \"{host}:8000\""
        )));
    }
    let not_a_server = || {
        Invalid::new(format!(
            "{text:?} is not a server: expected one such as \"10.0.0.1:8000\", \"app.example.com:8000\" or \"unix:/run/app.sock\""
        ))
    };
    let (host, port) = authority.rsplit_once(':').ok_or_else(not_a_server)?;
    if !is_host_name(host) || is_number(host) {
        return Err(not_a_server());
    }
    let port = match parse_port(port) {
        Port::Number(port) => port,
        Port::Beyond => return Err(beyond(port, text)),
        Port::None => return Err(not_a_server()),
    };
    check_server_port(port, text)?;
    Ok(ServerAddress::Name {
        host: host.to_ascii_lowercase(),
        port,
    })
}

fn check_server_port(port: u16, text: &str) -> Result<(), Invalid> {
    if port == 0 {
        return Err(Invalid::new(format!(
            "server {text:?} has port 0, which cannot be connected to: expected {}",
            limits::PORTS
        )));
    }
    Ok(())
}

enum Port {
    Number(u16),
    /// A number above 65535.
    Beyond,
    /// Not a number.
    None,
}

/// Accepts digits only: the parser of `u16` also accepts `+80`.
fn parse_port(text: &str) -> Port {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Port::None;
    }
    text.parse().map_or(Port::Beyond, Port::Number)
}

/// Parses the path of a Unix socket; `text` is the written value that contains it.
fn parse_unix_path(path: &str, text: &str) -> Result<PathBuf, Invalid> {
    if path.is_empty() {
        return Err(Invalid::new(format!(
            "{text:?} has no path: expected one such as \"unix:/run/onrush.sock\""
        )));
    }
    if path.contains('\0') {
        return Err(Invalid::new(format!("{text:?}: a path cannot contain NUL")));
    }
    if path.len() > limits::UNIX_PATH_MAX {
        return Err(Invalid::new(format!(
            "{text:?}: the path of a Unix socket has at most {} bytes, this one has {}",
            limits::UNIX_PATH_MAX,
            path.len()
        )));
    }
    Ok(PathBuf::from(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome<T: std::fmt::Display>(parsed: Result<T, Invalid>) -> String {
        match parsed {
            Ok(value) => value.to_string(),
            Err(error) => format!("error: {error}"),
        }
    }

    #[test]
    fn listen_addresses_are_parsed() {
        let not = |text: &str| {
            format!(
                "error: {text:?} is not an address to listen on: expected an IP address and a port such as \"0.0.0.0:80\", \"[::]:80\" or \":80\", or \"unix:/run/onrush.sock\""
            )
        };
        let long = format!("unix:/{}", "x".repeat(107));
        for (text, expected) in [
            ("127.0.0.1:8080", "127.0.0.1:8080"),
            ("[::]:80", "[::]:80"),
            (":8080", "0.0.0.0:8080"),
            ("8080", "0.0.0.0:8080"),
            ("0", "0.0.0.0:0"),
            ("localhost:80", "127.0.0.1:80"),
            ("unix:/run/x.sock", "unix:/run/x.sock"),
            ("unix:x.sock", "unix:x.sock"),
            ("", &not("")),
            (":", &not(":")),
            (
                "80000",
                "error: \"80000\": port 80000 is out of range: expected 1 to 65535",
            ),
            (
                "127.0.0.1:99999",
                "error: \"127.0.0.1:99999\": port 99999 is out of range: expected 1 to 65535",
            ),
            (
                "[::1]:99999",
                "error: \"[::1]:99999\": port 99999 is out of range: expected 1 to 65535",
            ),
            (
                "::1:80",
                "error: \"::1:80\" has no port, or is an IPv6 address without brackets: expected \"[::1:80]:80\", or \"[::1]:80\"",
            ),
            (
                "::1:8080",
                "error: \"::1:8080\" has no port, or is an IPv6 address without brackets: expected \"[::1:8080]:80\", or \"[::1]:8080\"",
            ),
            (
                "2001:db8::1:18080",
                "error: \"2001:db8::1:18080\": an IPv6 address with a port needs brackets: expected \"[2001:db8::1]:18080\"",
            ),
            ("+80", &not("+80")),
            ("example.com:80", &not("example.com:80")),
            ("http://0.0.0.0:80", &not("http://0.0.0.0:80")),
            (
                "10.0.0.1",
                "error: \"10.0.0.1\" has no port: expected one such as \"10.0.0.1:80\"",
            ),
            (
                "::1",
                "error: \"::1\" has no port: expected one such as \"[::1]:80\"",
            ),
            (
                "unix:",
                "error: \"unix:\" has no path: expected one such as \"unix:/run/onrush.sock\"",
            ),
            (
                "unix:a\0b",
                "error: \"unix:a\\0b\": a path cannot contain NUL",
            ),
            (
                &long,
                &format!(
                    "error: {long:?}: the path of a Unix socket has at most 107 bytes, this one has 108"
                ),
            ),
        ] {
            assert_eq!(
                outcome(parse_listen(text).map(|listen| listen.address)),
                *expected,
                "of {text:?}"
            );
        }
    }

    #[test]
    fn server_addresses_are_parsed() {
        let not = |text: &str| {
            format!(
                "error: {text:?} is not a server: expected one such as \"10.0.0.1:8000\", \"app.example.com:8000\" or \"unix:/run/app.sock\""
            )
        };
        for (text, expected) in [
            ("10.0.0.1:8000", "10.0.0.1:8000"),
            ("[::1]:8000", "[::1]:8000"),
            ("App.Example.com:8000", "app.example.com:8000"),
            ("unix:/run/app.sock", "unix:/run/app.sock"),
            ("srv:_http._tcp.Example.com", "srv:_http._tcp.example.com"),
            (
                "srv:_http._tcp.example.com:80",
                "error: \"srv:_http._tcp.example.com:80\" does not name SRV records: expected a name such as \"srv:_http._tcp.example.com\"",
            ),
            (
                "10.0.0.1",
                "error: server \"10.0.0.1\" has no port: expected one such as \"10.0.0.1:8000\"",
            ),
            (
                "app",
                "error: server \"app\" has no port: expected one such as \"app:8000\"",
            ),
            (
                "::1",
                "error: server \"::1\" has no port: expected one such as \"[::1]:8000\"",
            ),
            (
                "[::1]",
                "error: server \"[::1]\" has no port: expected one such as \"[::1]:8000\"",
            ),
            (
                "10.0.0.1:0",
                "error: server \"10.0.0.1:0\" has port 0, which cannot be connected to: expected 1 to 65535",
            ),
            (
                "app:0",
                "error: server \"app:0\" has port 0, which cannot be connected to: expected 1 to 65535",
            ),
            ("app:http", &not("app:http")),
            (
                "app:70000",
                "error: \"app:70000\": port 70000 is out of range: expected 1 to 65535",
            ),
            (
                "::1:80",
                "error: \"::1:80\" has no port, or is an IPv6 address without brackets: expected \"[::1:80]:80\", or \"[::1]:80\"",
            ),
            ("10.0.0.256:80", &not("10.0.0.256:80")),
            ("a b:80", &not("a b:80")),
            ("app:", &not("app:")),
            ("", &not("")),
        ] {
            assert_eq!(outcome(parse_server(text)), *expected, "of {text:?}");
        }
    }

    #[test]
    fn url_scheme_selects_tls() {
        for (text, tls) in [("http://a:1", false), ("a:1", false), ("HTTPS://a", true)] {
            assert_eq!(parse_server_url(text).map(|url| url.tls), Ok(tls), "{text}");
        }
    }

    #[test]
    fn server_urls_are_parsed() {
        for (text, expected) in [
            ("http://10.0.0.9:8000", "10.0.0.9:8000"),
            ("http://10.0.0.9", "10.0.0.9:80"),
            ("HTTP://App/", "app:80"),
            ("http://[::1]", "[::1]:80"),
            ("http://[::1]:8000/", "[::1]:8000"),
            ("10.0.0.9:8000", "10.0.0.9:8000"),
            ("http+unix:/run/app.sock", "unix:/run/app.sock"),
            ("http+unix:///run/app.sock", "unix:/run/app.sock"),
            ("unix:///run/app.sock", "unix:/run/app.sock"),
            ("unix:/run/app.sock", "unix:/run/app.sock"),
            ("https://10.0.0.9", "10.0.0.9:443"),
            ("https://a:1/", "a:1"),
            (
                "ftp://a:1",
                "error: \"ftp://a:1\" has an unknown scheme: expected \"http://host:port\", \"https://host:port\" or \"unix:/path\"",
            ),
            (
                "http://a:1/p",
                "error: \"http://a:1/p\" has a path, but a request is forwarded with its own path: expected \"http://host:port\"",
            ),
            (
                "http://u@a:1",
                "error: \"http://u@a:1\" has a user: expected \"http://host:port\"",
            ),
            (
                "http://",
                "error: \"http://\" is not a server: expected one such as \"10.0.0.1:8000\", \"app.example.com:8000\" or \"unix:/run/app.sock\"",
            ),
        ] {
            assert_eq!(
                outcome(parse_server_url(text).map(|url| url.address)),
                *expected,
                "of {text:?}"
            );
        }
    }

    #[test]
    fn forward_target_without_colon_is_upstream_group() {
        assert_eq!(
            parse_forward("app"),
            Ok(ForwardTarget::Group("app".to_owned()))
        );
        assert!(matches!(
            parse_forward("unix:/x"),
            Ok(ForwardTarget::Server(ServerUrl {
                address: ServerAddress::Unix(_),
                tls: false
            }))
        ));
        assert_eq!(
            parse_forward("a b").map_err(|error| error.to_string()),
            Err("\"a b\" is neither a group's name nor a server: expected one such as \"app\" or \"http://10.0.0.9:8000\"".to_owned())
        );
    }
}
