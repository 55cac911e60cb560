//! A group of servers, seen from one core: its balancer, and a pool of connections for each server.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use onrush_config::plan::{ServerAddress, Upstream};
use onrush_engine::{Address, Core};

use super::balance::{Balancer, Member, Question, hash};
use super::pool::Pool;
use crate::limits::{POOL_SWEEP, WEIGHT_SCALE};

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
    /// Its Host for requests that have none (HTTP/1.0).
    pub(crate) authority: String,
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
        let members: Vec<Member> = (0..)
            .zip(&upstream.servers)
            .map(|(server, written)| Member {
                server,
                weight: written.weight * WEIGHT_SCALE,
                load_max: u32::MAX,
                identity: hash::key(written.address.to_string().as_bytes()),
            })
            .collect();
        let servers = upstream
            .servers
            .iter()
            .zip(&resolved.servers)
            .map(|(server, address)| Server {
                name: server.address.to_string(),
                authority: match &server.address {
                    // A path is no host.
                    ServerAddress::Unix(_) => "localhost".to_owned(),
                    address => address.to_string(),
                },
                address: address.clone(),
                pool: Pool::new(upstream.connections_idle_max),
            });
        Self {
            servers: servers.collect(),
            balancer: RefCell::new(Balancer::new((&upstream.balance).into(), &members, seed)),
        }
    }

    /// The index of the server that takes the next request.
    pub(crate) fn choose(&self) -> usize {
        let question = Question {
            key: 0,
            load: &|_| 0,
            load_sum: 0,
            latency: &|_| 0,
            avoid: &[],
        };
        let chosen = self.balancer.borrow_mut().choose(&question);
        chosen.expect("a group has servers and none is ever full") as usize
    }

    /// A server by its index.
    pub(crate) fn server(&self, index: usize) -> &Server {
        &self.servers[index]
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

#[cfg(test)]
mod tests {
    use super::*;
    use onrush_config::plan::{Action, OneLiner, Plan};

    #[test]
    fn a_server_has_a_host_for_requests_that_have_none() {
        for (address, host) in [
            (ServerAddress::Ip(([10, 0, 0, 1], 80).into()), "10.0.0.1:80"),
            (
                ServerAddress::Name {
                    host: "app".into(),
                    port: 8000,
                },
                "app:8000",
            ),
            (ServerAddress::Unix("/run/app.sock".into()), "localhost"),
        ] {
            let plan = Plan::one_liner(OneLiner::Forward(vec![address]), Vec::new());
            assert_eq!(plan.routes[0].action, Action::forward(0));
            let servers = vec![Address::Unix("/x".into())];
            let group = Group::new(&plan.upstreams[0], &Resolved { servers }, 0);
            assert_eq!(group.server(group.choose()).authority, host);
        }
    }
}
