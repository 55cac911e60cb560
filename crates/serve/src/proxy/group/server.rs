//! One server of a group on one core: its names, current address, idle connections and requests in flight. The groups
//! of two configurations may share it; settings of a configuration are in the group.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};

use onrush_config::plan::{self, ServerAddress, Upstream};
use onrush_engine::Address;
use onrush_tls::Transport;

use crate::observe::in_flight::Destination;
use crate::observe::responses::Responses;
use crate::proxy::balance::hash;
use crate::proxy::ewma::Ewma;
use crate::proxy::multiplexed::MultiplexedSet;
use crate::proxy::pool::Pool;

/// One server of a group. It has no address while its endpoint is vacant.
#[derive(Debug)]
pub(crate) struct Server {
    /// The name in the configuration.
    pub(crate) name: String,
    /// Host field for requests without one (HTTP/1.0).
    pub(crate) authority: String,
    /// The name expected in its certificate.
    pub(super) host: String,
    pub(crate) pool: Pool,
    pub(crate) multiplexed: MultiplexedSet,
    /// Current address; `None` while its endpoint is vacant.
    pub(super) address: RefCell<Option<Address>>,
    /// Whether its address differs from its name.
    has_other_address: Cell<bool>,
    /// Value of the stickiness cookie; changes with the address.
    pub(super) identity: Cell<u64>,
    pub(super) in_flight: Cell<u32>,
    pub(crate) responses: Responses,
    /// Moving average of the latency; used by `peak_ewma` only.
    pub(super) latency: RefCell<Ewma>,
    /// Number of groups that use it and have not retired.
    pub(super) users: Cell<u32>,
}

impl Server {
    pub(super) fn new(server: &plan::Server, upstream: &Upstream) -> Self {
        Self {
            name: server.address.to_string(),
            authority: match &server.address {
                // A path is not a host name.
                ServerAddress::Unix(_) => "localhost".to_owned(),
                address => address.to_string(),
            },
            host: match &server.address {
                ServerAddress::Ip(address) => address.ip().to_string(),
                ServerAddress::Name { host, .. } => host.clone(),
                // The domain after `_service._proto.` (RFC 6125), not the target, which an attacker may forge.
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

    pub(crate) fn address(&self) -> Option<Address> {
        self.address.borrow().clone()
    }

    /// Sets the address. A change closes idle connections and resets what was measured.
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

    /// Counts one more group that uses the server.
    pub(super) fn begin_use(&self) {
        self.users.set(self.users.get() + 1);
    }

    /// Counts one group less that uses the server. After the last one no connection is kept; the idle ones are
    /// returned, and the caller closes them. Requests in flight are finished.
    pub(super) fn end_use(&self) -> impl Iterator<Item = Transport> + use<> {
        self.users.set(self.users.get() - 1);
        let is_last = self.users.get() == 0;
        if is_last {
            self.multiplexed.clear();
        }
        let idle = is_last.then(|| self.pool.close());
        idle.into_iter().flatten()
    }

    pub(crate) fn is_in_use(&self) -> bool {
        self.users.get() > 0
    }

    /// Label in the log: the name, followed by the address if it differs.
    pub(crate) fn label(&self) -> String {
        match self.address().map(|address| address.to_string()) {
            Some(address) if address != self.name => format!("{} ({address})", self.name),
            _ => self.name.clone(),
        }
    }
}

impl Destination for Server {
    /// [`Server::label`], without an allocation if the name is enough.
    fn display_name(&self) -> Cow<'_, str> {
        match self.has_other_address.get() {
            false => Cow::Borrowed(&self.name),
            true => Cow::Owned(self.label()),
        }
    }
}

/// Hash of the address, the same on every core and after a restart.
pub(super) fn identity(address: &Address) -> u64 {
    hash::key(address.to_string().as_bytes())
}
