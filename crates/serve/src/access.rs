//! Who is let in: a route's rules about networks, rates and passwords, in this order, each looked at only when those
//! before it let the request through.

mod login;
mod users;
mod verify;

use std::io;
use std::net::{IpAddr, Ipv6Addr};
use std::num::NonZeroU32;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use onrush_config::Plan;
use onrush_config::plan::{self, Networks, RateKey};
use onrush_engine::Error;
use onrush_http::request::RequestHead;
use onrush_tls::Transport;

use crate::admit::Admission;
use crate::admit::concurrency::{Concurrency, Entrance, Ticket};
use crate::admit::key::{Key, Keys};
use crate::admit::rate::{Rate, Rates};
use crate::client::Client;
use crate::exchange::{Asker, Exchange};
use crate::respond::refuse::refuse;
use crate::respond::{Context, Writer};
use crate::route::values;
use crate::worker::Worker;
use login::{Login, Step};
use verify::Verifier;

pub(crate) use users::Users;
pub(crate) use verify::{Outcome, Pending};

/// What the cores of a server know together of who comes. What no route needs is not there.
#[derive(Debug)]
pub(crate) struct Ledger {
    /// The users of each route.
    users: Vec<Option<Arc<Users>>>,
    verifier: Option<Verifier>,
    keys: Arc<Keys>,
    rates: Option<Arc<Rates>>,
    concurrency: Option<Concurrency>,
}

impl Ledger {
    /// `users` are those of each route.
    ///
    /// # Errors
    /// When the system has no thread to check passwords with.
    pub(crate) fn new(plan: &Plan, users: Vec<Option<Arc<Users>>>) -> io::Result<Self> {
        let limits = || {
            let routes = plan.routes.iter();
            routes.filter_map(|route| route.access.rate_limit.as_ref())
        };
        let has_rates = limits().any(|limit| limit.requests.is_some());
        let has_concurrency = limits().any(|limit| limit.concurrent.is_some());
        let asks_for_passwords = users.iter().any(Option::is_some);
        Ok(Self {
            verifier: asks_for_passwords.then(Verifier::start).transpose()?,
            users,
            keys: Arc::default(),
            rates: has_rates.then(|| Arc::new(Rates::new())),
            concurrency: has_concurrency.then(Concurrency::new),
        })
    }
}

/// The rules of one route, prepared for one core.
#[derive(Debug)]
pub(crate) struct Access {
    allow: Networks,
    deny: Networks,
    limit: Option<Limit>,
    login: Option<Login>,
}

/// How much of it.
#[derive(Debug)]
struct Limit {
    /// Tells limits apart: the index of the route.
    number: u32,
    by: RateKey,
    keys: Arc<Keys>,
    rate: Option<(Arc<Rates>, Rate)>,
    concurrent: Option<(Rc<Concurrency>, NonZeroU32)>,
}

/// What a request is told that is not let in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Denial<'w> {
    /// 403: not from there.
    Network,
    /// 429 (RFC 6585 section 4): too many of them.
    Limit { retry_after: Duration },
    /// 401 (RFC 9110 15.5.2): who are you?
    Login { challenge: &'w str },
    /// 503: too many passwords wait to be checked.
    Busy,
}

/// Why a request does not go on.
#[derive(Debug)]
pub(crate) enum Halt<'w> {
    Deny(Denial<'w>),
    /// Its password has to be checked first. What comes of it goes to [`Exchange::verified`], and then the request is
    /// looked at once more.
    Verify(Pending),
}

impl Access {
    /// The rules of the route with this index; `None` for routes that let everybody in.
    pub(crate) fn new(plan: &plan::Access, route: usize, ledger: &Ledger) -> Option<Box<Self>> {
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
            login: login.map(|(plan, (users, verifier))| Login::new(&plan.realm, users, verifier)),
        }))
    }

    /// Lets the request in `exchange` in, or says why not.
    ///
    /// A login goes on to servers as it came, as nginx does it: they may want to know who it is. A route can take it out
    /// by its edits.
    pub(crate) fn let_in(
        &self,
        head: &RequestHead<'_, '_>,
        worker: &Worker,
        client: &Client,
        stream: &Transport,
        exchange: &mut Exchange,
    ) -> Result<(), Halt<'_>> {
        let checked = exchange.take_verified();
        // Whose password has been checked meanwhile has passed, and been counted, before.
        if checked.is_none() {
            let asker = Asker {
                worker,
                client,
                stream,
                exchange,
            };
            let ticket = self.enter(head, asker).map_err(Halt::Deny)?;
            exchange.hold(ticket, worker);
        }
        let Some(login) = &self.login else {
            return Ok(());
        };
        match login.step(head, checked, &worker.core) {
            Step::LetIn => Ok(()),
            Step::Ask => Err(Halt::Deny(Denial::Login {
                challenge: login.challenge(),
            })),
            Step::Wait(pending) => Err(Halt::Verify(pending)),
            Step::Busy => Err(Halt::Deny(Denial::Busy)),
        }
    }

    /// Whether the client may come from where it does and as often as it does; the ticket counts for it until it is
    /// answered.
    fn enter(
        &self,
        head: &RequestHead<'_, '_>,
        asker: Asker<'_>,
    ) -> Result<Option<Ticket>, Denial<'static>> {
        let asks_where = !self.deny.is_empty() || !self.allow.is_empty();
        if asks_where && !self.lets_in(asker.address(head.headers)) {
            return Err(Denial::Network);
        }
        match &self.limit {
            None => Ok(None),
            Some(limit) => limit.enter(head, asker),
        }
    }

    /// Whoever has no address, behind a Unix socket, is in no network.
    fn lets_in(&self, client: Option<IpAddr>) -> bool {
        let is_in = |networks: &Networks| client.is_some_and(|address| networks.contain(address));
        !is_in(&self.deny) && (self.allow.is_empty() || is_in(&self.allow))
    }
}

