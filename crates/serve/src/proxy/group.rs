//! A group of servers, seen from one core: its balancer, and a pool of connections for each server.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use onrush_config::plan::Upstream;
use onrush_engine::{Address, Core};

use super::balance::Balancer;
use super::pool::Pool;
use crate::limits::POOL_SWEEP;

/// The addresses of a group's servers, in its order.
#[derive(Clone, Debug)]
pub(crate) struct Resolved {
    pub(crate) servers: Vec<Address>,
}

/// One server of a group.
#[derive(Debug)]
pub(crate) struct Server {
    /// As it was written, for people.
    pub(crate) name: String,
    pub(crate) address: Address,
    pub(crate) pool: Pool,
}

#[derive(Debug)]
pub(crate) struct Group {
    servers: Vec<Server>,
    balancer: RefCell<Balancer>,
}

impl Group {
    pub(crate) fn new(upstream: &Upstream, resolved: &Resolved, seed: u64) -> Self {
        let weights = upstream.servers.iter().map(|server| server.weight);
        let servers = upstream
            .servers
            .iter()
            .zip(&resolved.servers)
            .map(|(server, address)| Server {
                name: server.address.to_string(),
                address: address.clone(),
                pool: Pool::new(upstream.connections_idle_max),
            });
        Self {
            servers: servers.collect(),
            balancer: RefCell::new(Balancer::new(upstream.balance, weights, seed)),
        }
    }

    /// The server that takes the next request.
    pub(crate) fn choose(&self) -> &Server {
        &self.servers[self.balancer.borrow_mut().next()]
    }

    /// Closes all idle connections.
    pub(crate) fn clear(&self) {
        self.servers.iter().for_each(|server| server.pool.clear());
    }

    /// Closes connections that were idle for longer than `idle_max`, until the core stops.
    pub(crate) async fn sweep(self: Rc<Self>, core: Core, idle_max: Duration) {
        while !core.is_stopping() {
            self.servers
                .iter()
                .for_each(|server| server.pool.expire(core.now(), idle_max));
            core.sleep_unless_stopping(POOL_SWEEP).await;
        }
    }
}
