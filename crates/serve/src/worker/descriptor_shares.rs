//! Division of the limit on open files. Descriptors for servers, files and the process itself are set aside; clients
//! get the rest, so that an accepted client never fails for lack of a descriptor.
//!
//! At the limit no client is refused: accepting pauses, and `connection_budget/room.rs` frees descriptors.

use std::fmt;

use onrush_config::Plan;
use onrush_config::plan::{Action, Admin, ServerAddress, Upstream};

use crate::limits::{
    ADMIN_CONNECTIONS_MAX, ADMIN_SHARE, DESCRIPTORS_OF_ADMIN, DESCRIPTORS_OF_PROGRAM,
    DESCRIPTORS_OF_RESOLVER, DESCRIPTORS_PER_CORE, IDLE_DESCRIPTORS_SHARE, PIPES_PER_CORE_MAX,
    PIPES_SHARE,
};
use crate::observe::trace::limits::DESCRIPTORS_OF_EXPORTER;

/// How the descriptors of a process are divided.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shares {
    /// The limit; `None` if there is none.
    pub limit: Option<u64>,
    /// Maximum number of client connections.
    pub clients: usize,
    /// Number of descriptors per client: its connection, and what its request needs.
    pub per_client: u64,
    /// Maximum number of connections to the admin interface.
    pub admins: usize,
    /// Idle connections to servers and cached open files per core.
    pub(crate) idle_per_core: usize,
    /// Number of parts of `idle_per_core`: one per route that serves files, and one for all pools.
    pub(crate) idle_owners: usize,
    /// Pipes per core, with two descriptors each.
    pub(crate) pipes_per_core: usize,
}

impl Shares {
    /// Shares of a process without a limit.
    pub(crate) const UNLIMITED: Shares = Shares {
        limit: None,
        clients: usize::MAX,
        per_client: 1,
        admins: ADMIN_CONNECTIONS_MAX,
        pipes_per_core: usize::MAX,
        idle_per_core: usize::MAX,
        idle_owners: 1,
    };

    /// Divides `limit` for `plan` on so many cores.
    ///
    /// After the needs of the server itself, a twentieth of the rest is for pipes if requests are forwarded. A fifth of
    /// the remainder is for idle connections to servers and cached files, or more if `connections_ready` requires it.
    /// The rest is divided by the descriptors that one client may need: its connection; one connection to a server if
    /// any route forwards, and another if any mirrors; a file if any route serves files.
    pub(crate) fn new(limit: Option<u64>, plan: &Plan, cores: usize) -> Self {
        let Some(limit) = limit else {
            return Self::UNLIMITED;
        };
        let per_client = 1 + plan
            .routes
            .iter()
            .map(|route| of_request(&route.action))
            .max()
            .unwrap_or(0);
        let file_routes = count_file_routes(plan);
        let keepers = file_routes + usize::from(!plan.upstreams.is_empty());
        let left = limit.saturating_sub(of_server(plan, cores, per_client));
        // One more has a descriptor in any case.
        let admins = match plan.admin {
            Admin::Off => 0,
            _ => (left / ADMIN_SHARE).min(ADMIN_CONNECTIONS_MAX as u64 - 1),
        };
        let left = left - admins;
        let pipes = match plan.upstreams.is_empty() {
            true => 0,
            false => (left / PIPES_SHARE / 2 / cores.max(1) as u64).min(PIPES_PER_CORE_MAX),
        };
        let left = left - pipes * 2 * cores as u64;
        let kept = match keepers {
            0 => 0,
            _ => (left / IDLE_DESCRIPTORS_SHARE).max(of_ready(plan, cores).min(left / 2)),
        };
        Self {
            limit: Some(limit),
            pipes_per_core: pipes as usize,
            clients: ((left - kept) / per_client).max(1) as usize,
            per_client,
            admins: 1 + admins as usize,
            idle_per_core: kept as usize / cores.max(1),
            idle_owners: keepers.max(1),
        }
    }

    /// Limit of one keeper on one core.
    pub(crate) fn idle_per_owner(&self) -> usize {
        self.idle_per_core / self.idle_owners
    }
}

impl fmt::Display for Shares {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.limit {
            None => f.write_str("room for any number of clients (no limit on open files)"),
            Some(limit) => write!(
                f,
                "room for {} {} at a time ({limit} open files)",
                self.clients,
                if self.clients == 1 {
                    "client"
                } else {
                    "clients"
                },
            ),
        }
    }
}

/// Descriptors of a server with one client and one server connection per core.
pub(crate) fn needed(plan: &Plan, cores: usize) -> u64 {
    of_idle_server(plan, cores) + 2 * cores as u64
}

