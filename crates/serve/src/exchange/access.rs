//! Access control of a route: networks, then rate and concurrency limits, then passwords. The first rule that denies a
//! request ends the check.

pub(crate) mod access_state;
mod login;
pub(crate) mod password_verifier;
pub(crate) mod users;

use std::net::{IpAddr, Ipv6Addr};
use std::num::NonZeroU32;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use onrush_config::plan::{self, Networks, RateKey};
use onrush_engine::Error;
use onrush_http::request::RequestHead;

use crate::exchange::Exchange;
use crate::exchange::refuse::refuse;
use crate::exchange::reply::Reply;
use crate::exchange::request_context::{RequestContext, Source};
use crate::routing::route::values;
use crate::rules::error_page::ErrorFormat;
use crate::worker::admit::Admission;
use crate::worker::admit::concurrency::{Concurrency, ConcurrencyAdmission, Ticket};
use crate::worker::admit::key::{Key, Keys};
use crate::worker::admit::rate::{Rate, Rates};
use access_state::AccessState;
use login::{BasicAuthenticator, Step};
use password_verifier::{Outcome, Pending};

/// The access rules of one route, prepared for one core.
#[derive(Debug)]
pub(crate) struct Access {
    allow: Networks,
    deny: Networks,
    limit: Option<Limit>,
    login: Option<BasicAuthenticator>,
}

/// The rate and concurrency limit of a route.
#[derive(Debug)]
struct Limit {
    /// Identifies the limit: see [`Keys::limit`].
    number: u64,
    by: RateKey,
    keys: Arc<Keys>,
    rate: Option<(Arc<Rates>, Rate)>,
    concurrent: Option<(Rc<Concurrency>, NonZeroU32)>,
}

/// The reason for a denial, with its status.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Denial<'w> {
    /// 403: the client's network is not allowed.
    Network,
    /// 429 (RFC 6585 section 4): too many requests.
    Limit { retry_after: Duration },
    /// 401 (RFC 9110 15.5.2): no valid credentials.
    Login { challenge: &'w str },
    /// 503: too many passwords wait to be checked.
    Busy,
}

/// Why a request cannot continue now.
#[derive(Debug)]
pub(crate) enum NotAdmitted<'w> {
    Deny(Denial<'w>),
    /// The password is being checked. The outcome goes to [`Exchange::store_login_outcome`], then the request is dispatched again.
    Verify(Pending),
}

impl Access {
    /// The rules of the route with this index; `None` if the route restricts nothing.
    pub(crate) fn new(
        plan: &plan::Access,
        route: usize,
        ledger: &AccessState,
    ) -> Option<Box<Self>> {
        if *plan == plan::Access::default() {
            return None;
        }
        let limit = plan.rate_limit.as_ref();
        let users = ledger.users.get(route).and_then(Option::as_ref);
        let login = plan
            .basic_auth
            .as_ref()
            .zip(users.zip(ledger.verifier.as_ref()));
        Some(Box::new(Self {
            allow: plan.allow.clone(),
            deny: plan.deny.clone(),
            limit: limit.map(|limit| Limit::new(limit, route, ledger)),
            login: login.map(|(plan, (users, verifier))| {
                BasicAuthenticator::new(&plan.realm, users, verifier)
            }),
        }))
    }

    /// Admits the request, or returns why it cannot continue.
    ///
    /// The `Authorization` field is forwarded to the server, as in nginx. A route can remove it with its edits.
    pub(crate) fn admit_request(
        &self,
        head: &RequestHead<'_, '_>,
        source: Source<'_>,
        exchange: &mut Exchange,
    ) -> Result<(), NotAdmitted<'_>> {
        let worker = source.worker;
        let checked = exchange.take_login_outcome();
        // If the password has been checked, the request has passed the networks and been counted already.
        if checked.is_none() {
            let ticket = self
                .enter(head, source.of(exchange))
                .map_err(NotAdmitted::Deny)?;
            exchange.hold_ticket(ticket, worker);
        }
        let Some(login) = &self.login else {
            return Ok(());
        };
        match login.step(head, checked, &worker.core) {
            Step::LetIn => Ok(()),
            Step::Ask => Err(NotAdmitted::Deny(Denial::Login {
                challenge: login.challenge(),
            })),
            Step::Wait(pending) => Err(NotAdmitted::Verify(pending)),
            Step::Busy => Err(NotAdmitted::Deny(Denial::Busy)),
        }
    }

    /// Checks the password on the calling thread, which takes about 0.1 s.
    pub(crate) fn verify_now(&self, head: &RequestHead<'_, '_>) -> Outcome {
        let login = self.login.as_ref();
        login.map_or(Outcome::Unknown, |login| login.verify_now(head))
    }

    /// Checks networks and limits. The returned ticket holds the client's slot of the concurrency limit until the
    /// response is complete.
    fn enter(
        &self,
        head: &RequestHead<'_, '_>,
        context: RequestContext<'_>,
    ) -> Result<Option<Ticket>, Denial<'static>> {
        let asks_where = !self.deny.is_empty() || !self.allow.is_empty();
        if asks_where && !self.lets_in(context.address(head.headers)) {
            return Err(Denial::Network);
        }
        match &self.limit {
            None => Ok(None),
            Some(limit) => limit.enter(head, context),
        }
    }

    /// A client of a Unix socket has no address and is in no network.
    fn lets_in(&self, client: Option<IpAddr>) -> bool {
        let is_in = |networks: &Networks| client.is_some_and(|address| networks.contain(address));
        !is_in(&self.deny) && (self.allow.is_empty() || is_in(&self.allow))
    }
}

