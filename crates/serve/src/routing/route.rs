//! Chooses the route of a request. Pure.

mod index;

use std::borrow::Cow;
use std::sync::Arc;

use onrush_config::plan::{self, RouteMatch, ValueMatch};
use onrush_http::forwarded::Scheme;
use onrush_http::request::RequestHead;
use onrush_http::{Header, query};

use crate::routing::client::ClientOrigin;
use index::{Candidate, ConditionKinds, path_start};

pub(crate) use index::RouteIndex;

/// The conditions and the target of a route.
#[derive(Debug)]
pub(crate) struct Route<T> {
    pub(crate) when: RouteMatch,
    pub(crate) target: T,
}

/// Client and listener of a request, for routes that have conditions on them.
pub(crate) trait RouteContext {
    /// The client, from its connection or from trusted proxies.
    fn origin(&self) -> ClientOrigin;

    /// Name of the listener.
    fn listener(&self) -> &str;
}

/// The first condition of a route that a request does not meet, with an index if there may be several of a kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum UnmetCondition {
    Host,
    Path,
    Method,
    Header(u32),
    Query(u32),
    From,
    Scheme,
    Listener,
    /// All conditions of this `not` are met.
    Not(u32),
}

/// All routes, indexed so that hundreds of them cost a request little more than a few.
#[derive(Debug)]
pub(crate) struct Routes<T> {
    /// In file order.
    routes: Vec<Route<T>>,
    index: Arc<RouteIndex>,
}

impl<T> Routes<T> {
    /// `routes` are in file order, and `index` was built from them.
    pub(crate) fn new(routes: Vec<Route<T>>, index: &Arc<RouteIndex>) -> Self {
        debug_assert_eq!(
            index.all.len(),
            routes.len(),
            "the index is of these routes"
        );
        Self {
            routes,
            index: Arc::clone(index),
        }
    }

