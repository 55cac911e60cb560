//! Server of a group that a request is sent to, assuming that all servers are up and idle.

use std::rc::Rc;

use onrush_config::plan::{Server, Upstream};
use onrush_http::request::RequestHead;

use crate::exchange::request_context::RequestContext;
use crate::proxy::Group;
use crate::proxy::group::NO_SERVER;
use crate::proxy::hash_key::hash_key;

/// The chosen server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choice {
    /// Exactly this one.
    Exactly {
        /// The server, as configured.
        server: String,
        /// The balancing method.
        by: String,
    },
    /// One of several.
    OneOf {
        /// The servers, as configured.
        servers: Vec<String>,
        /// The balancing method.
        by: String,
    },
}

impl Choice {
    pub(super) fn of(
        group: &Rc<Group>,
        head: &RequestHead<'_, '_>,
        context: RequestContext<'_>,
    ) -> Choice {
        let plan = &group.plan;
        let stuck = group.sticky_server(head);
        if stuck != NO_SERVER {
            let cookie = plan.sticky.as_ref().map_or("", |sticky| &sticky.cookie);
            return Choice::Exactly {
                server: group.server(stuck).name.clone(),
                by: format!("the cookie {cookie:?}"),
            };
        }
        let servers = in_service(plan);
        let by = plan.balance.to_string();
        let name = |server: &&Server| server.address.to_string();
        let are_known = !servers
            .iter()
            .any(|server| server.address.is_resolved_by_name());
        if let ([only], true) = (&*servers, are_known) {
            return Choice::Exactly {
                server: name(only),
                by: "there is no other".to_owned(),
            };
        }
        let key = hash_key(group, head, context);
        match group.reserve(key, &[], context.worker.core.now()) {
            Ok(reservation) if plan.balance.is_deterministic() && are_known => Choice::Exactly {
                server: reservation.server().name.clone(),
                by,
            },
            _ => Choice::OneOf {
                servers: servers.iter().map(name).collect(),
                by,
            },
        }
    }
}

/// The servers that get requests while all are up.
pub(super) fn in_service(plan: &Upstream) -> Vec<&Server> {
    let primary: Vec<&Server> = plan.servers.iter().filter(|it| !it.backup).collect();
    match primary.is_empty() {
        true => plan.servers.iter().collect(),
        false => primary,
    }
}