impl Limit {
    fn new(plan: &plan::RateLimit, route: usize, ledger: &AccessState) -> Self {
        let rates = ledger.rates.as_ref().zip(plan.requests.as_ref());
        let concurrency = ledger.concurrency.as_ref().zip(plan.concurrent);
        Self {
            number: ledger.limits[route].expect("a route with a limit has its number"),
            by: plan.key.clone(),
            keys: Arc::clone(&ledger.keys),
            rate: rates.map(|(rates, rate)| (Arc::clone(rates), Rate::from(rate))),
            concurrent: concurrency.map(|(table, most)| (Rc::new(table.clone()), most)),
        }
    }

    fn enter(
        &self,
        head: &RequestHead<'_, '_>,
        context: RequestContext<'_>,
    ) -> Result<Option<Ticket>, Denial<'static>> {
        let key = self.key(head, context);
        // Concurrency first: a ticket can be returned, a request counted in the rate cannot.
        let ticket = match &self.concurrent {
            None => None,
            Some((table, most)) => match table.enter(key, *most) {
                ConcurrencyAdmission::Admit(ticket) => Some(ticket),
                ConcurrencyAdmission::Refuse { retry_after } => {
                    return Err(Denial::Limit { retry_after });
                }
            },
        };
        if let Some((rates, rate)) = &self.rate
            && let Admission::Refuse { retry_after } =
                rates.admit(key, *rate, context.worker.core.now())
        {
            return Err(Denial::Limit { retry_after });
        }
        Ok(ticket)
    }

    fn key(&self, head: &RequestHead<'_, '_>, context: RequestContext<'_>) -> Key {
        match &self.by {
            RateKey::Address => {
                // All clients of Unix sockets share one key.
                let nowhere = IpAddr::V6(Ipv6Addr::UNSPECIFIED);
                let address = context.address(head.headers).unwrap_or(nowhere);
                self.keys.address(self.number, address)
            }
            RateKey::Header(name) => {
                let value = values(head, name).next();
                self.keys.header(self.number, value.unwrap_or(b""))
            }
            RateKey::Route => self.keys.route(self.number),
        }
    }
}

impl Denial<'_> {
    /// The reason in the response.
    pub(crate) fn reason(self) -> &'static str {
        match self {
            Denial::Network => "not from your network",
            Denial::Limit { .. } => "too many requests",
            Denial::Login { .. } => "a name and a password are needed",
            Denial::Busy => "too many logins at a time",
        }
    }

    pub(crate) fn respond(self, form: ErrorFormat, reply: &mut Reply<'_>) -> Result<(), Error> {
        let reason = self.reason();
        match self {
            Denial::Network => refuse((403, reason), &[], form, reply),
            Denial::Limit { retry_after } => {
                let mut digits = itoa::Buffer::new();
                let seconds = digits.format(seconds_up(retry_after));
                let fields = [("Retry-After", seconds)];
                refuse((429, reason), &fields, form, reply)
            }
            Denial::Login { challenge } => {
                let fields = [("WWW-Authenticate", challenge)];
                refuse((401, reason), &fields, form, reply)
            }
            Denial::Busy => {
                let fields = [("Retry-After", "1")];
                refuse((503, reason), &fields, form, reply)
            }
        }
    }
}

