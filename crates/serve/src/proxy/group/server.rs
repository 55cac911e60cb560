//! One server of a group on one core: its names, its address at present, its idle connections, and what is in flight.
//! Groups of two configurations may share it; what a configuration makes of it is theirs.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};

use onrush_config::plan::{self, ServerAddress, Upstream};
use onrush_engine::Address;
use onrush_tls::Transport;

use crate::observe::live::Destination;
use crate::observe::responses::Responses;
use crate::proxy::balance::hash;
use crate::proxy::ewma::Ewma;
use crate::proxy::multiplexed::MultiplexedSet;
use crate::proxy::pool::Pool;

/// One server of a group; it has no address while its endpoint is vacant.
#[derive(Debug)]
pub(crate) struct Server {
    /// As it was written, for people.
    pub(crate) name: String,
    /// Its Host for requests that have none (HTTP/1.0).
    pub(crate) authority: String,
    /// The name that its certificate is for.
    pub(super) host: String,
    pub(crate) pool: Pool,
    pub(crate) multiplexed: MultiplexedSet,
    /// Where it is now; `None` while its endpoint is vacant.
    pub(super) address: RefCell<Option<Address>>,
    /// Whether it is at an address that its name does not say.
    has_other_address: Cell<bool>,
    /// What a sticky cookie says for it: it changes when the address does.
    pub(super) identity: Cell<u64>,
    pub(super) in_flight: Cell<u32>,
    /// What came of requests to it.
    pub(crate) responses: Responses,
    /// How fast it has responded; only where that is needed.
    pub(super) latency: RefCell<Ewma>,
    /// Groups that use it and have not retired.
    pub(super) users: Cell<u32>,
}

impl Server {
    pub(super) fn new(server: &plan::Server, upstream: &Upstream) -> Self {
        Self {
            name: server.address.to_string(),
            authority: match &server.address {
                // A path is no host.
                ServerAddress::Unix(_) => "localhost".to_owned(),
                address => address.to_string(),
            },
            host: match &server.address {
                ServerAddress::Ip(address) => address.ip().to_string(),
                ServerAddress::Name { host, .. } => host.clone(),
                // Not the target, which whoever forges the record chooses: the domain behind `_service._proto.` (RFC 6125).
                ServerAddress::Srv(name) => {
                    let labels = name.split('.');
                    let domain: Vec<&str> =
                        labels.skip_while(|label| label.starts_with('_')).collect();
                    domain.join(".")
                }
                ServerAddress::Unix(_) => "localhost".to_owned(),
            },
            pool: Pool::new(upstream.connections_idle_max),
            multiplexed: MultiplexedSet::default(),
            address: RefCell::default(),
            has_other_address: Cell::new(false),
            identity: Cell::new(0),
            in_flight: Cell::new(0),
            responses: Responses::default(),
            latency: RefCell::new(Ewma::default()),
            users: Cell::new(0),
        }
    }

    /// Where it is now; `None` when its endpoint is vacant.
    pub(crate) fn address(&self) -> Option<Address> {
        self.address.borrow().clone()
    }

    /// The server has another address now, or none.
    pub(super) fn move_to(&self, address: Option<Address>) {
        if *self.address.borrow() != address {
            self.pool.drain();
            self.multiplexed.close();
            self.identity.set(address.as_ref().map_or(0, identity));
            self.latency.take();
            let named = |address: &Address| address.to_string() == self.name;
            self.has_other_address
                .set(!address.as_ref().is_some_and(named));
            self.address.replace(address);
        }
    }

    /// One more group has requests for it.
    pub(super) fn begin_use(&self) {
        self.users.set(self.users.get() + 1);
    }

    /// Records that one group fewer uses this server. After the last one, no connection is kept, and the idle connections are
    /// returned for closing; requests in flight continue to their end.
    pub(super) fn end_use(&self) -> impl Iterator<Item = Transport> + use<> {
        self.users.set(self.users.get() - 1);
        let is_last = self.users.get() == 0;
        if is_last {
            self.multiplexed.clear();
        }
        let idle = is_last.then(|| self.pool.close());
        idle.into_iter().flatten()
    }

    /// Whether a group that has not retired uses it.
    pub(crate) fn is_in_use(&self) -> bool {
        self.users.get() > 0
    }

    /// How the log tells it from others: its name as it was written, and its address where the name may have several.
    pub(crate) fn label(&self) -> String {
        match self.address().map(|address| address.to_string()) {
            Some(address) if address != self.name => format!("{} ({address})", self.name),
            _ => self.name.clone(),
        }
    }
}

impl Destination for Server {
    /// [`Server::label`], without an allocation where the name is all.
    fn known_as(&self) -> Cow<'_, str> {
        match self.has_other_address.get() {
            false => Cow::Borrowed(&self.name),
            true => Cow::Owned(self.label()),
        }
    }
}

/// The same on every core and after every restart.
pub(super) fn identity(address: &Address) -> u64 {
    hash::key(address.to_string().as_bytes())
}