    /// Removes the routes, when no request needs them any more.
    pub(crate) fn take(&mut self) -> Vec<Route<T>> {
        std::mem::take(&mut self.routes)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Route<T>> {
        self.routes.iter()
    }

    /// Index of the first route that matches. `path` is the normalized path; `coming` is used only if a route needs it.
    #[inline]
    pub(crate) fn choose(
        &self,
        head: &RequestHead<'_, '_>,
        path: &[u8],
        coming: &impl RouteContext,
    ) -> Option<usize> {
        let beginning = path_start(path);
        let host = match self.index.has_host_conditions {
            true => host_of(head.authority.unwrap_or("")),
            false => "",
        };
        // The earliest match of several lists wins: in each list, only routes before the current best are tried.
        let mut end = self.routes.len();
        let mut look = |candidates: &[Candidate]| {
            let found = candidates
                .iter()
                .take_while(|candidate| (candidate.route as usize) < end)
                .filter(|candidate| beginning & candidate.mask == candidate.path_start)
                .find(|candidate| {
                    let when = &self.routes[candidate.route as usize].when;
                    let asked = (host.as_bytes(), path, candidate.asks);
                    unmet(when, head, asked, coming).is_none()
                });
            end = found.map_or(end, |candidate| candidate.route as usize);
        };
        match &self.index.hosts {
            None => look(&self.index.all),
            Some(hosts) => hosts.each(host, look),
        }
        (end < self.routes.len()).then_some(end)
    }

    /// Why the route with this index does not match; `None` if it does.
    pub(crate) fn unmet_condition(
        &self,
        index: usize,
        head: &RequestHead<'_, '_>,
        path: &[u8],
        coming: &impl RouteContext,
    ) -> Option<UnmetCondition> {
        let host = host_of(head.authority.unwrap_or("")).as_bytes();
        let when = &self.routes[index].when;
        unmet(when, head, (host, path, ConditionKinds::of(when)), coming)
    }

    #[inline]
    pub(crate) fn have_host_conditions(&self) -> bool {
        self.index.has_host_conditions
    }

    #[inline]
    pub(crate) fn route(&self, index: usize) -> &Route<T> {
        &self.routes[index]
    }
}

/// The first condition that is not met.
#[inline]
fn unmet(
    when: &RouteMatch,
    head: &RequestHead<'_, '_>,
    (host, path, asks): (&[u8], &[u8], ConditionKinds),
    coming: &impl RouteContext,
) -> Option<UnmetCondition> {
    if let unmet @ Some(_) = unmet_of_place(when, host, path) {
        return unmet;
    }
    match asks {
        ConditionKinds::HostAndPath => None,
        ConditionKinds::More => unmet_beyond(when, head, (host, path), coming),
    }
}

#[inline]
fn unmet_of_place(when: &RouteMatch, host: &[u8], path: &[u8]) -> Option<UnmetCondition> {
    if !when.hosts.is_empty() && !when.hosts.iter().any(|known| known.matches(host)) {
        return Some(UnmetCondition::Host);
    }
    (!when.path.matches(path)).then_some(UnmetCondition::Path)
}

/// The less frequent conditions.
fn unmet_beyond(
    when: &RouteMatch,
    head: &RequestHead<'_, '_>,
    (host, path): (&[u8], &[u8]),
    coming: &dyn RouteContext,
) -> Option<UnmetCondition> {
    let unmet = unmet_of_rest(when, head, coming);
    unmet.or_else(|| {
        let holds = |not: &RouteMatch| {
            unmet_of_place(not, host, path).is_none() && unmet_of_rest(not, head, coming).is_none()
        };
        let mut not = when.not.iter().zip(0..);
        not.find(|(not, _)| holds(not))
            .map(|(_, index)| UnmetCondition::Not(index))
    })
}

fn unmet_of_rest(
    when: &RouteMatch,
    head: &RequestHead<'_, '_>,
    coming: &dyn RouteContext,
) -> Option<UnmetCondition> {
    let is_method = |method: &String| method == head.method_text;
    if !when.methods.is_empty() && !when.methods.iter().any(is_method) {
        return Some(UnmetCondition::Method);
    }
    for ((name, wanted), index) in when.headers.iter().zip(0..) {
        if !is_found(wanted, values(head, name)) {
            return Some(UnmetCondition::Header(index));
        }
    }
    for ((name, wanted), index) in when.query.iter().zip(0..) {
        if !is_found(wanted, parameters(head.query, name)) {
            return Some(UnmetCondition::Query(index));
        }
    }
    if let Some(networks) = &when.from
        && !coming
            .origin()
            .address
            .is_some_and(|it| networks.contain(it))
    {
        return Some(UnmetCondition::From);
    }
    if let Some(scheme) = when.scheme
        && !is_scheme(scheme, coming.origin().scheme)
    {
        return Some(UnmetCondition::Scheme);
    }
    let is_listener = |listener: &String| listener == coming.listener();
    (!when.listeners.is_empty() && !when.listeners.iter().any(is_listener))
        .then_some(UnmetCondition::Listener)
}

fn is_scheme(wanted: plan::Scheme, scheme: Scheme) -> bool {
    match wanted {
        plan::Scheme::Http => scheme == Scheme::Http,
        plan::Scheme::Https => scheme == Scheme::Https,
    }
}

/// Whether any of `values` matches; for `Absent`, whether there is none.
fn is_found<V: AsRef<[u8]>>(wanted: &ValueMatch, mut values: impl Iterator<Item = V>) -> bool {
    match wanted {
        ValueMatch::Present => values.next().is_some(),
        ValueMatch::Absent => values.next().is_none(),
        ValueMatch::Exact(exact) => values.any(|value| value.as_ref() == exact.as_bytes()),
        ValueMatch::Regex(pattern) => values.any(|value| pattern.matches(value.as_ref())),
    }
}

/// The values of all fields called `name`. The value of `Host` is the effective one: the host of the target replaces
/// that of the field (RFC 9112 3.2.2), and HTTP/2 has `:authority` (RFC 9113 8.3.1).
pub(crate) fn values<'b>(head: &RequestHead<'_, 'b>, name: &str) -> impl Iterator<Item = &'b [u8]> {
    let is_host = name.eq_ignore_ascii_case("host");
    let host = head.authority.filter(|_| is_host).map(str::as_bytes);
    let named = move |header: &&Header<'b>| !is_host && header.name.eq_ignore_ascii_case(name);
    let others = head.headers.iter().filter(named);
    host.into_iter().chain(others.map(|header| header.value))
}

fn parameters<'q>(query: Option<&'q str>, name: &str) -> impl Iterator<Item = Cow<'q, [u8]>> {
    query::parameters(query.unwrap_or(""))
        .filter(move |(found, _)| found.is(name.as_bytes()))
        .map(|(_, value)| value.decoded())
}

