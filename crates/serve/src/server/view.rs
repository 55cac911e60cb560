//! Snapshot of a core's state and counters, and sums over cores.

use std::time::Duration;

use onrush_engine::clock::{ThreadTime, thread_time};
use onrush_load_targets::DatagramView;

use crate::observe::close_counts::CloseCountsView;
use crate::observe::handshakes::HandshakesView;
use crate::observe::in_flight::Stage;
use crate::observe::meter::Totals;
use crate::observe::registry::SeriesKind;
use crate::observe::traffic::TrafficView;
use crate::observe::work::had_work;
use crate::proxy::group::views::{GroupView, ServerView};
use crate::site::service::Service;

/// Snapshot of one core.
#[derive(Clone, Debug)]
pub struct CoreView {
    /// Number of the core.
    pub core: usize,
    /// Number of the configuration in force.
    pub generation: u64,
    /// CPU time of its thread.
    pub time: ThreadTime,
    /// How long it had work, if it busy-polls; the CPU time does not show it then.
    pub had_work: Option<Duration>,
    /// Longest time since the start without a call to the kernel for events.
    pub busy_max: Duration,
    /// Counters since the start.
    pub totals: Totals,
    /// Open client connections after their handshake.
    pub connections: u64,
    /// Number of requests that have started and not ended.
    pub in_flight: u64,
    /// Number of buffers in use.
    pub buffers: u64,
    /// Free buffers kept for reuse.
    pub buffers_free: u64,
    /// TLS handshakes with clients.
    pub handshakes: HandshakesView,
    /// HTTP/2 connections closed because of the client's behaviour.
    pub cuts: CloseCountsView,
    /// Requests in flight by stage, in the order of [`Stage::ALL`], without requests that complete in one turn.
    pub stages: [u64; Stage::ALL.len()],
    /// One for each present or former listener address.
    pub listeners: Vec<TrafficView>,
    /// One for each listener that has or had datagrams.
    pub datagrams: Vec<DatagramView>,
    /// One for each route of present and earlier configurations.
    pub routes: Vec<TrafficView>,
    /// One for each group of present and earlier configurations.
    pub group_traffic: Vec<TrafficView>,
    /// Groups of the configuration in force.
    pub groups: Vec<GroupView>,
}

impl CoreView {
    /// The snapshot; call it on the core's own thread.
    pub(crate) fn of(service: &Service) -> Self {
        let (worker, site) = (&service.worker, service.site());
        let registry = &worker.registry;
        Self {
            core: worker.core.id(),
            generation: site.settings.generation(),
            // Read first: it is a part of `time`, read next.
            had_work: had_work(&worker.core),
            time: thread_time(),
            busy_max: worker.core.busy_max(),
            totals: worker.meter.totals(),
            connections: worker.meter.connections_open(),
            in_flight: registry.in_flight(),
            buffers: worker.core.pool().in_use() as u64,
            buffers_free: worker.core.pool().free() as u64,
            handshakes: registry.handshakes.view(),
            cuts: registry.cuts.view(),
            stages: worker.live.stages(),
            listeners: registry.views(SeriesKind::Listener),
            datagrams: registry.datagram_views(),
            routes: registry.views(SeriesKind::Route),
            group_traffic: registry.views(SeriesKind::Group),
            groups: site.groups.iter().map(|group| group.view()).collect(),
        }
    }
}

/// Sums the traffic of several cores by name, in the order of first occurrence.
pub fn sum_traffic<'v>(views: impl IntoIterator<Item = &'v [TrafficView]>) -> Vec<TrafficView> {
    let mut sums: Vec<TrafficView> = Vec::new();
    for view in views.into_iter().flatten() {
        match sums.iter_mut().find(|sum| sum.name == view.name) {
            Some(sum) => *sum += view,
            None => sums.push(view.clone()),
        }
    }
    sums
}

/// Sums datagram counters of several cores by listener.
pub fn sum_datagrams<'v>(views: impl IntoIterator<Item = &'v [DatagramView]>) -> Vec<DatagramView> {
    let mut sums: Vec<DatagramView> = Vec::new();
    for view in views.into_iter().flatten() {
        match sums.iter_mut().find(|sum| sum.name == view.name) {
            Some(sum) => *sum += view,
            None => sums.push(view.clone()),
        }
    }
    sums
}

/// Sums the groups of several cores. Groups and servers that the first core does not have are left out: a core with
/// another configuration is about to switch to the same one.
pub fn sum_groups<'v>(views: impl IntoIterator<Item = &'v [GroupView]>) -> Vec<GroupView> {
    let mut views = views.into_iter();
    let mut sums = views.next().map_or_else(Vec::new, <[GroupView]>::to_vec);
    for group in views.flatten() {
        let Some(sum) = sums.iter_mut().find(|sum| sum.name == group.name) else {
            continue;
        };
        sum.in_flight += group.in_flight;
        sum.queued += group.queued;
        for server in &group.servers {
            let is_same =
                |sum: &&mut ServerView| sum.name == server.name && sum.address == server.address;
            if let Some(sum) = sum.servers.iter_mut().find(is_same) {
                sum.add(server);
            }
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::latency::Histogram;
    use crate::proxy::endpoints::AdminState;
    use crate::proxy::group::views::ServerState;

    fn server(name: &str, address: &str, requests: u64) -> ServerView {
        ServerView {
            name: name.to_owned(),
            address: address.to_owned(),
            state: ServerState::Up,
            duty: AdminState::Serve,
            weight: 2,
            has_admin_weight: false,
            is_backup: false,
            in_flight: 1,
            connections_max: Some(8),
            idle: 3,
            statuses: [0, 0, requests, 0, 0, 0],
            first_byte: Histogram::default(),
            duration: Histogram::default(),
            ejections: 1,
        }
    }

    #[test]
    fn servers_with_same_address_are_merged() {
        let ejected = ServerView {
            state: ServerState::Ejected,
            ..server("b:80", "10.0.0.1:80", 20)
        };
        let resting = ServerView {
            duty: AdminState::Rest,
            connections_max: None,
            is_backup: true,
            ..server("c:80", "10.0.0.1:80", 300)
        };
        let other = server("d:80", "10.0.0.2:80", 7);
        let up = server("a:80", "10.0.0.1:80", 1);
        for servers in [
            [&ejected, &other, &resting, &up],
            [&up, &resting, &ejected, &other],
            [&resting, &up, &other, &ejected],
        ] {
            let mut group = GroupView {
                name: "app".to_owned(),
                in_flight: 0,
                queued: 0,
                queue_max: 0,
                servers: servers.map(Clone::clone).to_vec(),
            };
            group.merge_by_address();
            let [one, two] = ["10.0.0.1:80", "10.0.0.2:80"].map(|address| {
                let mut its = group.servers.iter().filter(|one| one.address == address);
                let only = its.next().expect("it is there");
                assert!(its.next().is_none(), "{address} twice");
                only
            });
            assert_eq!((one.state, one.duty), (ServerState::Up, AdminState::Serve));
            assert_eq!(one.statuses[2], 321);
            assert_eq!((one.in_flight, one.idle, one.ejections), (3, 9, 3));
            assert_eq!(one.weight, 4, "one of three gets nothing");
            assert_eq!((one.connections_max, one.is_backup), (None, false));
            assert_eq!((two.weight, two.statuses[2]), (2, 7));
        }
    }
}