fn of_idle_server(plan: &Plan, cores: usize) -> u64 {
    let transports = || plan.listen.iter().map(|listen| listen.protocol.transport());
    let listens = transports().filter(|it| it.has_tcp()).count() as u64;
    let ports = transports().filter(|it| it.has_udp()).count() as u64;
    // Each listener has one more descriptor, for handing over to another process.
    let of_core = DESCRIPTORS_PER_CORE + 2 * listens + ports + count_file_routes(plan) as u64;
    let of_names = descriptors_of_names(&plan.upstreams);
    let of_admin = match plan.admin {
        Admin::Off => 0,
        _ => DESCRIPTORS_OF_ADMIN,
    };
    let of_exporter = match &plan.tracing {
        None => 0,
        Some(tracing) => DESCRIPTORS_OF_EXPORTER + descriptors_of_name(&tracing.collector.address),
    };
    DESCRIPTORS_OF_PROGRAM + of_admin + of_exporter + of_names + listens + cores as u64 * of_core
}

/// Descriptors of a server, including health checks and the clients that listeners accept before they notice the limit:
/// they are served as well.
fn of_server(plan: &Plan, cores: usize, per_client: u64) -> u64 {
    let checked = plan.upstreams.iter().filter(|group| group.health.is_some());
    let checks: usize = checked.map(|group| group.servers.len()).sum();
    let surplus = plan.listen.len() * cores;
    of_idle_server(plan, cores) + checks as u64 + surplus as u64 * per_client
}

fn of_ready(plan: &Plan, cores: usize) -> u64 {
    let ready = |group: &onrush_config::plan::Upstream| group.preconnect * group.servers.len();
    let ready: usize = plan.upstreams.iter().map(ready).sum();
    (ready * cores) as u64
}

fn count_file_routes(plan: &Plan) -> usize {
    let is_of_files =
        |action: &Action| matches!(action, Action::Files(_) | Action::RespondFile { .. });
    let routes = plan.routes.iter();
    routes.filter(|route| is_of_files(&route.action)).count()
}

/// Descriptors of a request besides the client's connection.
fn of_request(action: &Action) -> u64 {
    match action {
        Action::Respond { .. } | Action::Synthetic | Action::Redirect { .. } => 0,
        Action::Files(_) | Action::RespondFile { .. } => 1,
        Action::Forward { mirror, .. } => 1 + u64::from(mirror.is_some()),
    }
}

fn descriptors_of_names(upstreams: &[Upstream]) -> u64 {
    let servers = upstreams.iter().flat_map(|upstream| &upstream.servers);
    let needed = servers.map(|server| descriptors_of_name(&server.address));
    needed.max().unwrap_or(0)
}

fn descriptors_of_name(address: &ServerAddress) -> u64 {
    match address {
        ServerAddress::Name { .. } | ServerAddress::Srv(_) => DESCRIPTORS_OF_RESOLVER,
        ServerAddress::Ip(_) | ServerAddress::Unix(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use onrush_config::plan::{OneLiner, ServerAddress};

    use super::*;

    fn plan(what: OneLiner) -> Plan {
        Plan::one_liner(what, Vec::new())
    }

    fn forwarding() -> Plan {
        let server = ServerAddress::Ip(SocketAddr::from(([127, 0, 0, 1], 1)));
        plan(OneLiner::Forward(vec![server]))
    }

    fn all_needed(shares: Shares, plan: &Plan, cores: usize) -> u64 {
        of_server(plan, cores, shares.per_client)
            + shares.clients as u64 * shares.per_client
            + shares.admins as u64
            - 1
            + ((shares.idle_per_core + 2 * shares.pipes_per_core) * cores) as u64
    }

    #[test]
    fn descriptor_shares_do_not_exceed_limit() {
        for what in [plan(OneLiner::Synthetic), forwarding()] {
            for cores in [1, 2, 16, 128] {
                for more in [4, 20, 64, 1_000, 1_000_000] {
                    let limit = needed(&what, cores) + more + cores as u64;
                    let shares = Shares::new(Some(limit), &what, cores);
                    assert!(all_needed(shares, &what, cores) <= limit, "{shares:?}");
                    assert!(shares.clients >= 1);
                }
            }
        }
    }

    #[test]
    fn forwarding_reserves_server_descriptors() {
        let responding = Shares::new(Some(1_024), &plan(OneLiner::Synthetic), 2);
        let forwarding = Shares::new(Some(1_024), &forwarding(), 2);
        assert_eq!((responding.per_client, forwarding.per_client), (1, 2));
        assert!(
            responding.clients > 2 * forwarding.clients,
            "{forwarding:?}"
        );
        assert!(forwarding.idle_per_owner() > 0);
        assert_eq!(responding.pipes_per_core, 0);
        assert!((1..=25).contains(&forwarding.pipes_per_core));
    }

    #[test]
    fn descriptor_shares_are_unlimited_without_limit() {
        let shares = Shares::new(None, &forwarding(), 2);
        assert_eq!(shares, Shares::UNLIMITED);
    }

    #[test]
    fn descriptors_are_reserved_for_preconnect() {
        let mut plan = forwarding();
        plan.upstreams[0].preconnect = 30;
        let shares = Shares::new(Some(200), &plan, 2);
        assert!(shares.idle_per_core >= 30, "{shares:?}");
    }
}
