//! Why a request may not be forwarded.

use onrush_engine::Error;
use onrush_http::Refusal;
use onrush_http::request::RequestHead;

use crate::exchange::request_context::RequestContext;
use crate::proxy::{rewrite, upgrade};
use crate::routing::route::RouteContext;
use crate::site::Site;

/// Why the request may not be forwarded to its group, if so. `path` is its normalized path, and `index` the index of
/// its route.
///
/// # Errors
/// If the core is out of buffers.
pub(crate) fn forwarding_refusal(
    (head, path): (&RequestHead<'_, '_>, &[u8]),
    (site, index): (&Site, usize),
    (context, coming): (RequestContext<'_>, &impl RouteContext),
) -> Result<Option<Refusal>, Error> {
    let group = &site.groups[context.exchange.group()];
    if group.speaks_http2()
        && upgrade::is_tunnel_request(head)
        && let Some(refusal) = upgrade::objection(head)
    {
        return Ok(Some(refusal));
    }
    let treatment = context.matched_route_options();
    let treatment = treatment.expect("a request is forwarded by its route");
    let others = rewrite::other_paths(head, &treatment.rules, (path, &treatment.prefix));
    if let Some(refusal) = matches_other_route(head, others, (site, index), coming) {
        return Ok(Some(refusal));
    }
    rewrite::objection(head, &treatment.rules, context)
}

/// A refusal if any of these paths matches another route.
pub(crate) fn matches_other_route(
    head: &RequestHead<'_, '_>,
    paths: impl IntoIterator<Item = Vec<u8>>,
    (site, index): (&Site, usize),
    coming: &impl RouteContext,
) -> Option<Refusal> {
    let is_anothers = |path: Vec<u8>| site.routes.choose(head, &path, coming) != Some(index);
    let reason =
        "its route adds a slash to the path, and another route matches the path with that slash";
    let is_refused = paths.into_iter().any(is_anothers);
    is_refused.then(|| Refusal::new(400, reason))
}