/// `host[:port]` without the port and a final dot; an IPv6 address keeps its brackets.
pub(crate) fn host_of(authority: &str) -> &str {
    let host = authority.trim_end_matches(|letter: char| letter.is_ascii_digit());
    let host = host.strip_suffix(':').unwrap_or(authority);
    host.strip_suffix('.').unwrap_or(host)
}

#[cfg(test)]
mod tests {
    use super::*;
    use onrush_config::plan::{Host, Network, Networks, PathMatch};
    use onrush_config::value::parse_path;
    use onrush_http::{HeaderSlots, Limits, Parsed, request};
    use std::net::IpAddr;

    #[test]
    fn host_parsing_strips_port_and_trailing_dot() {
        for (authority, host) in [
            ("a.example", "a.example"),
            ("a.example:80", "a.example"),
            ("a.example:", "a.example"),
            ("a.example.", "a.example"),
            ("a.example.:80", "a.example"),
            ("[::1]:80", "[::1]"),
            ("[::1]", "[::1]"),
            ("", ""),
        ] {
            assert_eq!(host_of(authority), host);
        }
    }

    fn when(hosts: &[&str], path: PathMatch) -> RouteMatch {
        let host = |name: &&str| match name.strip_prefix('*') {
            Some(suffix) => Host::Subdomains(suffix.to_owned()),
            None => Host::Exact((*name).to_owned()),
        };
        RouteMatch {
            hosts: hosts.iter().map(host).collect(),
            path,
            ..RouteMatch::default()
        }
    }

    fn prefix(path: &str) -> PathMatch {
        PathMatch::Prefix(path.to_owned())
    }

    fn exact(path: &str) -> PathMatch {
        PathMatch::Exact(path.to_owned())
    }

    fn routes(conditions: Vec<RouteMatch>) -> Routes<()> {
        let index = Arc::new(RouteIndex::new(conditions.iter()));
        let route = |when| Route { when, target: () };
        Routes::new(conditions.into_iter().map(route).collect(), &index)
    }

    /// The route of a request with these lines, over TLS and from a client at 192.0.2.1.
    fn chosen(routes: &Routes<()>, request: &str) -> Option<usize> {
        let text = format!("{}\r\n\r\n", request.replace('\n', "\r\n"));
        let mut slots = HeaderSlots::new();
        let Parsed::Complete(head) = request::parse(text.as_bytes(), &mut slots, &Limits::DEFAULT)
        else {
            panic!("{request:?} is no request");
        };
        let path = crate::routing::path::normalize(head.path).expect("a path that means something");
        let chosen = routes.choose(&head, &path, &Somebody);
        let why_not = |index| routes.unmet_condition(index, &head, &path, &Somebody);
        let first = (0..routes.routes.len()).find(|&index| why_not(index).is_none());
        assert_eq!(chosen, first, "each route before it has a reason");
        chosen
    }

    /// A client on the listener "public".
    struct Somebody;

    impl RouteContext for Somebody {
        fn origin(&self) -> ClientOrigin {
            ClientOrigin {
                address: Some(IpAddr::from([192, 0, 2, 1])),
                scheme: Scheme::Https,
            }
        }

        fn listener(&self) -> &str {
            "public"
        }
    }

    fn get(host: &str, path: &str) -> String {
        format!("GET {path} HTTP/1.1\nHost: {host}")
    }

