//! Connections of clients: how many there may be, in all and from each address.

use std::net::IpAddr;
use std::num::NonZeroU32;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use onrush_config::Plan;
use onrush_config::plan::{Clients, Networks};
use onrush_engine::Stream;

use super::concurrency::{Concurrency, Entrance, Ticket};
use super::key::Keys;
use crate::worker::Worker;

/// What the cores of a server count together, from one configuration to the next.
pub(crate) struct Counts {
    /// Connections that count, where there is a bound on them all.
    open: Arc<AtomicU32>,
    /// By address, where there is a bound on those.
    addresses: Option<Concurrency>,
    keys: Arc<Keys>,
}

impl Counts {
    pub(crate) fn new(plan: &Plan, before: Option<&Counts>) -> Self {
        let addresses = before.and_then(|before| before.addresses.clone());
        let has_addresses = plan.clients.connections_per_address_max.is_some();
        Self {
            open: before.map_or_else(Arc::default, |before| Arc::clone(&before.open)),
            addresses: has_addresses.then(|| addresses.unwrap_or_else(Concurrency::new)),
            keys: before.map_or_else(Arc::default, |before| Arc::clone(&before.keys)),
        }
    }
}

/// The bounds of a configuration, prepared for one core.
#[derive(Debug)]
pub(crate) struct Bounds {
    all: Option<(Arc<AtomicU32>, NonZeroU32)>,
    per_address: Option<(Rc<Concurrency>, NonZeroU32)>,
    keys: Arc<Keys>,
    /// Proxies before us speak for many, and their addresses do not count.
    proxies: Networks,
}

/// A connection that counts, until this is dropped.
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

impl Bounds {
    /// `None` when there are none.
    pub(crate) fn new(plan: &Plan, counts: &Counts) -> Option<Rc<Self>> {
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

    /// How many count, where there is a bound on all.
    #[cfg(test)]
    pub(crate) fn open(&self) -> Option<u32> {
        let (open, _) = self.all.as_ref()?;
        Some(open.load(Relaxed))
    }

    /// Counts a connection. `None`: there are as many as there may be, and the log has heard of it.
    pub(crate) fn enter(&self, stream: &Stream, worker: &Worker) -> Option<Counted> {
        let mut counted = self.enter_all(stream, worker)?;
        if self.per_address.is_some() {
            let address = stream.peer().map(|peer| peer.ip());
            self.enter_from(address, &mut counted, worker)?;
        }
        Some(counted)
    }

    /// The same without its address, which is to come.
    pub(crate) fn enter_all(&self, stream: &Stream, worker: &Worker) -> Option<Counted> {
        let Some((open, max)) = &self.all else {
            return Some(Counted::default());
        };
        // Of two that come at the same moment both may be counted, and one refused that had room: never one too many.
        if open.fetch_add(1, Relaxed) < max.get() {
            return Some(Counted {
                _open: Some(Open(Arc::clone(open))),
                address: None,
            });
        }
        open.fetch_sub(1, Relaxed);
        let who = Who(stream.peer().map(|peer| peer.ip()));
        let why = format_args!("{who} was closed: there are as many as connections_max, {max}");
        refuse(why, worker);
        None
    }

    /// Counts it for its address as well. `None`: that has as many as it may have, and the log has heard of it.
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
            Entrance::Admit(ticket) => {
                counted.address = Some(ticket);
                Some(())
            }
            Entrance::Refuse { .. } => {
                let who = Who(Some(address));
                let why = format_args!(
                    "{who} was closed: its address has as many as connections_per_address_max, {max}"
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

/// Who has connected, in a sentence.
struct Who(Option<IpAddr>);

impl std::fmt::Display for Who {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Some(address) => write!(f, "a connection from {}", address.to_canonical()),
            None => f.write_str("a connection from a Unix socket"),
        }
    }
}
