//! What the sites of all cores that are made of one configuration share.

use std::io;
use std::sync::Arc;

use onrush_config::Plan;

use crate::access::Ledger;
use crate::check::Found;
use crate::proxy::roster::Roster;
use crate::tls::Encryption;

pub(crate) struct Resources {
    /// The servers of each group.
    pub(crate) rosters: Vec<Arc<Roster>>,
    pub(crate) ledger: Ledger,
    pub(crate) encryption: Arc<Encryption>,
}

impl Resources {
    /// Of a plan whose files say what was `found`.
    ///
    /// # Errors
    /// When the system has no thread to check passwords with.
    pub(crate) fn new(plan: &Plan, found: Found) -> io::Result<Self> {
        let upstreams = plan.upstreams.iter();
        let rosters = upstreams.map(|upstream| Arc::new(Roster::new(upstream, None)));
        Ok(Self {
            ledger: Ledger::new(plan, found.users)?,
            rosters: rosters.collect(),
            encryption: Arc::new(found.encryption),
        })
    }
}
