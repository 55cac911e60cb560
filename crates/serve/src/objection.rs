//! Why a request may not be forwarded.

use onrush_engine::Error;
use onrush_http::Refusal;
use onrush_http::request::RequestHead;

use crate::proxy::{rewrite, upgrade};
use crate::request_context::RequestContext;
use crate::route::Coming;
use crate::site::Site;

/// The reason not to forward the request to its group, if there is one. `path` is its normalized path, and `index` the index of
/// its route.
///
/// # Errors
/// When the core is out of buffers.
pub(crate) fn objection(
    (head, path): (&RequestHead<'_, '_>, &[u8]),
    (site, index): (&Site, usize),
    (context, coming): (RequestContext<'_>, &impl Coming),
) -> Result<Option<Refusal>, Error> {
    let group = &site.groups[context.exchange.group()];
    if group.speaks_http2()
        && upgrade::is_asked(head)
        && let Some(refusal) = upgrade::objection(head)
    {
        return Ok(Some(refusal));
    }
    let treatment = context.treatment();
    let treatment = treatment.expect("a request is forwarded by its route");
    let others = rewrite::other_paths(head, &treatment.rules, (path, &treatment.prefix));
    let is_anothers = |other: &Vec<u8>| site.routes.choose(head, other, coming) != Some(index);
    if others.iter().any(is_anothers) {
        let reason = "its route adds a slash to the path, and another route matches the path with that slash";
        return Ok(Some(Refusal::new(400, reason)));
    }
    rewrite::objection(head, &treatment.rules, context)
}
