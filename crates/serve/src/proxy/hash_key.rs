//! What a group chooses a server by, where equal requests are to go to the same one.

use onrush_config::plan::{Balance, HashKey};
use onrush_http::request::RequestHead;
use onrush_http::{cookie, header_is};

use super::balance::hash;
use super::group::Group;
use crate::request_context::RequestContext;

/// That of the request with this `head`.
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
    let field = |name: &str| {
        let header = head
            .headers
            .iter()
            .find(|header| header_is(header.name, name));
        header.map_or(b"".as_slice(), |header| header.value)
    };
    match by {
        HashKey::Address => context.address(head.headers).map_or(0, hash::address_key),
        HashKey::Path => hash::key(head.path.as_bytes()),
        HashKey::Header(name) => hash::key(field(name)),
        HashKey::Cookie(name) => hash::key(cookie::find(head.headers, name).unwrap_or_default()),
    }
}