    #[test]
    fn first_matching_route_wins() {
        let routes = routes(vec![
            when(&["a.example"], exact("/exact")),
            when(&[], prefix("/p/")),
            when(&["*.example"], prefix("/p")),
            when(&[], PathMatch::Any),
        ]);
        for (host, path, route) in [
            ("a.example", "/exact", 0),
            ("A.EXAMPLE:8080", "/exact", 0),
            ("a.example.", "/exact", 0),
            ("b.example", "/exact", 3),
            ("a.example", "/p/x", 1),
            ("a.example", "/p", 2),
            ("example", "/p", 3),
            ("a.example", "/exact/", 3),
            ("a.example", "//exact", 0),
            ("a.example", "/x/..//p//x", 1),
            ("a.example", "/%70/x", 1),
        ] {
            assert_eq!(
                chosen(&routes, &get(host, path)),
                Some(route),
                "{host}{path}"
            );
        }
        assert_eq!(chosen(&routes, "GET /p/ HTTP/1.0"), Some(1));
        assert_eq!(
            chosen(&routes, "OPTIONS * HTTP/1.1\nHost: a.example"),
            Some(3)
        );
    }

    #[test]
    fn unmatched_request_has_no_route() {
        let routes = routes(vec![when(&["a.example"], prefix("/p"))]);
        assert_eq!(chosen(&routes, &get("a.example", "/")), None);
        assert_eq!(chosen(&routes, &get("b.example", "/p")), None);
    }

    #[test]
    fn negated_group_requires_all_its_conditions() {
        let not = |conditions: Vec<RouteMatch>| RouteMatch {
            not: conditions,
            ..when(&[], prefix("/"))
        };
        let get = |when: RouteMatch| RouteMatch {
            methods: vec!["GET".to_owned()],
            ..when
        };
        let private = || when(&["in.example"], prefix("/private/"));
        let headers = vec![("x-a".to_owned(), ValueMatch::Present)];
        let header = RouteMatch {
            headers,
            ..RouteMatch::default()
        };
        for (not, request, matches) in [
            (
                not(vec![private()]),
                "GET /private/x HTTP/1.1\nHost: in.example",
                false,
            ),
            (
                not(vec![private()]),
                "GET /x HTTP/1.1\nHost: in.example",
                true,
            ),
            (
                not(vec![private()]),
                "GET /private/x HTTP/1.1\nHost: a",
                true,
            ),
            (
                not(vec![private()]),
                "GET /public/..//private/x HTTP/1.1\nHost: IN.example.:80",
                false,
            ),
            (
                not(vec![get(private())]),
                "PUT /private/x HTTP/1.1\nHost: in.example",
                true,
            ),
            (
                not(vec![get(private()), header.clone()]),
                "PUT /private/x HTTP/1.1\nHost: in.example",
                true,
            ),
            (
                not(vec![get(private()), header.clone()]),
                "PUT /private/x HTTP/1.1\nHost: in.example\nX-A:",
                false,
            ),
            (not(vec![header]), "GET / HTTP/1.1\nHost: a", true),
        ] {
            let found = chosen(&routes(vec![not]), request).is_some();
            assert_eq!(found, matches, "{request}");
        }
    }

