//! Construction of a group from its configuration and from the same group in the previous configuration, on the same
//! core. Taken over are servers with their connections, latencies and requests in flight, and the counts of ejection.

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};
use std::sync::Arc;

use onrush_config::plan::{Timeouts, Upstream};
use onrush_engine::Instant;
use onrush_engine::random::Random;
use onrush_tls::Connector;

use super::maintain::{FULL, member};
use super::share::number;
use super::{Group, NO_SERVER, Server};
use crate::limits::LATENCY_TIME_CONSTANT;
use crate::proxy::balance::{Balancer, Member, Policy};
use crate::proxy::ejection::Ejection;
use crate::proxy::endpoints::Endpoints;
use crate::proxy::ewma::Decay;
use crate::proxy::queue::Queue;
use crate::proxy::retirement::Retirement;
use crate::proxy::retry_budget::RetryBudget;
use crate::worker::client_counts::CoreClientCounts;
use crate::worker::time_slice::TimeSlice;

impl Group {
    /// Prepares a group in slices. `seed` differs between cores. Unchanged servers are taken over from `before`, the
    /// same group in the previous configuration, with connections and state; `endpoints` were built from its endpoints.
    pub(crate) async fn prepare(
        upstream: &Upstream,
        timeouts: Timeouts,
        endpoints: &Arc<Endpoints>,
        connector: &Option<Arc<Connector>>,
        (seed, now): (u64, Instant),
        before: Option<&Group>,
        slice: &mut TimeSlice,
    ) -> Rc<Self> {
        let unchanged = PreviousGroup::new(upstream, timeouts, endpoints, connector, before);
        let servers = unchanged.servers(upstream, endpoints, slice).await;
        let mut everybody: Vec<Member> = Vec::new();
        for (index, endpoint) in endpoints.all().iter().enumerate() {
            if let Some(location) = endpoint.location() {
                let weight = FULL.weight(location.weight, None, Instant::default());
                everybody.push(member(index, endpoint, &location.address, weight));
            }
            slice.step().await;
        }
        let policy = Policy::from(&upstream.balance);
        let balancer = Balancer::prepare(policy, &everybody, seed, slice).await;
        slice.step().await;
        slice.step().await;
        let group = Rc::new_cyclic(|myself| Self {
            myself: Weak::clone(myself),
            plan: upstream.clone(),
            timeouts,
            queue: Queue::new(
                upstream.queue_max,
                endpoints,
                before.map(|group| &group.queue),
            ),
            seen: Cell::new(0),
            shares: servers.iter().map(|_| Cell::default()).collect(),
            servers,
            balancer: RefCell::new(balancer),
            is_starting: Cell::new(false),
            is_limited: endpoints
                .all()
                .iter()
                .any(|endpoint| endpoint.connections_max < u32::MAX),
            number: number(&upstream.name),
            clients: CoreClientCounts::default(),
            in_flight: before.map_or_else(Rc::default, |group| Rc::clone(&group.in_flight)),
            decay: Decay::new(LATENCY_TIME_CONSTANT),
            budget: RefCell::new(budget(upstream, before)),
            chance: Random::stream(seed, 1),
            ejection: Ejection::new(upstream, endpoints.all(), unchanged.ejection()),
            retirement: Retirement::default(),
            measures: Cell::new(false),
            on_trial: Cell::new(NO_SERVER),
            uses_last_resort: Cell::new(false),
            has_failing: Cell::new(false),
            endpoints: Arc::clone(endpoints),
            connector: connector.clone(),
        });
        slice.step().await;
        let members = group.copy_endpoints(now);
        slice.step().await;
        let others = group.balancer.borrow().if_others(&members);
        if let Some(mut balancer) = others {
            balancer.update_in_slices(&members, slice).await;
            group.balancer.replace(balancer);
        }
        group.refresh_measures();
        slice.step().await;
        group
    }
}

fn budget(upstream: &Upstream, before: Option<&Group>) -> RetryBudget {
    let share = upstream.retries.budget;
    before.map_or_else(
        || RetryBudget::new(share),
        |before| before.budget.borrow().with_share(share),
    )
}

/// The part of the previous group that is taken over.
pub(super) struct PreviousGroup<'b> {
    /// The previous group, if its connections can be reused.
    before: Option<&'b Group>,
    /// For each endpoint, the index there of the same server, if any.
    positions: Vec<Option<usize>>,
}

impl<'b> PreviousGroup<'b> {
    pub(super) fn new(
        upstream: &Upstream,
        timeouts: Timeouts,
        endpoints: &Endpoints,
        connector: &Option<Arc<Connector>>,
        before: Option<&'b Group>,
    ) -> Self {
        let before = before.filter(|before| before.connects_alike(upstream, timeouts, connector));
        let mut positions =
            before.map_or_else(Vec::new, |before| endpoints.positions_in(&before.endpoints));
        for position in &mut positions {
            position.take_if(|position| {
                before.is_some_and(|group| !group.servers[*position].is_in_use())
            });
        }
        Self { before, positions }
    }

