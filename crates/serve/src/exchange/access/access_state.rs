//! Rate and concurrency counts by client, shared by all cores of a server.

use std::collections::HashSet;
use std::io;
use std::sync::Arc;

use onrush_config::{Plan, plan};

use super::password_verifier::Verifier;
use super::users::Users;
use crate::worker::admit::concurrency::Concurrency;
use crate::worker::admit::key::Keys;
use crate::worker::admit::rate::Rates;

/// Counts, users and the password verifier. Parts that no route needs are absent.
#[derive(Debug)]
pub(crate) struct AccessState {
    pub(super) users: Vec<Option<Arc<Users>>>,
    pub(super) verifier: Option<Verifier>,
    /// Identifies the limit of each route; `None` for a route without a limit.
    pub(super) limits: Vec<Option<u64>>,
    pub(super) keys: Arc<Keys>,
    pub(super) rates: Option<Arc<Rates>>,
    pub(super) concurrency: Option<Concurrency>,
}

impl AccessState {
    /// `users` has the users of each route. `before` is the ledger of the previous configuration: limits that exist in
    /// both keep their counts. Fails if the thread that checks passwords cannot be created.
    pub(crate) fn new(
        plan: &Plan,
        users: Vec<Option<Arc<Users>>>,
        before: Option<&AccessState>,
    ) -> io::Result<Self> {
        let limits = || {
            let routes = plan.routes.iter();
            routes.filter_map(|route| route.access.rate_limit.as_ref())
        };
        let has_rates = limits().any(|limit| limit.requests.is_some());
        let has_concurrency = limits().any(|limit| limit.concurrent.is_some());
        let asks_for_passwords = users.iter().any(Option::is_some);
        let keys = before.map_or_else(Arc::default, |before| Arc::clone(&before.keys));
        let rates = before.and_then(|before| before.rates.clone());
        let concurrency = before.and_then(|before| before.concurrency.clone());
        let verifier = before.and_then(|before| before.verifier.clone());
        Ok(Self {
            verifier: match verifier {
                _ if !asks_for_passwords => None,
                None => Some(Verifier::start()?),
                verifier => verifier,
            },
            users,
            limits: limits_of(plan, &keys),
            keys,
            rates: has_rates.then(|| rates.unwrap_or_else(|| Arc::new(Rates::new()))),
            concurrency: has_concurrency.then(|| concurrency.unwrap_or_else(Concurrency::new)),
        })
    }

    pub(crate) fn users(&self) -> &[Option<Arc<Users>>] {
        &self.users
    }
}

/// A number for the limit of each route, unique in the plan.
fn limits_of(plan: &Plan, keys: &Keys) -> Vec<Option<u64>> {
    let mut taken = HashSet::new();
    let limit_of = |route: &plan::Route| {
        let limit = route.access.rate_limit.as_ref()?;
        let limit = |occurrence| keys.limit(&route.when, &limit.key, occurrence);
        (0..).map(limit).find(|&limit| taken.insert(limit))
    };
    plan.routes.iter().map(limit_of).collect()
}