/// Whole seconds for `Retry-After` (RFC 9110 10.2.3), rounded up so that the client does not retry too early.
fn seconds_up(time: Duration) -> u64 {
    time.as_secs() + u64::from(time.subsec_nanos() > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use onrush_config::Plan;
    use onrush_config::plan::Network;

    fn networks(written: &[(&str, u8)]) -> Networks {
        let network = |&(address, prefix): &(&str, u8)| {
            Network::new(address.parse().expect("an address"), prefix).expect("a prefix of it")
        };
        Networks(written.iter().map(network).collect())
    }

    #[test]
    fn deny_takes_precedence_over_allow() {
        let access = |allow: &[(&str, u8)], deny: &[(&str, u8)]| {
            let plan = plan::Access {
                allow: networks(allow),
                deny: networks(deny),
                ..plan::Access::default()
            };
            let everything = Plan::one_liner(plan::OneLiner::Synthetic, Vec::new());
            let ledger =
                AccessState::new(&everything, Vec::new(), None).expect("no thread is needed");
            Access::new(&plan, 0, &ledger).expect("it has rules")
        };
        let home = ("10.0.0.0", 8);
        let guests = ("10.9.0.0", 16);
        for (access, address, is_in) in [
            (access(&[home], &[]), "10.1.2.3", true),
            (access(&[home], &[]), "192.0.2.1", false),
            (access(&[home], &[]), "::ffff:10.1.2.3", true),
            (access(&[home], &[guests]), "10.9.0.1", false),
            (access(&[home], &[guests]), "10.8.0.1", true),
            (access(&[], &[guests]), "192.0.2.1", true),
            (access(&[], &[guests]), "10.9.0.1", false),
            (access(&[("::", 0)], &[]), "10.9.0.1", false),
        ] {
            let client = Some(address.parse().expect("an address"));
            assert_eq!(access.lets_in(client), is_in, "{address} by {access:?}");
        }
        assert!(!access(&[home], &[]).lets_in(None));
        assert!(access(&[], &[home]).lets_in(None));
    }

    #[test]
    fn retry_after_is_rounded_up() {
        for (time, seconds) in [
            (Duration::ZERO, 0),
            (Duration::from_nanos(1), 1),
            (Duration::from_secs(1), 1),
            (Duration::from_millis(1001), 2),
        ] {
            assert_eq!(seconds_up(time), seconds, "{time:?}");
        }
    }

    /// A configuration with one route for each item of `routes`.
    fn plan(routes: &[&str]) -> Plan {
        let route = |route: &&str| format!("[[route]]\nrespond = {{ status = 200 }}\n{route}\n");
        let text: String = routes.iter().map(route).collect();
        let parsed = onrush_config::parse(&text, std::path::Path::new("onrush.toml"));
        parsed
            .unwrap_or_else(|wrong| panic!("{text}: {wrong:?}"))
            .plan
    }

    const A: &str =
        "path = \"/a/\"\nrate_limit = { key = \"route\", requests = \"1/h\", burst = 0 }";
    const B: &str =
        "path = \"/b/\"\nrate_limit = { key = \"route\", requests = \"1/h\", burst = 0 }";

    /// For each route, whether it admits one more request.
    fn let_in(plan: &Plan, ledger: &AccessState) -> Vec<bool> {
        let route = |(index, route): (usize, &plan::Route)| {
            let access = Access::new(&route.access, index, ledger).expect("it has rules");
            let limit = access.limit.expect("of requests");
            let (rates, rate) = limit.rate.expect("in a time");
            let key = limit.keys.route(limit.number);
            let now = onrush_engine::Instant::from_nanoseconds(1 << 50);
            rates.admit(key, rate, now) == Admission::Admit
        };
        plan.routes.iter().enumerate().map(route).collect()
    }

    #[test]
    fn exhausted_rate_limit_survives_reload() {
        let ledger = |plan: &Plan, before: Option<&AccessState>| {
            AccessState::new(plan, Vec::new(), before).expect("no thread is needed")
        };
        let first = plan(&[A, B, A]);
        let before = ledger(&first, None);
        let a_and_another = plan(&[A, A]);
        let a_and_another = ledger(&a_and_another, Some(&before));
        assert_eq!(let_in(&plan(&[A, A]), &a_and_another), [true, true]);
        // The first keeps its rate; the second of two equal routes has one of its own.
        assert_eq!(let_in(&first, &before), [false, true, false]);
        let by_header = A.replace("\"route\"", "\"header:x\"");
        let next = plan(&[B, &by_header, A, A, A]);
        let after = ledger(&next, Some(&before));
        assert_eq!(let_in(&next, &after), [false, true, false, false, true]);
        let unlimited = ledger(&plan(&["path = \"/a/\""]), Some(&after));
        let again = ledger(&first, Some(&unlimited));
        assert_eq!(let_in(&first, &again), [true; 3], "nobody remembered it");
    }

    #[test]
    fn concurrency_limit_is_shared_across_reload() {
        let limited = plan(&["rate_limit = { key = \"route\", concurrent = 1 }"]);
        let before = AccessState::new(&limited, Vec::new(), None).expect("no thread is needed");
        let after =
            AccessState::new(&limited, Vec::new(), Some(&before)).expect("no thread is needed");
        let enter = |ledger: &AccessState| {
            let access = Access::new(&limited.routes[0].access, 0, ledger).expect("it has rules");
            let limit = access.limit.expect("of requests");
            let (table, most) = limit.concurrent.expect("at a time");
            match table.enter(limit.keys.route(limit.number), most) {
                ConcurrencyAdmission::Admit(ticket) => Some(ticket),
                ConcurrencyAdmission::Refuse { .. } => None,
            }
        };
        let ticket = enter(&before).expect("it is the first");
        assert!(enter(&after).is_none());
        drop(ticket);
        assert!(enter(&after).is_some());
    }
}