    /// The server of each endpoint, taken over or new.
    pub(super) async fn servers(
        &self,
        upstream: &Upstream,
        endpoints: &Endpoints,
        slice: &mut TimeSlice,
    ) -> Vec<Rc<Server>> {
        let known =
            |endpoint: usize| Some(Rc::clone(&self.before?.servers[self.positions[endpoint]?]));
        let mut servers = Vec::new();
        for (index, server) in upstream.servers.iter().enumerate() {
            let (first, endpoints) = endpoints.of_server(index);
            for endpoint in first..first + endpoints.len() {
                let server =
                    known(endpoint).unwrap_or_else(|| Rc::new(Server::new(server, upstream)));
                server.pool.keep_at_most(upstream.connections_idle_max);
                server.begin_use();
                servers.push(server);
                slice.step().await;
            }
        }
        servers
    }

    /// Ejection of the previous group, and for each endpoint the index there of its server.
    fn ejection(&self) -> Option<(&'b Ejection, &[Option<usize>])> {
        Some((self.before?.ejection.as_ref()?, &self.positions))
    }
}

impl Group {
    /// Whether connections of this group can be used by the group of `upstream`. Host names need no comparison, because
    /// they follow from the server's address, which is the same. A connection shared by several requests has the
    /// timeouts of its group, so these must be equal with HTTP/2.
    fn connects_alike(
        &self,
        upstream: &Upstream,
        timeouts: Timeouts,
        connector: &Option<Arc<Connector>>,
    ) -> bool {
        let speaks_alike = match (&self.connector, connector) {
            (Some(before), Some(now)) => Arc::ptr_eq(before, now),
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        };
        speaks_alike
            && self.plan.proxy_protocol == upstream.proxy_protocol
            && self.plan.protocol == upstream.protocol
            && (!self.speaks_http2() || self.timeouts == timeouts)
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;
    use std::rc::Weak;
    use std::time::Duration;

    use onrush_config::plan::{self, Multiplexing, ProxyVersion, ServerAddress, UpstreamProtocol};
    use onrush_engine::{Address, Instant, Stream};
    use onrush_tls::{ClientSetup, Transport, Verify};
    use proptest::prelude::*;

    use super::super::super::balance::hash;
    use super::*;
    use crate::proxy::ejection::Purpose;
    use crate::proxy::ejection::outcome::Outcome;
    use crate::proxy::failure::Failure;
    use crate::testing::harness::{TestCore, on_simulated_core};
    use crate::worker::idle_limit::IdleLimit;

    impl Group {
        /// [`Group::prepare`] without slices.
        pub(crate) fn new(
            upstream: &Upstream,
            timeouts: Timeouts,
            endpoints: &Arc<Endpoints>,
            connector: &Option<Arc<Connector>>,
            drawn: (u64, Instant),
            before: Option<&Group>,
        ) -> Rc<Self> {
            crate::worker::time_slice::run_unsliced(async |slice| {
                Self::prepare(
                    upstream, timeouts, endpoints, connector, drawn, before, slice,
                )
                .await
            })
        }
    }

    const NOW: Instant = Instant::from_nanoseconds(1_000);

    fn address(last: u8) -> ServerAddress {
        ServerAddress::Ip(([10, 0, 0, last], 80).into())
    }

    fn upstream(servers: &[u8]) -> Upstream {
        let servers = servers.iter().map(|&last| plan::Server::at(address(last)));
        Upstream::new("app".into(), servers.collect())
    }

    /// The group in a configuration that follows that of `before`.
    fn group(
        upstream: &Upstream,
        tls: Option<&Arc<Connector>>,
        before: Option<&Group>,
    ) -> Rc<Group> {
        let endpoints = Arc::new(Endpoints::new(
            upstream,
            before.map(|group| &**group.endpoints()),
        ));
        let timeouts = plan::Timeouts::default();
        Group::new(
            upstream,
            timeouts,
            &endpoints,
            &tls.cloned(),
            (1, NOW),
            before,
        )
    }

    fn server(group: &Group, last: u8) -> &Rc<Server> {
        let name = address(last).to_string();
        let server = group.servers().iter().find(|server| server.name == name);
        server.expect("it is in the group")
    }

    fn connector() -> Arc<Connector> {
        let setup = ClientSetup {
            verify: Verify::Nothing,
            ..ClientSetup::default()
        };
        Arc::new(Connector::new(setup).expect("no file is read").0)
    }

    async fn connection(site: &TestCore) -> Transport {
        let (listener, address) = site.listen();
        let stream = Stream::connect(&site.core, &Address::Tcp(address), None).await;
        drop(listener);
        Transport::plain(stream.expect("somebody listens"))
    }

    #[test]
    fn reload_keeps_connections_of_kept_servers() {
        on_simulated_core(1, |site| async move {
            let kept = IdleLimit::new(2);
            let before = group(&upstream(&[1, 2]), None, None);
            before.set_core_limit(&kept);
            for last in [1, 2] {
                server(&before, last).pool.put(connection(&site).await, NOW);
            }
            let mut reweighted = upstream(&[3, 2]);
            reweighted.servers[1].weight = 7;
            let after = group(&reweighted, None, Some(&before));
            after.set_core_limit(&kept);
            assert!(Rc::ptr_eq(server(&before, 2), server(&after, 2)));
            let weights = |group: &Group| -> Vec<u32> {
                let shares = group.shares.iter().filter_map(|share| share.get());
                shares.map(|share| share.weight).collect()
            };
            assert_eq!(
                (weights(&before), weights(&after)),
                (vec![1, 1], vec![1, 7])
            );
            assert!(
                !kept.has_room(),
                "nothing is closed before the old one retires"
            );
            before.retire_at_once();
            assert_eq!(server(&before, 1).pool.len(), 0);
            assert_eq!(server(&after, 2).pool.len(), 1);
            // A request of the previous configuration ends.
            server(&before, 1).pool.put(connection(&site).await, NOW);
            assert_eq!(server(&before, 1).pool.len(), 0);
            drop(before);
            assert_eq!(server(&after, 2).pool.len(), 1);
            assert!(kept.has_room());
            server(&after, 2).pool.put(connection(&site).await, NOW);
            assert!(!kept.has_room());
            drop(after);
            assert!(kept.has_room(), "what is dropped counts no more");
        });
    }

    #[test]
    fn reload_lowers_idle_limit() {
        on_simulated_core(1, |site| async move {
            let kept = IdleLimit::new(2);
            let before = group(&upstream(&[1]), None, None);
            before.set_core_limit(&kept);
            for _ in 0..3 {
                server(&before, 1).pool.put(connection(&site).await, NOW);
            }
            assert_eq!(server(&before, 1).pool.len(), 2);
            let fewer = Upstream {
                connections_idle_max: 1,
                ..upstream(&[1])
            };
            let after = group(&fewer, None, Some(&before));
            assert_eq!(server(&after, 1).pool.len(), 1);
            assert!(kept.has_room());
        });
    }

    #[test]
    fn changed_transport_creates_new_server() {
        let plain = upstream(&[1]);
        let (ours, theirs) = (connector(), connector());
        let proxied = Upstream {
            proxy_protocol: Some(ProxyVersion::V1),
            ..plain.clone()
        };
        let http2 = Upstream {
            protocol: UpstreamProtocol::Http2(Multiplexing::default()),
            ..plain.clone()
        };
        for (before, after, is_same) in [
            ((&plain, None), (&plain, None), true),
            ((&plain, Some(&ours)), (&plain, Some(&ours)), true),
            ((&plain, Some(&ours)), (&plain, Some(&theirs)), false),
            ((&plain, None), (&plain, Some(&ours)), false),
            ((&plain, Some(&ours)), (&plain, None), false),
            ((&plain, None), (&proxied, None), false),
            ((&proxied, None), (&proxied, None), true),
            ((&plain, None), (&http2, None), false),
        ] {
            let before = group(before.0, before.1, None);
            let after = group(after.0, after.1, Some(&before));
            assert_eq!(Rc::ptr_eq(server(&before, 1), server(&after, 1)), is_same);
            let endpoints = after.endpoints().positions_in(before.endpoints());
            assert_eq!(endpoints, [Some(0)], "what all cores know of it stays");
        }
    }

    #[test]
    fn http2_timeouts_are_per_connection() {
        let http2 = UpstreamProtocol::Http2(Multiplexing::default());
        for (protocol, is_same) in [(UpstreamProtocol::Http1, true), (http2, false)] {
            let upstream = Upstream {
                protocol,
                ..upstream(&[1])
            };
            let before = group(&upstream, None, None);
            let endpoints = Arc::new(Endpoints::new(&upstream, Some(before.endpoints())));
            let patient = Timeouts {
                upstream_first_byte: Duration::from_secs(1_000),
                ..Timeouts::default()
            };
            let after = Group::new(
                &upstream,
                patient,
                &endpoints,
                &None,
                (1, NOW),
                Some(&before),
            );
            assert_eq!(
                Rc::ptr_eq(server(&before, 1), server(&after, 1)),
                is_same,
                "{protocol:?}"
            );
        }
    }

    #[test]
    fn in_flight_count_is_shared_across_reload() {
        let hashed = Upstream {
            balance: plan::Balance::Hash(plan::HashKey::Path),
            ..upstream(&[1, 2])
        };
        let before = group(&hashed, None, None);
        let key = hash::key(b"/");
        let reservation = before.reserve(key, &[], NOW).expect("nobody is full");
        let after = group(&hashed, None, Some(&before));
        assert_eq!(
            (after.load(reservation.index()), after.in_flight.get()),
            (1, 1)
        );
        let another = after.reserve(key, &[], NOW).expect("nobody is full");
        assert_eq!(another.index(), reservation.index());
        before.retire_at_once();
        drop((before, reservation));
        assert_eq!((after.load(another.index()), after.in_flight.get()), (1, 1));
    }

    #[test]
    fn failure_counts_survive_reload() {
        let before = group(&upstream(&[1, 2]), None, None);
        let ejection = before.ejection().expect("it is on by default");
        let failed = (Outcome::Failed, Some(&Failure::Closed));
        let change = ejection.observe(before.endpoints(), (1, Purpose::Ordinary), failed, NOW);
        assert!(change.is_none(), "once is not enough");
        for (servers, knows) in [(&[1, 2][..], true), (&[3, 2], true), (&[1, 3], false)] {
            let after = group(&upstream(servers), None, Some(&before));
            assert_eq!(after.recently_failed(NOW), knows.then(|| vec![1]));
            assert_eq!(after.records_outcomes(Purpose::Ordinary, 200), knows);
        }
        let proxied = Upstream {
            proxy_protocol: Some(ProxyVersion::V2),
            ..upstream(&[1, 2])
        };
        let after = group(&proxied, None, Some(&before));
        assert_eq!(
            after.recently_failed(NOW),
            None,
            "it may have been for that"
        );
    }

    #[test]
    fn unused_configuration_closes_nothing() {
        on_simulated_core(1, |site| async move {
            let before = group(&upstream(&[1]), None, None);
            server(&before, 1).pool.put(connection(&site).await, NOW);
            drop(group(&upstream(&[2, 1]), None, Some(&before)));
            server(&before, 1).pool.put(connection(&site).await, NOW);
            assert_eq!(server(&before, 1).pool.len(), 2);
        });
    }

    #[test]
    fn queue_length_is_shared_across_reload() {
        on_simulated_core(1, |_| async move {
            let mut limited = upstream(&[1]);
            limited.servers[0].connections_max = NonZeroU32::new(1);
            limited.queue_max = 1;
            let before = group(&limited, None, None);
            let held = before.reserve(0, &[], NOW).expect("there is room");
            let ticket = before.queue.join(None).await.expect("there is room");
            limited.servers.push(plan::Server::at(address(2)));
            let after = group(&limited, None, Some(&before));
            assert!(after.queue.is_empty(), "nobody waits for the new server");
            assert!(
                after.queue.join(None).await.is_none(),
                "as many wait as may"
            );
            drop(ticket);
            assert!(after.queue.join(None).await.is_some());
            drop(held);
        });
    }

    proptest! {
        #[test]
        fn server_is_freed_when_no_configuration_uses_it(
            configurations in prop::collection::vec(
                prop::sample::subsequence((1..=6_u8).collect::<Vec<_>>(), 1..6).prop_shuffle(),
                1..10,
            ),
            held in prop::collection::vec(any::<bool>(), 10),
        ) {
            let mut known: Vec<(u8, Weak<Server>)> = Vec::new();
            let mut in_force: Option<Rc<Group>> = None;
            let mut old: Vec<Rc<Group>> = Vec::new();
            for (servers, is_held) in configurations.iter().zip(held) {
                let after = group(&upstream(servers), None, in_force.as_deref());
                if let Some(before) = in_force.replace(Rc::clone(&after)) {
                    before.retire_at_once();
                    // Some groups are kept by requests in flight.
                    old.extend(Some(before).filter(|_| is_held));
                }
                let (stay, gone): (Vec<_>, Vec<_>) =
                    known.into_iter().partition(|(last, _)| servers.contains(last));
                known = stay;
                for (_, server) in gone {
                    prop_assert!(server.upgrade().is_none_or(|server| !server.is_in_use()));
                }
                for &last in servers {
                    let server = server(&after, last);
                    prop_assert_eq!(server.users.get(), 1);
                    match known.iter().find(|(known, _)| *known == last) {
                        Some((_, known)) => prop_assert!(known.ptr_eq(&Rc::downgrade(server))),
                        None => known.push((last, Rc::downgrade(server))),
                    }
                }
            }
        }
    }
}