impl Limit {
    fn new(plan: &plan::RateLimit, route: usize, ledger: &Ledger) -> Self {
        let rates = ledger.rates.as_ref().zip(plan.requests.as_ref());
        let concurrency = ledger.concurrency.as_ref().zip(plan.concurrent);
        Self {
            number: route as u32,
            by: plan.key.clone(),
            keys: Arc::clone(&ledger.keys),
            rate: rates.map(|(rates, rate)| (Arc::clone(rates), Rate::from(rate))),
            concurrent: concurrency.map(|(table, most)| (Rc::new(table.clone()), most)),
        }
    }

    fn enter(
        &self,
        head: &RequestHead<'_, '_>,
        asker: Asker<'_>,
    ) -> Result<Option<Ticket>, Denial<'static>> {
        let key = self.key(head, asker);
        // Those at a time first: a ticket can be given back, and what counts for the rate cannot.
        let ticket = match &self.concurrent {
            None => None,
            Some((table, most)) => match table.enter(key, *most) {
                Entrance::Admit(ticket) => Some(ticket),
                Entrance::Refuse { retry_after } => return Err(Denial::Limit { retry_after }),
            },
        };
        if let Some((rates, rate)) = &self.rate
            && let Admission::Refuse { retry_after } =
                rates.admit(key, *rate, asker.worker.core.now())
        {
            return Err(Denial::Limit { retry_after });
        }
        Ok(ticket)
    }

    fn key(&self, head: &RequestHead<'_, '_>, asker: Asker<'_>) -> Key {
        match &self.by {
            RateKey::Address => {
                // All who come by a Unix socket count together.
                let nowhere = IpAddr::V6(Ipv6Addr::UNSPECIFIED);
                let address = asker.address(head.headers).unwrap_or(nowhere);
                self.keys.address(self.number, address)
            }
            RateKey::Header(name) => {
                let value = values(head.headers, name).next();
                self.keys.header(self.number, value.unwrap_or(b""))
            }
            RateKey::Route => self.keys.route(self.number),
        }
    }
}

impl Denial<'_> {
    pub(crate) fn answer(self, context: Context, writer: &mut Writer<'_>) -> Result<(), Error> {
        match self {
            Denial::Network => refuse(403, "not from your network", &[], context, writer),
            Denial::Limit { retry_after } => {
                let mut digits = itoa::Buffer::new();
                let seconds = digits.format(seconds_up(retry_after));
                let fields = [("Retry-After", seconds)];
                refuse(429, "too many requests", &fields, context, writer)
            }
            Denial::Login { challenge } => {
                let fields = [("WWW-Authenticate", challenge)];
                refuse(
                    401,
                    "a name and a password are needed",
                    &fields,
                    context,
                    writer,
                )
            }
            Denial::Busy => {
                let fields = [("Retry-After", "1")];
                refuse(503, "too many logins at a time", &fields, context, writer)
            }
        }
    }
}

/// Whole seconds (RFC 9110 10.2.3), never too few: who comes back in time should not come too early.
fn seconds_up(time: Duration) -> u64 {
    time.as_secs() + u64::from(time.subsec_nanos() > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use onrush_config::plan::Network;

    fn networks(written: &[(&str, u8)]) -> Networks {
        let network = |&(address, prefix): &(&str, u8)| {
            Network::new(address.parse().expect("an address"), prefix).expect("a prefix of it")
        };
        Networks(written.iter().map(network).collect())
    }

    #[test]
    fn deny_is_looked_at_first_and_allow_is_for_those_it_names() {
        let access = |allow: &[(&str, u8)], deny: &[(&str, u8)]| {
            let plan = plan::Access {
                allow: networks(allow),
                deny: networks(deny),
                ..plan::Access::default()
            };
            let everything = Plan::one_liner(plan::OneLiner::Synthetic, Vec::new());
            let ledger = Ledger::new(&everything, Vec::new()).expect("no thread is needed");
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
    fn the_time_to_wait_is_rounded_up_to_seconds() {
        for (time, seconds) in [
            (Duration::ZERO, 0),
            (Duration::from_nanos(1), 1),
            (Duration::from_secs(1), 1),
            (Duration::from_millis(1001), 2),
        ] {
            assert_eq!(seconds_up(time), seconds, "{time:?}");
        }
    }
}