    #[test]
    fn all_conditions_must_match() {
        let equals = |value: &str| ValueMatch::Exact(value.to_owned());
        let one = |name: &str, wanted| vec![(name.to_owned(), wanted)];
        let network = |bits| Network::new([192, 0, 2, 0].into(), bits).expect("a prefix of it");
        let with = |change: &dyn Fn(&mut RouteMatch)| {
            let mut when = when(&[], PathMatch::Any);
            change(&mut when);
            routes(vec![when])
        };
        let post = with(&|when| when.methods = vec!["POST".into(), "PURGE".into()]);
        let header = with(&|when| when.headers = one("x-a", equals("1")));
        let present = with(&|when| when.headers = one("X-A", ValueMatch::Present));
        let absent = with(&|when| when.headers = one("x-a", ValueMatch::Absent));
        let host = with(&|when| when.headers = one("Host", equals("a.example:80")));
        let hostless = with(&|when| when.headers = one("Host", ValueMatch::Absent));
        let regex = with(&|when| {
            let Ok(PathMatch::Regex(pattern)) = parse_path("~^v[0-9]+$") else {
                panic!("a pattern");
            };
            when.headers = one("x-a", ValueMatch::Regex(pattern));
        });
        let query = with(&|when| when.query = one("a b", equals("c&d")));
        let near = with(&|when| when.from = Some(Networks(vec![network(24)])));
        let far = with(&|when| when.from = Some(Networks(vec![network(32)])));
        let plain = with(&|when| when.scheme = Some(plan::Scheme::Http));
        let encrypted = with(&|when| when.scheme = Some(plan::Scheme::Https));
        let here = with(&|when| when.listeners = vec!["x".into(), "public".into()]);
        let elsewhere = with(&|when| when.listeners = vec!["x".into()]);
        for (routes, request, holds) in [
            (&post, "PURGE / HTTP/1.1\nHost: h", true),
            (&post, "GET / HTTP/1.1\nHost: h", false),
            (&header, "GET / HTTP/1.1\nHost: h\nX-A: 0\nX-A: 1", true),
            (&header, "GET / HTTP/1.1\nHost: h\nX-A: 1, 2", false),
            (&header, "GET / HTTP/1.1\nHost: h", false),
            (&present, "GET / HTTP/1.1\nHost: h\nx-a:", true),
            (&present, "GET / HTTP/1.1\nHost: h\nx-b: 1", false),
            (&absent, "GET / HTTP/1.1\nHost: h\nx-b: 1", true),
            (&absent, "GET / HTTP/1.1\nHost: h\nX-A: 1", false),
            (&host, "GET / HTTP/1.1\nhost: a.example:80", true),
            (&host, "GET http://a.example:80/ HTTP/1.1\nHost: h", true),
            (&host, "GET http://h/ HTTP/1.1\nHost: a.example:80", false),
            (&hostless, "GET / HTTP/1.0\nX-A: 1", true),
            (&hostless, "GET http://h/ HTTP/1.0\nX-A: 1", false),
            (&regex, "GET / HTTP/1.1\nHost: h\nX-A: v12", true),
            (&regex, "GET / HTTP/1.1\nHost: h\nX-A: v", false),
            (&query, "GET /?x&a+b=c%26d HTTP/1.1\nHost: h", true),
            (&query, "GET /?a%20b=c HTTP/1.1\nHost: h", false),
            (&query, "GET / HTTP/1.1\nHost: h", false),
            (&near, "GET / HTTP/1.1\nHost: h", true),
            (&far, "GET / HTTP/1.1\nHost: h", false),
            (&plain, "GET / HTTP/1.1\nHost: h", false),
            (&encrypted, "GET / HTTP/1.1\nHost: h", true),
            (&here, "GET / HTTP/1.1\nHost: h", true),
            (&elsewhere, "GET / HTTP/1.1\nHost: h", false),
        ] {
            assert_eq!(chosen(routes, request).is_some(), holds, "{request}");
        }
    }

    /// Reference implementation without the index: the first route whose conditions hold.
    fn chosen_slowly(routes: &Routes<()>, host: &str, path: &str) -> Option<usize> {
        let fits = |when: &RouteMatch| {
            (when.hosts.is_empty()
                || when
                    .hosts
                    .iter()
                    .any(|known| known.matches(host.as_bytes())))
                && when.path.matches(path.as_bytes())
        };
        routes.routes.iter().position(|route| fits(&route.when))
    }

    proptest::proptest! {
        #[test]
        fn route_index_matches_linear_scan(
            conditions in proptest::collection::vec(
                (
                    proptest::sample::subsequence(
                        vec!["a.b.c", "*.b.c", "*.c", "b.c", "x.c", "*.a.b.c", "d"],
                        0..3,
                    ),
                    proptest::sample::select(vec![
                        prefix("/"), prefix("/aaaaaaa"), prefix("/aaaaaaaa"), prefix("/ab/"),
                        exact("/"), exact("/aaaaaaaab"), exact("/ab"), PathMatch::Any,
                    ]),
                ),
                0..40,
            ),
            host in proptest::sample::select(vec!["a.b.c", "b.c", "z.a.b.c", "x.c", "y.c", "d", "c", ".c", ""]),
            path in proptest::sample::select(vec!["/", "/ab", "/ab/c", "/aaaaaaa", "/aaaaaaaa", "/aaaaaaaab", "/aaaaaaaac"]),
        ) {
            let routes = routes(conditions.iter().map(|(hosts, path)| when(hosts, path.clone())).collect());
            let request = get(&host.to_ascii_uppercase(), path);
            proptest::prop_assert_eq!(chosen(&routes, &request), chosen_slowly(&routes, host, path));
        }
    }
}
