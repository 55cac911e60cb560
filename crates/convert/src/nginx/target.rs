//! What a directive such as `proxy_pass` names: a server, and how it is asked.

use crate::condition::Scheme;

/// What `proxy_pass` names.
#[derive(Clone, Copy, Debug)]
pub(super) struct Target<'t> {
    pub(super) scheme: Scheme,
    /// An upstream, a server with or without a port, or `unix:/path`.
    pub(super) authority: &'t str,
    /// What stands in the place of the location's path.
    pub(super) uri: Option<&'t str>,
}

/// Scheme, server and URI of the argument.
pub(super) fn parse(text: &str) -> Result<Target<'_>, String> {
    let (scheme, rest) = match (text.strip_prefix("http://"), text.strip_prefix("https://")) {
        (Some(rest), _) => (Scheme::Http, rest),
        (None, Some(rest)) => (Scheme::Https, rest),
        (None, None) => {
            return Err("a server is a URL of http or https without variables".to_owned());
        }
    };
    let (authority, uri) = match rest.strip_prefix("unix:") {
        Some(unix) => match unix.split_once(':') {
            Some((path, uri)) => (
                &rest[..5 + path.len()],
                Some(uri).filter(|uri| !uri.is_empty()),
            ),
            None => (rest, None),
        },
        None => match rest.find(['/', '?']) {
            Some(at) => (&rest[..at], Some(&rest[at..])),
            None => match rest
                .strip_suffix("$request_uri")
                .or(rest.strip_suffix("${request_uri}"))
            {
                Some(authority) => (authority, None),
                None => (rest, None),
            },
        },
    };
    // A URI of variables that is the client's own is none.
    let uri = uri.filter(|uri| !matches!(*uri, "/${request_uri}"));
    let authority = authority
        .strip_suffix("${request_uri}")
        .unwrap_or(authority);
    if authority.contains('$') {
        return Err("servers have names and addresses, not variables".to_owned());
    }
    if uri.is_some_and(|uri| uri.contains(['$', '?', '#', ' '])) {
        return Err("the path of a server has no variables and no query".to_owned());
    }
    Ok(Target {
        scheme,
        authority,
        uri,
    })
}
