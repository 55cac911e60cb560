//! The argument of `proxy_pass` and `grpc_pass`.

use super::handler::Module;
use crate::expression::condition::Scheme;

const VARIABLE: &str = "servers must be names or addresses, without variables";

/// A server or group to forward to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Target<'t> {
    pub(super) module: Module,
    pub(super) scheme: Scheme,
    /// Name of an `upstream`, a server with an optional port, or `unix:/path`.
    pub(super) authority: &'t str,
    /// Replacement for the location's path; `grpc_pass` has none.
    pub(super) uri: Option<&'t str>,
}

/// Parses the argument of `proxy_pass` or `grpc_pass`.
pub(super) fn parse(module: Module, text: &str) -> Result<Target<'_>, String> {
    match module {
        Module::Proxy => of_proxy(text),
        Module::Grpc => of_grpc(text),
    }
}

/// A URL with scheme, server and an optional URI.
fn of_proxy(text: &str) -> Result<Target<'_>, String> {
    let (scheme, rest) = match (text.strip_prefix("http://"), text.strip_prefix("https://")) {
        (Some(rest), _) => (Scheme::Http, rest),
        (None, Some(rest)) => (Scheme::Https, rest),
        (None, None) => {
            return Err("expected a URL with http or https, without variables".to_owned());
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
    // `$request_uri` is the client's own URI, so nothing is replaced.
    let uri = uri.filter(|uri| !matches!(*uri, "/${request_uri}"));
    let authority = authority
        .strip_suffix("${request_uri}")
        .unwrap_or(authority);
    if authority.contains('$') {
        return Err(VARIABLE.to_owned());
    }
    if uri.is_some_and(|uri| uri.contains(['$', '?', '#', ' '])) {
        return Err("the path in the URL cannot contain variables or a query".to_owned());
    }
    Ok(Target {
        module: Module::Proxy,
        scheme,
        authority,
        uri,
    })
}

/// A server with an optional scheme.
fn of_grpc(text: &str) -> Result<Target<'_>, String> {
    let (scheme, authority) = match text.split_once("://") {
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("grpc") => (Scheme::Http, rest),
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("grpcs") => (Scheme::Https, rest),
        _ => (Scheme::Http, text),
    };
    if authority.contains('$') {
        return Err(VARIABLE.to_owned());
    }
    if authority.contains(['/', '?']) && !authority.starts_with("unix:") {
        return Err(
            "grpc_pass expects a server with an optional grpc:// or grpcs://, and no path after it, as in nginx"
                .to_owned(),
        );
    }
    Ok(Target {
        module: Module::Grpc,
        scheme,
        authority,
        uri: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(module: Module, text: &str, expected: Option<(Scheme, &str, Option<&str>)>) {
        let found = parse(module, text).ok();
        let found = found.map(|target| (target.scheme, target.authority, target.uri));
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn url_has_server_and_optional_path() {
        use Scheme::{Http, Https};
        for (text, expected) in [
            ("http://app", Some((Http, "app", None))),
            ("https://app:1/", Some((Https, "app:1", Some("/")))),
            ("http://unix:/s:/x", Some((Http, "unix:/s", Some("/x")))),
            ("http://app$request_uri", Some((Http, "app", None))),
            ("app", None),
            ("grpc://app", None),
            ("http://$a", None),
            ("http://app/?a", None),
        ] {
            check(Module::Proxy, text, expected);
        }
    }

    #[test]
    fn grpc_target_has_no_path() {
        use Scheme::{Http, Https};
        for (text, expected) in [
            ("app", Some((Http, "app", None))),
            ("[::1]:1", Some((Http, "[::1]:1", None))),
            ("grpc://app:1", Some((Http, "app:1", None))),
            ("GRPCS://app", Some((Https, "app", None))),
            ("unix:/run/s", Some((Http, "unix:/run/s", None))),
            ("grpcs://unix:/s", Some((Https, "unix:/s", None))),
            ("grpc://app/", None),
            ("app:1/x", None),
            ("app?x", None),
            ("http://app", None),
            ("grpc://$host", None),
        ] {
            check(Module::Grpc, text, expected);
        }
    }
}
