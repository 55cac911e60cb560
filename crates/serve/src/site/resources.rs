//! State of one configuration that the sites of all cores share.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use onrush_config::Plan;

use crate::exchange::access::access_state::AccessState;
use crate::observe::access_log::AccessLog;
use crate::observe::route_name::route_names;
use crate::observe::trace::Tracing;
use crate::proxy::ejection::report_ended;
use crate::proxy::endpoints::Endpoints;
use crate::routing::route::RouteIndex;
use crate::rules::error_page::PageFiles;
use crate::site::check::{Checked, PlanFiles};
use crate::site::encryption::Encryption;
use crate::worker::admit::connections::ConnectionCounts;
use crate::worker::descriptor_shares::Shares;
use crate::worker::generation::Generation;
use crate::worker::plan_issue::PlanIssues;

pub(crate) struct Resources {
    pub(crate) plan: Plan,
    pub(crate) generation: Arc<Generation>,
    /// Names of the routes in metrics and the access log.
    pub(crate) route_names: Vec<String>,
    pub(crate) route_index: Arc<RouteIndex>,
    /// The servers of each group.
    pub(crate) all_endpoints: Vec<Arc<Endpoints>>,
    /// Index of each group in the previous configuration, if it has one with the same name.
    pub(crate) groups_before: Vec<Option<usize>>,
    pub(crate) ledger: AccessState,
    pub(crate) client_counts: ConnectionCounts,
    pub(crate) encryption: Arc<Encryption>,
    pub(crate) access_log: Option<Arc<AccessLog>>,
    pub(crate) tracing: Option<Arc<Tracing>>,
    pub(crate) page_files: PageFiles,
    /// How the limit on open files is divided.
    pub(crate) shares: Shares,
}

impl Resources {
    /// Builds the resources of a plan with its files in `found`. State of `before`, the configuration to replace,
    /// continues: groups are matched by name, servers by address, limits by the conditions of their route.
    /// Fails if the thread that checks passwords cannot be created.
    pub(crate) fn new(
        plan: Plan,
        found: PlanFiles,
        (shares, access_log, tracing): (Shares, Option<Arc<AccessLog>>, Option<Arc<Tracing>>),
        before: Option<&Resources>,
    ) -> io::Result<Self> {
        let groups_before = groups_before(&plan, before);
        let groups = plan.upstreams.iter().zip(&groups_before);
        let all_endpoints = groups.map(|(upstream, index)| {
            let before = before.zip(*index);
            let before = before.map(|(before, index)| &*before.all_endpoints[index]);
            Arc::new(Endpoints::new(upstream, before))
        });
        let mut encryption = found.encryption;
        if let Some(before) = before {
            encryption.carry(&plan, &before.encryption, &before.plan);
        }
        Ok(Self {
            route_names: route_names(&plan.routes),
            route_index: Arc::new(RouteIndex::new(plan.routes.iter().map(|route| &route.when))),
            all_endpoints: all_endpoints.collect(),
            groups_before,
            ledger: AccessState::new(&plan, found.users, before.map(|before| &before.ledger))?,
            encryption: Arc::new(encryption),
            page_files: found.page_files,
            client_counts: ConnectionCounts::new(&plan, before.map(|before| &before.client_counts)),
            generation: Generation::after(before.map(|before| &*before.generation)),
            access_log,
            tracing,
            shares,
            plan,
        })
    }

    /// Reports the servers whose ejection ends because this configuration takes the place of `before`.
    pub(crate) fn report_ended_ejections(&self, before: &Resources) {
        let mut after = vec![None; before.plan.upstreams.len()];
        for (endpoints, index) in self.all_endpoints.iter().zip(&self.groups_before) {
            if let Some(index) = *index {
                after[index] = Some(&**endpoints);
            }
        }
        let groups = before.plan.upstreams.iter().zip(&before.all_endpoints);
        for ((upstream, endpoints), after) in groups.zip(after) {
            report_ended(upstream, endpoints, after);
        }
    }

    /// The plan with the contents of its files, for explaining requests. Fields for the trace collector are left out.
    pub(crate) fn checked(&self) -> Checked {
        Checked {
            plan: self.plan.clone(),
            found: PlanFiles {
                users: self.ledger.users().to_vec(),
                encryption: (*self.encryption).clone(),
                page_files: self.page_files.clone(),
                collector_fields: Vec::new(),
                troubles: PlanIssues::default(),
            },
            arrival: None,
        }
    }
}

/// The index of each group in the configuration `before`. O(n), because there may be thousands.
fn groups_before(plan: &Plan, before: Option<&Resources>) -> Vec<Option<usize>> {
    let before = before.map_or(&[][..], |before| &before.plan.upstreams);
    let names = before.iter().map(|group| group.name.as_str());
    let indices: HashMap<&str, usize> = names.zip(0..).collect();
    let groups = plan.upstreams.iter();
    groups
        .map(|group| indices.get(group.name.as_str()).copied())
        .collect()
}
