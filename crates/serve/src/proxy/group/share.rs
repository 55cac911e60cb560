//! A client's share of a group's capacity: its requests in flight are limited to a multiple of the free capacity.

use std::net::IpAddr;

use onrush_config::plan::UpstreamProtocol;
use onrush_engine::random::mix;

use super::Group;
use crate::limits::CLIENT_REQUESTS_PER_FREE;
use crate::worker::Worker;
use crate::worker::admit::key::Key;

impl Group {
    /// Whether the capacity is limited, so that clients have shares of it.
    pub(crate) fn has_shares(&self) -> bool {
        self.is_limited || self.speaks_http2()
    }

    /// Key of the client with this address. If each core has its own limit, clients are counted per core.
    pub(crate) fn client(&self, address: IpAddr, worker: &Worker) -> Key {
        let number = match self.is_limited {
            true => self.number,
            false => mix(self.number ^ (worker.core.id() as u64 + 1)),
        };
        let counts = &worker.group_clients;
        let key = counts.key(&worker.connection_budget.group_clients, number, address);
        self.clients.share(counts);
        key
    }

    /// Whether the client may have one more request in flight; always true without free capacity.
    pub(super) fn is_within_share(&self, client: Key) -> bool {
        let requests = self.clients.requests(client);
        if requests == 0 {
            return true;
        }
        let mut free = 0_u32;
        let is_within = self.usable_servers().any(|(server, _)| {
            free = free.saturating_add(self.free(server));
            requests < free.saturating_mul(CLIENT_REQUESTS_PER_FREE)
        });
        is_within || free == 0
    }

    /// Number of further requests that a server accepts.
    fn free(&self, server: u32) -> u32 {
        let endpoint = &self.endpoints.all()[server as usize];
        match self.plan.protocol {
            _ if self.is_limited => endpoint
                .connections_max
                .saturating_sub(endpoint.in_flight()),
            UpstreamProtocol::Http2(bounds) => self.server(server).multiplexed.free(bounds),
            UpstreamProtocol::Http1 => u32::MAX,
        }
    }

    /// Number of the next waiting request, if the client of any waiting request is within its share.
    pub(super) fn next_waiting(&self) -> Option<u64> {
        self.queue.next(|client| self.is_within_share(client))
    }

    /// Called when a request has ended: nothing else wakes requests that are all beyond the shares of their clients.
    pub(super) fn wake_if_all_beyond_share(&self) {
        if !self.queue.is_empty() && self.queue.is_outside_line() {
            self.queue.call(|client| self.is_within_share(client));
        }
    }

    /// Passes on a wake-up: wakes the next request, or lets queues of other cores have the capacity.
    pub(super) fn pass_on_wake_up(&self) {
        match self.next_waiting() {
            Some(_) => self.queue.call(|client| self.is_within_share(client)),
            None => self.queue.leave_line(),
        }
    }
}

/// Number of a group, the same on all cores and in the next configuration.
pub(super) fn number(name: &str) -> u64 {
    let bytes = name.bytes().map(u64::from);
    bytes.fold(name.len() as u64, |number, byte| mix(number ^ byte))
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;
    use std::sync::Arc;
    use std::time::Duration;

    use onrush_config::plan::Timeouts;
    use onrush_engine::{Core, Instant, Simulation};
    use onrush_http::Method;

    use super::*;
    use crate::proxy::endpoints::Endpoints;
    use crate::worker::client_counts::{ClientCounts, CoreClientCounts};

    fn group() -> Rc<Group> {
        let text = "[[route]]\nforward = \"app\"\n[upstream.app]\nservers = [\"127.0.0.1:9\"]\nconnections_max = 1\n";
        let parsed = onrush_config::parse(text, std::path::Path::new("onrush.toml")).unwrap();
        let upstream = &parsed.plan.upstreams[0];
        let endpoints = Arc::new(Endpoints::new(upstream, None));
        let now = Instant::default();
        Group::new(
            upstream,
            Timeouts::default(),
            &endpoints,
            &None,
            (1, now),
            None,
        )
    }

    #[test]
    fn waiting_clients_are_served_round_robin() {
        let core = Core::simulated(Simulation::with_seed(1));
        let group = group();
        let (all, counts) = (ClientCounts::default(), CoreClientCounts::default());
        let held = group
            .reserve(0, &[], core.now())
            .expect("nobody has it yet");
        let served: Rc<RefCell<Vec<usize>>> = Rc::default();
        let addresses = [
            "192.0.2.1",
            "192.0.2.1",
            "192.0.2.1",
            "192.0.2.2",
            "192.0.2.3",
            "192.0.2.2",
        ];
        for (number, address) in addresses.into_iter().enumerate() {
            let address = address.parse().expect("an address");
            let client = counts.key(&all, group.number, address);
            group.clients.share(&counts);
            let (group, its_core, served) = (Rc::clone(&group), core.clone(), Rc::clone(&served));
            core.spawn(async move {
                let until = its_core.now_exact() + Duration::from_secs(100);
                let (wanted, client) = ((0, &[][..]), Some(client));
                let reserved = group.reserve_or_wait(Method::Get, wanted, client, &its_core, until);
                let reservation = reserved.await.expect("its turn comes");
                served.borrow_mut().push(number);
                its_core.yield_now().await;
                drop(reservation);
            });
        }
        let its_core = core.clone();
        core.spawn(async move {
            for _ in 0..addresses.len() {
                its_core.yield_now().await;
            }
            drop(held);
        });
        assert_eq!(core.run(), 0, "all tasks have ended");
        assert_eq!(*served.borrow(), [0, 3, 4, 1, 5, 2]);
    }
}
