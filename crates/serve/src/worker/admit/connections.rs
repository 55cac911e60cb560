//! Limits on client connections, in total and per address.

use std::net::IpAddr;
use std::num::NonZeroU32;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use onrush_config::Plan;
use onrush_config::plan::{Clients, Networks};
use onrush_engine::Stream;

use super::concurrency::{Concurrency, ConcurrencyAdmission, Ticket};
use super::key::Keys;
use crate::worker::Worker;

/// Counts shared by all cores and successive configurations.
pub(crate) struct ConnectionCounts {
    /// Number of connections, if their total is limited.
    open: Arc<AtomicU32>,
    /// Counts by address, if they are limited.
    addresses: Option<Concurrency>,
    keys: Arc<Keys>,
}

impl ConnectionCounts {
    pub(crate) fn new(plan: &Plan, before: Option<&ConnectionCounts>) -> Self {
        let addresses = before.and_then(|before| before.addresses.clone());
        let has_addresses = plan.clients.connections_per_address_max.is_some();
        Self {
            open: before.map_or_else(Arc::default, |before| Arc::clone(&before.open)),
            addresses: has_addresses.then(|| addresses.unwrap_or_else(Concurrency::new)),
            keys: before.map_or_else(Arc::default, |before| Arc::clone(&before.keys)),
        }
    }
}

/// The limits of one configuration, prepared for one core.
#[derive(Debug)]
pub(crate) struct ConnectionLimits {
    all: Option<(Arc<AtomicU32>, NonZeroU32)>,
    per_address: Option<(Rc<Concurrency>, NonZeroU32)>,
    keys: Arc<Keys>,
    /// Load balancers in front act for many clients, so their addresses are not counted.
    proxies: Networks,
}

/// Counts a connection until it is dropped.
#[derive(Debug, Default)]
#[must_use = "the connection counts only as long as this lives"]
pub(crate) struct Counted {
    _open: Option<Open>,
    address: Option<Ticket>,
}

#[derive(Debug)]
struct Open(Arc<AtomicU32>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

impl ConnectionLimits {
    /// `None` if nothing is limited.
    pub(crate) fn new(plan: &Plan, counts: &ConnectionCounts) -> Option<Rc<Self>> {
        if plan.clients == Clients::default() {
            return None;
        }
        let per_address = plan.clients.connections_per_address_max;
        let all = plan.clients.connections_max;
        Some(Rc::new(Self {
            all: all.map(|max| (Arc::clone(&counts.open), max)),
            per_address: per_address
                .zip(counts.addresses.as_ref())
                .map(|(max, table)| (Rc::new(table.clone()), max)),
            keys: Arc::clone(&counts.keys),
            proxies: plan.forwarded.trust.clone(),
        }))
    }

    /// The number of counted connections, if their total is limited.
    #[cfg(test)]
    pub(crate) fn open(&self) -> Option<u32> {
        let (open, _) = self.all.as_ref()?;
        Some(open.load(Relaxed))
    }

    /// Counts a connection. Returns `None`, and logs, if a limit is reached.
    pub(crate) fn enter(&self, stream: &Stream, worker: &Worker) -> Option<Counted> {
        let mut counted = self.enter_all(stream, worker)?;
        if self.per_address.is_some() {
            let address = stream.peer().map(|peer| peer.ip());
            self.enter_from(address, &mut counted, worker)?;
        }
        Some(counted)
    }

    /// Counts a connection before its address is known.
    pub(crate) fn enter_all(&self, stream: &Stream, worker: &Worker) -> Option<Counted> {
        let Some((open, max)) = &self.all else {
            return Some(Counted::default());
        };
        // Two simultaneous connections may count each other, and one be refused that had room; the limit is never
        // exceeded.
        if open.fetch_add(1, Relaxed) < max.get() {
            return Some(Counted {
                _open: Some(Open(Arc::clone(open))),
                address: None,
            });
        }
        open.fetch_sub(1, Relaxed);
        let who = Who(stream.peer().map(|peer| peer.ip()));
        let why = format_args!("{who} was closed: connections_max ({max}) is reached");
        refuse(why, worker);
        None
    }

    /// Counts the address of a connection. Returns `None`, and logs, if its limit is reached.
    pub(crate) fn enter_from(
        &self,
        address: Option<IpAddr>,
        counted: &mut Counted,
        worker: &Worker,
    ) -> Option<()> {
        let (Some((table, max)), Some(address)) = (&self.per_address, address) else {
            return Some(());
        };
        if self.proxies.contain(address) {
            return Some(());
        }
        match table.enter(self.keys.address(0, address), *max) {
            ConcurrencyAdmission::Admit(ticket) => {
                counted.address = Some(ticket);
                Some(())
            }
            ConcurrencyAdmission::Refuse { .. } => {
                let who = Who(Some(address));
                let why = format_args!(
                    "{who} was closed: its address has reached connections_per_address_max ({max})"
                );
                refuse(why, worker);
                None
            }
        }
    }
}

fn refuse(why: std::fmt::Arguments<'_>, worker: &Worker) {
    worker.meter.connection_refused();
    worker.log.failure(&worker.core, why);
}

/// The client, for messages.
struct Who(Option<IpAddr>);

impl std::fmt::Display for Who {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Some(address) => write!(f, "a connection from {}", address.to_canonical()),
            None => f.write_str("a connection from a Unix socket"),
        }
    }
}
