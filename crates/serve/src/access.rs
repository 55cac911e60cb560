//! Who is let in: a route's rules about networks, rates and passwords, in this order, each looked at only when those
//! before it let the request through.

use std::net::{IpAddr, Ipv6Addr};
use std::num::NonZeroU32;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use onrush_config::Plan;
use onrush_config::plan::{self, Networks, RateKey};
use onrush_engine::Error;
use onrush_http::request::RequestHead;

use crate::admit::Admission;
use crate::admit::concurrency::{Concurrency, Entrance, Ticket};
use crate::admit::key::{Key, Keys};
use crate::admit::rate::{Rate, Rates};
use crate::passage::Asker;
use crate::respond::refuse::refuse;
use crate::respond::{Context, Writer};
use crate::route::values;

/// What the cores of a server count together. Tables that no route needs are not there.
#[derive(Debug)]
pub(crate) struct Ledger {
    keys: Arc<Keys>,
    rates: Option<Arc<Rates>>,
    concurrency: Option<Concurrency>,
}

impl Ledger {
    pub(crate) fn new(plan: &Plan) -> Self {
        let limits = || {
            let routes = plan.routes.iter();
            routes.filter_map(|route| route.access.rate_limit.as_ref())
        };
        let has_rates = limits().any(|limit| limit.requests.is_some());
        let has_concurrency = limits().any(|limit| limit.concurrent.is_some());
        Self {
            keys: Arc::default(),
            rates: has_rates.then(|| Arc::new(Rates::new())),
            concurrency: has_concurrency.then(Concurrency::new),
        }
    }
}

/// The rules of one route, prepared for one core.
#[derive(Debug)]
pub(crate) struct Access {
    allow: Networks,
    deny: Networks,
    limit: Option<Limit>,
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
pub(crate) enum Denial {
    /// 403: not from there.
    Network,
    /// 429 (RFC 6585 section 4): too many of them.
    Limit { retry_after: Duration },
}

impl Access {
    /// The rules of the route with this index; `None` for routes that let everybody in.
    pub(crate) fn new(plan: &plan::Access, route: usize, ledger: &Ledger) -> Option<Box<Self>> {
        if *plan == plan::Access::default() {
            return None;
        }
        let limit = plan.rate_limit.as_ref();
        Some(Box::new(Self {
            allow: plan.allow.clone(),
            deny: plan.deny.clone(),
            limit: limit.map(|limit| Limit::new(limit, route, ledger)),
        }))
    }

    /// Whether the client may come from where it does and as often as it does; the ticket counts for it until it is
    /// answered.
    pub(crate) fn enter(
        &self,
        head: &RequestHead<'_, '_>,
        asker: Asker<'_>,
    ) -> Result<Option<Ticket>, Denial> {
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
    ) -> Result<Option<Ticket>, Denial> {
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

impl Denial {
    pub(crate) fn answer(self, context: Context, writer: &mut Writer<'_>) -> Result<(), Error> {
        match self {
            Denial::Network => refuse(403, "not from your network", &[], context, writer),
            Denial::Limit { retry_after } => {
                let mut digits = itoa::Buffer::new();
                let seconds = digits.format(seconds_up(retry_after));
                let fields = [("Retry-After", seconds)];
                refuse(429, "too many requests", &fields, context, writer)
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
            let ledger = Ledger::new(&Plan::one_liner(plan::OneLiner::Synthetic, Vec::new()));
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
