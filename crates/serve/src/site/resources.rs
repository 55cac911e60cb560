//! What the sites of all cores that are made of one configuration share.

use std::io;
use std::sync::Arc;

use onrush_config::Plan;

use crate::access::Ledger;
use crate::admit::connections::Counts;
use crate::check::{Checked, Found};
use crate::descriptors::Shares;
use crate::encryption::Encryption;
use crate::error_page::PageFiles;
use crate::generation::Generation;
use crate::observe::access_log::AccessLog;
use crate::observe::trace::Tracing;
use crate::proxy::endpoints::Endpoints;
use crate::trouble::Troubles;

pub(crate) struct Resources {
    pub(crate) plan: Plan,
    pub(crate) generation: Arc<Generation>,
    /// The servers of each group.
    pub(crate) all_endpoints: Vec<Arc<Endpoints>>,
    pub(crate) ledger: Ledger,
    pub(crate) client_counts: Counts,
    pub(crate) encryption: Arc<Encryption>,
    /// Where a line is written of each request.
    pub(crate) access_log: Option<Arc<AccessLog>>,
    /// Where spans go.
    pub(crate) tracing: Option<Arc<Tracing>>,
    pub(crate) page_files: PageFiles,
    /// What the limit on open files has room for.
    pub(crate) shares: Shares,
}

impl Resources {
    /// Of a plan whose files say what was `found`. What was there `before`, in the configuration that it replaces, and has
    /// the same name goes on: groups are known by theirs, servers by their address, limits by their route's conditions.
    ///
    /// # Errors
    /// When the system has no thread to check passwords with.
    pub(crate) fn new(
        plan: Plan,
        found: Found,
        (shares, access_log, tracing): (Shares, Option<Arc<AccessLog>>, Option<Arc<Tracing>>),
        before: Option<&Resources>,
    ) -> io::Result<Self> {
        let endpoints_before = |name: &str| {
            let before = before?;
            let groups = before.plan.upstreams.iter();
            let index = groups.map(|group| &group.name).position(|it| it == name)?;
            Some(&*before.all_endpoints[index])
        };
        let all_endpoints = plan.upstreams.iter().map(|upstream| {
            let before = endpoints_before(&upstream.name);
            Arc::new(Endpoints::new(upstream, before))
        });
        let mut encryption = found.encryption;
        if let Some(before) = before {
            encryption.carry(&plan, &before.encryption, &before.plan);
        }
        Ok(Self {
            all_endpoints: all_endpoints.collect(),
            ledger: Ledger::new(&plan, found.users, before.map(|before| &before.ledger))?,
            encryption: Arc::new(encryption),
            page_files: found.page_files,
            client_counts: Counts::new(&plan, before.map(|before| &before.client_counts)),
            generation: Generation::after(before.map(|before| &*before.generation)),
            access_log,
            tracing,
            shares,
            plan,
        })
    }

    /// What its plan and its files say, for whoever explains what becomes of a request. The collector of traces is none of that.
    pub(crate) fn checked(&self) -> Checked {
        Checked {
            plan: self.plan.clone(),
            found: Found {
                users: self.ledger.users().to_vec(),
                encryption: (*self.encryption).clone(),
                page_files: self.page_files.clone(),
                collector_fields: Vec::new(),
                troubles: Troubles::default(),
            },
            arrival: None,
        }
    }
}
