//! Requests that belong on another connection.

use onrush_http::request::RequestHead;
use onrush_http::{Method, Refusal};
use onrush_tls::Info;

use crate::exchange::request_context::Source;
use crate::routing::route::host_of;
use crate::site::Site;

/// Refuses a request that belongs on another connection or is not supported. `listener` accepted its connection.
#[inline]
pub(crate) fn misdirected_request(
    head: &RequestHead<'_, '_>,
    site: &Site,
    source: Source<'_>,
    listener: u16,
) -> Option<Refusal> {
    if head.method == Method::Connect {
        return Some(Refusal::new(501, "CONNECT is not supported"));
    }
    // RFC 9110 4.2.1, RFC 9112 3.3: an empty host may mean a default host, but not with routes for several hosts.
    if head.authority == Some("") && site.routes.have_host_conditions() {
        return Some(Refusal::new(400, "an empty Host field"));
    }
    if let Some(authority) = head.authority
        && is_misdirected(authority, source)
    {
        let reason = "the certificate of this connection is for other hosts";
        return Some(Refusal::new(421, reason));
    }
    let host = host_of(head.authority.unwrap_or(""));
    if site.needs_other_connection(listener, source.stream, host) {
        let reason =
            "the host has another rule for certificates of clients than the name of the connection";
        return Some(Refusal::new(421, reason));
    }
    None
}

/// Whether a request for this authority needs a connection with another certificate (RFC 9110 15.5.20).
#[inline]
fn is_misdirected(authority: &str, source: Source<'_>) -> bool {
    let misdirects = |info: &Info| info.misdirects(host_of(authority));
    source.stream.with_info(misdirects) == Some(true)
}
