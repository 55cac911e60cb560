//! Which route a request takes. Pure: routes and a request in, a route out.

use onrush_config::plan::{PathMatch, When};

/// The conditions of a route and what stands behind them.
#[derive(Debug)]
pub(crate) struct Route<T> {
    pub(crate) when: When,
    pub(crate) target: T,
}

impl<T> Route<T> {
    /// What is left of `path` behind a prefix, or the whole of it.
    pub(crate) fn rest<'p>(&self, path: &'p [u8]) -> &'p [u8] {
        match &self.when.path {
            PathMatch::Prefix(prefix) => &path[prefix.len().min(path.len())..],
            PathMatch::Any | PathMatch::Exact(_) | PathMatch::Regex(_) => path,
        }
    }
}

/// The first route that matches. `authority` is `host[:port]` as received, `path` is normalized.
pub(crate) fn choose<'r, T>(
    routes: &'r [Route<T>],
    authority: Option<&str>,
    path: &[u8],
) -> Option<&'r Route<T>> {
    routes.iter().find(|route| {
        let host = || host_of(authority.unwrap_or("")).as_bytes();
        let hosts = &route.when.hosts;
        (hosts.is_empty() || hosts.iter().any(|known| known.matches(host())))
            && route.when.path.matches(path)
    })
}

/// `host[:port]` without the port; an IPv6 address keeps its brackets.
fn host_of(authority: &str) -> &str {
    match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => authority,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_loses_its_port_and_nothing_else() {
        for (authority, host) in [
            ("a.example", "a.example"),
            ("a.example:80", "a.example"),
            ("a.example:", "a.example"),
            ("[::1]:80", "[::1]"),
            ("[::1]", "[::1]"),
            ("", ""),
        ] {
            assert_eq!(host_of(authority), host);
        }
    }

    #[test]
    fn the_first_match_in_file_order_wins() {
        let text = r#"
            [[route]]
            host = "a.example"
            path = "=/exact"
            respond = { status = 200 }
            [[route]]
            path = "/p/"
            respond = { status = 201 }
            [[route]]
            respond = { status = 202 }
        "#;
        let parsed =
            onrush_config::parse(text, std::path::Path::new("onrush.toml")).expect("valid");
        let routes: Vec<Route<usize>> = parsed
            .plan
            .routes
            .iter()
            .enumerate()
            .map(|(target, route)| Route {
                when: route.when.clone(),
                target,
            })
            .collect();
        for (authority, path, target) in [
            (Some("a.example"), "/exact", 0),
            (Some("A.EXAMPLE:8080"), "/exact", 0),
            (Some("b.example"), "/exact", 2),
            (None, "/p/x", 1),
            (Some("a.example"), "/p", 2),
        ] {
            assert_eq!(
                choose(&routes, authority, path.as_bytes()).unwrap().target,
                target,
                "{path}"
            );
        }
        assert_eq!(routes[1].rest(b"/p/x"), b"x");
    }
}
