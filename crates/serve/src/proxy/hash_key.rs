//! The key of a request for a group that balances by `hash`.

use onrush_config::plan::{Balance, HashKey};
use onrush_http::cookie;
use onrush_http::request::RequestHead;

use super::balance::hash;
use super::group::Group;
use crate::exchange::request_context::RequestContext;
use crate::routing::route::values;

/// Key of the request with this `head`; 0 for other policies.
#[inline]
pub(crate) fn hash_key(
    group: &Group,
    head: &RequestHead<'_, '_>,
    context: RequestContext<'_>,
) -> u64 {
    match &group.plan.balance {
        Balance::Hash(by) => key(by, head, context),
        _ => 0,
    }
}

fn key(by: &HashKey, head: &RequestHead<'_, '_>, context: RequestContext<'_>) -> u64 {
    let field = |name: &str| values(head, name).next().unwrap_or_default();
    match by {
        HashKey::Address => context.address(head.headers).map_or(0, hash::address_key),
        HashKey::Path => hash::key(head.path.as_bytes()),
        HashKey::Header(name) => hash::key(field(name)),
        HashKey::Cookie(name) => hash::key(cookie::find(head.headers, name).unwrap_or_default()),
    }
}
