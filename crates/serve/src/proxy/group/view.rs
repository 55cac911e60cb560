//! Current state of a group on one core, for the admin interface.

use super::views::{GroupView, ServerState, ServerView};
use super::{Group, Server};
use crate::proxy::ejection::EjectionPhase;
use crate::proxy::endpoints::Endpoint;

impl Group {
    /// Snapshot of the group, with the requests of this core.
    pub(crate) fn view(&self) -> GroupView {
        let servers = self.endpoints.all().iter().zip(&self.servers);
        let servers = servers.filter_map(|(endpoint, server)| view(endpoint, server));
        GroupView {
            name: self.plan.name.clone(),
            in_flight: self.in_flight.get().into(),
            queued: (self.queue.len() + self.waiting_for_streams()) as u64,
            queue_max: self.plan.queue_max as u64,
            servers: servers.collect(),
        }
    }

    fn waiting_for_streams(&self) -> usize {
        let servers = self.servers.iter();
        servers.map(|server| server.multiplexed.waiting()).sum()
    }
}

/// `None` for an endpoint without an address (a name may have fewer addresses than endpoints).
fn view(endpoint: &Endpoint, server: &Server) -> Option<ServerView> {
    let location = endpoint.location()?;
    let state = match endpoint.presence() {
        _ if !endpoint.is_healthy() => ServerState::Down,
        EjectionPhase::In if endpoint.is_failing() => ServerState::Failing,
        EjectionPhase::In => ServerState::Up,
        EjectionPhase::Out => ServerState::Ejected,
        EjectionPhase::OnTrial | EjectionPhase::Tried => ServerState::OnTrial,
    };
    Some(ServerView {
        name: server.name.clone(),
        address: location.address.to_string(),
        state,
        duty: endpoint.duty(),
        weight: location.weight,
        has_admin_weight: endpoint.is_weighed(),
        is_backup: location.backup,
        in_flight: server.in_flight.get().into(),
        connections_max: (endpoint.connections_max < u32::MAX).then_some(endpoint.connections_max),
        idle: server.pool.len() as u64,
        statuses: server.responses.statuses(),
        first_byte: server.responses.first_byte(),
        duration: server.responses.duration(),
        ejections: server.responses.ejections(),
    })
}
